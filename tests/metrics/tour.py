"""Stories with a whole controller in virtual time, and what Prometheus would have got of it meanwhile."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from prometheus_client.parser import text_string_to_metric_families

from tests.scenarios.failures import apply
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


async def scrape(world: ShellWorld) -> Scrape:
    """All samples of ours, under the names that queries use."""
    await world.rest()
    return parsed((await world.metrics.exposition()).decode())


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
