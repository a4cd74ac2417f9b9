"""The hold: a LeaderWorkerSet kept at partition 1000000, and what of the user's strategy was borrowed for it.

LWS cannot be paused, and a controller that reacts to a template change comes too late: the first group is gone by then.
So the partition stands high at rest, a change of the template starts nothing, and groups are renewed through windows:
short moments in which the partition is low enough for a portion of them. A release with capacity Surge keeps groups of
the new version beyond the regular ones: its hold has a surge. The user's own values wait in an annotation,
written together with ours, and come back exactly; members that somebody else changed meanwhile are kept as they are.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec import structs

from rollout_lws.api.resources import Keys
from rollout_lws.objects import owners, scaling
from rollout_lws.objects.workloads import LeaderWorkerSet, RollingUpdate
from rollout_lws.workload.template import supposed_version_of

#: No LWS may have more replicas (its CRD's maximum), so no group is ever at or above it.
HOLD = 1_000_000

#: Member of rollingUpdateConfiguration → attribute of RollingUpdate.
_MEMBERS = {"partition": "partition", "maxSurge": "max_surge", "maxUnavailable": "max_unavailable"}
#: Of an integer in an API object.
_LARGEST = 2**31 - 1
_PERCENTAGE = re.compile(r"[0-9]{1,9}%")


@dataclass(frozen=True, slots=True)
class Borrowed:
    """The annotation: which Rollout (UID) wrote which members, and what they were before."""

    by: str
    original: Mapping[str, int | str]
    written: Mapping[str, int | str]


def borrowed(lws: LeaderWorkerSet, keys: Keys) -> Borrowed | None:
    """What is borrowed from this LWS; None without a mark, or with one that nobody can read."""
    text = lws.metadata.annotations.get(keys.original)
    if not text:
        return None
    try:
        mark = msgspec.json.decode(text)
        found = Borrowed(mark["by"], dict(mark["original"]), dict(mark["written"]))
    except (msgspec.DecodeError, RecursionError, KeyError, TypeError, ValueError):
        return None
    return found if _is_sound(found) else None


def _is_sound(mark: Borrowed) -> bool:
    """Whether it can be one of ours: anybody may write an annotation, and what it says is put into a strategy."""
    values = (*mark.original.items(), *mark.written.items())
    given_back = mark.written.keys() <= mark.original.keys()
    return isinstance(mark.by, str) and given_back and all(_is_value(member, value) for member, value in values)


def _is_value(member: str, value: object) -> bool:
    if member not in _MEMBERS or isinstance(value, bool):
        return False
    if isinstance(value, int):
        return 0 <= value <= _LARGEST
    return member != "partition" and isinstance(value, str) and _PERCENTAGE.fullmatch(value) is not None


def resolved_unavailable(strategy: RollingUpdate, replicas: int) -> int:
    """maxUnavailable in groups, as LWS resolves it: percentages are rounded down."""
    return scaling.scaled(strategy.max_unavailable, replicas, up=False)


def resolved_surge(strategy: RollingUpdate, replicas: int) -> int:
    """maxSurge in groups, as LWS resolves it: percentages are rounded up, at most ``replicas``."""
    return min(scaling.scaled(strategy.max_surge, replicas), replicas)


def is_held(lws: LeaderWorkerSet, surge: int = 0) -> bool:
    """Whether a template change starts nothing: partition at the hold, no more than ``surge`` surge groups."""
    strategy = _live(lws)
    return strategy.partition >= HOLD and resolved_surge(strategy, max(lws.spec.replicas, 1)) <= surge


def standing_surge(lws: LeaderWorkerSet, keys: Keys) -> int:
    """Groups of the new version that a release keeps beyond the regular ones, 0 where none asked for any."""
    mark = borrowed(lws, keys)
    written = mark.written.get("maxSurge", 0) if mark else 0
    return written if isinstance(written, int) else 0


def users_strategy(lws: LeaderWorkerSet, keys: Keys) -> RollingUpdate:
    """The strategy that the user wants: the originals where our values still stand, and nobody has stated the same
    since, else what stands there.
    """
    live = _values(_live(lws))
    mark = borrowed(lws, keys)
    for member, written in (mark.written if mark else {}).items():
        if live.get(member) == written and not _is_claimed(lws, member, keys):
            live[member] = mark.original.get(member, live[member]) if mark else written
    if int(live["partition"]) >= HOLD:
        live["partition"] = 0
    return RollingUpdate(**{attribute: live[member] for member, attribute in _MEMBERS.items()})  # type: ignore[arg-type]


def foreign_members(lws: LeaderWorkerSet, keys: Keys) -> tuple[str, ...]:
    """Members that we had written and somebody else has changed since."""
    mark = borrowed(lws, keys)
    live = _values(_live(lws))
    return tuple(member for member, written in (mark.written if mark else {}).items() if live.get(member) != written)


def hold(lws: LeaderWorkerSet, keys: Keys, uid: str, surge: int = 0) -> dict[str, Any] | None:
    """Merge patch that holds the LWS, of just the members that must change; None when it is held and marked as ours.

    ``surge`` groups that exist beyond the regular ones stay.
    """
    users = users_strategy(lws, keys)
    replicas = max(lws.spec.replicas, 1)
    held = _values(users) | {"partition": HOLD}
    if surge > 0:
        held |= {"maxSurge": surge, "maxUnavailable": 0}
    elif resolved_surge(users, replicas) > 0:
        # LWS refuses a strategy whose two allowances both resolve to 0, whatever the replicas become.
        held["maxSurge"] = 0
        held["maxUnavailable"] = max(1, resolved_unavailable(users, replicas))
    return _patch(lws, keys, uid, users, held, surge)


def window(
    lws: LeaderWorkerSet, keys: Keys, uid: str, partition: int, unavailable: int, surge: int = 0
) -> dict[str, Any] | None:
    """Merge patch that opens the groups at or above ``partition``; None when that very window is open.

    ``unavailable`` groups may then be down at once by LWS's reckoning; the member is touched only when it allows less.
    With ``surge`` there are so many groups beyond the regular ones, all of it in one write: the partition alone would
    renew regular groups, the surge alone would start groups of the old version.
    """
    users = users_strategy(lws, keys)
    live = _values(_live(lws))
    if surge > 0:
        live |= {"maxSurge": surge, "maxUnavailable": unavailable}
    elif resolved_unavailable(_live(lws), max(lws.spec.replicas, 1)) < unavailable:
        live["maxUnavailable"] = unavailable
    return _patch(lws, keys, uid, users, live | {"partition": partition}, surge)


def stands(lws: LeaderWorkerSet, keys: Keys) -> bool:
    """Whether the partition is the one that we wrote: the hold's, or that of a window which is open."""
    mark, live = borrowed(lws, keys), _live(lws).partition
    # The last window may be as low as the user's own value, and then nothing is on record.
    return mark is not None and mark.written.get("partition", live) == live


def kept(before: LeaderWorkerSet, after: LeaderWorkerSet, keys: Keys) -> dict[str, Any] | None:
    """Merge patch of ``after``, an edit of ``before`` whose hold or window stands: it stands then, too, and what was
    written over it is on record as the user's own. A window is for one version: it closes for another one. None when
    the edit leaves it alone.
    """
    mark, brought = borrowed(before, keys), borrowed(after, keys)
    if mark is None:
        return None
    slips = slips_in(before, after)
    untouched = after.metadata.annotations.get(keys.original) == before.metadata.annotations[keys.original]
    if untouched and _live(after) == _live(before) and not slips:
        return None
    # A manifest may bring no record, or one that somebody has made up. One that fits its values tells which of these
    # are ours: it was exported while they stood, or has been here before.
    live = _values(_live(after))
    fits = brought is not None and brought.by == mark.by and bool(brought.written)
    fits = fits and all(live.get(member) == value for member, value in (brought.written if brought else {}).items())
    text = (after if fits else before).metadata.annotations[keys.original]
    annotations = {**after.metadata.annotations, keys.original: text}
    marked = structs.replace(after, metadata=structs.replace(after.metadata, annotations=annotations))
    surge = standing_surge(before, keys)
    if slips or _live(before).partition >= HOLD:
        body = hold(marked, keys, mark.by, surge)
    else:
        # Groups are being renewed by exactly these values.
        body = _patch(marked, keys, mark.by, users_strategy(marked, keys), _values(_live(before)), surge)
    if after.metadata.annotations.get(keys.original) == text:
        return body
    body = body or {}
    marks = {keys.original: text} | ((body.get("metadata") or {}).get("annotations") or {})
    return {**body, "metadata": {"annotations": marks}}


def slips_in(before: LeaderWorkerSet, after: LeaderWorkerSet) -> bool:
    """Whether an edit brings another version while a window is open, in which LWS would roll it at once."""
    is_open = _live(before).partition < HOLD
    return is_open and supposed_version_of(before.spec) != supposed_version_of(after.spec)


def give_back(lws: LeaderWorkerSet, keys: Keys, *, forget: str = "") -> dict[str, Any] | None:
    """Merge patch that restores the user's values and removes the mark, and the annotation ``forget`` with it; None
    when nothing is borrowed.
    """
    if keys.original not in lws.metadata.annotations:
        return None
    users, live = _values(users_strategy(lws, keys)), _values(_live(lws))
    changes = {member: value for member, value in users.items() if live[member] != value}
    marks = [mark for mark in (keys.original, forget) if mark in lws.metadata.annotations]
    return _body(dict.fromkeys(marks), changes)


def _patch(
    lws: LeaderWorkerSet, keys: Keys, uid: str, users: RollingUpdate, wanted: Mapping[str, int | str], surge: int
) -> dict[str, Any] | None:
    originals, live = _values(users), _values(_live(lws))
    # A surge of ours is on record even where the user's own is the same: the release counts on it.
    kept = {"maxSurge"} if surge > 0 else set()
    written = {member: value for member, value in wanted.items() if value != originals[member] or member in kept}
    original = {member: originals[member] for member in written}
    mark = msgspec.json.encode({"by": uid, "original": original, "written": written}, order="sorted").decode()
    annotations: dict[str, str | None] = {}
    if lws.metadata.annotations.get(keys.original) != mark:
        annotations[keys.original] = mark
    if keys.held in lws.metadata.annotations:
        # It told that a version waits without anybody to release it; somebody is here again.
        annotations[keys.held] = None
    changes = {member: value for member, value in wanted.items() if live[member] != value}
    return _body(annotations, changes) if annotations or changes else None


def _body(annotations: Mapping[str, str | None], changes: Mapping[str, int | str]) -> dict[str, Any]:
    body: dict[str, Any] = {}
    if annotations:
        body["metadata"] = {"annotations": dict(annotations)}
    if changes:
        body["spec"] = {"rolloutStrategy": {"rollingUpdateConfiguration": dict(changes)}}
    return body


def _live(lws: LeaderWorkerSet) -> RollingUpdate:
    return lws.spec.rollout_strategy.rolling_update_configuration


def _values(strategy: RollingUpdate) -> dict[str, int | str]:
    return {member: getattr(strategy, attribute) for member, attribute in _MEMBERS.items()}


def _is_claimed(lws: LeaderWorkerSet, member: str, keys: Keys) -> bool:
    """Whether somebody has stated our value of the member as their own; no such wish is a partition that holds all,
    which a manifest can only have from us.
    """
    if member == "partition" and _live(lws).partition >= HOLD:
        return False
    records = ((entry.manager, msgspec.json.decode(entry.fields)) for entry in lws.metadata.managed_fields)
    return owners.is_claimed(records, ("spec", "rolloutStrategy", "rollingUpdateConfiguration", member), keys.original)


def writer_of_strategy(lws: LeaderWorkerSet) -> str:
    """Name of the manager besides us that wrote the strategy last, as metadata.managedFields tells; "somebody" when it
    does not.
    """
    writers = [
        entry
        for entry in lws.metadata.managed_fields
        if b"f:rollingUpdateConfiguration" in bytes(entry.fields) and not entry.manager.startswith(owners.OURS)
    ]
    latest = max(writers, key=lambda entry: entry.time.timestamp() if entry.time else 0, default=None)
    return latest.manager if latest and latest.manager else "somebody"
