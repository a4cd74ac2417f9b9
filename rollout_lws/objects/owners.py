"""Who owns a member of an object, as metadata.managedFields tells: what a value alone cannot say.

A member is ours from the moment at which we change its value, which takes it from everybody else. Who owns it besides
us, or in our stead, has stated it since: by a server-side apply with that very value, or by a change there and back. A
patch or update that leaves the value as it is leaves no trace.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

#: How the managers begin that this controller writes as.
OURS = "rollout-lws"
#: What the API server calls the owner of what was written before it kept records, or too long ago to keep each.
_UNKNOWN = frozenset({"", "before-first-apply", "ancient-changes"})
#: Members that lead to a value, and the names of fields in ``fieldsV1``.
Path: TypeAlias = tuple[str, ...]
#: A manager and what it owns, as ``fieldsV1`` has it.
Owned: TypeAlias = tuple[str, Mapping[str, Any]]


def records(live: Mapping[str, Any]) -> tuple[Owned, ...]:
    """The records of a plain object; () without any."""
    entries = live["metadata"].get("managedFields") or ()
    return tuple((str(each.get("manager", "")), each.get("fieldsV1") or {}) for each in entries)


def is_claimed(owned: Iterable[Owned], path: Path, mark: str) -> bool:
    """Whether somebody besides us has stated the member since we changed it; False where the records do not tell.

    Whoever states our annotation ``mark`` as well has applied what was exported while our values stood, and knows
    nothing of them.
    """
    ours = ("metadata", "annotations", mark)
    return any(
        not (manager.startswith(OURS) or manager in _UNKNOWN) and _owns(fields, path) and not _owns(fields, ours)
        for manager, fields in owned
    )


def _owns(fields: Mapping[str, Any], path: Path) -> bool:
    """Whether the member is owned, by itself or as a part of what is owned as a whole."""
    for member in path:
        if f"f:{member}" not in fields:
            return False
        fields = fields[f"f:{member}"]
        if not fields:
            return True
    return False
