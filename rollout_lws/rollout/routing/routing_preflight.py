"""Routing preflight: whether the requests of an LWS can be split, by the objects its Rollout names and others that
select its groups.

A refusal keeps the version held; its message says what to do. During a release the checks run again before the first
write to an object (trafficRoutings was added, or the object was recreated). Otherwise only an edit of the names, or of
steps to what routers cannot express, stops a release: it waits for missing objects when it needs them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain

from rollout_lws.api import Phase, TrafficRouting
from rollout_lws.capacity.weights import overload
from rollout_lws.objects.resources import INFERENCE_POOLS, SERVICES, ObjectRef
from rollout_lws.rollout.decision import FieldRef, Refusal
from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.reasons import Reason
from rollout_lws.rollout.routing.group_drains import named_selectors, removable
from rollout_lws.rollout.routing.unmanaged_backends import labels_of_new, leader_labels, unlisted
from rollout_lws.rollout.routing.weights import settings, share_of_step, short_of_all
from rollout_lws.traffic import pinned_selectors, pools, services
from rollout_lws.traffic.facts import RoutingFacts
from rollout_lws.traffic.names import Names, of_sides
from rollout_lws.traffic.pinned_selectors import Selector
from rollout_lws.traffic.registry import CUSTOM, resources_of
from rollout_lws.traffic.router import NAME_TAKEN, Problem, Router
from rollout_lws.traffic.routers.of_rollout import named, routers
from rollout_lws.traffic.selectors import Selecting, own_label
from rollout_lws.traffic.split import Object, Split
from rollout_lws.workload.facts import Facts


def cannot_route(d: Draft) -> Refusal | None:
    """The first obstacle; None if requests can be split or the Rollout does not ask for it."""
    if d.status.phase == Phase.PROGRESSING:
        return renamed(d) or _unsaid(d, d.o.routing) or _unwritten(d)
    return next(obstacles(d), None)


def barred(d: Draft, each: Selector) -> str:
    """Why this release must not write a selector that it has not written yet, as a message with the fix; "" if it may,
    or already has. Every first write checks this.
    """
    facts = d.o.routing
    if each.given or facts is None:
        return ""
    unnamed = _unnamed(d, each.ref, each.ref)
    if unnamed or each.live is None:
        return unnamed
    if facts.waits or d.o.stable is None:
        return facts.waits or f"{d.called} does not exist: create it"
    # Problems of the plan or of other objects stop steps only: the running canary stays pinned apart.
    about = _service(d, facts) if each.resource == SERVICES else _pool(d, facts, each.name)
    refusal = next(about, None)
    return refusal.message if refusal else ""


def barred_route(d: Draft, router: Router, split: Split) -> str:
    """The same for a router and the split that it gets."""
    facts, state = d.o.routing, router.state
    if state.modified or facts is None:
        return ""
    unnamed = _unnamed(d, state.ref, state.users)
    if unnamed:
        return unnamed
    problem = _in_the_way(router, split, begun=True)
    return facts.waits or (problem.message if problem is not None else "")


def _unnamed(d: Draft, ref: ObjectRef, users: ObjectRef) -> str:
    """Why ``ref``, which is written for the user's object, is not named in the spec; "" if it is."""
    names = named(settings(d))
    every = resources_of(names) if names is not None else ()
    custom = names.custom if names is not None else ()
    known = {*((resource.kind, name) for resource, name in every), *((each.kind, each.name) for each in custom)}
    if (users.kind, users.name) in known:
        return ""
    return f"{ref} is not named in trafficRoutings: name it again until the release is over, or go back"


def _in_the_way(router: Router, split: Split | None = None, *, begun: bool = False) -> Problem | None:
    """Why a router cannot split requests, or cannot express this split."""
    problem = router.check(begun=begun) or (router.check(split) if split is not None else None)
    state = router.state
    if problem is None and state.unused:
        return Problem(f"{state.unused}, or name another one in trafficRoutings", state.users)
    return problem


def _unwritten(d: Draft) -> Refusal | None:
    """Obstacles to objects that a release is about to pin or create."""
    asked, facts = settings(d), d.o.routing
    if asked is None or facts is None or not facts.synced:
        return None
    pinned = (*pinned_selectors.of_stable(facts), *pinned_selectors.of_new(facts))
    if any(each.live is not None and not each.given for each in pinned):
        return next(obstacles(d), None)
    return next(chain(() if d.paired else _canary_service(d, asked, facts), _taken(facts)), None)


def _taken(facts: RoutingFacts) -> Iterator[Refusal]:
    """Objects with the names that routers need for copies; the release waits for all other refusals of routers."""
    for each in routers(facts):
        problem = each.check()
        if problem is not None and problem.path == NAME_TAKEN:
            yield _refusal(problem)


def obstacles(d: Draft) -> Iterator[Refusal]:
    """Every obstacle to the next release, most basic first; empty if the Rollout does not ask for routing."""
    asked, facts = settings(d), d.o.routing
    if asked is not None and facts is not None:
        yield from _sides(d, facts) if d.paired else _service(d, facts)
        # What a pair's user does with the workloads and Services beside the route is the user's.
        checks = (_pools, _routers, _full, _overloaded, _inseparable) if d.paired else _CHECKS
        for check in checks:
            yield from check(d, asked, facts)


def _sides(d: Draft, facts: RoutingFacts) -> Iterator[Refusal]:
    """Obstacles in the Services of a pair: each selects the groups of its own workload, and no others."""
    if facts.names.stable_pool:
        return
    for name, side in ((facts.names.service, d.o.stable), (facts.names.canary_service, d.o.canary)):
        live = facts.find(SERVICES, name)
        if live is None:
            yield _no_service(facts.namespace, name)
            continue
        problem = _of_side(d, facts, side, services.service_problem, live)
        if problem:
            yield Refusal(Reason.SERVICE_PROBLEM, problem, FieldRef("spec.selector", SERVICES.kind, name))


def _no_service(namespace: str, name: str) -> Refusal:
    return Refusal(
        Reason.SERVICE_PROBLEM,
        f"Service {name} does not exist in namespace {namespace}: create it, or name another one in trafficRoutings",
        FieldRef("", SERVICES.kind, name),
    )


def _of_side(d: Draft, facts: RoutingFacts, side: Facts | None, problem: Callable[..., str], live: Object) -> str:
    """Why an object that has to select only one side's groups does not, or would not once there are some of the other
    one; "" if that side does not exist. It may select those of the side's companions.
    """
    if side is None:
        return ""
    every = {each.name: _leaders_of(each, expected=each is not side) for each in d.o.workloads}
    with_it = {each.name if side is d.o.stable else each.other_name for each in d.o.companions}
    found = {**facts.other_leaders, **every}
    leaders = {name: labels for name, labels in found.items() if name not in with_it}
    return problem(live, d.uid, d.keys, workload=side.workload, leaders=leaders, pinned=False)


def _leaders_of(facts: Facts, *, expected: bool) -> list[Mapping[str, str]]:
    """The labels of a workload's leaders; those that it would have by its template, if there are none and it is
    ``expected`` to get some.
    """
    found: list[Mapping[str, str]] = [leader.metadata.labels for leader in facts.leaders]
    return found or ([leader_labels(facts.workload)] if expected else [])


def renamed(d: Draft) -> Refusal | None:
    """Refuses other routing objects than those that the release in progress has begun with."""
    facts = d.o.routing
    if facts is None or _asked(d, facts) == facts.names:
        return None
    known = (f"{resource.kind} {name}" for resource, name in resources_of(facts.names) if name)
    there = ", ".join((*known, *map(str, facts.names.custom)))
    return Refusal(
        Reason.ROUTE_PROBLEM,
        f"this release shares requests by {there}: name the same in trafficRoutings again until it is over, or go back",
    )


def _asked(d: Draft, facts: RoutingFacts) -> Names | None:
    """The names in the spec; of a pair with the active side's as stable's."""
    names = named(settings(d))
    if names is None or not d.paired:
        return names
    spec = d.o.rollout.spec
    return of_sides(names, spec.workload_ref.name, facts.names.active)


def _unsaid(d: Draft, facts: RoutingFacts | None) -> Refusal | None:
    """Refuses an edited plan that routers cannot express: they would split requests differently."""
    if facts is None or not facts.synced:
        return None
    # Any writer of the status may put any number there.
    steps = range(max(1, d.sub.current_step_index), len(d.strategy.steps) + 1)
    said = (each.check(share_of_step(d, index)) for index in steps for each in routers(facts))
    problem = next((each for each in said if each is not None), None)
    return Refusal(Reason.ROUTE_PROBLEM, problem.message) if problem is not None else None


def _at(d: Draft, path: str) -> FieldRef:
    """A field of the strategy's style in the Rollout."""
    style = "canary" if d.o.rollout.spec.strategy.canary is not None else "blueGreen"
    return FieldRef(f"spec.strategy.{style}.{path}")


def _service(d: Draft, facts: RoutingFacts) -> Iterator[Refusal]:
    lws, name = d.stable.workload.metadata, facts.names.service
    if facts.service is None:
        yield _no_service(lws.namespace, name)
        return
    problem = services.service_problem(
        facts.service, d.uid, d.keys, workload=d.stable.workload, leaders=_leaders(d, facts)
    )
    problem = problem or _selects_nothing_new(d, services.SELECTING, facts.service)
    if problem:
        yield Refusal(Reason.SERVICE_PROBLEM, problem, FieldRef("spec.selector", SERVICES.kind, name))


def _leaders(d: Draft, facts: RoutingFacts) -> dict[str, Sequence[Mapping[str, str]]]:
    return {d.stable.name: [leader.metadata.labels for leader in d.stable.leaders], **facts.other_leaders}


def _selects_nothing_new(d: Draft, selecting: Selecting, live: Object) -> str:
    """Why the selector would never match the new version's groups: the pending template may have other labels."""
    own = selecting.selector(selecting.unpinned(live, d.uid, d.keys))
    labels = labels_of_new(d)
    lacking = {
        key: value for key, value in own.items() if labels.get(key) != value and not key.startswith(d.labels.prefixes)
    }
    if not lacking:
        return ""
    wanted = ", ".join(f"{key}: {value}" for key, value in sorted(lacking.items()))
    return (
        f"{selecting.resource.kind} {live['metadata']['name']} would select no group of the new version, whose leaders"
        f" have no label {wanted}: add it to the template, or remove it from the selector"
    )


def _pools(d: Draft, _: TrafficRouting, facts: RoutingFacts) -> Iterator[Refusal]:
    stable, new = facts.names.stable_pool, facts.names.canary_pool
    if not stable or not new or not facts.synced:
        return
    named_by = "trafficRoutings[0].gateway.inferencePool"
    if INFERENCE_POOLS in facts.absent:
        yield Refusal(
            Reason.POOL_PROBLEM,
            f"this cluster does not serve {INFERENCE_POOLS}: install the Gateway API inference extension (v1), or refer"
            " to Services in the route",
            _at(d, named_by),
        )
        return
    if stable == new:
        yield Refusal(
            Reason.POOL_PROBLEM,
            f"inferencePool names {stable} for both versions: make a second pool with an endpoint picker of its own",
            _at(d, f"{named_by}.canary"),
        )
        return
    for name in (stable, new):
        yield from _pool(d, facts, name)
    yield from _same_picker(d, facts, stable, new)


def _same_picker(d: Draft, facts: RoutingFacts, stable: str, new: str) -> Iterator[Refusal]:
    """For a plan whose gates ask each version's picker."""
    one, other = (pools.picker_service(facts.find(INFERENCE_POOLS, name)) for name in (stable, new))
    every = (*d.strategy.gates, *d.strategy.every_gate)
    gate = next((each for each in every if each.metric is not None and each.metric.of is not None), None)
    if gate is not None and one and one == other:
        yield Refusal(
            Reason.POOL_PROBLEM,
            f"gate {gate.name} asks each version's endpoint picker, and InferencePools {stable} and {new} have the same"
            f" one, Service {one}: give {new} a picker of its own, or remove metric.of",
            FieldRef("spec.endpointPickerRef", INFERENCE_POOLS.kind, new),
        )


def _pool(d: Draft, facts: RoutingFacts, name: str) -> Iterator[Refusal]:
    pool = facts.find(INFERENCE_POOLS, name)
    if pool is None:
        yield Refusal(
            Reason.POOL_PROBLEM,
            f"InferencePool {name} does not exist in namespace {facts.namespace}: create it, or name another one in"
            " trafficRoutings",
            FieldRef("", INFERENCE_POOLS.kind, name),
        )
        return
    if d.paired:
        side = d.o.stable if name == facts.names.stable_pool else d.o.canary
        problem = _of_side(d, facts, side, pools.pool_problem, pool)
        if problem:
            yield Refusal(Reason.POOL_PROBLEM, problem, FieldRef("spec.selector", INFERENCE_POOLS.kind, name))
        return
    # Whether the canary pool selects anything shows only during the release.
    leaders = _leaders(d, facts) if name == facts.names.stable_pool else {**facts.other_leaders}
    problem = pools.pool_problem(pool, d.uid, d.keys, workload=d.stable.workload, leaders=leaders)
    if name == facts.names.canary_pool:
        problem = problem or _selects_nothing_new(d, pools.SELECTING, pool)
    if problem:
        yield Refusal(Reason.POOL_PROBLEM, problem, FieldRef("spec.selector", INFERENCE_POOLS.kind, name))


def _canary_service(_: Draft, __: TrafficRouting, facts: RoutingFacts) -> Iterator[Refusal]:
    found, name = facts.canary_service, facts.canary_service_name
    if found is not None and not facts.is_ours(found):
        yield Refusal(
            Reason.SERVICE_PROBLEM,
            f"Service {name} exists and is not ours, but the new version's needs its name: delete it,"
            " or make it anew under another name",
            FieldRef("metadata.name", SERVICES.kind, name),
        )


def _routers(d: Draft, _: TrafficRouting, facts: RoutingFacts) -> Iterator[Refusal]:
    if not facts.synced:
        return
    for each in routers(facts):
        problem = _in_the_way(each)
        if problem is not None:
            yield _refusal(problem)
            continue
        for index in range(1, len(d.strategy.steps) + 1):
            unsaid = each.check(share_of_step(d, index))
            if unsaid is not None:
                # A script fails for what it is given; other routers cannot express matches.
                blamed = FieldRef(unsaid.path, unsaid.ref.kind, unsaid.ref.name) if each.spec is CUSTOM else None
                at = blamed or _at(d, f"steps[{index - 1}].matches")
                yield Refusal(Reason.ROUTE_PROBLEM, unsaid.message, at)
                if blamed is not None:
                    break


def _refusal(problem: Problem) -> Refusal:
    return Refusal(Reason.ROUTE_PROBLEM, problem.message, FieldRef(problem.path, problem.ref.kind, problem.ref.name))


def _full(d: Draft, _: TrafficRouting, __: RoutingFacts) -> Iterator[Refusal]:
    """Refuses all requests at too few groups: the step would never get that weight, and never end."""
    for index in range(1, len(d.strategy.steps) + 1):
        why = short_of_all(d, index)
        if why:
            yield Refusal(Reason.ROUTE_PROBLEM, why, _at(d, f"steps[{index - 1}].traffic"))


def _inseparable(d: Draft, _: TrafficRouting, facts: RoutingFacts) -> Iterator[Refusal]:
    """Refuses selectors out of which no single group can be taken before it goes."""
    for selecting, live in named_selectors(facts) if d.capacity.shifts and facts.synced else ():
        resource, name = selecting.resource, live["metadata"]["name"]
        if not removable(selecting.selector(live), d.stable.workload):
            yield Refusal(
                Reason.SERVICE_PROBLEM if resource == SERVICES else Reason.POOL_PROBLEM,
                f"{resource.kind} {name} selects groups only by labels that the {d.kind} gives them or knows them by,"
                " and shift takes single groups out of it before they go: add another label of the template to its"
                " selector, such as app",
                FieldRef("spec.selector", resource.kind, name),
            )


def _overloaded(d: Draft, _: TrafficRouting, __: RoutingFacts) -> Iterator[Refusal]:
    """Refuses a weight that would overload the few groups of a version, if new ones take places of old ones."""
    over = overload(d.strategy, d.replicas) if not d.swapped or d.capacity.shifts else None
    if over:
        yield Refusal(Reason.ROUTE_PROBLEM, over.message, _at(d, f"steps[{over.step - 1}].traffic"))


def _unlisted(d: Draft, asked: TrafficRouting, facts: RoutingFacts) -> Iterator[Refusal]:
    """Refuses other Services or pools that select the new version's leaders, and so bypass the weights."""
    if asked.allow_unmanaged_backends:
        return
    way_out = own_label(d.stable.workload)
    if d.capacity.one_workload:
        way_out = "have its clients use the Service in trafficRoutings"
    for resource, name in unlisted(facts, [labels_of_new(d)]):
        yield Refusal(
            Reason.SERVICE_PROBLEM,
            f"{resource.kind} {name} would select groups of the new version too, whatever share they have: {way_out},"
            " or set allowUnmanagedBackends",
            FieldRef("spec.selector", resource.kind, name),
        )


_CHECKS = (_pools, _canary_service, _routers, _full, _overloaded, _unlisted, _inseparable)
