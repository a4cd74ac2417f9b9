"""What a fleet at rest takes in the caches: a budget for each Rollout, and no more of them than in proportion.

Counted are the bytes that Python has allocated, so that neither the machine nor what runs beside it matters; what is
resident is the benchmark's figure.
"""

from __future__ import annotations

import asyncio
import gc
import tracemalloc
from collections import Counter
from typing import Any

import pytest

from rollout_lws.controller.controller import Controller
from rollout_lws.kube.client import Client
from rollout_lws.metrics import Metrics
from rollout_lws.objects.resources import (
    CONTROLLER_REVISIONS,
    LEADER_WORKER_SETS,
    LWS_WORKER_INDEX,
    NAMESPACES,
    SERVICES,
    STATEFUL_SETS,
)
from rollout_lws.sandbox.behaviours.cluster import Options
from rollout_lws.settings import Settings
from tests.bench import fleet, manifests
from tests.bench.fleet import Fleet
from tests.bench.manifests import NAME, ROLLOUTS
from tests.bench.wire import page
from tests.controller.test_controller import ORIGIN, cluster, controlled
from tests.kube.fakes import FakeTransport, Reply
from tests.virtual_time import LoopClock

pytestmark = pytest.mark.looptime

_NAMESPACE = "one"
_CACHED = {str(each) for each in (ROLLOUTS, LEADER_WORKER_SETS, STATEFUL_SETS, CONTROLLER_REVISIONS, SERVICES)}
_STEPS = ({"replicas": 1, "pause": {"duration": 0}}, {"replicas": "100%"})

#: Bytes of a Rollout with four groups, of any size, after a release. 400 MB for 5,000 of them, less 62 of a bare
#: process and a third for what is remembered of decisions and what allocators waste, would be 50 kB. It takes 40.
_BUDGET = 44_000
#: A table of the whole process, such as that of interned strings, which grows in the middle of one of them adds to that
#: one alone; what a fleet takes is the same in each.
_ATTEMPTS = 3


class Lists(FakeTransport):
    """Lists a fleet in pages, and keeps watches open on which nothing happens."""

    def __init__(self, objects: Fleet) -> None:
        super().__init__()
        self._fleet = objects

    async def request(self, method: str, path: str, **options: Any) -> Reply:
        assert method == "GET"
        resource, params = fleet.resource_of(path), options["params"]
        assert resource is not None
        found = self._fleet.select(resource, params.get("labelSelector", ""))
        start, limit = int(params.get("continue", "0")), int(params["limit"])
        items = [each.body for each in found[start : start + limit]]
        rest = str(start + limit) if start + limit < len(found) else ""
        return Reply(200, page(items, self._fleet.version, rest))


async def released() -> list[dict[str, Any]]:
    """What is cached of a Rollout that has released its second version and is at rest. Its groups are of two pods:
    workers are not listed while all is well, so more of them would only take longer.
    """
    async with cluster(Options(nodes=8, gpus_per_node=64)) as server, controlled(server):
        server.create(NAMESPACES, {"metadata": {"name": _NAMESPACE}})
        server.create(LEADER_WORKER_SETS, manifests.workload(_NAMESPACE, replicas=4, size=2, load=1))
        server.create(ROLLOUTS, manifests.rollout(_NAMESPACE, _STEPS))
        await asyncio.sleep(60)
        template = {"spec": {"leaderWorkerTemplate": manifests.templates("v0.19.0", 1)}}
        server.patch(LEADER_WORKER_SETS, _NAMESPACE, NAME, template)
        await asyncio.sleep(600)
        objects = fleet.recorded(server, _NAMESPACE)
    kinds = Counter(each["resource"] for each in objects)
    # Of the pods the leaders are watched; of revisions, two of the LWS's, two of ours, and those of StatefulSets.
    assert (kinds["pods"], kinds["statefulsets.apps"], kinds["batchreleases.rollouts.kruise.io"]) == (8, 5, 0)
    assert kinds["controllerrevisions.apps"] >= 10
    return [each for each in objects if each["resource"] in _CACHED or _is_leader(each["object"])]


def _is_leader(obj: Any) -> bool:
    return (obj["metadata"].get("labels") or {}).get(LWS_WORKER_INDEX) == "0"


async def in_caches(template: list[dict[str, Any]], rollouts: int) -> int:
    """Bytes that a controller with filled caches has allocated for a fleet of so many."""
    transport = Lists(fleet.copied(template, rollouts))
    gc.collect()
    tracemalloc.start(1)
    try:
        controller = Controller(Client(transport), Settings(), LoopClock(ORIGIN), Metrics())
        async with controller.watching():
            # The list that came last may be on its way into the cache yet, and watches begin.
            await asyncio.sleep(1)
            gc.collect()
            return tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()


async def test_a_rollout_at_rest_keeps_to_its_budget_and_growth_is_in_proportion() -> None:
    template = await released()
    told = []
    for _ in range(_ATTEMPTS):
        few, more, many = [await in_caches(template, rollouts) for rollouts in (10, 30, 50)]
        each, growth = (many - few) / 40, (many - more) / (more - few)
        told.append((each, growth))
        if each < _BUDGET and growth == pytest.approx(1, abs=0.1):
            return
    raise AssertionError(f"bytes of a Rollout, and how they grow: {told}")
