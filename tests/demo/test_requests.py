"""The demo's verdict on requests: who is asked for, what counts as lost, and what has to come back."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest

from rollout_lws.cli.demo import manifests
from rollout_lws.cli.demo.checks import Listing, given_back
from rollout_lws.cli.demo.requests import (
    Measured,
    Routing,
    answered,
    bad_version_checks,
    client_of,
    requests_checks,
    routing_of,
)
from rollout_lws.objects.resources import ENDPOINT_SLICES, PODS, SERVICES
from rollout_lws.sandbox.apiserver import ApiServer
from rollout_lws.sandbox.meter import Client, Cut, Failure
from rollout_lws.traffic.registry import named_in

Object = dict[str, Any]
SERVICE, _, ROUTE = manifests.traffic()


def routing(service: str = manifests.SERVICE, **words: Any) -> Routing:
    return Routing(2.0, named_in({"service": service, **words}))


BY_POOLS = {"httpRouteName": manifests.ROUTE, "inferencePool": {"stable": "old", "canary": "new"}}
ROUTING = routing(gateway={"httpRouteName": manifests.ROUTE})
WELL = Measured(
    20.0,
    over={"old": 0.6, "new": 0.4, "lost": 0.0},
    end={"old": 0.0, "new": 1.0, "lost": 0.0},
    most={"old": 1.0, "new": 1.0, "lost": 0.0},
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


def test_surge_groups_that_lws_drops_in_a_promotion_are_not_ours_and_those_of_an_abort_are() -> None:
    dropped = replace(WELL, cuts=(replace(CUT, cause="surge dropped"),), end={"old": 1.0, "new": 0.0, "lost": 0.0})
    assert failed(replace(dropped, end=WELL.end)) == []
    assert failed(dropped, "old") == ["the new version's streams could end"]


FOUND = replace(
    WELL,
    over={"old": 0.95, "new": 0.05, "lost": 0.0},
    end={"old": 1.0, "new": 0.0, "lost": 0.0},
    most={"old": 1.0, "new": 0.1, "lost": 0.0},
)


def test_a_bad_version_that_got_no_more_than_its_share_passes_and_its_requests_are_counted() -> None:
    checks = bad_version_checks(FOUND, 0.1)
    assert all(check.passed for check in checks)
    assert checks[-1].detail == "at most 10% at any moment; 200 of 4,000 went to the new version, none lost"


@pytest.mark.parametrize("most", [0.0, 0.1001, 0.4])
def test_a_bad_version_that_got_more_or_was_never_tried_is_found(most: float) -> None:
    checks = bad_version_checks(replace(FOUND, most=FOUND.most | {"new": most}), 0.1)
    assert [check.claim for check in checks if not check.passed] == ["the bad version was found at 10% of the requests"]


def test_requests_that_a_bad_version_loses_are_counted() -> None:
    lost = replace(FOUND, failures=(Failure("users", 2.0, 4.0, 0.1, "the pod is gone"),))
    assert lost.told == "200 of 4,000 went to the new version, 40 lost"
    checks = bad_version_checks(lost, 0.1)
    assert [check.claim for check in checks if not check.passed] == ["no request was lost"]


INGRESS: Object = {
    "metadata": {"name": "llama", "namespace": "default"},
    "spec": {
        "rules": [
            {"host": "other.example.com"},
            {
                "host": "llama.example.com",
                "http": {
                    "paths": [
                        {"path": "/static", "pathType": "Prefix", "backend": {"resource": {"kind": "Bucket"}}},
                        {"path": "/v1", "pathType": "Prefix", "backend": {"service": {"name": manifests.SERVICE}}},
                    ]
                },
            },
        ]
    },
}
POOLS: tuple[Object, ...] = tuple(
    {"metadata": {"name": name}, "spec": {"selector": {"matchLabels": {"app": "llama"}}}} for name in ("old", "new")
)


def with_rule(match: Object | None, **backend: Any) -> Object:
    route = copy.deepcopy(ROUTE)
    rule = {"backendRefs": [{"name": manifests.SERVICE, "port": 80, **backend}]}
    route["spec"]["rules"] = [rule if match is None else {**rule, "matches": [match]}]
    return route


def listing(
    service: Object = SERVICE, route: Object = ROUTE, ingress: Object = INGRESS, pools: tuple[Object, ...] = POOLS
) -> Listing:
    found = {"Service": (service,), "HTTPRoute": (route,), "Ingress": (ingress,), "InferencePool": pools}
    return {kind: {each["metadata"]["name"]: each for each in objects} for kind, objects in found.items()}


def test_a_client_sends_what_the_rule_matches() -> None:
    match = {
        "path": {"type": "Exact", "value": "/v1/chat"},
        "method": "GET",
        "headers": [{"name": "x-model", "value": "llama"}],
        "queryParams": [{"name": "a", "value": "b"}],
    }
    assert client_of(listing(route=with_rule(match)), ROUTING) == Client(
        "users",
        route=manifests.ROUTE,
        path="/v1/chat",
        method="GET",
        headers={"x-model": "llama"},
        query={"a": "b"},
    )
    assert client_of(listing(route=with_rule(None)), ROUTING) == Client("users", route=manifests.ROUTE)


def test_a_client_of_pools_looks_for_the_rule_to_the_pool_and_not_to_a_service_of_that_name() -> None:
    pooled = routing(gateway=BY_POOLS)
    to_pool = with_rule(None, name="old", kind="InferencePool", group="inference.networking.k8s.io")
    assert client_of(listing(route=to_pool), pooled) == Client("users", route=manifests.ROUTE)
    assert client_of(listing(route=with_rule(None, name="old")), pooled) is None
    assert client_of(listing(route=to_pool), routing("old", gateway={"httpRouteName": manifests.ROUTE})) is None


def test_a_client_of_an_ingress_takes_the_path_to_the_service() -> None:
    by_ingress = routing(ingress={"name": "llama"})
    assert client_of(listing(), by_ingress) == Client("users", ingress="llama", host="llama.example.com", path="/v1")
    assert client_of(listing(), routing("other", ingress={"name": "llama"})) is None


def test_a_client_of_an_ingress_is_routed_as_the_declared_controller_does() -> None:
    said = {"service": manifests.SERVICE, "ingress": {"name": "llama", "classType": "traefik"}}
    named = routing_of({"spec": {"strategy": {"canary": {"trafficRoutings": [said]}}}})
    assert named is not None
    found = client_of(listing(), named)
    assert found is not None
    assert found.ingress_class == "traefik"


def test_a_client_calls_the_method_that_a_grpc_rule_matches() -> None:
    backend = {"name": manifests.SERVICE, "port": 80}
    rules = [{"matches": [{"method": {"type": "Exact", "service": "llm.Chat"}}], "backendRefs": [backend]}]
    live = {"metadata": {"name": "rpc", "namespace": "default"}, "spec": {"rules": rules}}
    found = client_of({"GRPCRoute": {"rpc": live}}, routing(gateway={"grpcRouteName": "rpc"}))
    assert found == Client("users", grpc_route="rpc", path="/llm.Chat/any")


def test_a_client_of_a_virtual_service_sends_what_its_rule_matches() -> None:
    match = {"uri": {"prefix": "/v1"}, "headers": {"x-model": {"exact": "llama"}}}
    routes = [
        {"match": [match], "route": [{"destination": {"host": f"{manifests.SERVICE}.default.svc.cluster.local"}}]}
    ]
    live = {"metadata": {"name": "mesh", "namespace": "default"}, "spec": {"http": routes}}
    found = client_of({"VirtualService": {"mesh": live}}, routing(istio={"virtualServiceName": "mesh"}))
    assert found == Client("users", virtual_service="mesh", path="/v1", headers={"x-model": "llama"})


def test_a_rule_of_patterns_or_to_others_gives_no_client() -> None:
    pattern = {"path": {"type": "RegularExpression", "value": "/v[12]/.*"}}
    assert client_of(listing(route=with_rule(pattern)), ROUTING) is None
    assert client_of(listing(route=with_rule(None, name="other")), ROUTING) is None


def test_a_rollout_that_names_neither_route_nor_ingress_is_not_routed() -> None:
    routed = manifests.rollout("v1", manifests.workload()["metadata"], routed=True)
    assert routing_of(routed) == ROUTING
    words = routed["spec"]["strategy"]["canary"]["trafficRoutings"][0]
    words["gateway"]["inferencePool"] = {"stable": "old", "canary": "new"}
    assert routing_of(routed) == routing(gateway=BY_POOLS)
    del words["gateway"]
    assert routing_of(routed) is None
    words["ingress"] = {"name": "llama"}
    assert routing_of(routed) == routing(ingress={"name": "llama"})
    assert routing_of(manifests.rollout("v1", manifests.workload()["metadata"])) is None


POD: Object = {
    "metadata": {"name": "a", "namespace": "default"},
    "spec": {"containers": [{"name": "server", "image": "a"}]},
    "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
}
SLICE: Object = {
    "metadata": {
        "name": "a",
        "namespace": "default",
        "labels": {"kubernetes.io/service-name": manifests.SERVICE},
    },
    "addressType": "IPv4",
}
EVERY = routing(gateway=BY_POOLS, ingress={"name": "llama"})


@pytest.mark.parametrize("member", [("spec", {}), ("metadata", {"annotations": {"rollouts.kruise.io/original": "{}"}})])
def test_what_is_not_given_back_is_found(member: tuple[str, Object]) -> None:
    name, change = member
    service, route, ingress, pool = (
        {**each, name: {**each[name], **change} if change else {}} for each in (SERVICE, ROUTE, INGRESS, POOLS[1])
    )
    before = listing()
    unchanged = given_back(before, before, EVERY.managed)
    assert (unchanged.passed, unchanged.detail) == (
        True,
        "Service llama-api, HTTPRoute llama, Ingress llama, InferencePool old, InferencePool new",
    )
    for after, what in (
        (listing(service=service), "Service llama-api"),
        (listing(route=route), "HTTPRoute llama"),
        (listing(ingress=ingress), "Ingress llama"),
        (listing(pools=(POOLS[0], pool)), "InferencePool new"),
    ):
        assert given_back(before, after, EVERY.managed).detail == f"changed: {what}"
    assert not given_back(before, {kind: {} for kind in before}, ROUTING.managed).passed


def test_requests_are_answered_once_an_endpoint_slice_lists_a_pod() -> None:
    server = ApiServer(lambda: 0.0)
    client = Client("users", service=manifests.SERVICE)
    server.create(SERVICES, manifests.traffic()[0])
    assert not answered(server, client)
    pod = server.create(PODS, POD)
    server.create(ENDPOINT_SLICES, {**SLICE, "endpoints": []})
    assert not answered(server, client)
    ready = {"targetRef": {"kind": "Pod", "name": "a", "uid": pod["metadata"]["uid"]}, "conditions": {"ready": True}}
    change = {"endpoints": [{"addresses": ["10.0.0.1"], **ready}]}
    server.patch(ENDPOINT_SLICES, "default", SLICE["metadata"]["name"], change)
    assert answered(server, client)
