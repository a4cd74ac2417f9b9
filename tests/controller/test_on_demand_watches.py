"""Watches on demand: begun when the first key wants them, ended with the last, whoever is cancelled meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import msgspec
import pytest

from rollout_lws.controller.on_demand_watches import OnDemandWatches, pods_of
from rollout_lws.errors import ApiError
from rollout_lws.kube.client import Client
from rollout_lws.kube.informer import Informer
from rollout_lws.objects.workloads import Pod
from tests.kube.fakes import FakeTransport, page, pod

pytestmark = pytest.mark.looptime
A, B = ("ns", "a"), ("ns", "b")


class Watched:
    """Pod watches over a scripted server; a watch that is cancelled needs a second to close its connection."""

    def __init__(self, *answers: Any, **how: Any) -> None:
        self.tasks: list[asyncio.Task[None]] = []
        self.woken: list[tuple[str, str]] = []
        self.answers = answers or (page("1"),)
        self.transport = FakeTransport(*self.answers)
        self.pods = OnDemandWatches("pods", self._make, self._start, self.woken.append, **how)

    @property
    def asked(self) -> list[Any]:
        return self.transport.requests

    def _make(self, namespace: str, lws: str) -> Informer[Pod]:
        return pods_of(Client(self.transport), namespace, lws)

    def _start(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        async def slow_to_close() -> None:
            try:
                await work
            finally:
                await asyncio.sleep(1)

        self.tasks.append(asyncio.create_task(slow_to_close(), name=name))
        return self.tasks[-1]


async def test_a_watch_lives_as_long_as_one_key_wants_it() -> None:
    watches = Watched()
    await watches.pods.want(A, ("llama",))
    await watches.pods.want(B, ("llama",))
    await watches.pods.want(A, ())
    await asyncio.sleep(5)
    assert [task.done() for task in watches.tasks] == [False]
    await watches.pods.want(B, ())
    assert [task.done() for task in watches.tasks] == [True]


async def test_who_is_cancelled_while_a_watch_ends_does_not_go_on() -> None:
    watches = Watched()
    await watches.pods.want(A, ("llama",))
    await asyncio.sleep(5)
    worker = asyncio.create_task(watches.pods.want(A, ()))
    await asyncio.sleep(0.5)
    worker.cancel()
    with pytest.raises(asyncio.CancelledError):
        await worker
    await asyncio.sleep(1)
    assert watches.tasks[0].done()


async def test_who_wants_a_watch_is_woken_when_its_first_list_is_in_even_if_that_is_empty() -> None:
    watches = Watched()
    assert watches.pods.unknown("ns", "llama") == ""
    await watches.pods.want(A, ("llama",))
    await watches.pods.want(B, ("llama",))
    await asyncio.sleep(0.01)
    assert (sorted(watches.woken), watches.pods.unknown("ns", "llama")) == ([A, B], None)
    await watches.pods.close()


async def test_who_comes_after_the_first_list_is_woken_at_once_for_it_may_have_looked_before() -> None:
    watches = Watched()
    await watches.pods.want(A, ("llama",))
    await asyncio.sleep(0.01)
    for _ in range(2):
        # Once: it wants the same again in the pass that this starts.
        await watches.pods.want(B, ("llama",))
    assert watches.woken == [A, B]
    await watches.pods.close()


async def test_who_wants_a_watch_of_what_is_not_served_is_told_that_there_is_none() -> None:
    watches = Watched(ApiError(404, "NotFound", "the server could not find the requested resource"))
    await watches.pods.want(A, ("llama",))
    await asyncio.sleep(0.01)
    assert watches.woken == [A]
    assert (watches.pods.unknown("ns", "llama"), watches.pods.unserved("ns", "llama")) == (None, True)
    await watches.pods.close()


async def test_who_wants_a_watch_that_cannot_be_had_is_told_why() -> None:
    watches = Watched(ApiError(403, "Forbidden", "pods is forbidden"))
    await watches.pods.want(A, ("llama",))
    await asyncio.sleep(0.01)
    assert watches.woken == [A]
    assert "allow the controller's account" in (watches.pods.unknown("ns", "llama") or "")
    assert not watches.pods.unserved("ns", "llama")
    await watches.pods.close()


async def test_nothing_is_asked_for_before_it_has_been_wanted_for_a_while() -> None:
    watches = Watched(after=5)
    await watches.pods.want(A, ("llama",))
    await asyncio.sleep(4.9)
    await watches.pods.want(A, ())
    assert watches.asked == []
    await watches.pods.want(A, ("llama",))
    await asyncio.sleep(5.1)
    assert (watches.asked != [], watches.woken) == (True, [A])
    await watches.pods.close()


async def test_each_change_of_what_explains_wakes_who_wants_it() -> None:
    watches = Watched(page("1", pod("a-0", 1)), each_change=True)
    await watches.pods.want(A, ("llama",))
    await asyncio.sleep(0.01)
    assert set(watches.woken) == {A}
    watches.woken.clear()
    watches.pods.absorb(msgspec.json.encode(pod("a-0", 2)))
    assert watches.woken == [A]
    await watches.pods.close()
