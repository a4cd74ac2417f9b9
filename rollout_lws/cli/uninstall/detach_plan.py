"""Forecasts what deleting each Rollout does to its LeaderWorkerSet. Pure; uses the controller's own functions.

The controller restores a user's strategy only when nothing rolls by that. An LWS with a pending version under the hold
stays held, so `uninstall` has to open the hold, and must tell the user what starts then.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from rollout_lws.api.resources import Keys, keys
from rollout_lws.cli.releases import typed, version_hash
from rollout_lws.cli.rollouts import recorded_capacity, releasing, summary
from rollout_lws.cli.versions import containers
from rollout_lws.objects.resources import LWS_REVISION
from rollout_lws.rollout.reasons import Ending
from rollout_lws.targets.leader_worker_set import LeaderWorkerSet
from rollout_lws.workload.hold import (
    HOLD,
    foreign_members,
    give_back,
    hold_record,
    resolved_surge,
    resolved_unavailable,
    users_strategy,
)

Object = dict[str, Any]
#: Namespace and name.
Place = tuple[str, str]
#: Note for an LWS whose hold the user has opened.
OPEN = "its hold is open already, it rolls by itself"
_FINISHED_FIRST = (Ending.SUCCESS.value, Ending.ROLLED_OUT_NATIVELY.value)


class Fate(Enum):
    """What happens to a release in progress."""

    NONE = "no release is on"
    BACK = "goes back to stable"
    FINISHED = "is finished first"


@dataclass(frozen=True, slots=True)
class Roll:
    """A version that LWS's own rolling update starts when the hold opens.

    ``version`` is our hash of it. LWS updates ``groups``, ``unavailable`` at a time, with ``surge`` extra groups.
    ``aborted`` is the reason why its release was aborted, "" when it was not.
    """

    version: str
    images: tuple[str, ...]
    groups: int
    unavailable: int
    surge: int = 0
    aborted: str = ""


@dataclass(frozen=True, slots=True)
class Detachment:
    """One Rollout to delete, with its LWS; ``rollout`` is "" for an LWS that a deleted Rollout has left held.

    ``finalizer``: the Rollout needs a controller to go. ``runs`` is the running revision, "" when unknown. ``roll`` is
    None when nothing starts to roll.
    """

    group: str
    namespace: str
    rollout: str
    workload: str
    finalizer: bool = False
    state: str = ""
    fate: Fate = Fate.NONE
    runs: str = ""
    replicas: int = 0
    roll: Roll | None = None
    note: str = ""

    @property
    def keys(self) -> Keys:
        return keys(self.group)


@dataclass(frozen=True, slots=True)
class Workloads:
    """LWSs of a cluster by place, with the leader StatefulSets' wanted revisions and the revisions that leaders run."""

    sets: Mapping[Place, Object]
    wanted: Mapping[Place, str]
    running: Mapping[Place, Sequence[str]]


def detachments(group: str, rollouts: Iterable[Object], workloads: Workloads) -> tuple[Detachment, ...]:
    """In deletion order, by namespace and name. Of several Rollouts for one LWS, those that do not hold it come first,
    or the next one would take it over. LWSs that are held without a Rollout come last.
    """
    by_workload: dict[Place, list[Object]] = {}
    for each in sorted(rollouts, key=_place):
        by_workload.setdefault((_place(each)[0], _workload(each)), []).append(each)
    found: list[Detachment] = []
    for place, named in by_workload.items():
        lws = workloads.sets.get(place)
        *others, holder = sorted(named, key=lambda each: _holds(each, lws, group))
        found += [_bystander(group, each, holder) for each in others]
        found.append(_detachment(group, holder, place, workloads))
    return (*found, *_orphans(group, set(by_workload), workloads))


def restoring_patch(lws: LeaderWorkerSet, group: Keys) -> Object | None:
    """Merge patch that removes our annotations from an LWS and restores the user's strategy; None when it has none."""
    body: Object = give_back(lws, group) or {}
    kept = (group.original, group.held, group.aborted, group.release_hold)
    marks = [mark for mark in kept if mark in lws.metadata.annotations]
    if not marks:
        return None
    return {**body, "metadata": {"annotations": dict.fromkeys(marks)}}


def pending_roll(
    lws: Object, group: str, *, runs: str = "", wanted: str = "", running: Sequence[str] = ()
) -> Roll | None:
    """What rolls when the hold of ``lws`` opens. ``runs`` is our hash of the version that its groups run, "" when
    unknown. LWS compares its own revisions, the ``wanted`` one and those that leaders are ``running``, which may differ
    where our hash does not, for instance after an upgrade of LWS.
    """
    held, own = typed(lws, LeaderWorkerSet), keys(group)
    marks = held.metadata.annotations
    if own.original not in marks or marks.get(own.release_hold) == "true":
        return None
    live = held.strategy.partition
    if live < HOLD and "partition" in foreign_members(held, own):
        # A user has already opened it.
        return None
    version = version_hash(lws)
    behind = (runs and version != runs) or any(each != wanted for each in running)
    strategy = users_strategy(held, own)
    groups = max(0, held.spec.replicas - strategy.partition)
    if not behind or not groups:
        return None
    images = dict.fromkeys(str(each["image"]) for _, each in containers(lws["spec"]) if each.get("image"))
    unavailable, surge = (
        resolved_unavailable(strategy, held.spec.replicas),
        resolved_surge(strategy, held.spec.replicas),
    )
    return Roll(version, tuple(images), groups, unavailable, surge)


def revision(obj: Object) -> str:
    """LWS's revision label of a leader StatefulSet or pod."""
    return str((obj["metadata"].get("labels") or {}).get(LWS_REVISION) or "")


def _detachment(group: str, rollout: Object, place: Place, workloads: Workloads) -> Detachment:
    made, status = _bare(group, rollout), rollout.get("status") or {}
    lws = workloads.sets.get(place)
    if lws is None:
        return replace(made, note=f"leaderworkerset/{place[1]} does not exist")
    fate, stable = _fate(rollout), status.get("stable") or {}
    after = status.get("observedTemplateHash") if fate is Fate.FINISHED else stable.get("templateHash")
    roll = _roll(group, rollout, place, workloads, str(after or ""))
    note = ""
    if (lws["metadata"].get("annotations") or {}).get(made.keys.release_hold) == "true":
        note = OPEN
    elif fate is Fate.BACK and recorded_capacity(rollout).updates_regular:
        note = "the groups that it has renewed are recreated for that"
    return replace(
        made,
        fate=fate,
        runs=str(stable.get("revision") or ""),
        replicas=int(lws["spec"].get("replicas", 1)),
        roll=roll,
        note=note,
    )


def _roll(group: str, rollout: Object, place: Place, workloads: Workloads, runs: str) -> Roll | None:
    aborted = (rollout.get("status") or {}).get("aborted") or {}
    # In a release groups differ, and all are of one version before it is left.
    running = workloads.running.get(place, ()) if _fate(rollout) is Fate.NONE else ()
    wanted = workloads.wanted.get(place, "")
    found = pending_roll(workloads.sets[place], group, runs=runs, wanted=wanted, running=running)
    left = str(aborted.get("templateHash") or "")
    if found is None or left != found.version:
        return found
    return replace(found, aborted=str(aborted.get("reason") or aborted.get("message") or "aborted"))


def _fate(rollout: Object) -> Fate:
    """As the controller decides: it finishes a promotion, and rolls back every other release."""
    status = rollout.get("status") or {}
    if not releasing(rollout) or not status.get("stable"):
        return Fate.NONE
    reason = (status.get("finalising") or {}).get("reason")
    return Fate.FINISHED if reason in _FINISHED_FIRST else Fate.BACK


def _bystander(group: str, rollout: Object, holder: Object) -> Detachment:
    named = f"rollout/{holder['metadata']['name']}"
    return replace(_bare(group, rollout), note=f"leaderworkerset/{_workload(rollout)} is in the care of {named}")


def _orphans(group: str, named: set[Place], workloads: Workloads) -> Iterable[Detachment]:
    own = keys(group)
    for place, lws in sorted(workloads.sets.items()):
        marks = lws["metadata"].get("annotations") or {}
        if place in named or not (own.original in marks or own.held in marks):
            continue
        running = workloads.running.get(place, ())
        roll = pending_roll(lws, group, wanted=workloads.wanted.get(place, ""), running=running)
        runs = running[0] if len(set(running)) == 1 else ""
        replicas = int(lws["spec"].get("replicas", 1))
        note = "a deleted Rollout has left it held"
        yield Detachment(group, place[0], "", place[1], runs=runs, replicas=replicas, roll=roll, note=note)


def _bare(group: str, rollout: Object) -> Detachment:
    meta = rollout["metadata"]
    return Detachment(
        group,
        meta["namespace"],
        meta["name"],
        _workload(rollout),
        finalizer=keys(group).rollout_finalizer in (meta.get("finalizers") or ()),
        state=summary(rollout)["state"],
    )


def _holds(rollout: Object, lws: Object | None, group: str) -> tuple[bool, bool]:
    """Sort key that puts last the Rollout which manages the LWS, else one that has our finalizer."""
    mark = hold_record(typed(lws, LeaderWorkerSet), keys(group)) if lws is not None else None
    meta = rollout["metadata"]
    return (
        mark is not None and mark.by == meta["uid"],
        keys(group).rollout_finalizer in (meta.get("finalizers") or ()),
    )


def _workload(rollout: Object) -> str:
    return str(((rollout.get("spec") or {}).get("workloadRef") or {}).get("name") or "")


def _place(obj: Object) -> Place:
    return obj["metadata"]["namespace"], obj["metadata"]["name"]
