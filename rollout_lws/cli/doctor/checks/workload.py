"""The workload and its leader StatefulSet: whether their controllers act, and whether it is held and stored."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from rollout_lws.api.resources import rollouts
from rollout_lws.cli.doctor.case import Case
from rollout_lws.cli.doctor.links import Link, Name, State, ok
from rollout_lws.objects.meta import selects
from rollout_lws.objects.released import RELEASED, workload_among
from rollout_lws.objects.resources import CONTROLLER_REVISIONS, CORE_EVENTS, STATEFUL_SETS
from rollout_lws.objects.workloads import StatefulSet
from rollout_lws.rollout.history import stored_as
from rollout_lws.rollout.lifecycle.adoption import SILENCE_SECONDS
from rollout_lws.rollout.lifecycle.hold_enforcement import has_windows, released_by_hand
from rollout_lws.rollout.reasons import Reason
from rollout_lws.rollout.roles import kept_groups
from rollout_lws.rollout.routing.sides import ACTIVE, PARKED
from rollout_lws.targets.target import ON_DELETE, Target
from rollout_lws.workload.applied import stated_replicas
from rollout_lws.workload.facts import Facts as Workload
from rollout_lws.workload.hold import hold_record, is_held, standing_surge, users_strategy, writer_of_strategy
from rollout_lws.workload.queueing import queue_of
from rollout_lws.workload.revisions import observed, target_revision


def links(case: Case) -> Iterator[Link]:
    """One link for the workload, of two that change roles one for each."""
    serving, d = workload(case), case.d
    if not d.beside_users or serving.state is State.UNKNOWN:
        yield serving
        return
    active = ((d.name, d.o.stable), *((each.name, each.stable) for each in d.o.companions))
    inactive = ((d.other_name, d.o.canary), *((each.other_name, each.canary) for each in d.o.companions))
    if serving.state is not State.OK and serving.about not in (case.named(name) for name, _ in (*active, *inactive)):
        # Of what selects one of them.
        yield serving
    for name, side in (*active, *inactive):
        about = case.named(name)
        if serving.about == about and serving.state is not State.OK:
            yield serving
        elif side is None:
            yield _absent(case, name)
        else:
            yield _unlike_its_role(case, side, about) or ok(Name.WORKLOAD, about, _of(case, side))


def _unlike_its_role(case: Case, side: Workload, about: str) -> Link | None:
    """Whether one of two workloads that releases scale has groups that it should not have, or another label than its
    role; None if all is as it should be.
    """
    d = case.d
    if not d.scales_sides or case.is_leaving or case.facts.observation.undecided or not d.adopted:
        return None
    is_active, replicas = _is_active(case, side), side.workload.replicas
    role, said = ACTIVE if is_active else PARKED, side.workload.metadata.labels.get(d.keys.side)
    steps = (case.kubectl(f"get {case.target.resource} {side.name} -o yaml --show-managed-fields"),)
    # Of the writes to both sides the next one waits for the one before.
    every = {case.named(each.name) for each in case.facts.members}
    state = State.BROKEN if any(each.about in every for each in case.undone) else State.WAITING
    if not is_active and replicas and not (case.is_on or kept_groups.are_kept(d)):
        text = f"has {replicas} groups, though it is {case.role(side.name)} and no release is on"
        by_itself = "the controller scales it to 0 as soon as no request can reach it"
        return Link(Name.WORKLOAD, state, about, text, by_itself, steps)
    own = _own_size(case, side)
    if is_active and replicas > own and side.name != d.name and not case.is_on:
        text = f"has {replicas} groups, and {own} go with {d.replicas} of {d.name}"
        return Link(Name.WORKLOAD, state, about, text, "the controller writes that as soon as it acts", steps)
    if is_active and replicas < own and not case.is_on:
        text = f"has {replicas} of its {own} groups, though it is {case.role(side.name)} and no release is on"
        by_itself = "the controller gives it the others back as soon as it acts, and they load"
        return Link(Name.WORKLOAD, state, about, text, by_itself, steps)
    if said != role:
        label = f"label {d.keys.side} says {said}" if said else f"it has no label {d.keys.side}"
        text = f"{label}, though it is {case.role(side.name)}"
        by_itself = f"the controller writes {role} {'when the release ends' if case.is_on else 'as soon as it acts'}"
        return Link(Name.WORKLOAD, state, about, text, by_itself, steps)
    return None


def _of(case: Case, side: Workload) -> str:
    role, replicas = case.role(side.name), side.workload.replicas
    is_active, own = _is_active(case, side), _own_size(case, side)
    if role and case.d.scales_sides and not is_active and not replicas:
        role = f"{role}, parked"
    elif kept_groups.are_kept(case.d) and not is_active:
        moment = kept_groups.until(case.d)
        stay = f" until {moment:%H:%M:%S} UTC" if moment is not None else ""
        role = f"{role or 'without requests'}, whose groups are kept{stay} for {case.d.command('undo')}"
    of_more = f" of {own}" if is_active and own > replicas else ""
    told = f"generation {side.workload.metadata.generation}, {replicas}{of_more} groups"
    return f"{told}, {role}" if role else told


def _is_active(case: Case, side: Workload) -> bool:
    """Whether a workload is that of a pair's active side, or goes with it."""
    return side.name in (case.d.name, *(each.name for each in case.d.o.companions))


def _own_size(case: Case, side: Workload) -> int:
    """Groups that a workload of the active side has at rest."""
    d = case.d
    beside = next((each for each in d.o.companions if each.name == side.name), None)
    if beside is None:
        return d.own_size
    return d.companion_replicas(beside) if d.scales_sides else side.workload.replicas


def _absent(case: Case, name: str) -> Link:
    return Link(
        Name.WORKLOAD,
        State.BROKEN,
        case.named(name),
        f"does not exist in namespace {case.namespace}",
        "it is taken into care as soon as it exists",
        (case.kubectl(f"get {case.target.resource}"),),
    )


def workload(case: Case) -> Link:
    """Whether the workload exists and may be released."""
    kind, about = case.target, case.named(case.workload_name)
    describe = case.kubectl(f"describe {kind.resource} {case.workload_name}")
    unread = case.unread(Name.WORKLOAD, about, kind.resource)
    steps: tuple[str, ...] = describe, kind.look_at_controller
    if case.complaint is not None and case.complaint.of_strategy:
        steps = (case.kubectl(f"edit {rollouts(case.d.keys.group)} {case.name}"),)
    found = unread or _of_another(case, about) or case.complained(Name.WORKLOAD, about, steps)
    stable = case.facts.observation.stable
    if found is not None:
        shown = _shown(case)
        return replace(found, next=shown) if shown and found is not unread else found
    if stable is None:
        return _absent(case, case.workload_name)
    return ok(Name.WORKLOAD, about, _of(case, stable))


def _of_another(case: Case, about: str) -> Link | None:
    """Whether what the Rollout names is there, and belongs to a workload of another kind, so that it is not managed."""
    live = case.facts.workloads.get(case.workload_name)
    labels: dict[str, str] = ((live or {}).get("metadata") or {}).get("labels") or {}
    if live is None or case.facts.observation.stable is not None or selects(case.target.labels.workloads, labels):
        return None
    owner = next((f"{kind.kind} {workload_among(labels)}" for kind, of in RELEASED.items() if of.mark in labels), "")
    steps = (case.kubectl(f"edit {rollouts(case.d.keys.group)} {case.name}"),)
    text = f"is part of {owner}, which makes and changes it: let spec.workloadRef name that"
    return Link(Name.WORKLOAD, State.BROKEN, about, text, "nothing, until the Rollout names another workload", steps)


def _shown(case: Case) -> tuple[str, ...]:
    """Commands for what is in the way of a pair that its releases scale; () where it is something else."""
    found, at = case.complaint, case.complaint.field if case.complaint is not None else None
    if found is None or at is None:
        return ()
    if found.reason is Reason.ACTIVE_SIDE_EDITED:
        return (case.itself("history"), case.kubectl(f"get {case.target.resource} {at.name} -o yaml"))
    if found.reason is Reason.REPLICAS_APPLIED:
        side = next((each for each in case.facts.members if each.name == at.name), None)
        if side is not None and stated_replicas(side.workload.metadata.annotations) is not None:
            return (case.kubectl(f"apply edit-last-applied {case.target.resource} {at.name}"),)
        return (case.kubectl(f"get {case.target.resource} {at.name} -o yaml --show-managed-fields"),)
    return ()


def holds(case: Case) -> Iterator[Link]:
    """Whether the hold keeps a new template from rolling, of the stable workload and of companions that serve with it;
    none where workloads are not to be held, as those of a pair that their owner scales.
    """
    d = case.d
    if case.is_leaving or (d.paired and not d.scales_sides):
        return
    for side in (d.o.stable, *(each.stable for each in d.o.companions)):
        if side is not None:
            yield _hold(case, side)


def _hold(case: Case, side: Workload) -> Link:
    name, d, leads = side.name, case.d, side is case.facts.observation.stable
    kind, about = case.target, case.named(name)
    steps = (case.kubectl(f"get {kind.resource} {name} -o yaml"),)
    found = case.complained(Name.HOLD, about, steps) if leads else None
    if found is not None:
        return found
    annotation = d.keys.release_hold
    by_hand = side.workload.metadata.annotations.get(annotation) == "true"
    if released_by_hand(d) if leads else by_hand:
        return Link(
            Name.HOLD,
            State.WAITING,
            about,
            f"the hold was released on purpose, by annotation {annotation}: {_starts(side.workload)}",
            "nothing, until the annotation is removed",
            (case.kubectl(f"annotate {kind.resource} {name} {annotation}-"),),
        )
    if is_held(side.workload, standing_surge(side.workload, d.keys)):
        return ok(Name.HOLD, about, "closed: a new template starts nothing by itself")
    if leads and has_windows(d):
        return ok(Name.HOLD, about, "open for groups that the release renews now")
    record = d.status.stable
    adopted = record is not None and (side.workload.metadata.uid == record.workload_uid or not leads)
    return Link(
        Name.HOLD,
        State.BROKEN if adopted else State.WAITING,
        about,
        _open(side.workload),
        "the controller closes it as soon as it acts"
        if adopted
        else f"it is closed when the {kind.resource.kind} is adopted",
        (case.kubectl(f"get {kind.resource} {name} -o jsonpath='{{.{'.'.join(kind.strategy_path[:-1])}}}'"),),
    )


def _open(workload: Target) -> str:
    strategy, writer = workload.strategy, writer_of_strategy(workload)
    on_delete = strategy.type == ON_DELETE
    live = f"the type of its strategy is {ON_DELETE}" if on_delete else f"partition is {strategy.partition}"
    return f"the hold is not closed: {live}, written by {writer}; {_starts(workload, 'would ')}"


def _starts(workload: Target, would: str = "") -> str:
    """What a new version does without the hold."""
    if workload.strategy.type == ON_DELETE:
        return f"a group whose pod is deleted {f'{would}get' if would else 'gets'} a new version, without steps"
    return f"a new version {f'{would}roll' if would else 'rolls'} by itself, without steps"


def own_surge(case: Case) -> Link | None:
    """Warning: under Kueue, a rolling update of the workload's own with the user's maxSurge never completes. The
    workloads of a pair that their owner scales are updated by nothing else, before any release.
    """
    sides = case.facts.members if case.d.paired else (case.facts.observation.stable,)
    return next((link for side in sides if (link := _own_surge(case, side)) is not None), None)


def _own_surge(case: Case, stable: Workload | None) -> Link | None:
    keys = case.d.keys
    queue = queue_of(stable.workload) if stable is not None else ""
    surge = users_strategy(stable.workload, keys).max_surge if stable is not None else 0
    if stable is None or not queue or surge in (0, "0%"):
        return None
    name = stable.name
    held = "comes back when the Rollout leaves" if hold_record(stable.workload, keys) else "counts while it is not held"
    if case.d.paired and not case.d.scales_sides:
        held = "counts when its template changes"
    manifest = "# its manifest, with maxSurge: 0"
    return Link(
        Name.RELEASE,
        State.WAITING,
        case.named(name),
        f"its own maxSurge of {surge} {held}, and under Kueue ({queue}) a rolling update with a surge never ends: Kueue"
        f" ends surge groups, and {stable.workload.resource.kind} makes them again",
        "nothing: set maxSurge to 0 in its manifest",
        (case.kubectl(f"apply --server-side -f {name}.yaml") + f"   {manifest}",),
    )


def history(case: Case) -> Link | None:
    """Whether the stable version is stored, so that `undo` can restore it; None before there is one."""
    record, about = case.d.status.stable, f"Rollout/{case.name}"
    found = case.complained(Name.HISTORY, about, (case.itself("history"),))
    if found is not None or record is None:
        return found
    unread = case.unread(Name.HISTORY, about, CONTROLLER_REVISIONS)
    if unread is not None:
        return unread
    if stored_as(case.d, record.template_hash) is not None:
        return ok(Name.HISTORY, about, f"{len(case.d.o.history)} stored, the stable one among them")
    return Link(
        Name.HISTORY,
        State.BROKEN,
        about,
        f"the stable version (template {record.template_hash}) is not stored: its ControllerRevision is gone,"
        f" and `{'history' if case.d.paired else 'undo'}` cannot {'show' if case.d.paired else 'go back to'} it",
        "it is stored again when the next version is released, if the workload's controller remembers it by then",
        (case.itself("history"), case.kubectl(f"get controllerrevisions -l {case.d.keys.history}={case.name}")),
    )


def leader_set(case: Case, side: Workload) -> Link:
    """Whether the controllers of the workload and of its StatefulSet have acted on its last change."""
    name = side.name
    if not side.workload.can_be_held:
        return _own_leaders(case, side)
    about = f"StatefulSet/{name}"
    unread = case.unread(Name.LEADER_SET, about, STATEFUL_SETS)
    if unread is not None:
        return unread
    # A StatefulSet that may not create pods has not observed its last change either; the next link reports why.
    refused = side.leader_set is not None and any(
        each.involved_object.uid == side.leader_set.metadata.uid for each in side.refusals
    )
    if side.leader_set is not None and (observed(side) or refused):
        return ok(Name.LEADER_SET, about, f"revision {side.leader_set.revision}")
    unread = case.unread(Name.LEADER_SET, about, CORE_EVENTS) if side.leader_set is not None else None
    if unread is not None:
        return unread
    waits = case.facts.is_fresh(case.facts.workloads.get(name, {}), SILENCE_SECONDS)
    state = State.WAITING if waits else State.BROKEN
    squatter = next((each for each in case.facts.sets.get(name, ()) if each.metadata.name == name), None)
    if side.leader_set is None and squatter is not None:
        return Link(
            Name.LEADER_SET,
            state,
            about,
            f"is one of an earlier {case.target.resource.kind} {name} (UID {_owner(squatter)}), which the garbage"
            " collector has missed",
            "nothing, until kube-controller-manager restarts",
            (case.kubectl(f"delete statefulset {name}"),),
        )
    describe = case.kubectl(f"describe {case.target.resource} {name}")
    steps = (case.target.look_at_controller, describe)
    return Link(Name.LEADER_SET, state, about, _unmade(side), "it goes on when that controller acts", steps)


def _own_leaders(case: Case, side: Workload) -> Link:
    """The same of a workload whose leaders are made by no StatefulSet."""
    about = f"{case.target.resource.kind}/{side.name}"
    if observed(side):
        return ok(Name.LEADER_SET, about, f"revision {target_revision(side)}")
    waits = case.facts.is_fresh(case.facts.workloads.get(side.name, {}), SILENCE_SECONDS)
    steps = (case.target.look_at_controller, case.kubectl(f"describe {case.target.resource} {side.name}"))
    told = f"its controller has not acted on generation {side.workload.metadata.generation}"
    state = State.WAITING if waits else State.BROKEN
    return Link(Name.LEADER_SET, state, about, told, "it goes on when that controller acts", steps)


def _owner(leader_set: StatefulSet) -> str:
    owner = leader_set.metadata.controller
    return owner.uid if owner is not None else "none"


def _unmade(side: Workload) -> str:
    name, kind, generation = side.name, side.workload.resource.kind, side.workload.metadata.generation
    if side.leader_set is None:
        return f"does not exist: the {kind} controller has not made it for {name}"
    seen = side.workload.observed_generation
    if seen < generation and side.workload.leader_set is None:
        return (
            f"is that of an older template: the {kind} controller has seen generation {seen} of {name}, not"
            f" {generation}"
        )
    return "the StatefulSet controller has not acted on its last change: is kube-controller-manager running?"
