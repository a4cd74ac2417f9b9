"""Measures model servers by scraping their pods, each once a round, and folds each round into trials."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import TypeAlias

from rollout_lws.analysis.criterion import Criterion
from rollout_lws.analysis.exposition import NotAnExposition, parse
from rollout_lws.analysis.kinds import Engine, Signal
from rollout_lws.analysis.readings import Read, Trouble
from rollout_lws.analysis.signals import families, read
from rollout_lws.analysis.trial import Trial
from rollout_lws.controller.rounds import Fold
from rollout_lws.controller.scraping import Scraper, Unread
from rollout_lws.rollout.decision import Answered, Asked, Endpoint, Measurement, Question

#: Pods that are asked at the same time, of all Rollouts and of one: whose pods hang holds up no other Rollout.
AT_ONCE = 64
AT_ONCE_OF_ONE = 16

_Signal: TypeAlias = tuple[Signal, Engine | None]


class PodFigures:
    """Answers what is asked of the figures of model servers, by scraping their pods ``every`` so many seconds."""

    name = "scrape"

    def __init__(self, scraper: Scraper, every: float) -> None:
        self.every = every
        self._scraper = scraper
        self._at_once = asyncio.Semaphore(AT_ONCE)

    def takes(self, asked: Asked) -> bool:
        return isinstance(asked, Criterion)

    async def close(self) -> None:
        await self._scraper.close()

    async def round(
        self, namespace: str, wanted: tuple[Measurement, ...], _before: Mapping[Question, Answered]
    ) -> Mapping[Question, Fold]:
        """Each pod is asked once, for all that gates read from it."""
        asked: dict[Endpoint, set[_Signal]] = defaultdict(set)
        criteria = {each: each.question.asks for each in wanted if isinstance(each.question.asks, Criterion)}
        for each, criterion in criteria.items():
            for endpoint in (*each.new, *each.stable):
                asked[endpoint].add((criterion.signal, criterion.engine))
        of_one = asyncio.Semaphore(AT_ONCE_OF_ONE)
        found = await asyncio.gather(*(self._scrape(namespace, *each, of_one) for each in asked.items()))
        answers = dict(zip(asked, found, strict=True))
        return {each.question: _fold(each, criterion, answers) for each, criterion in criteria.items()}

    async def _scrape(
        self, namespace: str, endpoint: Endpoint, asked: Collection[_Signal], of_one: asyncio.Semaphore
    ) -> Mapping[_Signal, Read]:
        """What is kept of an answer is what gates read from it: those of hundreds of pods may be there at once."""
        async with of_one, self._at_once:
            try:
                text = await self._scraper.metrics(namespace, endpoint)
                answer = parse(text, frozenset().union(*(families(*each) for each in asked)))
            except (Unread, NotAnExposition) as error:
                return dict.fromkeys(asked, Trouble(str(error)))
        return {(signal, engine): read(signal, answer, engine) for signal, engine in asked}


def _fold(measurement: Measurement, criterion: Criterion, answers: Mapping[Endpoint, Mapping[_Signal, Read]]) -> Fold:
    new, stable = (
        {endpoint.uid: answers[endpoint][criterion.signal, criterion.engine] for endpoint in side}
        for side in (measurement.new, measurement.stable)
    )

    def fold(before: Answered | None, now: float) -> Answered:
        trial = before if isinstance(before, Trial) else Trial.at(now, criterion)
        return trial.after(now, new, stable)

    return fold
