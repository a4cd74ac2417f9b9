"""Tries gates on the version that serves: it is asked, and judged, as the new and as the stable version at once."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import assert_never, cast

from rollout_lws.analysis.calls import Calls
from rollout_lws.analysis.criterion import Criterion, Verdict
from rollout_lws.analysis.trial import Trial
from rollout_lws.api import GateResult, HttpGate, JobGate, MetricGate, PlannedGate, QueryGate, StepGate
from rollout_lws.api.base import with_fields
from rollout_lws.cli.analyze.model import Planned, Tried, Ways
from rollout_lws.cli.analyze.rounds import Progress, looked_back, measured
from rollout_lws.cli.durations import short
from rollout_lws.clock import Clock
from rollout_lws.errors import ApiError, Unreachable
from rollout_lws.kube.client import Client
from rollout_lws.measuring.calling import HttpCalls, ProxyCaller
from rollout_lws.measuring.pods import PodFigures
from rollout_lws.measuring.prometheus_client import PrometheusClient
from rollout_lws.measuring.prometheus_sources import PrometheusFigures, PrometheusQueries
from rollout_lws.measuring.scraping import ProxyScraper
from rollout_lws.objects.permissions import lent
from rollout_lws.objects.resources import CRON_JOBS
from rollout_lws.origins import Allowed
from rollout_lws.prometheus.poll import Poll
from rollout_lws.prometheus.scrapes import Prometheus
from rollout_lws.rollout.decision import Asked, Measurement, Question, Stored
from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.gates.kinds import figures, http, metric, query
from rollout_lws.rollout.gates.kinds.jobs.job import no_cron_job
from rollout_lws.rollout.gates.kinds.kind import Ended
from rollout_lws.rollout.metrics_endpoints import metrics_of_stable, requests_to_stable
from rollout_lws.settings import SCRAPE_EVERY

#: Longest time for which pods are measured unless a window is given, in seconds.
LONGEST = 60
#: Seconds after a window of the past within which Prometheus has scraped each pod once more, which a verdict takes.
_SCRAPED = 60
#: Rounds of a window at least, as far as none follows the one before sooner than after so many seconds.
_ROUNDS, _SOONEST = 8, 0.5
_NO_PROMETHEUS = (
    "Prometheus is not asked: give --prometheus URL, as it is reached from here, by kubectl port-forward for example"
)


@dataclass(frozen=True, slots=True)
class Trying:
    """Tries the gates of the Rollout of ``d``, which has a stable version, with the rights of ``client``."""

    d: Draft
    ways: Ways
    client: Client
    clock: Clock
    progress: Progress

    async def all(self, gates: Sequence[Planned]) -> tuple[Tried, ...]:
        """What comes of each; what does not answer is part of that."""
        url = self.ways.prometheus
        allowed = [Allowed.parse(url, "--prometheus")] if url else []
        prometheus = PrometheusClient(self.client, self.clock, allowed, url, self.ways.token)
        past = PrometheusFigures(prometheus, self.clock, SCRAPE_EVERY)
        queries = PrometheusQueries(prometheus, self.clock, SCRAPE_EVERY, confine=self.ways.confine)
        now = self.clock.now()
        of_pods = {place: asked for place, each in enumerate(gates) if (asked := self._of_pods(each.gate, now))}
        source = PodFigures(ProxyScraper(self.client, lent), _every(each.question.asks for each in of_pods.values()))
        try:
            async with asyncio.TaskGroup() as group:
                rounds = measured(source, self._namespace, [*of_pods.values()], self.clock, self.progress)
                trials = group.create_task(rounds)
                others = {
                    place: group.create_task(self._other(each, now, past, queries))
                    for place, each in enumerate(gates)
                    if place not in of_pods
                }
        finally:
            await prometheus.close()
        return tuple(
            self._tried(each, trials.result()[of_pods[place].question]) if place in of_pods else others[place].result()
            for place, each in enumerate(gates)
        )

    @property
    def _namespace(self) -> str:
        return self.d.o.rollout.metadata.namespace

    def _asks(self, gate: PlannedGate) -> Criterion | Stored | None:
        """What a gate asks of figures; None of one that does not."""
        if not isinstance(gate.asked, MetricGate):
            return None
        return _once(metric.asks(gate, self.d.o.rollout.spec.strategy.source))

    def _of_pods(self, gate: PlannedGate, now: datetime) -> Measurement | None:
        """What is measured of pods from now on; None if they are not asked for figures."""
        window = self.ways.window or min(gate.seconds, LONGEST)
        asks = self._asks(with_fields(gate, window=window))
        return self._measurement(gate, now, asks) if isinstance(asks, Criterion) else None

    def _measurement(self, gate: PlannedGate, since: datetime, asks: Asked) -> Measurement:
        """The stable version's pods, as those of both versions."""
        pods = metric.of_stable(self.d, gate, since) if gate.metric is not None else metrics_of_stable(self.d)
        return Measurement(Question(gate.name, since, asks), pods, pods)

    async def _other(
        self, planned: Planned, now: datetime, past: PrometheusFigures, queries: PrometheusQueries
    ) -> Tried:
        gate = planned.gate if self.ways.window is None else with_fields(planned.gate, window=self.ways.window)
        match gate.asked:
            case MetricGate():
                return await self._of_the_past(planned, gate, now, past)
            case QueryGate():
                return await self._queried(planned, gate, now, queries)
            case HttpGate():
                return await self._called(planned, cast(StepGate, gate), now)
            case JobGate() as job:
                return await self._job(planned, job.from_cron_job)
            case None:
                raise ValueError(f"gate {gate.name} asks for nothing")
            case unknown:
                assert_never(unknown)

    async def _of_the_past(self, planned: Planned, gate: PlannedGate, now: datetime, past: PrometheusFigures) -> Tried:
        asks = self._asks(gate)
        if not self.ways.prometheus or not isinstance(asks, Stored):
            return Tried(planned, GateResult.ERROR, _NO_PROMETHEUS)
        since = now.replace(microsecond=0) - timedelta(seconds=gate.seconds + _SCRAPED)
        measurement = self._measurement(gate, since, replace(asks, prometheus=self._reached(asks.prometheus)))
        return self._tried(planned, await looked_back(past, self._namespace, measurement, self.clock))

    async def _queried(self, planned: Planned, gate: PlannedGate, now: datetime, queries: PrometheusQueries) -> Tried:
        if not self.ways.prometheus:
            return Tried(planned, GateResult.ERROR, _NO_PROMETHEUS)
        asks = query.asks(gate, self.d.o.rollout.spec.strategy.source)
        asks = replace(asks, prometheus=self._reached(asks.prometheus), watched=False)
        since = now.replace(microsecond=0) - timedelta(seconds=gate.seconds)
        measurement = self._measurement(gate, since, asks)
        folds = await queries.round(self._namespace, (measurement,), {})
        poll = folds[measurement.question](None, self.clock.now().timestamp())
        assert isinstance(poll, Poll), "it is what answers to queries are folded into"
        return _of(planned, query.ended(poll.ended()))

    def _reached(self, named: Prometheus) -> Prometheus:
        """The server that a Rollout names, at the address of the command line, and without its Secret."""
        return replace(named, address=self.ways.prometheus, secret="", key="")

    async def _called(self, planned: Planned, gate: StepGate, now: datetime) -> Tried:
        if not self.ways.http:
            return Tried(planned, None, "not asked: --http asks it")
        call = http.call_of(self.d.set_sub(current_step_index=planned.step or 0), gate)
        targets = http.targets_of(gate, partial(requests_to_stable, self.d))
        measurement = Measurement(Question(gate.name, now, call), targets)
        source = HttpCalls(self.client, ProxyCaller(self.client, lent), SCRAPE_EVERY)
        folds = await source.round(self._namespace, (measurement,), {})
        calls = folds[measurement.question](None, self.clock.now().timestamp())
        assert isinstance(calls, Calls), "it is what answers to requests are folded into"
        names = figures.pods(self.d)
        ended = http.answered(gate, calls, targets, names) or http.unanswered(gate, calls, targets, names)
        return _of(planned, ended)

    async def _job(self, planned: Planned, cron_job: str) -> Tried:
        """Only whether there is something to make the Job of: it may change what serves."""
        try:
            await self.client.get(CRON_JOBS, self._namespace, cron_job)
        except ApiError as error:
            told = no_cron_job(cron_job) if error.code == 404 else f"CronJob {cron_job} is not known: {error.message}"
            return Tried(planned, GateResult.ERROR, told)
        except Unreachable as error:
            return Tried(planned, GateResult.ERROR, f"CronJob {cron_job} is not known: {error}")
        return Tried(planned, None, f"not run: CronJob {cron_job} is there")

    def _tried(self, planned: Planned, trial: Trial) -> Tried:
        found = _of(planned, metric.ended(trial, figures.pods(self.d)))
        return replace(found, message=found.message + _lacking(trial), needed=trial.figures.needed)


def _once(asks: Criterion | Stored) -> Criterion | Stored:
    """In one window, also what a release watches."""
    match asks:
        case Criterion():
            return replace(asks, watched=False)
        case Stored(Criterion() as criterion):
            return replace(asks, asks=replace(criterion, watched=False))
        case Stored():
            return asks
        case unknown:
            assert_never(unknown)


def _every(asked: Iterable[Asked]) -> float:
    """Seconds between two rounds: as in a release, and so that the shortest window has some slices to judge by."""
    windows = [each.window for each in asked if isinstance(each, Criterion)]
    return min([SCRAPE_EVERY, *(max(each / _ROUNDS, _SOONEST) for each in windows)])


def _of(planned: Planned, ended: Ended) -> Tried:
    return Tried(planned, ended.result, ended.message, ended.shown)


def _lacking(trial: Trial) -> str:
    """How long it takes until the requests are there that a verdict takes, "" if that is not what it lacks."""
    done, needed = trial.figures.samples, trial.figures.needed
    if trial.verdict is not Verdict.INCONCLUSIVE or trial.unread or needed is None or not 0 < done < needed:
        return ""
    seconds = (trial.last - trial.began) * needed / done
    return f"; a verdict takes about {needed:,}, which come in {short(seconds)}: give a longer --window"
