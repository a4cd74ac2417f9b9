"""Forecasts what deleting each Rollout does to its LeaderWorkerSet. Pure; uses the controller's own functions.

The controller restores a user's strategy only when nothing rolls by that. An LWS with a pending version under the hold
stays held, so `uninstall` has to open the hold, and must tell the user what starts then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rollout_lws.api.resources import Keys, keys
from rollout_lws.cli.releases import typed, version_hash
from rollout_lws.cli.rollouts import recorded_capacity, releasing, summary
from rollout_lws.cli.sides import sides_of
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
#: Reads LWS's revisions for an LWS: the one that its leader StatefulSet wants, and those that leaders run.
Revisions = Callable[[Object], tuple[str, Sequence[str]]]
_FINISHED_FIRST = (Ending.SUCCESS.value, Ending.ROLLED_OUT_NATIVELY.value)


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

    ``finalizer``: the Rollout needs a controller to go. ``outlook`` says what happens to the LWS before anything rolls.
    ``roll`` is None when nothing starts to roll.
    """

    group: str
    namespace: str
    rollout: str
    workload: str
    finalizer: bool = False
    outlook: str = ""
    roll: Roll | None = None


def detachments(
    group: str, rollouts: Iterable[Object], workloads: Mapping[Place, Object], revisions: Revisions
) -> tuple[Detachment, ...]:
    """In deletion order, by namespace and name; ``workloads`` are all LWSs. Of several Rollouts for one LWS, those that
    do not hold it come first, or the next one would take it over. LWSs that are held without a Rollout come last.
    """
    by_workload: dict[Place, list[Object]] = {}
    for each in sorted(rollouts, key=_place):
        by_workload.setdefault((_place(each)[0], _workload(each)), []).append(each)
    found: list[Detachment] = []
    for place, named in by_workload.items():
        lws = workloads.get(place)
        *others, holder = sorted(named, key=lambda each: _holds(each, lws, group))
        said = f"leaderworkerset/{place[1]} is in the care of rollout/{holder['metadata']['name']}; nothing rolls"
        found += [replace(_bare(group, each), outlook=said) for each in others]
        found.append(_detachment(group, holder, lws, revisions))
    orphans = (each for place, each in sorted(workloads.items()) if place not in by_workload)
    return (*found, *(made for each in orphans if (made := _orphan(group, each, revisions)) is not None))


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


def _detachment(group: str, rollout: Object, lws: Object | None, revisions: Revisions) -> Detachment:
    made, status = _bare(group, rollout), rollout.get("status") or {}
    if sides_of(rollout) is not None:
        return replace(made, outlook=_of_pair(rollout))
    if lws is None:
        return replace(made, outlook=f"leaderworkerset/{made.workload} does not exist; nothing rolls")
    stable = status.get("stable") or {}
    # As the controller decides: it finishes a promotion, and rolls back every other release.
    goes_on = bool(releasing(rollout) and stable)
    finished = goes_on and (status.get("finalising") or {}).get("reason") in _FINISHED_FIRST
    wanted, running = revisions(lws)
    roll = pending_roll(
        lws,
        group,
        runs=str((status.get("observedTemplateHash") if finished else stable.get("templateHash")) or ""),
        wanted=wanted,
        # In a release groups differ, and all are of one version before it is left.
        running=() if goes_on else running,
    )
    aborted = status.get("aborted") or {}
    if roll is not None and aborted.get("templateHash") == roll.version:
        roll = replace(roll, aborted=str(aborted.get("reason") or aborted.get("message") or "aborted"))
    said = _runs(lws, str(stable.get("revision") or ""))
    if finished:
        said = ["its promotion is finished first"]
    elif goes_on:
        runs = f"revision {stable['revision']}" if stable.get("revision") else "the version that runs"
        said = [f"its release ({summary(rollout)['state'] or 'on'}) goes back to {runs} first"]
        if recorded_capacity(rollout).updates_regular:
            said.append("the groups that it has renewed are recreated for that")
    if (lws["metadata"].get("annotations") or {}).get(keys(group).release_hold) == "true":
        said.append("its hold is open already, it rolls by itself")
    elif roll is None:
        said.append("nothing rolls")
    return replace(made, outlook="; ".join(said), roll=roll)


def _of_pair(rollout: Object) -> str:
    """What happens when the Rollout of a pair is deleted, whose workloads it has never written."""
    sides, status = sides_of(rollout), rollout.get("status") or {}
    assert sides is not None, "it is a pair"
    said = []
    if releasing(rollout) and status.get("stable"):
        finished = (status.get("finalising") or {}).get("reason") in _FINISHED_FIRST
        state = summary(rollout)["state"] or "on"
        back = f"its release ({state}) goes back to leaderworkerset/{sides.active} first"
        said.append("its hand-over is finished first" if finished else back)
    both = f"leaderworkerset/{sides.active} and leaderworkerset/{sides.inactive} are left as they are"
    return "; ".join([*said, f"{both}, and so are the weights of their route; nothing rolls"])


def _orphan(group: str, lws: Object, revisions: Revisions) -> Detachment | None:
    """An LWS without a Rollout; None when it is not held, or is a canary, which a controller deletes."""
    own, meta = keys(group), lws["metadata"]
    marks = meta.get("annotations") or {}
    if own.canary_leader_worker_set in (meta.get("labels") or {}) or not (own.original in marks or own.held in marks):
        return None
    wanted, running = revisions(lws)
    roll = pending_roll(lws, group, wanted=wanted, running=running)
    said = [*_runs(lws, running[0] if len(set(running)) == 1 else ""), "a deleted Rollout has left it held"]
    outlook = "; ".join([*said, *([] if roll is not None else ["nothing rolls"])])
    return Detachment(group, meta["namespace"], "", meta["name"], outlook=outlook, roll=roll)


def _runs(lws: Object, revision: str) -> list[str]:
    """Which version runs, [] when unknown."""
    replicas = int(lws["spec"].get("replicas", 1))
    groups = "1 group" if replicas == 1 else f"{replicas} groups"
    return [f"leaderworkerset/{lws['metadata']['name']} runs revision {revision} in {groups}"] if revision else []


def _bare(group: str, rollout: Object) -> Detachment:
    meta = rollout["metadata"]
    return Detachment(
        group,
        meta["namespace"],
        meta["name"],
        _workload(rollout),
        finalizer=keys(group).rollout_finalizer in (meta.get("finalizers") or ()),
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
