"""What is counted of releases is counted once, whatever becomes of controllers; and a scrape stops nobody."""

from __future__ import annotations

import asyncio
import re

import msgspec
import pytest

from rollout_lws.controller.controller import Controller
from rollout_lws.kube.client import Client
from rollout_lws.metrics import Metrics
from rollout_lws.objects.resources import CRON_JOBS, LEADER_WORKER_SETS, PODS
from rollout_lws.sandbox.transport import DirectTransport
from rollout_lws.settings import Settings
from tests.metrics.tour import Scrape, parsed, scrape, shell, value
from tests.scenarios.evals import EVALS, cron_job
from tests.scenarios.failures import apply
from tests.scenarios.shell import ShellWorld
from tests.scenarios.stories import STEPS, at_rest
from tests.scenarios.world import ORIGIN
from tests.virtual_time import LoopClock

COUNTS = (
    "rollout_lws_releases_started_total",
    "rollout_lws_releases_ended_total",
    "rollout_lws_release_seconds_count",
    "rollout_lws_step_seconds_count",
    "rollout_lws_manual_wait_seconds_count",
)


def counts(told: Scrape) -> list[float]:
    return [sum(told.get(name, {}).values()) for name in COUNTS]


async def loaded(world: ShellWorld) -> None:
    """At rest, and the controller has looked on while the groups loaded for the first time."""
    world.create_workload()
    world.create_rollout(*STEPS)
    world.start_controller()
    await world.until(lambda: world.groups() == dict.fromkeys(range(4), "v1") and world.state == "Healthy")
    await world.rest()


@pytest.mark.looptime
async def test_a_release_over_two_controllers_is_told_once() -> None:
    async with shell() as world:
        await loaded(world)
        apply(world, "v2", faults={"ready-after": "10m"})
        await world.until_state("AwaitingApproval", seconds=3000)
        before, first = world.now, await scrape(world)
        assert counts(first) == [1, 0, 0, 1, 0]
        world.stop_controller()
        world.start_controller()
        await world.sleep(600)
        world.approve()
        await world.until_state("Healthy", seconds=9000)
        second = await scrape(world)
        assert counts(second) == [0, 1, 1, 1, 1]
        # One group in the first step, and another in the second; the four of stable came under the next controller.
        assert value(first, "rollout_lws_group_startup_seconds_count") == 4 + 2
        assert value(first, "rollout_lws_group_startup_seconds_sum") == pytest.approx(4 + 2 * 600, abs=5)
        assert value(second, "rollout_lws_group_startup_seconds_count") == 4
        assert value(second, "rollout_lws_group_startup_seconds_bucket", le="600.0") == 0
        assert value(second, "rollout_lws_group_startup_seconds_bucket", le="1200.0") == 4
        waited = value(second, "rollout_lws_manual_wait_seconds_sum", state="AwaitingApproval")
        assert waited is not None
        assert 600 <= waited <= 610
        took = value(second, "rollout_lws_release_seconds_sum", outcome="Success")
        assert took == pytest.approx((world.now - before).total_seconds() + 1200, abs=30)


@pytest.mark.looptime
async def test_a_group_that_fails_and_comes_back_has_loaded_once() -> None:
    async with shell() as world:
        await loaded(world)
        before = value(await scrape(world), "rollout_lws_group_startup_seconds_count")
        world.cluster.runner.stop()
        for ready in ("False", "True"):
            world.patch(PODS, "llama-0", {"status": {"conditions": [{"type": "Ready", "status": ready}]}}, "status")
            await world.rest()
            shown = value(await scrape(world), "rollout_lws_groups_ready", role="stable")
            assert shown == (4 if ready == "True" else 3)
        assert value(await scrape(world), "rollout_lws_group_startup_seconds_count") == before == 4


def results(told: Scrape) -> dict[str, float]:
    """How often gates of kind job had each result, where they had it."""
    found = told["rollout_lws_gate_results_total"].items()
    return {dict(labels)["result"]: n for labels, n in found if dict(labels)["kind"] == "job" and n}


@pytest.mark.looptime
async def test_results_of_gates_are_counted_though_their_step_ends_in_the_same_pass() -> None:
    async with shell() as world:
        world.server.create(CRON_JOBS, cron_job())
        await at_rest(world, {"replicas": 1, "gates": [EVALS], "pause": {"duration": 0}}, {"replicas": "100%"})
        assert results(await scrape(world)) == {}
        world.set_image("v2")
        await world.until_state("Analyzing")
        assert value(await scrape(world), "rollout_lws_gates", gate="evals", result="Measuring") == 1
        await world.until_state("Healthy", 3600)
        told = await scrape(world)
        assert results(told) == {"Passed": 1}
        assert "rollout_lws_gates" not in told
        assert value(told, "rollout_lws_gate_seconds_sum", kind="job") == pytest.approx(60, abs=20)
        world.set_image("v3")
        await world.until_state("Analyzing")
        world.request("SkipGate", gate="evals")
        await world.until_state("Healthy", 3600)
        assert results(await scrape(world)) == {"Passed": 1, "Skipped": 1}


@pytest.mark.looptime
async def test_a_step_that_a_user_ends_counts_the_gate_that_it_leaves_as_skipped() -> None:
    async with shell() as world:
        world.server.create(CRON_JOBS, cron_job(exit_code="1"))
        await at_rest(world, {"replicas": 1, "gates": [EVALS], "pause": {"duration": 0}}, {"replicas": "100%"})
        world.set_image("v2")
        await world.until_state("Stalled")
        assert results(await scrape(world)) == {"Failed": 1}
        world.request("PromoteFull")
        await world.until_state("Healthy", 3600)
        assert results(await scrape(world)) == {"Failed": 1, "Skipped": 1}


@pytest.mark.looptime
async def test_groups_of_an_lws_that_nobody_releases_are_not_counted() -> None:
    async with shell() as world:
        world.create_workload()
        world.start_controller()
        await world.sleep(60)
        assert value(await scrape(world), "rollout_lws_group_startup_seconds_count") == 0


@pytest.mark.looptime
async def test_what_the_controller_does_is_told_too() -> None:
    async with shell() as world:
        await at_rest(world)
        await world.sleep(900)
        told = await scrape(world)
        resource = str(LEADER_WORKER_SETS)
        assert value(told, "rollout_lws_api_requests_total", verb="patch", resource=resource, code="200") == 1
        assert value(told, "rollout_lws_writes_total", verb="patch", resource=resource) == 1
        assert value(told, "rollout_lws_queue_depth") == 0
        assert value(told, "rollout_lws_queue_failing") == 0
        ages = told["rollout_lws_watch_age_seconds"]
        assert {"pods", resource} <= {dict(labels)["resource"] for labels in ages}
        assert max(ages.values()) <= 150
        world.faults.stopped = True
        world.faults.cut_watches()
        await asyncio.sleep(900)
        assert min(parsed(world.metrics.text().decode())["rollout_lws_watch_age_seconds"].values()) >= 900


@pytest.mark.looptime
async def test_a_second_controller_of_a_process_takes_the_place_of_the_first() -> None:
    async with shell() as world:
        await at_rest(world)
        metrics = world.metrics
        await world.gone()
        second = Controller(Client(DirectTransport(world.server)), Settings(), LoopClock(ORIGIN), metrics)
        assert b'rollout="llama"' not in metrics.text()
        async with second.running():
            assert metrics.text().count(b"\nrollout_lws_queue_depth ") == 1
            assert metrics.text().count(b"rollout_lws_info{") == 1
            assert max(second.watch_ages.values()) < 150


@pytest.mark.long
@pytest.mark.looptime
async def test_release_after_release_adds_no_series() -> None:
    async with shell() as world:
        await at_rest(world, {"replicas": 1, "pause": {}}, {"replicas": "100%"})
        seen: list[set[tuple[str, tuple[tuple[str, str], ...]]]] = []
        for number in range(2, 14):
            world.set_image(f"v{number}")
            await world.until_state("AwaitingApproval")
            world.request("Abort" if number % 3 == 0 else "Approve")
            await world.until(lambda: world.status["phase"] in ("Healthy", "Aborted"))
            seen.append({(name, labels) for name, series in (await scrape(world)).items() for labels in series})
        added = set.union(*seen[6:]) - set.union(*seen[:6])
        # By chance a verb, a code or a reason was not needed before; each is of a closed list.
        assert len(added) < 12
        assert [name for name, labels in added if "rollout" in dict(labels)] == []
        told = {text for _, labels in set.union(*seen) for _, text in labels}
        assert [text for text in told if re.search(r"^v\d|llama-", text)] == []


async def test_others_get_their_turn_while_a_large_fleet_is_told_of() -> None:
    metrics, turns = Metrics(), 0
    body = msgspec.json.encode({"metadata": {"name": "llama", "namespace": "prod"}})
    metrics.fleet = lambda: [(body, lambda _: None)] * 1000

    async def others() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    task = asyncio.create_task(others())
    text = await metrics.exposition()
    task.cancel()
    assert text.count(b"rollout_lws_info{") == 1000
    assert turns >= 10
