"""Measures what decisions want measured, in rounds, until it is no longer wanted.

Nothing is asked that no decision wants. A task per Rollout and source asks as often as the source says and wakes the
key; what has been answered lives as long as it is wanted, or until this replica stops working.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from rollout_lws.analysis.trial import Trial
from rollout_lws.clock import Clock
from rollout_lws.logs import fields
from rollout_lws.rollout.decision import Answered, Asked, Broken, Measurement, Question
from rollout_lws.tasks import end

log = logging.getLogger(__name__)

Key: TypeAlias = tuple[str, str]
#: The next answer, by the one before and the epoch second of the round's end.
Fold: TypeAlias = Callable[[Answered | None, float], Answered]
_Start: TypeAlias = Callable[[Coroutine[Any, Any, None], str], asyncio.Task[None]]


class Source(Protocol):
    """What can answer questions of some kinds."""

    name: str
    """What its tasks are called by."""
    every: float
    """Seconds from the beginning of a round to that of the next."""

    def takes(self, asked: Asked) -> bool:
        """Whether it answers such questions; exactly one source does."""
        ...

    async def round(
        self, namespace: str, wanted: tuple[Measurement, ...], before: Mapping[Question, Answered], /
    ) -> Mapping[Question, Fold]:
        """Ask once; ``before`` is what was answered so far. What does not answer is part of the answer."""
        ...

    async def close(self) -> None:
        """End what is open."""
        ...


@dataclass(slots=True)
class _Measured:
    """``zero`` is when the loop's time was 0, as the clock had it when the measurement began: a clock that is set
    meanwhile makes no window shorter, and no pod stand still.
    """

    task: asyncio.Task[None]
    wanted: tuple[Measurement, ...]
    zero: float
    answers: dict[Question, Answered] = field(default_factory=dict)


class Measuring:
    """``start`` runs a task under a name, ``wake`` has a key decided again."""

    def __init__(self, sources: Sequence[Source], clock: Clock, start: _Start, wake: Callable[[Key], None]) -> None:
        self._clock = clock
        self._start = start
        self._wake = wake
        self._of: dict[Source, dict[Key, _Measured]] = {source: {} for source in sources}

    def answers(self, namespace: str, name: str) -> Mapping[Question, Answered]:
        """What was measured for a Rollout so far."""
        found = [measured[namespace, name] for measured in self._of.values() if (namespace, name) in measured]
        return {question: answer for each in found for question, answer in each.answers.items()}

    def measured(self) -> dict[str, int]:
        """How many Rollouts are measured now, by name of the source."""
        return {source.name: len(of) for source, of in self._of.items()}

    def unread(self) -> int:
        """How many pods of model servers did not answer in the last round, each once for a Rollout."""
        of_rollouts = (each for of in self._of.values() for each in of.values())
        trials = ((each for each in of.answers.values() if isinstance(each, Trial)) for of in of_rollouts)
        return sum(len({key for trial in of_one for key in trial.unread}) for of_one in trials)

    async def want(self, key: Key, wanted: tuple[Measurement, ...]) -> None:
        """Set what is measured for a key, replacing what was; () ends it, and forgets what was answered."""
        for source in self._of:
            await self._want(source, key, tuple(each for each in wanted if source.takes(each.question.asks)))

    async def _want(self, source: Source, key: Key, wanted: tuple[Measurement, ...]) -> None:
        of = self._of[source]
        found = of.get(key)
        if not wanted:
            if found is not None:
                await end([of.pop(key).task])
            return
        if found is None:
            task = self._start(self._measure(source, key), f"{source.name} {key[0]}/{key[1]}")
            zero = self._clock.now().timestamp() - asyncio.get_running_loop().time()
            of[key] = _Measured(task, wanted, zero)
            return
        found.wanted = wanted
        kept = {each.question for each in wanted}
        found.answers = {question: answer for question, answer in found.answers.items() if question in kept}

    async def close(self) -> None:
        """End every measurement."""
        tasks = [each.task for of in self._of.values() for each in of.values()]
        await end(tasks)
        for source, of in self._of.items():
            of.clear()
            await source.close()

    async def _measure(self, source: Source, key: Key) -> None:
        loop = asyncio.get_running_loop()
        following = loop.time()
        while True:
            await self._round(source, key)
            self._wake(key)
            following = max(following + source.every, loop.time())
            await asyncio.sleep(following - loop.time())

    async def _round(self, source: Source, key: Key) -> None:
        """One round; what is no longer wanted when the answers are there is dropped. A bug costs one Rollout, or one of
        its gates, a round of figures, and is told once a round.
        """
        measured = self._of[source][key]
        asked = measured.wanted
        bug: Exception | None = None
        folds: Mapping[Question, Fold] = {}
        try:
            folds = await source.round(key[0], asked, measured.answers)
        except Exception as error:
            bug, folds = error, {each.question: _kept for each in asked}
        now = measured.zero + asyncio.get_running_loop().time()
        kept = {each.question for each in measured.wanted}
        for question, fold in folds.items():
            if question not in kept:
                continue
            before = measured.answers.get(question)
            try:
                measured.answers[question] = fold(before, now)
            except Exception as error:
                measured.answers[question] = _kept(before, now)
                bug = bug or error
        if bug is not None:
            log.error("round of measurements failed", exc_info=bug, extra=fields(namespace=key[0], rollout=key[1]))


def _kept(before: Answered | None, now: float) -> Answered:
    """What is known after a round that brought nothing, from which on the time of a gate runs."""
    return before if before is not None else Broken(now)
