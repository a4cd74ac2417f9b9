"""The tables of "Which capacity?", made by the code that forecasts releases.

``python -m tests.docs.capacity`` writes them into the page.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from rollout_lws.api import BlueGreenStrategy, CanaryStrategy, StyleStrategy
from rollout_lws.cli.demo import manifests
from rollout_lws.forecast.forecast import forecast
from rollout_lws.forecast.model import Forecast, Given, Row
from tests.docs.pages import ROOT
from tests.docs.tables import table

PAGE = ROOT / "docs/capacity.md"
#: The worked example: four groups of eight accelerators that load for ten minutes, one of which may be away.
EXAMPLE, ACCELERATORS = Given(replicas=4, unavailable=1, load_seconds=600), 8
STYLES = {"InPlace": "`InPlace`", "Surge": "`Surge`", "ExtraWorkload": "`ExtraWorkload`", "BlueGreen": "blue-green"}
#: Without a table by step: a pair that its release scales, with and without ``shift``, and one that its owner scales.
PAIR, SHIFT, ROUTE_ONLY = "Pair", "shift", "RouteOnly"
#: Without a table by step, too: those whose second workload stays.
SWAP = "Swap"
SWAPS = {SWAP: f"blue-green, `{SWAP}`", "Shift": "`Shift`"}
PAIRS = {PAIR: f"`{PAIR}`", SHIFT: f"`{PAIR}`, `{SHIFT}`", ROUTE_ONLY: f"`{PAIR}`, `{ROUTE_ONLY}`"}


def steps_of_example(style: str) -> list[dict[str, Any]]:
    """A quarter and a half, each with its share, and all; blue-green and a pair have all requests on all groups
    first.
    """
    steps = [{"replicas": share, "traffic": share} for share in ("25%", "50%")]
    return [*steps, {"replicas": "100%"} | ({"traffic": "100%"} if style in ("BlueGreen", *SWAPS, *PAIRS) else {})]


def of_example(style: str) -> Forecast:
    routing = [{"service": "chat", "gateway": {"httpRouteName": "chat"}}]
    capacity = PAIR if style in PAIRS else style
    members = {"steps": steps_of_example(style), "trafficRoutings": routing}
    plan = _plan(capacity, members | ({"shift": {}} if style == SHIFT else {}))
    return forecast(plan, replace(EXAMPLE, scales_sides=style in (PAIR, SHIFT)))


def of_demo(style: str) -> Forecast:
    """What ``rollout-lws demo`` plays, with groups that load for ten minutes."""
    word = "blueGreen" if style == "BlueGreen" else "canary"
    made = manifests.rollout("v1", {"name": manifests.NAME}, routed=True, style=word)
    return forecast(_plan(style, made["spec"]["strategy"][word]), EXAMPLE)


def _plan(style: str, members: dict[str, Any]) -> StyleStrategy:
    if style in ("BlueGreen", SWAP):
        return BlueGreenStrategy.model_validate(members | ({"promotion": SWAP} if style == SWAP else {}))
    return CanaryStrategy.model_validate({**members, "capacity": style})


def tables() -> dict[str, str]:
    """Each table of the page by its name."""
    made = {"example": _markdown(_compared())}
    return made | {f"demo-{style}": _markdown(_steps(of_demo(style))) for style in STYLES}


def _compared() -> Iterator[tuple[str, ...]]:
    yield (
        "capacity",
        "extra accelerators",
        "model loads",
        "time",
        "ready groups, at least",
        "busiest group",
        "way back at 50%",
        "way back in the promotion",
    )
    for style, name in (STYLES | SWAPS | PAIRS).items():
        found = of_example(style)
        half, promotion = found.rows[1], found.rows[-1]
        # The owner of a pair scales the inactive side up, which loads all of its groups at the same time.
        beside = EXAMPLE.replicas if style == ROUTE_ONLY else 0
        yield (
            name,
            *figures(
                found.extra + beside,
                found.loads + beside,
                found.seconds + (EXAMPLE.load_seconds if beside else 0),
                found.ready,
                found.peak_load,
            ),
            _back(half),
            f"up to {_back(promotion)}" if promotion.back_loads else _back(promotion),
        )


def figures(extra: int, loads: int, seconds: float, ready: int, peak_load: float) -> tuple[str, ...]:
    """What a release of the example takes, as the page tells it."""
    return (
        str(extra * ACCELERATORS),
        str(loads),
        _minutes(seconds),
        f"{ready} of {EXAMPLE.replicas}",
        _load(peak_load),
    )


def _steps(found: Forecast) -> Iterator[tuple[str, ...]]:
    yield (
        "step",
        "new groups",
        "accelerators",
        "requests to new",
        "load of a new group",
        "of an old one",
        "busiest group",
        "model loads",
        "time",
        "way back",
    )
    for row in found.rows:
        last = row.step is None
        yield (
            "promotion" if last else f"{row.step}, approval" if row.approval else str(row.step),
            str(row.new),
            str((EXAMPLE.replicas + row.extra) * ACCELERATORS),
            f"{100 * row.share:.0f}%",
            _load(row.load_new),
            _load(row.load_stable),
            _load(row.peak_load),
            str(row.loads),
            _minutes(row.seconds),
            f"up to {_back(row)}" if last else _back(row),
        )


def _load(load: float | None) -> str:
    return "none is up" if load is None else f"{load:.2f}"


def _minutes(seconds: float) -> str:
    # A cell may be narrow, and a number stands with its unit.
    return f"{seconds / 60:.0f}\N{NO-BREAK SPACE}min"


def _back(row: Row) -> str:
    if not row.back_loads:
        return "at once"
    loads = "1 load" if row.back_loads == 1 else f"{row.back_loads} loads"
    return f"{loads}, {_minutes(row.back_seconds)}"


def _markdown(rows: Iterator[tuple[str, ...]]) -> str:
    return table(next(rows), rows)


_PLACE = re.compile(
    r"(?P<begin><!-- table: (?P<name>[\w-]+) -->\n)(?P<rows>.*?)(?P<end><!-- end of table -->)", re.DOTALL
)


def written(page: str) -> dict[str, str]:
    """The tables that stand in a page."""
    return {match["name"]: match["rows"] for match in _PLACE.finditer(page)}


def renewed(page: str) -> str:
    """The page with its tables as they should be."""
    made = tables()
    return _PLACE.sub(lambda match: match["begin"] + made[match["name"]] + match["end"], page)


if __name__ == "__main__":
    PAGE.write_text(renewed(PAGE.read_text()))
