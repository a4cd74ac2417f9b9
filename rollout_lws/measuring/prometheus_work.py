"""Asks Prometheus whether pods of groups that are about to go still work."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from rollout_lws.analysis.idling import Heard, Idle, Idling, Told
from rollout_lws.analysis.readings import Trouble
from rollout_lws.clock import Clock
from rollout_lws.measuring.pods import PodWork, idled
from rollout_lws.measuring.prometheus_client import PrometheusClient, Unanswered
from rollout_lws.measuring.rounds import Fold
from rollout_lws.prometheus.scrapes import STALE, ScrapedPod, samples_query, scrapes
from rollout_lws.prometheus.work import work_of
from rollout_lws.rollout.decision import Answered, Asked, Measurement, Question, Stored

#: Queries that are open at the same time, of all Rollouts.
_AT_ONCE = 8


class PrometheusWork:
    """Answers whether pods are idle by what a Prometheus has scraped of them, as often as pods themselves are asked."""

    name = "drain-prometheus"
    every = PodWork.every

    def __init__(self, client: PrometheusClient, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._at_once = asyncio.Semaphore(_AT_ONCE)

    def takes(self, asked: Asked) -> bool:
        return isinstance(asked, Stored) and isinstance(asked.asks, Idle)

    async def close(self) -> None:
        await self._client.close()

    async def round(
        self, namespace: str, wanted: tuple[Measurement, ...], before: Mapping[Question, Answered]
    ) -> Mapping[Question, Fold]:
        now = self._clock.now()
        told = await asyncio.gather(*(self._told(namespace, each, before.get(each.question), now) for each in wanted))
        return {each.question: idled(of) for each, of in zip(wanted, told, strict=True)}

    async def _told(
        self, namespace: str, measurement: Measurement, before: Answered | None, now: datetime
    ) -> Mapping[str, Told]:
        """Of each pod, by uid."""
        stored = measurement.question.asks
        assert isinstance(stored, Stored) and isinstance(stored.asks, Idle)
        since = measurement.question.since
        pods = [
            ScrapedPod(each.uid, each.pod, max(since, each.ready_since or since).timestamp())
            for each in measurement.new
        ]
        query = samples_query(stored.prometheus, namespace, stored.asks.families, pods, round(STALE))
        try:
            async with self._at_once:
                found = await self._client.samples(namespace, stored.prometheus, query, now)
        except Unanswered as error:
            return {pod.uid: Trouble(str(error)) for pod in pods}
        # Stamped by a clock that is ahead, a sample of before the grace period would look like one of after it.
        ahead = self._client.ahead(stored.prometheus)
        pods = [replace(pod, since=pod.since + ahead) for pod in pods]
        known = scrapes(stored.prometheus, found, {each.pod: each.address for each in measurement.new})
        heard: Mapping[str, Heard] = before.pods if isinstance(before, Idling) else {}
        return {
            pod.uid: work_of(pod, known.get(pod.name, {}), now.timestamp(), stored.asks, heard.get(pod.uid))
            for pod in pods
        }
