"""Requests that are planned for, before anything is measured, are those that the looks then wait for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rollout_lws.analysis.criterion import Criterion
from rollout_lws.analysis.judge import planned
from rollout_lws.analysis.kinds import Engine, Signal
from rollout_lws.analysis.looks import MOST_REQUESTS
from rollout_lws.analysis.signals import beside
from tests.analysis.simulated import GOOD, ROWS, Row, trial

_LATENCY = Criterion(Signal.TIME_TO_FIRST_TOKEN, limit=2.5)
_COMPARED = replace(_LATENCY, limit=None, to_stable=1.2)


@pytest.mark.parametrize("row", [row for row in ROWS if not row.criterion.compared], ids=lambda row: row.name)
def test_a_limit_needs_as_many_as_its_looks_wait_for(row: Row) -> None:
    assert planned(row.criterion, 0.1) == (trial(row, GOOD, 0).figures.needed, 0)


@pytest.mark.parametrize("row", [row for row in ROWS if row.criterion.compared], ids=lambda row: row.name)
def test_a_comparison_needs_about_as_many_as_its_looks_wait_for(row: Row) -> None:
    told = planned(row.criterion, 0.5)
    needed = sorted(trial(row, GOOD, seed).figures.needed or 0 for seed in range(9))[4]
    assert told is not None
    assert told[0] == pytest.approx(needed, rel=0.5)


@pytest.mark.parametrize(
    ("criterion", "share", "told"),
    [
        pytest.param(_LATENCY, 0.1, (434, 0), id="p95"),
        pytest.param(replace(_LATENCY, quantile=0.99), 0.1, (2243, 0), id="p99"),
        pytest.param(replace(_LATENCY, min_samples=5000), 0.1, (5000, 0), id="at least minSamples"),
        pytest.param(Criterion(Signal.PREFIX_CACHE_HITS, limit=0.95, at_least=True), 0.1, (434, 0), id="at least"),
        # The fewer stable has, the more of the new version are asked for.
        pytest.param(_COMPARED, 0.1, (1210, 10890), id="a tenth beside stable"),
        pytest.param(_COMPARED, 0.5, (2177, 2177), id="half beside stable"),
        pytest.param(_COMPARED, 0.9, (10882, 1210), id="stable has a tenth"),
        pytest.param(_COMPARED, 1.0, None, id="stable has none"),
        pytest.param(_COMPARED, 0.0, None, id="the new version has none"),
        pytest.param(replace(_LATENCY, signal=Signal.QUEUE_LENGTH, limit=8), 0.1, None, id="a gauge"),
        pytest.param(replace(_LATENCY, signal=Signal.STALLED), 0.1, None, id="a stall"),
    ],
)
def test_how_many_a_verdict_takes(criterion: Criterion, share: float, told: tuple[int, int] | None) -> None:
    assert planned(criterion, share) == told


def test_no_number_of_requests_shows_that_a_version_is_better_than_stable_by_less_than_nothing() -> None:
    told = planned(replace(_COMPARED, to_stable=0.9), 0.5)
    assert told is not None and told[0] > MOST_REQUESTS


@pytest.mark.parametrize(
    ("engine", "limit", "told"),
    [
        (Engine.VLLM, 2.0, (1.0, 2.5)),
        (Engine.VLLM, 2.5, (2.5, 2.5)),
        (Engine.VLLM, 0.0005, (None, 0.001)),
        (Engine.VLLM, 5000.0, (2560.0, None)),
        (Engine.SGLANG, 2.0, None),
    ],
)
def test_edges_beside_a_limit_are_those_that_the_server_comes_with(
    engine: Engine, limit: float, told: tuple[float | None, float | None] | None
) -> None:
    assert beside(Signal.TIME_TO_FIRST_TOKEN, engine, limit) == told
