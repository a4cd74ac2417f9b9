"""Pod watches on demand: begun when the first key wants them, ended with the last, whoever is cancelled meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from rollout_lws.controller.informers import pods_of
from rollout_lws.controller.pods import PodWatches
from rollout_lws.kube.client import Client
from rollout_lws.kube.informer import Informer
from rollout_lws.objects.workloads import Pod
from tests.kube.fakes import FakeTransport, page

pytestmark = pytest.mark.looptime
A, B = ("ns", "a"), ("ns", "b")


class Watches:
    """Pod watches over a scripted server; a watch that is cancelled needs a second to close its connection."""

    def __init__(self) -> None:
        self.tasks: list[asyncio.Task[None]] = []
        self.pods = PodWatches(self._make, self._start)

    def _make(self, namespace: str, lws: str) -> Informer[Pod]:
        return pods_of(Client(FakeTransport(page("1"))), namespace, lws)

    def _start(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        async def slow_to_close() -> None:
            try:
                await work
            finally:
                await asyncio.sleep(1)

        self.tasks.append(asyncio.create_task(slow_to_close(), name=name))
        return self.tasks[-1]


async def test_a_watch_lives_as_long_as_one_key_wants_it() -> None:
    watches = Watches()
    await watches.pods.want(A, ("llama",))
    await watches.pods.want(B, ("llama",))
    await watches.pods.want(A, ())
    await asyncio.sleep(5)
    assert [task.done() for task in watches.tasks] == [False]
    await watches.pods.want(B, ())
    assert [task.done() for task in watches.tasks] == [True]


async def test_who_is_cancelled_while_a_watch_ends_does_not_go_on() -> None:
    watches = Watches()
    await watches.pods.want(A, ("llama",))
    await asyncio.sleep(5)
    worker = asyncio.create_task(watches.pods.want(A, ()))
    await asyncio.sleep(0.5)
    worker.cancel()
    with pytest.raises(asyncio.CancelledError):
        await worker
    await asyncio.sleep(1)
    assert watches.tasks[0].done()
