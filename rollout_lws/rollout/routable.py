"""Whether the requests of an LWS can be shared at all: what its Rollout names, and what else selects its groups.

Everything here keeps a version waiting under the hold; the message says what to do. In a release that is on, only an
edit of what is named, or of steps to what routers cannot express, stops it: objects that vanish are waited for where
they are needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rollout_lws.api import Phase, TrafficRouting
from rollout_lws.objects.resources import INFERENCE_POOLS, LWS_NAME, LWS_PREFIX
from rollout_lws.release.batches import wanted_groups
from rollout_lws.release.overload import overload
from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.reasons import Reason
from rollout_lws.rollout.refusal import Refusal
from rollout_lws.rollout.shares import groups_for_all, settings, share_of_step
from rollout_lws.rollout.unlisted import labels_of_new, unlisted
from rollout_lws.traffic import pools, services
from rollout_lws.traffic.facts import RoutingFacts, named
from rollout_lws.traffic.routers import routers
from rollout_lws.traffic.selectors import Selecting
from rollout_lws.traffic.split import Object
from rollout_lws.workload.canary import canary_name

#: Labels that controllers give to pods; no template tells them.
_NOT_OF_TEMPLATES = (LWS_PREFIX, "statefulset.kubernetes.io/", "apps.kubernetes.io/")


def cannot_route(d: Draft) -> Refusal | None:
    """The first obstacle, None when requests can be shared or nobody asks for it."""
    return next(obstacles(d), None)


def obstacles(d: Draft) -> Iterator[Refusal]:
    """All of them, each looked for only when it is asked for."""
    asked, facts = settings(d), d.o.routing
    if d.status.phase == Phase.PROGRESSING:
        yield from filter(None, (_renamed(d, asked), _unsaid(d, facts)))
    elif asked is not None and facts is not None:
        checks = (_service, _pools, _canary_service, _routers, _full, _overloaded, _unlisted)
        yield from filter(None, (check(d, asked, facts) for check in checks))


def _renamed(d: Draft, asked: TrafficRouting | None) -> Refusal | None:
    record = d.status.traffic
    if record is None or record.borrowed is None or named(asked) == record.borrowed:
        return None
    said = record.borrowed
    pairs = (
        ("Service", said.service),
        ("HTTPRoute", said.http_route),
        ("Ingress", said.ingress),
        ("InferencePool", said.stable_pool),
        ("InferencePool", said.canary_pool),
    )
    there = ", ".join(f"{kind} {name}" for kind, name in pairs if name)
    return Refusal(
        Reason.ROUTE_PROBLEM,
        f"this release shares requests by {there}: name the same in trafficRoutings again until it is over, or go back",
    )


def _unsaid(d: Draft, facts: RoutingFacts | None) -> Refusal | None:
    """A plan that was edited to something that routers cannot say would be shared in another way than it reads."""
    if facts is None or not facts.synced:
        return None
    steps = range(d.sub.current_step_index, len(d.strategy.steps) + 1)
    said = (each.inexpressible(share_of_step(d, index)) for index in steps for each in routers(facts))
    problem = next(filter(None, said), "")
    return Refusal(Reason.ROUTE_PROBLEM, problem) if problem else None


def _service(d: Draft, _: TrafficRouting, facts: RoutingFacts) -> Refusal | None:
    lws, name = d.stable.lws.metadata, facts.names.service
    if facts.service is None:
        return Refusal(
            Reason.SERVICE_PROBLEM,
            f"Service {name} does not exist in namespace {lws.namespace}: create it, or name another one"
            " in trafficRoutings",
        )
    problem = services.service_problem(
        facts.service, d.uid, d.keys, workload=lws.name, canary=canary_name(d.stable.lws), leaders=_leaders(d, facts)
    )
    problem = problem or _selects_nothing_new(d, services.SELECTING, facts.service)
    return Refusal(Reason.SERVICE_PROBLEM, problem) if problem else None


def _leaders(d: Draft, facts: RoutingFacts) -> dict[str, Sequence[Mapping[str, str]]]:
    return {d.stable.lws.metadata.name: [leader.metadata.labels for leader in d.stable.leaders], **facts.other_leaders}


def _selects_nothing_new(d: Draft, selecting: Selecting, live: Object) -> str:
    """Why the new version's groups would never be reached: the pending template may have other labels."""
    own = selecting.selector(selecting.unpinned(live, d.uid, d.keys))
    labels = labels_of_new(d)
    lacking = {
        key: value for key, value in own.items() if labels.get(key) != value and not key.startswith(_NOT_OF_TEMPLATES)
    }
    if not lacking:
        return ""
    wanted = ", ".join(f"{key}: {value}" for key, value in sorted(lacking.items()))
    return (
        f"{selecting.resource.kind} {live['metadata']['name']} would select no group of the new version, whose leaders"
        f" have no label {wanted}: add it to the template, or remove it from the selector"
    )


def _pools(d: Draft, _: TrafficRouting, facts: RoutingFacts) -> Refusal | None:
    stable, new = facts.names.stable_pool, facts.names.canary_pool
    if not stable or not new or not facts.synced:
        return None
    workload, canary = d.stable.lws.metadata.name, canary_name(d.stable.lws)
    if INFERENCE_POOLS in facts.absent:
        return Refusal(
            Reason.POOL_PROBLEM,
            f"this cluster does not serve {INFERENCE_POOLS}: install the Gateway API inference extension (v1), or refer"
            " to Services in the route",
        )
    if stable == new:
        return Refusal(
            Reason.POOL_PROBLEM,
            f"inferencePool names {stable} for both versions: make a second pool with an endpoint picker of its own",
        )
    for name in (stable, new):
        pool = facts.find(INFERENCE_POOLS, name)
        if pool is None:
            return Refusal(
                Reason.POOL_PROBLEM,
                f"InferencePool {name} does not exist in namespace {facts.namespace}: create it, or name another one in"
                " trafficRoutings",
            )
        # Whether the new version's pool selects anything shows only in the release.
        leaders = _leaders(d, facts) if name == stable else {**facts.other_leaders}
        problem = pools.pool_problem(pool, d.uid, d.keys, workload=workload, canary=canary, leaders=leaders)
        if name == new:
            problem = problem or _selects_nothing_new(d, pools.SELECTING, pool)
        if problem:
            return Refusal(Reason.POOL_PROBLEM, problem)
    return None


def _canary_service(_: Draft, __: TrafficRouting, facts: RoutingFacts) -> Refusal | None:
    found = facts.canary_service
    if found is None or facts.is_ours(found):
        return None
    return Refusal(
        Reason.SERVICE_PROBLEM,
        f"Service {facts.canary_service_name} exists and is not ours, but the new version's needs its name: delete it,"
        " or make it anew under another name",
    )


def _routers(d: Draft, asked: TrafficRouting, facts: RoutingFacts) -> Refusal | None:
    if not facts.synced:
        return None
    splits = [share_of_step(d, index) for index in range(1, len(d.strategy.steps) + 1)]
    class_type = asked.ingress.class_type if asked.ingress else ""
    problem = next(filter(None, (each.problem(splits) for each in routers(facts, class_type))), "")
    return Refusal(Reason.ROUTE_PROBLEM, problem) if problem else None


def _full(d: Draft, _: TrafficRouting, __: RoutingFacts) -> Refusal | None:
    """All requests at too few groups: the share would never be given, and the step never be left."""
    steps, needed = d.strategy.steps, groups_for_all(d)
    for index, step in enumerate(steps, 1):
        groups = wanted_groups(d.strategy, index, d.replicas)
        if step.traffic and share_of_step(d, index).weight == 100 and groups < needed:
            return Refusal(
                Reason.ROUTE_PROBLEM,
                f"step {index} sends all requests to {groups} of {d.replicas} groups, which cannot carry them: raise"
                " its replicas to 100%, or lower its traffic",
            )
    return None


def _overloaded(d: Draft, _: TrafficRouting, __: RoutingFacts) -> Refusal | None:
    """Where one LWS holds both versions, a share that does not fit the groups falls on few."""
    over = overload(d.strategy, d.replicas)
    return Refusal(Reason.ROUTE_PROBLEM, over.message) if over else None


def _unlisted(d: Draft, asked: TrafficRouting, facts: RoutingFacts) -> Refusal | None:
    """What else selects the new version's leaders would send them requests whatever the route says."""
    what = None if asked.allow_unlisted_services else next(unlisted(facts, [labels_of_new(d)]), None)
    if what is None:
        return None
    way_out = f"add {LWS_NAME}: {d.stable.lws.metadata.name} to its selector"
    if d.one_workload:
        way_out = "have its clients use the Service in trafficRoutings"
    return Refusal(
        Reason.SERVICE_PROBLEM,
        f"{what} would select groups of the new version too, whatever share they have: {way_out}, or set"
        " allowUnlistedServices",
    )
