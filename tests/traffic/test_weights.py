"""The arithmetic of shares: what each side really gets."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollout_lws.traffic.route.weights import MOST, shared
from tests.traffic.build import property_test

ordinary = st.lists(st.integers(0, MOST // 100), min_size=1, max_size=16).filter(any)
any_weights = st.lists(st.integers(0, MOST), min_size=1, max_size=16).filter(any)


@pytest.mark.parametrize(
    ("weights", "percents", "expected"),
    [
        ([100], {0: 20}, [(80, 20)]),
        ([1], {0: 20}, [(80, 20)]),
        ([1], {0: 100}, [(0, 1)]),
        ([1], {0: 0}, [(1, 0)]),
        ([1, 3], {0: 20}, [(80, 20), (300, 0)]),
        ([0, 3], {0: 20}, [(0, 0), (3, 0)]),
        ([1, 1], {0: 20, 1: 50}, [(80, 20), (50, 50)]),
        ([10_000], {0: 33}, [(6_700, 3_300)]),
        ([1_000_000], {0: 1}, [(990_000, 10_000)]),
        ([999_999, 1], {0: 50}, [(500_000, 500_000), (1, 0)]),
    ],
)
def test_a_share_is_given_away(weights: list[int], percents: dict[int, int], expected: list[tuple[int, int]]) -> None:
    assert shared(weights, percents) == expected


@pytest.mark.parametrize("weights", [[1], [3], [1, 1, 1], [33, 33, 34], [7, 3]], ids=str)
def test_kruise_flaw_no_share_is_lost_by_rounding_down(weights: list[int]) -> None:
    for percent in range(101):
        pairs = shared(weights, dict.fromkeys(range(len(weights)), percent))
        total = sum(kept + given_away for kept, given_away in pairs)
        assert Fraction(sum(given_away for _, given_away in pairs), total) == Fraction(percent, 100)


@property_test
@given(ordinary, st.dictionaries(st.integers(0, 15), st.integers(0, 100)))
def test_the_real_share_of_every_side_is_exact_for_ordinary_weights(
    weights: list[int], percents: dict[int, int]
) -> None:
    percents = {index: percent for index, percent in percents.items() if index < len(weights)}
    pairs = shared(weights, percents)
    total = sum(kept + given for kept, given in pairs)
    for index, (kept, given_away) in enumerate(pairs):
        part = Fraction(weights[index], sum(weights))
        assert Fraction(kept + given_away, total) == part
        assert Fraction(given_away, total) == part * percents.get(index, 0) / 100


@property_test
@given(any_weights, st.integers(1, 99), st.data())
def test_whatever_the_weights_they_stay_in_range_and_no_side_is_lost_by_rounding(
    weights: list[int], percent: int, data: st.DataObject
) -> None:
    index = data.draw(st.integers(0, len(weights) - 1))
    pairs = shared(weights, {index: percent})
    total, largest = sum(weights), max(weights)
    for (kept, given_away), weight in zip(pairs, weights, strict=True):
        assert 0 <= kept <= MOST and 0 <= given_away <= MOST
        assert (kept > 0) == (weight > 0)
        assert abs(Fraction(kept + given_away, sum(map(sum, pairs))) - Fraction(weight, total)) * total <= (
            Fraction(17 * largest, MOST)
        )
