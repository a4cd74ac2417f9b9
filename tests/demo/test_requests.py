"""The demo's verdict on requests: who is asked for, what counts as lost, and what has to come back."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest

from rollout_lws.cli.demo import manifests
from rollout_lws.cli.demo.checks import Listing
from rollout_lws.cli.demo.requests import (
    Measured,
    Routing,
    client_of,
    given_back,
    requests_checks,
    routing_of,
)
from rollout_lws.sandbox.meter import Client, Cut, Failure

Object = dict[str, Any]
SERVICE, _, ROUTE = manifests.traffic()
ROUTING = Routing(manifests.SERVICE, manifests.ROUTE, 2.0)
WELL = Measured(
    20.0,
    over={"old": 0.6, "new": 0.4, "lost": 0.0},
    end={"old": 0.0, "new": 1.0, "lost": 0.0},
    failures=(),
    cuts=(),
)
CUT = Cut("users", 10.0, 0.25, "llama-canary-0", "llama-canary", "0", "new", "workload deleted")


def failed(measured: Measured, expected: str = "new") -> list[str]:
    return [check.claim for check in requests_checks(measured, expected=expected) if not check.passed]


def test_a_release_without_losses_passes_and_says_where_requests_went() -> None:
    assert failed(WELL) == []
    assert requests_checks(WELL, expected="new")[0].detail == "over 20 s: old version 60%, new version 40%"


def test_the_worst_of_the_lost_requests_is_named() -> None:
    short = Failure("users", 1.0, 1.5, 0.25, "its group is not ready", pod="llama-0")
    long = Failure("users", 2.0, 4.0, 0.5, "no backend has weight")
    measured = replace(WELL, failures=(short, long))
    assert failed(measured) == ["no request was lost"]
    detail = requests_checks(measured, expected="new")[0].detail
    assert detail == "50% of them for 2.00 s (no backend has weight), and 1 more"


@pytest.mark.parametrize("end", [{"old": 0.2, "new": 0.8, "lost": 0.0}, {"old": 0.0, "new": 0.0, "lost": 1.0}])
def test_requests_that_end_up_elsewhere_are_found(end: dict[str, float]) -> None:
    assert failed(replace(WELL, end=end)) == ["all requests go to the new version"]
    assert failed(WELL, "old") == ["all requests go to the old version"]


def test_streams_that_we_cut_are_found_and_those_of_groups_that_lws_renews_are_not_ours() -> None:
    assert failed(replace(WELL, cuts=(CUT,))) == ["the new version's streams could end"]
    assert failed(replace(WELL, cuts=(replace(CUT, cause="renewed"),))) == []


def with_rule(match: Object | None, service: str = manifests.SERVICE) -> Object:
    route = copy.deepcopy(ROUTE)
    rule = {"backendRefs": [{"name": service, "port": 80}]}
    route["spec"]["rules"] = [rule if match is None else {**rule, "matches": [match]}]
    return route


def test_a_client_sends_what_the_rule_matches() -> None:
    match = {
        "path": {"type": "Exact", "value": "/v1/chat"},
        "method": "GET",
        "headers": [{"name": "x-model", "value": "llama"}],
        "queryParams": [{"name": "a", "value": "b"}],
    }
    assert client_of(with_rule(match), manifests.SERVICE) == Client(
        "users",
        route=manifests.ROUTE,
        path="/v1/chat",
        method="GET",
        headers={"x-model": "llama"},
        query={"a": "b"},
    )
    assert client_of(with_rule(None), manifests.SERVICE) == Client("users", route=manifests.ROUTE)


def test_a_rule_of_patterns_or_to_others_gives_no_client() -> None:
    pattern = {"path": {"type": "RegularExpression", "value": "/v[12]/.*"}}
    assert client_of(with_rule(pattern), manifests.SERVICE) is None
    assert client_of(with_rule(None, "other"), manifests.SERVICE) is None


def test_a_rollout_that_names_no_route_is_not_routed() -> None:
    routed = manifests.rollout("v1", manifests.workload()["metadata"], routed=True)
    assert routing_of(routed) == ROUTING
    del routed["spec"]["strategy"]["canary"]["trafficRoutings"][0]["gateway"]
    assert routing_of(routed) is None
    assert routing_of(manifests.rollout("v1", manifests.workload()["metadata"])) is None


def listing(service: Object, route: Object) -> Listing:
    return Listing({}, (), (), (), (service,), (), (route,))


@pytest.mark.parametrize("member", [("spec", {}), ("metadata", {"annotations": {"rollouts.kruise.io/original": "{}"}})])
def test_a_service_or_route_that_is_not_given_back_is_found(member: tuple[str, Object]) -> None:
    name, change = member
    service, route = ({**each, name: {**each[name], **change} if change else {}} for each in (SERVICE, ROUTE))
    before = listing(SERVICE, ROUTE)
    assert given_back(before, before, ROUTING).passed
    assert given_back(before, listing(service, ROUTE), ROUTING).detail == f"changed: Service {manifests.SERVICE}"
    assert given_back(before, listing(SERVICE, route), ROUTING).detail == f"changed: HTTPRoute {manifests.ROUTE}"
    assert not given_back(before, Listing({}, (), (), (), (), (), ()), ROUTING).passed
