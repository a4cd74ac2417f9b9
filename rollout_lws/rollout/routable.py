"""Whether the requests of an LWS can be shared at all: what its Rollout names, and what else selects its groups.

Everything here keeps a version waiting under the hold; the message says what to do. In a release that is on, only a
change of what is named stops it: objects that vanish are waited for where they are needed.
"""

from __future__ import annotations

from typing import Any

from rollout_lws.api import Phase, TrafficRouting
from rollout_lws.objects.resources import LWS_NAME, LWS_WORKER_INDEX
from rollout_lws.release.batches import wanted_groups
from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.reasons import Reason
from rollout_lws.rollout.refusal import Refusal
from rollout_lws.rollout.routing import is_ours
from rollout_lws.rollout.shares import groups_for_all, settings, share_of_step
from rollout_lws.traffic import http_route, services
from rollout_lws.traffic.facts import RoutingFacts
from rollout_lws.traffic.split import Backend, Backends, Object
from rollout_lws.workload.canary import canary_name


def cannot_route(d: Draft) -> Refusal | None:
    """The first obstacle, None when requests can be shared or nobody asks for it."""
    asked, facts = settings(d), d.o.routing
    if d.status.phase == Phase.PROGRESSING:
        return _renamed(d, asked)
    if asked is None or facts is None:
        return None
    for check in (_service, _canary_service, _route, _full, _unlisted):
        found = check(d, asked, facts)
        if found is not None:
            return found
    return None


def _renamed(d: Draft, asked: TrafficRouting | None) -> Refusal | None:
    record = d.status.traffic
    if record is None or record.service is None:
        return None
    now = (asked.service, (asked.gateway.http_route_name if asked.gateway else None)) if asked else (None, None)
    if now == (record.service, record.route):
        return None
    return Refusal(
        Reason.ROUTE_PROBLEM,
        f"this release shares the requests of Service {record.service} by HTTPRoute {record.route}: name them in"
        " trafficRoutings again until it is over, or go back",
    )


def _service(d: Draft, _: TrafficRouting, facts: RoutingFacts) -> Refusal | None:
    lws = d.stable.lws.metadata
    if facts.service is None:
        return Refusal(
            Reason.SERVICE_PROBLEM,
            f"Service {facts.service_name} does not exist in namespace {lws.namespace}: create it, or name another one"
            " in trafficRoutings",
        )
    labels = {lws.name: [leader.metadata.labels for leader in d.stable.leaders], **facts.other_leaders}
    problem = services.service_problem(
        facts.service, d.uid, d.keys, workload=lws.name, canary=canary_name(d.stable.lws), leaders=labels
    )
    return Refusal(Reason.SERVICE_PROBLEM, problem) if problem else None


def _canary_service(d: Draft, _: TrafficRouting, facts: RoutingFacts) -> Refusal | None:
    if facts.canary_service is None or is_ours(d, facts.canary_service):
        return None
    return Refusal(
        Reason.SERVICE_PROBLEM,
        f"Service {facts.canary_service_name} exists and is not ours, but the new version's needs its name: delete it,"
        " or make it anew under another name",
    )


def _route(d: Draft, _: TrafficRouting, facts: RoutingFacts) -> Refusal | None:
    if not facts.route_name or not facts.synced:
        return None
    namespace = d.stable.lws.metadata.namespace
    if facts.route is None:
        return Refusal(
            Reason.ROUTE_PROBLEM,
            f"HTTPRoute {facts.route_name} does not exist in namespace {namespace}: create it, or name another one in"
            " trafficRoutings",
        )
    backends = Backends(Backend(facts.service_name), Backend(facts.canary_service_name))
    splits = [share_of_step(d, index) for index in range(1, len(d.strategy.steps) + 1)]
    problem = http_route.route_problem(http_route.own(facts.route, d.uid, d.keys), backends, splits)
    if not problem and not http_route.accepting_parents(facts.route):
        problem = (
            f"no Gateway accepts HTTPRoute {facts.route_name} as it is: correct what its status.parents says, or name"
            " another one in trafficRoutings"
        )
    return Refusal(Reason.ROUTE_PROBLEM, problem) if problem else None


def _full(d: Draft, _: TrafficRouting, __: RoutingFacts) -> Refusal | None:
    """All requests at too few groups: the share would never be given, and the step never be left."""
    steps, needed = d.strategy.steps, groups_for_all(d)
    for index, step in enumerate(steps, 1):
        groups = wanted_groups(steps, index, d.replicas)
        if step.traffic == "100%" and groups < needed:
            return Refusal(
                Reason.ROUTE_PROBLEM,
                f"step {index} sends all requests to {groups} of {d.replicas} groups, which cannot carry them: raise"
                " its replicas to 100%, or lower its traffic",
            )
    return None


def _unlisted(d: Draft, asked: TrafficRouting, facts: RoutingFacts) -> Refusal | None:
    """Another Service that selects the new version's leaders would send it requests whatever the route says."""
    if asked.allow_unlisted_services:
        return None
    labels = _labels_of_canary(d)
    for service in facts.services:
        name = service["metadata"]["name"]
        listed = name in (facts.service_name, facts.canary_service_name)
        if not listed and not _headless_of_lws(service) and services.selects(service, labels):
            return Refusal(
                Reason.SERVICE_PROBLEM,
                f"Service {name} would select groups of the new version too, whatever share they have: add"
                f" {LWS_NAME}: {d.stable.lws.metadata.name} to its selector, or set allowUnlistedServices",
            )
    return None


def _headless_of_lws(service: Object) -> bool:
    """Whether LWS made it, for the pods of a group to find each other."""
    owners = service["metadata"].get("ownerReferences") or ()
    return any(each.get("controller") and each.get("kind") in ("LeaderWorkerSet", "Pod") for each in owners)


def _labels_of_canary(d: Draft) -> dict[str, str]:
    template = d.version.members["leaderWorkerTemplate"]
    leader: dict[str, Any] = template.get("leaderTemplate") or template.get("workerTemplate") or {}
    patch = d.strategy.patch_pod_template_metadata
    return {
        **((leader.get("metadata") or {}).get("labels") or {}),
        **(patch.labels if patch else {}),
        LWS_NAME: canary_name(d.stable.lws),
        LWS_WORKER_INDEX: "0",
    }
