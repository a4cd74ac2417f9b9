"""What stories of pairs with companions share: decode and prefill on each side, whose version is one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from types import MappingProxyType
from typing import Any

from rollout_lws.objects.released import workload_among
from rollout_lws.objects.resources import (
    PODS,
)
from rollout_lws.sandbox.behaviours.cluster import Options
from rollout_lws.sandbox.meter import Client, TrafficMeter
from rollout_lws.sandbox.store import Event
from tests.scenarios.metered import LAG, PODS_TAKE, STREAM
from tests.scenarios.paired import BLUE, GREEN, MeteredPair, all_ready, create_sides, rollout, share, weights
from tests.scenarios.routed import ROUTE, ROUTES, kind
from tests.scenarios.world import KEYS, NAME, NAMESPACE, ROLLOUTS, World

#: The companion of each side.
PREFILL = {BLUE: f"{NAME}-prefill", GREEN: f"{NAME}-prefill-green"}
#: Every workload of a side.
SETS = {side: (side, name) for side, name in PREFILL.items()}
#: Two groups of prefill go with four of decode.
COMPANIONS = ({"name": PREFILL[BLUE], "counterpart": PREFILL[GREEN], "replicas": "50%"},)
MOMENTS = ("step 1", "step 2", "hand-over")


def create_sets(world: World, *, replicas: int = 4, own: int = 2, beside: int = 0, size: int = 2) -> None:
    """Both sides at v1, the first one with groups; ``own`` are those of its companion."""
    create_sides(world, replicas=replicas, beside=beside, size=size)
    for side, count in ((BLUE, own), (GREEN, 0 if not beside else own)):
        world.create_workload(name=PREFILL[side], replicas=count, size=size, tag="v1")


async def at_rest(
    world: World,
    *steps: dict[str, Any],
    companions: tuple[Mapping[str, Any], ...] = COMPANIONS,
    spec: Mapping[str, Any] = MappingProxyType({}),
    sizes: Mapping[str, int] = MappingProxyType({}),
    **more: Any,
) -> None:
    """Two sets of workloads that releases scale; the first one is active, the other one has no groups."""
    create_sets(world, **sizes)
    world.server.create(ROLLOUTS, rollout(*steps, spec={"companions": [*companions], **spec}, **more))
    await all_ready(world, BLUE, PREFILL[BLUE])
    world.start_controller()
    await world.until_state("Healthy")
    await world.rest()


def apply_set(world: World, tag: str, side: str = GREEN, *, release_id: str = "") -> None:
    """Another version for all workloads of a side, as their owner applies them."""
    for name in SETS[side]:
        apply_one(world, name, tag, release_id=release_id)


def apply_one(world: World, name: str, tag: str, *, release_id: str = "") -> None:
    body: dict[str, Any] = {"spec": world.kind.versioned({"spec": {"containers": world.containers.of(tag)}})}
    if release_id:
        # A label that comes first would release what there is.
        body["metadata"] = {"labels": {KEYS.rollout_id: release_id}}
    world.patch(world.kind.resource, name, body)


async def in_step(world: World, step: int = 1, *, side: str = GREEN, tag: str = "v2") -> None:
    """A version on this side, in this step and waiting for approval."""
    apply_set(world, tag, side)
    await world.until_state("AwaitingApproval", 1200)
    for at in range(2, step + 1):
        world.approve()
        await world.until(
            lambda at=at: world.status["currentStepIndex"] == at and world.state == "AwaitingApproval",  # type: ignore[misc]
            f"step {at}",
            1200,
        )


async def come_to(world: World, moment: str, **how: Any) -> None:
    if moment != "hand-over":
        await in_step(world, int(moment.split()[1]), **how)
        return
    await in_step(world, 2, **how)
    world.approve()
    side = how.get("side", GREEN)
    await world.until(lambda: share(world, side) == 1, "all requests", 1200)


# What stands there


def sets(world: World) -> dict[str, tuple[int, int]]:
    """Groups asked for of each side, its companion's last."""
    return {side: (_spec(world, side)["replicas"], _spec(world, name)["replicas"]) for side, name in PREFILL.items()}


def roles(world: World) -> dict[str, set[str | None]]:
    """What the labels of each side's workloads say."""
    labels = {name: (_lws(world, name)["metadata"].get("labels") or {}) for names in SETS.values() for name in names}
    return {side: {labels[name].get(KEYS.side) for name in names} for side, names in SETS.items()}


def _lws(world: World, name: str) -> dict[str, Any]:
    lws = world.get(world.kind.resource, name)
    assert lws is not None, f"{name} does not exist"
    return lws


def _spec(world: World, name: str) -> dict[str, Any]:
    return dict(_lws(world, name)["spec"])


class SetJudge:
    """Judges after each change of a pod or a route: ready leaders of all workloads behind a side that has requests are
    of one version, and unless a side has lost what it had, each of its workloads has one. Counts leaders made. Not
    ``together``, what was asked for are different tags.
    """

    def __init__(self, world: World, *, together: bool = True) -> None:
        self._world, self._together = world, together
        self.loads: dict[str, int] = {}
        self._known = {pod["metadata"]["uid"] for pod in self._leaders()}
        self._weights = weights(world)
        world.server.store.subscribe(self._see)

    def _leaders(self) -> list[dict[str, Any]]:
        return [pod for pod in self._world.server.list(PODS, NAMESPACE) if self._world.kind.leads(pod)]

    def _see(self, event: Event) -> None:
        if event.resource not in (PODS, kind()):
            return
        tags: dict[str, set[str]] = {}
        for pod in self._leaders():
            meta = pod["metadata"]
            name = workload_among(meta["labels"])
            if meta["uid"] not in self._known:
                self._known.add(meta["uid"])
                self.loads[name] = self.loads.get(name, 0) + 1
            if _is_ready(pod):
                tags.setdefault(name, set()).add(pod["spec"]["containers"][0]["image"].rsplit(":", 1)[-1])
        if self._world.get(kind(), ROUTE) is None:
            return
        now = weights(self._world)
        for side, names in SETS.items():
            found = set[str]().union(*(tags.get(name, set()) for name in names))
            mixed = len(found) > 1 if self._together else any(len(each) > 1 for each in tags.values())
            if now[side] and mixed:
                self._fail(f"{side} has {now[side]}% of the requests, and {tags}")
            lacking = [name for name in names if name not in tags]
            if now[side] > self._weights[side] and lacking and found:
                self._fail(f"{side} got {now[side]}% of the requests without a ready group of {lacking}")
        self._weights = now

    def _fail(self, told: str) -> None:
        self._world.errors.append(AssertionError(told))


def _is_ready(pod: dict[str, Any]) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


@asynccontextmanager
async def metered_sets(*steps: dict[str, Any], **more: Any) -> AsyncIterator[tuple[MeteredPair, SetJudge]]:
    world = World(Options(timing=PODS_TAKE))
    try:
        await at_rest(world, *steps, **more)
        meter = TrafficMeter(world.server, (Client("users", **ROUTES.provider.entry),), drain=STREAM, lag=LAG)
        meter.start()
        yield MeteredPair(world, meter), SetJudge(world)
        meter.stop()
    finally:
        world.close()
