"""How losses and shares are counted: a release that is told to have lost nothing must have been looked at rightly."""

from __future__ import annotations

import math

import pytest

from tests.nodes.losses import (
    BEFORE,
    FRESH,
    KEPT,
    RESET,
    STREAM,
    Log,
    Request,
    Row,
    Said,
    Share,
    Tally,
    by_phase,
    failures,
    read,
    table,
    tally,
    windows,
)

PHASES = ((100.0, "step 1"), (200.0, "promotion"))


def answered(kind: str, started: float, version: str = "v1", seconds: float = 0.03) -> Request:
    return Request(kind, started, started + seconds, version, f"chat-{version}")


def lost(kind: str, started: float, ended: float, failure: str = "503 no healthy upstream") -> Request:
    return Request(kind, started, ended, failure=failure)


@pytest.mark.parametrize(
    ("lines", "log"),
    [
        ([], Log((), whole=False)),
        (['{"end":true}\n'], Log((), whole=True)),
        (
            ['["fresh",1.5,1.75,"v1",null,"chat-0"]\n', '["stream",1.0,2.0,null,"503 x",null]\n', '{"end":true}\n'],
            Log((Request(FRESH, 1.5, 1.75, "v1", "chat-0"), Request(STREAM, 1.0, 2.0, failure="503 x")), whole=True),
        ),
        # Its client was killed while it wrote.
        (['["kept",1,2,"v1",null,"a"]\n', '["kept",1.'], Log((Request(KEPT, 1, 2, "v1", "a"),), whole=False)),
    ],
)
def test_notes_are_read(lines: list[str], log: Log) -> None:
    assert read(lines) == log


@pytest.mark.parametrize("line", ["nonsense", "[1, 2]", "{}"])
def test_a_line_that_is_no_note_is_refused_unless_it_is_the_last(line: str) -> None:
    with pytest.raises(ValueError, match="no note of a request"):
        read([line, '{"end":true}'])


@pytest.mark.parametrize(
    ("request_", "phase"),
    [
        (answered(FRESH, 99.99), BEFORE),
        (answered(FRESH, 100.0), "step 1"),
        (answered(STREAM, 199.0, seconds=10), "step 1"),
        (lost(STREAM, 199.0, 203.0), "promotion"),
        (lost(KEPT, 99.0, 109.0), "step 1"),
        (lost(KEPT, 99.0, 300.0, RESET), "promotion"),
    ],
)
def test_a_request_belongs_to_the_phase_in_which_it_began_and_a_lost_one_to_that_in_which_it_failed(
    request_: Request, phase: str
) -> None:
    assert [each.name for each in by_phase([request_], PHASES) if each.tally != Tally()] == [phase]


def test_each_request_is_in_one_phase_by_kind_and_version() -> None:
    requests = [
        *(answered(FRESH, 100 + i, "v2" if i % 10 == 0 else "v1") for i in range(40)),
        *(answered(KEPT, 100 + i) for i in range(20)),
        answered(STREAM, 150, "v2"),
        lost(STREAM, 195, 200.5, "cut after 55 tokens: ended early"),
        lost(KEPT, 201, 201.01),
        lost(KEPT, 202, 202.01, RESET),
    ]
    step, promotion = by_phase(requests, PHASES)
    assert step.versions == {FRESH: {"v1": 36, "v2": 4}, KEPT: {"v1": 20}, STREAM: {"v2": 1}}
    assert (step.share("v2"), step.share("v3"), promotion.share("v2")) == (Share(4, 60), Share(0, 60), Share(0, 0))
    assert (step.tally, promotion.tally) == (
        Tally(60, 1, 0, 0),
        Tally(short=2, streams=1, lost=1, lost_streams=1, reset=1),
    )
    assert tally(requests) == Tally(short=62, streams=2, lost=1, lost_streams=1, reset=1)
    assert failures((step, promotion)) == [
        "00:03:20.500 promotion: stream failed after 5.500 s: cut after 55 tokens: ended early",
        "00:03:21.010 promotion: kept failed after 0.010 s: 503 no healthy upstream",
    ]


def test_only_the_first_failures_are_told_and_how_many_more() -> None:
    phases = by_phase([lost(FRESH, 100 + i, 101 + i) for i in range(7)], PHASES)
    assert len(failures(phases, most=2)) == 3
    assert failures(phases, most=2)[-1] == "step 1: 5 more"


def test_whose_stream_was_cut_is_told() -> None:
    cut = Request(STREAM, 100, 102, "v1", "chat-0", "cut after 20 tokens: ended early")
    told = "00:01:42.000 step 1: stream of v1 chat-0 failed after 2.000 s: cut after 20 tokens: ended early"
    assert failures(by_phase([cut], PHASES)) == [told]


def test_what_began_before_the_gateway_knew_a_share_is_left_out_of_it_and_not_out_of_the_counts() -> None:
    (step, _) = by_phase([answered(FRESH, 100.5), answered(FRESH, 101.5, "v2"), lost(FRESH, 100.1, 100.2)], PHASES, 1.0)
    assert (step.share("v2"), step.tally) == (Share(1, 1), Tally(short=3, lost=1))


def test_phases_come_in_order() -> None:
    with pytest.raises(ValueError, match="order"):
        by_phase([], tuple(reversed(PHASES)))


@pytest.mark.parametrize(
    ("share", "low", "high"),
    [
        # Wilson's interval, by the tables.
        (Share(0, 0), 0.0, 1.0),
        (Share(0, 100), 0.0, 0.0370),
        (Share(10, 100), 0.0552, 0.1744),
        (Share(50, 100), 0.4038, 0.5962),
        (Share(100, 100), 0.9630, 1.0),
        (Share(1000, 10000), 0.0943, 0.1060),
    ],
)
def test_the_interval_of_a_share(share: Share, low: float, high: float) -> None:
    assert share.interval == pytest.approx((low, high), abs=1e-4)


def test_a_share_agrees_with_what_was_said_or_not() -> None:
    assert [Share(96, 1000).agrees(said) for said in (0.1, 0.3)] == [True, False]
    assert math.isnan(Share(0, 0).fraction)


def test_windows_after_moments() -> None:
    requests = [
        answered(FRESH, 1.0),
        answered(KEPT, 1.9),
        lost(FRESH, 0.5, 1.5),
        lost(STREAM, 1.0, 3.5),
        answered(FRESH, 3),
    ]
    assert windows(requests, (1.0, 3.0, 9.0), 1.0) == (
        Tally(short=3, lost=1),
        Tally(short=1, streams=1, lost_streams=1),
        Tally(),
    )


def test_the_table() -> None:
    rows = [
        Row("canary", "drain", "HTTPRoute", Tally(26329, 191), (Said(0.1, Share(960, 10000)), Said(0.3, Share(0, 0)))),
        Row("canary", "die", "Service", Tally(18902, 58, 28, 15, reset=2), most=1310, most_streams=20),
    ]
    assert table(rows) == (
        "| release | pods | way | short requests | streams | lost requests | lost streams | shares said / seen |\n"
        "| --- | --- | --- | ---: | ---: | ---: | ---: | --- |\n"
        "| canary | drain | HTTPRoute | 26,329 | 191 | 0 | 0 | 10 % / 9.6 % (9.0 to 10.2), 30 % / none |\n"
        "| canary | die | Service | 18,902 | 58 | 28 of at most 1,310 (and 2 reset) | 15 of at most 20 | – |\n"
    )
