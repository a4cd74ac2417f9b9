"""Runs the sandbox's behaviours as clients of any API server, where they decide as they do inside the sandbox.

There a decision and its writes are one moment. Here writes take time and may be lost, so keys wait in the queues that
our controller has too: none is decided twice at a time, one that failed is tried again later and later.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager

from rollout_lws.errors import ApiError, RolloutLwsError, Unreachable
from rollout_lws.kube.client import Client
from rollout_lws.kube.queue import KeyedQueue
from rollout_lws.objects.resources import EVENTS, Resource
from rollout_lws.objects.writes import Write
from rollout_lws.sandbox.behaviours.base import Behaviour, Change, Complaining, Key
from rollout_lws.tasks import end
from tests.e2e.following import Following
from tests.e2e.writing import carry_out, request, told

log = logging.getLogger(__name__)


class RemoteRunner:
    """Binds ``behaviours``, which look at ``resources``, to the API server behind ``client``.

    Those named in ``workers`` decide on that many keys at a time: only where keys do not concern each other. The others
    take one after the other, as inside the sandbox. ``errors`` holds what a behaviour raised though it should not have.
    """

    def __init__(
        self,
        client: Client,
        behaviours: Sequence[Behaviour],
        resources: Iterable[Resource],
        workers: Mapping[str, int] | None = None,
    ) -> None:
        self.errors: list[Exception] = []
        self.following = Following(client, resources, self._changed)
        self._client = client
        self._queues: list[tuple[Behaviour, KeyedQueue[Key]]] = [(each, KeyedQueue()) for each in behaviours]
        self._workers = workers or {}
        self._origin = 0.0

    @asynccontextmanager
    async def running(self, patience: float = 60.0) -> AsyncIterator[None]:
        """From the first lists on to the end of the block, which raises the unexpected errors as one ExceptionGroup.

        TimeoutError when the lists are not in after ``patience`` seconds; it says why.
        """
        self._origin = time.time() - asyncio.get_running_loop().time()
        tasks = self.following.start()
        try:
            await self.following.complete(patience)
            for behaviour, queue in self._queues:
                for number in range(self._workers.get(behaviour.name, 1)):
                    work = self._work(behaviour, queue)
                    tasks.append(asyncio.create_task(work, name=f"{behaviour.name} {number}"))
            yield
        finally:
            await end(tasks)
        if self.errors:
            raise ExceptionGroup("behaviours failed", self.errors)

    def now(self) -> float:
        """Epoch seconds by the loop's clock, so that timers come when they are due."""
        return self._origin + asyncio.get_running_loop().time()

    def _changed(self, change: Change) -> None:
        for behaviour, queue in self._queues:
            try:
                for key in behaviour.wakes(change, self.following.view):
                    queue.add(key)
            except Exception as error:
                self._failed(behaviour, error)

    async def _work(self, behaviour: Behaviour, queue: KeyedQueue[Key]) -> None:
        while True:
            key = await queue.get()
            try:
                await self._decide(behaviour, queue, key)
            except Exception as error:
                self._failed(behaviour, error)
            finally:
                queue.done(key)

    async def _decide(self, behaviour: Behaviour, queue: KeyedQueue[Key], key: Key) -> None:
        outcome = behaviour.decide(key, self.following.view, self.now())
        requests = [request(write, self.following.view) for write in outcome.writes]
        for each in requests:
            try:
                await carry_out(each, self._client, self.following)
            except (ApiError, Unreachable) as error:
                await self._refused(behaviour, key, each.write, error)
                if each.write.resource == EVENTS:
                    continue  # recorders lose events rather than hold their controller up
                queue.retry(key, error.retry_after if isinstance(error, ApiError) else None)
                return
            log.debug("%s: %s", behaviour.name, told(each.write))
        queue.forget(key)
        if outcome.wake_at is not None:
            queue.add_at(key, outcome.wake_at - self._origin)

    async def _refused(self, behaviour: Behaviour, key: Key, write: Write, error: RolloutLwsError) -> None:
        """A stale picture and a server that is away or busy are nobody's fault; of all else people are told."""
        if not isinstance(error, ApiError) or error.code in (404, 409, 429) or error.code >= 500:
            log.info("%s: not done, trying again: %s: %s", behaviour.name, told(write), error)
            return
        log.warning("%s: refused: %s: %s", behaviour.name, told(write), error)
        if not isinstance(behaviour, Complaining) or write.resource == EVENTS:
            return
        record = behaviour.complaint(key, self.following.view, write, error, self.now())
        if record is None:
            return
        try:
            await self._client.send(record)
        except (ApiError, Unreachable) as failure:
            log.warning("%s: its event was not recorded: %s", behaviour.name, failure)

    def _failed(self, behaviour: Behaviour, error: Exception) -> None:
        self.errors.append(error)
        log.error("behaviour failed behaviour=%s", behaviour.name, exc_info=error)
