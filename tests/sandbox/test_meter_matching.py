"""Where requests go by what a data plane knows: matches, weights, endpoints, as tables."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from rollout_lws.objects.resources import (
    ENDPOINT_SLICES,
    HTTP_ROUTES,
    INFERENCE_POOLS,
    INGRESSES,
    PODS,
    SERVICES,
    Resource,
)
from rollout_lws.sandbox.meter import Client
from rollout_lws.sandbox.meter.gateway_route import rule_for
from rollout_lws.sandbox.meter.seen import Key, Object, Seen, cluster
from rollout_lws.sandbox.meter.split import split

USERS = Client("users", route="llama")


def at(resource: Resource, name: str, **parts: Any) -> tuple[Key, Object]:
    return (resource, "default", name), parts


def service(name: str, *uids: str) -> list[tuple[Key, Object]]:
    return [
        at(SERVICES, name, ports=[{"port": 80}]),
        at(ENDPOINT_SLICES, f"{name}-x", service=name, uids=uids),
    ]


def match(path: str = "/", kind: str = "PathPrefix", **more: Any) -> dict[str, Any]:
    return {"path": {"type": kind, "value": path}, **more}


def equal(name: str, value: str, kind: str = "Exact") -> dict[str, str]:
    return {"type": kind, "name": name, "value": value}


def rule(name: str, *matches: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "matches": list(matches) or [match()]}


def ref(name: str, weight: int = 1, port: int = 80, **more: Any) -> dict[str, Any]:
    return {"group": "", "kind": "Service", "name": name, "port": port, "weight": weight, **more}


def pool_ref(name: str, weight: int = 1) -> dict[str, Any]:
    return {"group": INFERENCE_POOLS.group, "kind": "InferencePool", "name": name, "weight": weight}


def routed(*refs: dict[str, Any], known: list[tuple[Key, Object]]) -> dict[str, str]:
    rules = [{"matches": [match()], "backendRefs": list(refs)}]
    clusters = [(cluster("default", each), dict[str, Any]()) for each in refs]
    return told(Seen([at(HTTP_ROUTES, "llama", rules=rules), *known, *clusters]), USERS)


def test_a_backend_that_the_gateway_has_not_heard_of_fails_its_share() -> None:
    route = at(
        HTTP_ROUTES, "llama", rules=[{"matches": [match()], "backendRefs": [ref("stable", 3), ref("canary", 1)]}]
    )
    known = [route, (cluster("default", ref("stable")), {}), *service("stable", "s"), *service("canary", "c")]
    assert told(Seen(known), USERS) == {"s": "3/4", "the gateway does not know Service canary yet": "1/4"}


def told(seen: Seen, client: Client) -> dict[str, str]:
    found = split(seen, client)
    assert sum(found.values()) == 1
    return {target.uid or target.error: str(share) for target, share in found.items()}


TAGGED = {"headers": {"X-Canary": "yes"}}


@pytest.mark.parametrize(
    ("rules", "request_", "answered_by"),
    [
        ([rule("a"), rule("b")], {}, "a"),
        ([rule("a", match("/v1")), rule("b")], {"path": "/v1/chat"}, "a"),
        ([rule("a"), rule("b", match("/v1"))], {"path": "/v1"}, "b"),
        ([rule("a"), rule("b", match("/v1"))], {"path": "/v10"}, "a"),
        ([rule("a"), rule("b", match("/v1/"))], {"path": "/v1/chat"}, "b"),
        ([rule("a", match("/v1/chat")), rule("b", match("/v1/chat", "Exact"))], {"path": "/v1/chat"}, "b"),
        ([rule("a", match("/v1")), rule("b", match("/v1/cha", "Exact"))], {"path": "/v1/chat"}, "a"),
        ([rule("a", match("/v1/chat")), rule("b", match("/v1/.*", "RegularExpression"))], {"path": "/v1/chat"}, "b"),
        ([rule("a", match("/v1")), rule("b", match("/v", "RegularExpression"))], {"path": "/v1"}, "a"),
        ([rule("a", match("/v1")), rule("b", match(method="POST"))], {"path": "/v1"}, "a"),
        ([rule("a"), rule("b", match(method="POST"))], {}, "b"),
        ([rule("a"), rule("b", match(method="GET"))], {}, "a"),
        ([rule("a"), rule("b", match(headers=[equal("x-canary", "yes")]))], TAGGED, "b"),
        ([rule("a"), rule("b", match(headers=[equal("x-canary", "no")]))], TAGGED, "a"),
        ([rule("a"), rule("b", match(headers=[equal("x-canary", "ye.", "RegularExpression")]))], TAGGED, "b"),
        ([rule("a"), rule("b", match(headers=[equal("x-canary", "ye", "RegularExpression")]))], TAGGED, "a"),
        (
            [rule("a", match("/v1")), rule("b", match(headers=[equal("x-canary", "yes")]))],
            TAGGED | {"path": "/v1"},
            "a",
        ),
        (
            [rule("a", match(method="POST")), rule("b", match(headers=[equal("x-canary", "yes")]))],
            TAGGED,
            "a",
        ),
        ([rule("a"), rule("b", match(queryParams=[equal("v", "2")]))], {"query": {"v": "2"}}, "b"),
        ([rule("a"), rule("b", match("/v2"), match("/v1/chat"))], {"path": "/v1/chat"}, "b"),
        ([rule("a", match("/v1"))], {"path": "/v2"}, None),
    ],
)
def test_the_most_specific_match_answers_then_the_first(
    rules: list[dict[str, Any]], request_: dict[str, Any], answered_by: str | None
) -> None:
    found = rule_for(rules, Client("users", route="llama", **request_))
    assert (found["name"] if found else None) == answered_by


def test_weights_share_requests_and_endpoints_share_evenly() -> None:
    known = [*service("stable", "s0", "s1", "s2"), *service("canary", "c0")]
    found = routed(ref("stable", 90), ref("canary", 10), known=known)
    assert found == {"s0": "3/10", "s1": "3/10", "s2": "3/10", "c0": "1/10"}


def test_weight_zero_sends_nothing() -> None:
    known = [*service("stable", "s0"), *service("canary", "c0")]
    assert routed(ref("stable", 0), ref("canary", 7), known=known) == {"c0": "1"}


def test_all_weights_zero_is_an_error() -> None:
    found = routed(ref("stable", 0), ref("canary", 0), known=service("stable", "s0"))
    assert found == {"no backend of HTTPRoute llama has weight": "1"}


@pytest.mark.parametrize(
    ("backend", "error"),
    [
        (ref("missing", 1), 'Service "missing" not found'),
        (ref("empty", 1), 'no ready endpoint of Service "empty"'),
        (ref("empty", 1, 81), 'Service "empty" has no port 81'),
        (ref("empty", 1, namespace="other"), "Service other/empty is in another namespace"),
        (ref("b", 1, group="example.org", kind="Bucket"), "Bucket b is no kind of backend"),
        (pool_ref("missing"), 'InferencePool "missing" not found'),
        (pool_ref("pool"), 'no ready pod of InferencePool "pool"'),
    ],
)
def test_a_backend_that_cannot_answer_fails_its_share_and_no_more(backend: dict[str, Any], error: str) -> None:
    known = [*service("stable", "s0"), *service("empty"), at(INFERENCE_POOLS, "pool", labels={"v": "9"})]
    assert routed(ref("stable", 3), backend, known=known) == {"s0": "3/4", error: "1/4"}


def test_a_pool_takes_the_ready_pods_that_its_selector_matches() -> None:
    known = [
        at(INFERENCE_POOLS, "pool", labels={"v": "2"}),
        at(PODS, "a", uid="a", labels={"v": "2", "x": "y"}, ready=True),
        at(PODS, "b", uid="b", labels={"v": "2"}, ready=False),
        at(PODS, "c", uid="c", labels={"v": "1"}, ready=True),
        at(PODS, "d", uid="d", labels={"v": "2"}, ready=True),
    ]
    assert routed(pool_ref("pool"), known=known) == {"a": "1/2", "d": "1/2"}


def test_a_client_of_a_service_needs_no_route() -> None:
    assert told(Seen(service("llama", "a", "b")), Client("inside", service="llama")) == {"a": "1/2", "b": "1/2"}
    assert told(Seen(), Client("inside", service="llama")) == {'Service "llama" not found': "1"}


def test_a_route_that_nobody_accepted_and_a_path_without_rule_are_errors() -> None:
    assert told(Seen(), USERS) == {"no accepted HTTPRoute llama": "1"}
    seen = Seen([at(HTTP_ROUTES, "llama", rules=[{"matches": [match("/v1")], "backendRefs": []}])])
    assert told(seen, USERS) == {"no rule of HTTPRoute llama matches /": "1"}


def test_two_backend_refs_to_one_service_add_up() -> None:
    assert routed(ref("stable", 1), ref("stable", 1), known=service("stable", "s0")) == {"s0": "1"}


@pytest.mark.parametrize("ways", [{}, {"route": "a", "service": "b"}])
def test_a_client_enters_by_exactly_one_way(ways: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="exactly one of route, service"):
        Client("users", **ways)  # type: ignore[arg-type]


def ingress(name: str, service: str, path: str = "/", host: str = "", kind: str = "Prefix", **options: str) -> Any:
    backend = {"service": {"name": service, "port": {"number": 80}}}
    rules = [{"host": host, "http": {"paths": [{"path": path, "pathType": kind, "backend": backend}]}}]
    annotations = {f"nginx.ingress.kubernetes.io/{key.replace('_', '-')}": value for key, value in options.items()}
    return at(INGRESSES, name, spec={"rules": rules}, annotations=annotations)


CONTROLLERS = ("nginx", "traefik")


@pytest.mark.parametrize("controller", CONTROLLERS)
@pytest.mark.parametrize(
    ("options", "request_", "share"),
    [
        ({"canary": "true", "canary_weight": "10"}, {}, "1/10"),
        ({"canary": "true"}, {}, "0"),
        ({"canary": "true", "canary_weight": "ten"}, {}, "0"),
        ({"canary": "true", "canary_weight": "200"}, {}, "1"),
        ({"canary": "true", "canary_by_header": "x", "canary_by_header_pattern": "["}, {"headers": {"x": "["}}, "0"),
        ({"canary": "false", "canary_weight": "10"}, {}, "0"),
        ({"canary": "true", "canary_weight": "100"}, {}, "1"),
        ({"canary": "true", "canary_weight": "10", "canary_weight_total": "1000"}, {}, "1/100"),
        ({"canary": "true", "canary_by_header": "x"}, {"headers": {"X": "always"}}, "1"),
        ({"canary": "true", "canary_by_header": "x", "canary_weight": "50"}, {"headers": {"x": "never"}}, "0"),
        ({"canary": "true", "canary_by_header": "x", "canary_weight": "50"}, {"headers": {"x": "other"}}, "1/2"),
        ({"canary": "true", "canary_by_header": "x", "canary_by_header_value": "v2"}, {"headers": {"x": "v2"}}, "1"),
        (
            {"canary": "true", "canary_by_header": "x", "canary_by_header_value": "v2"},
            {"headers": {"x": "always"}},
            "0",
        ),
        (
            {"canary": "true", "canary_by_header": "x", "canary_by_header_pattern": "v[2-9]"},
            {"headers": {"x": "v3"}},
            "1",
        ),
        ({"canary": "true", "canary_by_cookie": "c"}, {"cookies": {"c": "always"}}, "1"),
        (
            {"canary": "true", "canary_by_header": "x", "canary_by_cookie": "c"},
            {"headers": {"x": "never"}, "cookies": {"c": "always"}},
            "0",
        ),
    ],
)
def test_a_canary_ingress_takes_by_header_then_cookie_then_weight(
    options: dict[str, str], request_: dict[str, Any], share: str, controller: str
) -> None:
    canary = ingress("llama-canary", "canary", **options)
    seen = Seen([ingress("llama", "stable"), canary, *service("stable", "s"), *service("canary", "c")])
    found = told(seen, Client("users", ingress="llama", ingress_class=controller, **request_))
    assert found == {name: value for name, value in {"s": str(1 - Fraction(share)), "c": share}.items() if value != "0"}


@pytest.mark.parametrize("controller", CONTROLLERS)
@pytest.mark.parametrize("other", [{"path": "/v2"}, {"host": "else.example"}, {"kind": "Exact"}])
def test_a_canary_ingress_for_another_place_takes_nothing(other: dict[str, str], controller: str) -> None:
    canary = ingress("llama-canary", "canary", canary="true", canary_weight="100", **other)
    seen = Seen([ingress("llama", "stable"), canary, *service("stable", "s"), *service("canary", "c")])
    assert told(seen, Client("users", ingress="llama", ingress_class=controller)) == {"s": "1"}


@pytest.mark.parametrize(
    ("controller", "answers"), [("nginx", {'no ready endpoint of Service "canary"': "1"}), ("traefik", {"s": "1"})]
)
def test_a_canary_ingress_without_endpoints_fails_requests_or_is_ignored(
    controller: str, answers: dict[str, str]
) -> None:
    canary = ingress("llama-canary", "canary", canary="true", canary_weight="100")
    seen = Seen([ingress("llama", "stable"), canary, *service("stable", "s"), *service("canary")])
    assert told(seen, Client("users", ingress="llama", ingress_class=controller)) == answers


def test_to_a_controller_of_which_nothing_is_known_no_canary_ingress_counts() -> None:
    canary = ingress("llama-canary", "canary", canary="true", canary_weight="100")
    seen = Seen([ingress("llama", "stable"), canary, *service("stable", "s"), *service("canary", "c")])
    assert told(seen, Client("users", ingress="llama", ingress_class="higress")) == {"s": "1"}


@pytest.mark.parametrize(("controller", "share"), [("nginx", {"s": "1"}), ("traefik", {"s": "3/4", "c": "1/4"})])
@pytest.mark.parametrize("backend", ["stable", "another"])
def test_a_canary_ingress_is_for_its_path_or_for_all_paths_to_the_service(
    controller: str, share: dict[str, str], backend: str
) -> None:
    canary = ingress("llama-canary", "canary", canary="true", canary_weight="25")
    ingresses = [ingress("llama", "stable"), ingress("second", backend, "/second"), canary]
    known = [*service("stable", "s"), *service("canary", "c"), *service("another", "a")]
    found = told(
        Seen([*ingresses, *known]), Client("users", ingress="second", path="/second", ingress_class=controller)
    )
    assert found == (share if backend == "stable" else {"a": "1"})


def test_an_ingress_answers_its_hosts_and_paths_and_else_by_its_default() -> None:
    seen = Seen([ingress("llama", "stable", "/v1", "llm.example"), *service("stable", "s")])
    assert told(seen, Client("users", ingress="llama", host="llm.example", path="/v1/chat")) == {"s": "1"}
    assert told(seen, Client("users", ingress="llama", path="/v1")) == {"no path of Ingress llama fits /v1": "1"}
    assert told(seen, Client("users", ingress="other")) == {'Ingress "other" not found': "1"}
    default = at(INGRESSES, "llama", spec={"defaultBackend": {"service": {"name": "stable"}}}, annotations={})
    assert told(Seen([default, *service("stable", "s")]), Client("users", ingress="llama")) == {"s": "1"}
