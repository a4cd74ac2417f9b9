"""Runs the scripts that decisions want run, beside the event loop, and keeps what came of them while it is wanted."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Protocol, TypeAlias

from rollout_lws.logs import fields
from rollout_lws.tasks import end
from rollout_lws.traffic.custom.scripts import Evaluation, Failure, Outcome

log = logging.getLogger(__name__)

#: Namespace and name of a Rollout.
Key: TypeAlias = tuple[str, str]
_Start: TypeAlias = Callable[[Coroutine[Any, Any, None], str], asyncio.Task[None]]
#: Seconds until a script that had too little time is run again, doubled each time.
_AGAIN, _LONGEST = 5.0, 300.0


class Runs(Protocol):
    """What runs scripts."""

    def run(self, script: str, given: bytes, /) -> Outcome:
        """The result; blocks."""
        ...

    def close(self) -> None: ...


class Evaluations:
    """``start`` runs a task under a name, ``wake`` has a key decided again. One script runs at a time, so that those of
    one namespace cannot take more than a processor; the same script with the same input runs once for all Rollouts.
    """

    def __init__(self, runner: Runs, start: _Start, wake: Callable[[Key], None]) -> None:
        self._runner = runner
        self._start = start
        self._wake = wake
        self._wanted: dict[Key, tuple[Evaluation, ...]] = {}
        self._outcomes: dict[Evaluation, Outcome] = {}
        self._running: dict[Evaluation, asyncio.Task[None]] = {}
        self._one = asyncio.Lock()

    def outcomes(self, key: Key) -> Mapping[Evaluation, Outcome]:
        """What is known of what the key wanted last."""
        wanted = self._wanted.get(key, ())
        return {each: self._outcomes[each] for each in wanted if each in self._outcomes}

    async def want(self, key: Key, wanted: tuple[Evaluation, ...]) -> None:
        """Set what the key wants evaluated, replacing what it wanted; what no key wants is forgotten."""
        if not wanted and key not in self._wanted:
            return
        before = self._wanted.pop(key, ())
        if wanted:
            self._wanted[key] = wanted
        for each in wanted:
            if each not in self._running and each not in self._outcomes:
                self._running[each] = self._start(self._evaluate(each), f"script {each.key}")
        for each in {*before} - {*wanted}:
            if not any(each in others for others in self._wanted.values()):
                self._outcomes.pop(each, None)
                task = self._running.pop(each, None)
                await end([task] if task is not None else [])

    async def close(self) -> None:
        """Forget everything, once the script that runs has ended."""
        tasks = [*self._running.values()]
        self._wanted.clear()
        self._outcomes.clear()
        self._running.clear()
        await end(tasks)
        await asyncio.to_thread(self._runner.close)

    async def _evaluate(self, asked: Evaluation) -> None:
        delay = _AGAIN
        while True:
            async with self._one:
                outcome = await asyncio.to_thread(self._runner.run, asked.script, asked.given)
            told = self._outcomes.get(asked)
            self._outcomes[asked] = outcome
            if isinstance(outcome, Failure) and outcome != told:
                log.warning("script failed", extra=fields(script=asked.key, error=outcome.message))
            if outcome != told:
                for key, wanted in tuple(self._wanted.items()):
                    if asked in wanted:
                        self._wake(key)
            if not isinstance(outcome, Failure) or outcome.lasts:
                # A later decision may want it again, when it has been forgotten.
                self._running.pop(asked, None)
                return
            await asyncio.sleep(delay)
            delay = min(delay * 2, _LONGEST)
