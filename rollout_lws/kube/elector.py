"""Leader election: the I/O around ``lease``, which has the rules."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager, suppress
from datetime import UTC, datetime
from typing import Any

import msgspec

from rollout_lws.errors import ApiError, Unreachable
from rollout_lws.kube import lease
from rollout_lws.kube.client import Client
from rollout_lws.kube.fence import Fence, Seconds, elapsed
from rollout_lws.kube.informer import Informer
from rollout_lws.kube.lease import Ask, Lease, Look, Standing, Stop, Terms, Wait
from rollout_lws.objects.permissions import allow, is_denied, named
from rollout_lws.objects.resources import LEASES
from rollout_lws.objects.writes import Create, Patch

log = logging.getLogger(__name__)

#: Attempts to release leadership: the first may conflict with a renewal that has just been written.
_FAREWELLS = 2


def _now() -> datetime:
    return datetime.now(UTC)


class Elector:
    """The candidate ``me`` for the Lease ``namespace/name``. ``fence`` is open exactly while it leads; both must use
    the same clock. ``client`` must not be fenced, and its requests must be short.

    ``trouble`` says why the Lease cannot be read or written and what to do, "" while all is well.
    """

    def __init__(
        self,
        client: Client,
        namespace: str,
        name: str,
        me: str,
        terms: Terms,
        fence: Fence,
        *,
        clock: Seconds = elapsed,
        date: Callable[[], datetime] = _now,
        chance: random.Random | None = None,
    ) -> None:
        self.trouble = ""
        #: Whether the trouble is a missing permission.
        self._denied = False
        self._client = client
        self._place = namespace, name
        self._terms = terms
        self._fence = fence
        self._clock = clock
        self._date = date
        self._chance = chance or random.Random()
        self._standing = Standing(me, terms)
        #: How often the Lease was found deleted; an answer from before the last deletion is void.
        self._deletions = 0
        #: Whether a claim is in progress, or was when it was cut off.
        self._claiming = False
        self._over = False
        self._stopping_since: float | None = None
        self._news = asyncio.Event()
        self._informer: Informer[Lease] = Informer(
            client, LEASES, lease.read, namespace=namespace, field_selector=f"metadata.name={name}"
        )
        self._informer.on_change(self._changed)

    @property
    def leads(self) -> bool:
        """Whether this candidate leads now; the fence also stops its writes."""
        until = self._standing.leads_until
        return until is not None and self._clock() < until

    @property
    def missing(self) -> str:
        """Why the leader is not known, a line; "" once it is."""
        informer = self._informer
        return "" if informer.is_synced else f"{LEASES}: {informer.trouble or 'the first list is on its way'}\n"

    @property
    def untold(self) -> str:
        """A missing permission that keeps this candidate from seeing the leader or from leading, a line; "" if none."""
        if not self._informer.is_synced:
            return ""
        if self._informer.denied:
            return f"{LEASES}: {self._informer.trouble}\n"
        return f"{LEASES}: {self.trouble}\n" if self._denied else ""

    @property
    def informer(self) -> Informer[Lease]:
        """The watch of the Lease."""
        return self._informer

    @property
    def overdue(self) -> float:
        """Seconds for which work has gone on after the end of leadership; 0 when all is well."""
        return 0.0 if self._stopping_since is None else self._clock() - self._stopping_since

    async def run(self, work: Callable[[], AbstractAsyncContextManager[None]]) -> None:
        """Until cancelled: enter ``work()`` whenever this candidate leads, and leave it as soon as it does not.
        Leadership is released only after the work has ended.
        """
        async with asyncio.TaskGroup() as tasks:
            watch = tasks.create_task(self._informer.run(), name=f"watch {LEASES}")
            try:
                await self._informer.synced()
                while True:
                    await self._until(leads=True)
                    log.info("leading", extra=self._fields())
                    async with work():
                        await self._until(leads=False)
                        log.warning("lost leader election", extra=self._fields())
                        self._stopping_since = self._clock()
                    self._stopping_since = None
            finally:
                self._over = True
                self._stand(lease.stopped(self._standing))
                await self._hand_back()
                watch.cancel()

    async def _until(self, *, leads: bool) -> None:
        while self.leads is not leads:
            self._news.clear()
            match lease.act(self._standing, self._clock(), self._date(), *self._place):
                case Stop():
                    self._stand(lease.stopped(self._standing))
                case Wait(until):
                    with suppress(TimeoutError):
                        async with asyncio.timeout(max(0.0, until - self._clock())):
                            await self._news.wait()
                case Ask(write):
                    await self._ask(write)
                case Look():
                    self._stand(lease.looking(self._standing, self._clock()))
                    await self._bounded(self._terms.retry, self._look())

    async def _ask(self, write: Create | Patch) -> None:
        at, until = self._clock(), self._standing.leads_until
        retry = self._terms.retry
        # Jitter, so that two candidates refused together do not retry together.
        self._stand(lease.asked(self._standing, at, retry * self._chance.uniform(0.9, 1.1)))
        await self._bounded(retry if until is None else min(retry, until - at), self._claim(write, at))

    async def _bounded(self, seconds: float, asking: Coroutine[Any, Any, None]) -> None:
        """Any failure, even a proxy's page instead of an answer, is reported and retried."""
        try:
            async with asyncio.timeout(seconds):
                await asking
        except TimeoutError:
            self._failed(f"{LEASES}: no answer in time")
        except (ApiError, Unreachable) as error:
            self._denied = any(is_denied(error, verb) for verb in ("get", "create", "patch"))
            self._failed(f"{error}{_advice(error, self._place[0])}")
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            self._failed(f"{LEASES}: the answer is no Lease: {error}")
        else:
            self.trouble, self._denied = "", False

    async def _claim(self, write: Create | Patch, at: float) -> None:
        deletions, self._claiming = self._deletions, True
        try:
            answer = await self._client.send(write)
        except ApiError as error:
            self._claiming = False
            # A 404 to a create means that the namespace does not exist.
            if error.code != 409 and (error.code != 404 or isinstance(write, Create)):
                raise
            self._stand(lease.refused(self._standing, await self._read(), self._clock()))
            return
        given = lease.read(answer)
        if (given.holder, given.spec.renew_time) != (self._standing.me, write.body["spec"]["renewTime"]):
            raise Unreachable(f"{LEASES}: the answer is not the Lease that was written")
        self._claiming = False
        self._informer.absorb(answer)
        # A change that arrived before the answer is newer.
        newest = self._informer.get(*self._place) or given
        if deletions != self._deletions:
            return
        if newest.holder == self._standing.me:
            self._stand(lease.granted(self._standing, newest, at))
        else:
            self._stand(lease.saw(self._standing, newest, self._clock()))

    async def _look(self) -> None:
        self._stand(lease.saw(self._standing, await self._read(), self._clock()))

    async def _read(self) -> Lease | None:
        try:
            return lease.read(await self._client.get(LEASES, *self._place))
        except ApiError as error:
            if error.code != 404:
                raise
            return None

    async def _hand_back(self) -> None:
        """Release the Lease, so that the others need not wait for its expiry. Best effort: a failure is only logged."""
        try:
            async with asyncio.timeout(self._terms.retry):
                if self._claiming:
                    # The cut-off claim may have succeeded all the same.
                    await self._look()
                for _ in range(_FAREWELLS):
                    write = lease.handed_back(self._standing, self._date())
                    if write is None:
                        return
                    try:
                        await self._client.send(write)
                    except ApiError as error:
                        if error.code != 409:
                            raise
                        await self._look()
                    else:
                        log.info("leadership handed back", extra=self._fields())
                        return
        except (TimeoutError, ApiError, Unreachable, msgspec.DecodeError, UnicodeDecodeError) as error:
            log.info("leadership not handed back", extra={"fields": {"error": str(error) or "no answer in time"}})

    def _changed(self, _: Lease | None, after: Lease | None) -> None:
        self._deletions += after is None
        self._stand(lease.saw(self._standing, after, self._clock()))
        self._news.set()

    def _stand(self, standing: Standing) -> None:
        self._standing = standing
        if self._over or standing.leads_until is None:
            self._fence.close()
        else:
            self._fence.open_until(standing.leads_until)

    def _fields(self) -> dict[str, Any]:
        holder = self._standing.lease.holder if self._standing.lease is not None else ""
        return {"fields": {"lease": "/".join(self._place), "holder": holder}}

    def _failed(self, trouble: str) -> None:
        if trouble != self.trouble:
            self.trouble = trouble
            log.warning("lease not written, trying again", extra={"fields": {"error": trouble}})


def _advice(error: Exception, namespace: str) -> str:
    if isinstance(error, ApiError) and error.code in (401, 403) and not error.is_early:
        return f": {allow('get, list, watch, create and patch', named(LEASES, namespace))}"
    return ""
