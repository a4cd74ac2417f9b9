"""docs/metrics.md lists what a controller exports: no more, no less, with its labels and its type."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from rollout_lws.metrics import Metrics
from rollout_lws.objects.resources import LEADER_WORKER_SETS
from tests.metrics.tour import FOREIGN, release, shell
from tests.scenarios.routed import create_route, routing
from tests.scenarios.world import NAME, ROLLOUTS

PAGE = Path(__file__).parents[2] / "docs/metrics.md"


@dataclass(frozen=True, slots=True)
class Family:
    type: str
    labels: frozenset[str]


def documented() -> dict[str, Family]:
    """By name; the labels of each Rollout are added."""
    found: dict[str, Family] = {}
    for section in PAGE.read_text().split("\n## "):
        own = {"namespace", "rollout"} if section.startswith("Of each Rollout") else set()
        for name, kind, labels in re.findall(r"^\| `(\w+)` \| (\w+) \|([^|]*)\|", section, re.MULTILINE):
            assert name not in found, name
            found[name] = Family(kind, frozenset(own | set(re.findall(r"`(\w+)`", labels))))
    return found


def exported(text: str) -> dict[str, Family]:
    found: dict[str, Family] = {}
    for family in text_string_to_metric_families(text):
        if family.name.startswith(FOREIGN) or family.name.endswith("_created"):
            continue
        name = f"{family.name}_total" if family.type == "counter" else family.name
        labels = {label for each in family.samples for label in each.labels} - {"le"}
        if family.samples:
            found[name] = Family(family.type, frozenset(labels))
    return found


@pytest.mark.looptime
async def test_the_page_lists_what_a_story_exports_and_nothing_else() -> None:
    found: dict[str, Family] = {}
    async with shell() as world:

        async def look() -> None:
            await world.rest()
            for name, family in exported((await world.metrics.exposition()).decode()).items():
                before = found.get(name, family)
                found[name] = Family(family.type, family.labels | before.labels)

        create_route(world)
        world.create_workload()
        release(world, "v1", 4)
        steps = [{"replicas": 1, "traffic": "20%", "pause": {}}, {"replicas": "100%"}]
        world.create_rollout(*steps, canary={"trafficRoutings": routing()})
        world.start_controller()
        await world.until_state("Healthy")
        await world.rest()
        release(world, "v2", 4, {"ready-after": "60s"})
        world.faults.refuse(503, "create", LEADER_WORKER_SETS.plural)
        await world.until(lambda: bool(world.status.get("notReadyGroups")))
        await look()
        await world.until_state("AwaitingApproval")
        await look()
        world.request("Pause")
        await world.until_state("Paused")
        await look()
        world.request("Abort")
        await world.until_state("Aborted")
        await look()
        assert found == documented()
        world.delete(ROLLOUTS, NAME)
        await world.until(lambda: world.get(ROLLOUTS, NAME) is None)
        await world.rest()
        assert b'rollout="llama"' not in await world.metrics.exposition()


async def test_both_ways_to_the_text_lead_to_the_same_families() -> None:
    metrics = Metrics()
    whole, pieces = exported(metrics.text().decode()), exported((await metrics.exposition()).decode())
    assert whole == pieces != {}
