"""What stories of pairs that shift share: how many groups there are together, and moments in which some are going."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from rollout_lws.objects.released import labels_among
from rollout_lws.objects.resources import PODS, SERVICES
from rollout_lws.sandbox.store import Event
from tests.scenarios.paired import (
    BLUE,
    GREEN,
    MeteredPair,
    apply,
    handing_over,
    in_step,
    metered_pair,
)
from tests.scenarios.paired_scaled import replicas
from tests.scenarios.routed import routes_of
from tests.scenarios.world import KEYS, NAMESPACE, World

#: A quarter of the groups, and then three quarters, each with an approval.
STEPS: tuple[dict[str, Any], ...] = (
    {"replicas": "25%", "traffic": "auto", "pause": {}},
    {"replicas": "75%", "traffic": "auto", "pause": {}},
)
MOMENTS = ("draining", "step 1", "step 2", "hand-over")
#: Groups of the side that has the requests.
GROUPS = 4


class ShiftJudge:
    """Judges after each change of a pod: at most ``most`` groups of both sides, terminating ones among them, and at
    least ``least`` ready ones. None is not judged.
    """

    def __init__(self, world: World, most: int | None = GROUPS + 1, least: int | None = GROUPS) -> None:
        self._world, self.most, self.least = world, most, least
        self.loads, self._known = 0, {pod["metadata"]["uid"] for pod in self._pods(leaders=True)}
        world.server.store.subscribe(self._see)

    def _pods(self, *, leaders: bool = False) -> list[dict[str, Any]]:
        every = self._world.server.list(PODS, NAMESPACE)
        return [pod for pod in every if not leaders or self._world.kind.leads(pod)]

    def _see(self, event: Event) -> None:
        if event.resource != PODS:
            return
        by_group: dict[tuple[str, str], list[dict[str, Any]]] = {}
        kind = self._world.kind
        for pod in self._pods():
            labels = pod["metadata"]["labels"]
            names = labels_among(labels)
            if names is not None and names.index in labels:
                by_group.setdefault((names.workload_of(labels), labels[names.index]), []).append(pod)
            if kind.leads(pod) and pod["metadata"]["uid"] not in self._known:
                self._known.add(pod["metadata"]["uid"])
                self.loads += 1
        ready = sum(len(pods) == min(2, kind.largest) and all(map(_is_ready, pods)) for pods in by_group.values())
        if self.most is not None and len(by_group) > self.most:
            self._world.errors.append(AssertionError(f"{len(by_group)} groups: {sorted(by_group)}"))
        if self.least is not None and ready < self.least:
            self._world.errors.append(AssertionError(f"{ready} ready groups of {sorted(by_group)}"))


class LoadJudge:
    """Looks once a second: by the weights of the route, no group that its Service leads to has more than ``most`` times
    the requests of a group at rest for longer than changes take, and no side gets requests without one.
    """

    def __init__(self, world: World, most: float = 2.05) -> None:
        self._world, self._most = world, most
        self._over: list[str] = []
        self._looking = asyncio.get_running_loop().create_task(self._look())

    def _led_to(self, service: str) -> int:
        selector = (self._world.get(SERVICES, service) or {})["spec"]["selector"]
        wanted = ",".join(f"{key}={value}" for key, value in selector.items())
        return sum(map(_is_ready, self._world.server.list(PODS, NAMESPACE, label_selector=wanted)))

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(1)
            found = routes_of(self._world)[0]
            for service, weight in found.items():
                share, groups = weight / (sum(found.values()) or 1), self._led_to(service) if weight else 0
                if share * GROUPS > self._most * groups:
                    self._over.append(f"{share:.0%} of requests at {groups} groups of {service}: {found}")

    def assert_kept(self, seconds: int = 6) -> None:
        self._looking.cancel()
        assert len(self._over) <= seconds, "\n".join(self._over)


def pods_of(world: World, side: str) -> list[dict[str, Any]]:
    return world.kind.pods(world.server.store, side)


def unlabelled(world: World) -> list[str]:
    """Pods that stay and that no Service finds."""
    pods = (pod["metadata"] for pod in world.server.list(PODS, NAMESPACE))
    return [each["name"] for each in pods if "app" not in each["labels"] and "deletionTimestamp" not in each]


def _is_ready(pod: dict[str, Any]) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    ready = any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
    return ready and "deletionTimestamp" not in pod["metadata"]


@asynccontextmanager
async def shifting(shift: dict[str, Any] | None = None, **more: Any) -> AsyncIterator[MeteredPair]:
    """A pair at rest whose next release shifts."""
    asked = {"shift": shift or {}, **more.pop("more", {})}
    async with metered_pair(*more.pop("steps", STEPS), more=asked, scaled=True, **{"replicas": GROUPS, **more}) as pair:
        yield pair


async def come_to(world: World, moment: str) -> None:
    match moment:
        case "hand-over":
            await handing_over(world)
        case "draining":
            apply(world, GREEN, "v2")
            await world.until(lambda: bool(draining(world)), "a group is taken out", 1200)
        case _:
            await in_step(world, int(moment.split()[1]))


def draining(world: World) -> list[str]:
    """Pods that have lost a label."""
    return [
        pod["metadata"]["name"]
        for pod in world.server.list(PODS, NAMESPACE)
        if KEYS.draining in (pod["metadata"].get("annotations") or {})
    ]


def assert_none_left(world: World) -> None:
    """No note of a release is left on a workload or a pod."""
    assert not draining(world) and not unlabelled(world)
    for name in replicas(world):
        lws = world.get(world.kind.resource, name) or {"metadata": {}}
        assert KEYS.replicas not in (lws["metadata"].get("annotations") or {}), name


def at_rest(world: World, side: str, count: int = GROUPS) -> bool:
    other = BLUE if side == GREEN else GREEN
    return replicas(world) == {side: count, other: 0}
