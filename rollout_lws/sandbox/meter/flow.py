"""One client's requests and streams over time, in intervals without changes."""

from __future__ import annotations

from rollout_lws.sandbox.meter.client import Client
from rollout_lws.sandbox.meter.data_plane import DataPlane
from rollout_lws.sandbox.meter.fleet import Cause, Fleet, Pod
from rollout_lws.sandbox.meter.records import Book
from rollout_lws.sandbox.meter.split import Split, Target, reads, split


class Flow:
    """``drain`` is the duration of streams, ``lag`` the maximum delay of the data plane, both in seconds."""

    def __init__(self, client: Client, fleet: Fleet, seed: int, drain: float, lag: float) -> None:
        self.client, self.book = client, Book(client.name)
        self.plane = DataPlane(f"{seed}/{client.name}", lag)
        self.kinds = reads(client)
        self.spread: Split = {}
        self._fleet, self._drain, self._lag = fleet, drain, lag
        self._now = 0.0

    def begin(self, now: float) -> None:
        """Send requests by the data plane's current state."""
        self._now = now
        self.spread = split(self.plane.seen, self.client)

    def pass_time(self, until: float) -> None:
        """Account for the time up to ``until``."""
        while True:
            end = max(self._now, until if self.plane.due is None else min(until, self.plane.due))
            self._account(self._now, end)
            self._now = end
            if self.plane.see(end):
                chosen = split(self.plane.seen, self.client)
                self.spread = self.spread if chosen == self.spread else chosen
            if end >= until:
                return

    def cut(self, pod: Pod, cause: Cause, now: float) -> None:
        """Record the streams on a pod as cut."""
        share = self.book.sent_to(Target(pod.uid), now - self._drain, now) if self._drain else 0.0
        if share:
            self.book.cut(now, share, pod, cause)

    def _account(self, start: float, end: float) -> None:
        if end <= start:
            return
        self.book.sent(start, end, self.spread)
        for target, share in self.spread.items():
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
