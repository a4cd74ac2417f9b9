"""The story matrix as people read it: an act a line, a style and a traffic a column, printed when a test run ends.

Each story leaves a note with its report, so that whoever prints hears of stories that ran in other processes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

#: The name that a story's note goes by among a report's properties, and that of a release whose windows are told.
NOTE, WINDOWS = "story matrix", "windows"


@dataclass(frozen=True)
class Told:
    """``stories`` of one cell, all of which came to their end or not."""

    act: str
    style: str
    traffic: str
    stories: int = 1
    passed: bool = True

    def note(self) -> tuple[str, list[Any]]:
        """What a test records as a property: plain values, as they travel between processes."""
        return NOTE, [self.act, self.style, self.traffic, self.stories]


def told_by(properties: Iterable[tuple[str, Any]], *, passed: bool) -> list[Told]:
    """What the properties of one report tell of."""
    notes = [value for name, value in properties if name == NOTE]
    return [Told(act, style, traffic, stories, passed) for act, style, traffic, stories in notes]


def table(told: Sequence[Told]) -> list[str]:
    """Lines of the table; none when no story was told. A cell is "ok" or "FAILED" with its stories, "-" without any."""
    if not told:
        return []
    columns = list(dict.fromkeys(sorted((each.style, each.traffic) for each in told)))
    acts = list(dict.fromkeys(each.act for each in told))
    rows = [["", *(style for style, _ in columns)], ["", *(traffic for _, traffic in columns)]]
    for act in sorted(acts):
        here = [[each for each in told if (each.act, each.style, each.traffic) == (act, *column)] for column in columns]
        rows.append([act, *(_cell(each) for each in here)])
    return [f"story matrix: {sum(each.stories for each in told)} stories", *aligned(rows)]


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """A line for each row, with columns as wide as their longest text."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def windows_told(properties: Iterable[tuple[str, Any]]) -> list[str]:
    """A line for each release that told of its windows: how many, and how long each was open."""
    return [
        f"windows, {style}, StatefulSets {variant}: {len(lengths)}, open for"
        f" {', '.join(f'{each:.2f}' for each in lengths)} s"
        for name, value in properties
        if name == WINDOWS
        for style, variant, lengths in [value]
    ]


def _cell(told: Sequence[Told]) -> str:
    if not told:
        return "-"
    failed = sum(each.stories for each in told if not each.passed)
    return (
        f"FAILED {failed} of {sum(each.stories for each in told)}" if failed else f"ok {sum(t.stories for t in told)}"
    )
