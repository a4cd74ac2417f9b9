"""HTTPRoutes that name the backends of two workloads of the user: a release moves the weight, and nothing else."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollout_lws.api.rollout_spec import HeaderMatch, HeaderValue, HttpMatch, PathMatch, RequestHeaderModifier
from rollout_lws.objects.resources import HTTP_ROUTES, SERVICES
from rollout_lws.objects.writes import Patch, Write
from rollout_lws.sandbox.patching.patches import merge_patch
from rollout_lws.traffic import marks, pinned_selectors
from rollout_lws.traffic.facts import RoutingFacts
from rollout_lws.traffic.marked import Marked
from rollout_lws.traffic.names import CANARY, STABLE, ManagedRef, Names, of_sides
from rollout_lws.traffic.registry import field_of, named_in, needed_kinds, resources_of
from rollout_lws.traffic.route.kinds import HTTP_RULES as RULES
from rollout_lws.traffic.route.pair import PairMark, active_on_record, mark_of
from rollout_lws.traffic.route.state import RouteMark
from rollout_lws.traffic.route.weights import MOST, moved
from rollout_lws.traffic.routers.of_rollout import pair_routers, routers
from rollout_lws.traffic.routers.pair import PairHttpRouter
from rollout_lws.traffic.routers.weighted import HttpRouter
from rollout_lws.traffic.services import backends
from rollout_lws.traffic.split import ALL_STABLE, Backend, Backends, Split
from tests.traffic.build import (
    GATEWAY,
    KEYS,
    A,
    B,
    canonical,
    condition,
    defaulted,
    http_route,
    parent_status,
    property_test,
    rule,
    stable_ref,
)

pytestmark = pytest.mark.rare(3)

PAIR_RULES = HttpRouter.pair
PAIR = Backends(Backend("a"), Backend("b"))
TURNED = Backends(PAIR.canary, PAIR.stable)
OTHERS = Backends(Backend("s"), Backend("s-canary"))
GROUP = "inference.networking.k8s.io"
POOLS = Backends(Backend("a", GROUP, "InferencePool"), Backend("b", GROUP, "InferencePool"))
TESTER = HttpMatch(headers=(HeaderMatch(name="x-canary", value="always"),))
BETA = HttpMatch(path=PathMatch(type="Exact", value="/beta"))
MODIFIER = RequestHeaderModifier(set=(HeaderValue(name="x-version", value="new"),))
NAMES = Names(service="a", canary_service="b", active="llama-a", refs=(ManagedRef(kind="HTTPRoute", name="llama"),))


def routed(live: Any, split: Split, both: Backends = PAIR, by: str = A) -> Any:
    return PAIR_RULES.routed(live, by, KEYS, both, "llama-a", split)


def rested(live: Any, both: Backends = PAIR, active: str = "llama-a", by: str = A) -> Any:
    return PAIR_RULES.rested(live, by, KEYS, both, active)


def drifted(live: Any, both: Backends = PAIR) -> tuple[str, ...]:
    return PAIR_RULES.drifted(live, A, KEYS, both)


def own(live: Any, by: str = A) -> Any:
    return PAIR_RULES.own(live, by, KEYS)


def weights(live: Any, at: int = 0) -> list[Any]:
    return [ref.get("weight") for ref in live["spec"]["rules"][at]["backendRefs"]]


def shares(live: Any, at: int = 0) -> dict[str, Fraction]:
    refs = live["spec"]["rules"][at]["backendRefs"]
    total = sum(ref.get("weight", 1) for ref in refs)
    return {ref["name"]: Fraction(ref.get("weight", 1), total) for ref in refs}


def pair_rule(a: int | None = 100, b: int | None = 0, *more: Mapping[str, Any], **rest: Any) -> dict[str, Any]:
    refs = (stable_ref(name, **({} if weight is None else {"weight": weight})) for name, weight in (("a", a), ("b", b)))
    return rule(*refs, *more, **rest)


# Names


def test_names_of_other_rollouts_are_stored_as_before() -> None:
    names = Names(service="s", refs=(ManagedRef(kind="HTTPRoute", name="r"),))
    assert not names.is_pair
    assert msgspec.json.encode(names) == b'{"service":"s","refs":[{"kind":"HTTPRoute","name":"r"}]}'


OF_POOLS = Names(
    service="any",
    active="llama-a",
    refs=(
        ManagedRef(kind="InferencePool", name="a", version=STABLE),
        ManagedRef(kind="HTTPRoute", name="llama"),
        ManagedRef(kind="InferencePool", name="b", version=CANARY),
    ),
)


@pytest.mark.parametrize(("names", "expected"), [(NAMES, PAIR), (OF_POOLS, POOLS)], ids=["Services", "pools"])
def test_names_are_turned_and_turned_again(names: Names, expected: Backends) -> None:
    turned = names.turned("llama-b")
    assert backends(names) == expected
    assert backends(turned) == Backends(expected.canary, expected.stable)
    assert (turned.is_pair, turned.active) == (True, "llama-b")
    assert turned.turned("llama-a") == names
    unsaid = msgspec.structs.replace(names, active="")
    assert of_sides(unsaid, "llama-a", "llama-a") == names
    assert of_sides(unsaid, "llama-a", "llama-b") == turned


def test_the_spec_names_both_services() -> None:
    names = named_in({"service": "a", "counterpartService": "b", "gateway": {"httpRouteName": "llama"}})
    assert of_sides(names, "llama-a", "llama-a") == NAMES
    assert [name for _, name in resources_of(names)] == ["a", "b", "llama"]
    assert needed_kinds(names) == (HTTP_ROUTES,)
    assert [field_of(names, SERVICES.kind, name) for name in ("a", "b")] == [("service",), ("counterpartService",)]


# What is written


@pytest.mark.parametrize(
    ("live", "percent", "expected"),
    [
        ((100, 0), 20, [80, 20]),
        ((100, 0), 33, [67, 33]),
        ((100, 0), 100, [0, 100]),
        ((100, 0), 0, [100, 0]),
        ((0, 100), 0, [100, 0]),
        ((1, 0), 20, [80, 20]),
        ((1, 0), 100, [0, 1]),
        ((None, 0), 0, [None, 0]),
        ((None, None), 50, [None, None]),
        ((None, 0), 20, [80, 20]),
        ((None, None), 20, [160, 40]),
        ((0, 0), 0, [1, 0]),
        ((0, 0), 10, [90, 10]),
        ((MOST, MOST), 0, [1, 0]),
        ((MOST, MOST), 10, [90, 10]),
        ((MOST, MOST - 1), 50, [50, 50]),
    ],
)
def test_the_sum_of_both_weights_is_shared_anew(live: tuple[Any, Any], percent: int, expected: list[Any]) -> None:
    assert weights(routed(http_route(pair_rule(*live)), Split(percent))) == expected


def test_nothing_but_weights_is_written() -> None:
    filters = [{"type": "RequestHeaderModifier", "requestHeaderModifier": {"remove": ["cookie"]}}]
    refs = [
        stable_ref("b", weight=0, port=81, filters=filters),
        stable_ref("c", weight=300),
        stable_ref("a", weight=100),
    ]
    route = http_route(
        rule(*refs, name="first", timeouts={"request": "9s"}, filters=filters),
        rule(stable_ref("c"), path="/c"),
        pair_rule(1, 0, path="/second"),
    )
    kept = copy.deepcopy(route)
    live = routed(route, Split(20, header_modifier=MODIFIER))
    assert route == kept
    assert (weights(live, 0), weights(live, 2)) == ([20, 300, 80], [80, 20])
    assert live["spec"]["rules"][1] is route["spec"]["rules"][1]
    back = rested(live)
    assert back["spec"]["rules"][0] == route["spec"]["rules"][0]
    assert shares(back, 2) == shares(route, 2)


def test_a_third_backend_keeps_its_exact_share() -> None:
    route = http_route(pair_rule(1, 0, stable_ref("c", weight=2)))
    for percent in (10, 33, 50, 0, 100):
        part = Fraction(percent, 300)
        assert shares(routed(route, Split(percent))) == {"a": Fraction(1, 3) - part, "b": part, "c": Fraction(2, 3)}


def test_pools_are_no_services() -> None:
    refs = [
        {"name": name, "group": GROUP, "kind": "InferencePool", "weight": weight}
        for name, weight in (("a", 1), ("b", 0))
    ]
    route = http_route(rule(*refs), pair_rule(path="/services"))
    live = routed(route, Split(50, (TESTER,)), POOLS)
    assert (weights(live, 0), weights(live, 1)) == ([50, 50], [100, 0])
    assert live["spec"]["rules"][2]["backendRefs"] == [{**refs[1], "weight": 1}]
    assert PAIR_RULES.weights(live, POOLS) == (50, 50)
    assert drifted(live, POOLS) == ()
    assert weights(own(live), 0) == [100, 0]


def test_weights_are_bounded_however_often_they_are_moved() -> None:
    for users in (pair_rule(1, 0), pair_rule(7, 0, stable_ref("c", weight=20_001)), pair_rule(3, 333_333)):
        live: Any = http_route(users)
        seen = set()
        for turn in range(1000):
            live = routed(live, Split((10, 33, 50, 0, 100, 1)[turn % 6]))
            seen.add(sum(weights(live)[:2]))
        assert len(seen) <= 2 and max(seen) <= MOST


class TestMatches:
    ROUTE = http_route(
        pair_rule(100, 0, stable_ref("c"), name="api", timeouts={"request": "9s"}),
        rule(stable_ref("c"), path="/c"),
        pair_rule(1, 0, path="/v2"),
    )

    def test_rules_are_appended_and_removed(self) -> None:
        live = routed(self.ROUTE, Split(0, (TESTER,), MODIFIER))
        rules = live["spec"]["rules"]
        assert rules[:3] == self.ROUTE["spec"]["rules"]
        assert [each["matches"][0]["path"]["value"] for each in rules[3:]] == ["/v1", "/v2"]
        assert [each["backendRefs"] for each in rules[3:]] == [
            [{"name": "b", "port": 8000, "group": "", "kind": "Service", "weight": 1}]
        ] * 2
        assert rules[3]["timeouts"] == {"request": "9s"} and "name" not in rules[3]
        assert rules[3]["filters"][0]["requestHeaderModifier"]["set"] == [{"name": "x-version", "value": "new"}]
        assert routed(live, Split(0, (TESTER,), MODIFIER)) == live
        for without in (routed(live, Split(20)), rested(live), rested(live, TURNED, "llama-b"), own(live)):
            assert len(without["spec"]["rules"]) == 3
        assert canonical(own(live)) == canonical(self.ROUTE)

    def test_they_stay_where_they_are(self) -> None:
        live = copy.deepcopy(routed(self.ROUTE, Split(0, (TESTER,))))
        live["spec"]["rules"].append(rule(stable_ref("d"), path="/d"))
        assert routed(live, Split(0, (TESTER,))) == live
        assert routed(live, Split(0, (BETA,)))["spec"]["rules"][-1]["matches"][0]["path"] == {
            "type": "Exact",
            "value": "/beta",
        }

    def test_an_edited_one_is_told_and_does_not_outlive_the_release(self) -> None:
        live = copy.deepcopy(routed(self.ROUTE, Split(0, (TESTER,))))
        live["spec"]["rules"][-1]["matches"] = [{"path": {"type": "Exact", "value": "/me"}}]
        assert drifted(live) == ("appended rule 2 is changed or gone",)
        assert len(own(live)["spec"]["rules"]) == 3
        assert routed(live, Split(0, (TESTER,))) == routed(self.ROUTE, Split(0, (TESTER,)))

    def test_a_rule_of_the_users_with_the_same_matches_stays(self) -> None:
        """A rule that already matches what the step does."""
        users = pair_rule(100, 0, matches=[{"headers": [{"name": "x-canary", "value": "always"}]}])
        live = routed(http_route(users), Split(0, (TESTER,)))
        assert len(live["spec"]["rules"]) == 2
        assert own(live)["spec"]["rules"] == [users]

    def test_ones_without_their_entry_are_found_again(self) -> None:
        live = routed(self.ROUTE, Split(0, (TESTER,)))
        bare = marks.without(live, A, KEYS)
        assert routed(bare, Split(0, (TESTER,))) == live
        assert PAIR_RULES.route_problem(bare, PAIR, begun=True) == ""
        assert "rule 4 of HTTPRoute llama names Service/b but not" in PAIR_RULES.route_problem(bare, PAIR)


# The entry


class TestEntry:
    def test_it_says_what_the_release_has_given(self) -> None:
        live = rested(http_route(pair_rule()))
        assert mark_of(live, A, KEYS) == PairMark(active="llama-a")
        assert json.loads(live["metadata"]["annotations"][KEYS.original]) == {A: {"active": "llama-a"}}
        live = routed(live, Split(20))
        parents = RULES.accepting(live)
        assert parents
        assert mark_of(live, A, KEYS) == PairMark(
            active="llama-a", share=20, backends=PAIR, parents=parents, carried=True
        )
        live = routed(live, ALL_STABLE)
        assert mark_of(live, A, KEYS) == PairMark(active="llama-a", backends=PAIR, parents=parents, carried=True)
        assert mark_of(rested(live), A, KEYS) == PairMark(active="llama-a")

    def test_parents_are_those_before_the_first_request(self) -> None:
        live = routed(http_route(pair_rule()), ALL_STABLE)
        assert live == rested(http_route(pair_rule()))
        accepted = RULES.accepting(live)
        live = routed(live, Split(0, (TESTER,)))
        refused = {"parents": [parent_status(GATEWAY, condition("Accepted", "False"))]}
        for split in (Split(1), ALL_STABLE, Split(2)):
            live = routed({**live, "status": refused}, split)
            known = mark_of(live, A, KEYS)
            assert known is not None and known.parents == accepted != ()
        again = mark_of(routed(rested(live), Split(1)), A, KEYS)
        assert again is not None and again.parents == ()

    def test_after_a_release_only_the_entry_changes(self) -> None:
        live = routed(http_route(pair_rule()), Split(100))
        after = rested(live, TURNED, "llama-b")
        assert after["spec"] == live["spec"]
        assert (active_on_record(live, A, KEYS), active_on_record(after, A, KEYS)) == ("llama-a", "llama-b")
        assert active_on_record(own(after), A, KEYS) == active_on_record(after, B, KEYS) == ""
        assert rested(after, TURNED, "llama-b") == after

    def test_neither_form_is_read_as_the_other(self) -> None:
        ours = routed(http_route(pair_rule()), Split(20, (TESTER,)))
        theirs = RULES.routed(http_route(pair_rule()), A, KEYS, OTHERS, Split(20))
        assert marks.read_as(RouteMark, ours, A, KEYS) is None
        assert marks.read(theirs, A, KEYS) is not None and mark_of(theirs, A, KEYS) is None

    @pytest.mark.parametrize("entry", [{}, {"active": 1}, {"active": "x", "share": "y"}, {"weight": 3}], ids=str)
    def test_an_unreadable_one_is_none(self, entry: dict[str, Any]) -> None:
        live = marks.put(http_route(pair_rule(90, 10)), A, KEYS, entry)
        assert drifted(live) == ()
        assert canonical(own(live)) == canonical(http_route(pair_rule(90, 10)))
        assert mark_of(rested(live), A, KEYS) == PairMark(active="llama-a")

    def test_one_of_the_other_form_is_restored_first(self) -> None:
        before = http_route(rule(stable_ref("a", weight=7), stable_ref("c", weight=3)))
        live = RULES.routed(before, A, KEYS, Backends(Backend("a"), Backend("a-canary")), Split(20))
        assert rested(live)["spec"] == before["spec"]
        assert canonical(own(live)) == canonical(before)


# Other writers


@pytest.mark.parametrize(
    ("live", "told"),
    [
        ((80, 20), ()),
        ((8, 2), ()),
        ((4, None), ()),
        ((800_000, 200_000), ()),
        ((100, 0), ("rule 1: Service/a:8000 and Service/b:8000 have weights 100 and 0, not 80 to 20",)),
        ((0, 0), ("rule 1: Service/a:8000 and Service/b:8000 have weights 0 and 0, not 80 to 20",)),
        ((None, None), ("rule 1: Service/a:8000 and Service/b:8000 have weights 1 and 1, not 80 to 20",)),
    ],
    ids=str,
)
def test_another_ratio_is_told_and_fixed(live: tuple[Any, Any], told: tuple[str, ...]) -> None:
    route = routed(http_route(pair_rule(), pair_rule(path="/v2")), Split(20))
    reset = {**route, "spec": http_route(pair_rule(*live), pair_rule(4, 1, path="/v2"))["spec"]}
    assert drifted(reset) == told
    again = routed(reset, Split(20))
    assert (again == reset) is (told == ())
    assert drifted(again) == ()


def test_weights_that_cannot_be_exact_are_no_drift() -> None:
    live = routed(http_route(pair_rule(3, 0, stable_ref("c", weight=20_000))), Split(33))
    assert weights(live) == [100, 50, MOST]
    assert drifted(live) == ()
    assert routed(live, Split(33)) == live


def test_a_rule_that_names_one_backend_no_more_is_left_alone() -> None:
    live = copy.deepcopy(routed(http_route(pair_rule()), Split(20)))
    del live["spec"]["rules"][0]["backendRefs"][1]
    assert (drifted(live), routed(live, Split(30))["spec"]) == ((), live["spec"])
    assert "names Service/a but not Service/b" in PAIR_RULES.route_problem(own(live), PAIR)


users_weights = st.none() | st.integers(0, 5) | st.sampled_from([100, 333, 9_999, 10_001, 333_333, MOST])
splits = st.builds(
    Split,
    st.sampled_from([0, 1, 10, 33, 50, 99, 100]),
    st.sampled_from([(), (TESTER,), (BETA,), (TESTER, BETA)]),
    st.sampled_from([None, MODIFIER]),
)


@st.composite
def routes(draw: st.DrawFn) -> dict[str, Any]:
    made = []
    for number in range(draw(st.integers(1, 3))):
        others = draw(st.lists(st.sampled_from(["a", "b", "c", "s"]), unique=True, min_size=1))
        refs = [stable_ref(name) | _stated(draw(users_weights)) for name in others]
        named = draw(st.sampled_from([{}, {"name": f"rule-{number}"}]))
        made.append(rule(*refs, path=draw(st.sampled_from(["/v1", "/v2"])), **named))
    route = http_route(*made)
    return defaulted(route) if draw(st.booleans()) else route


def _stated(weight: int | None) -> dict[str, int]:
    return {} if weight is None else {"weight": weight}


@property_test
@given(routes(), st.lists(splits, min_size=1, max_size=4))
def test_whatever_was_written_only_weights_stay(route: dict[str, Any], turns: list[Split]) -> None:
    live: Any = route
    for split in turns:
        live = routed(live, split)
        assert routed(live, split) == live
        assert drifted(live) == ()
        # An API server adds its defaults.
        assert drifted(defaulted(live)) == () and routed(defaulted(live), split) == defaulted(live)
        for at, each in enumerate(route["spec"]["rules"]):
            assert all(0 <= weight <= MOST for weight in weights(live, at) if weight is not None)
            if {"a", "b"} <= {ref["name"] for ref in each["backendRefs"]} and 0 < split.weight < 100:
                assert shares(live, at)["a"] > 0 and shares(live, at)["b"] > 0
    back = own(live)
    assert KEYS.original not in back["metadata"].get("annotations", {})
    assert _without_weights(back) == _without_weights(route)


def _without_weights(route: Any) -> Any:
    return [
        {**each, "backendRefs": [{**ref, "weight": 0} for ref in each["backendRefs"]]}
        for each in route["spec"]["rules"]
    ]


@property_test
@given(
    st.lists(st.integers(0, MOST), min_size=2, max_size=5),
    st.lists(st.integers(0, 100), min_size=1, max_size=4),
)
def test_moved_weights_keep_to_the_limits(users: list[int], percents: list[int]) -> None:
    live = users
    for percent in percents:
        live = moved(live, 0, 1, percent)
        assert moved(live, 0, 1, percent) == live
        assert all(0 <= weight <= MOST for weight in live)
        assert live[0] + live[1] > 0
        if 0 < percent < 100:
            assert min(live[:2]) > 0
        assert [weight > 0 for weight in live[2:]] == [weight > 0 for weight in users[2:]]


# Another Rollout on the same rule


class TestSharedRule:
    """Another Rollout's release splits s, which one rule names beside our backends."""

    ROUTE = http_route(pair_rule(1, 0, stable_ref("s", weight=2)), rule(stable_ref("s"), path="/s"))

    def theirs(self, live: Any, split: Split) -> Any:
        return RULES.routed(live, B, KEYS, OTHERS, split)

    @pytest.mark.parametrize("matches", [(), (TESTER,)], ids=["weights", "matches"])
    @pytest.mark.parametrize("ours_first", [True, False])
    def test_both_shares_are_exact_in_any_order(self, ours_first: bool, matches: tuple[HttpMatch, ...]) -> None:
        split, other = Split(33, matches), Split(10, matches)
        live = self.ROUTE
        live = self.theirs(routed(live, split), other) if ours_first else routed(self.theirs(live, other), split)
        third = Fraction(1, 300)
        assert shares(live) == {"a": 67 * third, "b": 33 * third, "s": 180 * third, "s-canary": 20 * third}
        assert drifted(live) == RULES.drifted(live, B, KEYS) == ()
        # Neither answers the other's write without end.
        assert routed(live, split) == live == self.theirs(live, other)
        back = RULES.own(live, B, KEYS)
        assert shares(back) == {"a": 67 * third, "b": 33 * third, "s": 200 * third}
        assert drifted(back) == () and routed(back, split) == back
        assert back["spec"]["rules"][1] == self.ROUTE["spec"]["rules"][1]
        left = own(live)
        assert RULES.drifted(left, B, KEYS) == () and self.theirs(left, other) == left
        assert _without_weights(RULES.own(left, B, KEYS)) == _without_weights(self.ROUTE)

    @property_test
    @given(st.lists(st.tuples(st.booleans(), st.none() | splits), max_size=6))
    def test_neither_disturbs_the_other(self, turns: list[tuple[bool, Split | None]]) -> None:
        live: Any = self.ROUTE
        ours, theirs = ALL_STABLE, ALL_STABLE
        for is_ours, split in turns:
            if is_ours:
                live = rested(live) if split is None else routed(live, split)
                ours = split or ALL_STABLE
            else:
                live = RULES.own(live, B, KEYS) if split is None else self.theirs(live, split)
                theirs = split or ALL_STABLE
            assert drifted(live) == RULES.drifted(live, B, KEYS) == ()
        part = Fraction(1, 300)
        found = shares(live)
        assert found["b"] == ours.weight * part and found["a"] == (100 - ours.weight) * part
        assert found.get("s-canary", 0) == 2 * theirs.weight * part
        back = RULES.own(own(live), B, KEYS)
        assert _without_weights(back) == _without_weights(self.ROUTE)

    def test_what_changed_of_theirs_is_theirs_to_repair(self) -> None:
        live = copy.deepcopy(self.theirs(routed(self.ROUTE, Split(50)), Split(10)))
        live["spec"]["rules"][0]["backendRefs"][2]["weight"] = 1
        assert drifted(live) == ()
        assert routed(live, Split(50)) == live
        assert RULES.drifted(live, B, KEYS)

    def test_two_pairs_do_not_reorder_their_rules_in_turns(self) -> None:
        route = http_route(pair_rule(), rule(stable_ref("c", weight=1), stable_ref("d", weight=0), path="/c"))
        both, split = Backends(Backend("c"), Backend("d")), Split(50, (TESTER,))
        live = routed(routed(route, split), split, both, B)
        assert routed(live, split) == live == routed(live, split, both, B)
        assert _without_weights(own(own(live), B)) == _without_weights(route)


# Refusals


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        ([pair_rule()], ""),
        ([pair_rule(0, 0)], ""),
        ([pair_rule(), rule(stable_ref("c"), path="/c")], ""),
        (
            [pair_rule(), rule(stable_ref("a"), path="/v2")],
            "rule 2 of HTTPRoute llama names Service/a but not Service/b: add a backendRef to it with weight 0, so that"
            " a release can move the rule's requests",
        ),
        (
            [rule(stable_ref("b"), name="new")],
            "rule new of HTTPRoute llama names Service/b but not Service/a: add a backendRef to it with weight 0, so"
            " that a release can move the rule's requests",
        ),
        (
            [pair_rule(1, 0, stable_ref("a", port=81))],
            "rule 1 of HTTPRoute llama names Service/a 2 times: leave one backendRef to it in the rule",
        ),
        (
            [rule(stable_ref("c"))],
            "HTTPRoute llama has no rule with backendRefs to Service/a and Service/b (it refers to Service/c:8000); add"
            " both to one, all weight to the active one and 0 to the other, or name the backends that the rules refer"
            " to in trafficRoutings",
        ),
        ([], "HTTPRoute llama has no rule with backendRefs to Service/a and Service/b (it refers to nothing); add"),
    ],
)
def test_a_route_that_does_not_name_both_is_refused(rules: list[Any], said: str) -> None:
    found = PAIR_RULES.route_problem(http_route(*rules), PAIR)
    assert found.startswith(said) and bool(found) is bool(said)


PREFIX = {"type": "URLRewrite", "urlRewrite": {"path": {"type": "ReplacePrefixMatch", "replacePrefixMatch": "/"}}}


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        ([pair_rule()], ""),
        ([pair_rule(matches=[{"headers": [{"name": "X-Canary", "value": "b"}]}])], "match 1 of a step contradicts"),
        ([pair_rule(filters=[PREFIX])], "match a PathPrefix or a header"),
        ([pair_rule(), rule(stable_ref("c"), filters=[PREFIX])], ""),
        ([pair_rule(path=f"/{at}") for at in range(9)], "19 rules, more than the 16"),
    ],
)
def test_matches_that_no_rule_can_express_are_refused(rules: list[Any], words: str) -> None:
    found = PAIR_RULES.split_problem(http_route(*rules), PAIR, Split(0, (TESTER, BETA)))
    assert words in found and bool(found) is bool(words)


# The router


def facts(live: Any = None, names: Names = NAMES, **more: Any) -> RoutingFacts:
    stored = live and {**live, "metadata": {**live["metadata"], "resourceVersion": "7", "uid": "u"}}
    objects = {HTTP_ROUTES: {"llama": stored} if stored else {}}
    return RoutingFacts(names, "prod", A, KEYS, objects=objects, **more)


def router(live: Any = None, names: Names = NAMES) -> PairHttpRouter:
    (made,) = routers(facts(live, names))
    assert isinstance(made, PairHttpRouter)
    return made


def done(live: Any, writes: tuple[Write, ...]) -> Any:
    (write,) = writes
    assert isinstance(write, Patch)
    after = merge_patch({**live, "metadata": {**live["metadata"], "resourceVersion": "7", "uid": "u"}}, write.body)
    assert isinstance(after, dict)
    return after


def test_a_pair_has_routers_of_its_own() -> None:
    known = facts(http_route(pair_rule()))
    assert routers(known) is pair_routers(known)
    other = facts(http_route(pair_rule()), Names(service="a", refs=NAMES.refs))
    assert [type(each) for each in routers(other)] == [HttpRouter]
    assert pair_routers(other) == ()
    assert (known.canary_service_name, other.canary_service_name) == ("b", "a-canary")


@pytest.mark.parametrize("names", [NAMES, OF_POOLS], ids=["Services", "pools"])
def test_nothing_of_a_pair_is_pinned(names: Names) -> None:
    known = facts(None, names)
    assert pinned_selectors.of_stable(known) == pinned_selectors.of_new(known) == ()


class TestRouter:
    def test_a_release_from_adoption_to_the_other_side(self) -> None:
        live: Any = http_route(pair_rule())
        assert not router(live).state.modified
        assert router(live).apply(Split(20), "unchecked", checked=False) == ()
        live = done(live, router(live).rest("adopted"))
        assert router(live).rest("again") == ()
        state = router(live).state
        assert (state.modified, state.reaches_canary, state.weight, state.carried) == (True, False, 0, False)
        live = done(live, router(live).apply(Split(20), "a fifth", checked=False))
        assert router(live).apply(Split(20), "a fifth", checked=True) == ()
        state = router(live).state
        assert (state.modified, state.reaches_canary, state.weight, state.carried) == (True, True, 20, True)
        live = done(live, router(live).apply(Split(100), "all", checked=True))
        turned = router(live, NAMES.turned("llama-b"))
        # The other way round before the roles are on record: the weights say that b has all.
        assert PAIR_RULES.weights(live, backends(turned.facts.names)) == (100, 0)
        live = done(live, turned.rest("over"))
        state = router(live, NAMES.turned("llama-b")).state
        assert (state.reaches_canary, state.weight, state.carried, state.objects[0].drifted) == (False, 0, False, False)
        assert weights(live) == [0, 100]

    @pytest.mark.parametrize(
        ("live", "reaches", "weight"),
        [((100, 0), False, 0), ((2, 1), True, 33), ((0, 1), True, 100), ((0, 0), False, 0)],
        ids=str,
    )
    def test_without_an_entry_the_weights_count(self, live: Any, reaches: bool, weight: int) -> None:
        state = router(http_route(pair_rule(*live))).state
        assert (state.modified, state.reaches_canary, state.weight, state.carried) == (False, reaches, weight, False)
        assert not (state.unmarked or state.unlisted or state.listed_at)

    def test_a_reset_is_drift_and_its_weights_count(self) -> None:
        live = routed(http_route(pair_rule()), Split(50))
        reset = {**live, "spec": http_route(pair_rule(90, 10))["spec"]}
        state = router(reset).state
        assert (state.objects[0].drifted, state.weight, state.reaches_canary) == (True, 10, True)
        wiped = {**live, "spec": http_route(pair_rule())["spec"]}
        # Routers may still send requests by what stood there before.
        assert (router(wiped).state.weight, router(wiped).state.reaches_canary) == (0, True)
        assert drifted(done(wiped, router(wiped).apply(Split(50), "half", checked=False))) == ()

    def test_matches_alone_reach_the_new_version(self) -> None:
        state = router(routed(http_route(pair_rule()), Split(0, (TESTER,)))).state
        assert (state.reaches_canary, state.weight, state.carried, state.unused) == (True, 0, True, "")

    def test_a_missing_route_is_told(self) -> None:
        made = router()
        assert made.state.missing == "HTTPRoute llama"
        problem = made.check()
        assert problem is not None and "does not exist in namespace prod" in problem.message
        assert made.check(Split(20)) is None
        assert made.apply(Split(20), "", checked=True) == made.rest("") == ()

    def test_it_refuses_what_it_cannot_express(self) -> None:
        made = router(routed(http_route(pair_rule(), rule(stable_ref("a"), path="/v2")), Split(0, (TESTER,))))
        problem = made.check()
        assert problem is not None and problem.path == "spec.rules"
        assert problem.message.startswith("rule 2 of HTTPRoute llama names Service/a but not Service/b")
        assert made.state.unused == problem.message
        fine = router(routed(http_route(pair_rule()), Split(20, (TESTER,))))
        assert fine.check() is fine.check(Split(20)) is fine.check(Split(20, (BETA,))) is None
        refused = router(http_route(pair_rule(filters=[PREFIX]))).check(Split(0, (BETA,)))
        assert refused is not None and "match a PathPrefix" in refused.message

    def test_a_gateway_that_does_not_accept_is_told(self) -> None:
        live = routed(http_route(pair_rule()), Split(20))
        state = router({**live, "metadata": {**live["metadata"], "generation": 2}}).state
        assert (state.unused, "not yet for 2" in state.unaccepted) == ("", True)
        lost = router({**live, "status": {}}).state
        assert "no Gateway accepts HTTPRoute llama" in lost.unused

    @pytest.mark.parametrize("restore", [HttpRouter.restore, PairHttpRouter.restore])
    def test_either_router_restores_either_form(self, restore: Any) -> None:
        before = http_route(pair_rule(70, 30))
        live = routed(before, Split(30, (TESTER,)))
        assert canonical(restore(live, A, KEYS)) == canonical(http_route(pair_rule()))
        other = http_route(rule(stable_ref("s")))
        assert canonical(restore(RULES.routed(other, A, KEYS, OTHERS, Split(20)), A, KEYS)) == canonical(other)


def test_a_deleted_rollouts_rules_are_found_by_its_entry() -> None:
    live = routed(http_route(pair_rule()), Split(30, (TESTER,)))
    stored = {**live, "metadata": {**live["metadata"], "resourceVersion": "7", "uid": "u"}}
    for seen, writes in (
        (known := Marked(A, KEYS, {HTTP_ROUTES: (stored,)}, names=NAMES), known.give_back("over")),
        (known := Marked(B, KEYS, {HTTP_ROUTES: (stored,)}, frozenset({B})), known.take_back(A, "llama-a", "gone")),
    ):
        after = done(live, tuple(writes))
        assert seen.objects[HTTP_ROUTES] == (stored,)
        assert after["spec"]["rules"] == [pair_rule()]
        assert KEYS.original not in (after["metadata"].get("annotations") or {})


def test_no_service_of_a_pair_counts_as_made_by_a_release() -> None:
    """One that a Rollout controls, and that has the name of a copy."""
    owner = {"apiVersion": "rollouts.kruise.io/v1beta1", "kind": "Rollout", "uid": A, "controller": True}
    copy_named = {"metadata": {"name": "a-canary", "namespace": "prod", "ownerReferences": [owner]}, "spec": {}}
    names = Names(service="a", canary_service="a-canary", active="llama-a", refs=NAMES.refs)
    assert not Marked(A, KEYS, {SERVICES: (copy_named,)}, names=names).any_own
    assert Marked(A, KEYS, {SERVICES: (copy_named,)}, names=Names(service="a")).any_own
