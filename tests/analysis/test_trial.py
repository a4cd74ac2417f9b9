"""Verdicts: what figures say is one, and what is missing never is.

Each row is fed to a trial round by round, as a controller would, until it has a verdict or its time is over.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from rollout_lws.analysis import looks
from rollout_lws.analysis.criterion import Criterion, Verdict
from rollout_lws.analysis.kinds import Signal
from rollout_lws.analysis.readings import Counts, Histogram, Level, Nothing, Read, Trouble, Work
from rollout_lws.analysis.trial import Trial

ROUND = 15.0
ROUNDS = 41
EDGES = (0.5, 1.0, 2.5)
FIRST = Criterion(Signal.TIME_TO_FIRST_TOKEN, limit=1.0, window=300)
ERRORS = Criterion(Signal.ERROR_RATE, limit=0.02, window=300)
QUEUE = Criterion(Signal.QUEUE_LENGTH, limit=8.0, window=300)
HITS = Criterion(Signal.PREFIX_CACHE_HITS, limit=0.5, at_least=True, window=300)
CACHE = Criterion(Signal.KV_CACHE_USAGE, limit=0.9, window=300)
RUNNING = Criterion(Signal.RUNNING_REQUESTS, limit=8.0, window=300)
FEW_RUNNING = Criterion(Signal.RUNNING_REQUESTS, limit=1.0, at_least=True, window=300)
RETRACTED = Criterion(Signal.PREEMPTIONS, limit=1.0, window=300)
STALL = Criterion(Signal.STALLED, limit=60.0, window=300)

#: What one pod, or several, answer in a round.
Told = Callable[[int], dict[str, Read]]


def fast(number: int, slow: int = 1, each: int = 60) -> Histogram:
    """So many requests a round, of which ``slow`` took longer than a second."""
    return Histogram(EDGES, ((each - slow) * number, 0, slow * number, 0))


def busy(value: float) -> Level:
    """A gauge of a pod that runs requests."""
    return Level(value, running=1)


def one(read: Callable[[int], Read]) -> Told:
    return lambda number: {"a": read(number)}


def played(criterion: Criterion, new: Told, stable: Told = lambda _: {}, rounds: int = ROUNDS) -> Trial:
    """The trial when it has a verdict, or its deadline has passed."""
    trial = Trial.at(0.0, criterion)
    for number in range(rounds):
        trial = trial.after(number * ROUND, new(number), stable(number))
        if trial.verdict is not None:
            return trial
    return trial.ended()


def replaced(number: int) -> dict[str, Read]:
    """Pod a until the tenth round, pod b after it."""
    return {"a": fast(number)} if number < 10 else {"b": fast(number - 9)}


def went_back(number: int) -> dict[str, Read]:
    """The container was restarted in the tenth round, after slow requests that are another life's."""
    return {"a": fast(number) if number < 10 else fast(number - 10)}


def other_buckets(number: int) -> dict[str, Read]:
    """Two pods of the version have other buckets; the limit is an edge of both."""
    return {"a": fast(number), "b": Histogram((0.1, 1.0, 5.0), (30 * number, 29 * number, number, 0))}


def comes_late(number: int) -> dict[str, Read]:
    """A second pod, which is slow at once, comes in the tenth round."""
    late: dict[str, Read] = {"b": fast(number - 9, slow=50)} if number >= 10 else {}
    return {"a": fast(number), **late}


@pytest.mark.parametrize(
    ("criterion", "told", "verdict"),
    [
        (FIRST, one(fast), Verdict.PASSED),
        (FIRST, one(lambda number: fast(number, slow=10)), Verdict.FAILED),
        (ERRORS, one(lambda number: Counts(0, 60 * number)), Verdict.PASSED),
        (ERRORS, one(lambda number: Counts(6 * number, 60 * number)), Verdict.FAILED),
        (HITS, one(lambda number: Counts(45 * number, 60 * number)), Verdict.PASSED),
        (HITS, one(lambda number: Counts(15 * number, 60 * number)), Verdict.FAILED),
        (QUEUE, one(lambda _: busy(2)), Verdict.PASSED),
        (QUEUE, one(lambda _: busy(20)), Verdict.FAILED),
        # A queue that is too long is one, though nothing comes of it.
        (QUEUE, one(lambda _: Level(20)), Verdict.FAILED),
        (QUEUE, one(lambda number: Level(0, completed=number // 20)), Verdict.PASSED),
        (STALL, one(lambda number: Work(3, 100 * number)), Verdict.PASSED),
        (STALL, one(lambda number: Work(3, 100 * min(number, 5))), Verdict.FAILED),
        # One without requests neither stands still nor has shown that it works.
        (STALL, one(lambda _: Work(0, 100)), Verdict.INCONCLUSIVE),
        # Nor one whose queue is short, since it has none, whatever its pod has completed before.
        (QUEUE, one(lambda _: Level(0, completed=900)), Verdict.INCONCLUSIVE),
        (QUEUE, one(lambda number: Level(0, completed=900 if number < 9 else 0)), Verdict.INCONCLUSIVE),
        (CACHE, one(lambda _: Level(0)), Verdict.INCONCLUSIVE),
        (RUNNING, one(lambda _: Level(0)), Verdict.INCONCLUSIVE),
        (FEW_RUNNING, one(lambda _: Level(0)), Verdict.INCONCLUSIVE),
        (FEW_RUNNING, one(lambda number: Level(0, completed=9 * number)), Verdict.FAILED),
        (RETRACTED, one(lambda _: Level(0)), Verdict.INCONCLUSIVE),
        (HITS, one(lambda _: Counts(0, 0)), Verdict.INCONCLUSIVE),
        # Nothing that is missing is a verdict.
        (FIRST, one(lambda _: fast(0)), Verdict.INCONCLUSIVE),
        (FIRST, one(lambda _: fast(7)), Verdict.INCONCLUSIVE),
        (FIRST, one(lambda _: Nothing()), Verdict.INCONCLUSIVE),
        (FIRST, lambda _: {}, Verdict.INCONCLUSIVE),
        (FIRST, one(lambda _: Trouble("/metrics answered 404")), Verdict.INCONCLUSIVE),
        (ERRORS, one(lambda _: Nothing()), Verdict.INCONCLUSIVE),
        (ERRORS, one(lambda _: Counts(0, 0)), Verdict.INCONCLUSIVE),
        (ERRORS, one(lambda number: Counts(min(number, 2), 2 * min(number, 10))), Verdict.INCONCLUSIVE),
        (QUEUE, one(lambda _: Trouble("a counter is not a number")), Verdict.INCONCLUSIVE),
        (QUEUE, one(lambda _: Nothing()), Verdict.INCONCLUSIVE),
        (STALL, one(lambda _: Nothing()), Verdict.INCONCLUSIVE),
        # More failed requests than there were, as of counters that are not read at one moment, are all of them.
        (ERRORS, one(lambda number: Counts(90 * number, 60 * number)), Verdict.FAILED),
        # Figures of a gauge that was read for a moment only are none of the window.
        (QUEUE, one(lambda number: Level(20) if number < 4 else Trouble("no answer in 5 s")), Verdict.INCONCLUSIVE),
        # A version that has lost its pods passes nothing.
        (FIRST, lambda number: {"a": fast(number)} if number < 15 else {}, Verdict.INCONCLUSIVE),
        # Between the limit and half of it, and too few requests: nothing is sure.
        (FIRST, one(lambda number: fast(number, slow=3)), Verdict.INCONCLUSIVE),
        # Of requests between two edges nothing is known: the limit lies among all of them.
        (replace(FIRST, limit=0.7), one(lambda number: Histogram(EDGES, (0, 60 * number, 0, 0))), Verdict.INCONCLUSIVE),
        # What happens to pods and counters takes nothing away, and adds nothing.
        (FIRST, replaced, Verdict.PASSED),
        (FIRST, went_back, Verdict.PASSED),
        (FIRST, other_buckets, Verdict.PASSED),
        (FIRST, comes_late, Verdict.FAILED),
    ],
)
def test_verdicts(criterion: Criterion, told: Told, verdict: Verdict) -> None:
    assert played(criterion, told).verdict is verdict


def test_what_a_pod_counted_before_is_not_the_versions() -> None:
    """A pod's name, and its counters, may be those of a version before: only what came since counts."""
    before = Histogram(EDGES, (0, 0, 100_000, 100_000))
    assert played(FIRST, one(lambda number: before.plus(fast(number)))).verdict is Verdict.PASSED


def test_one_pod_that_cannot_be_read_keeps_a_version_from_passing_and_not_from_failing() -> None:
    def told(slow: int) -> Told:
        return lambda number: {"a": fast(number, slow), "b": Trouble("no answer in 5 s")}

    passing = played(FIRST, told(1))
    assert passing.verdict is Verdict.INCONCLUSIVE
    assert passing.unread == {"b": "no answer in 5 s"}
    assert played(FIRST, told(20)).verdict is Verdict.FAILED


def test_it_passes_when_the_pod_can_be_read_again() -> None:
    def told(number: int) -> dict[str, Read]:
        return {"a": fast(number), "b": Trouble("no answer in 5 s") if number < 30 else fast(number)}

    trial = played(FIRST, told)
    assert (trial.verdict, trial.last) == (Verdict.PASSED, 30 * ROUND)


@pytest.mark.parametrize(
    ("times", "verdict"), [(1.0, Verdict.PASSED), (3.0, Verdict.FAILED), (None, Verdict.INCONCLUSIVE)]
)
def test_compared_with_stable(times: float | None, verdict: Verdict) -> None:
    """The new version has so many times the slow requests of stable, which nobody asks where it is None."""
    criterion = replace(FIRST, limit=None, to_stable=1.5)
    edges = (0.25, 0.5, 0.75, 1.0, 2.5, 5.0)

    def stable(number: int) -> dict[str, Read]:
        return {"s": Histogram(edges, tuple(each * number for each in (200, 120, 50, 20, 10, 0, 0)))}

    def new(number: int) -> dict[str, Read]:
        slow = round(10 * (times or 1.0))
        shape = (200, 120, 50, 20, 10, 0, 0) if slow == 10 else (100, 100, 60, 50, 50, 40, 0)
        return {"n": Histogram(edges, tuple(each * number for each in shape))}

    silent: Told = lambda _: {"s": Nothing()}  # noqa: E731 - a row of its own
    assert played(criterion, new, silent if times is None else stable, 100).verdict is verdict


def test_failed_requests_compared_with_stable() -> None:
    criterion = replace(ERRORS, limit=None, to_stable=1.5)
    stable = one(lambda number: Counts(20 * number, 400 * number))
    assert played(criterion, one(lambda n: Counts(20 * n, 400 * n)), stable, 100).verdict is Verdict.PASSED
    assert played(criterion, one(lambda n: Counts(60 * n, 400 * n)), stable, 100).verdict is Verdict.FAILED
    none: Told = one(lambda number: Counts(0, 400 * number))
    assert played(criterion, one(lambda n: Counts(n // 20, 400 * n)), none).verdict is Verdict.INCONCLUSIVE


def test_a_verdict_stays() -> None:
    failed = played(FIRST, one(lambda number: fast(number, slow=30)))
    assert failed.after(10_000.0, {"a": fast(10_000)}, {}) is failed
    assert failed.ended() is failed


def test_a_version_that_is_far_off_is_found_early_and_a_good_one_is_watched_for_the_whole_window() -> None:
    assert played(FIRST, one(lambda number: fast(number, slow=40))).last <= 90
    assert played(FIRST, one(fast)).last == FIRST.window


def test_a_look_that_is_not_due_says_how_many_requests_are_missing() -> None:
    trial = played(FIRST, one(lambda number: fast(number, each=4, slow=0)), rounds=20)
    assert trial.verdict is Verdict.INCONCLUSIVE
    assert trial.figures.samples < (trial.figures.needed or 0)


@pytest.mark.parametrize("pods", [1, 20, 64, 300])
def test_one_pod_that_stands_still_is_found_among_many(pods: int) -> None:
    def told(number: int) -> dict[str, Read]:
        well: dict[str, Read] = {f"pod-{each}": Work(3, 100 * number) for each in range(pods)}
        return {**well, "hangs": Work(3, 100 * min(number, 8))}

    assert played(STALL, told).verdict is Verdict.FAILED


def test_a_multiple_of_nothing_is_no_limit() -> None:
    """Stable has had no queue: a single request that waits is not too many."""
    compared = replace(QUEUE, limit=None, to_stable=1.2)
    one_waits = one(lambda number: busy(1 if number == 3 else 0))
    assert played(compared, one_waits, one(lambda _: busy(0))).verdict is Verdict.INCONCLUSIVE
    assert played(compared, one(lambda _: busy(9)), one(lambda _: busy(4))).verdict is Verdict.FAILED
    assert played(compared, one(lambda _: busy(4)), one(lambda _: busy(4))).verdict is Verdict.PASSED


def test_a_stable_version_without_requests_is_nothing_to_compare_with() -> None:
    compared = replace(CACHE, limit=None, to_stable=1.2)
    new = one(lambda _: busy(0.3))
    for told in (one(lambda _: Level(0.3)), one(lambda _: Level(0.3, completed=900))):
        assert played(compared, new, told).verdict is Verdict.INCONCLUSIVE
    assert played(compared, one(lambda _: Level(0.3)), new).verdict is Verdict.INCONCLUSIVE
    assert played(compared, new, new).verdict is Verdict.PASSED


def test_preemptions_of_a_few_requests_say_nothing() -> None:
    criterion = Criterion(Signal.PREEMPTIONS, limit=0.1, window=300)
    assert played(criterion, one(lambda number: Counts(min(number, 1), min(number, 3)))).verdict is Verdict.INCONCLUSIVE
    assert played(criterion, one(lambda number: Counts(9 * number, 30 * number))).verdict is Verdict.FAILED


def test_above_the_last_edge_nothing_is_known_that_could_fail_a_version() -> None:
    """Stable's p95 is just below the last edge, so that the limit lies beyond it."""
    criterion = replace(FIRST, limit=None, to_stable=1.5)
    edges = (10.0, 30.0, 60.0)
    stable = one(lambda number: Histogram(edges, (100 * number, 240 * number, 50 * number, 10 * number)))
    new = one(lambda number: Histogram(edges, (90 * number, 230 * number, 48 * number, 32 * number)))
    assert played(criterion, new, stable).verdict is not Verdict.FAILED


def test_many_failures_are_found_early_though_stable_has_hardly_any() -> None:
    """So few of stable's requests fail that millions would be needed to tell 120 % of them."""
    criterion = replace(ERRORS, limit=None, to_stable=1.2)
    trial = played(criterion, one(lambda n: Counts(200 * n, 400 * n)), one(lambda n: Counts(n // 10, 400 * n)))
    assert trial.verdict is Verdict.FAILED
    assert trial.last <= 150


def test_why_a_pod_cannot_be_read_is_told_once_it_lasts() -> None:
    """A reason that comes and goes is none, and the pod that was first stays so until all can be read."""

    def told(number: int) -> dict[str, Read]:
        if number >= 30:
            return {"a": fast(number), "b": fast(number)}
        why = f"cut {number}" if number < 10 or number % 2 else "503"
        return {"a": Trouble("503" if 10 <= number < 20 else why), "b": Trouble("404")}

    trial, lasting = Trial.at(0.0, replace(FIRST, window=3_600)), []
    for number in range(32):
        trial = trial.after(number * ROUND, told(number), {})
        lasting.append((trial.lost[0], trial.lost[1].lasting) if trial.lost is not None else None)
    assert lasting == [None] * 4 + [("a", "")] * 10 + [("a", "503")] * 16 + [None] * 2


WATCHED = replace(FIRST, watched=True)


def test_what_is_watched_begins_anew_after_each_window_and_counts_only_what_comes_then() -> None:
    trial = Trial.at(0.0, WATCHED)
    for number in range(400):
        trial = trial.after(number * ROUND, {"a": fast(number)}, {})
    assert (trial.verdict, trial.windows > 10) == (None, True)
    assert trial.new.samples < 2_000
    for number in range(400, 440):
        trial = trial.after(number * ROUND, {"a": Histogram(EDGES, (59 * 400, 0, 400 + 60 * (number - 399), 0))}, {})
    assert trial.verdict is Verdict.FAILED


def test_errors_of_windows_add_up_to_that_of_one() -> None:
    errors = [1 - looks.of_window(0.95, before) for before in range(10_000)]
    assert errors[0] == pytest.approx(0.025)
    assert sum(errors) <= 0.05
    assert errors == sorted(errors, reverse=True)


def test_a_gauge_that_is_watched_fails_in_a_later_window() -> None:
    watched = replace(QUEUE, watched=True)
    trial = Trial.at(0.0, watched)
    for number in range(60):
        trial = trial.after(number * ROUND, {"a": busy(2.0 if number < 30 else 20.0)}, {})
    assert trial.verdict is Verdict.FAILED


def test_a_pod_that_cannot_be_read_keeps_no_window_open() -> None:
    """An hour in which all is well must not hide what comes after it."""
    trial, broken = Trial.at(0.0, WATCHED), Trouble("it answers 503")
    for number in range(240):
        trial = trial.after(number * ROUND, {"a": fast(number), "b": broken}, {})
    assert trial.windows > 5
    assert trial.lost is not None
    for number in range(240, 280):
        slow = Histogram(EDGES, (59 * 240, 0, 240 + 60 * (number - 239), 0))
        trial = trial.after(number * ROUND, {"a": slow, "b": broken}, {})
    assert trial.verdict is Verdict.FAILED


def test_a_gauge_of_which_a_pod_cannot_be_read_is_watched_on_without_a_verdict() -> None:
    trial, broken = Trial.at(0.0, replace(QUEUE, watched=True)), Trouble("it answers 503")
    for number in range(100):
        trial = trial.after(number * ROUND, {"a": busy(20.0), "b": broken}, {})
    assert (trial.verdict, trial.windows > 2) == (None, True)


def test_while_a_pod_cannot_be_read_the_last_look_is_not_taken_again_and_again() -> None:
    """Only what is there when the time is over, or when it can be read again, decides."""
    broken = Trouble("it answers 503")
    trial = Trial.at(0.0, FIRST)
    for number in range(30):
        trial = trial.after(number * ROUND, {"a": fast(number), "b": broken}, {})
    assert (trial.verdict, trial.looked) == (None, looks.LOOKS - 1)
    unlucky = Histogram(EDGES, (59 * 29, 0, 29 + 1200, 0))
    trial = trial.after(31 * ROUND, {"a": unlucky, "b": broken}, {})
    assert trial.verdict is None
    assert trial.ended().verdict is Verdict.FAILED
