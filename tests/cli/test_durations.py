"""Durations as people write and read them."""

from __future__ import annotations

import pytest

from rollout_lws.cli.durations import short
from rollout_lws.objects.codec.durations import parse


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("0", 0), ("40", 40), ("40s", 40), ("1.5s", 1.5), ("10m", 600), ("1h30m", 5400), ("250ms", 0.25)],
)
def test_a_duration_is_read_as_seconds(text: str, seconds: float) -> None:
    assert parse(text) == seconds


@pytest.mark.parametrize("text", ["", "soon", "10 m", "-1s", "10x", "m10"])
def test_what_is_no_duration_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match="40s, 10m or 1h30m"):
        parse(text)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0.0s"), (3.14, "3.1s"), (42, "42s"), (702, "11m42s"), (3600, "1h"), (11520, "3h12m"), (41 * 86400, "41d")],
)
def test_an_age_shows_its_two_largest_units(seconds: float, text: str) -> None:
    assert short(seconds) == text
