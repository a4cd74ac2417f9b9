"""Measures model servers by scraping their pods, each once a round, and folds each round into trials."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import cast

from rollout_lws.analysis.criterion import Criterion
from rollout_lws.analysis.exposition import NotAnExposition, parse
from rollout_lws.analysis.readings import Exposition, Read, Trouble
from rollout_lws.analysis.signals import families, read
from rollout_lws.analysis.trial import Trial
from rollout_lws.controller.rounds import Fold
from rollout_lws.controller.scraping import Scraper, Unread
from rollout_lws.rollout.decision import Answered, Asked, Endpoint, Measurement, Question

#: Pods that are asked at the same time.
AT_ONCE = 64


class PodFigures:
    """Answers what is asked of the figures of model servers, by scraping their pods."""

    name = "scrape"

    def __init__(self, scraper: Scraper) -> None:
        self._scraper = scraper
        self._at_once = asyncio.Semaphore(AT_ONCE)

    def takes(self, asked: Asked) -> bool:
        return isinstance(asked, Criterion)

    async def close(self) -> None:
        await self._scraper.close()

    async def round(self, namespace: str, wanted: tuple[Measurement, ...]) -> Mapping[Question, Fold]:
        answers = await self._ask(namespace, wanted)
        return {each.question: _fold(each, answers) for each in wanted}

    async def _ask(self, namespace: str, wanted: tuple[Measurement, ...]) -> dict[Endpoint, Exposition | Trouble]:
        """Each pod once, for all families that any gate reads from it."""
        asked: dict[Endpoint, frozenset[str]] = {}
        for each in wanted:
            asks = _asks(each.question)
            names = families(asks.signal, asks.engine)
            for endpoint in (*each.new, *each.stable):
                asked[endpoint] = asked.get(endpoint, frozenset()) | names
        found = await asyncio.gather(*(self._scrape(namespace, *each) for each in asked.items()))
        return dict(zip(asked, found, strict=True))

    async def _scrape(self, namespace: str, endpoint: Endpoint, names: frozenset[str]) -> Exposition | Trouble:
        async with self._at_once:
            try:
                return parse(await self._scraper.metrics(namespace, endpoint), names)
            except (Unread, NotAnExposition) as error:
                return Trouble(str(error))


def _asks(question: Question) -> Criterion:
    """No other question comes here: ``takes`` says so."""
    return cast(Criterion, question.asks)


def _read(answer: Exposition | Trouble, asks: Criterion) -> Read:
    return answer if isinstance(answer, Trouble) else read(asks.signal, answer, asks.engine)


def _fold(measurement: Measurement, answers: Mapping[Endpoint, Exposition | Trouble]) -> Fold:
    asks = _asks(measurement.question)

    def fold(before: Answered | None, now: float) -> Answered:
        trial = before if isinstance(before, Trial) else Trial.at(now, asks)
        sides = (
            {endpoint.uid: _read(answers[endpoint], asks) for endpoint in side}
            for side in (measurement.new, measurement.stable)
        )
        return trial.after(now, *sides)

    return fold
