"""The table of losses in docs/real-nodes.md: written by runs of ``make e2e-nodes ALL=1``, read by a test."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from tests.nodes import losses
from tests.nodes.losses import Row

#: Release, pods and way.
Key = tuple[str, str, str]
PAGE = Path(__file__).parents[2] / "docs" / "real-nodes.md"
_TABLE = re.compile(r"(?<=<!-- measured by make e2e-nodes ALL=1 -->\n).*?(?=<!-- end -->)", re.DOTALL)


def write(rows: Iterable[Row], order: Iterable[Key]) -> None:
    """Put the rows in the place of those of the same releases, pods and ways, which stand in this ``order``."""
    head, rule, *measured = losses.table(rows).splitlines()
    lines = {key(line): line for line in (*_lines()[2:], *measured)}
    table = [head, rule, *(lines[each] for each in order if each in lines)]
    text = "".join(f"{line}\n" for line in ("", *table, ""))
    PAGE.write_text(_TABLE.sub(lambda _: text, PAGE.read_text(), count=1))


def table() -> list[dict[str, str]]:
    """The rows as they stand in the page, each cell by the title of its column."""
    head, _, *rows = map(_cells, _lines())
    return [dict(zip(head, row, strict=True)) for row in rows]


def key(line: str) -> Key:
    """Which release, pods and way a line is of."""
    release, pods, way, *_ = _cells(line)
    return release, pods, way


def _lines() -> list[str]:
    found = _TABLE.search(PAGE.read_text())
    assert found is not None
    return found[0].strip().splitlines()


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split(" | ")]
