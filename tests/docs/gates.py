"""The table of signals in docs/gates.md: ``python -m tests.docs.gates`` writes it anew."""

from __future__ import annotations

import re

from rollout_lws.analysis.kinds import Engine, Signal, words
from rollout_lws.analysis.signals import SOURCES, Source
from tests.docs.pages import ROOT
from tests.docs.tables import table

PAGE = ROOT / "docs/gates.md"
SECTION = re.compile(r"(?<=## Signals\n\n).*?(?=\nA signal)", re.DOTALL)


def signals() -> str:
    """Each signal with the metrics that it is read from, by engine."""
    rows = [(f"`{signal}`: {words(signal)}", *(_cell(engine, signal) for engine in Engine)) for signal in Signal]
    return table(("signal", *Engine), rows)


def _cell(engine: Engine, signal: Signal) -> str:
    sources = SOURCES[engine].get(signal, ())
    return "; ".join(", ".join(_names(source)) for source in sources) or "–"


def _names(source: Source) -> list[str]:
    return [f"`{name}`" for name in dict.fromkeys(source.families)]


if __name__ == "__main__":
    PAGE.write_text(SECTION.sub(lambda _: signals(), PAGE.read_text()))
