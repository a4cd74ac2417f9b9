"""HTTPRoutes: the user's own route comes back from whatever was written into it, and however others edited it."""

from __future__ import annotations

import copy
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollout_lws.api.rollout_spec import HeaderMatch, HeaderValue, HttpMatch, PathMatch, RequestHeaderModifier
from rollout_lws.traffic import marks
from rollout_lws.traffic.http_route import drifted, own, routed
from rollout_lws.traffic.split import ALL_STABLE, Backend, Backends, Split
from tests.traffic.build import KEYS, A, B, canonical, defaulted, http_route, rule, stable_ref

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
)


def effective(route: Any) -> str:
    """The route as requests see it: an absent weight is one of 1."""
    return canonical(defaulted(route))


@given(routes(), splits, splits)
def test_whatever_was_written_the_users_own_route_comes_back_exactly(
    route: dict[str, Any], first: Split, second: Split
) -> None:
    kept = copy.deepcopy(route)
    once = routed(route, A, KEYS, OURS, first)
    assert routed(once, A, KEYS, OURS, first) == once
    assert routed(once, A, KEYS, OURS, second) == routed(route, A, KEYS, OURS, second)
    assert drifted(once, A, KEYS) == ()
    assert canonical(own(once, A, KEYS)) == canonical(route)
    assert route == kept


@given(routes(), splits)
def test_the_same_holds_when_an_api_server_adds_its_defaults(route: dict[str, Any], split: Split) -> None:
    once = defaulted(routed(route, A, KEYS, OURS, split))
    assert routed(once, A, KEYS, OURS, split) == once
    assert drifted(once, A, KEYS) == ()
    assert effective(own(once, A, KEYS)) == effective(route)


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


#: Edits that a person makes to rules by hand, the same before a release as in the middle of it.
Edit = Callable[[list[Any]], None]


def add_first(live: list[Any]) -> None:
    live.insert(0, rule(stable_ref("new"), path="/new"))


def add_last(live: list[Any]) -> None:
    live.append(rule(stable_ref("new"), path="/new"))


def remove_first(live: list[Any]) -> None:
    del live[0]


def reorder(live: list[Any]) -> None:
    live[0], live[1] = live[1], live[0]


def rename(live: list[Any]) -> None:
    live[0]["name"] = "renamed"


def time_out(live: list[Any]) -> None:
    live[1]["timeouts"] = {"request": "1s"}


def match_otherwise(live: list[Any]) -> None:
    live[1]["matches"] = [{"path": {"type": "PathPrefix", "value": "/otherwise"}}]


def filtered(live: list[Any]) -> None:
    live[0]["filters"] = [{"type": "RequestMirror", "requestMirror": {"backendRef": {"name": "s", "port": 1}}}]


EDITS = [add_first, add_last, remove_first, reorder, rename, time_out, match_otherwise, filtered]
edits = st.lists(st.sampled_from(EDITS), max_size=4)


def three_rules() -> dict[str, Any]:
    return http_route(
        rule(stable_ref("a"), stable_ref("c", weight=3), name="first"),
        rule(stable_ref("a", weight=2), stable_ref("b")),
        rule(stable_ref("a"), stable_ref("c", weight=3)),
    )


def edited(route: Any, by_hand: list[Edit]) -> dict[str, Any]:
    made = copy.deepcopy(dict(route))
    for edit in by_hand:
        if len(made["spec"]["rules"]) > 1:
            edit(made["spec"]["rules"])
    return made


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


def ref_of(live: Any, name: str, at: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = next(ref for ref in live["spec"]["rules"][at]["backendRefs"] if ref["name"] == name)
    return found


class TestForeignWeights:
    def written(self, *refs_: Any) -> dict[str, Any]:
        return copy.deepcopy(dict(routed(http_route(rule(*refs_)), A, KEYS, OURS, Split(20))))

    def test_a_weight_that_others_set_beside_ours_is_kept_in_the_scale_they_saw(self) -> None:
        live = self.written(stable_ref("a"), stable_ref("c"))
        ref_of(live, "c")["weight"] = 300
        back = own(live, A, KEYS)
        assert (ref_of(back, "a")["weight"], ref_of(back, "c")["weight"]) == (100, 300)
        again = routed(live, A, KEYS, OURS, Split(20))
        assert again["spec"] == live["spec"]

    def test_a_weight_that_others_set_keeps_the_originals_where_the_scale_is_the_users(self) -> None:
        live = self.written(stable_ref("a", weight=100), stable_ref("c", weight=50))
        ref_of(live, "c")["weight"] = 70
        back = own(live, A, KEYS)
        assert (ref_of(back, "a")["weight"], ref_of(back, "c")["weight"]) == (100, 70)

    def test_a_backend_that_others_added_keeps_its_share(self) -> None:
        live = self.written(stable_ref("a", weight=1))
        live["spec"]["rules"][0]["backendRefs"].append(stable_ref("d", weight=100))
        back = own(live, A, KEYS)
        assert (ref_of(back, "a")["weight"], ref_of(back, "d")["weight"]) == (100, 100)

    def test_a_list_that_was_applied_anew_is_the_users_whatever_its_weights(self) -> None:
        live = self.written(stable_ref("a"), stable_ref("c"))
        live["spec"]["rules"] = [rule(stable_ref("a", weight=80), stable_ref("c", weight=20))]
        back = own(live, A, KEYS)
        assert back["spec"]["rules"] == live["spec"]["rules"]

    def test_our_stable_reference_deleted_by_hand_is_put_back_rather_than_no_backend(self) -> None:
        live = self.written(stable_ref("a"))
        del live["spec"]["rules"][0]["backendRefs"][0]
        (back,) = own(live, A, KEYS)["spec"]["rules"]
        assert back == rule({"group": "", "kind": "Service"} | stable_ref("a"))


class TestDrift:
    def live(self) -> dict[str, Any]:
        route = http_route(rule(stable_ref("a"), stable_ref("c"), name="api"), rule(stable_ref("c"), path="/x"))
        return copy.deepcopy(dict(routed(route, A, KEYS, OURS, Split(20, (TESTER,)))))

    def test_a_weight_of_ours_that_others_set_is_told_and_mended(self) -> None:
        live = self.live()
        ref_of(live, "a-canary")["weight"] = 50
        assert drifted(live, A, KEYS) == ("rule api: Service/a-canary:8000 has weight 50, not 20",)
        assert routed(live, A, KEYS, OURS, Split(20, (TESTER,))) == self.live()

    def test_an_apply_of_the_users_manifest_is_told_and_mended(self) -> None:
        live = self.live()
        live["spec"]["rules"] = [rule(stable_ref("a"), stable_ref("c"), name="api"), rule(stable_ref("c"), path="/x")]
        assert drifted(live, A, KEYS) == (
            "rule api: Service/a-canary:8000 is gone",
            "rule api: Service/a:8000 has weight 1, not 80",
            "appended rule 1 is changed or gone",
        )
        assert routed(live, A, KEYS, OURS, Split(20, (TESTER,))) == self.live()

    def test_an_appended_rule_that_was_edited_is_told_and_does_not_outlive_the_release(self) -> None:
        live = self.live()
        live["spec"]["rules"][-1]["matches"] = [{"path": {"type": "Exact", "value": "/me"}}]
        assert drifted(live, A, KEYS) == ("appended rule 1 is changed or gone",)
        assert len(own(live, A, KEYS)["spec"]["rules"]) == 2
        assert routed(live, A, KEYS, OURS, Split(20, (TESTER,))) == self.live()

    def test_a_rule_that_the_user_sends_to_the_new_version_is_the_users(self) -> None:
        live = self.live()
        mine = rule(stable_ref("a-canary"), path="/mine")
        live["spec"]["rules"].insert(0, mine)
        assert drifted(live, A, KEYS) == ()
        assert own(live, A, KEYS)["spec"]["rules"][0] == mine

    @pytest.mark.parametrize("edit", [add_first, reorder, rename, time_out], ids=lambda edit: str(edit.__name__))
    def test_what_the_user_does_with_other_parts_is_no_drift(self, edit: Edit) -> None:
        assert drifted(edited(self.live(), [edit]), A, KEYS) == ()

    def test_a_rule_that_the_user_sends_elsewhere_is_no_drift(self) -> None:
        live = self.live()
        live["spec"]["rules"][0]["backendRefs"] = [stable_ref("c")]
        assert drifted(live, A, KEYS) == ()

    def test_a_rule_that_the_user_took_away_is_no_drift(self) -> None:
        live = self.live()
        del live["spec"]["rules"][0]
        assert drifted(live, A, KEYS) == ()


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["a", "weight", "rules"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["stable", "canary", "weight", "rules", "added", "parents"]), inner)
    ),
    max_leaves=8,
)


@given(routes(), json_values)
def test_a_mark_that_nobody_can_read_breaks_nothing(route: dict[str, Any], value: Any) -> None:
    live = marks.put(route, A, KEYS, value)
    assert drifted(live, A, KEYS) == ()
    assert canonical(own(live, A, KEYS)) == canonical(route)
    assert routed(live, A, KEYS, OURS, ALL_STABLE)["spec"] == route["spec"]
