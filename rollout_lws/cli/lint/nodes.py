"""YAML as kubectl reads it, with the position of every member: PyYAML's nodes, made into plain values when asked.

Positions are looked up in the nodes themselves, so that a document costs no more than its nodes, however often an
anchor of it is used.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml

from rollout_lws.cli.lint.paths import Path

_MERGE, _TEXT = "tag:yaml.org,2002:merge", "tag:yaml.org,2002:str"
#: Kept as they are written: Kubernetes reads neither dates nor numbers to the base of 60.
_AS_WRITTEN = ("tag:yaml.org,2002:timestamp", "tag:yaml.org,2002:value")
#: Values that one document may have, its anchors written out; kubectl gives up earlier.
_MOST_VALUES = 1_000_000
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True, slots=True)
class Mark:
    """A position; line and column begin at 1."""

    line: int
    column: int


class NotPlain(ValueError):
    """A node that no manifest can have, such as a mapping as a key."""

    def __init__(self, node: yaml.Node, why: str) -> None:
        super().__init__(why)
        self.mark = _mark(node)


@dataclass(frozen=True, slots=True)
class Twice:
    """A key that stands twice in one mapping: only the later one counts."""

    key: str
    first: Mark
    again: Mark


def composed(text: str) -> Iterator[yaml.Node]:
    """The documents of a text that are not empty; yaml.YAMLError where it ends being YAML."""
    loader = _Loader(text)
    try:
        while loader.check_node():
            node = loader.get_node()
            if node is not None and not (node.tag == "tag:yaml.org,2002:null" and not node.value):
                yield node
    finally:
        loader.dispose()


class Reader:
    """Makes plain values of one document's nodes: mappings with keys of text, lists, numbers, booleans, text, None."""

    def __init__(self) -> None:
        self.twice: list[Twice] = []
        self._scalars: Any = yaml.SafeLoader("")
        self._made: dict[int, Any] = {}
        self._sizes: dict[int, int] = {}
        self._open: set[int] = set()

    def value(self, node: yaml.Node) -> Any:
        """NotPlain for what JSON cannot say."""
        known = id(node)
        if known in self._made:
            return self._made[known]
        if known in self._open:
            raise NotPlain(node, "this anchor contains itself: write its value out")
        self._open.add(known)
        try:
            made = self._value(node)
        finally:
            self._open.discard(known)
        size = self._sizes[known] = 1 + sum(self._sizes[id(each)] for each in _inside(node))
        if size > _MOST_VALUES:
            raise NotPlain(node, f"its anchors make more than {_MOST_VALUES} values of this: write out what is meant")
        self._made[known] = made
        return made

    def _value(self, node: yaml.Node) -> Any:
        if isinstance(node, yaml.SequenceNode):
            return [self.value(item) for item in node.value]
        if isinstance(node, yaml.MappingNode):
            self._tell_doubles(node)
            return {key: self.value(value) for key, (_, value) in _members(node).items()}
        if not isinstance(node, yaml.ScalarNode) or node.tag in _AS_WRITTEN:
            return node.value
        if node.tag == "tag:yaml.org,2002:int" and ":" in node.value:
            return node.value
        try:
            return self._scalars.construct_object(node)
        except (yaml.YAMLError, ValueError) as error:
            raise NotPlain(node, f"{node.value!r} cannot be read as {node.tag.rpartition(':')[2]}: quote it") from error

    def _tell_doubles(self, node: yaml.MappingNode) -> None:
        seen: dict[str, yaml.Node] = {}
        for key, _ in node.value:
            if key.tag == _MERGE:
                continue
            name = _key(key)
            if name in seen:
                self.twice.append(Twice(name, _mark(seen[name]), _mark(key)))
            seen[name] = key


def mark_of(root: yaml.Node, path: Path) -> Mark:
    """Where a member stands: its key in a mapping, the item itself in a list. Of a path that leads to nothing, the last
    member that exists.
    """
    node, found = root, _mark(root)
    for part in path:
        if isinstance(node, yaml.MappingNode) and part in (members := _members(node)):
            key, node = members[str(part)]
            found = _mark(key)
        elif isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
            node = node.value[part]
            found = _mark(node)
        else:
            break
    return found


def _members(node: yaml.MappingNode) -> dict[str, tuple[yaml.Node, yaml.Node]]:
    """Keys and values by key: what the mapping says itself wins over what it merges, a later key over an earlier."""
    found: dict[str, tuple[yaml.Node, yaml.Node]] = {}
    merged: dict[str, tuple[yaml.Node, yaml.Node]] = {}
    for key, value in node.value:
        if key.tag != _MERGE:
            found[_key(key)] = (key, value)
            continue
        sources = value.value if isinstance(value, yaml.SequenceNode) else [value]
        for source in sources:
            if not isinstance(source, yaml.MappingNode) or source is node:
                raise NotPlain(source, "only a mapping can be merged by <<")
            for name, pair in _members(source).items():
                merged.setdefault(name, pair)
    return merged | found


def _inside(node: yaml.Node) -> list[yaml.Node]:
    """The nodes of the values right inside of it."""
    if isinstance(node, yaml.SequenceNode):
        return list(node.value)
    return [value for _, value in _members(node).values()] if isinstance(node, yaml.MappingNode) else []


def _key(node: yaml.Node) -> str:
    if not isinstance(node, yaml.ScalarNode):
        raise NotPlain(node, "a key must be plain text")
    if node.tag == "tag:yaml.org,2002:bool":
        # kubectl makes JSON of it, in which keys are text.
        return str(node.value.lower() in ("yes", "on", "true")).lower()
    return str(node.value)


def _mark(node: yaml.Node) -> Mark:
    return Mark(node.start_mark.line + 1, node.start_mark.column + 1)
