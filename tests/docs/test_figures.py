"""Figures that other pages quote are those of the benchmarks' page, which has them from one run."""

from __future__ import annotations

import re

from tests.docs.pages import ROOT

_CELLS = re.compile(r"^\| (.+?) *\|$", re.MULTILINE)
FLEET = "5,000 Rollouts, 100 of them in mid-release"


def rows(page: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.split(" | ")] for line in _CELLS.findall((ROOT / page).read_text())]


MEASURED = rows("docs/benchmarks.md")


def test_the_readme_quotes_what_was_measured() -> None:
    quoted = [row for row in rows("README.md") if row[-1].startswith(("≤", "≥"))]
    assert len(quoted) > 5
    measured = [row[:3] for row in MEASURED]
    assert [row for row in quoted if row not in measured] == []


def test_takeovers_are_quoted_as_they_were_measured() -> None:
    measured = {row[0]: row[2:4] for row in MEASURED if row[1:2] == [FLEET]}
    quoted = {row[0]: row[1:] for row in rows("docs/leader-election.md") if row[-1].endswith(" s")}
    assert quoted == measured
    assert len(measured) == 4


def test_the_memory_of_5000_in_a_sentence_is_in_the_table() -> None:
    (memory,) = [row[3] for row in MEASURED if row[0] == "5,000 at rest"]
    assert f", {memory}," in (ROOT / "README.md").read_text()
