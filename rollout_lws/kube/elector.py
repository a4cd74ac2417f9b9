"""Leads while its Lease says so: the shell around ``lease``, which has the rules."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, suppress
from datetime import UTC, datetime

from rollout_lws.errors import ApiError, Unreachable
from rollout_lws.kube import lease
from rollout_lws.kube.client import Client
from rollout_lws.kube.fence import Fence, Seconds, elapsed
from rollout_lws.kube.informer import Informer
from rollout_lws.kube.lease import Ask, Lease, Standing, Stop, Terms, Wait
from rollout_lws.objects.resources import LEASES
from rollout_lws.objects.writes import Create, Patch

log = logging.getLogger(__name__)

#: So many times is leadership handed back: the first try may be of a version that a renewal has just replaced.
_FAREWELLS = 2


def _now() -> datetime:
    return datetime.now(UTC)


class Elector:
    """The candidate ``me`` for the Lease ``namespace/name``. ``fence`` is opened while it leads, and no longer; its
    clock and this one's are the same. ``client`` must not be fenced, and its requests are short.

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
        self._client = client
        self._place = namespace, name
        self._terms = terms
        self._fence = fence
        self._clock = clock
        self._date = date
        self._chance = chance or random.Random()
        self._standing = Standing(me, terms)
        self._news = asyncio.Event()
        self._informer: Informer[Lease] = Informer(
            client, LEASES, lease.read, namespace=namespace, field_selector=f"metadata.name={name}"
        )
        self._informer.on_change(self._changed)

    @property
    def leads(self) -> bool:
        """Whether the work is this candidate's; sends are stopped by the fence, which looks at the clock as well."""
        return self._standing.leads_until is not None

    @property
    def missing(self) -> str:
        """Why it is not known who leads, a line; "" when it is."""
        if self._informer.is_synced:
            return ""
        return f"{LEASES}: {self._informer.trouble or 'the first list is on its way'}\n"

    @property
    def overdue(self) -> float:
        """Seconds since when leadership has been over and its work not stopped; 0 when all is well."""
        until = self._standing.leads_until
        return 0.0 if until is None else max(0.0, self._clock() - until)

    async def run(self, work: Callable[[], AbstractAsyncContextManager[None]]) -> None:
        """Until cancelled: enter ``work()`` whenever it leads, and leave it as soon as it does not. Leadership is
        handed back only after the work has ended.
        """
        async with asyncio.TaskGroup() as tasks:
            watch = tasks.create_task(self._informer.run(), name=f"watch {LEASES}")
            try:
                await self._informer.synced()
                while True:
                    await self._until(leads=True)
                    self._tell("leading")
                    async with work():
                        await self._until(leads=False)
                        self._tell("leads no longer")
            finally:
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

    async def _ask(self, write: Create | Patch) -> None:
        at, until = self._clock(), self._standing.leads_until
        retry = self._terms.retry
        # Two that have been refused together ask apart.
        self._stand(lease.asked(self._standing, at, retry * self._chance.uniform(0.9, 1.1)))
        try:
            async with asyncio.timeout(retry if until is None else min(retry, until - at)):
                await self._claim(write, at)
        except TimeoutError:
            self._failed(f"{LEASES}: no answer in {retry:g}s")
        except (ApiError, Unreachable) as error:
            self._failed(f"{error}{_advice(error, self._place[0])}")
        else:
            self.trouble = ""

    async def _claim(self, write: Create | Patch, at: float) -> None:
        try:
            answer = await self._client.send(write)
        except ApiError as error:
            # A 404 to a create is a namespace that is not there.
            if error.code != 409 and (error.code != 404 or isinstance(write, Create)):
                raise
            self._stand(lease.refused(self._standing, await self._look(), self._clock()))
            return
        self._informer.absorb(answer)
        # A change that came in before the answer is the newer one.
        newest = self._informer.get(*self._place) or lease.read(answer)
        if newest.holder == self._standing.me:
            self._stand(lease.granted(self._standing, newest, at))
        else:
            self._stand(lease.saw(self._standing, newest, self._clock()))

    async def _look(self) -> Lease | None:
        try:
            return lease.read(await self._client.get(LEASES, *self._place))
        except ApiError as error:
            if error.code != 404:
                raise
            return None

    async def _hand_back(self) -> None:
        """The others need not wait until the lease has run out. It is a courtesy: who cannot, does not."""
        try:
            async with asyncio.timeout(self._terms.retry):
                for _ in range(_FAREWELLS):
                    write = lease.handed_back(self._standing, self._clock(), self._date())
                    if write is None:
                        return
                    self._fence.close()
                    try:
                        await self._client.send(write)
                    except ApiError as error:
                        if error.code != 409:
                            raise
                        self._standing = lease.saw(self._standing, await self._look(), self._clock())
                    else:
                        self._stand(lease.stopped(self._standing))
                        self._tell("leadership handed back")
                        return
        except (TimeoutError, ApiError, Unreachable) as error:
            log.info("leadership not handed back", extra={"fields": {"error": str(error) or "no answer in time"}})

    def _changed(self, _: Lease | None, after: Lease | None) -> None:
        self._stand(lease.saw(self._standing, after, self._clock()))
        self._news.set()

    def _stand(self, standing: Standing) -> None:
        self._standing = standing
        if standing.leads_until is None:
            self._fence.close()
        else:
            self._fence.until = standing.leads_until

    def _tell(self, what: str) -> None:
        namespace, name = self._place
        told = {"lease": f"{namespace}/{name}", "holder": self._standing.lease.holder if self._standing.lease else ""}
        log.info(what, extra={"fields": told})

    def _failed(self, trouble: str) -> None:
        if trouble != self.trouble:
            self.trouble = trouble
            log.warning("lease not written, trying again", extra={"fields": {"error": trouble}})


def _advice(error: Exception, namespace: str) -> str:
    if isinstance(error, ApiError) and error.code in (401, 403):
        return f": allow the controller's account to get, list, watch, create and patch {LEASES} in {namespace}"
    return ""
