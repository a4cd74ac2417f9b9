"""Measurements: what gates want is scraped, once a pod and round, and nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from rollout_lws.analysis.calls import Calls
from rollout_lws.analysis.criterion import Criterion, Verdict
from rollout_lws.analysis.idling import Idle, Idling
from rollout_lws.analysis.kinds import Signal
from rollout_lws.measuring.pods import AT_ONCE, AT_ONCE_OF_ONE, PodFigures, PodWork
from rollout_lws.measuring.rounds import Fold, Measuring
from rollout_lws.measuring.scraping import Unread
from rollout_lws.rollout.decision import Answered, Asked, Broken, Endpoint, Measurement, Question
from rollout_lws.settings import SCRAPE_EVERY
from tests.virtual_time import LoopClock

pytestmark = pytest.mark.looptime

A, B = ("default", "a"), ("default", "b")
ORIGIN = datetime(2026, 1, 1, tzinfo=UTC)


class Pods:
    """Answers of pods, by name: a text, or what is raised; each takes ``seconds``."""

    def __init__(self) -> None:
        self.answers: dict[str, str | Exception] = {}
        self.asked: list[str] = []
        self.now, self.most, self.seconds, self.closed = 0, 0, 0.0, False

    async def metrics(self, _: str, endpoint: Endpoint) -> str:
        self.asked.append(endpoint.pod)
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            await asyncio.sleep(self.seconds)
        finally:
            self.now -= 1
        answer = self.answers.get(endpoint.pod, "")
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def close(self) -> None:
        self.closed = True


class Shell:
    """What measures, with what it has done."""

    def __init__(self) -> None:
        self.pods = Pods()
        self.woken: list[tuple[str, str]] = []
        self.tasks: list[asyncio.Task[None]] = []
        self.measuring = Measuring(
            [PodFigures(self.pods, SCRAPE_EVERY), PodWork(self.pods)], LoopClock(ORIGIN), self._start, self.woken.append
        )

    def _start(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        self.tasks.append(asyncio.create_task(work, name=name))
        return self.tasks[-1]


@pytest.fixture
async def shell() -> AsyncIterator[Shell]:
    made = Shell()
    yield made
    await made.measuring.close()
    assert all(task.done() for task in made.tasks)
    assert made.pods.closed


def endpoint(name: str) -> Endpoint:
    return Endpoint(f"uid-{name}", name, "10.0.0.7", 8000, "/metrics")


def asks(gate: str, *new: str, signal: Signal = Signal.QUEUE_LENGTH, since: datetime = ORIGIN) -> Measurement:
    criterion = Criterion(signal, limit=8.0, window=60)
    return Measurement(Question(gate, since, criterion), tuple(endpoint(name) for name in new))


def waiting(number: int) -> str:
    return f"vllm:num_requests_waiting {number}\nvllm:num_requests_running 1\n"


async def test_each_pod_is_asked_once_a_round_for_all_gates(shell: Shell) -> None:
    shell.pods.answers = {"p": waiting(3)}
    wanted = (asks("queue", "p"), asks("running", "p", signal=Signal.RUNNING_REQUESTS))
    await shell.measuring.want(A, wanted)
    await asyncio.sleep(2 * SCRAPE_EVERY + 1)
    assert shell.pods.asked == ["p"] * 3
    assert shell.woken == [A] * 3
    levels = [trial.figures.value for trial in shell.measuring.answers(*A).values()]
    assert levels == [3, 1]


async def test_nothing_is_asked_that_no_gate_wants(shell: Shell) -> None:
    await shell.measuring.want(A, ())
    await asyncio.sleep(60)
    assert (shell.pods.asked, shell.tasks) == ([], [])
    await shell.measuring.want(A, (asks("queue", "p"),))
    await asyncio.sleep(1)
    await shell.measuring.want(A, ())
    await asyncio.sleep(60)
    assert shell.pods.asked == ["p"]
    assert shell.measuring.answers(*A) == {}


async def test_pods_come_and_go_and_what_was_counted_stays(shell: Shell) -> None:
    shell.pods.answers = {"p": waiting(2), "q": waiting(4)}
    await shell.measuring.want(A, (asks("queue", "p"),))
    await asyncio.sleep(1)
    await shell.measuring.want(A, (asks("queue", "q"),))
    await asyncio.sleep(SCRAPE_EVERY)
    (trial,) = shell.measuring.answers(*A).values()
    assert (trial.figures.value, trial.figures.samples) == (3, 2)


async def test_a_gate_that_is_measured_anew_begins_with_nothing(shell: Shell) -> None:
    shell.pods.answers = {"p": waiting(2)}
    await shell.measuring.want(A, (asks("queue", "p"),))
    await asyncio.sleep(SCRAPE_EVERY + 1)
    later = asks("queue", "p", since=ORIGIN.replace(hour=1))
    await shell.measuring.want(A, (later,))
    assert shell.measuring.answers(*A) == {}
    await asyncio.sleep(SCRAPE_EVERY)
    (trial,) = shell.measuring.answers(*A).values()
    assert trial.figures.samples == 1


async def test_a_pod_that_cannot_be_read_is_named_and_the_others_are_read(shell: Shell) -> None:
    shell.pods.answers = {"p": waiting(2), "q": Unread("/metrics answered 500"), "r": "vllm:num_requests_waiting{ 1\n"}
    await shell.measuring.want(A, (asks("queue", "p", "q", "r"),))
    await asyncio.sleep(1)
    (trial,) = shell.measuring.answers(*A).values()
    assert trial.figures.value == 2
    assert trial.unread["uid-q"] == "/metrics answered 500"
    assert "not Prometheus' text format" in trial.unread["uid-r"]


async def test_pods_that_cannot_be_read_are_counted_once_and_no_longer_than_that(shell: Shell) -> None:
    shell.pods.answers = {"p": waiting(2), "q": Unread("/metrics answered 500")}
    gates = asks("queue", "p", "q"), asks("running", "p", "q", signal=Signal.RUNNING_REQUESTS)
    assert (shell.measuring.measured(), shell.measuring.unread()) == ({"scrape": 0, "drain": 0}, 0)
    await shell.measuring.want(A, gates)
    await shell.measuring.want(B, gates)
    await asyncio.sleep(1)
    assert (shell.measuring.measured(), shell.measuring.unread()) == ({"scrape": 2, "drain": 0}, 2)
    await shell.measuring.want(B, ())
    assert (shell.measuring.measured()["scrape"], shell.measuring.unread()) == (1, 1)
    shell.pods.answers["q"] = waiting(2)
    await asyncio.sleep(SCRAPE_EVERY)
    assert shell.measuring.unread() == 0


async def test_a_bug_costs_one_rollout_a_round_and_the_others_nothing(shell: Shell) -> None:
    shell.pods.answers = {"p": ZeroDivisionError("a bug"), "q": waiting(2)}
    await shell.measuring.want(A, (asks("queue", "p"),))
    await shell.measuring.want(B, (asks("queue", "q"),))
    await asyncio.sleep(SCRAPE_EVERY + 1)
    # The time of the gate runs from the first round that ended so.
    assert shell.measuring.answers(*A) == {asks("queue", "p").question: Broken(ORIGIN.timestamp())}
    (trial,) = shell.measuring.answers(*B).values()
    assert trial.figures.samples == 2
    shell.pods.answers["p"] = waiting(2)
    await asyncio.sleep(SCRAPE_EVERY)
    (trial,) = shell.measuring.answers(*A).values()
    assert (trial.figures.value, trial.began) == (2, ORIGIN.timestamp() + 2 * SCRAPE_EVERY)


class _Folds:
    """A source whose folds of gates that are called so raise; the others count their rounds in Calls' begin."""

    name, every = "folds", SCRAPE_EVERY

    def __init__(self, *broken: str) -> None:
        self.broken = broken

    def takes(self, _: Asked) -> bool:
        return True

    async def close(self) -> None:
        return

    async def round(
        self, _: str, wanted: tuple[Measurement, ...], _before: Mapping[Question, Answered]
    ) -> Mapping[Question, Fold]:
        return {each.question: self._fold(each.question.gate) for each in wanted}

    def _fold(self, gate: str) -> Fold:
        def fold(before: Answered | None, _now: float) -> Answered:
            if gate in self.broken:
                raise ZeroDivisionError(gate)
            return Calls(before.began + 1 if isinstance(before, Calls) else 1)

        return fold


async def test_a_bug_costs_its_gate_a_round_and_is_logged_once_each_round(caplog: pytest.LogCaptureFixture) -> None:
    tasks = []

    def start(work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        tasks.append(asyncio.create_task(work, name=name))
        return tasks[-1]

    source = _Folds()
    measuring = Measuring([source], LoopClock(ORIGIN), start, lambda _: None)
    await measuring.want(A, tuple(asks(gate, "p") for gate in ("a", "b", "c")))

    async def after(*broken: str) -> dict[str, Answered]:
        source.broken = broken
        await asyncio.sleep(SCRAPE_EVERY)
        return {question.gate: answer for question, answer in measuring.answers(*A).items()}

    now = ORIGIN.timestamp()
    assert await after("a", "b") == {"a": Broken(now), "b": Broken(now), "c": Calls(1)}
    assert await after("b", "c") == {"a": Calls(1), "b": Broken(now), "c": Calls(1)}
    assert await after() == {"a": Calls(2), "b": Calls(1), "c": Calls(2)}
    told = [each.exc_info for each in caplog.records if each.message == "round of measurements failed"]
    assert [str(each[1]) for each in told if each] == ["a", "b"]
    await measuring.close()


async def test_so_many_pods_are_asked_at_once_and_no_more(shell: Shell) -> None:
    shell.pods.seconds = 1.0
    for number in range(6):
        names = [f"p{number}-{each}" for each in range(AT_ONCE_OF_ONE)]
        await shell.measuring.want(("default", f"r{number}"), (asks("queue", *names),))
    await asyncio.sleep(5)
    assert (len(shell.pods.asked), shell.pods.most) == (6 * AT_ONCE_OF_ONE, AT_ONCE)


async def test_a_rollout_whose_pods_hang_leaves_room_for_the_others(shell: Shell) -> None:
    shell.pods.seconds = 5.0
    await shell.measuring.want(A, (asks("queue", *(f"p{each}" for each in range(500))),))
    await asyncio.sleep(1)
    assert shell.pods.most == AT_ONCE_OF_ONE < AT_ONCE
    shell.pods.seconds = 0.0
    await shell.measuring.want(B, (asks("queue", "q"),))
    await asyncio.sleep(0.1)
    assert shell.woken == [B]


async def test_rounds_that_take_long_follow_one_another(shell: Shell) -> None:
    shell.pods.seconds = 2 * SCRAPE_EVERY
    await shell.measuring.want(A, (asks("queue", "p"),))
    await asyncio.sleep(4 * SCRAPE_EVERY + 1)
    assert shell.pods.asked == ["p"] * 3
    assert shell.pods.most == 1


async def test_a_verdict_comes_when_the_window_is_over(shell: Shell) -> None:
    shell.pods.answers = {"p": waiting(2)}
    await shell.measuring.want(A, (asks("queue", "p"),))
    await asyncio.sleep(59)
    (trial,) = shell.measuring.answers(*A).values()
    assert trial.verdict is None
    await asyncio.sleep(SCRAPE_EVERY)
    (trial,) = shell.measuring.answers(*A).values()
    assert trial.verdict is Verdict.PASSED


def leaves(*pods: str) -> Measurement:
    return Measurement(Question("", ORIGIN, Idle()), tuple(endpoint(name) for name in pods))


async def test_pods_that_leave_are_asked_every_five_seconds_and_those_of_gates_as_before(shell: Shell) -> None:
    shell.pods.answers = {"p": "vllm:num_requests_waiting 0\nvllm:num_requests_running 0\n", "q": waiting(2)}
    await shell.measuring.want(A, (leaves("p"), asks("queue", "q")))
    await asyncio.sleep(SCRAPE_EVERY - 1)
    assert sorted(shell.pods.asked) == ["p"] * 3 + ["q"]
    idling = shell.measuring.answers(*A)[leaves().question]
    assert isinstance(idling, Idling)
    assert idling.pods["uid-p"].is_idle
    await shell.measuring.want(A, (asks("queue", "q"),))
    await asyncio.sleep(60)
    assert shell.pods.asked.count("p") == 3
