"""Bounds of autoscalers: what a hold makes of them, and that the user's own come back whatever happens meanwhile."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollout_lws.objects.resources import LEADER_WORKER_SETS
from rollout_lws.rollout.autoscaling import hpa_bounds
from rollout_lws.traffic import marks
from tests.traffic.build import KEYS, A, B, canonical, property_test

LWS = {"apiVersion": LEADER_WORKER_SETS.api_version, "kind": LEADER_WORKER_SETS.kind, "name": "llama"}


def autoscaler(low: int | None = 1, high: int = 10, **metadata: Any) -> dict[str, Any]:
    spec = {"scaleTargetRef": LWS, "maxReplicas": high, "metrics": [{"type": "Pods"}]}
    return {
        "metadata": {"name": "llama", "namespace": "prod", **metadata},
        "spec": spec | ({} if low is None else {"minReplicas": low}),
    }


def held(live: Any, replicas: int, *, pinned: bool = False, by: str = A) -> Any:
    return hpa_bounds.held(live, by, KEYS, replicas, pinned=pinned)


def edited(live: Any, **spec: int | None) -> Any:
    changed = {**live["spec"], **spec}
    return {**live, "spec": {member: value for member, value in changed.items() if value is not None}}


@pytest.mark.parametrize(("stated", "low"), [("f:metrics", 1), ("f:minReplicas", 4), ("f:maxReplicas", 1)])
def test_a_bound_that_somebody_states_just_as_it_is_held_is_theirs(stated: str, low: int) -> None:
    live = held(autoscaler(1, 10), 4)
    records = [{"manager": "argocd", "operation": "Apply", "fieldsV1": {"f:spec": {stated: {}}}}]
    live = {**live, "metadata": {**live["metadata"], "managedFields": records}}
    assert hpa_bounds.bounds(hpa_bounds.given_back(live, A, KEYS)) == (low, 10)
    assert hpa_bounds.drifted(live, A, KEYS) == ()


@pytest.mark.parametrize(
    ("low", "high", "replicas", "pinned", "expected"),
    [
        (1, 10, 4, False, (4, 10)),
        (None, 10, 4, False, (4, 10)),
        (6, 10, 4, False, (6, 10)),
        (4, 10, 4, False, (4, 10)),
        (1, 3, 5, False, (5, 5)),
        (0, 10, 2, False, (2, 10)),
        (1, 10, 0, False, (1, 10)),
        (0, 10, 0, True, (0, 10)),
        (1, 10, 4, True, (4, 4)),
        (None, 10, 1, True, (1, 1)),
        (6, 10, 4, True, (4, 4)),
        (1, 3, 5, True, (5, 5)),
        (5, 5, 5, True, (5, 5)),
    ],
)
def test_a_hold_lets_nothing_be_taken_away_and_a_pin_nothing_be_changed(
    low: int | None, high: int, replicas: int, pinned: bool, expected: tuple[int, int]
) -> None:
    before = autoscaler(low, high)
    after = held(before, replicas, pinned=pinned)
    assert hpa_bounds.bounds(after) == expected
    assert hpa_bounds.is_held(after, A, KEYS) is (expected != hpa_bounds.bounds(before))
    assert canonical(hpa_bounds.given_back(after, A, KEYS)) == canonical(before)


@pytest.mark.parametrize("pinned", [False, True])
def test_a_hold_that_stands_is_not_written_again(pinned: bool) -> None:
    once = held(autoscaler(), 4, pinned=pinned)
    assert canonical(held(once, 4, pinned=pinned)) == canonical(once)


@pytest.mark.parametrize(
    ("pinned", "numbers", "expected"),
    [(False, (4, 6), (6, 10)), (False, (4, 6, 3), (6, 10)), (True, (4, 6), (6, 6)), (True, (4, 6, 3), (3, 3))],
)
def test_the_number_of_groups_is_followed_up_and_by_a_pin_both_ways(
    pinned: bool, numbers: tuple[int, ...], expected: tuple[int, int]
) -> None:
    before = live = autoscaler(2)
    for replicas in numbers:
        live = held(live, replicas, pinned=pinned)
    assert hpa_bounds.bounds(live) == expected
    assert canonical(hpa_bounds.given_back(live, A, KEYS)) == canonical(before)


def test_an_lws_that_goes_to_zero_in_mid_release_leaves_the_hold_as_it_is() -> None:
    live = held(autoscaler(), 4)
    assert held(live, 0) is live


@pytest.mark.parametrize(
    ("pinned", "edit", "again", "after"),
    [
        # While held, and what is left of it afterwards.
        (False, {"minReplicas": 2}, (4, 10), (2, 10)),
        (False, {"minReplicas": 6}, (6, 10), (6, 10)),
        (False, {"maxReplicas": 20}, (4, 20), (1, 20)),
        (False, {"minReplicas": 2, "maxReplicas": 3}, (4, 4), (2, 3)),
        (False, {"minReplicas": None}, (4, 10), (1, 10)),
        (True, {"minReplicas": 2}, (4, 4), (2, 10)),
        (True, {"maxReplicas": 20}, (4, 4), (1, 20)),
        (True, {"minReplicas": 2, "maxReplicas": 8}, (4, 4), (2, 8)),
    ],
)
def test_what_a_user_sets_meanwhile_is_the_users_own_from_then_on(
    pinned: bool, edit: dict[str, int | None], again: tuple[int, int], after: tuple[int, int]
) -> None:
    live = edited(held(autoscaler(), 4, pinned=pinned), **edit)
    assert hpa_bounds.bounds(hpa_bounds.given_back(live, A, KEYS)) == after
    live = held(live, 4, pinned=pinned)
    assert hpa_bounds.bounds(live) == again
    assert hpa_bounds.bounds(hpa_bounds.given_back(live, A, KEYS)) == after


@pytest.mark.parametrize(
    ("low", "high", "replicas", "edit", "expected"),
    [(3, 5, 8, {"minReplicas": 6}, (6, 6)), (5, 6, 2, {"maxReplicas": 4}, (4, 4))],
)
def test_an_original_that_contradicts_what_a_user_has_set_gives_way(
    low: int, high: int, replicas: int, edit: dict[str, int | None], expected: tuple[int, int]
) -> None:
    live = edited(held(autoscaler(low, high), replicas, pinned=True), **edit)
    assert hpa_bounds.bounds(hpa_bounds.given_back(live, A, KEYS)) == expected


def test_drift_names_the_bounds_that_somebody_has_changed() -> None:
    live = held(autoscaler(), 4, pinned=True)
    assert hpa_bounds.drifted(live, A, KEYS) == ()
    assert hpa_bounds.drifted(edited(live, minReplicas=2), A, KEYS) == ("minReplicas",)
    assert hpa_bounds.drifted(edited(live, minReplicas=2, maxReplicas=9), A, KEYS) == ("maxReplicas", "minReplicas")
    assert hpa_bounds.drifted(autoscaler(), A, KEYS) == ()


def test_what_a_rollout_that_is_gone_has_left_never_becomes_the_original_of_the_next() -> None:
    before = autoscaler(2, annotations={"team": "chat"})
    left = held(before, 7, by=B)
    ours = held(hpa_bounds.all_given_back(left, (B,), KEYS), 4)
    assert hpa_bounds.bounds(ours) == (4, 10)
    assert marks.others(ours, A, KEYS) == ()
    assert canonical(hpa_bounds.given_back(ours, A, KEYS)) == canonical(before)


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        (LWS, "llama"),
        (LWS | {"apiVersion": "leaderworkerset.x-k8s.io/v2"}, "llama"),
        (LWS | {"kind": "Deployment"}, ""),
        (LWS | {"apiVersion": "apps/v1"}, ""),
        ({"kind": "LeaderWorkerSet", "name": "llama"}, ""),
    ],
)
def test_only_an_autoscaler_of_a_leaderworkerset_is_one_of_its(target: dict[str, str], expected: str) -> None:
    live = autoscaler()
    assert hpa_bounds.scaled_workload({**live, "spec": {**live["spec"], "scaleTargetRef": target}}) == expected


@pytest.mark.parametrize(
    ("owner", "expected"),
    [
        ({"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "name": "so", "controller": True}, "so"),
        ({"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "name": "so"}, ""),
        ({"apiVersion": "example.com/v1", "kind": "ScaledObject", "name": "so", "controller": True}, ""),
    ],
)
def test_kedas_own_is_told_by_its_controller(owner: dict[str, Any], expected: str) -> None:
    assert hpa_bounds.scaled_object(autoscaler(ownerReferences=[owner])) == expected


_NUMBERS = st.integers(min_value=1, max_value=9)
_PAIRS = st.tuples(_NUMBERS, _NUMBERS).map(sorted)


@property_test
@given(
    own=_PAIRS,
    pinned=st.booleans(),
    acts=st.lists(st.tuples(st.integers(min_value=0, max_value=9), st.none() | _PAIRS, st.booleans()), max_size=6),
)
def test_whatever_users_and_the_number_of_groups_do_both_holds_and_what_comes_back_are_valid(
    own: list[int], pinned: bool, acts: list[tuple[int, list[int] | None, bool]]
) -> None:
    before = live = autoscaler(*own)
    for replicas, edit, both in acts:
        if edit is not None:
            # The API server takes no bounds that contradict each other.
            wanted = {"minReplicas": edit[0]} | ({"maxReplicas": edit[1]} if both else {})
            low, high = hpa_bounds.bounds(edited(live, **wanted))
            live = edited(live, **wanted) if low <= high else live
        kept = copy.deepcopy(live)
        live = held(live, replicas, pinned=pinned)
        low, high = hpa_bounds.bounds(live)
        assert low <= high
        if replicas:
            assert (low, high) == (replicas, replicas) if pinned else low >= replicas
        back = hpa_bounds.bounds(hpa_bounds.given_back(live, A, KEYS))
        assert back[0] <= back[1]
        # What comes back never depends on how often a hold was written over it.
        assert back == hpa_bounds.bounds(hpa_bounds.given_back(kept, A, KEYS))
    if not any(edit for _, edit, _ in acts):
        assert canonical(hpa_bounds.given_back(live, A, KEYS)) == canonical(before)
