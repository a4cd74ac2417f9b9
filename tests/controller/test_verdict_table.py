"""The table of what may happen to figures while a gate is measured, and what is concluded: a version fails or passes by
what its requests were like, and never by what is missing.

Each row goes through all that a controller has: its scraper, what measures, and the trial. A row says what pods answer,
round by round, and knows of no source of figures; a source that is another than pods' own metrics is a function beside
``by_pods`` in SOURCES.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, cast

import pytest
from prometheus_client.parser import text_string_to_metric_families

from rollout_lws.analysis.criterion import Criterion, Verdict
from rollout_lws.analysis.kinds import Signal
from rollout_lws.analysis.trial import Trial
from rollout_lws.errors import Unreachable
from rollout_lws.kube.client import Client
from rollout_lws.kube.transport import Guard, Relay, TooLong
from rollout_lws.measuring.pods import PodFigures
from rollout_lws.measuring.prometheus_client import SKEW, PrometheusClient, Unanswered
from rollout_lws.measuring.prometheus_sources import PrometheusFigures
from rollout_lws.measuring.rounds import Measuring
from rollout_lws.measuring.rounds import Source as Asks
from rollout_lws.measuring.scraping import LONGEST, ProxyScraper
from rollout_lws.prometheus.scrapes import Prometheus, Series
from rollout_lws.rollout.decision import Endpoint, Measurement, Question, Stored
from rollout_lws.rollout.gates.kinds.figures import why
from rollout_lws.settings import SCRAPE_EVERY
from tests.kube.fakes import FakeTransport, Reply
from tests.virtual_time import LoopClock

pytestmark = pytest.mark.looptime

ORIGIN = datetime(2026, 1, 1, tzinfo=UTC)
KEY = ("default", "llama")
#: Rounds of a window, and those after which a gate's time is over.
WINDOW, DEADLINE = 20, 41

FIRST = Criterion(Signal.TIME_TO_FIRST_TOKEN, limit=1.0)
ERRORS = Criterion(Signal.ERROR_RATE, limit=0.02)
QUEUE = Criterion(Signal.QUEUE_LENGTH, limit=8.0)
STALLED = Criterion(Signal.STALLED, limit=60.0)
COMPARED = replace(FIRST, limit=None, to_stable=1.5)
QUEUES = replace(QUEUE, limit=None, to_stable=1.5)
ALONE = (FIRST, ERRORS, QUEUE, STALLED)
ALL = (*ALONE, COMPARED, QUEUES)

TEXT = {"content-type": "text/plain; version=0.0.4"}
EDGES = (0.25, 0.5, 1.0, 2.5)


@dataclass(frozen=True)
class Server:
    """What a vLLM server has done: ``requests`` of which ``slow`` took two seconds and ``failed`` failed."""

    requests: float = 0
    slow: float = 0
    failed: float = 0
    running: float = 2
    waiting: float = 1
    edges: tuple[float, ...] = EDGES
    model: str = "m"

    def text(self) -> str:
        labels = f'engine="0",model_name="{self.model}"'
        first = "vllm:time_to_first_token_seconds"
        ended = "vllm:request_success_total"
        # Half of the fast ones took less than 0.4 s, the others less than 0.8 s.
        fast = self.requests - self.slow
        up_to = [fast / 2 * (edge >= 0.4) + fast / 2 * (edge >= 0.8) + self.slow * (edge >= 2) for edge in self.edges]
        buckets = zip((*self.edges, "+Inf"), (*up_to, self.requests), strict=True)
        return "".join(
            (
                f"vllm:num_requests_running{{{labels}}} {self.running}\n",
                f"vllm:num_requests_waiting{{{labels}}} {self.waiting}\n",
                f"vllm:generation_tokens_total{{{labels}}} {50 * self.requests}\n",
                f'{ended}{{{labels},finished_reason="stop"}} {self.requests - self.failed}\n',
                f'{ended}{{{labels},finished_reason="error"}} {self.failed}\n',
                f"# TYPE {first} histogram\n",
                *(f'{first}_bucket{{{labels},le="{edge}"}} {count}\n' for edge, count in buckets),
            )
        )


def well(number: int, **other: Any) -> Server:
    """A version that is good, after so many rounds."""
    return replace(Server(60 * number, slow=number / 2, failed=0), **other)


def bad(number: int, **other: Any) -> Server:
    """One that is slow, and fails, and has a queue."""
    return replace(Server(60 * number, slow=12 * number, failed=6 * number, waiting=20), **other)


IDLE = Server(running=0, waiting=0)
SERVED_BEFORE = Server(9_000, running=0, waiting=0)

Answer = Server | str | Reply | Exception
#: What each pod answers in a round.
Told = Callable[[int], Mapping[str, Answer]]


def one(answer: Callable[[int], Answer]) -> Told:
    return lambda number: {"a": answer(number)}


@dataclass(frozen=True)
class Row:
    """Both versions' pods, and what follows for each of ``gates``; ``because`` is in the reason that is given.

    The controller is restarted after ``restarted`` rounds (0: never), and its clock is set by ``skew`` in the tenth.
    """

    new: Told
    verdict: Verdict
    gates: tuple[Criterion, ...] = ALONE
    because: str = ""
    stable: Told = field(default=lambda number: {"s": well(number)})
    restarted: int = 0
    skew: timedelta = timedelta()


Source = Callable[[Row, Criterion], Awaitable[tuple[Trial, int]]]


class Pods(FakeTransport):
    """An API server behind which pods answer as a row says, in the round that the loop's time is in."""

    def __init__(self, row: Row) -> None:
        super().__init__()
        self._row = row
        self._zero = asyncio.get_running_loop().time()

    def now(self) -> Mapping[str, Answer]:
        number = round((asyncio.get_running_loop().time() - self._zero) // SCRAPE_EVERY)
        return {**self._row.stable(number), **self._row.new(number)}

    async def relay(self, path: str, relay: Relay, guard: Guard | None = None) -> Reply:
        pod = path.split("/pods/")[1][0]
        answer = self.now()[pod]
        if isinstance(answer, Exception):
            await asyncio.sleep(relay.seconds if isinstance(answer, TimeoutError) else 0)
            raise Unreachable("no answer") from answer
        if isinstance(answer, Server):
            answer = answer.text()
        if isinstance(answer, str):
            answer = Reply(200, answer.encode(), TEXT)
        if len(answer.body) > relay.longest:
            raise TooLong(f"more than {relay.longest // 2**20} MiB")
        return answer


class _Clock(LoopClock):
    def __init__(self, skew: timedelta) -> None:
        super().__init__(ORIGIN)
        self._skew, self._at = skew, asyncio.get_running_loop().time() + 10 * SCRAPE_EVERY

    def now(self) -> datetime:
        late = asyncio.get_running_loop().time() >= self._at
        return super().now() + (self._skew if late else timedelta())


class Scraped:
    """A Prometheus that scrapes the pods in each round, and has no samples of a scrape that fails."""

    def __init__(self, pods: Pods, clock: _Clock) -> None:
        self._pods = pods
        self._clock = clock
        self._true = LoopClock(ORIGIN)
        self._series: dict[tuple[tuple[str, str], ...], list[tuple[float, float]]] = {}
        self._scraping = asyncio.create_task(self._scrape())

    async def _scrape(self) -> None:
        while True:
            now = self._true.now().timestamp()
            for pod, answer in self._pods.now().items():
                for labels, value in _scraped(answer):
                    key = tuple(sorted({**labels, "pod": pod, "job": "j", "instance": pod}.items()))
                    self._series.setdefault(key, []).append((now, value))
            await asyncio.sleep(SCRAPE_EVERY)

    async def samples(self, _namespace: str, _prometheus: Prometheus, query: str, at: datetime) -> list[Series]:
        if abs((self._true.now() - self._clock.now()).total_seconds()) > SKEW:
            raise Unanswered("the clock of Prometheus is another")
        begin, end = at.timestamp() - int(query.rpartition("[")[2].removesuffix("s]")), at.timestamp()
        within = {
            key: [(time, value) for time, value in points if begin < time <= end]
            for key, points in self._series.items()
        }
        return [Series(dict(key), tuple(points)) for key, points in within.items() if points]

    async def close(self) -> None:
        self._scraping.cancel()


def _scraped(answer: Answer) -> list[tuple[dict[str, str], float]]:
    if isinstance(answer, Server):
        answer = answer.text()
    if not isinstance(answer, str):
        return []
    return [({**labels, "__name__": name}, value) for name, labels, value in _samples(answer)]


@lru_cache(maxsize=4096)
def _samples(text: str) -> tuple[tuple[str, Mapping[str, str], float], ...]:
    """Rows and gates have most answers in common, and reading one takes long."""
    try:
        families = [*text_string_to_metric_families(text)]
    except ValueError:
        return ()
    return tuple((each.name, each.labels, each.value) for family in families for each in family.samples)


async def by_pods(row: Row, criterion: Criterion) -> tuple[Trial, int]:
    """What leaders' own metrics come to, and after how many rounds."""
    pods = Pods(row)

    def sources(_clock: _Clock) -> Asks:
        return PodFigures(ProxyScraper(Client(pods)), SCRAPE_EVERY)

    return await _measured(row, criterion, sources, criterion)


async def by_prometheus(row: Row, criterion: Criterion) -> tuple[Trial, int]:
    """What samples of a Prometheus come to, which keeps them while the controller is restarted."""
    pods, clock = Pods(row), _Clock(row.skew)
    scraped = Scraped(pods, clock)

    def sources(_clock: _Clock) -> Asks:
        return PrometheusFigures(cast(PrometheusClient, _Kept(scraped)), clock, SCRAPE_EVERY)

    try:
        return await _measured(row, Stored(criterion, Prometheus()), sources, criterion)
    finally:
        await scraped.close()


@dataclass(frozen=True)
class _Kept:
    """Closing what asks it leaves the server as it is."""

    server: Scraped

    async def samples(self, namespace: str, prometheus: Prometheus, query: str, at: datetime) -> list[Series]:
        return await self.server.samples(namespace, prometheus, query, at)

    async def close(self) -> None:
        return


async def _measured(
    row: Row, asks: Criterion | Stored, source: Callable[[_Clock], Asks], criterion: Criterion
) -> tuple[Trial, int]:
    tasks = []
    ready: dict[str, datetime] = {}
    began = ORIGIN + timedelta(seconds=asyncio.get_running_loop().time())

    def start(work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        tasks.append(asyncio.create_task(work, name=name))
        return tasks[-1]

    def endpoint(pod: str, number: int) -> Endpoint:
        since = ready.setdefault(pod, began + timedelta(seconds=number * SCRAPE_EVERY))
        return Endpoint(f"uid-{pod}", pod, "10.0.0.7", 8000, "/metrics", since)

    def wanted(number: int) -> tuple[Measurement, ...]:
        new, stable = (tuple(endpoint(pod, number) for pod in side(number)) for side in (row.new, row.stable))
        return (Measurement(Question("gate", began, asks), new, stable if criterion.compared else ()),)

    measuring, trial = None, None
    try:
        for number in range(DEADLINE + row.restarted):
            if measuring is None or (row.restarted and number == row.restarted):
                if measuring is not None:
                    await measuring.close()
                clock = _Clock(row.skew)
                measuring = Measuring([source(clock)], clock, start, lambda _: None)
            await measuring.want(KEY, wanted(number))
            # Between two rounds: what a decision wants next is known by then.
            await asyncio.sleep(SCRAPE_EVERY if number else SCRAPE_EVERY / 2)
            (trial,) = measuring.answers(*KEY).values()
            assert isinstance(trial, Trial)
            if trial.verdict is not None:
                return trial, number
    finally:
        if measuring is not None:
            await measuring.close()
    assert trial is not None
    return trial.ended(), DEADLINE


SOURCES: Mapping[str, Source] = {"pods": by_pods, "prometheus": by_prometheus}
#: What is missing for Prometheus, too, and is told as of pods.
TOLD_ALIKE = ("", "not a number", "is exposed", "no ready group")


def replaced(server: Callable[[int], Server]) -> Told:
    """Pod a until the tenth round, then pod b."""
    return lambda number: {"a": server(number)} if number < 10 else {"b": server(number - 10)}


def back(server: Callable[[int], Server]) -> Callable[[int], Server]:
    """The container is restarted in the tenth round, and counts from 0 again."""
    return lambda number: server(number if number < 10 else number - 10)


def models(first: Callable[[int], Server], second: Callable[[int], Server]) -> Told:
    return one(lambda number: first(number).text() + replace(second(number), model="n").text())


RENAMED = well(40).text().replace("vllm:", "vllm2:")
NAN = "".join(f"{line.rpartition(' ')[0]} NaN\n" for line in well(40).text().splitlines() if line[0] != "#")
OTHER_EDGES = (0.1, 0.5, 1.0, 5.0)

#: Answers that are none, and the reason that is given for each.
MISSING: Mapping[str, tuple[Callable[[int], Answer], str]] = {
    "no-traffic": (lambda _: IDLE, ""),
    "stale-though-ready": (lambda _: SERVED_BEFORE, ""),
    "not-a-number": (lambda _: NAN, "not a number"),
    "empty-answer": (lambda _: "", "is exposed"),
    "renamed-metric": (lambda _: RENAMED, "is exposed"),
    "404": (lambda _: Reply(404, b"no"), "/metrics answered 404"),
    "500": (lambda _: Reply(500, well(40).text().encode(), TEXT), "/metrics answered 500"),
    "redirect": (lambda _: Reply(302, b"", {"location": "http://elsewhere/metrics"}), "/metrics answered 302"),
    "timeout": (lambda _: TimeoutError(), "no answer in 5 s"),
    "connection-refused": (lambda _: ConnectionRefusedError(), "no answer"),
    "5-mb": (lambda _: Reply(200, FIVE_MB, TEXT), "more than 4 MiB"),
    "wrong-content-type": (
        lambda number: Reply(200, well(number).text().encode(), {"content-type": "text/html"}),
        "answered text/html",
    ),
    "packed": (lambda _: Reply(200, b"\x1f\x8b", {**TEXT, "content-encoding": "gzip"}), "answered gzip"),
    "broken-text": (lambda number: well(number).text().replace("} ", "} x"), "not Prometheus' text format"),
}
FIVE_MB = (well(40).text().encode() * 10_000)[: 5 * 1024 * 1024]
assert len(FIVE_MB) > LONGEST

HOUR = timedelta(hours=1)
PASSED, FAILED, INCONCLUSIVE = Verdict.PASSED, Verdict.FAILED, Verdict.INCONCLUSIVE

#: Of the rows with two pods, what befalls one of them may neither hide what the other is like nor stand for it.
TABLE: Mapping[str, Row] = {
    "a-good-version": Row(one(well), PASSED, ALL),
    "a-bad-version": Row(one(bad), FAILED, (FIRST, ERRORS, QUEUE, COMPARED, QUEUES)),
    "a-version-that-hangs": Row(one(lambda number: well(min(number, 5))), FAILED, (STALLED,)),
    "a-version-without-pods": Row(lambda _: {}, INCONCLUSIVE, ALL, "no ready group"),
    **{f"{name}": Row(one(told), INCONCLUSIVE, ALL, because) for name, (told, because) in MISSING.items()},
    **{
        f"{name}-from-the-tenth-round-on": Row(
            one(lambda number, told=told: well(number) if number < 10 else told(number)), INCONCLUSIVE, ALL
        )
        for name, (told, because) in MISSING.items()
        if because
    },
    **{
        f"{name}-of-one-of-two-pods": Row(
            lambda number, told=told: {"a": well(number), "b": told(number)}, INCONCLUSIVE, ALL, because
        )
        for name, (told, because) in MISSING.items()
        if because
    },
    **{
        f"{name}-beside-a-bad-pod": Row(
            lambda number, told=told: {"a": bad(number), "b": told(number)}, FAILED, (FIRST, ERRORS, COMPARED)
        )
        for name, (told, because) in MISSING.items()
    },
    **{
        f"{name}-of-stable": Row(
            one(well), INCONCLUSIVE, (COMPARED, QUEUES), because, stable=lambda n, t=told: {"s": t(n)}
        )
        for name, (told, because) in MISSING.items()
    },
    "two-models-of-one-pod": Row(models(well, well), PASSED, ALONE),
    "two-models-of-which-one-is-bad": Row(models(well, bad), FAILED, (FIRST, ERRORS, QUEUE)),
    "counters-that-went-back": Row(one(back(well)), PASSED, ALL),
    "counters-of-a-bad-version-that-went-back": Row(one(back(bad)), FAILED, (FIRST, ERRORS)),
    "what-was-counted-before": Row(
        one(lambda number: well(number, requests=90_000 + 60 * number, slow=80_000 + number / 2)), PASSED, (FIRST,)
    ),
    "a-pod-that-is-replaced": Row(replaced(well), PASSED, ALL),
    "a-bad-pod-that-is-replaced": Row(replaced(bad), FAILED, (FIRST, ERRORS)),
    "pods-with-other-buckets": Row(
        lambda number: {"a": well(number), "b": well(number, edges=OTHER_EDGES)}, PASSED, ALONE
    ),
    "versions-with-other-buckets": Row(
        one(well), PASSED, (FIRST, QUEUES), stable=lambda number: {"s": well(number, edges=OTHER_EDGES)}
    ),
    "a-clock-that-goes-back": Row(one(well), PASSED, ALL, skew=-HOUR),
    "a-clock-that-goes-forward": Row(one(well), PASSED, ALL, skew=HOUR),
    "a-clock-that-goes-forward-while-nothing-comes": Row(
        one(lambda number: well(number - number % 2)), PASSED, (STALLED,), skew=HOUR
    ),
    "a-controller-that-is-restarted": Row(one(well), PASSED, ALL, restarted=15),
}


@pytest.mark.one_in(2, of="source")
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("name", TABLE)
async def test_what_is_missing_is_no_verdict(name: str, source: str) -> None:
    row = TABLE[name]
    names = {f"uid-{pod}": pod for pod in "abs"}
    # A Prometheus whose time is another than the controller's is not asked.
    verdict = row.verdict if source == "pods" or not row.skew else INCONCLUSIVE
    for criterion in row.gates:
        trial, rounds = await SOURCES[source](row, criterion)
        told = why(criterion, trial, names)
        assert (criterion.signal, trial.verdict) == (criterion.signal, verdict), told
        if source == "pods":
            assert row.because in told
        elif row.because not in TOLD_ALIKE:
            assert "Prometheus has no samples of it" in told
            assert "uid-" not in told, "pods are told by their names"
        if row.verdict is PASSED and source == "pods":
            assert rounds >= row.restarted + WINDOW, "a version passes when it was watched for the whole window"
        elif verdict is PASSED:
            assert WINDOW <= rounds <= WINDOW + 2, "also over restarts"
