"""Observes every change of the demo's cluster in order, for the output and for the final checks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from rollout_lws.cli.demo.checks import HOLD, Listing, Object, Record, label, name_of
from rollout_lws.cli.releases import Release, assemble
from rollout_lws.cli.sandbox.local_cluster import Playground
from rollout_lws.errors import RolloutLwsError
from rollout_lws.objects.resources import (
    HTTP_ROUTES,
    INFERENCE_POOLS,
    INGRESSES,
    LEADER_WORKER_SETS,
    LWS_NAME,
    LWS_WORKER_INDEX,
    PODS,
    SERVICES,
    STATEFUL_SETS,
    Resource,
)
from rollout_lws.rollout.reasons import Task
from rollout_lws.sandbox.store import Event


class DemoFailed(RolloutLwsError):
    """The release did not reach an expected state; the message names that state."""


class Witness:
    """Observes the stable LWS ``workload`` and Rollout ``name`` of a namespace. ``changed`` is set on every change."""

    def __init__(self, playground: Playground, rollouts: Resource, namespace: str, name: str, workload: str) -> None:
        self.changed = asyncio.Event()
        self.record = Record()
        self.workload = workload
        self._server = playground.server
        self._rollouts = rollouts
        self._batches = Resource(rollouts.group, rollouts.version, "BatchRelease", "batchreleases")
        self._namespace, self._name = namespace, name
        self._leaders: dict[str, str] = {}
        self._held = False
        self._unsubscribe = self._server.store.subscribe(self._see)

    def close(self) -> None:
        self._unsubscribe()

    def watch_stable(self) -> None:
        """Record from now on when the current leaders end, which must not happen before the promotion."""
        self._leaders = {
            name: str(pod["metadata"]["uid"]) for name, pod in self.listing().leaders(self.workload).items()
        }
        self._held = _partition(self.lws()) == HOLD

    def lws(self) -> Object:
        return self._server.get(LEADER_WORKER_SETS, self._namespace, self.workload)

    def rollout(self) -> Object:
        return self._server.get(self._rollouts, self._namespace, self._name)

    def status(self) -> Object:
        status: Object = self.rollout().get("status") or {}
        return status

    def listing(self) -> Listing:
        return Listing(
            self.rollout(),
            self._all(LEADER_WORKER_SETS),
            self._all(STATEFUL_SETS),
            self._all(PODS),
            self._all(SERVICES),
            self._all(self._batches),
            self._all(HTTP_ROUTES),
            self._all(INGRESSES),
            self._all(INFERENCE_POOLS),
        )

    def _all(self, resource: Resource) -> tuple[Object, ...]:
        return tuple(self._server.list(resource, self._namespace))

    def release(self) -> Release:
        listing = self.listing()
        leaders = [pod for pod in listing.pods if label(pod, LWS_WORKER_INDEX) == "0"]
        sets = [each for each in listing.stateful_sets if label(each, LWS_NAME)]
        return assemble(listing.rollout, listing.workloads, sets, leaders)

    async def until(self, what: str, holds: Callable[[], bool], seconds: float) -> None:
        """Return as soon as ``holds`` is true; DemoFailed after ``seconds``."""
        arrived = asyncio.Event()

        def look(_: Event | None = None) -> None:
            if holds():
                arrived.set()

        unsubscribe = self._server.store.subscribe(look)
        try:
            look()
            async with asyncio.timeout(seconds):
                await arrived.wait()
        except TimeoutError as error:
            said = self.status().get("message") or self.status().get("phase") or "nothing"
            raise DemoFailed(f"waited {seconds:g} s in vain until {what}; the Rollout says: {said}") from error
        finally:
            unsubscribe()

    def _see(self, event: Event) -> None:
        self.changed.set()
        if event.object["metadata"].get("namespace") != self._namespace:
            return
        name = name_of(event.object)
        if event.resource == LEADER_WORKER_SETS and name != self.workload:
            self.record.others.add(name)
        if (
            event.resource == self._rollouts
            and name == self._name
            and self.record.promoted is None
            and _promotes(event)
        ):
            self.record.promoted = event.version
        if event.resource == LEADER_WORKER_SETS and name == self.workload and self._leaders:
            lifted = _partition(event.object) != HOLD
            if self._held and lifted and self.record.opened is None:
                self.record.opened = event.version
            self._held = self._held or not lifted
        uid = self._leaders.get(name)
        if event.resource == PODS and uid is not None and name not in self.record.lost_leaders:
            metadata = event.object["metadata"]
            if event.type == "DELETED" or metadata.get("deletionTimestamp") or metadata["uid"] != uid:
                self.record.lost_leaders[name] = event.version


def _promotes(event: Event) -> bool:
    ending = (event.object.get("status") or {}).get("finalising") or {}
    return bool(ending.get("task") == Task.PROMOTE)


def _partition(lws: Object) -> int:
    rolling = (lws["spec"].get("rolloutStrategy") or {}).get("rollingUpdateConfiguration") or {}
    return int(rolling.get("partition") or 0)
