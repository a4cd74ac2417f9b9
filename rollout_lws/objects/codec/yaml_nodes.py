"""Reads YAML as kubectl does, with the position of every member: PyYAML nodes, converted to plain values on demand.

Positions are looked up in the nodes themselves, so a document costs no more than its nodes, however often an anchor of
it is used.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias
from weakref import WeakKeyDictionary

import yaml

from rollout_lws.objects.codec.nesting import check_yaml

_TAG = "tag:yaml.org,2002:"
_MERGE, _NULL, _BOOL, _INT, _FLOAT = (f"{_TAG}{name}" for name in ("merge", "null", "bool", "int", "float"))
#: How kubectl's parser resolves plain scalars: neither YAML 1.1, which has dates and base-60 numbers, nor 1.2, which
#: has no ``yes``. Tag, form and first characters, in order of precedence.
_PLAIN = (
    (_BOOL, r"[yYnN]|yes|Yes|YES|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF", "yYnNtTfFoO"),
    (_NULL, r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    (_MERGE, r"<<", "<"),
    (_INT, r"[-+]?(?:0[xX][0-9a-fA-F_]+|0[bB][01_]+|0[oO]?[0-7_]+|0|[1-9][0-9_]*)", "-+0123456789"),
    (_FLOAT, r"[-+]?(?:\.[0-9_]+|[0-9][0-9_]*(?:\.[0-9_]*)?)(?:[eE][-+]?[0-9]+)?", "-+.0123456789"),
    (_FLOAT, r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)", "-+."),
)
#: Limit of values in one document, with anchors expanded; kubectl's limit is lower.
MOST_VALUES = 1_000_000
#: Characters of a scalar that a message shows.
_SHOWN = 40
_Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_Base):  # type: ignore[misc]
    yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {}


for _tag, _form, _first in _PLAIN:
    _Loader.add_implicit_resolver(_tag, re.compile(rf"(?:{_form})\Z"), _first)


@dataclass(frozen=True, slots=True)
class Mark:
    """A position; line and column begin at 1."""

    line: int
    column: int


class NotPlain(ValueError):
    """A node that is invalid in a manifest, such as a mapping as a key."""

    def __init__(self, node: yaml.Node, why: str) -> None:
        super().__init__(why)
        self.mark = _mark(node)


def composed(text: str) -> Iterator[yaml.Node]:
    """The non-empty documents of a text; yaml.YAMLError where it is no longer YAML."""
    check_yaml(text)
    loader = _Loader(text)
    try:
        while loader.check_node():
            node = loader.get_node()
            if node is not None and not (node.tag == _NULL and not node.value):
                yield node
    finally:
        loader.dispose()


def quoted(text: str) -> Iterator[tuple[int, int]]:
    """Positions (from, to) of quoted and block scalars, up to where the text is no longer YAML."""
    try:
        check_yaml(text)
        for token in yaml.scan(text, Loader=_Loader):
            if isinstance(token, yaml.ScalarToken) and not token.plain:
                yield token.start_mark.index, token.end_mark.index
    except yaml.YAMLError:
        return


def values(text: str) -> list[Any]:
    """The non-empty documents of a text, as plain values; yaml.YAMLError where it is no longer YAML, NotPlain for
    values that JSON cannot represent and for anchors that expand to more than MOST_VALUES.
    """
    return [Reader().value(root) for root in composed(text)]


class Reader:
    """Converts one document's nodes to plain values: dicts with string keys, lists, numbers, booleans, text, None.

    With ``unique`` a key twice in one mapping is refused, as Kustomize and Flux do; else the later one counts.
    """

    def __init__(self, *, unique: bool = False) -> None:
        self._unique = unique
        self._merges = _Merges()
        self._made: dict[int, Any] = {}
        self._sizes: dict[int, int] = {}
        self._open: set[int] = set()

    def value(self, node: yaml.Node) -> Any:
        """NotPlain for values that JSON cannot represent."""
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
        size = self._sizes[known] = 1 + sum(self._sizes[id(each)] for each in self._inside(node))
        if size > MOST_VALUES:
            raise NotPlain(node, f"its anchors make more than {MOST_VALUES} values of this: write out what is meant")
        self._made[known] = made
        return made

    def _value(self, node: yaml.Node) -> Any:
        if isinstance(node, yaml.SequenceNode):
            return [self.value(item) for item in node.value]
        if isinstance(node, yaml.MappingNode):
            if self._unique:
                self._check_unique(node)
            return {key: self.value(value) for key, (_, value) in self._merges.members(node).items()}
        return _scalar(node)

    def _inside(self, node: yaml.Node) -> list[yaml.Node]:
        """The nodes of its direct values."""
        if isinstance(node, yaml.SequenceNode):
            return list(node.value)
        members = self._merges.members(node) if isinstance(node, yaml.MappingNode) else {}
        return [value for _, value in members.values()]

    def _check_unique(self, node: yaml.MappingNode) -> None:
        seen = set()
        for key, _ in node.value:
            name = _key(key)
            if name in seen and key.tag != _MERGE:
                raise NotPlain(key, f"{name} stands here again: remove one, or put --- above another object")
            seen.add(name)


def _scalar(node: yaml.Node) -> Any:
    """The value of a scalar; one with an unknown tag is a string, as in kubectl."""
    told = str(node.value)
    if node.tag == _NULL:
        return None
    try:
        if node.tag == _BOOL:
            return _truth(told)
        if node.tag == _INT:
            return _whole(told.replace("_", ""))
        if node.tag == _FLOAT:
            return _number(told.replace("_", ""))
    except (ValueError, OverflowError) as error:
        shown = told if len(told) <= _SHOWN else f"{told[:_SHOWN]}..."
        raise NotPlain(node, f"{shown!r} cannot be read as {node.tag.rpartition(':')[2]}: quote it") from error
    return told


def _truth(told: str) -> bool:
    if told.lower() in ("y", "yes", "on", "true"):
        return True
    if told.lower() in ("n", "no", "off", "false"):
        return False
    raise ValueError(told)


def _whole(told: str) -> int | float:
    sign, digits = (-1, told[1:]) if told.startswith("-") else (1, told.removeprefix("+"))
    octal = len(digits) > 1 and digits[0] == "0" and digits.isdigit()
    made = sign * int(digits, 8 if octal else 0)
    # JSON as servers read it has no larger integers.
    return made if -(2**63) <= made < 2**64 else float(made)


def _number(told: str) -> int | float:
    made = float(told)
    if not math.isfinite(made):
        raise ValueError("JSON has no such number")
    # 08 and 1e3 become integers; 1.0 stays a float, so that messages show it as written.
    return int(made) if "." not in told and made.is_integer() and abs(made) < 2**63 else made


#: A mapping's keys and values by key.
_Members: TypeAlias = dict[str, tuple[yaml.Node, yaml.Node]]
#: Each mapping is merged once, however many others merge it.
_known: WeakKeyDictionary[yaml.MappingNode, _Members] = WeakKeyDictionary()


class _Merges:
    """The members of one document's mappings. Copies by ``<<`` are counted over the whole document: otherwise ten lines
    that merge each other nine times over would copy more than any memory holds.
    """

    def __init__(self) -> None:
        self._copied = 0
        self._open: set[int] = set()

    def members(self, node: yaml.MappingNode) -> _Members:
        """A mapping's own members override merged ones, a later key an earlier one."""
        known = _known.get(node)
        if known is None:
            self._open.add(id(node))
            known = _known[node] = self._merged(node)
            self._open.discard(id(node))
        return known

    def _merged(self, node: yaml.MappingNode) -> _Members:
        found: _Members = {}
        merged: _Members = {}
        for key, value in node.value:
            if key.tag != _MERGE:
                found[_key(key)] = (key, value)
                continue
            for source in value.value if isinstance(value, yaml.SequenceNode) else [value]:
                if not isinstance(source, yaml.MappingNode):
                    raise NotPlain(source, "only a mapping can be merged by <<")
                if id(source) in self._open:
                    raise NotPlain(source, "this mapping merges itself: write its value out")
                members = self.members(source)
                self._copied += len(members)
                if self._copied > MOST_VALUES:
                    raise NotPlain(node, f"its merges copy more than {MOST_VALUES} values: write out what is meant")
                for name, pair in members.items():
                    merged.setdefault(name, pair)
        return merged | found


def mark_of(root: yaml.Node, path: Sequence[str | int]) -> Mark:
    """Position of a member: its key in a mapping, the item itself in a list. For a path that does not exist, the last
    member that does. Only for documents that a Reader has read.
    """
    merges = _Merges()
    node, found = root, _mark(root)
    for part in path:
        if isinstance(node, yaml.MappingNode) and part in (members := merges.members(node)):
            key, node = members[str(part)]
            found = _mark(key)
        elif isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
            node = node.value[part]
            found = _mark(node)
        else:
            break
    return found


def _key(node: yaml.Node) -> str:
    if not isinstance(node, yaml.ScalarNode):
        raise NotPlain(node, "a key must be plain text")
    if node.tag == _BOOL:
        # kubectl converts it to JSON, in which keys are strings.
        return str(_scalar(node)).lower()
    return str(node.value)


def _mark(node: yaml.Node) -> Mark:
    return Mark(node.start_mark.line + 1, node.start_mark.column + 1)
