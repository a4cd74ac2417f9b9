"""One client's requests, connections and streams over time, in intervals without changes."""

from __future__ import annotations

from rollout_lws.sandbox.meter.client import Client
from rollout_lws.sandbox.meter.connections import Connections
from rollout_lws.sandbox.meter.data_plane import DataPlane
from rollout_lws.sandbox.meter.fleet import Cause, Fleet, Pod
from rollout_lws.sandbox.meter.records import Book
from rollout_lws.sandbox.meter.split import Target, reads, split


class Flow:
    """``drain`` is the duration of streams, ``lag`` the maximum delay of the data plane, both in seconds."""

    def __init__(self, client: Client, fleet: Fleet, seed: int, drain: float, lag: float) -> None:
        self.client, self.book = client, Book(client.name)
        self.plane = DataPlane(f"{seed}/{client.name}", lag)
        self.kinds = reads(client)
        self.connections = Connections(0.0, 0.0, {})
        self._fleet, self._drain, self._lag = fleet, drain, lag
        self._now = 0.0

    def begin(self, now: float) -> None:
        """Open the connections with the data plane's current state."""
        self._now = now
        self.connections = Connections(self.client.connection_seconds, now, split(self.plane.seen, self.client))

    def pass_time(self, until: float) -> None:
        """Account for the time up to ``until``."""
        while True:
            planned = (until, self.plane.due, self.connections.due)
            end = max(self._now, min(moment for moment in planned if moment is not None))
            self._account(self._now, end)
            self._now = end
            self.connections.pass_time(end)
            if self.plane.see(end):
                self._choose()
            if end >= until:
                return

    def cut(self, pod: Pod, cause: Cause, now: float) -> None:
        """Record the streams on a pod as cut."""
        share = self.book.sent_to(Target(pod.uid), now - self._drain, now) if self._drain else 0.0
        if share:
            self.book.cut(now, share, pod, cause)

    def disconnect(self, uid: str, now: float) -> None:
        """Handle a deleted pod: the next request of each connection to it fails and reopens the connection."""
        kept = self.connections.spread.get(Target(uid))
        if kept and self.client.connection_seconds:
            unfit = self._fleet.unfit(uid)
            cause = None if unfit is None else unfit.cause
            reason = "a kept connection led to a pod that is gone"
            self.book.failed(now, now, float(kept), reason, self._fleet.pod(uid), cause)
            self._choose()

    def _choose(self) -> None:
        self.connections.choose(split(self.plane.seen, self.client), self._hopeless)

    def _hopeless(self, target: Target) -> bool:
        return not target.uid or self._fleet.gone(target.uid)

    def _account(self, start: float, end: float) -> None:
        if end <= start:
            return
        spread = self.connections.spread
        self.book.sent(start, end, spread)
        for target, share in spread.items():
            if not target.uid:
                self.book.failed(start, end, float(share), target.error, None, None)
                continue
            unfit = self._fleet.unfit(target.uid)
            if unfit is None:
                continue
            # Requests to a deleted pod fail at once; the data plane can learn of an unready one only after the lag.
            since = unfit.since if self._fleet.gone(target.uid) else unfit.since + self._lag
            if since < end:
                pod = self._fleet.pod(target.uid)
                self.book.failed(max(start, since), end, float(share), unfit.reason, pod, unfit.cause)
