"""Rules of the Gateway API's routes (gateway.networking.k8s.io/v1).

Those of a GRPCRoute differ in their matches: by method in place of a path, and not by query parameters.
"""

from __future__ import annotations

from rollout_lws.traffic.route.weighted import Limits
from rollout_lws.traffic.split import Object

GATEWAY_API = Limits("the Gateway API", rules=16, matches_a_rule=64, matches=128, conditions=16)


def with_rules(live: Object, rules: list[Object]) -> Object:
    """The route with these rules."""
    spec = {member: value for member, value in live["spec"].items() if member != "rules"}
    if rules or "rules" in live["spec"]:
        spec["rules"] = rules
    return {**live, "spec": spec}


def with_grpc_rules(live: Object, rules: list[Object]) -> Object:
    """The GRPCRoute with these rules, without the match for every path that rules of a release have."""
    return with_rules(live, [_without_paths(rule) for rule in rules])


def _without_paths(rule: Object) -> Object:
    matches = rule.get("matches") or ()
    if not any("path" in match for match in matches):
        return rule
    return {**rule, "matches": [{key: value for key, value in match.items() if key != "path"} for match in matches]}
