"""Sets of field paths and their FieldsV1 encoding, the basis of server-side apply.

A path is a tuple of segments: ``f:name`` for a member, ``k:{…}`` for an item of a list with merge keys, ``v:…`` for an
item of a set. Other lists are owned as a whole (atomic).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from rollout_lws.sandbox.patching.strategic import SETS, merge_key
from rollout_lws.sandbox.schemas.schema import Node

Path: TypeAlias = tuple[str, ...]
Paths: TypeAlias = frozenset[Path]
Object = dict[str, Any]

_IDENTITY = frozenset({"apiVersion", "kind"})
#: Defaults of the keys of list items.
_KEY_DEFAULTS = {"protocol": "TCP"}
_OWNABLE_METADATA = frozenset({"labels", "annotations", "finalizers", "ownerReferences"})


def paths(obj: Mapping[str, Any], root: Node | None = None) -> Paths:
    """All fields of an object that a manager can own: not its identity and not what the server sets."""
    found: set[Path] = set()
    for name, value in obj.items():
        if name == "metadata":
            ownable = {key: member for key, member in (value or {}).items() if key in _OWNABLE_METADATA}
            if ownable:
                _collect(ownable, "metadata", None, ("f:metadata",), found)
        elif name not in _IDENTITY:
            _collect(value, name, _child(root, name), (f"f:{name}",), found)
    return frozenset(found)


def _child(node: Node | None, name: str) -> Node | None:
    return None if node is None else node.properties.get(name) or node.additional


def _collect(value: Any, field: str, node: Node | None, path: Path, found: set[Path]) -> None:
    if value is None:
        return
    if isinstance(value, Mapping) and value:
        for name, member in value.items():
            _collect(member, name, _child(node, name), (*path, f"f:{name}"), found)
        return
    if isinstance(value, list) and value:
        segments = _segments(field, value, node)
        if segments is not None:
            items = None if node is None else node.items
            for segment, entry in zip(segments, value, strict=True):
                found.add((*path, segment))
                if segment.startswith("k:"):
                    for name, member in entry.items():
                        _collect(member, name, _child(items, name), (*path, segment, f"f:{name}"), found)
            return
    found.add(path)


def _segments(field: str, entries: list[Any], node: Node | None) -> list[str] | None:
    """The path segment of each item of a list; None for an atomic list."""
    keys: Iterable[str] = node.list_keys if node is not None else ()
    if not keys:
        if field in SETS:
            return [f"v:{_text(entry)}" for entry in entries]
        key = merge_key(field, entries)
        if key is None:
            return None
        keys = (key, "protocol") if field == "ports" else (key,)
    if not all(isinstance(entry, Mapping) for entry in entries):
        return None
    return [f"k:{_text({key: _key(entry, key) for key in keys if _key(entry, key) is not None})}" for entry in entries]


def _key(entry: Mapping[str, Any], key: str) -> Any:
    return entry.get(key, _KEY_DEFAULTS.get(key))


def _text(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), sort_keys=True)


def _position(entries: list[Any], segment: str) -> int | None:
    wanted = json.loads(segment[2:])
    if segment.startswith("v:"):
        return entries.index(wanted) if wanted in entries else None
    for at, entry in enumerate(entries):
        if isinstance(entry, Mapping) and all(_key(entry, key) == value for key, value in wanted.items()):
            return at
    return None


def value_at(obj: Any, path: Path) -> Any:
    """The value at ``path``; None if there is none. For an item of a keyed list only whether it exists."""
    for segment in path:
        if segment.startswith("f:"):
            obj = obj.get(segment[2:]) if isinstance(obj, Mapping) else None
        else:
            at = _position(obj, segment) if isinstance(obj, list) else None
            obj = None if at is None else obj[at]
        if obj is None:
            return None
    return True if path[-1].startswith("k:") else obj


def without(obj: Any, path: Path) -> Any:
    """``obj`` without the value at ``path``; only the containers along the path are new."""
    segment, rest = path[0], path[1:]
    if segment.startswith("f:"):
        name = segment[2:]
        if not isinstance(obj, Mapping) or name not in obj:
            return obj
        copied: Any = dict(obj)
        if rest:
            copied[name] = without(obj[name], rest)
        else:
            del copied[name]
        return copied
    at = _position(obj, segment) if isinstance(obj, list) else None
    if at is None:
        return obj
    copied = list(obj)
    if rest:
        copied[at] = without(obj[at], rest)
    else:
        del copied[at]
    return copied


def merge(live: Any, config: Any, node: Node | None = None, field: str = "") -> Any:
    """``live`` merged with an applied configuration: objects by member, keyed lists by item, sets by union."""
    if isinstance(config, Mapping):
        merged = dict(live) if isinstance(live, Mapping) else {}
        for name, value in config.items():
            merged[name] = merge(merged.get(name), value, _child(node, name), name)
        return merged
    if isinstance(config, list) and isinstance(live, list) and config:
        segments = _segments(field, config, node)
        if segments is not None:
            items = None if node is None else node.items
            combined = list(live)
            for segment, entry in zip(segments, config, strict=True):
                at = _position(combined, segment)
                if at is None:
                    combined.append(entry)
                else:
                    combined[at] = merge(combined[at], entry, items)
            return combined
    return config


def encode(owned: Paths) -> Object:
    """FieldsV1."""
    tree: Object = {}
    for path in sorted(owned, key=len):
        node = tree
        for segment in path:
            node = node.setdefault(segment, {})
        if path[-1].startswith("k:"):
            node["."] = {}
    return tree


def decode(tree: Mapping[str, Any], path: Path = ()) -> Paths:
    found: set[Path] = set()
    for segment, below in tree.items():
        if segment == ".":
            found.add(path)
        elif below:
            found |= decode(below, (*path, segment))
        else:
            found.add((*path, segment))
    return frozenset(found)


def shown(path: Path) -> str:
    """A path as kubectl prints it: .spec.containers[name="a"].image."""
    text = ""
    for segment in path:
        if segment.startswith("f:"):
            text += f".{segment[2:]}"
        elif segment.startswith("k:"):
            text += "[" + ",".join(f"{key}={_text(value)}" for key, value in json.loads(segment[2:]).items()) + "]"
        else:
            text += f"[={segment[2:]}]"
    return text
