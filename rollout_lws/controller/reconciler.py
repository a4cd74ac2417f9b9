"""Reconciles one key: observe, decide, apply, then requeue, retry or forget. No rule lives here."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from rollout_lws.api.resources import Keys, rollouts
from rollout_lws.clock import Clock
from rollout_lws.controller import apply
from rollout_lws.controller.events import Published
from rollout_lws.controller.write_failures import WriteFailures
from rollout_lws.errors import Unreadable
from rollout_lws.logs import fields
from rollout_lws.metrics import Metrics, transitions
from rollout_lws.objects.resources import Resource
from rollout_lws.objects.writes import Write
from rollout_lws.observe.observer import observe
from rollout_lws.observe.world import World
from rollout_lws.rollout.decision import Decision, ReleaseEvent, Wanted
from rollout_lws.rollout.observation import Observation

log = logging.getLogger(__name__)

#: Namespace and name of a Rollout.
Key: TypeAlias = tuple[str, str]
Decide: TypeAlias = Callable[[Observation], Decision]
#: Records what was published; it must not fail.
Record: TypeAlias = Callable[[Published], None]
#: Sets what a decision wants watched for a key, replacing what it wanted before.
Want: TypeAlias = Callable[[Key, Wanted], Awaitable[None]]


class Queue(Protocol):
    async def get(self) -> Key: ...
    def done(self, key: Key) -> None: ...
    def add(self, key: Key) -> None: ...
    def add_at(self, key: Key, when: float) -> None: ...
    def retry(self, key: Key, after: float | None = None) -> None: ...
    def forget(self, key: Key) -> None: ...


@dataclass(frozen=True, slots=True)
class Reconciler:
    """``world`` gives the cached state of a namespace; ``absorb`` puts the answers to our writes into the caches."""

    keys: Keys
    clock: Clock
    queue: Queue
    world: Callable[[str], World]
    sender: apply.Sender
    absorb: apply.Absorb
    decide: Decide
    record: Record
    want: Want
    metrics: Metrics
    failing: WriteFailures[Key] = field(default_factory=WriteFailures)
    #: Rollouts that could not be decoded on their last reconcile.
    unreadable: set[Key] = field(default_factory=set)

    def clear(self) -> None:
        """Forget the state of all keys: it belongs to workers that have ended."""
        self.failing.clear()
        self.unreadable.clear()

    async def work(self) -> None:
        """Reconcile one key after the other, until cancelled. A bug in a decision affects only its own key."""
        while True:
            key = await self.queue.get()
            started = asyncio.get_running_loop().time()
            try:
                await self.reconcile(key)
            except Unreadable as error:
                # Only a change of the object can help, and that wakes the key.
                self.queue.forget(key)
                self.unreadable.add(key)
                self.metrics.errors.labels("unreadable").inc()
                log.error("Rollout unreadable", extra=fields(namespace=key[0], rollout=key[1], error=error))
            except Exception:
                self.metrics.errors.labels("bug").inc()
                log.exception("reconcile failed", extra=fields(namespace=key[0], rollout=key[1]))
                self.queue.retry(key)
            finally:
                self.metrics.duration.observe(asyncio.get_running_loop().time() - started)
                self.queue.done(key)
            # A pass without writes never awaits, so thousands of keys would block the loop: no watch read, no probe
            # answered, no Lease renewed.
            await asyncio.sleep(0)

    async def reconcile(self, key: Key) -> None:
        """One pass; afterwards the key waits for a change, for its wake-up time, or for its back-off."""
        namespace, name = key
        now = self.clock.now()
        world = self.world(namespace)
        stored = world.rollout(name)
        seen = observe(world, name, now, self.failing.of(key, now))
        self.unreadable.discard(key)
        if stored is None or seen is None:
            await self._let_go(key)
            return
        decision, own = self.decide(seen), rollouts(self.keys.group)

        body = stored.body

        def absorb(resource: Resource, answer: bytes) -> None:
            nonlocal body
            self.absorb(resource, answer)
            if resource == own:
                # The transition is recorded now, and no later pass will see it again.
                transitions.tell(self.metrics, body, answer, self.clock.now())
                body = answer

        def publish(event: ReleaseEvent) -> None:
            self.record(Published(event, seen, decision.verdict, body))
            self.metrics.told(event)
            log.info(event.note, extra=fields(namespace=namespace, rollout=name, reason=event.reason))

        failure = await apply.carry_out(decision, self.sender, absorb, self._count, publish)
        if failure is not None:
            self._failed(key, failure)
            return
        if decision.aside:
            self.queue.add(key)
            return
        self.queue.forget(key)
        self.failing.forget(key)
        if decision.wake_at is not None:
            self.queue.add_at(key, self.clock.loop_time(decision.wake_at))
        await self.want(key, decision.wanted)
        self.metrics.reconciles.labels("ok").inc()

    def _count(self, write: Write) -> None:
        self.metrics.wrote(apply.verb(write), write.resource)

    async def _let_go(self, key: Key) -> None:
        self.queue.forget(key)
        self.failing.forget(key)
        self.unreadable.discard(key)
        await self.want(key, Wanted())

    def _failed(self, key: Key, failure: apply.Failure) -> None:
        """Stale reads are retried almost immediately (the first back-off is some milliseconds), the rest later."""
        self.metrics.reconciles.labels("failed").inc()
        self.metrics.errors.labels(failure.next.name.lower()).inc()
        write, result = failure.write, failure.next.name.lower()
        self.metrics.failed_writes.labels(apply.verb(write), str(write.resource), result).inc()
        self.failing.note(key, failure, self.clock.now())
        told = fields(
            namespace=key[0],
            rollout=key[1],
            write=apply.target(failure.write),
            reason=failure.write.reason,
            error=failure.error,
        )
        if failure.next is apply.Next.REFUSED:
            told["fields"]["advice"] = apply.advice(failure)
            log.error("write refused", extra=told)
        elif failure.next is apply.Next.BACK_OFF:
            log.warning("write not carried out, trying again", extra=told)
        else:
            log.debug("picture was stale", extra=told)
        self.queue.retry(key, failure.retry_after)
