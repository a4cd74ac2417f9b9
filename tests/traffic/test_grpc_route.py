"""GRPCRoutes: what differs from HTTPRoutes, which is how their rules match."""

from __future__ import annotations

from typing import Any

import pytest

from rollout_lws.api.rollout_spec import HeaderMatch, HttpMatch, PathMatch
from rollout_lws.objects.resources import GRPC_ROUTES
from rollout_lws.sandbox.apiserver import ApiServer
from rollout_lws.traffic.route.kinds import GRPC_RULES as RULES
from rollout_lws.traffic.split import ALL_STABLE, Backend, Backends, Split
from tests.traffic.build import KEYS, A, canonical

OURS = Backends(Backend("a"), Backend("a-canary"))
TESTER = HttpMatch(headers=(HeaderMatch(name="x-canary", value="yes"),))
METHOD = {"method": {"service": "inference.GRPCInferenceService", "method": "ModelInfer"}}


@pytest.fixture
def live() -> Any:
    """As the API server stores it, with its defaults."""
    backend = {"name": "a", "port": 8001}
    rules = [{"name": "infer", "matches": [METHOD], "backendRefs": [backend]}, {"backendRefs": [backend]}]
    body = {"metadata": {"name": "llama", "namespace": "default"}, "spec": {"rules": rules}}
    return ApiServer(clock=lambda: 0.0).create(GRPC_ROUTES, body)


def written(live: Any, split: Split) -> Any:
    """The route as it stands after the write: nothing that the API server adds to it is written again."""
    after = RULES.routed(live, A, KEYS, OURS, split)
    body = {member: value for member, value in after.items() if member != "metadata"}
    head = {member: after["metadata"][member] for member in ("name", "namespace", "annotations")}
    stored = ApiServer(clock=lambda: 0.0).create(GRPC_ROUTES, {**body, "metadata": head})
    assert stored["spec"] == after["spec"]
    assert RULES.routed(stored, A, KEYS, OURS, split)["spec"] == stored["spec"]
    assert RULES.drifted(stored, A, KEYS) == ()
    return stored


def test_weights_and_matches_are_written_and_taken_back(live: Any) -> None:
    after = written(live, Split(25, (TESTER,)))
    rules = after["spec"]["rules"]
    assert [[ref["weight"] for ref in rule["backendRefs"]] for rule in rules] == [[75, 25], [75, 25], [1], [1]]
    header = {"type": "Exact", "name": "x-canary", "value": "yes"}
    assert rules[2]["matches"] == [{"method": {"type": "Exact", **METHOD["method"]}, "headers": [header]}]
    assert rules[3]["matches"] == [{"headers": [header]}]
    assert "name" not in rules[2]
    back = RULES.own(RULES.routed(after, A, KEYS, OURS, ALL_STABLE), A, KEYS)
    assert canonical(back["spec"]) == canonical(live["spec"])


@pytest.mark.parametrize(
    ("match", "what"),
    [
        (HttpMatch(path=PathMatch(type="Exact", value="/beta")), "path"),
        (HttpMatch(query_params=(HeaderMatch(name="v", value="2"),)), "query parameter"),
    ],
)
def test_a_match_that_no_rpc_has_is_refused(live: Any, match: HttpMatch, what: str) -> None:
    found = RULES.split_problem(live, OURS, Split(10, (TESTER, match)))
    assert found == f"match 2 of a step matches a {what}, which no GRPCRoute does; match headers"
    assert RULES.split_problem(live, OURS, Split(10, (TESTER,))) == ""
