"""Which client wrote what is new in a version, according to the workload's managedFields. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import msgspec

from rollout_lws.targets.target import Target

Object = dict[str, Any]


def author(workload: Target, before: Object, after: Object) -> tuple[str, datetime | None]:
    """The last field manager that wrote a difference, and when; ("", None) if managedFields name none.

    A manager that takes over a field removes the former owner, so the owner of a different field wrote it last.
    Versions are the members of the spec that have them.
    """
    paths = list(_paths(before, after))
    wrote = [
        each
        for each in workload.metadata.managed_fields
        if any(_has(msgspec.json.decode(each.fields), ("f:spec", *path)) for path in paths)
    ]
    if not wrote:
        return "", None
    last = max(wrote, key=lambda each: each.time.timestamp() if each.time else 0.0)
    return last.manager, last.time


def _paths(was: Any, now: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Paths of the differences, as managedFields spells them."""
    if was == now:
        return
    if isinstance(now, dict):
        was = was if isinstance(was, dict) else {}
        for key in now:
            yield from _paths(was.get(key), now[key], (*path, f"f:{key}"))
    elif isinstance(now, list) and all(isinstance(each, dict) and "name" in each for each in now):
        named = {each.get("name"): each for each in was or () if isinstance(each, dict)}
        for each in now:
            key = "k:" + json.dumps({"name": each["name"]}, separators=(",", ":"))
            yield from _paths(named.get(each["name"]), each, (*path, key))
    else:
        yield path


def _has(fields: Any, path: tuple[str, ...]) -> bool:
    """Whether ``fields`` contain the field at ``path``, or a parent that is owned as a whole."""
    for part in path:
        if not fields:
            return True
        if part not in fields:
            return False
        fields = fields[part]
    return True
