"""Gateways that take up what was written: of which parents, for which generation, and what they say when not."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from rollout_lws.objects.resources import LWS_NAME
from rollout_lws.traffic import pools
from rollout_lws.traffic.route.status import Parent
from rollout_lws.traffic.route.weighted import parents
from rollout_lws.traffic.selectors import selector_changes
from rollout_lws.traffic.split import Backend, Backends, Split
from tests.traffic.build import (
    GATEWAY,
    KEYS,
    A,
    B,
    accepting_parents,
    condition,
    http_route,
    leader,
    own,
    parent_status,
    routed,
    rule,
    stable_ref,
    unaccepted,
)
from tests.workload.build import lws

BACKENDS = Backends(Backend("llama-api"), Backend("llama-api-canary"))
HTTPS, HTTP = GATEWAY | {"sectionName": "https"}, GATEWAY | {"sectionName": "http"}
GATEWAY_PARENT = Parent(name="inference", namespace="infra")


def route(*refs: Any, generation: int = 1) -> dict[str, Any]:
    return http_route(rule(stable_ref()), parents=refs or (GATEWAY,), generation=generation)


def reported(live: Any, *conditions: Any, at: int = 0) -> dict[str, Any]:
    made = copy.deepcopy(dict(live))
    made["status"]["parents"][at]["conditions"] = list(conditions)
    return made


def test_kruise_flaw_a_route_is_not_routed_before_its_parents_accept_the_new_generation() -> None:
    written = dict(routed(route(), A, KEYS, BACKENDS, Split(20)))
    written["metadata"] = {**written["metadata"], "generation": 2}
    asked = parents(written, A, KEYS)
    assert asked == (GATEWAY_PARENT,)
    assert unaccepted(written, asked) == (
        "HTTPRoute llama: Gateway infra/inference: Accepted is reported for generation 1, not yet for 2"
    )
    accepted = reported(written, condition("Accepted", generation=2), condition("ResolvedRefs", generation=2))
    assert unaccepted(accepted, asked) == ""


@pytest.mark.parametrize(
    ("conditions", "words"),
    [
        ([], "Accepted is not reported yet"),
        ([condition("Accepted")], "ResolvedRefs is not reported yet"),
        (
            [condition("Accepted", "False", reason="NotAllowedByListeners", message="no listener fits")],
            "Accepted is False (NotAllowedByListeners: no listener fits)",
        ),
        (
            [condition("Accepted"), condition("ResolvedRefs", "False", reason="BackendNotFound")],
            "ResolvedRefs is False (BackendNotFound)",
        ),
        (
            [condition("Accepted"), condition("ResolvedRefs"), condition("PartiallyInvalid", "True", message="rule 2")],
            "PartiallyInvalid is True (rule 2)",
        ),
        ([condition("Accepted"), condition("ResolvedRefs", generation=0)], "ResolvedRefs is reported for generation 0"),
    ],
)
def test_a_parent_that_does_not_accept_is_named_with_what_it_says(conditions: list[Any], words: str) -> None:
    said = unaccepted(
        reported(route(HTTPS), *conditions), (Parent(name="inference", namespace="infra", section="https"),)
    )
    assert said.startswith("HTTPRoute llama: Gateway infra/inference (section https): ")
    assert words in said


def test_conditions_that_say_all_is_well_are_accepted_whatever_else_is_reported() -> None:
    live = reported(
        route(),
        condition("Accepted"),
        condition("ResolvedRefs"),
        condition("PartiallyInvalid", "False", generation=0),
        condition("example.com/Other", "False"),
    )
    assert unaccepted(live, (GATEWAY_PARENT,)) == ""


def test_a_parent_that_was_broken_before_the_release_is_not_asked() -> None:
    live = reported(route(HTTPS, HTTP), condition("Accepted", "False"), at=1)
    asked = accepting_parents(live)
    assert [each.section for each in asked] == ["https"]
    assert unaccepted(live, asked) == ""


def test_the_parents_of_the_first_write_are_kept_through_later_ones() -> None:
    once = routed(route(HTTPS, HTTP), A, KEYS, BACKENDS, Split(20))
    broken = reported(once, condition("Accepted", "False"))
    again = routed(broken, A, KEYS, BACKENDS, Split(50))
    assert [each.section for each in parents(again, A, KEYS)] == ["http", "https"]
    assert parents(own(again, A, KEYS), A, KEYS) == ()
    assert parents(again, B, KEYS) == ()


def test_a_parent_that_left_the_spec_is_not_asked_any_more() -> None:
    live = reported(route(HTTPS, HTTP), condition("Accepted", "False"), at=1)
    live["spec"]["parentRefs"] = [HTTPS]
    both = tuple(Parent(name="inference", namespace="infra", section=section) for section in ("http", "https"))
    assert unaccepted(live, both) == ""


def test_a_parent_in_the_spec_without_a_word_in_status_has_not_accepted() -> None:
    live = route()
    del live["status"]
    assert accepting_parents(live) == ()
    assert unaccepted(live, (GATEWAY_PARENT,)) == "HTTPRoute llama: Gateway infra/inference says nothing about it"


def test_a_parent_in_the_routes_own_namespace_need_not_say_so() -> None:
    live = route({"name": "local"})
    live["status"]["parents"][0]["parentRef"] = {"name": "local", "namespace": "prod", "kind": "Gateway"}
    assert accepting_parents(live) == (Parent(name="local", namespace="prod"),)


def test_a_route_that_somebody_edited_just_now_still_has_the_parents_that_accepted() -> None:
    live = route()
    live["metadata"]["generation"] = 2
    assert accepting_parents(live) == (GATEWAY_PARENT,)


def test_a_parent_that_reports_no_generations_could_never_be_waited_for() -> None:
    assert accepting_parents(reported(route(), condition("Accepted", generation=0))) == ()


def test_of_two_controllers_for_a_parent_one_that_accepts_is_enough() -> None:
    live = route()
    live["status"]["parents"].insert(0, parent_status(GATEWAY, condition("Accepted", "False")))
    assert unaccepted(live, accepting_parents(live)) == ""


class TestPools:
    def pool(self, **labels: str) -> dict[str, Any]:
        return {
            "metadata": {"name": "llama", "namespace": "prod", "generation": 1},
            "spec": {"selector": {"matchLabels": labels or {"app": "llama"}}, "targetPorts": [{"number": 8000}]},
            "status": {"parents": [parent_status(GATEWAY, condition("Accepted"), condition("ResolvedRefs"))]},
        }

    def test_a_pool_is_pinned_and_given_back_exactly(self) -> None:
        before = self.pool()
        pinned = pools.pin(before, A, KEYS, selector_changes({LWS_NAME: "llama"}, "Leaders"))
        assert pools.selects(pinned, leader("llama")) and not pools.selects(pinned, leader("llama-canary"))
        assert pools.selects(before, leader("llama-canary"))
        assert pools.pin(pinned, A, KEYS, selector_changes({LWS_NAME: "llama"}, "Leaders")) == pinned
        assert pools.unpinned(pinned, A, KEYS) == before == self.pool()
        edited = copy.deepcopy(dict(pinned))
        edited["spec"]["selector"]["matchLabels"]["leaderworkerset.sigs.k8s.io/name"] = "x"
        assert pools.drifted(edited, A, KEYS) == ("leaderworkerset.sigs.k8s.io/name",)

    def test_a_pool_is_in_use_when_the_gateways_that_accepted_it_accept_the_new_selector(self) -> None:
        pinned = copy.deepcopy(dict(pools.pin(self.pool(), A, KEYS, selector_changes({LWS_NAME: "llama"}, "Leaders"))))
        pinned["metadata"]["generation"] = 2
        asked = pools.parents(pinned, A, KEYS)
        assert asked == (GATEWAY_PARENT,)
        assert pools.unaccepted(pinned, asked)
        assert "generation 1, not yet for 2" in pools.unaccepted(pinned, asked)
        assert pools.unaccepted(reported(pinned, condition("Accepted", generation=2)), asked) == ""
        unresolved = condition("ResolvedRefs", "False", 2, message="no such picker")
        said = pools.unaccepted(reported(pinned, condition("Accepted", generation=2), unresolved), asked)
        assert said == "InferencePool llama: Gateway infra/inference: ResolvedRefs is False (no such picker)"
        pinned["status"]["parents"] = []
        assert pools.unaccepted(pinned, asked) == ""

    def test_the_placeholder_of_a_pool_that_no_gateway_uses_is_no_parent(self) -> None:
        pool = self.pool()
        pool["status"]["parents"] = [
            parent_status({"kind": "Status", "name": "default"}, condition("Accepted", "Unknown", generation=0))
        ]
        assert pools.accepting_parents(pool) == ()

    def test_an_unfit_pool_is_refused_with_what_to_do(self) -> None:
        def said(pool: Any, leaders: Any) -> str:
            return pools.pool_problem(pool, A, KEYS, workload=lws(), leaders=leaders)

        ours = {"llama": [leader("llama")], "llama-canary": [leader("llama-canary")]}
        assert said(self.pool(), ours) == ""
        assert "InferencePool llama selects no leader" in said(self.pool(app="x"), ours)
        assert "besides llama" in said(self.pool(), ours | {"decode": [leader("decode")]})
        hold_record = pools.pin(self.pool(), B, KEYS, selector_changes({LWS_NAME: "llama"}, "Leaders"))
        assert "pinned by another Rollout" in said(hold_record, ours)
