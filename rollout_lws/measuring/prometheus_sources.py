"""What Prometheus is asked for gates: samples of pods, which are folded into trials, and queries of users."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from math import ceil

from rollout_lws.analysis.criterion import Criterion
from rollout_lws.analysis.ledger import Key, Server
from rollout_lws.analysis.readings import Exposition, Read
from rollout_lws.analysis.signals import families, read
from rollout_lws.analysis.trial import Trial
from rollout_lws.clock import Clock
from rollout_lws.measuring.prometheus_client import PrometheusClient, TooMuch, Unanswered
from rollout_lws.measuring.rounds import Fold
from rollout_lws.prometheus.poll import Poll, Polled, Query
from rollout_lws.prometheus.promql import NotPromQL, Places, confined, expanded, names_stable
from rollout_lws.prometheus.scrapes import STALE, Prometheus, ScrapedPod, Scrapes, reads_at, samples_query, scrapes
from rollout_lws.rollout.decision import Answered, Asked, Endpoint, Measurement, Question, Stored

#: Rounds that one answer covers, and answers a round: what a restarted controller has missed is read in parts.
_PART = 20
_PARTS = 8
#: Queries of a source that are open at the same time, of all Rollouts and of one.
_AT_ONCE, _OF_ONE = 8, 2


@dataclass(frozen=True, slots=True)
class _Part:
    """Samples from epoch second ``begin`` to ``end`` of one server."""

    prometheus: Prometheus
    begin: float
    end: float


class PrometheusFigures:
    """Answers what is asked of the figures that a Prometheus has scraped, ``every`` so many seconds.

    It looks at them as they were at those moments, as pods are scraped, and reads each sample since the gate began. So
    a controller that was restarted comes to the same figures.
    """

    name = "prometheus"

    def __init__(self, client: PrometheusClient, clock: Clock, every: float) -> None:
        self.every = every
        self._client = client
        self._clock = clock
        self._at_once = asyncio.Semaphore(_AT_ONCE)

    def takes(self, asked: Asked) -> bool:
        return isinstance(asked, Stored) and isinstance(asked.asks, Criterion)

    async def close(self) -> None:
        await self._client.close()

    async def round(
        self, namespace: str, wanted: tuple[Measurement, ...], before: Mapping[Question, Answered]
    ) -> Mapping[Question, Fold]:
        """Gates that stand at the same moment, as those of a step do, share their queries."""
        began = self._clock.now().timestamp()
        trials = {each: _trial(each, before.get(each.question), began) for each in wanted}
        open_ones = [each for each, trial in trials.items() if trial.verdict is None]
        most = _PART
        for _ in range(_PARTS):
            now = self._clock.now().timestamp()
            parts: dict[_Part, list[Measurement]] = defaultdict(list)
            for each in open_ones:
                part = _next(each, trials[each], now, self.every, most)
                if part is not None and trials[each].verdict is None:
                    parts[part].append(each)
            if not parts:
                break
            for part, of in parts.items():
                try:
                    known = await self._scrapes(namespace, part, of, trials)
                except TooMuch as error:
                    if most > 1:
                        most = max(1, most // 4)
                        continue
                    trials |= {each: _missed(each, trials[each], now, str(error)) for each in of}
                    open_ones = [each for each in open_ones if each not in of]
                except Unanswered as error:
                    trials |= {each: _missed(each, trials[each], now, str(error)) for each in of}
                    open_ones = [each for each in open_ones if each not in of]
                else:
                    trials |= {each: _after(each, trials[each], part, known, self.every) for each in of}
        return {each.question: _set(trial) for each, trial in trials.items()}

    async def _scrapes(
        self, namespace: str, part: _Part, of: Sequence[Measurement], trials: Mapping[Measurement, Trial]
    ) -> Scrapes:
        """Of all pods, from the last sample of each that is known. Raises Unanswered."""
        pods = [pod for each in of for side in _sides(each) for pod in side]
        if not pods:
            return {}
        seen = [at for each in of for at in _seen(trials[each]).values()]
        begin = max(min((part.begin, *seen)), part.begin - STALE)
        names = frozenset().union(*(_families(each) for each in of))
        query = samples_query(part.prometheus, namespace, names, pods, ceil(part.end - begin))
        async with self._at_once:
            end = datetime.fromtimestamp(part.end, UTC)
            found = await self._client.samples(namespace, part.prometheus, query, end)
        return scrapes(part.prometheus, found, {each.pod: each.address for of_one in of for each in _endpoints(of_one)})


def _trial(measurement: Measurement, before: Answered | None, now: float) -> Trial:
    if isinstance(before, Trial):
        return before
    criterion, since = _criterion(measurement), measurement.question.since.timestamp()
    # Of what is watched, windows that are over are not read again.
    over = int(max(0.0, now - since) // criterion.window) if criterion.watched else 0
    return replace(Trial.at(since + over * criterion.window, criterion), windows=over)


def _set(trial: Trial) -> Fold:
    return lambda _before, _now: trial


def _stored(measurement: Measurement) -> Stored:
    asked = measurement.question.asks
    assert isinstance(asked, Stored)
    return asked


def _criterion(measurement: Measurement) -> Criterion:
    asks = _stored(measurement).asks
    assert isinstance(asks, Criterion)
    return asks


def _families(measurement: Measurement) -> Collection[str]:
    criterion = _criterion(measurement)
    return families(criterion.signal, criterion.exporter)


def _endpoints(measurement: Measurement) -> tuple[Endpoint, ...]:
    return (*measurement.new, *measurement.stable)


def _sides(measurement: Measurement) -> tuple[list[ScrapedPod], list[ScrapedPod]]:
    """Pods of the new and of the stable version, from when the gate is measured, or since they are ready."""
    since = measurement.question.since

    def pods(side: Sequence[Endpoint]) -> list[ScrapedPod]:
        known = ((each, each.ready_since) for each in side)
        return [ScrapedPod(each.uid, each.pod, max(since, ready).timestamp()) for each, ready in known if ready]

    return pods(measurement.new), pods(measurement.stable)


def _next(measurement: Measurement, trial: Trial, now: float, every: float, most: int) -> _Part | None:
    """What comes after what is known; None while the next moment is not there yet."""
    ticks = min(most, (now - trial.last) // every)
    if ticks < 1:
        return None
    return _Part(_stored(measurement).prometheus, trial.last, trial.last + ticks * every)


def _after(measurement: Measurement, trial: Trial, part: _Part, known: Scrapes, every: float) -> Trial:
    new, stable = _sides(measurement)
    reads = _reader(trial.criterion)
    while trial.last + every <= part.end and trial.verdict is None:
        tick, seen = trial.last + every, _seen(trial)
        of_new, new_times = reads_at(tick, new, known, seen, reads)
        of_stable, stable_times = reads_at(tick, stable, known, seen, reads)
        trial = trial.after(tick, of_new, of_stable, {**new_times, **stable_times})
    return trial


def _reader(criterion: Criterion) -> Callable[[Exposition], Read]:
    return lambda answer: read(criterion.signal, answer, criterion.exporter)


def _seen(trial: Trial) -> dict[Key, float]:
    """When the last sample of each pod was scraped."""
    pods = {**trial.new.pods, **trial.stable.pods}
    return {pod: seen.at for pod, seen in pods.items() if seen.read is not None}


def _missed(measurement: Measurement, trial: Trial, now: float, why: str) -> Trial:
    servers: dict[str, list[Key]] = defaultdict(list)
    for key in {*trial.new.pods, *trial.stable.pods}:
        servers[key.pod if isinstance(key, Server) else key].append(key)

    def known(side: Sequence[Endpoint]) -> list[Key]:
        return [key for each in side for key in servers[each.uid] or [each.uid]]

    return trial.missed(now, why, known(measurement.new), known(measurement.stable))


class PrometheusQueries:
    """Answers queries of users, ``every`` so many seconds. ``confine`` keeps them in the Rollout's namespace."""

    name = "query"

    def __init__(self, client: PrometheusClient, clock: Clock, every: float, *, confine: bool) -> None:
        self.every = every
        self._client = client
        self._clock = clock
        self._confine = confine
        self._at_once = asyncio.Semaphore(_AT_ONCE)

    def takes(self, asked: Asked) -> bool:
        return isinstance(asked, Query)

    async def close(self) -> None:
        await self._client.close()

    async def round(
        self, namespace: str, wanted: tuple[Measurement, ...], before: Mapping[Question, Answered]
    ) -> Mapping[Question, Fold]:
        queries = {each: each.question.asks for each in wanted if isinstance(each.question.asks, Query)}
        now = self._clock.now()
        polls = {each: before.get(each.question) for each in queries}
        open_ones = [each for each, poll in polls.items() if not isinstance(poll, Poll) or poll.verdict is None]
        of_one = asyncio.Semaphore(_OF_ONE)
        asked = (
            self._answer(namespace, each, _poll(each, queries[each], polls[each], now.timestamp()), now, of_one)
            for each in open_ones
        )
        answers = await asyncio.gather(*asked)
        return {
            each.question: _polled(each, queries[each], answer) for each, answer in zip(open_ones, answers, strict=True)
        }

    async def _answer(
        self, namespace: str, measurement: Measurement, poll: Poll, now: datetime, of_one: asyncio.Semaphore
    ) -> Polled | str:
        query = poll.query
        new, stable = (_named(poll, side) for side in (measurement.new, measurement.stable))
        if not new:
            return "the new version has no ready group to ask about"
        places = Places(
            namespace,
            new,
            stable,
            max(int(now.timestamp() - poll.began), 1),
            query.prometheus.pod_label,
        )
        matchers = dict(query.prometheus.matchers) | ({"namespace": namespace} if self._confine else {})
        try:
            value = confined(expanded(query.value, places), matchers)
            samples = confined(expanded(query.samples, places), matchers) if query.samples else ""
            if names_stable(query.value + query.samples) and not stable:
                return "the stable version has no ready group to compare with"
            async with of_one, self._at_once:
                number = await self._client.number(namespace, query.prometheus, value, now)
                count = await self._client.number(namespace, query.prometheus, samples, now) if samples else None
        except (NotPromQL, Unanswered) as error:
            return str(error)
        return Polled(number, count, value)


def _named(poll: Poll, side: Sequence[Endpoint]) -> tuple[str, ...]:
    """Pods of a version. In a window that is watched only those that were ready when it began: what a pod of the same
    name did before is the other version's.
    """
    if not poll.query.watched:
        return tuple(each.pod for each in side)
    known = ((each.pod, each.ready_since) for each in side)
    return tuple(pod for pod, ready in known if ready is not None and ready.timestamp() <= poll.began)


def _poll(measurement: Measurement, query: Query, before: Answered | None, now: float) -> Poll:
    if isinstance(before, Poll):
        return before
    return Poll.at(query, measurement.question.since.timestamp(), now)


def _polled(measurement: Measurement, query: Query, answer: Polled | str) -> Fold:
    return lambda before, now: _poll(measurement, query, before, now).after(now, answer)
