"""Shares, as a status tells them."""

from __future__ import annotations

import pytest

from rollout_lws.rollout.shares import weight_of


@pytest.mark.parametrize(
    ("told", "weight"),
    [
        ("20% and 2 matches", 20),
        ("100%", 100),
        (None, 0),
        ("", 0),
        ("much", 0),
        ("\u00b2%", 0),
        ("9" * 5000, 0),
    ],
)
def test_a_share_that_a_status_tells_is_read_as_far_as_it_is_one(told: str | None, weight: int) -> None:
    assert weight_of(told) == weight
