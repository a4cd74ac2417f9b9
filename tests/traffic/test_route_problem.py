"""HTTPRoutes that no release can use: each refused with one sentence that says what to do."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from rollout_lws.api.rollout_spec import HeaderMatch, HttpMatch, PathMatch
from rollout_lws.traffic.route.kinds import HTTP_RULES as RULES
from rollout_lws.traffic.split import Backend, Backends, Split
from tests.traffic.build import KEYS, A, http_route, own, routed, rule, stable_ref

BACKENDS = Backends(Backend("llama-api"), Backend("llama-api-canary"))
POOL = Backend("llama-api", "inference.networking.k8s.io", "InferencePool")
EXACT = HttpMatch(path=PathMatch(type="Exact", value="/beta"))


def route_problem(live: Any, backends: Backends, splits: Iterable[Split] = ()) -> str:
    """Why the route can share no requests, or not as one of the splits says."""
    unsaid = (RULES.split_problem(live, backends, split) for split in splits)
    return RULES.route_problem(live, backends) or next(filter(None, unsaid), "")


def header(value: str, name: str = "x-canary") -> HttpMatch:
    return HttpMatch(headers=(HeaderMatch(name=name, value=value),))


def test_a_route_to_the_stable_version_is_fine_before_and_in_a_release() -> None:
    route = http_route(rule(stable_ref()))
    split = Split(20, (header("always"), EXACT))
    assert route_problem(route, BACKENDS) == route_problem(route, BACKENDS, [split]) == ""
    live = routed(route, A, KEYS, BACKENDS, split)
    assert route_problem(own(live, A, KEYS), BACKENDS, [split]) == ""


def test_kruise_flaw_a_route_that_does_not_refer_to_the_stable_version_is_no_success() -> None:
    said = route_problem(http_route(rule(stable_ref("other"), {"name": "x"})), BACKENDS)
    assert said == (
        "HTTPRoute llama has no rule with a backendRef to Service/llama-api"
        " (it refers to Service/other:8000, Service/x); add one,"
        " or name the backend that the rules refer to in trafficRoutings"
    )
    assert "(it refers to nothing)" in route_problem({"metadata": {"name": "llama"}, "spec": {}}, BACKENDS)


def test_kruise_flaw_a_pool_and_a_service_of_one_name_are_not_taken_for_each_other() -> None:
    pool = http_route(rule({"name": "llama-api", "group": POOL.group, "kind": POOL.kind}))
    assert "it refers to InferencePool.inference.networking.k8s.io/llama-api" in route_problem(pool, BACKENDS)
    assert route_problem(pool, Backends(POOL, Backend("new", POOL.group, POOL.kind))) == ""
    assert "no rule" in route_problem(http_route(rule(stable_ref())), Backends(POOL, POOL))


def many(count: int) -> tuple[HttpMatch, ...]:
    return tuple(header(str(number)) for number in range(count))


def matching(count: int, *, rules: int = 1) -> dict[str, Any]:
    paths = [
        [{"path": {"type": "Exact", "value": f"/{at}/{number}"}} for number in range(count)] for at in range(rules)
    ]
    return http_route(*({"matches": each, "backendRefs": [stable_ref()]} for each in paths))


PREFIX = {"type": "URLRewrite", "urlRewrite": {"path": {"type": "ReplacePrefixMatch", "replacePrefixMatch": "/"}}}
MODELS = [{"headers": [{"name": "X-Canary", "value": "b"}]}]
WIDE = HttpMatch(headers=tuple(HeaderMatch(name=f"h{number}", value="x") for number in range(16)))


@pytest.mark.parametrize(
    ("route", "split", "words"),
    [
        (
            http_route(rule(stable_ref(), stable_ref("llama-api-canary"))),
            Split(),
            "already refers to Service/llama-api-c",
        ),
        (http_route(rule(stable_ref(weight=0))), Split(), "its weight is 0 in every rule"),
        (matching(1, rules=9), Split(0, many(1)), "18 rules, more than the 16"),
        (matching(65), Split(0, many(1)), "65 matches in one rule, more than the 64"),
        (matching(60, rules=2), Split(0, many(1)), "240 matches, more than the 128"),
        (http_route(rule(stable_ref(), matches=MODELS)), Split(0, (WIDE,)), "17 headers or query parameters"),
        (http_route(rule(stable_ref(), matches=MODELS)), Split(0, (header("a"),)), "match 1 of a step contradicts"),
        (http_route(rule(stable_ref(), filters=[PREFIX])), Split(0, (EXACT,)), "match a PathPrefix or a header"),
    ],
)
def test_an_unfit_route_or_step_is_refused_with_what_to_do(route: Any, split: Split, words: str) -> None:
    assert words in route_problem(route, BACKENDS, [Split(20), split])


def test_limits_are_those_of_the_api_and_not_less() -> None:
    assert route_problem(matching(1, rules=8), BACKENDS, [Split(0, many(1))]) == ""
    assert route_problem(matching(64), BACKENDS, [Split(0, many(1))]) == ""
    assert route_problem(http_route(rule(stable_ref(), filters=[PREFIX])), BACKENDS, [Split(0, many(15))]) == ""
