"""Who makes releases in the benchmark, through the API server as everybody: one in each namespace."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from rollout_lws.kube.client import Client
from rollout_lws.objects.resources import LEADER_WORKER_SETS, NAMESPACES, Resource
from rollout_lws.objects.writes import Create, Patch
from tests.bench import manifests
from tests.bench.manifests import NAME, ROLLOUTS
from tests.e2e.waiting import until
from tests.scenarios.styles import CANARY_STYLE, Style

Object = dict[str, Any]

_WHY = "the benchmark releases it"
#: A release here takes some twenty seconds, and longer on a busy machine.
_PATIENCE_SECONDS = 300.0


def state(rollout: Object | None) -> str:
    """What a Rollout's summary says, "" when it says nothing."""
    return str((((rollout or {}).get("status") or {}).get("summary") or {}).get("state", ""))


@dataclass(frozen=True, slots=True)
class Trial:
    """A release to be measured: an LWS of ``replicas`` groups of ``size`` pods, each ready after ``load`` seconds."""

    namespace: str
    steps: tuple[Object, ...]
    style: Style = CANARY_STYLE
    replicas: int = 5
    size: int = 2
    load: float = 0.3

    @property
    def is_routed(self) -> bool:
        return any("traffic" in step for step in self.steps)


class Person:
    """Creates and releases by ``client``."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def prepare(self, trial: Trial) -> None:
        """The objects of a trial, at rest in care of its Rollout."""
        await self.create(trial)
        await self._until(trial.namespace, "Healthy")

    async def create(self, trial: Trial) -> None:
        namespace = trial.namespace
        await self._create(NAMESPACES, {"metadata": {"name": namespace}})
        for resource, body in manifests.traffic(namespace) if trial.is_routed else ():
            await self._create(resource, body)
        lws = manifests.workload(namespace, replicas=trial.replicas, size=trial.size, load=trial.load)
        await self._create(LEADER_WORKER_SETS, lws)
        await self._create(ROLLOUTS, manifests.rollout(namespace, trial.steps, trial.style))

    async def release(self, trial: Trial) -> float:
        """Set the templates of another version, and wait until it is released; the seconds that it took."""
        busy = False

        def released(rollout: Object | None) -> bool:
            nonlocal busy
            healthy = state(rollout) == "Healthy"
            busy = busy or not healthy
            return busy and healthy

        following = asyncio.create_task(
            until(self._client, ROLLOUTS, trial.namespace, NAME, released, _PATIENCE_SECONDS)
        )
        began = time.monotonic()
        body = {"spec": {"leaderWorkerTemplate": manifests.templates("v0.19.0", trial.load)}}
        await self._client.send(Patch(LEADER_WORKER_SETS, trial.namespace, NAME, body, _WHY))
        await following
        return time.monotonic() - began

    async def renewing(self, trial: Trial) -> None:
        """Wait until the release of a trial renews the groups of its stable version."""

        def promotes(rollout: Object | None) -> bool:
            finalising = ((rollout or {}).get("status") or {}).get("finalising") or {}
            return bool(finalising.get("task") == "Promote")

        await until(self._client, ROLLOUTS, trial.namespace, NAME, promotes, _PATIENCE_SECONDS)

    async def loading(self, trial: Trial) -> None:
        """Wait until a step of a trial's release has its groups loading."""
        await self._until(trial.namespace, "Loading")

    async def _until(self, namespace: str, wanted: str) -> None:
        await until(
            self._client, ROLLOUTS, namespace, NAME, lambda rollout: state(rollout) == wanted, _PATIENCE_SECONDS
        )

    async def _create(self, resource: Resource, body: Object) -> None:
        head = {"apiVersion": resource.api_version, "kind": resource.kind}
        await self._client.send(Create(resource, {**head, **body}, _WHY))


async def each(work: Iterable[Any]) -> list[Any]:
    """All of them beside each other; when one fails the others are ended."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one) for one in work]
    return [task.result() for task in tasks]
