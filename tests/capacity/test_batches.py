"""Batches: how many groups a step asks for, and when they are enough."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollout_lws.api import BlueGreenStrategy, CanaryStrategy, StyleStrategy
from rollout_lws.capacity.batches import batch, is_last_full, makes_no_groups, wanted_groups
from rollout_lws.capacity.replica_math import largest_batch
from rollout_lws.workload.groups import groups
from tests.workload.build import NOW, facts, lws, pod


def plan(*replicas: int | str, style: type[StyleStrategy] = CanaryStrategy, **last: Any) -> StyleStrategy:
    made = [{"replicas": each} for each in replicas]
    made[-1] |= last
    return style.model_validate({"steps": made})


def blue_green(*replicas: int | str) -> StyleStrategy:
    return plan(*replicas, style=BlueGreenStrategy)


def in_place(*replicas: int | str) -> StyleStrategy:
    made = [{"replicas": each} for each in replicas]
    return CanaryStrategy.model_validate({"steps": made, "capacity": "InPlace"})


@pytest.mark.parametrize(
    ("steps", "replicas", "wanted"),
    [
        (plan(1), 4, [1]),
        (plan(1, 2, 3), 4, [1, 2, 3]),
        (plan("20%", "50%"), 4, [1, 2]),
        (plan("1%"), 1000, [10]),
        (plan("1%"), 1, [1]),
        # Never more than there are of stable, never fewer than one before, never none.
        (plan(9), 4, [4]),
        (plan(3, "50%"), 4, [3, 3]),
        (plan("75%", 1), 4, [3, 3]),
        (plan(1, "50%"), 0, [1, 1]),
        (plan(5), 1, [1]),
        # The last step of 100 % is the promotion itself, unless requests are to be seen on all groups before.
        (plan(1, "100%"), 4, [1, 1]),
        (plan("50%", "100%"), 5, [3, 3]),
        (plan(1, "100%", traffic="100%"), 4, [1, 4]),
        (plan(1, "100%", matches=[{"path": {}}]), 4, [1, 4]),
        (plan("100%", "100%"), 4, [4, 4]),
        (plan("100%"), 4, [4]),
        (plan(1, 4), 4, [1, 4]),
        (plan("100%", "50%"), 4, [4, 4]),
        # Green is made in full before anything is promoted.
        (blue_green("50%", "100%"), 4, [2, 4]),
        (blue_green("100%"), 4, [4]),
        # In place the last group belongs to the promotion.
        (in_place("25%", "50%", "100%"), 4, [1, 2, 2]),
        (in_place(3, 4), 4, [3, 3]),
        (in_place("100%"), 4, [3]),
        (in_place(1), 2, [1]),
    ],
)
def test_groups_of_each_step(steps: StyleStrategy, replicas: int, wanted: list[int]) -> None:
    assert [wanted_groups(steps, index, replicas) for index in range(1, len(steps.steps) + 1)] == wanted


_REPLICAS = st.integers(1, 20) | st.integers(1, 100).map(lambda percent: f"{percent}%")


@given(st.lists(_REPLICAS, min_size=1, max_size=6), st.integers(0, 30))
def test_no_step_asks_for_fewer_groups_than_the_one_before_nor_for_more_than_all(values: Any, replicas: int) -> None:
    steps = plan(*values)
    wanted = [wanted_groups(steps, index, replicas) for index in range(1, len(steps.steps) + 1)]
    assert wanted == sorted(wanted)
    assert wanted[0] >= 1 and wanted[-1] <= max(1, replicas)


@pytest.mark.parametrize(
    ("steps", "index", "full", "none"),
    [
        (plan(1, "100%"), 2, True, True),
        (plan(1, "100%"), 1, False, False),
        (plan("100%"), 1, True, False),
        (plan("100%", "100%"), 1, False, False),
        (plan(1, 4), 2, False, False),
        (plan(1, "99%"), 2, False, False),
        (plan(1, "100%", traffic="auto"), 2, True, False),
        (blue_green(1, "100%"), 2, False, False),
    ],
)
def test_which_step_is_the_promotion(steps: StyleStrategy, index: int, full: bool, none: bool) -> None:
    assert (is_last_full(steps, index), makes_no_groups(steps, index)) == (full, none)


@pytest.mark.parametrize(
    ("wanted", "threshold", "ready", "enough"),
    [
        (1, None, 0, False),
        (1, None, 1, True),
        (4, None, 3, False),
        (4, None, 4, True),
        (4, None, 5, True),
        (4, 0, 3, False),
        (4, "0%", 3, False),
        (4, 1, 3, True),
        (4, 1, 2, False),
        (4, "25%", 3, True),
        (4, "26%", 2, True),
        # One group at least, whatever is tolerated.
        (4, "100%", 0, False),
        (4, "100%", 1, True),
        (2, 9, 0, False),
        (1, 1, 0, False),
    ],
)
def test_a_batch_is_enough_when_all_but_the_tolerated_groups_are_ready(
    wanted: int, threshold: Any, ready: int, enough: bool
) -> None:
    leaders = [pod(index, size=1) for index in range(ready)] + [pod(9, size=1, since=None)]
    judged = batch(groups(facts(lws(), *leaders)), wanted, threshold, NOW)
    assert (judged.wanted, judged.made, judged.ready, judged.enough) == (wanted, ready + 1, ready, enough)


def test_groups_on_their_way_out_are_neither_made_nor_ready() -> None:
    judged = batch(groups(facts(lws(), pod(0, size=1), pod(1, size=1, terminating=True))), 2, None, NOW)
    assert (judged.made, judged.ready, judged.enough) == (1, 1, False)


def test_a_batch_tells_when_the_next_group_will_count() -> None:
    leaders = [pod(index, size=1, since=NOW - timedelta(seconds=age)) for index, age in enumerate((60, 20, 25))]
    judged = batch(groups(facts(lws(), *leaders)), 3, None, NOW, minimum=30)
    assert (judged.ready, judged.enough, judged.next_ready_at) == (1, False, NOW + timedelta(seconds=5))
    later = NOW + timedelta(seconds=10)
    judged = batch(groups(facts(lws(), *leaders)), 3, None, later, minimum=30)
    assert (judged.ready, judged.enough, judged.next_ready_at) == (3, True, None)


@pytest.mark.parametrize(
    ("allowed", "serving", "replicas", "at_once"),
    [(1, 2, 4, 1), (2, 2, 4, 2), (3, 2, 4, 2), (9, 9, 4, 3), (0, 2, 4, 1), (1, 1, 1, 1), (2, 0, 4, 1)],
)
def test_no_more_groups_are_renewed_at_once_than_may_be_away_and_than_stand_in_for_them(
    allowed: int, serving: int, replicas: int, at_once: int
) -> None:
    assert largest_batch(allowed, serving, replicas) == at_once
