"""The JSONPath subset of printer columns: members, indexes, wildcards and one filter form, compiled once."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

_STEP = re.compile(
    r"\.(?P<member>(?:[^.\[\\]|\\.)+)"
    r"|\[\?\(@(?P<path>(?:\.[\w-]+)+)\s*==\s*(?P<quote>['\"])(?P<value>.*?)(?P=quote)\)\]"
    r"|\[(?P<index>-?\d+|\*)\]"
    r"|\['(?P<quoted>[^']+)'\]"
)


@lru_cache(maxsize=512)
def _steps(path: str) -> tuple[Mapping[str, str | None], ...]:
    path = path.strip("{}")
    steps: list[Mapping[str, str | None]] = []
    at = 0
    while at < len(path):
        found = _STEP.match(path, at)
        if found is None:
            return ({"member": None},)
        steps.append(found.groupdict())
        at = found.end()
    return tuple(steps)


def find(obj: Any, path: str) -> list[Any]:
    """All values at ``path``; none for an unsupported path."""
    values = [obj]
    for step in _steps(path):
        values = [found for value in values for found in _follow(value, step)]
    return values


def joined(obj: Any, path: str) -> Any:
    """The value at ``path``, several of them as text with commas; None if there is none."""
    found = find(obj, path)
    return ",".join(str(entry) for entry in found) if len(found) > 1 else next(iter(found), None)


def _follow(value: Any, step: Mapping[str, str | None]) -> list[Any]:
    member, index, wanted = step.get("member"), step.get("index"), step.get("path")
    name = step.get("quoted") or (member.replace("\\.", ".") if member else None)
    if name is not None:
        return [value[name]] if isinstance(value, Mapping) and name in value else []
    if not isinstance(value, list):
        return list(value.values()) if index == "*" and isinstance(value, Mapping) else []
    if index == "*":
        return value
    if index is not None:
        return value[int(index) :][:1]
    if wanted:
        return [entry for entry in value if find(entry, wanted) == [step["value"]]]
    return []
