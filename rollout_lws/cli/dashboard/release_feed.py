"""One release with its Events, kept current as long as a page shows it, as one text for all pages that do."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

from rollout_lws.cli.access.transport import Transport
from rollout_lws.cli.dashboard.background import in_thread
from rollout_lws.cli.dashboard.bell import Bell
from rollout_lws.cli.dashboard.release_events import EventLog, event_view
from rollout_lws.cli.dashboard.release_view import view
from rollout_lws.cli.dashboard.sse import event
from rollout_lws.cli.events.event_log import Happening, Scope
from rollout_lws.cli.events.scope import news, scope_of
from rollout_lws.cli.get.caller import Caller
from rollout_lws.cli.get.live import Live
from rollout_lws.errors import UsageError
from rollout_lws.objects.resources import Resource

Object = dict[str, Any]
#: Seconds to collect changes before the release is looked at, since a group that starts up causes many.
_GATHER = 0.05
#: Of the Events that there are when a page opens, so many of the newest.
_MOST = 500


class ReleaseFeed:
    """The release of a Rollout, whether there is one of that name now or not."""

    #: It collects changes itself.
    gather = 0.0

    def __init__(self, transport: Transport, rollouts: Resource, name: str, caller: Caller) -> None:
        self.bell = Bell()
        self.shown = b""
        self.log: EventLog | None = None
        self._transport, self._caller = transport, caller
        self._changed = Bell()
        self._live = Live(transport, rollouts, name, self._changed, persists=True)
        self._error = ""
        self._looking, self._closed = threading.Lock(), False
        self._task = asyncio.create_task(self._keep())

    async def close(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        await in_thread(self._end)

    def _end(self) -> None:
        # A look that is under way begins no further watch after this.
        with self._looking:
            self._closed = True
            self._live.__exit__()
            if self.log is not None:
                self.log.close()
            self._transport.close()

    def reader(self) -> ReleaseReader:
        return ReleaseReader(self)

    @property
    def trouble(self) -> Object:
        """Why what is shown may be ``old``, or what of it is missing."""
        old, missing = [self._live.trouble, self._error], [*self._live.refusals]
        if self.log is not None:
            (missing if self.log.is_refused else old).append(self.log.trouble)
        told = dict.fromkeys(filter(None, [*old, *missing]))
        return {"message": "; ".join(told), "old": any(old)}

    async def _keep(self) -> None:
        """Looks again after each change."""
        while True:
            rung = self._changed.next
            await in_thread(self._look)
            self.bell.set()
            await rung.wait()
            await asyncio.sleep(_GATHER)

    def _look(self) -> None:
        """In a thread, since looking may ask the API server for the version before, and ends watches."""
        with self._looking:
            if not self._closed:
                self._take()

    def _take(self) -> None:
        try:
            shown = self._live.look()
        except UsageError as error:
            self._show(event("gone", {"message": str(error)}))
            return
        except Exception as error:
            self._error = f"the release cannot be read: {error!r}"
            return
        if shown is None:
            return
        try:
            found = event("release", view(shown, self._transport.clock.now(), self._caller))
            self._follow(scope_of(shown.rollout))
        except Exception as error:
            # A release that this program does not understand must not end the page silently.
            self._error = f"the release cannot be shown: {error!r}"
            return
        self._show(found)

    def _show(self, found: bytes) -> None:
        """Pages are told of what has changed alone."""
        self._error = ""
        if found != self.shown:
            self.shown = found

    def _follow(self, scope: Scope) -> None:
        if self.log is None or self.log.scope != scope:
            before, self.log = self.log, EventLog(self._transport, scope, self._changed)
            if before is not None:
                before.close()


class ReleaseReader:
    """One page's view of a release."""

    def __init__(self, feed: ReleaseFeed) -> None:
        self._feed = feed
        self._shown = b""
        self._trouble: Object = {"message": "", "old": False}
        self._log: EventLog | None = None
        self._known: dict[str, Happening] = {}

    def news(self) -> Iterator[bytes]:
        trouble, shown = self._feed.trouble, self._feed.shown
        if trouble != self._trouble:
            self._trouble = trouble
            yield event("trouble", trouble)
        if shown is not self._shown:
            self._shown = shown
            yield shown
        yield from self._events()

    def _events(self) -> Iterator[bytes]:
        log = self._feed.log
        found = log.happenings() if log is not None else None
        if found is None:
            return
        first = log is not self._log
        if first:
            self._log, self._known = log, {}
        new = news(found, self._known)
        # Those that the cluster has forgotten would be more and more.
        self._known = {each.uid: each for each in found}
        if first or new:
            shown = new[-_MOST:] if first else new
            yield event("events", {"all": first, "events": [event_view(each) for each in shown]})
