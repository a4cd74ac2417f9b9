"""Capacity Swap: a release makes a second LWS, and the next one wakes the user's, which is parked."""

from __future__ import annotations

import pytest

from rollout_lws.capacity.known import BLUE_GREEN, SWAP, SWAP_BACK
from rollout_lws.objects.writes import Create, Patch
from tests.capacity.test_strategies import R, asked
from tests.workload.build import facts, lws

HOLD = {"spec": {"rolloutStrategy": {"rollingUpdateConfiguration": {"partition": 1_000_000}}}}


def test_a_release_from_home_makes_what_blue_green_makes() -> None:
    for replicas in (2, R):
        (one,), (other,) = (each.scale(asked("OOOO", replicas, each)).writes for each in (SWAP, BLUE_GREEN))
        assert isinstance(one, Create) and one == other


def test_both_ways_change_roles_and_make_their_groups_beside_the_old_ones() -> None:
    for strategy in (SWAP, SWAP_BACK):
        assert strategy.swaps and strategy.full_set and not strategy.paired and not strategy.one_workload
        assert strategy.of_new("stable", "canary") == "canary"
        assert strategy.extra(3) == 3 and strategy.makes_groups
    assert SWAP.name == SWAP_BACK.name


@pytest.mark.parametrize(
    ("replicas", "empty", "hold", "wanted", "body", "waits"),
    [
        (0, False, None, 2, None, "waiting until LeaderWorkerSet llama has no groups of an earlier version"),
        (0, True, HOLD, 2, HOLD, "LeaderWorkerSet llama is being held"),
        (0, True, None, 2, {"spec": {"replicas": 2}}, ""),
        (2, False, HOLD, 4, HOLD, "LeaderWorkerSet llama is being held"),
        (2, False, None, 4, {"spec": {"replicas": 4}}, ""),
        (4, False, None, 2, {"spec": {"replicas": 2}}, ""),
        (4, False, None, 4, None, ""),
    ],
)
def test_the_parked_lws_is_woken_when_it_is_empty_and_held(
    replicas: int, empty: bool, hold: object, wanted: int, body: object, waits: str
) -> None:
    parked = facts(lws(replicas))
    result = SWAP_BACK.scale(asked("NNNN", wanted, SWAP_BACK, canary=parked, empty=empty, hold=hold))
    written = [write.body for write in result.writes if isinstance(write, Patch)]
    assert written == ([body] if body is not None else [])
    assert result.message.startswith(waits) and bool(result.message) == bool(waits)
    assert result.done == (replicas == wanted)
    # Nothing that was judged of one without groups may have changed.
    woken = replicas == 0 and body == {"spec": {"replicas": wanted}}
    assert all(bool(write.resource_version) == (woken or body is HOLD) for write in result.writes)


def test_without_the_parked_lws_nothing_is_made() -> None:
    result = SWAP_BACK.scale(asked("NNNN", 2, SWAP_BACK))
    assert result.writes == () and not result.done and result.message
