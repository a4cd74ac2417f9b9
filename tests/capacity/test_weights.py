"""Shares of requests as plain numbers of groups."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollout_lws.api import CanaryStrategy
from rollout_lws.capacity import known
from rollout_lws.capacity.base import CapacityStrategy
from rollout_lws.capacity.table import strategy_of_plan
from rollout_lws.capacity.weights import weight_in_promotion, weight_of_step
from tests.capacity.plans import plan


@pytest.mark.parametrize(
    ("members", "style"),
    [
        ({}, known.EXTRA_WORKLOAD),
        ({"capacity": "InPlace"}, known.IN_PLACE),
        ({"capacity": "Surge"}, known.SURGE),
        ({"capacity": "ExtraWorkload", "enableExtraWorkloadForCanary": True}, known.EXTRA_WORKLOAD),
        # Kruise's own word.
        ({"enableExtraWorkloadForCanary": False}, known.IN_PLACE),
        ({"enableExtraWorkloadForCanary": True}, known.EXTRA_WORKLOAD),
    ],
)
def test_a_canary_says_how_its_groups_are_made(members: dict[str, Any], style: CapacityStrategy) -> None:
    assert strategy_of_plan(CanaryStrategy.model_validate({"steps": [{"replicas": 1}], **members})) is style


def test_blue_green_has_a_style_of_its_own_and_only_two_styles_need_no_second_lws() -> None:
    assert strategy_of_plan(plan("BlueGreen", 1)) is known.BLUE_GREEN
    assert {style for style in known.STRATEGIES if style.one_workload} == {known.IN_PLACE, known.SURGE}


@pytest.mark.parametrize(
    ("style", "replicas", "steps", "weights"),
    [
        ("ExtraWorkload", 4, [(1, "20%"), (2, "40%")], [20, 40]),
        ("ExtraWorkload", 4, [1, (2, "0%"), (3, "7%")], [0, 0, 7]),
        # In proportion to groups: in a second LWS they come on top, in one they are of its number.
        ("ExtraWorkload", 4, [(1, "auto"), (4, "auto")], [20, 50]),
        ("BlueGreen", 4, [(1, "auto"), (4, "auto")], [20, 50]),
        ("InPlace", 4, [(1, "auto"), (2, "auto")], [25, 50]),
        ("Surge", 4, [(1, "auto"), (4, "auto")], [25, 100]),
        ("ExtraWorkload", 1000, [(1, "auto")], [1]),
        # The last group of an LWS in place is old until the promotion and keeps its due.
        ("InPlace", 4, [("100%", "100%")], [75]),
        ("InPlace", 3, [("100%", "100%")], [67]),
        ("InPlace", 1000, [("100%", "100%"), ("100%", "auto")], [99, 99]),
        ("InPlace", 4, [("100%", "60%")], [60]),
        ("Surge", 4, [("100%", "100%")], [100]),
        ("BlueGreen", 4, [("100%", "100%")], [100]),
        # What is only the promotion has the share of the step before.
        ("ExtraWorkload", 4, [(1, "20%"), "100%"], [20, 20]),
        ("InPlace", 4, [(2, "auto"), "100%"], [50, 50]),
        ("BlueGreen", 4, [(1, "20%"), "100%"], [20, 0]),
        # An LWS that was scaled to zero divides nothing.
        ("InPlace", 0, [(1, "auto")], [99]),
        ("ExtraWorkload", 0, [(1, "auto")], [100]),
    ],
)
def test_share_of_each_step(style: str, replicas: int, steps: list[Any], weights: list[int]) -> None:
    made = plan(style, *steps, routed=True)
    assert [weight_of_step(made, index, replicas) for index in range(1, len(steps) + 1)] == weights


@pytest.mark.parametrize(
    ("weight", "new", "replicas", "batch_size", "expected"),
    [(20, 1, 4, 1, 25), (40, 1, 4, 1, 40), (0, 2, 4, 2, 50), (0, 1, 1, 1, 100), (10, 0, 1, 1, 10), (0, 1, 3, 1, 34)],
)
def test_share_while_a_portion_of_stable_is_away(
    weight: int, new: int, replicas: int, batch_size: int, expected: int
) -> None:
    assert weight_in_promotion(weight, new, replicas, batch_size) == expected


@given(st.integers(0, 100), st.integers(1, 40), st.integers(2, 40), st.integers(1, 40))
def test_a_promotion_takes_nothing_from_the_canary_and_gives_old_groups_no_more_than_even_load(
    weight: int, new: int, replicas: int, batch_size: int
) -> None:
    batch_size = min(batch_size, replicas - 1)
    share = weight_in_promotion(weight, new, replicas, batch_size)
    assert weight <= share <= 100
    staying = replicas - batch_size
    assert (100 - share) * (new + staying) <= 100 * staying
