"""The table of what may happen while groups wait until they are idle, and when they go: by what their pods say, and by
what a Prometheus has scraped of them.

Prometheus scrapes in seconds 0, 15, 30 and so on; the drain begins in second 31, and asks every five seconds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, cast

import pytest

from rollout_lws.analysis.criterion import Verdict
from rollout_lws.analysis.idling import Idle, Idling
from rollout_lws.kube.client import Client
from rollout_lws.measuring.pods import PodWork
from rollout_lws.measuring.prometheus_client import PrometheusClient, Unanswered
from rollout_lws.measuring.prometheus_work import PrometheusWork
from rollout_lws.measuring.rounds import Measuring, Source
from rollout_lws.measuring.scraping import ProxyScraper
from rollout_lws.prometheus.scrapes import Prometheus, Series
from rollout_lws.rollout.decision import Endpoint, Measurement, Question, Stored
from tests.controller.test_verdict_table import IDLE, KEY, ORIGIN, Answer, Pods, Row, Scraped, Server, one
from tests.virtual_time import LoopClock

pytestmark = pytest.mark.looptime

BEGINS, DRAIN, LONGEST = 31, 30, 300
BUSY = Server(9_000)
LOST = ConnectionRefusedError()


@dataclass(frozen=True)
class Goes:
    """Seconds after which a pod goes, and whether because it is idle; else as nothing is known of it."""

    after: int
    idle: bool = True


NEVER = Goes(LONGEST, idle=False)


def then(first: Answer, number: int, later: Answer) -> Callable[[int], Answer]:
    """``first`` until that scrape, ``later`` from it on."""
    return lambda now: first if now < number else later


def models(*servers: Server) -> str:
    return "".join(replace(server, model=f"m{number}").text() for number, server in enumerate(servers))


#: What the pod answers from scrape to scrape, and when it goes by its own word and by Prometheus'.
TABLE: Mapping[str, tuple[Callable[[int], Answer], Goes, Goes]] = {
    "idle": (lambda _: IDLE, Goes(5), Goes(30)),
    "busy": (lambda _: BUSY, NEVER, NEVER),
    "only-waiting": (lambda _: replace(IDLE, waiting=1), NEVER, NEVER),
    "idle-from-second-75-on": (then(BUSY, 5, IDLE), Goes(50), Goes(60)),
    "one-zero": (lambda number: IDLE if number == 3 else BUSY, Goes(20), NEVER),
    "each-second-one-is-zero": (lambda number: IDLE if number % 2 else BUSY, Goes(20), NEVER),
    "zeros-before-the-drain": (then(IDLE, 3, BUSY), Goes(5), NEVER),
    "a-zero-that-grows-stale": (then(IDLE, 4, LOST), Goes(5), Goes(55, idle=False)),
    "zeros-before-the-drain-and-nothing-since": (then(IDLE, 3, LOST), Goes(5), Goes(35, idle=False)),
    "series-that-are-gone": (then(BUSY, 3, "up 1\n"), Goes(40, idle=False), Goes(35, idle=False)),
    "never-scraped": (lambda _: LOST, Goes(30, idle=False), Goes(30, idle=False)),
    "two-models": (lambda _: models(IDLE, IDLE), Goes(5), Goes(30)),
    "two-models-of-which-one-is-busy": (lambda _: models(IDLE, BUSY), NEVER, NEVER),
}


class _Down(Scraped):
    """Answers no more from a second on, has samples only so many seconds ``late``, and a clock that is ``ahead``."""

    def __init__(self, pods: Pods, clock: LoopClock, second: float, late: float, ahead: float = 0.0) -> None:
        super().__init__(pods, clock)
        self._second, self._late, self._ahead = second, late, ahead

    def ahead(self, _prometheus: Prometheus) -> float:
        return self._ahead

    async def samples(self, namespace: str, prometheus: Prometheus, query: str, at: datetime) -> list[Series]:
        if (at - ORIGIN).total_seconds() >= self._second:
            raise Unanswered("http://prometheus: no answer in 10 s")
        there = await super().samples(namespace, prometheus, query, at)
        until = at.timestamp() - self._late
        points = (
            (each, tuple((time + self._ahead, value) for time, value in each.points if time <= until)) for each in there
        )
        return [replace(each, points=left) for each, left in points if left]


async def goes(source: Source, asks: Idle | Stored) -> Goes:
    """When a pod goes, as drains judge what was heard of one that is ready."""
    tasks = []

    def start(work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        tasks.append(asyncio.create_task(work, name=name))
        return tasks[-1]

    await asyncio.sleep(BEGINS)
    begins = ORIGIN + timedelta(seconds=BEGINS)
    measuring = Measuring([source], LoopClock(ORIGIN), start, lambda _: None)
    pod = Endpoint("uid-a", "a", "10.0.0.7", 8000, "/metrics")
    await measuring.want(KEY, (Measurement(Question("", begins, asks), (pod,)),))
    try:
        for second in range(LONGEST):
            await asyncio.sleep(0.5)
            (answer,) = measuring.answers(*KEY).values()
            assert isinstance(answer, Idling)
            heard = answer.pods["uid-a"]
            if heard.is_idle:
                return Goes(second)
            if heard.is_unknown and heard.at + DRAIN <= ORIGIN.timestamp() + BEGINS + second:
                return Goes(second, idle=False)
            await asyncio.sleep(0.5)
        return NEVER
    finally:
        await measuring.close()


@pytest.mark.parametrize("name", TABLE)
async def test_a_pod_goes_when_it_says_twice_that_it_is_idle(name: str) -> None:
    told, by_pods, _ = TABLE[name]
    pods = Pods(Row(one(told), Verdict.PASSED))
    assert await goes(PodWork(ProxyScraper(Client(pods))), Idle()) == by_pods


async def by_prometheus(
    told: Callable[[int], Answer], down: float = LONGEST * 2, late: float = 0.0, ahead: float = 0.0
) -> Goes:
    scraped = _Down(Pods(Row(one(told), Verdict.PASSED)), LoopClock(ORIGIN), down, late, ahead)
    try:
        client = cast(PrometheusClient, scraped)
        return await goes(PrometheusWork(client, LoopClock(ORIGIN)), Stored(Idle(), Prometheus()))
    finally:
        await scraped.close()


@pytest.mark.parametrize("name", TABLE)
async def test_a_pod_goes_when_two_scrapes_say_that_it_is_idle(name: str) -> None:
    told, _, expected = TABLE[name]
    assert await by_prometheus(told) == expected


@pytest.mark.parametrize(
    ("down", "after"),
    [(0, DRAIN), (46, DRAIN), (47, 46 - BEGINS + DRAIN)],
    ids=["always", "before-a-scrape", "after-a-zero"],
)
async def test_without_prometheus_a_pod_gets_all_its_time(down: float, after: int) -> None:
    assert await by_prometheus(lambda _: IDLE, down) == Goes(after, idle=False)


@pytest.mark.parametrize(
    ("late", "told", "expected"),
    [
        (6.0, IDLE, Goes(35)),
        (6.0, BUSY, NEVER),
        (10.0, IDLE, Goes(40)),
        (10.0, BUSY, NEVER),
        # No sample is ever younger than the interval.
        *((late, told, Goes(35, idle=False)) for late in (17.0, 25.0) for told in (IDLE, BUSY)),
        *((40.0, told, Goes(30, idle=False)) for told in (IDLE, BUSY)),
    ],
)
async def test_samples_that_come_late_neither_cut_a_stream_nor_are_waited_for_for_ever(
    late: float, told: Answer, expected: Goes
) -> None:
    assert await by_prometheus(lambda _: told, late=late) == expected


async def test_zeros_of_before_the_drain_are_none_whatever_a_clock_that_is_ahead_has_stamped_them_with() -> None:
    assert await by_prometheus(then(IDLE, 3, BUSY), ahead=25.0) == NEVER
    assert (await by_prometheus(lambda _: IDLE, ahead=25.0)).idle
