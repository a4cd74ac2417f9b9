"""The keyed queue, in virtual time."""

from __future__ import annotations

import asyncio
import random

import pytest

from rollout_lws.kube.queue import KeyedQueue

pytestmark = pytest.mark.looptime


class Highest(random.Random):
    """Jitter at its upper end."""

    def uniform(self, a: float, b: float) -> float:
        return b


class Lowest(random.Random):
    """No jitter."""

    def uniform(self, a: float, b: float) -> float:
        return a


def now() -> float:
    return asyncio.get_running_loop().time()


async def taken(queue: KeyedQueue[str]) -> str:
    """The next key, processed at once."""
    key = await queue.get()
    queue.done(key)
    return key


async def test_a_key_added_many_times_is_given_once() -> None:
    queue: KeyedQueue[str] = KeyedQueue()
    for key in ("a", "b", "a", "a", "b"):
        queue.add(key)
    assert len(queue) == 2
    assert [await taken(queue), await taken(queue)] == ["a", "b"]
    assert len(queue) == 0


async def test_a_key_added_while_it_is_processed_comes_once_more_and_only_after_it_is_done() -> None:
    queue: KeyedQueue[str] = KeyedQueue()
    queue.add("a")
    assert await queue.get() == "a"
    queue.add("a")
    queue.add("a")
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(queue.get(), 60)
    queue.done("a")
    assert await taken(queue) == "a"
    assert len(queue) == 0


async def test_one_key_is_never_with_two_workers() -> None:
    queue: KeyedQueue[str] = KeyedQueue()
    at_work: list[str] = []
    passes = 0

    async def work() -> None:
        nonlocal passes
        while True:
            key = await queue.get()
            assert key not in at_work
            at_work.append(key)
            passes += 1
            await asyncio.sleep(0.01)
            at_work.remove(key)
            queue.done(key)

    workers = [asyncio.create_task(work()) for _ in range(4)]
    for _ in range(20):
        queue.add("a")
        queue.add("b")
        await asyncio.sleep(0.003)
    await asyncio.sleep(1)
    for worker in workers:
        assert not worker.done()
        worker.cancel()
    await asyncio.gather(*workers, return_exceptions=True)
    assert passes >= 10


async def test_a_timer_wakes_its_key_at_its_very_moment() -> None:
    queue: KeyedQueue[str] = KeyedQueue()
    started = now()
    queue.add_at("a", started + 600.125)
    assert await taken(queue) == "a"
    assert now() - started == pytest.approx(600.125, abs=0.001)


async def test_of_two_timers_of_a_key_the_earlier_one_counts() -> None:
    queue: KeyedQueue[str] = KeyedQueue()
    started = now()
    queue.add_at("a", started + 10)
    queue.add_at("a", started + 5)
    queue.add_at("a", started + 20)
    assert await taken(queue) == "a"
    assert now() - started == pytest.approx(5, abs=0.001)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(queue.get(), 60)


async def test_a_moment_that_has_passed_wakes_at_once() -> None:
    queue: KeyedQueue[str] = KeyedQueue()
    started = now()
    queue.add_at("a", started - 5)
    assert await taken(queue) == "a"
    assert now() - started == pytest.approx(0, abs=0.001)


async def test_back_off_doubles_from_five_milliseconds_to_thirty_seconds() -> None:
    queue: KeyedQueue[str] = KeyedQueue(Lowest())
    waits = []
    for _ in range(16):
        started = now()
        queue.retry("a")
        await taken(queue)
        waits.append(now() - started)
    expected = [min(0.005 * 2**n, 30.0) for n in range(16)]
    assert waits == pytest.approx(expected, abs=0.001)


async def test_jitter_only_lengthens_a_back_off_and_by_a_quarter_at_most() -> None:
    queue: KeyedQueue[str] = KeyedQueue(Highest())
    started = now()
    queue.retry("a")
    await taken(queue)
    assert now() - started == pytest.approx(0.00625, abs=0.001)


async def test_back_off_is_each_keys_own_and_ends_with_forget() -> None:
    queue: KeyedQueue[str] = KeyedQueue(Lowest())
    for _ in range(10):
        queue.retry("a")
        await taken(queue)
    for key in ("b", "a"):
        if key == "a":
            queue.forget("a")
        started = now()
        queue.retry(key)
        await taken(queue)
        assert now() - started == pytest.approx(0.005, abs=0.001), key


async def test_what_the_server_asked_for_is_the_least_wait() -> None:
    queue: KeyedQueue[str] = KeyedQueue(Lowest())
    started = now()
    queue.retry("a", 7.0)
    await taken(queue)
    assert now() - started == pytest.approx(7, abs=0.001)


async def test_a_change_wakes_a_key_before_its_back_off_ends() -> None:
    queue: KeyedQueue[str] = KeyedQueue(Lowest())
    queue.retry("a", 20.0)
    queue.add("a")
    started = now()
    await taken(queue)
    assert now() == started


async def test_forget_voids_the_timer_of_a_key() -> None:
    queue: KeyedQueue[str] = KeyedQueue()
    queue.add_at("a", now() + 1)
    queue.forget("a")
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(queue.get(), 60)


async def test_a_worker_cancelled_as_it_is_woken_leaves_the_key_to_another() -> None:
    queue: KeyedQueue[str] = KeyedQueue()
    first, second = asyncio.create_task(queue.get()), asyncio.create_task(queue.get())
    await asyncio.sleep(0)
    queue.add("a")
    first.cancel()
    assert await asyncio.wait_for(second, 1) == "a"
    with pytest.raises(asyncio.CancelledError):
        await first


async def test_the_age_of_a_queue_is_that_of_the_key_that_came_first() -> None:
    queue: KeyedQueue[str] = KeyedQueue()
    assert queue.oldest_seconds == 0
    queue.add("a")
    await asyncio.sleep(5)
    queue.add("b")
    queue.add("a")
    assert queue.oldest_seconds == 5
    assert await queue.get() == "a"
    assert queue.oldest_seconds == 0
    await asyncio.sleep(2)
    queue.add("a")  # while it is being processed
    await asyncio.sleep(1)
    queue.done("a")
    assert await queue.get() == "b"
    assert (queue.oldest_seconds, len(queue)) == (0, 1)


async def test_keys_that_failed_are_counted_until_they_go_well() -> None:
    queue: KeyedQueue[str] = KeyedQueue()
    queue.retry("a")
    queue.retry("a")
    queue.retry("b")
    assert queue.failing == 2
    queue.forget("a")
    assert queue.failing == 1


async def test_what_comes_late_is_told_by_how_much() -> None:
    late: list[float] = []
    queue: KeyedQueue[str] = KeyedQueue(late=late.append)
    queue.add_at("a", now() + 3)
    queue.add_at("b", now() - 2)
    assert [await queue.get(), await queue.get()] == ["b", "a"]
    assert late == pytest.approx([2, 0], abs=0.01)
