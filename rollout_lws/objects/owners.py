"""Ownership of a member according to metadata.managedFields: whether another field manager claims it.

A member is ours once we change its value, which removes all other owners. Another owner later, with us or instead of
us, has claimed it since: by a server-side apply with the same value, or by changing it there and back. A patch or
update that leaves the value unchanged leaves no trace.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

#: Prefix of this controller's field managers.
OURS = "rollout-lws"
#: The API server's managers for fields written before it tracked ownership, or too long ago to be listed.
_UNKNOWN = frozenset({"", "before-first-apply", "ancient-changes"})
#: Members that lead to a value, and the names of fields in ``fieldsV1``.
Path: TypeAlias = tuple[str, ...]
#: A field manager and the fields that it owns, as in ``fieldsV1``.
Owned: TypeAlias = tuple[str, Mapping[str, Any]]


def records(live: Mapping[str, Any]) -> tuple[Owned, ...]:
    """The managedFields entries of a plain object; () without any."""
    entries = live["metadata"].get("managedFields") or ()
    return tuple((str(each.get("manager", "")), each.get("fieldsV1") or {}) for each in entries)


def is_claimed(owned: Iterable[Owned], path: Path, mark: str) -> bool:
    """Whether another field manager has claimed the member since we changed it; False if managedFields do not show it.

    A manager that also owns our annotation ``mark`` has applied a manifest exported while our values were set, so its
    claim does not count.
    """
    ours = ("metadata", "annotations", mark)
    return any(
        not (manager.startswith(OURS) or manager in _UNKNOWN) and _owns(fields, path) and not _owns(fields, ours)
        for manager, fields in owned
    )


def _owns(fields: Mapping[str, Any], path: Path) -> bool:
    """Whether the member is owned, by itself or as part of an owned parent."""
    for member in path:
        if f"f:{member}" not in fields:
            return False
        fields = fields[f"f:{member}"]
        if not fields:
            return True
    return False
