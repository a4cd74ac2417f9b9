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
from rollout_lws.cli.sides import Sides, have_turned, scales_sides, sides_of, swaps
from rollout_lws.cli.versions import containers
from rollout_lws.objects.resources import LWS_REVISION
from rollout_lws.objects.scaling import whole_number
from rollout_lws.rollout.reasons import Ending
from rollout_lws.targets.leader_worker_set import LeaderWorkerSet
from rollout_lws.targets.version import hashes_of
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
    ``aborted`` is the reason why its release was aborted, "" when it was not. ``companion`` is the LWS's name where it
    is a companion of a pair's active side.
    """

    version: str
    images: tuple[str, ...]
    groups: int
    unavailable: int
    surge: int = 0
    aborted: str = ""
    companion: str = ""


@dataclass(frozen=True, slots=True)
class Detachment:
    """One Rollout to delete, with its LWS; ``rollout`` is "" for an LWS that a deleted Rollout has left held.

    ``workload`` is of a pair the active side, ``inactive`` the other one, and ``companions`` are those of both. It is
    the LWS that a release has made while that stands in for the user's, ``stood_for``; ``stays`` says whether the
    Rollout waits until the requests are back there. ``finalizer``: the Rollout needs a controller to go. ``outlook``
    says what happens to the LWS before anything rolls. ``rolls`` is empty when nothing starts to roll.
    """

    group: str
    namespace: str
    rollout: str
    workload: str
    inactive: str = ""
    companions: tuple[str, ...] = ()
    finalizer: bool = False
    outlook: str = ""
    rolls: tuple[Roll, ...] = ()
    stood_for: str = ""
    stays: bool = False

    @property
    def held(self) -> tuple[Detachment, ...]:
        """Each LWS that the Rollout may leave held, on its own."""
        names = filter(None, (self.workload, self.inactive, *self.companions))
        return tuple(replace(self, rollout="", workload=name, inactive="", companions=()) for name in names)


def detachments(
    group: str, rollouts: Iterable[Object], workloads: Mapping[Place, Object], revisions: Revisions
) -> tuple[Detachment, ...]:
    """In deletion order, by namespace and name; ``workloads`` are all LWSs. Of several Rollouts for one LWS, those that
    do not hold it come first, or the next one would take it over. LWSs that are held without a Rollout come last.
    """
    sharing = _sharing(rollouts)
    found: list[Detachment] = []
    for together in {id(each): each for each in sharing.values()}.values():
        *others, holder = sorted(together, key=lambda each: _holds(each, workloads, group))
        for each in others:
            own = set(_places(each))
            _, shared = min(own.intersection(_places(holder)) or own)
            said = f"leaderworkerset/{shared} is in the care of rollout/{holder['metadata']['name']}; nothing rolls"
            found.append(replace(_bare(group, each), outlook=said))
        found.append(_detachment(group, holder, workloads, revisions))
    orphans = (
        each
        for place, each in sorted(workloads.items())
        if (place not in sharing or _is_left(each, sharing[place], group))
        and not ((users := _stood_for(each, group)) and (place[0], users) in sharing)
    )
    swapped = {(place[0], users) for place, each in workloads.items() if (users := _stood_for(each, group))}
    left = (_orphan(group, each, revisions, parked=_place(each) in swapped) for each in orphans)
    return (*found, *(made for made in left if made is not None))


def _stood_for(lws: Object, group: str) -> str:
    """Name of the user's LWS that this one stands in for, which a release has made; "" of others."""
    return str((lws["metadata"].get("labels") or {}).get(keys(group).stands_for) or "")


def left_standing_in(group: str, rollouts: Iterable[Object], workloads: Mapping[Place, Object]) -> tuple[str, ...]:
    """What to say of LWSs that stand in for a user's though the Rollout that has made them is gone: they stay."""
    sharing = _sharing(rollouts)
    every = ((place, each, _stood_for(each, group)) for place, each in sorted(workloads.items()))
    return tuple(
        f"leaderworkerset/{place[1]} in namespace {place[0]} serves in place of leaderworkerset/{users}, as a deleted"
        " Rollout has left them: both stay as they are"
        for place, each, users in every
        if users and (place[0], users) not in sharing
    )


def _sharing(rollouts: Iterable[Object]) -> dict[Place, list[Object]]:
    """By each LWS that a Rollout names, the Rollouts that name it, or another one that one of these names."""
    found: dict[Place, list[Object]] = {}
    for each in sorted(rollouts, key=_place):
        near = {id(known): known for place in _places(each) if (known := found.get(place)) is not None}
        together = [*(other for known in near.values() for other in known), each]
        for other in together:
            found |= dict.fromkeys(_places(other), together)
    return found


def _is_left(lws: Object, rollouts: Iterable[Object], group: str) -> bool:
    """Whether an LWS of a pair was left held by a Rollout that is gone, and none of these has taken it over."""
    mark = hold_record(typed(lws, LeaderWorkerSet), keys(group))
    of_pairs = all(sides_of(each) is not None for each in rollouts)
    return of_pairs and mark is not None and mark.by not in {each["metadata"]["uid"] for each in rollouts}


def restoring_patch(lws: LeaderWorkerSet, group: Keys) -> Object | None:
    """Merge patch that removes our annotations and labels from an LWS and restores the user's strategy, and the number
    of groups of one of which a release has taken some; None when it has none.
    """
    body: Object = give_back(lws, group) or {}
    lacking = lacking_groups(lws, group)
    if lacking:
        body.setdefault("spec", {})["replicas"] = lws.spec.replicas + lacking
    kept = (group.original, group.held, group.aborted, group.release_hold, group.replicas)
    marks = [mark for mark in kept if mark in lws.metadata.annotations]
    # What stands in for another one has been left so on purpose.
    role = [group.side] if group.side in lws.metadata.labels and group.stands_for not in lws.metadata.labels else []
    if not marks and not role:
        return None
    told = {"annotations": dict.fromkeys(marks), "labels": dict.fromkeys(role)}
    return {**body, "metadata": {kind: keys for kind, keys in told.items() if keys}}


def lacking_groups(lws: LeaderWorkerSet, group: Keys) -> int:
    """Groups that a release of a pair has taken from its active side."""
    noted = whole_number(lws.metadata.annotations.get(group.replicas) or "")
    return max(0, (noted or 0) - lws.spec.replicas)


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


def _detachment(group: str, rollout: Object, workloads: Mapping[Place, Object], revisions: Revisions) -> Detachment:
    made, status = _bare(group, rollout), rollout.get("status") or {}
    lws = workloads.get((made.namespace, made.workload))
    sides = sides_of(rollout)
    if sides is not None:
        there = (workloads.get((made.namespace, name)) for name in sides.members(sides.active))
        return _of_pair(made, rollout, sides, [each for each in there if each is not None], revisions)
    own = keys(group)
    stand_in = next(
        (
            each
            for place, each in workloads.items()
            if place[0] == made.namespace and _stood_for(each, group) == made.workload
        ),
        None,
    )
    if stand_in is not None:
        as_is = (rollout["metadata"].get("annotations") or {}).get(own.leave_as_is) == "true"
        return _of_swap(made, rollout, stand_in, lws, revisions, as_is=as_is)
    if lws is None:
        return replace(made, outlook=f"leaderworkerset/{made.workload} does not exist; nothing rolls")
    stable = status.get("stable") or {}
    # As the controller decides: it finishes a promotion, and rolls back every other release.
    goes_on = bool(releasing(rollout) and stable)
    ending = status.get("finalising") or {}
    finished = goes_on and ending.get("reason") in _FINISHED_FIRST
    # Where roles change instead of a promotion, the requests go back until they have changed.
    finished = finished and not (swaps(rollout) and ending.get("task") == "Promote")
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
        lacking = lacking_groups(typed(lws, LeaderWorkerSet), keys(group))
        if lacking:
            said.append(f"leaderworkerset/{made.workload} loads {_counted(lacking)} again for that")
        elif recorded_capacity(rollout).one_workload:
            said.append("the groups that it has renewed are recreated for that")
    if (lws["metadata"].get("annotations") or {}).get(keys(group).release_hold) == "true":
        said.append("its hold is open already, it rolls by itself")
    elif roll is None:
        said.append("nothing rolls")
    return replace(made, outlook="; ".join(said), rolls=(roll,) if roll is not None else ())


def _of_pair(
    made: Detachment, rollout: Object, sides: Sides, active: Sequence[Object], revisions: Revisions
) -> Detachment:
    """What happens when the Rollout of a pair is deleted. ``active``: the workloads of the active side that exist."""
    status, said = rollout.get("status") or {}, list[str]()
    serves, parked = sides.called(sides.active), sides.called(sides.inactive)
    goes_on = bool(releasing(rollout) and status.get("stable"))
    if goes_on:
        # As the controller decides: it goes back until the roles have changed.
        back = f"its release ({summary(rollout)['state'] or 'on'}) goes back to {serves} first"
        lacking = sum(lacking_groups(typed(each, LeaderWorkerSet), keys(made.group)) for each in active)
        back += f", which loads {_counted(lacking)} again" if lacking else ""
        said.append(f"its hand-over to {serves} is finished first" if have_turned(rollout) else back)
    if not scales_sides(rollout):
        both = f"{serves} and {parked} are left as they are"
        return replace(
            made, outlook="; ".join([*said, f"{both}, and so are the weights of their route; nothing rolls"])
        )
    runs = hashes_of(str((status.get("stable") or {}).get("templateHash") or ""))
    known = dict(zip(sides.members(sides.active), runs, strict=False))
    rolls = []
    for each in active:
        name = each["metadata"]["name"]
        # What another Rollout has left held is foretold on its own.
        if not _is_left(each, (rollout,), made.group):
            wanted, running = revisions(each)
            own, alive = known.get(name, ""), () if goes_on else running
            roll = pending_roll(each, made.group, runs=own, wanted=wanted, running=alive)
            rolls += [replace(roll, companion="" if name == sides.active else name)] if roll is not None else []
    kept = f"{serves} keeps its groups, and {parked} has none"
    said += [f"{kept}; the weights of their route stay", *([] if rolls else ["nothing rolls"])]
    return replace(made, outlook="; ".join(said), rolls=tuple(rolls))


def _of_swap(
    made: Detachment, rollout: Object, stand_in: Object, lws: Object | None, revisions: Revisions, *, as_is: bool
) -> Detachment:
    """A Rollout whose release has left the requests with the LWS that it has made."""
    name, users = stand_in["metadata"]["name"], made.workload
    runs = str(((rollout.get("status") or {}).get("stable") or {}).get("templateHash") or "")
    wanted, running = revisions(stand_in)
    roll = pending_roll(stand_in, made.group, runs=runs, wanted=wanted, running=running)
    parked = "does not exist" if lws is None else f"has {_counted(int(lws['spec'].get('replicas', 1)))}"
    said = [f"leaderworkerset/{name} serves in its place, and leaderworkerset/{users} {parked}"]
    said += ["both stay as they are, and the manifest of that one starts nothing"] if as_is else []
    said += [] if roll is not None else ["nothing rolls"]
    return replace(
        made,
        workload=name,
        stood_for=users,
        outlook="; ".join(said),
        rolls=(roll,) if roll is not None else (),
        stays=not as_is,
    )


def _orphan(group: str, lws: Object, revisions: Revisions, *, parked: bool = False) -> Detachment | None:
    """An LWS without a Rollout; None when it is not held, or is a canary, which a controller deletes. ``parked``:
    another LWS, which a release has made, stands in for it, so that its label stays.
    """
    own, meta = keys(group), lws["metadata"]
    marks = meta.get("annotations") or {}
    labels = meta.get("labels") or {}
    held = own.original in marks or own.held in marks or own.replicas in marks
    labelled = own.side in labels and not parked and own.stands_for not in labels
    if own.canary_leader_worker_set in labels or not (held or labelled):
        return None
    wanted, running = revisions(lws)
    roll = pending_roll(lws, group, wanted=wanted, running=running)
    left = f"a deleted Rollout has left it {'held' if held else 'labelled'}"
    lacking, replicas = lacking_groups(typed(lws, LeaderWorkerSet), own), int(lws["spec"].get("replicas", 1))
    if lacking:
        left += f", with {replicas} of its {replicas + lacking} groups: it gets the other {lacking} back, which load"
    said = [*_runs(lws, running[0] if len(set(running)) == 1 else ""), left]
    outlook = "; ".join([*said, *([] if roll is not None else ["nothing rolls"])])
    rolls = (roll,) if roll is not None else ()
    return Detachment(group, meta["namespace"], "", meta["name"], outlook=outlook, rolls=rolls)


def _runs(lws: Object, revision: str) -> list[str]:
    """Which version runs, [] when unknown."""
    replicas = int(lws["spec"].get("replicas", 1))
    name = lws["metadata"]["name"]
    return [f"leaderworkerset/{name} runs revision {revision} in {_counted(replicas)}"] if revision else []


def _counted(groups: int) -> str:
    return "1 group" if groups == 1 else f"{groups} groups"


def _bare(group: str, rollout: Object) -> Detachment:
    meta, sides = rollout["metadata"], sides_of(rollout)
    return Detachment(
        group,
        meta["namespace"],
        meta["name"],
        _workload(rollout) if sides is None else sides.active,
        "" if sides is None else sides.inactive,
        () if sides is None else sides.every[2:],
        finalizer=keys(group).rollout_finalizer in (meta.get("finalizers") or ()),
    )


def _holds(rollout: Object, workloads: Mapping[Place, Object], group: str) -> tuple[bool, bool]:
    """Sort key that puts last the Rollout which manages an LWS, else one that has our finalizer."""
    meta, near = rollout["metadata"], (workloads.get(place) for place in _places(rollout))
    marks = (hold_record(typed(each, LeaderWorkerSet), keys(group)) for each in near if each is not None)
    return (
        any(mark is not None and mark.by == meta["uid"] for mark in marks),
        keys(group).rollout_finalizer in (meta.get("finalizers") or ()),
    )


def _places(rollout: Object) -> tuple[Place, ...]:
    """The LWSs that a Rollout names."""
    sides, namespace = sides_of(rollout), rollout["metadata"]["namespace"]
    names = (_workload(rollout),) if sides is None else sides.every
    return tuple((namespace, name) for name in names)


def _workload(rollout: Object) -> str:
    return str(((rollout.get("spec") or {}).get("workloadRef") or {}).get("name") or "")


def _place(obj: Object) -> Place:
    return obj["metadata"]["namespace"], obj["metadata"]["name"]
