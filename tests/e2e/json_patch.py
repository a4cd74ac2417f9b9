"""The difference of two objects as a JSON Patch (RFC 6902), which is how a mutating webhook tells what it changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rollout_lws.objects.json_patch import member


def json_patch(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The operations that turn ``before`` into ``after``, member by member; lists are replaced whole."""
    return list(_operations("", before, after))


def _operations(path: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for key in before:
        if key not in after:
            yield {"op": "remove", "path": member(path, key)}
    for key, value in after.items():
        here = member(path, key)
        if key not in before:
            yield {"op": "add", "path": here, "value": value}
        elif isinstance(before[key], Mapping) and isinstance(value, Mapping):
            yield from _operations(here, before[key], value)
        elif before[key] != value:
            yield {"op": "replace", "path": here, "value": value}
