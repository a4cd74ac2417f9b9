"""The table of signals in docs/gates.md: ``python -m tests.docs.gates`` writes it anew."""

from __future__ import annotations

import re

from rollout_lws.analysis.kinds import Engine, Exporter, Router, Signal, words
from rollout_lws.analysis.signals import SOURCES, Source
from tests.docs.pages import ROOT
from tests.docs.tables import table

PAGE = ROOT / "docs/gates.md"
SECTION = re.compile(r"(?<=## Signals\n\n).*?(?=\nA signal)", re.DOTALL)


def signals() -> str:
    """Each signal with the metrics that it is read from, by engine and router."""
    every = (*Engine, *Router)
    rows = [(f"`{signal}`: {words(signal)}", *(_cell(each, signal) for each in every)) for signal in Signal]
    return table(("signal", *every), rows)


def _cell(exporter: Exporter, signal: Signal) -> str:
    sources = SOURCES[exporter].get(signal, ())
    return "; ".join(", ".join(_names(source)) for source in sources) or "–"


def _names(source: Source) -> list[str]:
    return [f"`{name}`" for name in dict.fromkeys(source.families)]


if __name__ == "__main__":
    PAGE.write_text(SECTION.sub(lambda _: signals(), PAGE.read_text()))
