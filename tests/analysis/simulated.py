"""Simulated servers: what a trial concludes of versions whose truth is known.

Requests of one pod have the same luck for a while, as those of a real server have, which gets bursts and long prompts:
the logarithms of their times share a term that fades with half-lives of some seconds to a minute.

``python -m tests.analysis.simulated [RUNS]`` prints the table of docs/gates.md.
"""

from __future__ import annotations

import random
import sys
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from math import exp, log
from statistics import NormalDist

from rollout_lws.analysis import signals
from rollout_lws.analysis.criterion import Criterion, Verdict
from rollout_lws.analysis.kinds import Engine, Measure, Signal
from rollout_lws.analysis.readings import Counts, Histogram, Reading
from rollout_lws.analysis.trial import Trial
from rollout_lws.prometheus.poll import Poll, Polled, Query
from rollout_lws.prometheus.scrapes import Prometheus

#: vLLM's buckets of time to first token, and of the time between tokens.
EDGES = signals.EDGES[Engine.VLLM][Signal.TIME_TO_FIRST_TOKEN]
TOKEN_EDGES = signals.EDGES[Engine.VLLM][Signal.INTER_TOKEN_LATENCY]
ROUND = 15.0
NORMAL = NormalDist()


@dataclass(frozen=True)
class World:
    """``pods`` of each version, ``requests`` of each pod in a round; ``together`` is the standard deviation of what
    requests share (the rest is ``alone``), of which the part ``lasting`` is still there in the next round.
    """

    pods: int = 4
    requests: int = 20
    alone: float = 0.8
    together: float = 0.25
    lasting: float = 0.3
    edges: tuple[float, ...] = EDGES

    @property
    def spread(self) -> float:
        return float((self.alone**2 + self.together**2) ** 0.5)

    def median(self, limit: float, slow: float) -> float:
        """The median time with which the share ``slow`` of requests takes longer than ``limit``."""
        return limit * exp(-self.spread * NORMAL.inv_cdf(1 - slow))


@dataclass
class Server:
    """One pod; what it exposes counts since its start."""

    world: World
    draw: random.Random
    reading: Callable[[list[float]], Reading]
    luck: float = 0.0

    def __post_init__(self) -> None:
        self.luck = self.draw.gauss(0.0, 1.0)
        self.counted = self.reading([])

    def round(self) -> Reading:
        """A further round, after which its counters are these."""
        kept = self.world.lasting
        self.luck = kept * self.luck + (1 - kept * kept) ** 0.5 * self.draw.gauss(0.0, 1.0)
        shared, alone = self.world.together * self.luck, self.world.alone
        count = round(self.world.requests * self.draw.uniform(0.5, 1.5))
        more = self.reading([shared + self.draw.gauss(0.0, alone) for _ in range(count)])
        self.counted = self.counted.plus(more)  # type: ignore[arg-type]
        return self.counted


def latencies(world: World, median: float) -> Callable[[list[float]], Reading]:
    """Times around ``median`` seconds, as a histogram."""
    edges = [log(each / median) for each in world.edges]

    def histogram(times: list[float]) -> Histogram:
        counts = [0.0] * (len(edges) + 1)
        for each in times:
            counts[bisect_left(edges, each)] += 1
        return Histogram(world.edges, tuple(counts))

    return histogram


def failures(world: World, share: float) -> Callable[[list[float]], Reading]:
    """Requests with the worst luck fail."""
    limit = world.spread * NORMAL.inv_cdf(1 - share)
    return lambda times: Counts(sum(each > limit for each in times), len(times))


@dataclass(frozen=True)
class Row:
    """A criterion, and servers of which it is asked. ``stable_median`` is that of a stable version's times, in seconds,
    where it is compared with one.
    """

    name: str
    criterion: Criterion
    world: World = World()
    stable_median: float = 0.0

    @property
    def allowed(self) -> float:
        """The share of requests that may be slow, or fail."""
        if self.criterion.measure is Measure.LATENCY:
            return 1 - self.criterion.quantile
        assert self.criterion.limit is not None
        return self.criterion.limit

    def limit(self, times: float) -> float:
        """Seconds that so many times the allowed requests exceed. Between two edges nothing is known, so a good version
        is one by the lower edge, and a bad one by the upper.
        """
        if self.criterion.to_stable is not None:
            slowest = self.stable_median * exp(self.world.spread * NORMAL.inv_cdf(self.criterion.quantile))
            return self.criterion.to_stable * slowest
        assert self.criterion.limit is not None
        lower, upper = Histogram(self.world.edges, ()).around(self.criterion.limit)
        found = {GOOD: lower, AT_LIMIT: self.criterion.limit, BAD: upper}[times]
        assert found is not None
        return found

    def server(self, times: float) -> Callable[[list[float]], Reading]:
        """That of a version with so many times the bad requests that are allowed. One that is as good as stable has
        stable's times.
        """
        if self.criterion.measure is Measure.SHARE:
            return failures(self.world, self.allowed * times)
        if times == GOOD and self.stable_median:
            return latencies(self.world, self.stable_median)
        return latencies(self.world, self.world.median(self.limit(times), self.allowed * times))


def trial(row: Row, times: float, seed: int) -> Trial:
    """One release, looked at each round until there is a verdict: with as many requests as are planned."""
    draw = random.Random(f"{row.name} {times} {seed}")
    new = [Server(row.world, draw, row.server(times)) for _ in range(row.world.pods)]
    stable = [Server(row.world, draw, row.server(GOOD)) for _ in new] if row.criterion.compared else []
    found = Trial.at(0.0, row.criterion)
    now = 0.0
    while found.verdict is None:
        found = found.after(now, _round("new", new), _round("stable", stable))
        now += ROUND
        assert now < 1e6, found
    return found


def watched(row: Row, times: float, seed: int, windows: int) -> bool:
    """Whether a version fails within so many windows of a whole release."""
    draw = random.Random(f"{row.name} {times} {seed} watched")
    new = [Server(row.world, draw, row.server(times)) for _ in range(row.world.pods)]
    found = Trial.at(0.0, replace(row.criterion, watched=True))
    now = 0.0
    while found.verdict is None and found.windows < windows:
        found = found.after(now, _round("new", new), {})
        now += ROUND
    return found.verdict is Verdict.FAILED


def _round(version: str, servers: list[Server]) -> dict[str, Reading]:
    return {f"{version}-{number}": each.round() for number, each in enumerate(servers)}


@dataclass(frozen=True)
class Asked:
    """A query of a share of samples, asked each round of servers in ``world``."""

    name: str
    query: Query
    world: World = World()


def polled(asked: Asked, times: float, seed: int) -> Poll:
    """One release in which the query's value is that of a version with so many times the bad samples that are allowed.
    The answer has all samples since the gate began.
    """
    draw = random.Random(f"{asked.name} {times} {seed}")
    limit = asked.query.limit
    bad = (1 - limit if asked.query.at_least else limit) * times
    servers = [Server(asked.world, draw, failures(asked.world, bad)) for _ in range(asked.world.pods)]
    found, now = Poll(asked.query, 0.0, 0.0), 0.0
    while found.verdict is None:
        now += ROUND
        counts = [each.round() for each in servers]
        of, wrong = (sum(getattr(each, name) for each in counts) for name in ("total", "bad"))
        found = found.after(now, Polled((of - wrong if asked.query.at_least else wrong) / of, of))
        assert now < 1e6, found
    return found


@dataclass(frozen=True)
class Outcome:
    passed: float
    failed: float
    requests: float
    seconds: float


def outcome(row: Row | Asked, times: float, runs: int) -> Outcome:
    """Shares of releases, and what they took in the middle."""
    ended = [_ended(row, times, seed) for seed in range(runs)]
    verdicts = [verdict for verdict, _, _ in ended]
    requests, seconds = (sorted(each[part] for each in ended)[runs // 2] for part in (1, 2))
    return Outcome(verdicts.count(Verdict.PASSED) / runs, verdicts.count(Verdict.FAILED) / runs, requests, seconds)


def _ended(row: Row | Asked, times: float, seed: int) -> tuple[Verdict | None, float, float]:
    """The verdict of one release, and the requests and seconds that it took."""
    if isinstance(row, Asked):
        poll = polled(row, times, seed)
        assert poll.answer is not None and poll.answer.samples is not None
        return poll.verdict, poll.answer.samples, poll.last
    found = trial(row, times, seed)
    return found.verdict, found.figures.samples, found.last


_TOKENS = World(requests=400, together=0.4, edges=TOKEN_EDGES)
_FIRST = Criterion(Signal.TIME_TO_FIRST_TOKEN, limit=2.5, window=300)
_BETWEEN = replace(_FIRST, signal=Signal.INTER_TOKEN_LATENCY, limit=0.1)
ROWS = (
    Row("p95 of the time to first token, at most 2.5 s", _FIRST),
    Row("the same, at most 2 s, which is between two edges", replace(_FIRST, limit=2.0), World(alone=0.4)),
    Row("p99 of the time to first token", replace(_FIRST, quantile=0.99)),
    Row("p95 of the time between tokens", _BETWEEN, _TOKENS),
    Row("failed requests, at most 2 %", Criterion(Signal.ERROR_RATE, limit=0.02, window=300)),
    Row(
        "p95 of the time to first token, at most 120 % of stable's",
        replace(_FIRST, limit=None, to_stable=1.2),
        stable_median=0.6,
    ),
    Row(
        "p95 of the time between tokens, at most 120 % of stable's",
        replace(_BETWEEN, limit=None, to_stable=1.2),
        _TOKENS,
        0.03,
    ),
)
#: Each sample has its own luck, as a query's samples are taken to have.
_ALONE = World(together=0.0)
_REFUSALS = Query(Prometheus(""), "refusals", 0.02, samples="answers")
QUERIES = (
    Asked("query: a share of at most 2 %", _REFUSALS, _ALONE),
    Asked("the same, at most 0.5 %", replace(_REFUSALS, limit=0.005), _ALONE),
    Asked("the same, at least 95 %", replace(_REFUSALS, limit=0.95, at_least=True), _ALONE),
)
#: All rows of the table.
EVERY: tuple[Row | Asked, ...] = (*ROWS, *QUERIES)
#: What is true of the new version: how many times the bad requests that are allowed it has.
GOOD, AT_LIMIT, BAD = 0.5, 1.0, 2.0
_HEAD = "| gate | as good: passed, failed | at its limit | twice as bad | requests, time: as good | twice as bad |"


def lines(runs: int) -> Iterator[str]:
    """The table, in Markdown."""
    yield _HEAD
    yield "|---|---|---|---|---|---|"
    for row in EVERY:
        good, limit, bad = (outcome(row, times, runs) for times in (GOOD, AT_LIMIT, BAD))
        shares = " | ".join(f"{100 * each.passed:.1f} %, {100 * each.failed:.1f} %" for each in (good, limit, bad))
        costs = " | ".join(f"{each.requests:,.0f}, {each.seconds:.0f} s" for each in (good, bad))
        yield f"| {row.name} | {shares} | {costs} |"


if __name__ == "__main__":
    for line in lines(int(sys.argv[1]) if len(sys.argv) > 1 else 2000):
        print(line, flush=True)
