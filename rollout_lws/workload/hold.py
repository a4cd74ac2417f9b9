"""The hold: keeps a workload at partition 1000000 and stores the user's own rollout strategy in an annotation.

Its controller cannot be paused, and a controller that reacts to a template change is too late: the first group is
already gone. So the partition is high at rest and a template change starts nothing. Groups are updated through
partition windows: short periods in which the partition is low enough for one batch. A release with capacity Surge keeps
surge groups of the new version, so its hold has a maxSurge. The user's own values are stored in an annotation in the
same write as ours, and are restored exactly; members that another writer changed meanwhile stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import msgspec

from rollout_lws.api.resources import Keys
from rollout_lws.objects import owners, scaling
from rollout_lws.targets.target import ON_DELETE, ROLLING_UPDATE, RollingUpdate, Target

#: The LWS CRD's maximum of replicas is lower, so no group is ever at or above it.
HOLD = 1_000_000

#: Member of the strategy or its rolling update → attribute of RollingUpdate.
_MEMBERS = {"type": "type", "partition": "partition", "maxSurge": "max_surge", "maxUnavailable": "max_unavailable"}
#: Largest integer in an API object.
_LARGEST = 2**31 - 1
_PERCENTAGE = re.compile(r"[0-9]{1,9}%")


@dataclass(frozen=True, slots=True)
class HoldRecord:
    """The annotation: which Rollout (UID) wrote which members, and their values before."""

    by: str
    original: Mapping[str, int | str]
    written: Mapping[str, int | str]


def hold_record(workload: Target, keys: Keys) -> HoldRecord | None:
    """The annotation on this LWS; None without one, or when it is unreadable."""
    text = workload.metadata.annotations.get(keys.original)
    return _read(text) if text else None


# Five rules of one decision ask for the same annotation; a few decisions run at a time.
@lru_cache(maxsize=16)
def _read(text: str) -> HoldRecord | None:
    try:
        mark = msgspec.json.decode(text)
        found = HoldRecord(mark["by"], dict(mark["original"]), dict(mark["written"]))
    except (msgspec.DecodeError, RecursionError, KeyError, TypeError, ValueError):
        return None
    return found if _is_sound(found) else None


def _is_sound(mark: HoldRecord) -> bool:
    """Whether it can be one of ours: any writer may set the annotation, and its values go into the strategy."""
    values = (*mark.original.items(), *mark.written.items())
    given_back = mark.written.keys() <= mark.original.keys()
    return isinstance(mark.by, str) and given_back and all(_is_value(member, value) for member, value in values)


def _is_value(member: str, value: object) -> bool:
    if member not in _MEMBERS or isinstance(value, bool):
        return False
    if member == "type":
        return value in (ROLLING_UPDATE, ON_DELETE)
    if isinstance(value, int):
        return 0 <= value <= _LARGEST
    return member != "partition" and isinstance(value, str) and _PERCENTAGE.fullmatch(value) is not None


def resolved_unavailable(strategy: RollingUpdate, replicas: int) -> int:
    """maxUnavailable in groups, as LWS resolves it: percentages are rounded down."""
    return scaling.scaled(strategy.max_unavailable, replicas, up=False)


def resolved_surge(strategy: RollingUpdate, replicas: int) -> int:
    """maxSurge in groups, as LWS resolves it: percentages are rounded up, at most ``replicas``."""
    return min(scaling.scaled(strategy.max_surge, replicas), replicas)


def is_held(workload: Target, surge: int = 0) -> bool:
    """Whether a template change starts nothing: partition at the hold, no more than ``surge`` surge groups. One that
    cannot be held needs nothing for that.
    """
    if not workload.can_be_held:
        return True
    strategy = workload.strategy
    return strategy.partition >= HOLD and resolved_surge(strategy, max(workload.replicas, 1)) <= surge


def standing_surge(workload: Target, keys: Keys) -> int:
    """Surge groups of the new version that a release keeps; 0 for a release without surge."""
    mark = hold_record(workload, keys)
    written = mark.written.get("maxSurge", 0) if mark else 0
    return written if isinstance(written, int) else 0


def users_strategy(workload: Target, keys: Keys) -> RollingUpdate:
    """The strategy that the user wants: the originals where our values are still set and no other field manager has
    claimed the same values since, otherwise the live ones.
    """
    live = _values(workload.strategy)
    mark = hold_record(workload, keys)
    for member, written in (mark.written if mark else {}).items():
        if live.get(member) == written and not _is_claimed(workload, member, keys):
            live[member] = mark.original.get(member, live[member]) if mark else written
    if int(live["partition"]) >= HOLD:
        live["partition"] = 0
    return RollingUpdate(**{attribute: live[member] for member, attribute in _MEMBERS.items()})  # type: ignore[arg-type]


def foreign_members(workload: Target, keys: Keys) -> tuple[str, ...]:
    """Members that we had written and another writer has changed since."""
    mark = hold_record(workload, keys)
    live = _values(workload.strategy)
    return tuple(member for member, written in (mark.written if mark else {}).items() if live.get(member) != written)


def hold(workload: Target, keys: Keys, uid: str, surge: int = 0, *, counted: bool = False) -> dict[str, Any] | None:
    """Merge patch that holds the LWS, with only the members that must change; None when it is held and annotated.

    ``surge`` existing surge groups stay. ``counted`` writes maxUnavailable as a number: LWS rejects replicas of which a
    percentage resolves to 0, and we are about to write others.
    """
    users = users_strategy(workload, keys)
    replicas = max(workload.replicas, 1)
    if not workload.can_be_held:
        return _countable(workload, keys, uid, users) if counted else None
    # Without a partition a group that restarts comes back at the newest version.
    held = _values(users) | {"partition": HOLD, "type": ROLLING_UPDATE}
    if surge > 0:
        held |= {"maxSurge": surge, "maxUnavailable": 0}
    elif resolved_surge(users, replicas) > 0:
        # LWS rejects a strategy in which both values resolve to 0, whatever the number of replicas.
        held["maxSurge"] = 0
        held["maxUnavailable"] = max(1, resolved_unavailable(users, replicas))
    if counted and isinstance(held["maxUnavailable"], str):
        held["maxUnavailable"] = max(1, resolved_unavailable(users, replicas))
    return _patch(workload, keys, uid, users, held, surge)


def _countable(workload: Target, keys: Keys, uid: str, users: RollingUpdate) -> dict[str, Any] | None:
    """Merge patch with a maxUnavailable that is a number; None when no percentage could resolve to 0."""
    if not isinstance(users.max_unavailable, str) or users.max_surge not in (0, "0%"):
        return None
    number = max(1, resolved_unavailable(users, max(workload.replicas, 1)))
    return _patch(workload, keys, uid, users, _values(users) | {"maxUnavailable": number}, 0)


def window(
    workload: Target, keys: Keys, uid: str, partition: int, unavailable: int, surge: int = 0
) -> dict[str, Any] | None:
    """Merge patch that opens a window for the groups at or above ``partition``; None when it is already open.

    ``unavailable`` groups may then be down at the same time by LWS's count; maxUnavailable changes only if it allows
    less. ``surge`` is the number of surge groups. Partition and surge are one write: the partition alone would update
    regular groups, the surge alone would start groups of the old version.
    """
    users = users_strategy(workload, keys)
    live = _values(workload.strategy)
    if surge > 0:
        live |= {"maxSurge": surge, "maxUnavailable": unavailable}
    elif resolved_unavailable(workload.strategy, max(workload.replicas, 1)) < unavailable:
        live["maxUnavailable"] = unavailable
    return _patch(workload, keys, uid, users, live | {"partition": partition, "type": ROLLING_UPDATE}, surge)


def stands(workload: Target, keys: Keys) -> bool:
    """Whether the partition is the one that we wrote: the hold's, or that of an open window."""
    mark, live = hold_record(workload, keys), workload.strategy.partition
    # The last window may be as low as the user's own value; then the annotation has no partition.
    return mark is not None and mark.written.get("partition", live) == live


def kept(before: Target, after: Target, keys: Keys) -> dict[str, Any] | None:
    """Merge patch on ``after``, an edit of ``before``, that keeps the hold or window of ``before`` and records the
    values that the edit put there as the user's own. A window is for one version: an edit to another version closes it.
    None when the edit leaves the hold or window unchanged.
    """
    mark, brought = hold_record(before, keys), hold_record(after, keys)
    if mark is None:
        return None
    slips = slips_in(before, after)
    untouched = after.metadata.annotations.get(keys.original) == before.metadata.annotations[keys.original]
    if untouched and after.strategy == before.strategy and not slips:
        return None
    # A manifest may bring no annotation, or an invented one. An annotation that matches its values shows which of these
    # are ours: it was exported while they were set, or has been here before.
    live = _values(after.strategy)
    fits = brought is not None and brought.by == mark.by and bool(brought.written)
    fits = fits and all(live.get(member) == value for member, value in (brought.written if brought else {}).items())
    text = (after if fits else before).metadata.annotations[keys.original]
    annotations = {**after.metadata.annotations, keys.original: text}
    marked = after.with_annotations(annotations)
    surge = standing_surge(before, keys)
    if slips or before.strategy.partition >= HOLD:
        body = hold(marked, keys, mark.by, surge)
    else:
        # Groups are being updated with exactly these values.
        body = _patch(marked, keys, mark.by, users_strategy(marked, keys), _values(before.strategy), surge)
    if after.metadata.annotations.get(keys.original) == text:
        return body
    body = body or {}
    marks = {keys.original: text} | ((body.get("metadata") or {}).get("annotations") or {})
    return {**body, "metadata": {"annotations": marks}}


def advice(workload: Target, keys: Keys) -> str:
    """What the owner of a manifest does so that applying it leaves the hold in place."""
    _, strategy, parameters = workload.strategy_path
    mark = hold_record(workload, keys)
    member = f"{strategy}.type" if mark is not None and "type" in mark.original else f"{parameters}.partition"
    return f"remove {member} from its manifest"


def slips_in(before: Target, after: Target) -> bool:
    """Whether an edit changes the version while a window is open, so that LWS would roll it out immediately."""
    is_open = before.strategy.partition < HOLD
    return is_open and before.supposed_version != after.supposed_version


def give_back(workload: Target, keys: Keys, *, forget: str = "") -> dict[str, Any] | None:
    """Merge patch that restores the user's values and removes our annotation and the annotation ``forget``; None when
    there is nothing to restore. A percentage that LWS would reject with today's replicas becomes 1.
    """
    if keys.original not in workload.metadata.annotations:
        return None
    strategy, replicas = users_strategy(workload, keys), workload.replicas
    users = _values(strategy)
    resolves = resolved_unavailable(strategy, replicas) or resolved_surge(strategy, replicas)
    resolves = resolves or workload.zero_unavailable
    if isinstance(strategy.max_unavailable, str) and replicas and not resolves:
        users["maxUnavailable"] = 1
    changes = _changes(workload, users)
    marks = [mark for mark in (keys.original, forget) if mark in workload.metadata.annotations]
    return _body(workload, dict.fromkeys(marks), changes)


def _patch(
    workload: Target, keys: Keys, uid: str, users: RollingUpdate, wanted: Mapping[str, int | str], surge: int
) -> dict[str, Any] | None:
    originals, stored = _values(users), workload.strategy_members
    # The release's surge is recorded even if it equals the user's own: the release relies on it.
    kept = {"maxSurge"} if surge > 0 else set()
    differing = {member: value for member, value in wanted.items() if value != originals[member] or member in kept}
    written = {member: value for member, value in differing.items() if member in stored}
    original = {member: originals[member] for member in written}
    mark = msgspec.json.encode({"by": uid, "original": original, "written": written}, order="sorted").decode()
    annotations: dict[str, str | None] = {}
    if workload.metadata.annotations.get(keys.original) != mark:
        annotations[keys.original] = mark
    if keys.held in workload.metadata.annotations:
        # This annotation reports a version that no controller releases; a controller is back.
        annotations[keys.held] = None
    changes = _changes(workload, wanted)
    return _body(workload, annotations, changes) if annotations or changes else None


def _changes(workload: Target, wanted: Mapping[str, int | str]) -> dict[str, int | str]:
    """The values that differ from the workload's, of members that the API server stores."""
    live = _values(workload.strategy)
    stored = ((member, wanted[member]) for member in wanted if member in workload.strategy_members)
    return {member: value for member, value in stored if live[member] != value}


def _body(workload: Target, annotations: Mapping[str, str | None], changes: Mapping[str, int | str]) -> dict[str, Any]:
    body: dict[str, Any] = {}
    if annotations:
        body["metadata"] = {"annotations": dict(annotations)}
    if changes:
        *path, parameters = workload.strategy_path
        strategy = body
        for step in path:
            strategy = strategy.setdefault(step, {})
        if "type" in changes:
            strategy["type"] = changes["type"]
        members = {member: value for member, value in changes.items() if member != "type"}
        # A strategy of this type may have no parameters.
        strategy[parameters] = None if changes.get("type") == ON_DELETE else members
    return body


def _values(strategy: RollingUpdate) -> dict[str, int | str]:
    return {member: getattr(strategy, attribute) for member, attribute in _MEMBERS.items()}


def _is_claimed(workload: Target, member: str, keys: Keys) -> bool:
    """Whether another field manager has claimed our value of the member. A partition that holds everything does not
    count: a manifest can only have copied it from us.
    """
    if member == "partition" and workload.strategy.partition >= HOLD:
        return False
    records = ((entry.manager, msgspec.json.decode(entry.fields)) for entry in workload.metadata.managed_fields)
    path = workload.strategy_path[:-1] if member == "type" else workload.strategy_path
    return owners.is_claimed(records, (*path, member), keys.original)


def writer_of_strategy(workload: Target) -> str:
    """Name of the field manager, ours aside, that wrote the strategy last according to metadata.managedFields;
    "another client" when these do not name one.
    """
    written = f"f:{workload.strategy_path[1]}".encode()
    writers = [
        entry
        for entry in workload.metadata.managed_fields
        if written in bytes(entry.fields) and not entry.manager.startswith(owners.OURS)
    ]
    latest = max(writers, key=lambda entry: entry.time.timestamp() if entry.time else 0, default=None)
    return latest.manager if latest and latest.manager else "another client"
