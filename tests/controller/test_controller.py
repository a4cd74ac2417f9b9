"""A whole controller over the sandbox's API in virtual time: real client, informers, queue and workers, no sockets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import pytest

from rollout_lws.api.resources import rollouts
from rollout_lws.cli.demo import manifests
from rollout_lws.controller.controller import Controller
from rollout_lws.kube.client import Client
from rollout_lws.metrics import Metrics
from rollout_lws.objects.resources import CUSTOM_RESOURCE_DEFINITIONS, LEADER_WORKER_SETS, NAMESPACES
from rollout_lws.sandbox.apiserver import ApiServer
from rollout_lws.sandbox.behaviours.cluster import Cluster, Options
from rollout_lws.sandbox.transport import DirectTransport
from rollout_lws.settings import Settings
from tests.definitions import definitions
from tests.virtual_time import LoopClock

pytestmark = pytest.mark.looptime
ORIGIN = datetime(2026, 3, 1, tzinfo=UTC)


@asynccontextmanager
async def cluster(options: Options | None = None) -> AsyncIterator[ApiServer]:
    """An API server with all behaviours, by the loop's clock."""
    server = ApiServer(lambda: LoopClock(ORIGIN).now().timestamp(), seed=1)
    for definition in definitions():
        server.create(CUSTOM_RESOURCE_DEFINITIONS, definition)
    running = Cluster(server, options or Options())
    running.start()
    yield server
    running.stop()


@asynccontextmanager
async def controlled(server: ApiServer, settings: Settings | None = None) -> AsyncIterator[Metrics]:
    metrics = Metrics()
    controller = Controller(Client(DirectTransport(server)), settings or Settings(), LoopClock(ORIGIN), metrics)
    async with controller.running():
        assert controller.ready
        yield metrics
    assert not controller.ready


def create(server: ApiServer, namespace: str) -> None:
    lws = manifests.workload()
    lws["metadata"]["namespace"] = namespace
    server.create(LEADER_WORKER_SETS, lws)
    server.create(rollouts(), manifests.rollout(rollouts().api_version, lws["metadata"]))


def phase(server: ApiServer, namespace: str) -> Any:
    return (server.get(rollouts(), namespace, "llama").get("status") or {}).get("phase")


async def test_a_rollout_is_adopted_and_its_lws_held_without_anybody_polling() -> None:
    async with cluster() as server, controlled(server):
        create(server, "default")
        await asyncio.sleep(30)
        assert phase(server, "default") == "Healthy"
        rolling = server.get(LEADER_WORKER_SETS, "default", "llama")["spec"]["rolloutStrategy"]
        assert rolling["rollingUpdateConfiguration"]["partition"] == 1_000_000
        at_rest = server.store.version
        await asyncio.sleep(6 * 3600)  # past the ends of many watches, bookmarks and timers
        assert server.store.version == at_rest


async def test_what_happened_before_the_start_is_caught_up_with() -> None:
    async with cluster() as server:
        create(server, "default")
        await asyncio.sleep(30)
        assert phase(server, "default") is None
        async with controlled(server):
            await asyncio.sleep(5)
            assert phase(server, "default") == "Healthy"


async def test_only_the_named_namespaces_are_managed() -> None:
    async with cluster() as server, controlled(server, Settings(namespaces=("prod",))):
        server.create(NAMESPACES, {"metadata": {"name": "prod"}})
        create(server, "prod")
        create(server, "default")
        await asyncio.sleep(30)
        assert phase(server, "prod") == "Healthy"
        assert phase(server, "default") is None


async def test_a_watch_that_ends_by_a_bug_ends_the_controller() -> None:
    async with cluster() as server:
        controller = Controller(Client(DirectTransport(server)), Settings(), LoopClock(ORIGIN), Metrics())

        def broken(_before: object, _after: object) -> None:
            raise ValueError("bug")

        with pytest.RaisesGroup(pytest.RaisesExc(ValueError, match="bug")):
            async with controller.running():
                controller._scopes[""].rollouts.on_change(broken)
                create(server, "default")
                try:
                    await asyncio.sleep(60)
                except asyncio.CancelledError:
                    # Whoever takes his time to leave tells nobody of a world that he sees no more.
                    assert controller.look("default") is None
                    assert controller.missing == "stopping\n"
                    raise
        assert not controller.ready


async def test_accepted_writes_are_counted_by_verb_and_resource() -> None:
    async with cluster() as server, controlled(server) as metrics:
        create(server, "default")
        await asyncio.sleep(30)
        text = metrics.text().decode()
        assert 'rollout_lws_writes_total{resource="leaderworkersets.leaderworkerset.x-k8s.io",verb="patch"} 1.0' in text
        assert 'rollout_lws_reconciles_total{result="ok"}' in text


async def test_others_get_their_turn_between_decisions_that_write_nothing() -> None:
    """Thousands of Rollouts at rest are decided at a start; a Lease that is not renewed meanwhile would be lost, and
    all of it begun anew by the next one, for ever.
    """
    many = 8
    async with cluster() as server:
        for number in range(many):
            server.create(NAMESPACES, {"metadata": {"name": f"team-{number}"}})
            create(server, f"team-{number}")
        async with controlled(server):
            await asyncio.sleep(30)
        metrics, settings = Metrics(), Settings(workers=2)
        controller = Controller(Client(DirectTransport(server)), settings, LoopClock(ORIGIN), metrics)
        async with controller.watching(), controller.working():
            counts = [0]
            while counts[-1] < many:
                await asyncio.sleep(0)
                counts.append(int(metrics.reconciles.labels("ok")._value.get()))
        assert max(after - before for before, after in pairwise(counts)) <= settings.workers


async def test_what_is_being_released_is_decided_before_what_rests() -> None:
    async with cluster() as server:
        for name in ("team-a", "team-b", "team-c"):
            server.create(NAMESPACES, {"metadata": {"name": name}})
            create(server, name)
        async with controlled(server):
            await asyncio.sleep(30)
        server.patch(rollouts(), "team-b", "llama", {"status": {"phase": "Progressing"}}, subresource="status")
        server.patch(rollouts(), "team-c", "llama", {"status": None}, subresource="status")
        controller = Controller(Client(DirectTransport(server)), Settings(), LoopClock(ORIGIN), Metrics())
        looked_at: list[str] = []
        world = controller._reconciler.world

        def annotated(namespace: str) -> Any:
            looked_at.append(namespace)
            return world(namespace)

        object.__setattr__(controller._reconciler, "world", annotated)
        async with controller.watching(), controller.working():
            await asyncio.sleep(5)
        assert (set(looked_at[:2]), looked_at[2]) == ({"team-b", "team-c"}, "team-a")
