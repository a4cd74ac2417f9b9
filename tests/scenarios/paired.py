"""What stories of pairs share: two LWSs with a Service each, a route that names both, and who gets the requests."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import msgspec

from rollout_lws.objects.resources import (
    GRPC_ROUTES,
    PODS,
    SERVICES,
    VIRTUAL_SERVICES,
)
from rollout_lws.objects.writes import Confirm, Patch, Write
from rollout_lws.sandbox.behaviours.cluster import Options
from rollout_lws.sandbox.behaviours.faults import CUT_OFF, PREFIX
from rollout_lws.sandbox.meter import Client, TrafficMeter
from tests.scenarios.kinds import LWS, LeaderWorkerSets
from tests.scenarios.metered import LAG, PODS_TAKE, STREAM
from tests.scenarios.routed import GATEWAY, ROUTE, ROUTES, create_gateway, kind, make, rules_of, with_rules
from tests.scenarios.world import KEYS, NAME, NAMESPACE, ROLLOUTS, World

#: The sides: the one that serves first, and the other one.
BLUE, GREEN = NAME, f"{NAME}-green"
SERVICES_OF = {BLUE: "blue-api", GREEN: "green-api"}
#: Half of the requests by an approval, then all of them by another one.
STEPS: tuple[dict[str, Any], ...] = (
    {"replicas": "25%", "traffic": "20%", "pause": {}},
    {"replicas": "100%", "traffic": "50%", "pause": {}},
)

#: Seconds in which requests that run on a side have ended: gracePeriodSeconds and drainSeconds.
DRAINED = 33
ALL_BLUE, ALL_GREEN = {BLUE: 100, GREEN: 0}, {BLUE: 0, GREEN: 100}
#: Tagged requests first, then half of all.
MATCH: tuple[dict[str, Any], ...] = (
    {"replicas": 1, "matches": [{"headers": [{"name": "x-canary", "value": "yes"}]}], "pause": {}},
    {"replicas": "100%", "traffic": "50%", "pause": {}},
)


def create_sides(
    world: World, *, replicas: int = 4, beside: int = 4, size: int = 2, tag: str = "v1", other: str = "v1"
) -> None:
    """Two workloads, a Service for the leaders of each, and a route with all weight at the first."""
    for name, count, version in ((BLUE, replicas, tag), (GREEN, beside, other)):
        world.create_workload(name=name, replicas=count, size=min(size, world.kind.largest), tag=version)
        selector = {"app": "llama", **world.kind.selected(name)}
        make(
            world, SERVICES, SERVICES_OF[name], spec={"selector": selector, "ports": [{"port": 80, "targetPort": 8000}]}
        )
    create_route(world, world.gateway or create_gateway(world))


def create_route(world: World, parent: Mapping[str, str] = MappingProxyType({"name": GATEWAY})) -> None:
    """A route of a manifest in which the first side has all the weight."""
    ROUTES.made.add(ROUTES.provider.name)
    weighed = ((BLUE, 100), (GREEN, 0))
    references = [{"name": SERVICES_OF[name], "port": 80, "weight": weight} for name, weight in weighed]
    hosts = {"hostnames": [*world.hosts]} if world.hosts else {}
    head = {"hosts": ["llama"]} if kind() == VIRTUAL_SERVICES else {"parentRefs": [dict(parent)], **hosts}
    make(world, kind(), ROUTE, spec=with_rules({"spec": head}, [{"backendRefs": references}])["spec"])


def rollout(
    *steps: dict[str, Any],
    routing: dict[str, Any] | None = None,
    spec: dict[str, Any] | None = None,
    shift: dict[str, Any] | None = None,
    kind: LeaderWorkerSets = LWS,
    **strategy: Any,
) -> dict[str, Any]:
    """The manifest of the pair's Rollout; ``strategy`` goes beside the style, ``spec`` beside the strategy; by default
    no workload is written.
    """
    named = {"apiVersion": kind.resource.api_version, "kind": kind.resource.kind}
    asked = {
        "service": SERVICES_OF[BLUE],
        "counterpartService": SERVICES_OF[GREEN],
        **ROUTES.provider.words,
    }
    canary = {"capacity": "Pair", "steps": list(steps or STEPS), "trafficRoutings": [asked | (routing or {})]}
    if shift is not None:
        canary["shift"] = shift
    return {
        "apiVersion": ROLLOUTS.api_version,
        "kind": ROLLOUTS.kind,
        "metadata": {"name": NAME, "namespace": NAMESPACE},
        "spec": {
            "workloadRef": {**named, "name": BLUE},
            "counterpartRef": {**named, "name": GREEN},
            **({"touch": "RouteOnly"} if spec is None else spec),
            "strategy": {"canary": canary, **strategy},
        },
    }


async def all_ready(world: World, *names: str) -> None:
    await world.until(lambda: all(_ready(world, name) for name in names), "all groups ready")


def _ready(world: World, name: str) -> bool:
    lws = world.get(world.kind.resource, name)
    return lws is not None and (lws.get("status") or {}).get("readyReplicas", 0) == lws["spec"]["replicas"]


async def pair_at_rest(world: World, *steps: dict[str, Any], more: Any = None, **sizes: Any) -> None:
    """Both workloads at v1, the first one active."""
    create_sides(world, **sizes)
    world.server.create(ROLLOUTS, rollout(*steps, kind=world.kind, **(more or {})))
    await all_ready(world, BLUE, GREEN)
    world.checks.append(no_workload_written(world))
    world.start_controller()
    await world.until_state("Healthy")
    await world.rest()


async def scaled_pair(world: World, *steps: dict[str, Any], more: Any = None, **sizes: Any) -> None:
    """Two workloads that releases scale, both at v1; the first one is active, the other one has no groups."""
    create_sides(world, **{"beside": 0, **sizes})
    world.server.create(ROLLOUTS, rollout(*steps, kind=world.kind, **{"spec": {}, **(more or {})}))
    await all_ready(world, BLUE)
    world.start_controller()
    await world.until_state("Healthy")
    await world.rest()


def no_workload_written(world: World) -> Callable[[World], None]:
    """Nothing of a release writes a workload, a Service or a pod."""
    judged = len(world.writes)

    def check(seen: World) -> None:
        nonlocal judged
        kinds = (world.kind.resource, SERVICES, PODS)
        touched = [each for each in seen.writes[judged:] if not isinstance(each, Confirm) and each.resource in kinds]
        assert not touched and not seen.labels, (touched, seen.labels)
        judged = len(seen.writes)

    return check


class WeightJudge:
    """Judges each write of the weights: no side gets some without a ready group while the other one has ready ones."""

    def __init__(self, world: World) -> None:
        self.world, self._known = world, weights(world)

    def watch(self) -> None:
        store_write = self.world.store_write

        def judged(write: Write) -> None:
            store_write(write)
            if write.resource == kind():
                self.judge()

        self.world.store_write = judged  # type: ignore[method-assign]

    def judge(self) -> None:
        found = weights(self.world)
        before, self._known = self._known, found
        if found == before:
            return
        ready = {name for name in found if self._has_ready_leader(name)}
        empty = {name for name, weight in found.items() if weight and name not in ready}
        assert not empty or not ready, f"{empty} got weight without a ready group: {found}"

    def _has_ready_leader(self, name: str) -> bool:
        kind = self.world.kind
        leaders = [pod for pod in kind.pods(self.world.server.store, name) if kind.leads(pod)]
        return any(
            each["type"] == "Ready" and each["status"] == "True"
            for pod in leaders
            if "deletionTimestamp" not in pod["metadata"]
            for each in pod.get("status", {}).get("conditions") or ()
        )


class ScaleJudge:
    """Judges each write of a number of groups: no side that has requests is scaled to 0, unless the Rollout is."""

    def __init__(self, world: World) -> None:
        self.world = world

    def watch(self) -> None:
        store_write = self.world.store_write

        def judged(write: Write) -> None:
            if isinstance(write, Patch) and write.resource == self.world.kind.resource:
                self.judge(write)
            store_write(write)

        self.world.store_write = judged  # type: ignore[method-assign]

    def judge(self, write: Patch) -> None:
        count = (write.body.get("spec") or {}).get("replicas")
        asked = (self.world.get(ROLLOUTS, NAME) or {"spec": {}})["spec"].get("replicas")
        if count == 0 and asked != 0 and self.world.get(kind(), ROUTE) is not None:
            found = weights(self.world)
            assert not found.get(write.name), f"{write.name} has requests, and is scaled to 0: {found}"


def apply(world: World, name: str, tag: str, **spec: Any) -> None:
    """Another version for this side, as its owner applies it."""
    template = {"spec": {"containers": world.containers.of(tag)}}
    world.patch_lws({**world.kind.versioned(template), **spec}, name)


def weights(world: World) -> dict[str, int]:
    """The weight of each side in the route's first rule."""
    by_service = {service: name for name, service in SERVICES_OF.items()}
    return {by_service[ref["name"]]: ref.get("weight", 1) for ref in rules_of(world)[0]["backendRefs"]}


def set_weights(world: World, wanted: dict[str, int]) -> None:
    """What a tool does that applies the route of its manifest."""
    by_service = {service: name for name, service in SERVICES_OF.items()}
    first = rules_of(world)[0]
    refs = [{**ref, "weight": wanted[by_service[ref["name"]]]} for ref in first["backendRefs"]]
    set_rules(world, {**first, "backendRefs": refs})


def share(world: World, name: str) -> float:
    found = weights(world)
    return found[name] / sum(found.values())


def rules(world: World) -> list[dict[str, Any]]:
    """The route's rules."""
    return rules_of(world)


def set_rules(world: World, *wanted: dict[str, Any]) -> None:
    live = world.get(kind(), ROUTE)
    assert live is not None
    world.patch(kind(), ROUTE, {"spec": with_rules(live, wanted)["spec"]})


def rule_of(path: str, by_service: dict[str, int]) -> dict[str, Any]:
    """A rule for one path, with the weight of each Service."""
    references = [{"name": name, "port": 80, "weight": weight} for name, weight in by_service.items()]
    condition = {"path": {"type": "PathPrefix", "value": path}}
    if kind() == GRPC_ROUTES:
        condition = {"method": {"type": "Exact", "service": path.strip("/")}}
    return {"matches": [condition], "backendRefs": references}


#: A rule of the route that names one of the two Services only.
ADMIN = rule_of("/admin", {SERVICES_OF[BLUE]: 1})


# Faults


def set_ready(world: World, name: str, ready: bool, group: int | None = None) -> None:
    """All pods of a side, or of one of its groups, stop answering, or answer again."""
    for pod in world.kind.pods(world.server.store, name):
        if group not in (None, world.kind.index(pod)):
            continue
        annotations = {PREFIX + CUT_OFF: None if ready else "true"}
        world.patch(PODS, pod["metadata"]["name"], {"metadata": {"annotations": annotations}})


def forge(world: World, **status: Any) -> None:
    """Another client writes these fields of the status."""
    world.patch(ROLLOUTS, NAME, {"status": status}, "status")


def wipe(world: World) -> None:
    """Another client removes the whole status."""
    forge(world, **dict.fromkeys(world.status))


def marks(world: World) -> dict[str, dict[str, Any]]:
    """What Rollouts say in the route's annotation, by UID."""
    route = world.get(kind(), ROUTE)
    assert route is not None
    text = (route["metadata"].get("annotations") or {}).get(KEYS.original, "{}")
    return dict(msgspec.json.decode(text))


def forge_mark(world: World, **fields: Any) -> None:
    """Another client changes what the Rollout has said in the route's annotation."""
    text = msgspec.json.encode({uid: {**said, **fields} for uid, said in marks(world).items()}).decode()
    world.patch(kind(), ROUTE, {"metadata": {"annotations": {KEYS.original: text}}})


def drop_mark(world: World) -> None:
    """Another client removes the route's annotation."""
    world.patch(kind(), ROUTE, {"metadata": {"annotations": None}})


# Moments


async def approve_to_the_end(world: World) -> None:
    """Approves what asks for it until nothing is released any more."""
    await world.until(lambda: world.state in ("AwaitingApproval", "Healthy"), seconds=1200)
    while world.state != "Healthy":
        if world.state == "AwaitingApproval":
            world.approve()
        at = world.status["currentStepIndex"]
        await world.until(
            lambda at=at: (
                world.state == "Healthy"  # type: ignore[misc]
                or (world.state == "AwaitingApproval" and world.status["currentStepIndex"] != at)
            ),
            "the next approval or the end",
            1200,
        )
    await world.rest()


async def in_step(world: World, step: int = 1, *, side: str = GREEN, tag: str = "v2") -> None:
    """A version on this side, in this step and waiting for approval."""
    apply(world, side, tag)
    await world.until_state("AwaitingApproval", 1200)
    for at in range(2, step + 1):
        world.approve()
        await world.until(
            lambda at=at: world.status["currentStepIndex"] == at and world.state == "AwaitingApproval",  # type: ignore[misc]
            f"step {at}",
            1200,
        )


async def handing_over(world: World, *, side: str = GREEN, tag: str = "v2") -> None:
    """All requests have just gone to this side, and the other one drains."""
    await in_step(world, 2, side=side, tag=tag)
    world.approve()
    await world.until(lambda: share(world, side) == 1, "all requests", 1200)


async def released(world: World, *, side: str = GREEN, tag: str = "v2") -> None:
    """A version is released on this side, which is the active one by now."""
    apply(world, side, tag)
    await world.until_state("AwaitingApproval", 1200)
    await approve_to_the_end(world)
    assert world.status["active"] == side


async def left(world: World) -> None:
    """The Rollout is deleted, and has given everything back."""
    world.delete(ROLLOUTS, NAME)
    await world.until(lambda: world.get(ROLLOUTS, NAME) is None, "the Rollout leaves", 1200)


def retirable(world: World) -> bool:
    return world.condition("ReadyToRetire").get("status") == "True"


@dataclass(slots=True)
class MeteredPair:
    """A pair whose requests are measured."""

    world: World
    meter: TrafficMeter

    async def shares(self) -> dict[str, float]:
        """Where requests go over ten seconds, once data planes have heard of the last change."""
        await self.world.sleep(LAG + 0.5)
        begun = self.world.server.clock()
        await self.world.sleep(10)
        return {name: round(each, 6) for name, each in self.meter.shares("users", begun, by="lws").items()}

    async def retire(self, name: str) -> None:
        """The owner scales this side to zero as soon as the Rollout says that it may: no request is lost."""
        await self.world.until(lambda: retirable(self.world), "ReadyToRetire", 3600)
        self.world.patch_lws({"replicas": 0}, name)
        await self.world.sleep(STREAM + LAG)
        self.assert_unharmed()

    def assert_unharmed(self) -> None:
        """No request has failed, and no stream was cut."""
        told = "\n".join(map(str, [*self.meter.failures, *self.meter.cuts]))
        assert not told, told


@asynccontextmanager
async def metered_pair(
    *steps: dict[str, Any], more: Any = None, scaled: bool = False, kind: LeaderWorkerSets = LWS, **sizes: Any
) -> AsyncIterator[MeteredPair]:
    world = World(Options(timing=PODS_TAKE))
    world.release(kind)
    try:
        await (scaled_pair if scaled else pair_at_rest)(world, *steps, more=more, **sizes)
        meter = TrafficMeter(world.server, (Client("users", **ROUTES.provider.entry),), drain=STREAM, lag=LAG)
        meter.start()
        yield MeteredPair(world, meter)
        meter.stop()
    finally:
        world.close()
