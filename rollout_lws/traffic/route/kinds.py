"""The kinds of routes with weighted rules, each with how its rules are read and written."""

from __future__ import annotations

from collections.abc import Mapping

from rollout_lws.objects.resources import Resource
from rollout_lws.traffic.registry import GRPC_ROUTE, HTTP_ROUTE, VIRTUAL_SERVICE
from rollout_lws.traffic.route import istio
from rollout_lws.traffic.route.gateway_api import GATEWAY_API, with_grpc_rules, with_rules
from rollout_lws.traffic.route.pair import PairRules
from rollout_lws.traffic.route.state import rules_of
from rollout_lws.traffic.route.weighted import WeightedRules

HTTP_RULES = WeightedRules(HTTP_ROUTE, rules_of, with_rules, GATEWAY_API)
GRPC_RULES = WeightedRules(
    GRPC_ROUTE, rules_of, with_grpc_rules, GATEWAY_API, lacks=frozenset({"path", "query parameter"})
)
VIRTUAL_SERVICE_RULES = WeightedRules(
    VIRTUAL_SERVICE,
    istio.rules,
    istio.with_rules,
    normal=istio.normal,
    ordered=True,
    defaulted=False,
    reference="destination",
)
RULES: Mapping[Resource, WeightedRules] = {
    rules.spec.resource: rules for rules in (HTTP_RULES, GRPC_RULES, VIRTUAL_SERVICE_RULES)
}
#: The rules of each kind that a user may write the backends of two workloads in.
PAIR_RULES: Mapping[Resource, PairRules] = {
    resource: PairRules(rules) for resource, rules in RULES.items() if rules.spec.of_pairs
}
