"""VirtualServices: HTTP routes read as rules of the Gateway API's shape, and written as the user wrote them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollout_lws.api.rollout_spec import HeaderMatch, HeaderValue, HttpMatch, PathMatch, RequestHeaderModifier
from rollout_lws.traffic.route import istio
from rollout_lws.traffic.route.kinds import VIRTUAL_SERVICE_RULES as RULES
from rollout_lws.traffic.route.pair import PairRules
from rollout_lws.traffic.split import ALL_STABLE, Backend, Backends, Split, listed
from tests.traffic.build import KEYS, NOW, A, B, canonical, property_test

OURS = Backends(Backend("a"), Backend("a-canary"))
THEIRS = Backends(Backend("b"), Backend("b-canary"))
PAIR = PairRules(RULES)
TESTER = HttpMatch(headers=(HeaderMatch(name="X-Canary", value="yes"),))
BETA = HttpMatch(path=PathMatch(type="Exact", value="/beta"), query_params=(HeaderMatch(name="v", value="2"),))
MODIFIER = RequestHeaderModifier(set=(HeaderValue(name="x-version", value="new"),), remove=("x-old",))


def to(host: str, weight: int | None = None, **more: Any) -> dict[str, Any]:
    subset = {"subset": more.pop("subset")} if "subset" in more else {}
    made = {"destination": {"host": host, "port": {"number": 8000}, **subset}, **more}
    return made if weight is None else {**made, "weight": weight}


def virtual_service(*routes: Mapping[str, Any], **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "networking.istio.io/v1",
        "kind": "VirtualService",
        "metadata": {"name": "llama", "namespace": "prod", "generation": 1},
        "spec": {
            "hosts": ["llama.example.com"],
            "gateways": ["front"],
            **spec,
            "http": [dict(each) for each in routes],
        },
    }


def stored(live: Any) -> Any:
    """As an API server stores it: objects have no order."""
    return json.loads(json.dumps(live, sort_keys=True))


def routed(live: Any, split: Split, by: str = A, both: Backends = OURS) -> Any:
    return stored(RULES.routed(live, by, KEYS, both, split))


def http(live: Any) -> list[Any]:
    found: list[Any] = live["spec"]["http"]
    return found


def weights(route: Mapping[str, Any]) -> dict[str, int | None]:
    return {each["destination"]["host"]: each.get("weight") for each in route["route"]}


RICH = {
    "name": "chat",
    "match": [
        {
            "uri": {"prefix": "/v1/"},
            "headers": {"x-b": {"exact": "1"}, "x-a": {"regex": "b.*"}, "x-c": {}},
            "queryParams": {"q": {"exact": "1"}},
            "method": {"exact": "POST"},
            "gateways": ["front"],
            "ignoreUriCase": True,
        },
        {"uri": {"exact": "/health"}, "withoutHeaders": {"x-d": {"prefix": "e"}}},
    ],
    "route": [to("a", 70, subset="llama"), to("other.example.com", 30, headers={"response": {"add": {"x": "y"}}})],
    "timeout": "600s",
    "retries": {"attempts": 2, "perTryTimeout": "300s"},
    "rewrite": {"uri": "/"},
    "headers": {"request": {"set": {"x-team": "ml"}}, "response": {"remove": ["server"]}},
    "mirror": {"host": "shadow"},
}
REDIRECT = {"match": [{"uri": {"exact": "/"}}], "redirect": {"uri": "/docs"}}


def test_what_a_release_does_not_change_is_written_as_it_was() -> None:
    live = virtual_service(RICH, REDIRECT, {"route": [to("a"), to("c", 0)]}, tls=[{"route": [to("a")]}])
    assert RULES.with_rules(live, RULES.read(live)) == live
    assert stored(RULES.own(routed(live, Split(30, (TESTER,), MODIFIER)), A, KEYS)) == stored(live)


@pytest.mark.parametrize(
    ("route", "weight", "expected"),
    [
        ([to("a")], 20, {"a": 80, "a-canary": 20}),
        ([to("a", 100)], 20, {"a": 80, "a-canary": 20}),
        ([to("a")], 0, {"a": 1, "a-canary": 0}),
        ([to("a")], 100, {"a": 0, "a-canary": 1}),
        ([to("a", 70), to("c", 30)], 50, {"a": 35, "a-canary": 35, "c": 30}),
        # Beside others a destination without a weight gets nothing.
        ([to("a", 10), to("c")], 50, {"a": 5, "a-canary": 5, "c": None}),
        ([to("a.prod.svc.cluster.local")], 25, {"a.prod.svc.cluster.local": 75, "a-canary.prod.svc.cluster.local": 25}),
        # Hosts with a dot are no Services of a namespace.
        ([to("a.prod", 50), to("a", 50)], 50, {"a.prod": 50, "a": 25, "a-canary": 25}),
        ([to("a.prod.svc", 50), to("a", 50)], 50, {"a.prod.svc": 50, "a": 25, "a-canary": 25}),
        ([to("a.other.svc.mesh", 2), to("a", 2)], 50, {"a.other.svc.mesh": 2, "a": 1, "a-canary": 1}),
    ],
)
def test_the_stable_services_part_is_shared(route: list[Any], weight: int, expected: dict[str, Any]) -> None:
    live = virtual_service({"route": route})
    split = Split(weight) if weight else listed(NOW)
    after = routed(live, split)
    assert weights(http(after)[0]) == expected
    assert RULES.drifted(after, A, KEYS) == ()
    assert stored(RULES.own(after, A, KEYS)) == stored(live)


def test_the_new_destination_has_the_subset_port_and_headers_of_the_old_one() -> None:
    live = virtual_service({"route": [to("a", subset="llama", headers={"request": {"add": {"x": "y"}}})]})
    stable, canary = http(routed(live, Split(10, (), MODIFIER)))[0]["route"]
    assert stable == {**http(live)[0]["route"][0], "weight": 90}
    assert canary["destination"] == {"host": "a-canary", "port": {"number": 8000}, "subset": "llama"}
    assert canary["headers"] == {"request": {"add": {"x": "y"}, "set": {"x-version": "new"}, "remove": ["x-old"]}}


def test_a_match_comes_directly_before_the_rule_that_it_narrows() -> None:
    """Istio takes the first rule that matches: a request that an earlier rule of the user's takes stays with it."""
    health = {"match": [{"uri": {"exact": "/health"}}], "route": [to("health")]}
    rest = {"name": "rest", "route": [to("a")], "timeout": "60s", "retries": {"attempts": 1}}
    last = {"match": [{"uri": {"prefix": "/"}}], "route": [to("other")]}
    after = routed(virtual_service(health, rest, last), Split(0, (TESTER, BETA), MODIFIER))
    assert [each.get("name") for each in http(after)] == [None, None, None, "rest", None]
    tester, beta = http(after)[1:3]
    assert tester == {
        "match": [{"headers": {"x-canary": {"exact": "yes"}}}],
        "route": [to("a-canary", 1)],
        "headers": {"request": {"set": {"x-version": "new"}, "remove": ["x-old"]}},
        "timeout": "60s",
        "retries": {"attempts": 1},
    }
    assert beta["match"] == [{"uri": {"exact": "/beta"}, "queryParams": {"v": {"exact": "2"}}}]
    assert RULES.drifted(after, A, KEYS) == ()
    health, *_, rest, last = http(after)
    moved = {**after, "spec": {**after["spec"], "http": [rest, health, tester, beta, last]}}
    assert http(routed(moved, Split(0, (TESTER, BETA), MODIFIER))) == [tester, beta, rest, health, last]


def test_a_match_is_combined_with_each_of_the_rules_own() -> None:
    after = routed(virtual_service(RICH), Split(0, (TESTER,)))
    assert http(after)[0]["match"] == [
        {**RICH["match"][0], "headers": {**RICH["match"][0]["headers"], "x-canary": {"exact": "yes"}}},  # type: ignore[index]
        {**RICH["match"][1], "headers": {"x-canary": {"exact": "yes"}}},  # type: ignore[index]
    ]
    assert http(after)[0]["rewrite"] == {"uri": "/"}
    assert weights(http(after)[0]) == {"a-canary": 1}


def test_a_match_by_path_that_no_rewrite_of_a_prefix_can_follow_is_refused() -> None:
    found = RULES.split_problem(virtual_service(RICH), OURS, Split(0, (BETA,)))
    assert "matches a path by Exact, and a rule of VirtualService llama replaces the prefix" in found
    assert RULES.split_problem(virtual_service({"route": [to("a")]}), OURS, Split(0, (BETA, TESTER))) == ""


@pytest.mark.parametrize(
    ("live", "said"),
    [
        (
            virtual_service({"route": [to("c")]}),
            "has no rule with a destination to Service/a (it refers to Service/c:8000)",
        ),
        (virtual_service({"route": [to("a", 0)]}), "gives Service/a no requests: its weight is 0 in every rule"),
        (virtual_service({"route": [to("a", 0), to("a-canary", 1)]}), "already refers to Service/a-canary"),
        (virtual_service(REDIRECT), "has no rule with a destination to Service/a (it refers to nothing)"),
    ],
)
def test_what_cannot_be_shared_is_told(live: Any, said: str) -> None:
    assert said in RULES.route_problem(live, OURS)


hosts = st.sampled_from(["a", "a.prod.svc.cluster.local", "b", "c", "api.example.com"])
destinations = st.builds(
    to,
    hosts,
    st.none() | st.integers(0, 100),
    headers=st.sampled_from([{"request": {"set": {"x-a": "1"}}}, {"response": {"add": {"x-b": "2"}}}]),
)
matches = st.sampled_from(
    [*RICH["match"], {"headers": {"x-canary": {"exact": "no"}}}, {"uri": {"prefix": "/"}}, {"port": 80}]  # type: ignore[misc]
)
routes = st.builds(
    lambda route, match, name, more: {
        "route": route,
        **({"match": match} if match else {}),
        **({"name": name} if name else {}),
        **more,
    },
    st.lists(destinations, min_size=1, max_size=3),
    st.lists(matches, max_size=2),
    st.sampled_from(["", "one", "two"]),
    st.sampled_from([{}, {"timeout": "5s"}, {"headers": {"request": {"remove": ["x-c"]}}}]),
)
services = st.builds(
    lambda every: virtual_service(*every, REDIRECT),
    st.lists(routes, min_size=1, max_size=3, unique_by=lambda each: json.dumps(each.get("match"))),
)
splits = st.builds(
    Split,
    st.sampled_from([0, 1, 33, 50, 99, 100]),
    st.lists(st.sampled_from([TESTER, BETA]), unique=True, max_size=2).map(tuple),
    st.sampled_from([None, MODIFIER]),
    st.sampled_from([None, NOW]),
)


@property_test
@given(services)
def test_reading_and_writing_change_nothing(live: dict[str, Any]) -> None:
    assert RULES.with_rules(live, RULES.read(live)) == live
    for rule in RULES.read(live):
        assert istio.normal(rule) == rule


@property_test
@given(services, st.lists(splits, min_size=1, max_size=4))
def test_any_steps_end_with_the_users_own(live: dict[str, Any], steps: list[Split]) -> None:
    after = stored(live)
    for split in steps:
        after = routed(after, split)
        assert RULES.drifted(after, A, KEYS) == ()
        assert routed(after, split) == after, "nothing is left to write"
    assert canonical(stored(RULES.own(after, A, KEYS))) == canonical(stored(live))


@property_test
@given(services, splits, splits, st.booleans())
def test_two_rollouts_share_one_in_any_order(live: dict[str, Any], one: Split, two: Split, first: bool) -> None:
    writes = [(A, OURS, one), (B, THEIRS, two)]
    after = stored(live)
    for by, both, split in writes if first else reversed(writes):
        after = routed(after, split, by, both)
    again = routed(routed(after, one), two, B, THEIRS)
    assert again == after, "neither undoes what the other has written"
    for by in (A, B) if first else (B, A):
        after = stored(RULES.own(after, by, KEYS))
    assert canonical(after) == canonical(stored(live))


def test_between_two_workloads_of_the_user_weight_is_moved() -> None:
    live = virtual_service({"route": [to("a", 100), to("b", 0)]}, {"route": [to("c")]})
    both = Backends(Backend("a"), Backend("b"))
    after = stored(PAIR.routed(live, A, KEYS, both, "llama-a", Split(30, (TESTER,))))
    assert [weights(each) for each in http(after)] == [{"b": 1}, {"a": 70, "b": 30}, {"c": None}]
    assert PAIR.drifted(after, A, KEYS, both) == ()
    assert stored(PAIR.routed(after, A, KEYS, both, "llama-a", Split(30, (TESTER,)))) == after
    back = stored(PAIR.routed(after, A, KEYS, both, "llama-a", ALL_STABLE))
    assert [weights(each) for each in http(back)] == [{"a": 100, "b": 0}, {"c": None}]
