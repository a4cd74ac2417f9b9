"""What a release takes, counted in the cluster while it goes on: groups beyond those of the LWS, model loads, windows,
and how many requests a group gets.

Loads of groups are read as routers see them: from the weights of the route and the ready endpoints of its Services.
They are looked at once a second, so that the fractions of a second in which a change makes its way do not count.
"""

from __future__ import annotations

import asyncio
from typing import Any

from rollout_lws.api import TrafficRouting
from rollout_lws.objects.released import RELEASED, labels_among
from rollout_lws.objects.resources import PODS, SERVICES
from rollout_lws.objects.writes import Patch
from rollout_lws.sandbox.store import Event
from rollout_lws.workload.hold import HOLD
from tests.scenarios.routed import SERVICE, routes_of
from tests.scenarios.world import NAME, NAMESPACE, World

#: Seconds that running requests get before their group goes.
DRAIN: int = TrafficRouting.model_fields["drain_seconds"].default


class Gauge:
    """Counts from when it is made; ``replicas`` are the LWS's groups, at rest."""

    def __init__(self, world: World, replicas: int) -> None:
        self._world, self._replicas = world, replicas
        self._known = {pod["metadata"]["uid"] for pod in self._leaders()}
        self._writes, self._began = len(world.writes), world.server.clock()
        self.loads = 0
        """Groups that began to load the model."""
        self.extra = 0
        """Most groups beyond ``replicas`` at once."""
        self.ready = replicas
        """Fewest ready groups that had requests."""
        self.peak_load = 1.0
        """Most requests that a group had; 1.0 when all groups carry them alike at rest."""
        self.disrupted = 0
        """Groups that were deleted while a Service that has clients led to them."""
        self.undrained = 0
        """Groups that were deleted after they had lost their requests, but before running ones had had their time."""
        self._asked_at: dict[str, float] = {}
        world.server.store.subscribe(self._see)
        self._looking = asyncio.get_running_loop().create_task(self._look())

    def stop(self) -> None:
        self._looking.cancel()

    @property
    def seconds(self) -> float:
        return self._world.server.clock() - self._began

    @property
    def windows(self) -> int:
        """How often the controller opened the LWS."""
        return sum(_opens(write) for write in self._world.writes[self._writes :])

    def _leaders(self) -> list[dict[str, Any]]:
        kind = self._world.kind
        found = [pod for pod in self._world.server.list(PODS, NAMESPACE) if kind.leads(pod)]
        return [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]

    def _see(self, event: Event) -> None:
        if event.resource != PODS:
            return
        leaders = self._leaders()
        new = {pod["metadata"]["uid"] for pod in leaders} - self._known
        self._known |= new
        if _ends(event):
            name, asked = event.object["metadata"]["name"], self._asked()
            quiet = self._world.server.clock() - self._asked_at.get(name, -DRAIN)
            self.disrupted += name in asked
            self.undrained += name not in asked and quiet < DRAIN
        self.loads += len(new)
        self.extra = max(self.extra, len(leaders) - self._replicas)

    async def _look(self) -> None:
        while True:
            carried = self.carried()
            self.ready = min(self.ready, len(carried))
            self.peak_load = max(self.peak_load, *carried.values(), 0.0)
            self._asked_at |= dict.fromkeys(self._asked(), self._world.server.clock())
            await asyncio.sleep(1)

    def _asked(self) -> set[str]:
        """Leaders that have clients: by the route, or by a Service other than the release's own."""
        services = self._world.server.list(SERVICES, NAMESPACE)
        # Headless ones are those by which pods of an LWS find each other.
        names = (each["metadata"]["name"] for each in services if each["spec"].get("clusterIP") != "None")
        past = [name for name in names if name != f"{SERVICE}-canary"]
        return {*self.carried(), *(name for service in past for name in self._world.ready_endpoints(service))}

    def carried(self) -> dict[str, float]:
        """Requests of each ready leader that has any, relative to one at rest."""
        weights = routes_of(self._world)[0]
        found: dict[str, float] = {}
        for service, weight in weights.items():
            names = self._world.ready_endpoints(service) if weight else ()
            for name in names:
                share = weight / sum(weights.values()) / len(names)
                found[name] = found.get(name, 0) + share * self._replicas
        return found


def _ends(event: Event) -> bool:
    """A leader's deletion begins."""
    ending = event.type == "DELETED" or "deletionTimestamp" in event.object["metadata"]
    before = event.previous is not None and "deletionTimestamp" in event.previous["metadata"]
    labels = event.object["metadata"]["labels"]
    names = labels_among(labels)
    return ending and not before and names is not None and names.marks_leader(labels)


def _opens(write: Any) -> bool:
    if not isinstance(write, Patch) or write.name != NAME or write.resource not in RELEASED:
        return False
    spec = write.body.get("spec") or {}
    strategy = spec.get("rolloutStrategy") or spec.get("updateStrategy") or {}
    rolling = strategy.get("rollingUpdateConfiguration") or strategy.get("rollingUpdate") or {}
    return bool(rolling.get("partition", HOLD) < HOLD)
