"""Structural schemas of custom resources, compiled once: prune, default and validate every write.

A compiled node returns the value itself when it prunes and defaults nothing, so an unchanged part of an object stays
shared with the previous version; shared parts are not processed again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any

import msgspec

from rollout_lws.sandbox.schemas.checks import Check, compile_checks

Object = dict[str, Any]
#: Called with the path of each pruned member.
Unknown = Callable[[str], None]

_ABSENT = object()
_ROOT_FIELDS = frozenset({"apiVersion", "kind", "metadata"})


_UNASKED = (
    "some validation rules were not checked because the object was invalid; correct the existing errors to complete "
    "validation"
)
#: Prefixes of violations after which rules do not run, because a value that they read may be missing.
_SHAPELESS = ("Required value", "Unsupported value", "Too long", "Too many")


def _blocks_rules(violation: str) -> bool:
    what = violation.partition(": ")[2]
    return what.startswith(_SHAPELESS) or " in body must be of type " in what


class Node:
    """One schema with its children. ``default`` is _ABSENT when there is none."""

    __slots__ = (
        "additional",
        "checks",
        "default",
        "embedded",
        "fills",
        "items",
        "list_keys",
        "nullable",
        "preserve",
        "properties",
        "rules",
        "type",
    )

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self.type: str = schema.get("type", "")
        self.properties = {name: Node(child) for name, child in (schema.get("properties") or {}).items()}
        additional = schema.get("additionalProperties")
        self.additional: Node | None = None
        if isinstance(additional, Mapping):
            self.additional = Node(additional)
        elif additional is True:
            self.additional = Node({"x-kubernetes-preserve-unknown-fields": True})
        items = schema.get("items")
        self.items = Node(items) if isinstance(items, Mapping) else None
        self.list_keys: tuple[str, ...] = tuple(schema.get("x-kubernetes-list-map-keys") or ())
        self.preserve = bool(schema.get("x-kubernetes-preserve-unknown-fields"))
        self.embedded = bool(schema.get("x-kubernetes-embedded-resource"))
        self.nullable = bool(schema.get("nullable"))
        self.default: Any = schema.get("default", _ABSENT)
        self.checks: tuple[Check, ...] = compile_checks(schema, lambda part: Node(part).violations)
        self.rules: tuple[Mapping[str, Any], ...] = tuple(schema.get("x-kubernetes-validations") or ())
        self.fills = [name for name, child in self.properties.items() if child.default is not _ABSENT]

    def prepared(self, value: Any, path: str, unknown: Unknown | None) -> Any:
        """``value`` pruned and with defaults; the same object if nothing changed."""
        if isinstance(value, dict):
            return self._prepared_object(value, path, unknown)
        if isinstance(value, list) and self.items is not None:
            items = self.items
            made = [items.prepared(entry, f"{path}[{at}]", unknown) for at, entry in enumerate(value)]
            return value if all(new is old for new, old in zip(made, value, strict=True)) else made
        return value

    def _prepared_object(self, value: Object, path: str, unknown: Unknown | None) -> Object:
        changed: Object | None = None
        properties, additional = self.properties, self.additional
        for name, member in value.items():
            child = properties.get(name) or additional
            if child is None:
                if self.preserve or (self.embedded and name in _ROOT_FIELDS):
                    continue
                if unknown is not None:
                    unknown(f"{path}.{name}" if path else name)
                changed = dict(value) if changed is None else changed
                del changed[name]
            elif member is None and not child.nullable:
                changed = dict(value) if changed is None else changed
                del changed[name]
            else:
                made = child.prepared(member, f"{path}.{name}" if path else name, unknown)
                if made is not member:
                    changed = dict(value) if changed is None else changed
                    changed[name] = made
        for name in self.fills:
            if name not in (value if changed is None else changed):
                child = properties[name]
                changed = dict(value) if changed is None else changed
                changed[name] = child.prepared(child.default, name, None)
        return value if changed is None else changed

    def violations(self, value: Any, path: str) -> Iterator[str]:
        """Violations of ``value``; if its type is wrong, its members are not checked."""
        if value is None and self.nullable:
            return
        for check in self.checks:
            wrong = list(check(value, path))
            yield from wrong
            if wrong and check is self.checks[0]:
                return
        if isinstance(value, dict):
            for name, member in value.items():
                child = self.properties.get(name) or self.additional
                if child is not None:
                    yield from child.violations(member, f"{path}.{name}" if path else name)
        elif isinstance(value, list) and self.items is not None:
            for at, entry in enumerate(value):
                yield from self.items.violations(entry, f"{path}[{at}]")

    def ruled(self, value: Any, old: Any, path: str) -> Iterator[tuple[Node, Any, Any, str]]:
        """All values with CEL rules, each with its old value (None if there is none)."""
        if value is None or value is old:
            return
        if self.rules:
            yield self, value, old, path
        if isinstance(value, dict):
            before = old if isinstance(old, dict) else {}
            for name, member in value.items():
                child = self.properties.get(name) or self.additional
                if child is not None:
                    yield from child.ruled(member, before.get(name), f"{path}.{name}" if path else name)
        elif isinstance(value, list) and self.items is not None:
            for at, entry in enumerate(value):
                yield from self.items.ruled(entry, self._counterpart(entry, old), f"{path}[{at}]")

    def _counterpart(self, entry: Any, old: Any) -> Any:
        """The old item with the same keys in a list of type map; items of other lists have no old value."""
        if not self.list_keys or not isinstance(old, list) or not isinstance(entry, dict):
            return None
        keys = [entry.get(key) for key in self.list_keys]
        return next((item for item in old if [item.get(key) for key in self.list_keys] == keys), None)


class Schema:
    """The compiled schema of one version of a custom resource."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self.document = document
        self.root = Node(document)
        self._has_rules = b"x-kubernetes-validations" in msgspec.json.encode(document)

    def prepared(self, obj: Object, old: Object | None, unknown: Unknown | None = None) -> Object:
        """``obj`` pruned and with defaults; members shared with ``old`` stay untouched."""
        root = self.root
        made: Object = {}
        for name, value in obj.items():
            child = root.properties.get(name)
            if name in _ROOT_FIELDS or (old is not None and old.get(name) is value):
                made[name] = value
            elif child is not None:
                if value is not None or child.nullable:
                    made[name] = child.prepared(value, name, unknown)
            elif root.preserve:
                made[name] = value
            elif unknown is not None:
                unknown(name)
        for name in root.fills:
            if name not in made and name not in _ROOT_FIELDS:
                made[name] = root.properties[name].prepared(root.properties[name].default, name, None)
        return made

    def violations(self, obj: Object, old: Object | None) -> list[str]:
        """All violations, with kube-apiserver's messages; CEL rules run only if the object's shape is valid."""
        found = [text for check in self.root.checks for text in check(obj, "")]
        for name, child in self.root.properties.items():
            value = obj.get(name, _ABSENT)
            if name in _ROOT_FIELDS or value is _ABSENT or (old is not None and old.get(name) is value):
                continue
            found += child.violations(value, name)
        if self._has_rules and any(map(_blocks_rules, found)):
            found.append(f"<nil>: Invalid value: null: {_UNASKED}")
        elif self._has_rules:
            from rollout_lws.sandbox.schemas import cel

            for node, value, before, path in self.root.ruled(obj, old, ""):
                found += cel.violations(node.rules, value, before, path)
        return found


@lru_cache(maxsize=128)
def compiled(document: bytes) -> Schema:
    """The Schema of an openAPIV3Schema in JSON, compiled once for all servers in the process."""
    return Schema(msgspec.json.decode(document))
