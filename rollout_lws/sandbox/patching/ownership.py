"""Field ownership: metadata.managedFields and server-side apply.

Updates are tracked only for writers with a field manager, so that in-process behaviours do not pay for it. As in
Kubernetes, the first apply to an object without records makes "before-first-apply" the owner of all its fields.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import msgspec

from rollout_lws.errors import ApiError
from rollout_lws.sandbox.api_resources import Served
from rollout_lws.sandbox.patching import fieldpaths
from rollout_lws.sandbox.patching.fieldpaths import Path, Paths
from rollout_lws.sandbox.wire.api_errors import conflicting

Object = dict[str, Any]

_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def track(old: Object | None, new: Object, manager: str, subresource: str, now: str) -> Object:
    """``new`` with the fields that differ from ``old`` owned by ``manager`` and by no other manager."""
    before = fieldpaths.paths(old or {})
    after = fieldpaths.paths(new)
    changed = {path for path in after if fieldpaths.value_at(old or {}, path) != fieldpaths.value_at(new, path)}
    gone = before - after
    if not changed and not gone:
        return new
    # The new object carries the records of the old one, unless its writer reset them.
    entries = [] if old is None else _entries(new)
    name = manager or "unknown"
    mine = _Entry.find(entries, name, "Update", subresource)
    if mine is None:
        mine = _Entry(name, "Update", subresource, new["apiVersion"], now, frozenset())
        entries.append(mine)
    made = [
        entry.owning((entry.paths | changed) - gone, now if changed else entry.time)
        if entry is mine
        else entry.owning(entry.paths - changed - gone)
        for entry in entries
    ]
    return _recorded(new, made)


def is_unchanged(old: Object, new: Object) -> bool:
    """Whether nothing but ownership times differs, so that the write is a no-op."""
    if new == old:
        return True
    if {**new, "metadata": None} != {**old, "metadata": None}:
        return False
    return _untimed(new["metadata"]) == _untimed(old["metadata"])


def _untimed(metadata: Mapping[str, Any]) -> Object:
    records = [{**each, "time": None} for each in metadata.get("managedFields") or ()]
    return {**metadata, "managedFields": records}


def apply(
    served: Served,
    old: Object | None,
    config: Mapping[str, Any],
    manager: str,
    force: bool,
    subresource: str,
    now: str,
) -> Object:
    """Server-side apply of ``config`` to ``old``; ApiError 409 names conflicting fields and their managers."""
    if (config.get("metadata") or {}).get("managedFields"):
        raise ApiError(400, "BadRequest", "metadata.managedFields must be nil")
    root = None if served.schema is None else served.schema.root
    wanted = fieldpaths.paths(config, root)
    entries = _entries(old)
    if old is not None and not entries:
        everything = fieldpaths.paths(old, root)
        entries = [_Entry("before-first-apply", "Update", "", old["apiVersion"], now, everything)]
    mine = _Entry.find(entries, manager, "Apply", subresource)
    if mine is None:
        mine = _Entry(manager, "Apply", subresource, served.resource.api_version, now, frozenset())
        entries.append(mine)
    live = old or {}
    differing = {path for path in wanted if fieldpaths.value_at(live, path) != fieldpaths.value_at(config, path)}
    contested = {entry: entry.paths & differing for entry in entries if entry is not mine and entry.paths & differing}
    if contested and not force and not frozenset().union(*contested.values()) <= _migrating(live, manager):
        raise conflicting({entry.who(): sorted(map(fieldpaths.shown, owned)) for entry, owned in contested.items()})
    others: Paths = frozenset().union(*(entry.paths for entry in entries if entry is not mine))
    merged = fieldpaths.merge(live, config, root)
    for path in _dropped(mine.paths - wanted, others):
        merged = fieldpaths.without(merged, path)
    merged["metadata"] = {**(live.get("metadata") or {}), **merged["metadata"]}
    made = [
        entry.owning(wanted, now if differing or wanted != entry.paths else entry.time)
        if entry is mine
        else entry.owning(entry.paths - contested.get(entry, frozenset()))
        for entry in entries
    ]
    return _recorded(merged, made)


def _dropped(abandoned: Paths, others: Paths) -> list[Path]:
    """Fields to remove because their applier dropped them: a list item as a whole, unless others own a part of it."""
    needed = {path[:length] for path in others for length in range(1, len(path) + 1)}
    kept = {path for path in abandoned & needed if path[-1].startswith("k:")}
    return [
        path
        for path in sorted(abandoned - needed, key=len)
        if not (path[:-1] in kept and path[-1][2:] in json.loads(path[-2][2:]))
    ]


def _migrating(live: Mapping[str, Any], manager: str) -> Paths:
    """Fields that `kubectl apply --server-side` may take over from an earlier client-side apply."""
    annotations = (live.get("metadata") or {}).get("annotations") or {}
    if manager != "kubectl" or _LAST_APPLIED not in annotations:
        return frozenset()
    return fieldpaths.paths(msgspec.json.decode(annotations[_LAST_APPLIED]))


class _Entry:
    """One record of managedFields."""

    __slots__ = ("api_version", "manager", "operation", "paths", "subresource", "time")

    def __init__(
        self, manager: str, operation: str, subresource: str, api_version: str, time: str, paths: Paths
    ) -> None:
        self.manager = manager
        self.operation = operation
        self.subresource = subresource
        self.api_version = api_version
        self.time = time
        self.paths = paths

    @staticmethod
    def find(entries: list[_Entry], manager: str, operation: str, subresource: str) -> _Entry | None:
        wanted = (manager, operation, subresource)
        return next((entry for entry in entries if (entry.manager, entry.operation, entry.subresource) == wanted), None)

    def who(self) -> str:
        """This record's manager as conflict messages show it."""
        below = f' with subresource "{self.subresource}"' if self.subresource else ""
        using = f" using {self.api_version}" if self.operation == "Update" else ""
        return f'"{self.manager}"{below}{using}'

    def owning(self, paths: Paths, time: str = "") -> _Entry:
        """This record with other fields. ``time`` is the manager's own last change; it stays when other managers take
        fields over.
        """
        return _Entry(self.manager, self.operation, self.subresource, self.api_version, time or self.time, paths)

    def encoded(self) -> Object:
        record = {
            "manager": self.manager,
            "operation": self.operation,
            "apiVersion": self.api_version,
            "time": self.time,
            "fieldsType": "FieldsV1",
            "fieldsV1": fieldpaths.encode(self.paths),
        }
        return record | ({"subresource": self.subresource} if self.subresource else {})


def _entries(obj: Object | None) -> list[_Entry]:
    records = ((obj or {}).get("metadata") or {}).get("managedFields") or ()
    return [
        _Entry(
            record["manager"],
            record["operation"],
            record.get("subresource", ""),
            record["apiVersion"],
            record["time"],
            fieldpaths.decode(record["fieldsV1"]),
        )
        for record in records
    ]


def _recorded(obj: Object, entries: list[_Entry]) -> Object:
    records = [entry.encoded() for entry in entries if entry.paths]
    return {**obj, "metadata": {**obj["metadata"], "managedFields": records}}
