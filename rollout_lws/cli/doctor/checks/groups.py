"""Whether the groups of one workload exist: their leaders and workers, with nothing left over in their place."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from rollout_lws.cli.doctor.case import Case
from rollout_lws.cli.doctor.checks.group_troubles import Found, more, waits
from rollout_lws.cli.doctor.checks.ordered import blocked, name_at
from rollout_lws.cli.doctor.links import Link, Name, State, ok
from rollout_lws.objects.meta import Meta
from rollout_lws.objects.resources import CORE_EVENTS, PODS, STATEFUL_SETS, Resource
from rollout_lws.rollout.lifecycle.adoption import SILENCE_SECONDS
from rollout_lws.workload.facts import Facts as Workload
from rollout_lws.workload.groups import groups

#: Seconds within which a garbage collector that sees an owner's deletion acts on it.
COLLECTED_SECONDS = 30


def made(case: Case, side: Workload, about: str, found: list[Found]) -> Link:
    name = side.name
    left_over = _left_over(case, side)
    if left_over is not None:
        return left_over
    if found:
        found = sorted(found, key=lambda each: waits(case, each))
        one = found[0]
        worst = one.trouble
        maker = side.leader_set if one.group is None else one.group.workers
        made_by = maker.metadata.name if maker is not None else name
        steps = [case.kubectl(f"describe statefulset {made_by}")]
        if worst.reason == "QuotaExceeded":
            steps.insert(0, case.kubectl("describe resourcequota"))
        if worst.reason in ("NoWorkers", "WrongSize"):
            steps = [case.target.look_at_controller, case.kubectl(f"describe {case.kind} {name}")]
        at = f"StatefulSet/{made_by}" if maker is not None else about
        if worst.reason in ("NoWorkers", "WrongSize") and one.group is not None:
            at = f"Pod/{one.group.leader.metadata.name}"
        by_itself = "it is tried again and again, and the group comes when nothing refuses it any more"
        state = State.WAITING if waits(case, one) else State.BROKEN
        return Link(Name.GROUPS, state, at, worst.message + more(found), by_itself, tuple(steps))
    complained = case.complained(Name.GROUPS, about, (case.kubectl(f"scale {case.kind} {name} --replicas=1"),))
    if complained is not None and side is case.facts.observation.stable:
        return complained
    return _missing(case, side, about)


def _missing(case: Case, side: Workload, about: str) -> Link:
    name, asked = side.name, side.workload.replicas
    there = {each.ordinal for each in groups(side)}
    missing = [name_at(side, each) for each in range(asked) if each not in there]
    made = f"{asked - len(missing)} of {asked} groups are made"
    if not missing or side.workload.metadata.terminating:
        return ok(Name.GROUPS, about, made)
    # Without access to Events, a missing Event proves nothing.
    unread = case.unread(Name.GROUPS, f"StatefulSet/{name}", CORE_EVENTS)
    if unread is not None:
        return unread
    if side.leader_set is None:
        by_itself = "they come when the leader StatefulSet is there"
        return Link(Name.GROUPS, State.WAITING, about, made, by_itself)
    waits = case.facts.is_fresh(case.facts.workloads.get(name, {}), SILENCE_SECONDS)
    pods = f"pod {missing[0]}" + (f" and {len(missing) - 1} more" if len(missing) > 1 else "")
    one = blocked(case, side)
    if one is not None and one.unmade:
        pod, by_itself = one.pod.metadata.name, "the StatefulSet controller makes one pod after another"
        describe = case.kubectl(f"describe pod {pod}")
        return Link(Name.GROUPS, State.WAITING, about, f"{made}: {one.text}", by_itself, (describe,))
    return Link(
        Name.GROUPS,
        State.WAITING if waits else State.BROKEN,
        f"StatefulSet/{name}",
        f"{made}: {pods} is missing, and no Event says why",
        "they come when the StatefulSet controller acts: is kube-controller-manager running?",
        (case.kubectl(f"describe statefulset {name}"), case.kubectl("get events --field-selector reason=FailedCreate")),
    )


def _left_over(case: Case, side: Workload) -> Link | None:
    """Pods of StatefulSets that are gone, and StatefulSets of leaders that are gone, whose names block the successors.

    The garbage collector usually deletes them at once. One that missed an owner's deletion (after its API server was
    killed) notices only when it restarts; until then a recreated StatefulSet of the same name cannot create its pod,
    and the group never becomes ready.
    """
    sets = case.facts.sets.get(side.name, ())
    pods = {each.metadata.uid: each for each in (*side.leaders, *side.pods)}.values()
    found = [
        *_blocking(PODS, (each.metadata for each in pods), STATEFUL_SETS, (each.metadata for each in sets)),
        *_blocking(STATEFUL_SETS, (each.metadata for each in sets), PODS, (each.metadata for each in side.leaders)),
    ]
    if not found:
        return None
    found.sort(key=lambda each: (not _is_missed(case, each), each.meta.name))
    one, missed = found[0], _is_missed(case, found[0])
    kind, owner = one.resource.kind, f"{one.successor_kind} {one.successor.name}"
    kept = "cannot make its own" if one.resource == PODS else "cannot have its workers"
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    return Link(
        Name.GROUPS,
        State.BROKEN if missed else State.WAITING,
        f"{kind}/{one.meta.name}",
        f"{kind} {one.meta.name} is left over{more}: it belongs to a {owner} that is gone (UID {one.owner_uid}), and"
        f" the one that has taken its name {kept}",
        "nothing: the garbage collector has missed it, and looks again when kube-controller-manager restarts"
        if missed
        else "the garbage collector deletes it, mostly within seconds",
        tuple(case.kubectl(f"delete {each.resource.kind.lower()} {each.meta.name}") for each in found[:5]),
    )


@dataclass(frozen=True, slots=True)
class _LeftOver:
    """An object whose owner is gone; ``successor`` has the owner's name, and is blocked by it."""

    resource: Resource
    meta: Meta
    owner_uid: str
    successor_kind: str
    successor: Meta


def _blocking(resource: Resource, metas: Iterable[Meta], of: Resource, owners: Iterable[Meta]) -> Iterator[_LeftOver]:
    by_name = {each.name: each for each in owners}
    for meta in metas:
        owner = meta.controller
        now = by_name.get(owner.name) if owner is not None and owner.kind == of.kind else None
        # Without a new object of the owner's name, it blocks nothing.
        if owner is not None and now is not None and now.uid != owner.uid and not meta.terminating:
            yield _LeftOver(resource, meta, owner.uid, of.kind, now)


def _is_missed(case: Case, each: _LeftOver) -> bool:
    since = each.successor.creation_timestamp
    return since is None or (case.now - since).total_seconds() >= COLLECTED_SECONDS
