"""The tables of "Which capacity?" are those that the forecast makes."""

from __future__ import annotations

from tests.docs import capacity


def test_the_tables_of_the_page_are_up_to_date() -> None:
    page = capacity.PAGE.read_text()
    assert capacity.written(page) == capacity.tables(), "run: python -m tests.docs.capacity"
    assert capacity.renewed(page) == page


def test_stale_tables_are_found_and_renewed() -> None:
    page = capacity.PAGE.read_text()
    stale = page.replace("| `InPlace` | 0 |", "| `InPlace` | 8 |")
    assert stale != page
    assert capacity.written(stale) != capacity.tables()
    assert capacity.renewed(stale) == page
