"""Stories with a whole controller in virtual time, and what Prometheus would have got of it meanwhile."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from prometheus_client.parser import text_string_to_metric_families

from rollout_lws.api.resources import batch_releases
from rollout_lws.errors import ApiError
from rollout_lws.objects.resources import LEADER_WORKER_SETS
from rollout_lws.sandbox.faults import Effect
from tests.scenarios.evals import EVALS
from tests.scenarios.failures import apply
from tests.scenarios.routed import create_route, routing
from tests.scenarios.shell import ShellWorld

#: By name, then by labels.
Scrape = dict[str, dict[tuple[tuple[str, str], ...], float]]

#: What the client library tells of any Python program.
FOREIGN = ("process_", "python_")


@asynccontextmanager
async def shell() -> AsyncIterator[ShellWorld]:
    world = ShellWorld()
    yield world
    await world.gone()
    world.close()


async def exposed(world: ShellWorld) -> str:
    """The text that Prometheus gets once nothing changes any more."""
    await world.rest()
    return (await world.metrics.exposition()).decode()


async def scrape(world: ShellWorld) -> Scrape:
    """All samples of ours, under the names that queries use."""
    return parsed(await exposed(world))


def parsed(text: str) -> Scrape:
    found: Scrape = {}
    for family in text_string_to_metric_families(text):
        for each in family.samples:
            if not each.name.startswith(FOREIGN) and not each.name.endswith("_created"):
                found.setdefault(each.name, {})[tuple(sorted(each.labels.items()))] = each.value
    return found


def value(told: Scrape, name: str, **labels: str) -> float | None:
    """The one value that has at least these labels, None when there is none."""
    fitting = [number for known, number in told.get(name, {}).items() if labels.items() <= dict(known).items()]
    assert len(fitting) <= 1, fitting
    return fitting[0] if fitting else None


def release(world: ShellWorld, tag: str, gpus: int = 4, faults: Mapping[str, str] | None = None) -> None:
    """Apply a version each of whose pods takes so many accelerators; ``faults`` are the sandbox's."""
    resources = {"limits": {"nvidia.com/gpu": str(gpus)}}
    apply(world, tag, faults=faults, containers=[{"name": "vllm", "image": f"vllm:{tag}", "resources": resources}])


async def moments(world: ShellWorld) -> AsyncIterator[str]:
    """What is exported at some moments of a release that shares requests, meets every trouble a little, and is aborted;
    between them all there is of metrics has been exported.
    """
    create_route(world)
    world.create_workload()
    release(world, "v1")
    steps = [{"replicas": 1, "traffic": "20%", "gates": [EVALS], "pause": {}}, {"replicas": "100%"}]
    world.create_rollout(*steps, canary={"trafficRoutings": routing()})
    world.start_controller()
    await world.until_state("Healthy")
    await world.rest()
    world.faults.refuse(503, "create", LEADER_WORKER_SETS.plural)
    denied = ApiError(403, "Forbidden", 'User "x" cannot create resource "batchreleases"')
    world.faults.add(Effect(refusal=denied), "create", batch_releases().plural)
    release(world, "v2", faults={"ready-after": "60s"})
    await world.until(lambda: "rollout_lws_permissions_missing{" in world.metrics.text().decode())
    yield world.metrics.text().decode()
    await world.until(lambda: bool(world.status.get("notReadyGroups")))
    yield await exposed(world)
    await world.until_state("Analyzing")
    yield await exposed(world)
    world.request("SkipGate", gate=EVALS["name"])
    await world.until_state("AwaitingApproval")
    yield await exposed(world)
    world.request("Pause")
    await world.until_state("Paused")
    yield await exposed(world)
    world.request("Abort")
    await world.until_state("Aborted")
    yield await exposed(world)
