"""What a measurement comes down to: one value against one goal, and a table of them.

A goal is missed at once but a run fails only far beyond it, because benchmarks run on machines that others use too.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

#: A figure this many times worse than its goal fails the run.
FAILS_AT = 3.0


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured value. ``better`` says on which side of ``goal`` a value should lie; ``unit`` is that of both. What
    has no goal is told, and fails nothing.
    """

    name: str
    value: float
    goal: float | None
    unit: str = ""
    better: Literal["less", "more"] = "less"

    @property
    def ratio(self) -> float:
        """How many times worse than the goal the value is: 1 is just met, 0.5 twice as good as asked for."""
        if self.goal is None:
            return 0.0
        bad, good = (self.value, self.goal) if self.better == "less" else (self.goal, self.value)
        if good > 0:
            return bad / good
        return 0.0 if bad <= 0 else math.inf

    @property
    def failed(self) -> bool:
        return self.ratio > FAILS_AT

    def to_json(self) -> dict[str, Any]:
        ratio = None if math.isinf(self.ratio) else round(self.ratio, 3)
        return {
            "name": self.name,
            "value": self.value,
            "goal": self.goal,
            "unit": self.unit,
            "better": self.better,
            "ratio": ratio,
        }


def percentile(samples: Sequence[float], share: float) -> float:
    """The smallest sample that at least ``share`` (0 to 1) of all samples do not exceed (nearest rank)."""
    if not samples:
        raise ValueError("no samples")
    return sorted(samples)[max(1, math.ceil(share * len(samples))) - 1]


def number(value: float) -> str:
    """Three digits that count, thousands apart, whole numbers as such."""
    if value == int(value) or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def table(figures: Iterable[Figure]) -> str:
    """A Markdown table of values and goals."""
    rows = [
        (
            each.name,
            f"{number(each.value)} {each.unit}".strip(),
            _asked(each),
            _told(each),
        )
        for each in figures
    ]
    return markdown(("figure", "value", "goal", "value / goal"), rows)


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table, aligned so that it also reads well in a terminal."""
    widths = [max(len(row[column]) for row in (header, *rows)) for column in range(len(header))]
    lines = [
        "|" + "|".join(f" {cell:<{width}} " for cell, width in zip(row, widths, strict=True)) + "|" for row in rows
    ]
    top = "|" + "|".join(f" {cell:<{width}} " for cell, width in zip(header, widths, strict=True)) + "|"
    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return "\n".join([top, rule, *lines])


def _asked(figure: Figure) -> str:
    if figure.goal is None:
        return ""
    return f"{'≤' if figure.better == 'less' else '≥'} {number(figure.goal)} {figure.unit}".strip()


def _told(figure: Figure) -> str:
    if figure.goal is None:
        return ""
    if figure.goal == 0:
        return "met" if figure.ratio == 0 else "missed"
    return f"{figure.value / figure.goal:.2f}"
