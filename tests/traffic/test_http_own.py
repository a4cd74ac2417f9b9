"""HTTPRoutes: the user's own route comes back from whatever was written into it, and however others edited it."""

from __future__ import annotations

import copy
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollout_lws.api.rollout_spec import HeaderMatch, HeaderValue, HttpMatch, PathMatch, RequestHeaderModifier
from rollout_lws.traffic import marks
from rollout_lws.traffic.split import ALL_STABLE, Backend, Backends, Split
from tests.traffic.build import (
    KEYS,
    NOW,
    A,
    B,
    canonical,
    defaulted,
    drifted,
    http_route,
    own,
    property_test,
    routed,
    rule,
    stable_ref,
)
from tests.traffic.edits import EDITS, Edit, edited

pytestmark = pytest.mark.rare(3)

OURS = Backends(Backend("a"), Backend("a-canary"))
THEIRS = Backends(Backend("b"), Backend("b-canary"))
TESTER = HttpMatch(headers=(HeaderMatch(name="x-canary", value="always"),))
BETA = HttpMatch(path=PathMatch(type="Exact", value="/beta"))
MODIFIER = RequestHeaderModifier(set=(HeaderValue(name="x-version", value="new"),))

weights = st.none() | st.integers(0, 5) | st.sampled_from([100, 9_999, 10_000, 333_333, 1_000_000])
refs = st.builds(
    lambda name, port, weight: {"name": name, "port": port} | ({} if weight is None else {"weight": weight}),
    st.sampled_from(["a", "b", "c"]),
    st.sampled_from([80, 81]),
    weights,
)
matches = st.builds(
    lambda path, header: {
        member: value
        for member, value in (
            ("path", path and {"type": "PathPrefix", "value": path}),
            ("headers", header and [{"name": header, "value": "1"}]),
        )
        if value
    },
    st.sampled_from(["", "/", "/v1", "/v2"]),
    st.sampled_from(["", "model", "x-canary"]),
)
rules = st.fixed_dictionaries(
    {"backendRefs": st.lists(refs, min_size=1, max_size=4)},
    optional={
        "matches": st.lists(matches, min_size=1, max_size=2),
        "timeouts": st.just({"request": "9s"}),
        "filters": st.just([{"type": "RequestHeaderModifier", "requestHeaderModifier": {"remove": ["cookie"]}}]),
    },
)


@st.composite
def routes(draw: st.DrawFn) -> dict[str, Any]:
    made = draw(st.lists(rules, max_size=4))
    for number, each in enumerate(made):
        if draw(st.booleans()):
            each["name"] = f"rule-{number}"
    route = http_route(*made)
    return defaulted(route) if draw(st.booleans()) else route


splits = st.builds(
    Split,
    st.sampled_from([0, 1, 20, 33, 50, 99, 100]),
    st.sampled_from([(), (TESTER,), (BETA,), (TESTER, BETA)]),
    st.sampled_from([None, MODIFIER]),
    st.sampled_from([None, NOW]),
)


def effective(route: Any) -> str:
    """The route as requests see it: an absent weight is one of 1."""
    return canonical(defaulted(route))


@property_test
@given(routes(), splits, splits)
def test_whatever_was_written_the_users_own_route_comes_back_exactly(
    route: dict[str, Any], first: Split, second: Split
) -> None:
    kept = copy.deepcopy(route)
    once = routed(route, A, KEYS, OURS, first)
    assert routed(once, A, KEYS, OURS, first) == once
    twice = routed(once, A, KEYS, OURS, second)
    if second.reaches_new:
        assert twice == routed(route, A, KEYS, OURS, second)
    assert canonical(own(twice, A, KEYS)) == canonical(route)
    assert drifted(once, A, KEYS) == ()
    assert canonical(own(once, A, KEYS)) == canonical(route)
    assert route == kept


@property_test
@given(routes(), splits)
def test_the_same_holds_when_an_api_server_adds_its_defaults(route: dict[str, Any], split: Split) -> None:
    once = defaulted(routed(route, A, KEYS, OURS, split))
    assert routed(once, A, KEYS, OURS, split) == once
    assert drifted(once, A, KEYS) == ()
    assert effective(own(once, A, KEYS)) == effective(route)


@property_test
@given(routes(), st.lists(st.tuples(st.booleans(), st.none() | splits), max_size=6), st.booleans())
def test_two_rollouts_on_one_route_do_not_disturb_each_other(
    route: dict[str, Any], turns: list[tuple[bool, Split | None]], ours_first: bool
) -> None:
    live: Any = route
    last: dict[str, Split | None] = {A: None, B: None}
    for ours, split in turns:
        by, backends = (A, OURS) if ours else (B, THEIRS)
        live = own(live, by, KEYS) if split is None else routed(live, by, KEYS, backends, split)
        last[by] = split
    expected: Any = route
    for by, backends in ((B, THEIRS), (A, OURS)):
        split = last[by]
        if split is not None:
            expected = routed(expected, by, KEYS, backends, split)
    assert live == expected or canonical(live) == canonical(expected)
    assert drifted(live, A, KEYS) == drifted(live, B, KEYS) == ()
    for by in (A, B) if ours_first else (B, A):
        live = own(live, by, KEYS)
    assert canonical(live) == canonical(route)


@property_test
@given(routes(), splits, splits)
def test_the_real_share_of_requests_is_the_one_asked_for(route: dict[str, Any], ours: Split, theirs: Split) -> None:
    made = routed(routed(route, A, KEYS, OURS, ours), B, KEYS, THEIRS, theirs)
    for users, each in zip(route["spec"]["rules"], made["spec"]["rules"], strict=False):
        before, after = shares(users), shares(each)
        # Weights beyond a hundredth of what the API allows are rounded to a millionth of the largest.
        slack = Fraction(20, 1_000_000)
        for name, weight in (("a", ours.weight), ("b", theirs.weight), ("c", 0)):
            part = before.get(name, Fraction(0))
            assert abs(after.get(f"{name}-canary", Fraction(0)) - part * weight / 100) <= slack
            assert abs(after.get(name, Fraction(0)) - part * (100 - weight) / 100) <= slack


def shares(each: Any) -> dict[str, Fraction]:
    found: dict[str, Fraction] = {}
    total = sum(ref.get("weight", 1) for ref in each["backendRefs"])
    for ref in each["backendRefs"] if total else ():
        found[ref["name"]] = found.get(ref["name"], Fraction(0)) + Fraction(ref.get("weight", 1), total)
    return found


def three_rules() -> dict[str, Any]:
    return http_route(
        rule(stable_ref("a"), stable_ref("c", weight=3), name="first"),
        rule(stable_ref("a", weight=2), stable_ref("b")),
        rule(stable_ref("a"), stable_ref("c", weight=3)),
    )


REDIRECT = {
    "matches": [{"path": {"type": "PathPrefix", "value": "/old"}}],
    "filters": [{"type": "RequestRedirect", "requestRedirect": {"path": {"type": "ReplaceFullPath", "value": "/new"}}}],
}


@pytest.mark.parametrize("split", [Split(20), Split(33, (TESTER,))], ids=["weight", "matches"])
@pytest.mark.parametrize("at", [0, 1, 3])
def test_kruise_flaw_rules_without_backends_are_not_dropped_with_ours(split: Split, at: int) -> None:
    before = three_rules()
    before["spec"]["rules"].insert(at, REDIRECT)
    live = routed(before, A, KEYS, OURS, split)
    assert live["spec"]["rules"][at] == REDIRECT
    assert canonical(own(live, A, KEYS)) == canonical(before)


def in_order(route: Any) -> Any:
    """Rules that were appended by hand behind ours end up behind the user's own."""
    return {**route, "spec": {**route["spec"], "rules": sorted(route["spec"]["rules"], key=canonical)}}


@pytest.mark.parametrize("edit", EDITS, ids=lambda edit: str(edit.__name__))
@pytest.mark.parametrize("split", [Split(20), Split(33, (TESTER,))], ids=["weight", "matches"])
def test_an_edit_in_the_middle_of_a_release_is_kept_and_all_else_restored(edit: Edit, split: Split) -> None:
    before = three_rules()
    live = edited(routed(before, A, KEYS, OURS, split), [edit])
    assert canonical(own(live, A, KEYS)) == canonical(edited(before, [edit]))
    again = routed(live, A, KEYS, OURS, split)
    assert again == routed(again, A, KEYS, OURS, split)
    assert canonical(own(again, A, KEYS)) == canonical(edited(before, [edit]))


@property_test
@given(st.lists(st.tuples(st.booleans(), splits, st.sampled_from(EDITS)), max_size=4))
def test_edits_between_the_writes_of_two_rollouts_are_all_kept(turns: list[tuple[bool, Split, Edit]]) -> None:
    live: Any = three_rules()
    users: Any = three_rules()
    for ours, split, edit in turns:
        live = routed(live, *((A, KEYS, OURS) if ours else (B, KEYS, THEIRS)), split)
        if len(users["spec"]["rules"]) < 3:
            break
        live, users = edited(live, [edit]), edited(users, [edit])
    restored = own(own(live, A, KEYS), B, KEYS)
    assert canonical(in_order(restored)) == canonical(in_order(users))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["a", "weight", "rules"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["stable", "canary", "weight", "rules", "added", "parents"]), inner)
    ),
    max_leaves=8,
)


@property_test
@given(routes(), json_values)
def test_a_mark_that_nobody_can_read_breaks_nothing(route: dict[str, Any], value: Any) -> None:
    live = marks.put(route, A, KEYS, value)
    assert drifted(live, A, KEYS) == ()
    assert canonical(own(live, A, KEYS)) == canonical(route)
    written = routed(live, A, KEYS, OURS, ALL_STABLE)
    assert canonical(own(written, A, KEYS)) == canonical(route)
