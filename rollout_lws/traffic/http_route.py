"""HTTPRoutes of the Gateway API."""

from __future__ import annotations

from collections.abc import Iterable

from rollout_lws.objects.resources import HTTP_ROUTES
from rollout_lws.traffic.registry import HTTP_ROUTE
from rollout_lws.traffic.route import status
from rollout_lws.traffic.route.status import Parent
from rollout_lws.traffic.route.weighted import Limits, WeightedRules, namespace_of
from rollout_lws.traffic.split import Object


def _rules(live: Object) -> list[Object]:
    return list(live["spec"].get("rules") or ())


def _with_rules(live: Object, rules: list[Object]) -> Object:
    spec = {member: value for member, value in live["spec"].items() if member != "rules"}
    if rules or "rules" in live["spec"]:
        spec["rules"] = rules
    return {**live, "spec": spec}


def accepting_parents(live: Object) -> tuple[Parent, ...]:
    """Those of spec.parentRefs that accept the route, or accepted a generation of it that has just been replaced."""
    attached = _attached(live)
    return tuple(each for each in status.accepting(live, HTTP_ROUTE.conditions) if each in attached)


def unaccepted(live: Object, parents: Iterable[Parent]) -> str:
    """Why the live generation is not routed yet: "" when each of these parents that still is in spec.parentRefs has
    accepted it; else the first that has not, with its condition and message.
    """
    attached = _attached(live)
    said = (status.complaint(live, each, HTTP_ROUTE.conditions) for each in parents if each in attached)
    return next((f"HTTPRoute {live['metadata']['name']}: {why}" for why in said if why), "")


def _attached(live: Object) -> set[Parent]:
    return {status.parent(each, namespace_of(live)) for each in live["spec"].get("parentRefs") or ()}


RULES = WeightedRules(HTTP_ROUTES, _rules, _with_rules, accepting_parents, Limits("the Gateway API", 16, 64, 128, 16))
routed, own, drifted = RULES.routed, RULES.own, RULES.drifted
route_problem, split_problem = RULES.route_problem, RULES.split_problem
