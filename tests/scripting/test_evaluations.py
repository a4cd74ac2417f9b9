"""Scripts that decisions want run: once for all, beside the event loop, and again where there was too little time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from rollout_lws.scripting.evaluations import Evaluations, Key
from rollout_lws.traffic.custom.scripts import Evaluation, Failure, Outcome, Output

pytestmark = pytest.mark.looptime
ONE, OTHER = ("prod", "one"), ("prod", "other")
ASKED = Evaluation("lua.traffic.routing.A.b", "return obj.data", b"{}")
LATE = Failure("it runs for more than a second", lasts=False)


class Told:
    """A runner that gives the next of these results, the last one over and over."""

    def __init__(self, *outcomes: Outcome) -> None:
        self.left, self.runs, self.closed = list(outcomes), 0, False

    def run(self, _script: str, _given: bytes, /) -> Outcome:
        self.runs += 1
        return self.left.pop(0) if len(self.left) > 1 else self.left[0]

    def close(self) -> None:
        self.closed = True


@asynccontextmanager
async def evaluating(runner: Told) -> AsyncIterator[tuple[Evaluations, list[Key]]]:
    woken: list[Key] = []

    def start(work: Any, name: str) -> asyncio.Task[None]:
        return asyncio.create_task(work, name=name)

    made = Evaluations(runner, start, woken.append)
    yield made, woken
    await made.close()
    assert runner.closed


async def until(holds: Any) -> None:
    """A thread takes time that is not the loop's."""
    async with asyncio.timeout(3600):
        while not holds():  # noqa: ASYNC110 - a thread tells no event
            await asyncio.sleep(0.1)


async def test_the_same_script_with_the_same_input_runs_once_for_all_rollouts() -> None:
    runner = Told(Output(b"{}"))
    async with evaluating(runner) as (evaluations, woken):
        await evaluations.want(ONE, (ASKED,))
        await evaluations.want(OTHER, (ASKED,))
        await until(lambda: len(woken) == 2)
        assert evaluations.outcomes(ONE) == evaluations.outcomes(OTHER) == {ASKED: Output(b"{}")}
        await evaluations.want(ONE, (ASKED,))
        await evaluations.want(OTHER, ())
        await asyncio.sleep(60)
        assert (runner.runs, sorted(woken)) == (1, [ONE, OTHER])
        assert evaluations.outcomes(ONE) and not evaluations.outcomes(OTHER)
        await evaluations.want(ONE, ())
        await evaluations.want(ONE, (ASKED,))
        await until(lambda: runner.runs == 2)


async def test_a_failure_is_a_result_and_one_for_lack_of_time_is_tried_again_ever_more_rarely() -> None:
    runner = Told(LATE, LATE, LATE, Output(b"1"))
    async with evaluating(runner) as (evaluations, woken):
        await evaluations.want(ONE, (ASKED,))
        await until(lambda: woken)
        assert evaluations.outcomes(ONE) == {ASKED: LATE}
        await until(lambda: runner.runs == 4)
        await until(lambda: len(woken) == 2)
        assert evaluations.outcomes(ONE) == {ASKED: Output(b"1")}
        await asyncio.sleep(3600)
        assert runner.runs == 4
    lasting = Told(Failure("line 1: no"))
    async with evaluating(lasting) as (evaluations, _):
        await evaluations.want(ONE, (ASKED,))
        await asyncio.sleep(3600)
        assert lasting.runs == 1
