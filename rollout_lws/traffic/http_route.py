"""HTTPRoutes of the Gateway API as routers: the weight is written into the user's own."""

from __future__ import annotations

from rollout_lws.traffic.registry import HTTP_ROUTE
from rollout_lws.traffic.route.weighted import Limits, WeightedRules
from rollout_lws.traffic.split import Object
from rollout_lws.traffic.weighted_router import WeightedRouter


def _rules(live: Object) -> list[Object]:
    return list(live["spec"].get("rules") or ())


def _with_rules(live: Object, rules: list[Object]) -> Object:
    spec = {member: value for member, value in live["spec"].items() if member != "rules"}
    if rules or "rules" in live["spec"]:
        spec["rules"] = rules
    return {**live, "spec": spec}


RULES = WeightedRules(HTTP_ROUTE, _rules, _with_rules, Limits("the Gateway API", 16, 64, 128, 16))


class HttpRouter(WeightedRouter):
    """The user's own HTTPRoute."""

    __slots__ = ()
    spec, rules = HTTP_ROUTE, RULES
