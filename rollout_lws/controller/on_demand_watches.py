"""Watches on demand: watches objects that most Rollouts never need only while a key wants them.

Worker pods outnumber leaders, so they are watched only where a group is in trouble; EndpointSlices and routes matter
only during a release.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeAlias

import msgspec

from rollout_lws.kube.client import Client
from rollout_lws.kube.informer import Informer
from rollout_lws.kube.store import T
from rollout_lws.objects.jobs import JOB_NAME
from rollout_lws.objects.released import WITH_WORKERS
from rollout_lws.objects.resources import (
    CORE_EVENTS,
    CRON_JOBS,
    ENDPOINT_SLICES,
    JOBS,
    KUEUE_CHECKS,
    KUEUE_WORKLOADS,
    KUEUE_WORKLOADS_BEFORE,
    PODS,
    Resource,
)
from rollout_lws.objects.workloads import SERVICE_NAME, EndpointSlice, Pod
from rollout_lws.observe.cache_types import TRIMMED, StoredObject, stored_object
from rollout_lws.observe.explanations import DECODERS, FIELDS, LABELS
from rollout_lws.tasks import end

Key: TypeAlias = tuple[str, str]
#: Namespace, and the name of what the watch belongs to: an LWS, a Service, a Job, or "" for the namespace as a whole.
Place: TypeAlias = tuple[str, str]
#: Starts a task of this name.
Start: TypeAlias = Callable[[Coroutine[Any, Any, None], str], asyncio.Task[None]]


#: Kinds that only explain why groups are missing, each with the seconds that it has to be wanted before it is listed:
#: every rolling update misses pods for a moment. The controller works without those that it may not list.
EXPLAINING: Mapping[Resource, float] = {
    CORE_EVENTS: 5.0,
    KUEUE_WORKLOADS: 0.0,
    KUEUE_WORKLOADS_BEFORE: 0.0,
    KUEUE_CHECKS: 0.0,
}


#: Kinds that only gates need. The controller works without the rights to them, which an installation may leave out.
OPT_IN = (JOBS, CRON_JOBS)


def pods_of(client: Client, namespace: str, lws: str) -> Informer[Pod]:
    """All pods of one LWS, watched while a release needs to know why a group is not ready. Workloads of kinds without
    workers have none besides their leaders, which are watched anyway.
    """
    return Informer(
        client,
        PODS,
        TRIMMED.pod,
        namespace=namespace,
        label_selector=f"{WITH_WORKERS.workload}={lws}",
    )


def job_pods_of(client: Client, namespace: str, job: str) -> Informer[Pod]:
    """The pods of one Job, watched while a gate waits for it."""
    return Informer(client, PODS, TRIMMED.pod, namespace=namespace, label_selector=f"{JOB_NAME}={job}")


def slices_of(client: Client, namespace: str, service: str) -> Informer[EndpointSlice]:
    """The EndpointSlices of one Service, watched while a release sends requests to it."""
    return Informer(
        client,
        ENDPOINT_SLICES,
        msgspec.json.Decoder(EndpointSlice).decode,
        namespace=namespace,
        label_selector=f"{SERVICE_NAME}={service}",
    )


def kind_of(client: Client, resource: Resource, namespace: str) -> Informer[StoredObject]:
    """The objects of a kind that is watched on demand, in a namespace; for a cluster-scoped kind, all."""
    return Informer(
        client,
        resource,
        DECODERS.get(resource, stored_object),
        namespace=namespace if resource.namespaced else "",
        label_selector=LABELS.get(resource, ""),
        field_selector=FIELDS.get(resource, ""),
    )


@dataclass(slots=True)
class _Watch(Generic[T]):
    informer: Informer[T]
    task: asyncio.Task[None]
    wanted_by: set[Key] = field(default_factory=set)


class OnDemandWatches(Generic[T]):
    """One watch for each place that some key wants; ``make`` builds its informer, which ``start`` runs as a task whose
    name begins with ``what``. ``wake`` is called for each key that wants it when the first list has arrived or failed,
    for a later key immediately, and with ``each_change`` on every change. A watch starts only after its place has been
    wanted for ``after`` seconds.
    """

    def __init__(
        self,
        what: str,
        make: Callable[[str, str], Informer[T]],
        start: Start,
        wake: Callable[[Key], None],
        *,
        after: float = 0.0,
        each_change: bool = False,
    ) -> None:
        self._what = what
        self._make = make
        self._start = start
        self._wake = wake
        self._after = after
        self._each_change = each_change
        self._watches: dict[Place, _Watch[T]] = {}
        self._wanted: dict[Key, frozenset[Place]] = {}

    def known(self, namespace: str, name: str) -> Iterable[T]:
        """The objects known now; empty without a watch, or before the first list has arrived."""
        watch = self._watches.get((namespace, name))
        if watch is None:
            return ()
        return watch.informer.all(namespace if watch.informer.resource.namespaced else "")

    def unknown(self, namespace: str, name: str) -> str | None:
        """None while the watch is up to date: its first list has arrived, or the kind does not exist. Otherwise the
        error, "" without one; objects that may be listed but not watched do not count as known.
        """
        watch = self._watches.get((namespace, name))
        if watch is None:
            return ""
        informer = watch.informer
        return None if (informer.is_synced and not informer.denied) or informer.unserved else informer.trouble

    def unserved(self, namespace: str, name: str) -> bool:
        """Whether the server has reported that it does not serve the kind."""
        watch = self._watches.get((namespace, name))
        return watch is not None and watch.informer.unserved

    async def want(self, key: Key, names: tuple[str, ...]) -> None:
        """Set the places of its namespace that ``key`` wants watched, replacing its earlier ones."""
        wanted = frozenset((key[0], name) for name in names)
        before = self._wanted.pop(key, frozenset())
        if wanted:
            self._wanted[key] = wanted
        for place in wanted - before:
            if place not in self._watches:
                self._begin(place)
            elif self.unknown(*place) != "":
                # The key was decided before the first list of this watch, started for other keys, had arrived.
                self._wake(key)
            self._watches[place].wanted_by.add(key)
        for place in before - wanted:
            self._watches[place].wanted_by.discard(key)
            if not self._watches[place].wanted_by:
                await end([self._watches.pop(place).task])

    def _begin(self, place: Place) -> None:
        informer = self._make(*place)
        task = self._start(self._run(informer), f"{self._what} of {place[0]}/{place[1]}")
        watch = self._watches[place] = _Watch(informer, task)

        def tell() -> None:
            for key in watch.wanted_by:
                self._wake(key)

        informer.on_news(tell)
        if self._each_change:
            informer.on_change(lambda _before, _after: tell())

    async def _run(self, informer: Informer[T]) -> None:
        if self._after:
            await asyncio.sleep(self._after)
        await informer.run()

    @property
    def informers(self) -> list[Informer[T]]:
        """The running informers."""
        return [watch.informer for watch in self._watches.values()]

    def absorb(self, answer: bytes) -> None:
        """Put the server's answer to a write into the caches; a watch that does not select the object ignores it."""
        for watch in self._watches.values():
            watch.informer.absorb(answer)

    async def close(self) -> None:
        """End every watch."""
        watches, self._watches = [*self._watches.values()], {}
        self._wanted.clear()
        await end([watch.task for watch in watches])
