"""Renders what came of gates as text or JSON. Pure: results in, text out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rollout_lws.cli.analyze.model import Tried
from rollout_lws.cli.view import table

#: Result of a gate that was not asked.
NOT_ASKED = "NotAsked"
_NOTHING = "-"


def text(tried: Sequence[Tried]) -> list[str]:
    """A line of each gate; NEEDED are the requests that a verdict takes."""
    heading = ("GATE", "STEP", "RESULT", "VALUE", "LIMIT", "SAMPLES", "NEEDED", "WHY")
    return table([heading, *(_row(each) for each in tried)])


def document(namespace: str, name: str, revision: str, tried: Sequence[Tried]) -> dict[str, Any]:
    """The results as JSON; its members are under the versioning promise. ``revision`` is that of what serves."""
    return {
        "namespace": namespace,
        "name": name,
        "revision": revision,
        "gates": [
            {
                "name": each.planned.gate.name,
                "step": each.planned.step,
                "kind": next(iter(each.planned.gate.kinds), None),
                "result": _result(each),
                "value": each.shown.get("value"),
                "stableValue": each.shown.get("stable_value"),
                "limit": each.shown.get("limit"),
                "samples": each.shown.get("samples"),
                "stableSamples": each.shown.get("stable_samples"),
                "needed": each.needed,
                "query": each.shown.get("query"),
                "message": each.message,
            }
            for each in tried
        ],
    }


def _row(tried: Tried) -> tuple[str, ...]:
    gate, shown = tried.planned.gate, tried.shown
    told = (shown.get("value"), shown.get("limit"), _count(shown.get("samples")), _count(tried.needed))
    figures = (each or _NOTHING for each in told)
    return (gate.name, str(tried.planned.step or "release"), _result(tried), *figures, tried.message)


def _count(number: int | None) -> str | None:
    return f"{number:,}" if number is not None else None


def _result(tried: Tried) -> str:
    return NOT_ASKED if tried.result is None else tried.result.value
