"""The controller: wires watches, queue and workers together over one client."""

from __future__ import annotations

import asyncio
import logging
import os
import random
import socket
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from rollout_lws.api import Phase
from rollout_lws.api.resources import keys, rollouts
from rollout_lws.clock import Clock
from rollout_lws.controller.cached_world import CachedWorld
from rollout_lws.controller.events import Events
from rollout_lws.controller.informers import Informers
from rollout_lws.controller.on_demand_watches import (
    EXPLAINING,
    OPT_IN,
    OnDemandWatches,
    job_pods_of,
    kind_of,
    pods_of,
    slices_of,
)
from rollout_lws.controller.reconciler import Key, Reconciler
from rollout_lws.controller.self_metrics import SelfMetrics, ages, stuck, unlisted
from rollout_lws.controller.startup_metrics import StartupMetrics
from rollout_lws.kube.client import Client
from rollout_lws.kube.events import EventRecorder
from rollout_lws.kube.informer import Informer
from rollout_lws.kube.queue import KeyedQueue
from rollout_lws.logs import fields
from rollout_lws.measuring.calling import HttpCalls, PodCaller, ProxyCaller
from rollout_lws.measuring.pods import PodFigures, PodWork
from rollout_lws.measuring.prometheus_client import PrometheusClient
from rollout_lws.measuring.prometheus_sources import PrometheusFigures, PrometheusQueries
from rollout_lws.measuring.prometheus_work import PrometheusWork
from rollout_lws.measuring.rounds import Measuring, Source
from rollout_lws.measuring.scraping import PodScraper, ProxyScraper
from rollout_lws.metrics import Metrics
from rollout_lws.metrics.glance import glance
from rollout_lws.metrics.rollouts import Find
from rollout_lws.notifications.outbox import Notifications
from rollout_lws.notifications.post import HttpPost
from rollout_lws.objects.permissions import allow
from rollout_lws.objects.resources import (
    CUSTOM_RESOURCE_DEFINITIONS,
    HORIZONTAL_POD_AUTOSCALERS,
    POD_DISRUPTION_BUDGETS,
    PODS,
    Resource,
)
from rollout_lws.objects.workloads import EndpointSlice, Pod
from rollout_lws.observe.cache_types import StoredObject, StoredRollout
from rollout_lws.observe.capabilities import CRD_NAME, Definition, definition
from rollout_lws.rollout.decide import decide
from rollout_lws.rollout.decision import Wanted
from rollout_lws.rollout.observation import Capabilities
from rollout_lws.scripting.custom_networks import CustomNetworks
from rollout_lws.scripting.runner import Runner
from rollout_lws.settings import Settings
from rollout_lws.tasks import end
from rollout_lws.traffic.registry import ROUTING_KINDS

log = logging.getLogger(__name__)

#: Kinds that are watched namespace-wide while some release needs them.
_ON_DEMAND = (*ROUTING_KINDS, POD_DISRUPTION_BUDGETS, HORIZONTAL_POD_AUTOSCALERS)
#: Those whose every change wakes each Rollout that wants them. The controller works without permission to list them.
_TOLD_EACH_CHANGE = (*EXPLAINING, *OPT_IN)


class Controller:
    """Watches the namespaces of ``settings`` through ``client`` and carries out decisions, while ``running``.
    ``notifications`` are those that ``settings`` ask for unless they are given.
    """

    def __init__(
        self,
        client: Client,
        settings: Settings,
        clock: Clock,
        metrics: Metrics,
        notifications: Notifications | None = None,
    ) -> None:
        self._keys = keys(settings.api_group)
        self._client = client
        self._queue: KeyedQueue[Key] = KeyedQueue(late=metrics.lag.observe)
        self._scopes = {
            namespace: Informers(client, self._keys, namespace, self._wake)
            for namespace in settings.namespaces or ("",)
        }
        self._tasks = asyncio.TaskGroup()
        # Pods also matter to Rollouts of other LWSs, where a deleted Rollout has left an object pinned.
        self._pods = OnDemandWatches("pods", self._pod_informer, self._start, self._wake, each_change=True)
        self._slices = OnDemandWatches("endpoints", self._slice_informer, self._start, self._wake)
        self._job_pods = OnDemandWatches(
            "job pods", partial(job_pods_of, client), self._start, self._wake, each_change=True
        )
        self._kinds = {resource: self._watches_of(resource) for resource in (*_ON_DEMAND, *_TOLD_EACH_CHANGE)}
        self._definitions: Informer[Definition] = Informer(
            client, CUSTOM_RESOURCE_DEFINITIONS, definition, field_selector=f"metadata.name={CRD_NAME}"
        )
        self._definitions.on_change(self._all_again)
        proxied, api_server = settings.scrape_through == "api-server", os.environ.get("KUBERNETES_SERVICE_HOST", "")
        scraper = ProxyScraper(client) if proxied else PodScraper(api_server)
        caller = ProxyCaller(client) if proxied else PodCaller(api_server)
        prometheus = PrometheusClient(client, clock, settings.allowed, settings.prometheus)
        every = settings.scrape_every
        sources: list[Source] = [
            PodFigures(scraper, every),
            PodWork(scraper),
            HttpCalls(client, caller, every),
            PrometheusFigures(prometheus, clock, every),
            PrometheusWork(prometheus, clock),
            PrometheusQueries(prometheus, clock, every, confine=settings.gate_queries == "namespace"),
        ]
        self._measuring = Measuring(sources, clock, self._start, self._wake)
        self._networks = CustomNetworks(client, settings.scripts, Runner(), self._start, self._wake)
        told = notifications or _notifications(settings, clock, metrics)
        self._events = Events(EventRecorder(client, "rollout-lws", socket.gethostname(), clock.now), clock, told)
        self._workers = settings.workers
        self._reconciler = Reconciler(
            keys=self._keys,
            clock=clock,
            queue=self._queue,
            world=self._world,
            sender=client,
            absorb=self._absorb,
            decide=decide,
            record=self._events.record,
            want=self._want,
            metrics=metrics,
        )
        self.ready = False
        self._works = False
        client.observe = metrics.requested
        metrics.fleet = self._fleet
        metrics.follow(
            SelfMetrics(
                self._queue,
                lambda: self._informers,
                lambda: self._on_demand,
                lambda: len(self._reconciler.unreadable),
                lambda: [permission for permission, _ in client.denials.current],
                self._measuring,
                told,
            )
        )
        for scope in self._scopes.values():
            StartupMetrics(scope, clock, lambda seconds: metrics.load.observe(seconds) if self._works else None)

    @property
    def stuck(self) -> str:
        """Why this process has to restart, "" when it need not: a watch without traffic and without an error."""
        return stuck([*self._informers, *self._on_demand])

    @property
    def watch_ages(self) -> dict[str, float]:
        """By resource, seconds since the last traffic of its most silent watch."""
        return ages([*self._informers, *self._on_demand])

    @property
    def missing(self) -> str:
        """Why this controller is not ready, as lines of "resource: what is wrong"; "" when it is."""
        if self.ready:
            return ""
        return unlisted(self._informers) or "stopping\n"

    def look(self, namespace: str) -> CachedWorld | None:
        """The caches of a namespace, on the leader and on standby replicas. None before they are filled, for an
        unwatched namespace, and while a list or watch is denied, since the last known objects are then outdated.
        """
        scope = self._scopes.get("") or self._scopes.get(namespace)
        blind = not self.ready or scope is None or any(each.denied for each in scope.all)
        return None if blind else self._world(namespace)

    @property
    def untold(self) -> str:
        """Missing permissions that no Rollout's status can report: lines like those of ``missing``."""
        if not self.ready:
            return ""
        blind = unlisted(each for each in self._informers if each.denied)
        mute = [
            f"{permission.what}: {message}: {allow(permission.verb, permission.what)}\n"
            for permission, message in self._client.denials.current
            if permission.resource == rollouts(self._keys.group) and permission.subresource
        ]
        return "".join((blind, *mute))

    @property
    def _informers(self) -> list[Informer[Any]]:
        return [self._definitions, *(each for scope in self._scopes.values() for each in scope.all)]

    @property
    def _on_demand(self) -> list[Informer[Any]]:
        """Without kinds that the controller needs no permission to list."""
        deciding = (watches for resource, watches in self._kinds.items() if resource not in _TOLD_EACH_CHANGE)
        every: tuple[OnDemandWatches[Any], ...] = (self._pods, self._slices, self._job_pods, *deciding)
        return [*(informer for watches in every for informer in watches.informers), *self._networks.informers]

    def _fleet(self) -> Iterator[tuple[bytes, Find]]:
        """Nothing before the caches are filled, since missing objects would look deleted. Nothing on standby replicas:
        sums over all replicas would count each Rollout twice.
        """
        if not self._works:
            return
        for scope in self._scopes.values():
            for each in scope.rollouts.all():
                workloads = scope.workloads[each.kind] if each.kind is not None else None
                find = partial(workloads.get, each.metadata.namespace) if workloads is not None else _unknown
                yield each.body, find

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Runs watches and workers, from filled caches to the last worker's end, once."""
        async with self.watching(), self.working():
            yield

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        """Runs the watches from filled caches to the end of the block, once; without deciding anything.

        A watch that ends because of a bug would leave a stale cache, so it cancels the block, and the bug is raised in
        an ExceptionGroup.
        """
        async with self._tasks:
            informers = self._informers
            watches = [self._start(each.run(), f"watch {each.resource}") for each in informers]
            for watch in watches:
                watch.add_done_callback(self._unwatched)
            try:
                for each in informers:
                    await each.synced()
                self.ready = True
                yield
            finally:
                self.ready = False
                await end(watches)

    def _unwatched(self, _: asyncio.Task[None]) -> None:
        """Immediately: the cancelled block may go on for some seconds, as that of the admission webhook does."""
        self.ready = False

    @asynccontextmanager
    async def working(self) -> AsyncIterator[None]:
        """Runs the workers while this block and ``watching`` last, starting with every Rollout; at the end they finish
        the current write. May be entered again each time this replica becomes leader.
        """
        self._works = True
        self._all_again(None, None)
        workers = [self._start(self._reconciler.work(), f"worker {n}") for n in range(self._workers)]
        try:
            yield
        finally:
            self._works = False
            await end(workers)
            self._queue.clear()
            self._reconciler.clear()
            await self._pods.close()
            await self._slices.close()
            await self._job_pods.close()
            for kind in tuple(self._kinds.values()):
                await kind.close()
            await self._measuring.close()
            await self._networks.close()
            await self._events.close()

    def _wake(self, key: Key) -> None:
        """A standby replica ignores changes: it reconciles everything once it leads."""
        if self._works:
            self._queue.add(key)

    def _start(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        return self._tasks.create_task(work, name=name)

    def _world(self, namespace: str) -> CachedWorld:
        return CachedWorld(
            self._keys,
            namespace,
            self._scope(namespace),
            self._pods,
            self._slices,
            self._job_pods,
            self._kinds,
            self._measuring,
            self._networks,
            self._capabilities(),
        )

    async def _want(self, key: Key, wanted: Wanted) -> None:
        await self._pods.want(key, wanted.pods)
        await self._slices.want(key, wanted.endpoints)
        await self._job_pods.want(key, wanted.jobs)
        await self._measuring.want(key, wanted.measurements)
        await self._networks.want(key, wanted)
        for resource in wanted.kinds:
            if resource not in self._kinds:
                # Of a custom kind, which is known only when a Rollout names it.
                self._kinds[resource] = self._watches_of(resource)
        # Another worker may add kinds meanwhile.
        for resource, watches in tuple(self._kinds.items()):
            await watches.want(key, ("",) if resource in wanted.kinds else ())

    def _watches_of(self, resource: Resource) -> OnDemandWatches[StoredObject]:
        return OnDemandWatches(
            resource.plural,
            partial(self._kind_informer, resource),
            self._start,
            self._wake,
            after=EXPLAINING.get(resource, 0.0),
            each_change=resource in _TOLD_EACH_CHANGE,
        )

    def _scope(self, namespace: str) -> Informers:
        return self._scopes.get(namespace) or self._scopes[""]

    def _capabilities(self) -> Capabilities:
        known = self._definitions.get("", CRD_NAME)
        return known.capabilities if known is not None and known.capabilities is not None else Capabilities()

    def _absorb(self, resource: Resource, answer: bytes) -> None:
        for scope in self._scopes.values():
            scope.absorb(resource, answer)
        if resource == PODS:
            self._pods.absorb(answer)
        if resource in self._kinds:
            self._kinds[resource].absorb(answer)

    def _pod_informer(self, namespace: str, lws: str) -> Informer[Pod]:
        informer = pods_of(self._client, namespace, lws)
        informer.on_change(self._scope(namespace).belonging_changed)
        return informer

    def _slice_informer(self, namespace: str, service: str) -> Informer[EndpointSlice]:
        informer = slices_of(self._client, namespace, service)
        informer.on_change(self._scope(namespace).routing_changed)
        return informer

    def _kind_informer(self, resource: Resource, namespace: str, _: str) -> Informer[StoredObject]:
        informer, scope = kind_of(self._client, resource, namespace), self._scope(namespace)
        if resource == HORIZONTAL_POD_AUTOSCALERS:
            informer.on_change(scope.autoscaler_changed)
        elif resource not in _TOLD_EACH_CHANGE:
            informer.on_change(scope.routing_changed)
        return informer

    def _all_again(self, _before: Definition | None, _after: Definition | None) -> None:
        """Reconcile every Rollout; those in a release come before the thousands at rest."""
        if self._works:
            every = [each for scope in self._scopes.values() for each in scope.rollouts.all()]
            for each in sorted(every, key=_rests):
                self._wake((each.metadata.namespace, each.metadata.name))


def _notifications(settings: Settings, clock: Clock, metrics: Metrics) -> Notifications:
    """Those that are asked for; UsageError for a directory that cannot be read."""
    post = HttpPost(clock)
    found = Notifications.of(settings.notify, settings.cluster_name, post, clock, random.Random(), metrics.notified)
    for each in found:
        to, signed = each.destination, len(each.destination.keys)
        metrics.notifies(to.name)
        log.info(
            "notifications are sent",
            extra=fields(destination=to.name, format=to.format.value, host=to.host, signing_keys=signed),
        )
    return found


def _rests(rollout: StoredRollout) -> bool:
    told = glance(rollout.body)
    return told is not None and told.status.phase == Phase.HEALTHY


def _unknown(_: str) -> None:
    """Finds no workload of a kind that cannot be released."""
