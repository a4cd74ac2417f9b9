"""What the page on real nodes promises is what its table says, and the table is of whole releases."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from tests.nodes import page
from tests.nodes.losses import Row, Said, Share, Tally
from tests.nodes.release import BLUE_GREEN, DRAINING, STYLES
from tests.nodes.stories import DIRECT, OFF, REQUESTS, ROUTE, SAMPLE, STREAMS, keys

_MOST = re.compile(r"of at most ([\d,]+)")
_SHARE = re.compile(r"([\d.]+) % / ([\d.]+) %")


def number(text: str) -> int:
    return int(text.split()[0].replace(",", ""))


def test_rows_are_of_releases_that_are_told() -> None:
    rows = [(row["release"], row["pods"], row["way"]) for row in page.table()]
    assert rows == [key for key in keys() if key in rows]
    assert {(story.row, story.pods.name, ROUTE) for story in SAMPLE} <= set(rows)
    # By weights: sorts of pods, ends and ways; by a header and by the Service alone: their ways.
    assert len(keys()) == len(set(keys())) == len(STYLES) * 2 * 2 * 2 + 3 + 2


def test_what_is_promised_was_seen() -> None:
    for row in page.table():
        assert number(row["short requests"]) >= REQUESTS
        assert number(row["streams"]) >= STREAMS
        emptied = row["release"].startswith(BLUE_GREEN.name) and row["way"] == ROUTE
        for lost in (row["lost requests"], row["lost streams"]):
            most = _MOST.search(lost)
            assert number(lost) <= (number(most[1]) if most else 0), row
            assert not (most and (emptied or row["pods"] == DRAINING.name)), row
        for said, seen in _SHARE.findall(row["shares said / seen"]):
            assert abs(float(said) - float(seen)) <= OFF, row


def test_a_run_writes_the_table_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy = tmp_path / "page.md"
    copy.write_text(page.PAGE.read_text())
    monkeypatch.setattr(page, "PAGE", copy)
    before = copy.read_text()
    tally = Tally(short=12_345, streams=67, lost=8, lost_streams=9, reset=1)
    first = Row("canary, finish", "drain", ROUTE, tally, (Said(0.1, Share(1, 10)),))
    page.write([first], keys())
    page.write([replace(first, way=DIRECT, shares=())], keys())
    page.write([replace(first, tally=replace(tally, short=54_321))], keys())
    one, other = page.table()[:2]
    assert (one["short requests"], other["short requests"]) == ("54,321", "12,345")
    assert one["lost requests"] == "8 (and 1 reset)"
    assert one["shares said / seen"].startswith("10 % / 10.0 %")
    assert other["way"] == DIRECT
    head, _, tail = copy.read_text().partition("<!-- measured")
    assert before.startswith(head)
    assert before.endswith(tail.partition("<!-- end -->")[2])
