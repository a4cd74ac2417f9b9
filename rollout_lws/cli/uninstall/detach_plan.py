"""Forecasts what deleting each Rollout does to its workload. Pure; uses the controller's own functions.

The controller restores a user's strategy only when nothing rolls by that. A workload with a pending version under the
hold stays held, so `uninstall` has to open the hold, and must tell the user what starts then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rollout_lws.api.resources import keys
from rollout_lws.cli.releases import target_of
from rollout_lws.cli.rollouts import recorded_capacity, releasing, summary
from rollout_lws.cli.sides import Sides, have_turned, scales_sides, sides_of, swaps
from rollout_lws.cli.uninstall.opening import Roll, lacking_groups, pending_roll
from rollout_lws.rollout.reasons import Ending
from rollout_lws.targets.target import Target
from rollout_lws.targets.version import hashes_of
from rollout_lws.workload.hold import hold_record

Object = dict[str, Any]
#: Namespace, kind and name of a workload; the kind as commands name it.
Place = tuple[str, str, str]
#: Reads the revisions of a workload: the one that its controller wants, and those that its groups run.
Revisions = Callable[[Target], tuple[str, Sequence[str]]]
_FINISHED_FIRST = (Ending.SUCCESS.value, Ending.ROLLED_OUT_NATIVELY.value)


@dataclass(frozen=True, slots=True)
class Detachment:
    """One Rollout to delete, with its workload; ``rollout`` is "" for one that a deleted Rollout has left held.

    ``workload`` is of a pair the active side, ``inactive`` the other one, and ``companions`` are those of both; all
    have the same ``kind``. It is the one that a release has made while that stands in for the user's, ``stood_for``;
    ``stays`` says whether the Rollout waits until the requests are back there. ``finalizer``: the Rollout needs a
    controller to go. ``outlook`` says what happens to the workload before anything rolls. ``rolls`` is empty when
    nothing starts to roll.
    """

    group: str
    namespace: str
    rollout: str
    workload: str
    kind: type[Target]
    inactive: str = ""
    companions: tuple[str, ...] = ()
    finalizer: bool = False
    outlook: str = ""
    rolls: tuple[Roll, ...] = ()
    stood_for: str = ""
    stays: bool = False

    @property
    def held(self) -> tuple[Detachment, ...]:
        """Each workload that the Rollout may leave held, on its own."""
        names = filter(None, (self.workload, self.inactive, *self.companions))
        return tuple(replace(self, rollout="", workload=name, inactive="", companions=()) for name in names)

    def called(self, name: str) -> str:
        """A workload of its kind as commands name it: ``leaderworkerset/llama``."""
        return f"{self.kind.resource.kind.lower()}/{name}"

    def place(self, name: str) -> Place:
        """Of a workload of its kind and namespace."""
        return self.namespace, self.kind.resource.kind.lower(), name


def detachments(
    group: str, rollouts: Iterable[Object], workloads: Mapping[Place, Target], revisions: Revisions
) -> tuple[Detachment, ...]:
    """In deletion order, by namespace and name; ``workloads`` are all that can be released. Of several Rollouts for one
    workload, those that do not hold it come first, or the next one would take it over. Workloads that are held without
    a Rollout come last.
    """
    sharing = _sharing(rollouts)
    found: list[Detachment] = []
    for together in {id(each): each for each in sharing.values()}.values():
        *others, holder = sorted(together, key=lambda each: _holds(each, workloads, group))
        for each in others:
            own = set(_places(each))
            _, kind, shared = min(own.intersection(_places(holder)) or own)
            said = f"{kind}/{shared} is in the care of rollout/{holder['metadata']['name']}; nothing rolls"
            found.append(replace(_bare(group, each), outlook=said))
        found.append(_detachment(group, holder, workloads, revisions))
    orphans = (
        each
        for place, each in sorted(workloads.items())
        if (place not in sharing or _is_left(each, sharing[place], group))
        and not ((users := _stood_for(each, group)) and (*place[:2], users) in sharing)
    )
    swapped = {(*place[:2], users) for place, each in workloads.items() if (users := _stood_for(each, group))}
    left = (_orphan(group, each, revisions, parked=place_of(each) in swapped) for each in orphans)
    return (*found, *(made for made in left if made is not None))


def _stood_for(workload: Target, group: str) -> str:
    """Name of the user's workload that this one stands in for, which a release has made; "" of others."""
    return workload.metadata.labels.get(keys(group).stands_for) or ""


def left_standing_in(group: str, rollouts: Iterable[Object], workloads: Mapping[Place, Target]) -> tuple[str, ...]:
    """What to say of workloads that stand in for a user's though the Rollout that has made them is gone: they stay."""
    sharing = _sharing(rollouts)
    every = ((place, _stood_for(each, group)) for place, each in sorted(workloads.items()))
    return tuple(
        f"{kind}/{name} in namespace {namespace} serves in place of {kind}/{users}, as a deleted Rollout has left them:"
        " both stay as they are"
        for (namespace, kind, name), users in every
        if users and (namespace, kind, users) not in sharing
    )


def _sharing(rollouts: Iterable[Object]) -> dict[Place, list[Object]]:
    """By each workload that a Rollout names, the Rollouts that name it, or another one that one of these names."""
    found: dict[Place, list[Object]] = {}
    for each in sorted(rollouts, key=lambda each: (each["metadata"]["namespace"], each["metadata"]["name"])):
        near = {id(known): known for place in _places(each) if (known := found.get(place)) is not None}
        together = [*(other for known in near.values() for other in known), each]
        for other in together:
            found |= dict.fromkeys(_places(other), together)
    return found


def _is_left(workload: Target, rollouts: Iterable[Object], group: str) -> bool:
    """Whether a workload of a pair was left held by a Rollout that is gone, and none of these has taken it over."""
    mark = hold_record(workload, keys(group))
    of_pairs = all(sides_of(each) is not None for each in rollouts)
    return of_pairs and mark is not None and mark.by not in {each["metadata"]["uid"] for each in rollouts}


def _detachment(group: str, rollout: Object, workloads: Mapping[Place, Target], revisions: Revisions) -> Detachment:
    made, status = _bare(group, rollout), rollout.get("status") or {}
    own, called = keys(group), made.called(made.workload)
    users = workloads.get(made.place(made.workload))
    sides = sides_of(rollout)
    if sides is not None:
        there = (workloads.get(made.place(name)) for name in sides.members(sides.active))
        return _of_pair(made, rollout, sides, [each for each in there if each is not None], revisions)
    for place, each in workloads.items():
        if place == made.place(place[2]) and _stood_for(each, group) == made.workload:
            as_is = (rollout["metadata"].get("annotations") or {}).get(own.leave_as_is) == "true"
            return _of_swap(made, rollout, each, users, revisions, as_is=as_is)
    if users is None:
        return replace(made, outlook=f"{called} does not exist; nothing rolls")
    stable = status.get("stable") or {}
    # As the controller decides: it finishes a promotion, and rolls back every other release.
    goes_on = bool(releasing(rollout) and stable)
    ending = status.get("finalising") or {}
    finished = goes_on and ending.get("reason") in _FINISHED_FIRST
    # Where roles change instead of a promotion, the requests go back until they have changed.
    finished = finished and not (swaps(rollout) and ending.get("task") == "Promote")
    wanted, running = revisions(users)
    roll = pending_roll(
        users,
        group,
        runs=str((status.get("observedTemplateHash") if finished else stable.get("templateHash")) or ""),
        wanted=wanted,
        # In a release groups differ, and all are of one version before it is left.
        running=() if goes_on else running,
    )
    aborted = status.get("aborted") or {}
    if roll is not None and aborted.get("templateHash") == roll.version:
        roll = replace(roll, aborted=str(aborted.get("reason") or aborted.get("message") or "aborted"))
    said = _runs(made, users, str(stable.get("revision") or ""))
    if finished:
        said = ["its promotion is finished first"]
    elif goes_on:
        runs = f"revision {stable['revision']}" if stable.get("revision") else "the version that runs"
        said = [f"its release ({summary(rollout)['state'] or 'on'}) goes back to {runs} first"]
        lacking, capacity = lacking_groups(users, own), recorded_capacity(rollout)
        if lacking:
            said.append(f"{called} loads {_counted(lacking)} again for that")
        elif capacity.one_workload and capacity.takes_places:
            said.append("the groups that it has renewed are recreated for that")
    if users.metadata.annotations.get(own.release_hold) == "true":
        said.append("its hold is open already, it rolls by itself")
    elif roll is None:
        said.append("nothing rolls")
    return replace(made, outlook="; ".join(said), rolls=(roll,) if roll is not None else ())


def _of_pair(
    made: Detachment, rollout: Object, sides: Sides, active: Sequence[Target], revisions: Revisions
) -> Detachment:
    """What happens when the Rollout of a pair is deleted. ``active``: the workloads of the active side that exist."""
    status, said = rollout.get("status") or {}, list[str]()
    serves, parked = sides.called(sides.active), sides.called(sides.inactive)
    goes_on = bool(releasing(rollout) and status.get("stable"))
    if goes_on:
        # As the controller decides: it goes back until the roles have changed.
        back = f"its release ({summary(rollout)['state'] or 'on'}) goes back to {serves} first"
        lacking = sum(lacking_groups(each, keys(made.group)) for each in active)
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
        name = each.metadata.name
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
    made: Detachment, rollout: Object, stand_in: Target, parked: Target | None, revisions: Revisions, *, as_is: bool
) -> Detachment:
    """A Rollout whose release has left the requests with the workload that it has made."""
    name, users = stand_in.metadata.name, made.workload
    runs = str(((rollout.get("status") or {}).get("stable") or {}).get("templateHash") or "")
    wanted, running = revisions(stand_in)
    roll = pending_roll(stand_in, made.group, runs=runs, wanted=wanted, running=running)
    has = "does not exist" if parked is None else f"has {_counted(parked.replicas)}"
    said = [f"{made.called(name)} serves in its place, and {made.called(users)} {has}"]
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


def _orphan(group: str, workload: Target, revisions: Revisions, *, parked: bool = False) -> Detachment | None:
    """A workload without a Rollout; None when it is not held, or is a canary, which a controller deletes. ``parked``:
    another one, which a release has made, stands in for it, so that its label stays.
    """
    own, meta = keys(group), workload.metadata
    marks, labels = meta.annotations, meta.labels
    held = own.original in marks or own.held in marks or own.replicas in marks
    labelled = own.side in labels and not parked and own.stands_for not in labels
    if own.canary_leader_worker_set in labels or not (held or labelled):
        return None
    wanted, running = revisions(workload)
    roll = pending_roll(workload, group, wanted=wanted, running=running)
    left = f"a deleted Rollout has left it {'held' if held else 'labelled'}"
    lacking, replicas = lacking_groups(workload, own), workload.replicas
    if lacking:
        left += f", with {replicas} of its {replicas + lacking} groups: it gets the other {lacking} back, which load"
    made = Detachment(group, meta.namespace, "", meta.name, type(workload))
    said = [*_runs(made, workload, running[0] if len(set(running)) == 1 else ""), left]
    outlook = "; ".join([*said, *([] if roll is not None else ["nothing rolls"])])
    return replace(made, outlook=outlook, rolls=(roll,) if roll is not None else ())


def _runs(made: Detachment, workload: Target, revision: str) -> list[str]:
    """Which version runs, [] when unknown."""
    called = made.called(workload.metadata.name)
    return [f"{called} runs revision {revision} in {_counted(workload.replicas)}"] if revision else []


def _counted(groups: int) -> str:
    return "1 group" if groups == 1 else f"{groups} groups"


def _bare(group: str, rollout: Object) -> Detachment:
    meta, sides = rollout["metadata"], sides_of(rollout)
    return Detachment(
        group,
        meta["namespace"],
        meta["name"],
        _workload(rollout) if sides is None else sides.active,
        target_of(rollout),
        "" if sides is None else sides.inactive,
        () if sides is None else sides.every[2:],
        finalizer=keys(group).rollout_finalizer in (meta.get("finalizers") or ()),
    )


def _holds(rollout: Object, workloads: Mapping[Place, Target], group: str) -> tuple[bool, bool]:
    """Sort key that puts last the Rollout which manages a workload, else one that has our finalizer."""
    meta, near = rollout["metadata"], (workloads.get(place) for place in _places(rollout))
    marks = (hold_record(each, keys(group)) for each in near if each is not None)
    return (
        any(mark is not None and mark.by == meta["uid"] for mark in marks),
        keys(group).rollout_finalizer in (meta.get("finalizers") or ()),
    )


def _places(rollout: Object) -> tuple[Place, ...]:
    """The workloads that a Rollout names."""
    sides, namespace = sides_of(rollout), rollout["metadata"]["namespace"]
    names = (_workload(rollout),) if sides is None else sides.every
    kind = target_of(rollout).resource.kind.lower()
    return tuple((namespace, kind, name) for name in names)


def _workload(rollout: Object) -> str:
    return str(((rollout.get("spec") or {}).get("workloadRef") or {}).get("name") or "")


def place_of(workload: Target) -> Place:
    """Where a workload is."""
    return workload.metadata.namespace, workload.resource.kind.lower(), workload.metadata.name
