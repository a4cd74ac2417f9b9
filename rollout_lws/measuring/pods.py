"""Asks pods for what gates and drains read of their metrics, each once a round, and folds each round into answers."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from rollout_lws.analysis.criterion import Criterion
from rollout_lws.analysis.exposition import NotAnExposition, parse
from rollout_lws.analysis.idling import Idle, Idling, Requests, Told
from rollout_lws.analysis.kinds import Exporter, Signal
from rollout_lws.analysis.ledger import Key
from rollout_lws.analysis.readings import Exposition, Read, Trouble
from rollout_lws.analysis.signals import families, read
from rollout_lws.analysis.trial import Trial
from rollout_lws.measuring.rounds import Fold
from rollout_lws.measuring.scraping import Scraper, Unread
from rollout_lws.rollout.decision import Answered, Asked, Endpoint, Measurement, Question

#: Pods that a source asks at the same time, of all Rollouts and of one: whose pods hang holds up no other Rollout.
AT_ONCE = 64
AT_ONCE_OF_ONE = 16

_R_co = TypeVar("_R_co", covariant=True)
_R = TypeVar("_R")


class _Reader(Protocol[_R_co]):
    """What is read of an answer; hashable."""

    @property
    def families(self) -> frozenset[str]: ...

    def read(self, exposition: Exposition) -> _R_co: ...


@dataclass(frozen=True, slots=True)
class _Figure:
    """A signal, in the names of ``exporter`` or of any engine."""

    signal: Signal
    exporter: Exporter | None

    @property
    def families(self) -> frozenset[str]:
        return families(self.signal, self.exporter)

    def read(self, exposition: Exposition) -> Read:
        return read(self.signal, exposition, self.exporter)


class _Pods(Generic[_R]):
    """Asks pods, so many at once."""

    def __init__(self, scraper: Scraper) -> None:
        self._scraper = scraper
        self._at_once = asyncio.Semaphore(AT_ONCE)

    async def ask(
        self, namespace: str, asked: Mapping[Endpoint, Collection[_Reader[_R]]]
    ) -> dict[Endpoint, Mapping[_Reader[_R], _R | Trouble]]:
        """Each pod once, for all that is read of it."""
        of_one = asyncio.Semaphore(AT_ONCE_OF_ONE)
        found = await asyncio.gather(*(self._scrape(namespace, *each, of_one) for each in asked.items()))
        return dict(zip(asked, found, strict=True))

    async def close(self) -> None:
        await self._scraper.close()

    async def _scrape(
        self, namespace: str, endpoint: Endpoint, readers: Collection[_Reader[_R]], of_one: asyncio.Semaphore
    ) -> Mapping[_Reader[_R], _R | Trouble]:
        """What is kept of an answer is what is read from it: those of hundreds of pods may be there at once."""
        async with of_one, self._at_once:
            try:
                text = await self._scraper.metrics(namespace, endpoint)
                answer = parse(text, frozenset[str]().union(*(each.families for each in readers)))
            except Unread as error:
                return dict.fromkeys(readers, Trouble(str(error), silent=error.silent))
            except NotAnExposition as error:
                return dict.fromkeys(readers, Trouble(str(error)))
        return {each: each.read(answer) for each in readers}


class PodFigures:
    """Answers what is asked of the figures of model servers, by scraping their pods ``every`` so many seconds."""

    name = "scrape"

    def __init__(self, scraper: Scraper, every: float) -> None:
        self.every = every
        self._pods = _Pods[Read](scraper)

    def takes(self, asked: Asked) -> bool:
        return isinstance(asked, Criterion)

    async def close(self) -> None:
        await self._pods.close()

    async def round(
        self, namespace: str, wanted: tuple[Measurement, ...], _before: Mapping[Question, Answered]
    ) -> Mapping[Question, Fold]:
        criteria = {each: each.question.asks for each in wanted if isinstance(each.question.asks, Criterion)}
        asked: dict[Endpoint, set[_Reader[Read]]] = defaultdict(set)
        for each, criterion in criteria.items():
            for endpoint in (*each.new, *each.stable):
                asked[endpoint].add(_Figure(criterion.signal, criterion.exporter))
        answers = await self._pods.ask(namespace, asked)
        return {each.question: _tried(each, criterion, answers) for each, criterion in criteria.items()}


class PodWork:
    """Answers whether pods are idle, by scraping them: more often, as groups wait to go."""

    name = "drain"
    every = 5.0

    def __init__(self, scraper: Scraper) -> None:
        self._pods = _Pods[Requests](scraper)

    def takes(self, asked: Asked) -> bool:
        return isinstance(asked, Idle)

    async def close(self) -> None:
        await self._pods.close()

    async def round(
        self, namespace: str, wanted: tuple[Measurement, ...], _before: Mapping[Question, Answered]
    ) -> Mapping[Question, Fold]:
        every = [(each, asks) for each in wanted if isinstance(asks := each.question.asks, Idle)]
        asked: dict[Endpoint, list[_Reader[Requests]]] = defaultdict(list)
        for each, asks in every:
            for endpoint in each.new:
                asked[endpoint].append(asks)
        answers = await self._pods.ask(namespace, asked)
        said = {each.question: {endpoint.uid: answers[endpoint][asks] for endpoint in each.new} for each, asks in every}
        return {question: idled(of) for question, of in said.items()}


def _tried(
    measurement: Measurement,
    criterion: Criterion,
    answers: Mapping[Endpoint, Mapping[_Reader[Read], Read]],
) -> Fold:
    figure = _Figure(criterion.signal, criterion.exporter)

    def reads(side: tuple[Endpoint, ...]) -> dict[Key, Read]:
        return {endpoint.uid: answers[endpoint][figure] for endpoint in side}

    new, stable = reads(measurement.new), reads(measurement.stable)

    def fold(before: Answered | None, now: float) -> Answered:
        trial = before if isinstance(before, Trial) else Trial.at(now, criterion)
        return trial.after(now, new, stable)

    return fold


def idled(said: Mapping[str, Told]) -> Fold:
    """One more round of what pods, by uid, say of their requests."""

    def fold(before: Answered | None, now: float) -> Answered:
        return (before if isinstance(before, Idling) else Idling()).after(now, said)

    return fold
