"""JSON Patches (RFC 6902) as tests need them: made of two objects, as a mutating webhook tells what it changed, and
read as the merge patches that our controller makes them of.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
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


def merged(operations: Iterable[Mapping[str, Any]]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The merge patch that our controller made ``operations`` of, and what they demand of the object's metadata."""
    body: dict[str, Any] = {}
    tested: dict[str, Any] = {}
    for operation in operations:
        *parents, last = (part.replace("~1", "/").replace("~0", "~") for part in operation["path"].split("/")[1:])
        if operation["op"] == "test":
            tested[last] = operation["value"]
            continue
        inner = body
        for part in parents:
            inner = inner.setdefault(part, {})
        inner[last] = operation.get("value")
    return body, tested


def as_merge(body: Any) -> dict[str, Any]:
    """The body of a request, whichever kind of patch it is."""
    return merged(body)[0] if isinstance(body, list) else dict(body or {})
