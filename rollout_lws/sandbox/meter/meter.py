"""The meter: follows the store and records for each client where its requests went, which failed, and which were cut.

It has no timers: at each change and each query it accounts for the time since the last one, in intervals without
changes for the client.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from typing import Literal, TypeAlias

from rollout_lws.objects.released import RELEASED
from rollout_lws.objects.resources import Resource
from rollout_lws.sandbox.apiserver import ApiServer
from rollout_lws.sandbox.index import key_of
from rollout_lws.sandbox.meter.client import Client
from rollout_lws.sandbox.meter.fleet import Fleet
from rollout_lws.sandbox.meter.flow import Flow
from rollout_lws.sandbox.meter.records import NOWHERE, Cut, Failure
from rollout_lws.sandbox.meter.seen import KINDS, Key, Object, views
from rollout_lws.sandbox.meter.split import Split, Target
from rollout_lws.sandbox.store import Event

By: TypeAlias = Literal["lws", "pod", "revision"]


class TrafficMeter:
    """Measures the traffic of ``clients`` in the cluster of ``server``, from ``start`` to ``stop``.

    Each client's data plane sees each change up to ``lag`` seconds late, by a random delay that ``seed`` fixes. Streams
    last ``drain`` seconds. A group that exists but is not ready fails requests only after ``lag`` seconds of that.
    ``ours`` returns whether the controller under test deleted the pod with this uid.
    """

    def __init__(
        self,
        server: ApiServer,
        clients: Iterable[Client],
        *,
        seed: int = 1,
        drain: float = 30.0,
        lag: float = 2.0,
        ours: Callable[[str], bool] = lambda _: False,
    ) -> None:
        self._server = server
        self._fleet = Fleet(server.store, ours)
        self._flows = {client.name: Flow(client, self._fleet, seed, drain, lag) for client in clients}
        self._unsubscribe: Callable[[], None] | None = None

    def start(self) -> None:
        """Start with the stored objects, known to all data planes, and follow later changes."""
        now = self._server.clock()
        for resource in (*RELEASED, *KINDS):
            for obj in self._server.store.list(resource):
                self._fleet.take(Event("ADDED", resource, obj, None, 0), now)
                for key, known in views(resource, obj) if resource in KINDS else ():
                    for flow in self._reading(resource):
                        flow.plane.know(key, known)
        for flow in self._flows.values():
            flow.begin(now)
        self._unsubscribe = self._server.store.subscribe(self._take)

    def stop(self) -> None:
        """Account for the time until now and stop following; results stay available."""
        if self._unsubscribe is not None:
            self._pass_time()
            self._unsubscribe()
            self._unsubscribe = None

    def now(self, client: str, by: By = "lws") -> dict[str, float]:
        """The share of the client's requests that each LWS (pod, revision) receives now; the shares add up to 1.

        NOWHERE is the share without a pod. Revisions are LWS's template-revision-hashes.
        """
        self._pass_time()
        return self._summed([(1.0, self._flows[client].spread)], by)

    def shares(self, client: str, since: float, until: float | None = None, by: By = "lws") -> dict[str, float]:
        """Like ``now``, but the mean over a period in epoch seconds; ``until`` defaults to now."""
        self._pass_time()
        end = self._server.clock() if until is None else until
        return self._summed(self._flows[client].book.between(since, end), by)

    def peaks(self, client: str, since: float, until: float | None = None, by: By = "lws") -> dict[str, float]:
        """Like ``shares``, but the largest that each had at any moment of the period."""
        self._pass_time()
        end = self._server.clock() if until is None else until
        found: dict[str, float] = {}
        for stretch in self._flows[client].book.between(since, end):
            for name, share in self._summed([stretch], by).items():
                found[name] = max(found.get(name, 0.0), share)
        return found

    def requests(self, uid: str) -> float:
        """How many requests a pod has been given since the start, by all clients."""
        self._pass_time()
        now = self._server.clock()
        return sum(
            flow.client.per_second * flow.book.seconds_of(Target(uid), 0.0, now) for flow in self._flows.values()
        )

    @property
    def failures(self) -> list[Failure]:
        """Failures so far, by client and start."""
        self._pass_time()
        return [failure for flow in self._flows.values() for failure in flow.book.failures]

    @property
    def cuts(self) -> list[Cut]:
        """Cut streams so far, by client and time."""
        self._pass_time()
        return [cut for flow in self._flows.values() for cut in flow.book.cuts]

    def _summed(self, stretches: Iterable[tuple[float, Split]], by: By) -> dict[str, float]:
        """Exact until the final rounding, so that a share of 10 % equals 0.1."""
        sums: dict[str, Fraction] = {}
        total = Fraction(0)
        for seconds, spread in stretches:
            total += Fraction(seconds)
            for target, share in spread.items():
                pod = self._fleet.pod(target.uid)
                name = NOWHERE if pod is None else {"lws": pod.lws, "pod": pod.name, "revision": pod.revision}[by]
                sums[name] = sums.get(name, Fraction(0)) + share * Fraction(seconds)
        return {name: float(sums[name] / total) for name in sorted(sums)}

    def _pass_time(self) -> None:
        if self._unsubscribe is not None:
            for flow in self._flows.values():
                flow.pass_time(self._server.clock())

    def _take(self, event: Event) -> None:
        if event.resource not in KINDS and event.resource not in RELEASED:
            return
        self._pass_time()
        now = self._server.clock()
        ended = self._fleet.take(event, now)
        for flow in self._flows.values():
            for pod, cause in ended:
                flow.cut(pod, cause, now)
        told: dict[Key, Object | None] = {}
        if event.type == "DELETED":
            told[key_of(event.resource, event.object)] = None
        elif event.resource in KINDS:
            told |= views(event.resource, event.object)
        for flow in self._reading(event.resource):
            for key, seen in told.items():
                flow.plane.learn(key, seen, now)

    def _reading(self, resource: Resource) -> Iterator[Flow]:
        return (flow for flow in self._flows.values() if resource in flow.kinds)
