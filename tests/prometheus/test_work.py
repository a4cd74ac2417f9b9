"""When a pod is idle by what Prometheus has scraped of it: never by a sample that is old, nor by one of its servers."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from rollout_lws.analysis.idling import Heard, Idle, Told, Worked
from rollout_lws.analysis.readings import Exposition, Same, Sample, Trouble
from rollout_lws.prometheus.scrapes import ScrapedPod
from rollout_lws.prometheus.work import work_of

#: The drain began then.
SINCE = 100.0
A, B = "10.0.0.7:8000", "10.0.0.7:8001"
STALE = Trouble("Prometheus has no samples of it from just now: is it scraped?")


def scraped(*points: tuple[float, float | None]) -> dict[float, Exposition | Trouble]:
    """Requests that run, by second; None where the server does not say."""
    return {at: _exposed(requests) for at, requests in points}


def _exposed(requests: float | None) -> Exposition:
    waiting = {"vllm:num_requests_waiting": (Sample({}, 0.0),)}
    running = {} if requests is None else {"vllm:num_requests_running": (Sample({}, requests),)}
    return Exposition({**waiting, **running}, {})


def told(now: float, found: Mapping[str, Mapping[float, Exposition | Trouble]], before: Heard | None = None) -> Told:
    return work_of(ScrapedPod("uid", "p", SINCE), found, now, Idle(), before)


@pytest.mark.parametrize(
    ("now", "points", "idle"),
    [
        (131, ((85, 0), (100, 0), (115, 0), (130, 0)), 2),
        (131, ((85, 0), (100, 9), (115, 0), (130, 0)), 2),
        (131, ((100, 0), (115, 9), (130, 0)), 1),
        (131, ((100, 0), (115, 0), (130, 9)), 0),
        (131, ((100, 0), (115, None), (130, 0)), 2),
        (116, ((70, 0), (85, 0), (99, 0), (115, 0)), 1),
        (104.5, ((100, 0), (101, 0), (102, 0), (103, 0), (104, 0)), 1),
        (105.5, ((100, 0), (101, 0), (102, 0), (103, 0), (104, 0), (105, 0)), 2),
        (105.5, ((100, 0), (101, 0), (102, 3), (103, 0), (104, 0), (105, 0)), 1),
        (145, ((100, 0), (115, 0), (130, 0)), 2),
        (190, ((60, 0), (120, 0), (180, 0)), 2),
    ],
)
def test_zeros_count_that_are_five_seconds_apart(
    now: float, points: tuple[tuple[float, float | None], ...], idle: int
) -> None:
    assert told(now, {A: scraped(*points)}) == Worked(idle, frozenset({A}))


@pytest.mark.parametrize(
    ("now", "points", "expected"),
    [
        (146, ((100, 0), (115, 0), (130, 0)), Same()),  # the next scrape is due
        (160, ((100, 0), (115, 0), (130, 0)), Same()),
        (161, ((100, 0), (115, 0), (130, 0)), STALE),
        (107, ((85, 0), (99, 0)), Same()),  # no scrape since the drain began
        (150, ((130, 0),), Worked(1, frozenset({A}))),
        (191, ((130, 0),), Same()),  # one that may be scraped once a minute
        (251, ((130, 0),), STALE),
        (131, ((100, 0), (115, 0), (130, None)), Trouble("it does not say how many requests run")),
    ],
)
def test_an_old_sample_says_nothing(now: float, points: tuple[tuple[float, float | None], ...], expected: Told) -> None:
    assert told(now, {A: scraped(*points)}) == expected


@pytest.mark.parametrize(("heard_at", "expected"), [(120, Same()), (116, Same()), (115, STALE)])
def test_samples_that_are_late_each_time_say_nothing(heard_at: float, expected: Told) -> None:
    """The last one is 16 s old, of scrapes that are 15 s apart."""
    assert told(146, {A: scraped((115, 0), (130, 0))}, Heard(heard_at)) == expected


def test_a_pod_without_samples_is_not_idle() -> None:
    assert told(131, {}) == STALE


IDLE, BUSY = ((115, 0), (130, 0)), ((115, 0), (130, 4))


@pytest.mark.parametrize(
    ("other", "before", "expected"),
    [
        (IDLE, (), Worked(2, frozenset({A, B}))),
        (BUSY, (), Worked(0, frozenset({A, B}))),
        (((70, 0), (85, 0)), (), STALE),
        ((), (B,), STALE),
        (((85, 0), (99, 0), (124, 0)), (), Worked(1, frozenset({A, B}))),
    ],
    ids=["idle", "busy", "stale", "gone", "one zero"],
)
def test_each_of_a_pods_servers_has_to_be_idle(
    other: tuple[tuple[float, float], ...], before: tuple[str, ...], expected: Told
) -> None:
    found = {A: scraped(*IDLE)} | ({B: scraped(*other)} if other else {})
    assert told(131, found, Heard(126, servers=frozenset(before))) == expected
