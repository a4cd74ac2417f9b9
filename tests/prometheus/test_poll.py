"""Verdicts of users' queries: a share by its interval, any other value once, and what is no number never."""

from __future__ import annotations

from dataclasses import replace
from math import comb, inf, nan
from random import Random

import pytest

from rollout_lws.analysis.criterion import Verdict
from rollout_lws.analysis.looks import to_fail
from rollout_lws.prometheus.poll import Poll, Polled, Query
from rollout_lws.prometheus.scrapes import Prometheus

PLAIN = Query(Prometheus(), "x", limit=0.5, window=60.0)
SHARE = Query(Prometheus(), "x", limit=0.05, samples="n", window=60.0)


def polled(query: Query, *answers: Polled | str, every: float = 15.0) -> Poll:
    poll = Poll(query, 0.0, 0.0)
    for number, answer in enumerate(answers, 1):
        poll = poll.after(number * every, answer)
    return poll


@pytest.mark.parametrize(
    ("query", "value", "verdict"),
    [
        (PLAIN, 0.5, Verdict.PASSED),
        (PLAIN, 0.51, Verdict.FAILED),
        (Query(Prometheus(), "x", limit=0.5, at_least=True, window=60.0), 0.5, Verdict.PASSED),
        (Query(Prometheus(), "x", limit=0.5, at_least=True, window=60.0), 0.49, Verdict.FAILED),
    ],
)
def test_a_value_without_samples_is_judged_once_when_the_window_is_over(
    query: Query, value: float, verdict: Verdict
) -> None:
    assert polled(query, *[Polled(100.0)] * 3).verdict is None
    assert polled(query, *[Polled(100.0)] * 3, Polled(value)).verdict is verdict


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (Polled(nan), "its value is nan"),
        (Polled(inf), "its value is inf"),
        (Polled(nan, 500.0), "its value is nan"),
        (Polled(0.1, nan), "its samples are nan"),
        (Polled(0.1, -5.0), "its samples are -5"),
        (Polled(1.2, 500.0), "its value 1.2 is no share of its samples"),
        (Polled(-0.1, 500.0), "no share"),
        ("the query has no result", "the query has no result"),
    ],
)
def test_what_is_missing_is_no_verdict(answer: Polled | str, why: str) -> None:
    query = SHARE if isinstance(answer, Polled) and answer.samples is not None else PLAIN
    poll = polled(query, *[answer] * 20)
    assert poll.verdict is None
    assert why in poll.trouble
    assert poll.ended().verdict is Verdict.INCONCLUSIVE


def test_what_was_missing_and_comes_is_judged() -> None:
    assert polled(PLAIN, *["no answer"] * 9, Polled(0.1)).verdict is Verdict.PASSED


def test_few_samples_are_no_verdict() -> None:
    assert polled(SHARE, *[Polled(0.9, 99.0)] * 20).verdict is None


def _runs(share: float, rate: float) -> dict[Verdict | None, float]:
    """Verdicts of 300 releases whose requests fail with a probability."""
    counted: dict[Verdict | None, float] = {}
    for seed in range(300):
        random, bad, total, poll = Random(seed), 0, 0, Poll(SHARE, 0.0, 0.0)
        for number in range(1, 41):
            bad, total = bad + sum(random.random() < share for _ in range(int(rate))), total + int(rate)
            poll = poll.after(15.0 * number, Polled(bad / total, float(total)))
        counted[poll.verdict] = counted.get(poll.verdict, 0.0) + 1 / 300
    return counted


def test_shares_pass_fail_and_stay_open_as_promised() -> None:
    good, limit, bad = _runs(0.025, 60), _runs(0.05, 60), _runs(0.1, 60)
    assert good.get(Verdict.PASSED, 0) > 0.8 and good.get(Verdict.FAILED, 0) <= 0.05
    assert limit.get(Verdict.FAILED, 0) <= 0.05 and limit.get(Verdict.PASSED, 0) <= 0.08
    assert bad.get(Verdict.FAILED, 0) > 0.8 and bad.get(Verdict.PASSED, 0) <= 0.05


def test_what_is_watched_has_a_value_judged_at_the_end_of_each_window() -> None:
    poll = polled(replace(PLAIN, watched=True), *[Polled(0.1)] * 20)
    assert (poll.verdict, poll.windows) == (None, 5)
    assert [poll.after(300.0 + 15 * number, Polled(9.0)).verdict for number in (1, 2, 3)] == [None] * 3
    poll = poll.after(360.0, Polled(9.0))
    assert poll.verdict is Verdict.FAILED


def test_a_controller_that_was_restarted_goes_on_with_the_window_that_is_on() -> None:
    poll = Poll.at(replace(SHARE, watched=True), since=100.0, now=100.0 + 5.5 * 60)
    assert (poll.began, poll.windows, poll.looked) == (400.0, 5, 2)
    assert Poll.at(SHARE, since=100.0, now=100.0 + 5.5 * 60).began == 100.0


@pytest.mark.parametrize("limit", [0.005, 0.02, 0.05, 0.2])
def test_a_version_at_its_limit_fails_at_one_look_about_as_rarely_as_the_look_may_be_wrong(limit: float) -> None:
    query = Query(Prometheus(), "x", limit=limit, samples="n", window=60.0)
    samples = max(query.min_samples, -(-query.needed // 4))

    def fails(bad: int) -> bool:
        return polled(query, Polled(bad / samples, samples)).verdict is Verdict.FAILED

    fewest = next(bad for bad in range(samples) if fails(bad))
    exactly = [comb(samples, bad) * limit**bad * (1 - limit) ** (samples - bad) for bad in range(fewest)]
    assert 1 - sum(exactly) <= 1.4 * to_fail(query.confidence)


def test_a_window_that_has_no_answer_ends_all_the_same_and_is_told_of_once_it_has_lasted() -> None:
    poll = polled(replace(PLAIN, watched=True), *["no result"] * 4)
    assert (poll.began, poll.windows) == (60.0, 0)
    assert poll.lasting == ""
    poll = polled(replace(PLAIN, watched=True, window=300.0), *[*["no result"] * 8, Polled(0.1)] * 4)
    assert poll.lasting == ""
    poll = polled(replace(PLAIN, watched=True, window=300.0), *["no result"] * 40)
    assert poll.lasting == "no result"
