"""What stories of DisaggregatedSets share: two of them, with decode and prefill each, behind one route."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from rollout_lws.objects.resources import (
    CUSTOM_RESOURCE_DEFINITIONS,
    DISAGGREGATED_SETS,
    LEADER_WORKER_SETS,
    LWS_WORKER_INDEX,
    SERVICES,
)
from rollout_lws.sandbox.behaviours.cluster import Options
from rollout_lws.sandbox.behaviours.disaggregated_sets import NAME as SET_NAME
from rollout_lws.sandbox.behaviours.disaggregated_sets import ROLE
from rollout_lws.sandbox.definitions import disaggregated_set_crd
from rollout_lws.sandbox.meter import Client, TrafficMeter
from tests.scenarios.metered import LAG, PODS_TAKE, STREAM
from tests.scenarios.paired import BLUE, GREEN, SERVICES_OF, MeteredPair, create_route, no_workload_written, rollout
from tests.scenarios.routed import ROUTE, create_gateway, make
from tests.scenarios.world import NAMESPACE, ROLLOUTS, World

ROLES = {"decode": 4, "prefill": 2}


def serve(world: World) -> None:
    """The cluster serves DisaggregatedSets."""
    world.server.create(CUSTOM_RESOURCE_DEFINITIONS, disaggregated_set_crd.manifest())


def manifest(world: World, name: str, tag: str, **roles: int) -> dict[str, Any]:
    """A DisaggregatedSet of this version with so many groups of each role."""
    pods = {"metadata": {"labels": {"app": "llama"}}, "spec": {"containers": world.containers.of(tag)}}
    template = {"size": 2, "workerTemplate": pods}
    counts = roles or ROLES
    spec = {
        "roles": [
            {"name": role, "spec": {"replicas": count, "leaderWorkerTemplate": template}}
            for role, count in counts.items()
        ]
    }
    return DISAGGREGATED_SETS.manifest(name, NAMESPACE, spec=spec)


def apply(world: World, name: str, tag: str, **roles: int) -> None:
    world.patch(DISAGGREGATED_SETS, name, {"spec": manifest(world, name, tag, **roles)["spec"]})


def names(world: World, side: str) -> dict[str, list[str]]:
    """The LeaderWorkerSets of each role of a DisaggregatedSet, oldest first."""
    made = world.server.list(LEADER_WORKER_SETS, NAMESPACE, label_selector=f"{SET_NAME}={side}")
    found: dict[str, list[str]] = {}
    for each in sorted(made, key=lambda each: int(each["metadata"]["resourceVersion"])):
        found.setdefault(each["metadata"]["labels"][ROLE], []).append(each["metadata"]["name"])
    return found


def replicas(world: World, side: str) -> dict[str, int]:
    """Groups that are asked for, by LeaderWorkerSet."""
    made = world.server.list(LEADER_WORKER_SETS, NAMESPACE, label_selector=f"{SET_NAME}={side}")
    return {each["metadata"]["name"]: each["spec"]["replicas"] for each in made}


def only(world: World, side: str, role: str) -> str:
    """The LeaderWorkerSet of a role of which there is one version."""
    (name,) = names(world, side)[role]
    return name


def is_whole(world: World, side: str) -> bool:
    """Whether all groups of one version are ready, and no other version is left."""
    made = world.server.list(LEADER_WORKER_SETS, NAMESPACE, label_selector=f"{SET_NAME}={side}")
    ready = [(each.get("status") or {}).get("readyReplicas", 0) == each["spec"]["replicas"] for each in made]
    return len(made) == len(ROLES) and all(ready)


def refs(world: World) -> dict[str, Any]:
    """The members of a Rollout's spec that name the LeaderWorkerSets of both."""
    decode, other = (only(world, side, "decode") for side in (BLUE, GREEN))
    kind = {"apiVersion": LEADER_WORKER_SETS.api_version, "kind": LEADER_WORKER_SETS.kind}
    return {
        "workloadRef": {**kind, "name": decode},
        "counterpartRef": {**kind, "name": other},
        "companions": [{"name": only(world, BLUE, "prefill"), "counterpart": only(world, GREEN, "prefill")}],
    }


def create(world: World) -> None:
    """Both, a Service of decode for each, whichever version it has, and a route with all weight at the first."""
    serve(world)
    for name in (BLUE, GREEN):
        world.server.create(DISAGGREGATED_SETS, manifest(world, name, "v1"))
        selector = {SET_NAME: name, ROLE: "decode", LWS_WORKER_INDEX: "0"}
        make(
            world, SERVICES, SERVICES_OF[name], spec={"selector": selector, "ports": [{"port": 80, "targetPort": 8000}]}
        )
    create_route(world, create_gateway(world))


async def at_rest(world: World) -> None:
    """Both at v1, the first one active; no write of the Rollout's goes to a workload, a Service or a pod."""
    create(world)
    await world.until(lambda: all(is_whole(world, side) for side in (BLUE, GREEN)), "all groups ready")
    body = rollout()
    body["spec"] |= refs(world)
    world.server.create(ROLLOUTS, body)
    world.checks.append(no_workload_written(world))
    world.start_controller()
    await world.until_state("Healthy")
    await world.rest()


async def renamed(world: World, side: str, tag: str, **roles: int) -> None:
    """A version is applied to a side while the Rollout is disabled, which names its LeaderWorkerSets then."""
    world.patch_rollout({"disabled": True})
    await world.until_state("Disabled")
    apply(world, side, tag, **roles)
    await world.sleep(1)
    await world.until(lambda: is_whole(world, side), f"{tag} is whole", 3600)
    world.patch_rollout({"disabled": False, **refs(world)})
    await world.until_state("Healthy")
    await world.rest()


@asynccontextmanager
async def metered_sets() -> AsyncIterator[MeteredPair]:
    world = World(Options(timing=PODS_TAKE))
    try:
        await at_rest(world)
        meter = TrafficMeter(world.server, (Client("users", route=ROUTE),), drain=STREAM, lag=LAG)
        meter.start()
        yield MeteredPair(world, meter)
        meter.stop()
    finally:
        world.close()
