"""Runs behaviours against the in-memory API server on the current event loop.

Changes enqueue keys. The runner decides one key at a time, first in, first out, and carries out its writes at once. It
has no threads, polling or randomness: the same writes at the same times give the same history.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from typing import TypeAlias

from rollout_lws.errors import ApiError
from rollout_lws.objects.json_patch import is_stale, operations
from rollout_lws.objects.resources import CORE_EVENTS
from rollout_lws.objects.writes import Create, Delete, Patch, Replace, Write
from rollout_lws.sandbox.apiserver import ApiServer
from rollout_lws.sandbox.behaviours.base import Behaviour, Change, Complaining, Key
from rollout_lws.sandbox.patching.patches import JSON_PATCH
from rollout_lws.sandbox.store import Event
from rollout_lws.sandbox.wire import api_errors

_log = logging.getLogger(__name__)

_Item: TypeAlias = tuple[int, Key]

#: Back-off in seconds after the second consecutive refusal of a key, and its maximum.
_FIRST_BACK_OFF, _LONGEST_BACK_OFF = 0.005, 10.0


class Runner:
    """Connects ``behaviours`` to ``server``; start it inside a running event loop.

    ``errors`` holds unexpected exceptions of behaviours; ``stop`` raises them.
    """

    def __init__(self, server: ApiServer, behaviours: Sequence[Behaviour]) -> None:
        self.server = server
        self.view = server.store.index
        self.errors: list[Exception] = []
        self._behaviours = behaviours
        self._queue: deque[_Item] = deque()
        self._queued: set[_Item] = set()
        self._timers: dict[_Item, tuple[float, asyncio.TimerHandle]] = {}
        self._reached: dict[_Item, float] = {}
        self._refusals: dict[_Item, int] = {}
        self._turn: asyncio.Handle | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._unsubscribe: Callable[[], None] | None = None

    def start(self) -> None:
        """Read all stored objects and subscribe to later changes."""
        self._loop = asyncio.get_running_loop()
        for storage in {served.storage: None for served in self.server.served}:
            for obj in self.server.store.list(storage):
                self._take(Event("ADDED", storage, obj, None, 0))
        self._unsubscribe = self.server.store.subscribe(self._take)

    def stop(self) -> None:
        """End all activity; raises the unexpected errors since the start as one ExceptionGroup."""
        if self._unsubscribe is not None:
            self._unsubscribe()
            self._unsubscribe = None
        for _, timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        self._queue.clear()
        self._queued.clear()
        if self._turn is not None:
            self._turn.cancel()
            self._turn = None
        if self.errors:
            raise ExceptionGroup("sandbox behaviours failed", self.errors)

    def _take(self, event: Event) -> None:
        if event.resource == CORE_EVENTS:
            return
        change = Change(event.resource, event.object, event.previous, event.type == "DELETED")
        for number, behaviour in enumerate(self._behaviours):
            try:
                for key in behaviour.wakes(change, self.view):
                    self._enqueue((number, key))
            except Exception as error:
                self._failed(behaviour, error)

    def _enqueue(self, item: _Item) -> None:
        if item in self._queued:
            return
        self._queued.add(item)
        self._queue.append(item)
        if self._turn is None and self._loop is not None:
            self._turn = self._loop.call_soon(self._take_turn)

    def _take_turn(self) -> None:
        item = self._queue.popleft()
        self._queued.discard(item)
        self._decide(item)
        self._turn = self._loop.call_soon(self._take_turn) if self._queue and self._loop is not None else None

    def _decide(self, item: _Item) -> None:
        number, key = item
        behaviour = self._behaviours[number]
        now = max(self.server.clock(), self._reached.pop(item, 0.0))
        write: Write | None = None
        try:
            outcome = behaviour.decide(key, self.view, now)
            self._arm(item, outcome.wake_at)
            for write in outcome.writes:
                carry_out(self.server, write)
        except ApiError as error:
            self._retry(item, write, error)
        except Exception as error:
            self._failed(behaviour, error)
        else:
            self._refusals.pop(item, None)

    def _retry(self, item: _Item, write: Write | None, error: ApiError) -> None:
        """Retry at once after a first 404 or 409 (the view was stale), otherwise with exponential back-off."""
        refusals = self._refusals[item] = self._refusals.get(item, 0) + 1
        if error.code in (404, 409) and refusals == 1:
            self._enqueue(item)
            return
        if error.code not in (404, 409):
            self._complain(item, write, error)
        delay = min(_FIRST_BACK_OFF * 2 ** min(refusals, 20), _LONGEST_BACK_OFF)
        self._arm(item, self.server.clock() + delay)

    def _complain(self, item: _Item, write: Write | None, error: ApiError) -> None:
        behaviour = self._behaviours[item[0]]
        _log.warning("write refused behaviour=%s key=%s: %s", behaviour.name, item[1], error)
        if write is not None and isinstance(behaviour, Complaining):
            record = behaviour.complaint(item[1], self.view, write, error, self.server.clock())
            if record is not None:
                carry_out(self.server, record)

    def _failed(self, behaviour: Behaviour, error: Exception) -> None:
        self.errors.append(error)
        _log.error("behaviour failed behaviour=%s", behaviour.name, exc_info=error)

    def _arm(self, item: _Item, wake_at: float | None) -> None:
        known = self._timers.get(item)
        if known is not None:
            if known[0] == wake_at:
                return
            known[1].cancel()
            del self._timers[item]
        if wake_at is not None and self._loop is not None:
            delay = max(0.0, wake_at - self.server.clock())
            self._timers[item] = wake_at, self._loop.call_later(delay, self._fire, item, wake_at)

    def _fire(self, item: _Item, wake_at: float) -> None:
        # The loop and the clock round differently: without ``_reached`` a timer could fire too early for ever.
        del self._timers[item]
        self._reached[item] = wake_at
        self._enqueue(item)


def carry_out(server: ApiServer, write: Write, manager: str = "") -> None:
    """Carry out one write; ApiError when the server refuses it. Without a ``manager`` it records no managedFields."""
    if isinstance(write, Create):
        server.create(write.resource, write.body, field_manager=manager)
    elif isinstance(write, Patch) and write.generation is not None:
        _patch_of_generation(server, write, manager)
    elif isinstance(write, Patch):
        body = dict(write.body)
        if write.resource_version is not None:
            body["metadata"] = {**body.get("metadata", {}), "resourceVersion": write.resource_version}
        server.patch(
            write.resource, write.namespace, write.name, body, subresource=write.subresource, field_manager=manager
        )
    elif isinstance(write, Replace):
        server.replace(write.resource, write.body, subresource=write.subresource, field_manager=manager)
    elif isinstance(write, Delete):
        server.delete(
            write.resource,
            write.namespace,
            write.name,
            uid=write.uid,
            resource_version=write.resource_version,
            propagation=write.propagation,
            grace_seconds=write.grace_seconds,
        )
    else:
        raise TypeError(f"the sandbox cannot carry out {write!r}")


def _patch_of_generation(server: ApiServer, write: Patch, manager: str) -> None:
    try:
        server.patch(
            write.resource,
            write.namespace,
            write.name,
            operations(write),
            JSON_PATCH,
            subresource=write.subresource,
            field_manager=manager,
        )
    except ApiError as error:
        if error.code == 422 and is_stale(write, server.get(write.resource, write.namespace, write.name)):
            raise api_errors.modified(write.resource, write.name) from error
        raise
