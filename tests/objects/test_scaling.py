"""Counts and percentages."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollout_lws.objects.scaling import scaled, whole_number


@pytest.mark.parametrize(
    ("value", "total", "up", "down"),
    [
        (0, 4, 0, 0),
        (3, 4, 3, 3),
        (9, 4, 9, 9),
        ("0%", 4, 0, 0),
        ("0%", 0, 0, 0),
        ("100%", 0, 0, 0),
        ("1%", 1, 1, 0),
        ("1%", 100, 1, 1),
        ("1%", 101, 2, 1),
        ("25%", 4, 1, 1),
        ("26%", 4, 2, 1),
        ("33%", 3, 1, 0),
        ("34%", 3, 2, 1),
        ("50%", 5, 3, 2),
        ("99%", 100, 99, 99),
        ("99%", 10, 10, 9),
        ("100%", 7, 7, 7),
        ("007%", 100, 7, 7),
        # 29 % of 100 in floating point is 28.999…
        ("29%", 100, 29, 29),
        ("57%", 1_000_000, 570_000, 570_000),
    ],
)
def test_percentages_are_exact_and_rounded_as_asked(value: int | str, total: int, up: int, down: int) -> None:
    assert (scaled(value, total), scaled(value, total, up=False)) == (up, down)


@pytest.mark.parametrize("value", ["", "%", "20", "20 %", " 20%", "20%\n", "-5%", "+5%", "2.5%", "1000%", "x%", "٣٠%"])
def test_what_is_neither_is_an_error_that_says_so(value: str) -> None:
    with pytest.raises(ValueError, match="is neither a whole number nor a percentage like 25%"):
        scaled(value, 10)


@given(st.integers(0, 100), st.integers(0, 10_000))
def test_a_share_and_its_rest_make_the_whole(percent: int, total: int) -> None:
    assert scaled(f"{percent}%", total) + scaled(f"{100 - percent}%", total, up=False) == total
    assert 0 <= scaled(f"{percent}%", total, up=False) <= scaled(f"{percent}%", total) <= total


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", 0),
        ("007", 7),
        ("999999999", 999_999_999),
        ("", None),
        ("1000000000", None),
        ("9" * 5000, None),
        ("-1", None),
        ("+1", None),
        (" 1", None),
        ("1_0", None),
        ("1.0", None),
        ("\u00b2", None),
        ("\u0663", None),
    ],
)
def test_what_anybody_may_have_written_is_a_number_only_in_a_few_plain_digits(text: str, number: int | None) -> None:
    assert whole_number(text) == number
