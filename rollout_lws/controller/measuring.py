"""Measures what decisions want measured: scrapes the pods of releases with gates, and folds each round into trials.

Nothing is scraped that no gate wants. A task per Rollout asks all its pods every ``EVERY`` seconds and wakes the key;
what it has counted lives as long as the gate wants it, or until this replica stops working.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Collection, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from rollout_lws.analysis.exposition import NotAnExposition, parse
from rollout_lws.analysis.kinds import Engine, Signal
from rollout_lws.analysis.readings import Read, Trouble
from rollout_lws.analysis.signals import families, read
from rollout_lws.analysis.trial import Trial
from rollout_lws.controller.clock import Clock
from rollout_lws.controller.logs import fields
from rollout_lws.controller.on_demand_watches import end
from rollout_lws.controller.scraping import Scraper, Unread
from rollout_lws.rollout.decision import Endpoint, Measurement, Question

log = logging.getLogger(__name__)

#: Seconds between two rounds.
EVERY = 15.0
#: Pods that are asked at the same time, of all Rollouts and of one: whose pods hang holds up no other Rollout.
AT_ONCE = 64
AT_ONCE_OF_ONE = 16

Key: TypeAlias = tuple[str, str]
_Asked: TypeAlias = tuple[Signal, Engine | None]
_Start: TypeAlias = Callable[[Coroutine[Any, Any, None], str], asyncio.Task[None]]


@dataclass(slots=True)
class _Measured:
    """``zero`` is when the loop's time was 0, as the clock had it when the measurement began: a clock that is set
    meanwhile makes no window shorter, and no pod stand still.
    """

    task: asyncio.Task[None]
    wanted: tuple[Measurement, ...]
    zero: float
    trials: dict[Question, Trial] = field(default_factory=dict)
    at_once: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE_OF_ONE))


class Measuring:
    """``start`` runs a task under a name, ``wake`` has a key decided again."""

    def __init__(self, scraper: Scraper, clock: Clock, start: _Start, wake: Callable[[Key], None]) -> None:
        self._scraper = scraper
        self._clock = clock
        self._start = start
        self._wake = wake
        self._of: dict[Key, _Measured] = {}
        self._at_once = asyncio.Semaphore(AT_ONCE)

    def trials(self, namespace: str, name: str) -> Mapping[Question, Trial]:
        """What was measured for a Rollout so far."""
        found = self._of.get((namespace, name))
        return found.trials if found is not None else {}

    async def want(self, key: Key, wanted: tuple[Measurement, ...]) -> None:
        """Set what is measured for a key, replacing what was; () ends it, and forgets what was counted."""
        found = self._of.get(key)
        if not wanted:
            if found is not None:
                await end([self._of.pop(key).task])
            return
        if found is None:
            task = self._start(self._measure(key), f"measure {key[0]}/{key[1]}")
            zero = self._clock.now().timestamp() - asyncio.get_running_loop().time()
            self._of[key] = _Measured(task, wanted, zero)
            return
        found.wanted = wanted
        kept = {each.question for each in wanted}
        found.trials = {question: trial for question, trial in found.trials.items() if question in kept}

    async def close(self) -> None:
        """End every measurement."""
        tasks = [each.task for each in self._of.values()]
        self._of.clear()
        await end(tasks)
        await self._scraper.close()

    async def _measure(self, key: Key) -> None:
        loop = asyncio.get_running_loop()
        following = loop.time()
        while True:
            try:
                await self._round(key)
            except Exception:
                # A bug costs one Rollout its gates, which then wait for a user, and not all of them their controller.
                log.exception("round of measurements failed", extra=fields(namespace=key[0], rollout=key[1]))
            self._wake(key)
            following = max(following + EVERY, loop.time())
            await asyncio.sleep(following - loop.time())

    async def _round(self, key: Key) -> None:
        """One round; measurements that are no longer wanted when the answers are there are dropped."""
        measured = self._of[key]
        wanted = measured.wanted
        answers = await self._ask(key[0], measured)
        now = measured.zero + asyncio.get_running_loop().time()
        kept = {each.question for each in measured.wanted}
        for each in wanted:
            if each.question not in kept:
                continue
            before = measured.trials.get(each.question) or Trial.at(now, each.question.criterion)
            sides = (
                {endpoint.uid: answers[endpoint][_asked(each)] for endpoint in side} for side in (each.new, each.stable)
            )
            measured.trials[each.question] = before.after(now, *sides)

    async def _ask(self, namespace: str, measured: _Measured) -> dict[Endpoint, Mapping[_Asked, Read]]:
        """Each pod once, for all that any gate reads from it."""
        asked: dict[Endpoint, set[_Asked]] = defaultdict(set)
        for each in measured.wanted:
            for endpoint in (*each.new, *each.stable):
                asked[endpoint].add(_asked(each))
        found = await asyncio.gather(*(self._scrape(namespace, *each, measured.at_once) for each in asked.items()))
        return dict(zip(asked, found, strict=True))

    async def _scrape(
        self, namespace: str, endpoint: Endpoint, asked: Collection[_Asked], of_one: asyncio.Semaphore
    ) -> Mapping[_Asked, Read]:
        """What is kept of an answer is what gates read from it: those of hundreds of pods may be there at once."""
        async with of_one, self._at_once:
            try:
                text = await self._scraper.metrics(namespace, endpoint)
                answer = parse(text, frozenset().union(*(families(*each) for each in asked)))
            except (Unread, NotAnExposition) as error:
                return dict.fromkeys(asked, Trouble(str(error)))
        return {(signal, engine): read(signal, answer, engine) for signal, engine in asked}


def _asked(measurement: Measurement) -> _Asked:
    criterion = measurement.question.criterion
    return criterion.signal, criterion.engine
