"""How long somebody waits the next time."""

from __future__ import annotations

import pytest

from rollout_lws.rollout.backoff import doubled


@pytest.mark.parametrize(
    ("times", "seconds"), [(-(2**62), 10), (-1, 10), (0, 10), (1, 20), (4, 160), (5, 300), (2_000, 300), (2**62, 300)]
)
def test_a_wait_is_twice_as_long_each_time_up_to_the_longest(times: int, seconds: float) -> None:
    assert doubled(10, times, 300) == seconds
