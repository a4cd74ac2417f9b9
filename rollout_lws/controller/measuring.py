"""Measures model servers by scraping their pods, each once a round, and folds each round into what is asked of them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from rollout_lws.analysis.criterion import Criterion
from rollout_lws.analysis.exposition import NotAnExposition, parse
from rollout_lws.analysis.idling import Idle, Idling
from rollout_lws.analysis.readings import Exposition, Read, Trouble
from rollout_lws.analysis.signals import families, read
from rollout_lws.analysis.trial import Trial
from rollout_lws.controller.rounds import Fold
from rollout_lws.controller.scraping import Scraper, Unread
from rollout_lws.rollout.decision import Answered, Asked, Endpoint, Measurement, Question

#: Pods that a source asks at the same time.
AT_ONCE = 64


class _Pods:
    """Asks pods, so many at once."""

    def __init__(self, scraper: Scraper) -> None:
        self._scraper = scraper
        self._at_once = asyncio.Semaphore(AT_ONCE)

    async def ask(
        self, namespace: str, asked: Mapping[Endpoint, frozenset[str]]
    ) -> dict[Endpoint, Exposition | Trouble]:
        """Each pod once, for the families that are read of it."""
        found = await asyncio.gather(*(self._scrape(namespace, *each) for each in asked.items()))
        return dict(zip(asked, found, strict=True))

    async def close(self) -> None:
        await self._scraper.close()

    async def _scrape(self, namespace: str, endpoint: Endpoint, names: frozenset[str]) -> Exposition | Trouble:
        async with self._at_once:
            try:
                return parse(await self._scraper.metrics(namespace, endpoint), names)
            except (Unread, NotAnExposition) as error:
                return Trouble(str(error))


class PodFigures:
    """Answers what is asked of the figures of model servers, by scraping their pods."""

    name = "scrape"
    every = 15.0

    def __init__(self, scraper: Scraper) -> None:
        self._pods = _Pods(scraper)

    def takes(self, asked: Asked) -> bool:
        return isinstance(asked, Criterion)

    async def close(self) -> None:
        await self._pods.close()

    async def round(self, namespace: str, wanted: tuple[Measurement, ...]) -> Mapping[Question, Fold]:
        every = [(each, asks) for each in wanted if isinstance(asks := each.question.asks, Criterion)]
        names: dict[Endpoint, frozenset[str]] = {}
        for each, asks in every:
            for endpoint in (*each.new, *each.stable):
                names[endpoint] = names.get(endpoint, frozenset()) | families(asks.signal, asks.engine)
        answers = await self._pods.ask(namespace, names)
        return {each.question: _tried(each, asks, answers) for each, asks in every}


class PodWork:
    """Answers whether pods are idle, by scraping them: more often, as groups wait to go."""

    name = "drain"
    every = 5.0

    def __init__(self, scraper: Scraper) -> None:
        self._pods = _Pods(scraper)

    def takes(self, asked: Asked) -> bool:
        return isinstance(asked, Idle)

    async def close(self) -> None:
        await self._pods.close()

    async def round(self, namespace: str, wanted: tuple[Measurement, ...]) -> Mapping[Question, Fold]:
        every = [(each, asks) for each in wanted if isinstance(asks := each.question.asks, Idle)]
        names = {endpoint: asks.families for each, asks in every for endpoint in each.new}
        answers = await self._pods.ask(namespace, names)
        return {each.question: _idled(each, asks, answers) for each, asks in every}


def _tried(measurement: Measurement, asks: Criterion, answers: Mapping[Endpoint, Exposition | Trouble]) -> Fold:
    def fold(before: Answered | None, now: float) -> Answered:
        trial = before if isinstance(before, Trial) else Trial.at(now, asks)
        sides = (
            {endpoint.uid: _read(answers[endpoint], asks) for endpoint in side}
            for side in (measurement.new, measurement.stable)
        )
        return trial.after(now, *sides)

    return fold


def _read(answer: Exposition | Trouble, asks: Criterion) -> Read:
    return answer if isinstance(answer, Trouble) else read(asks.signal, answer, asks.engine)


def _idled(measurement: Measurement, asks: Idle, answers: Mapping[Endpoint, Exposition | Trouble]) -> Fold:
    found = ((endpoint.uid, answers[endpoint]) for endpoint in measurement.new)
    said = {uid: each if isinstance(each, Trouble) else asks.read(each) for uid, each in found}

    def fold(before: Answered | None, now: float) -> Answered:
        return (before if isinstance(before, Idling) else Idling()).after(now, said)

    return fold
