"""JSON merge patches (RFC 7386) between two plain JSON values, and as JSON Patches (RFC 6902), which support tests.

A merge patch can only require the whole object's resourceVersion, and every status write changes that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rollout_lws.objects.writes import Patch


def merge_patch(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """The smallest merge patch that turns ``before`` into ``after``; {} when they are equal. Lists are replaced."""
    changes: dict[str, Any] = {key: None for key in before if key not in after}
    for key, value in after.items():
        old = before.get(key)
        if old == value:
            continue
        changes[key] = merge_patch(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return changes


def operations(patch: Patch) -> list[dict[str, Any]]:
    """The operations of ``patch``, conditional on the object's uid and generation."""
    tests = (
        {"op": "test", "path": f"/metadata/{each}", "value": getattr(patch, each)} for each in ("uid", "generation")
    )
    return [*tests, *_merged("", patch.body)]


def _merged(path: str, body: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for key, value in body.items():
        here = member(path, key)
        if isinstance(value, Mapping):
            yield from _merged(here, value)
        elif value is None:
            yield {"op": "remove", "path": here}
        else:
            yield {"op": "add", "path": here, "value": value}


def is_stale(patch: Patch, live: Mapping[str, Any]) -> bool:
    """Whether ``patch`` was rejected as invalid because ``live`` has changed since it was made: another object, another
    spec, or something missing that it merges into or removes.
    """
    meta = live["metadata"]
    return (meta.get("uid"), meta.get("generation")) != (patch.uid, patch.generation) or not _fits(patch.body, live)


def _fits(body: Mapping[str, Any], there: Any) -> bool:
    if not isinstance(there, Mapping):
        return False
    for key, value in body.items():
        if isinstance(value, Mapping):
            if not _fits(value, there.get(key)):
                return False
        elif value is None and key not in there:
            return False
    return True


def member(path: str, key: str) -> str:
    """The JSON Pointer (RFC 6901) of a member of the value at ``path``."""
    return f"{path}/{key.replace('~', '~0').replace('/', '~1')}"
