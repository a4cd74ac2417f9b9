"""Stories of metric gates that read endpoint pickers: each version has an InferencePool with a picker of its own."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from typing import Any, cast

import pytest

from rollout_lws.measuring.prometheus_client import PrometheusClient
from rollout_lws.objects.resources import INFERENCE_POOLS, PODS
from rollout_lws.observe.observer import observe
from rollout_lws.rollout.decide import decide
from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.gates.measurements import wanted
from rollout_lws.rollout.reasons import EventReason, Reason
from rollout_lws.sandbox.behaviours.cluster import Options
from rollout_lws.sandbox.behaviours.faults import Timing
from tests.scenarios.measured import MeasuredWorld
from tests.scenarios.names import NAMESPACE
from tests.scenarios.pickers import NEW, OLD, Pickers
from tests.scenarios.routed import BY_POOLS, CANARY_POOL, POOL, create_provider, routing
from tests.scenarios.stories import at_rest
from tests.scenarios.test_traffic_second_pool import start_picker

pytestmark = pytest.mark.looptime

UNPICKED = {"of": "EndpointPicker", "signal": "ErrorRate", "max": "2%"}
COMPARED = {"of": "EndpointPicker", "signal": "TimeToFirstToken", "maxToStable": "150%"}
FIRST_TOKEN = {"of": "EndpointPicker", "signal": "TimeToFirstToken", "max": "2s"}


@pytest.fixture
async def world() -> AsyncIterator[MeasuredWorld]:
    made = MeasuredWorld()
    yield made
    made.close()


@pytest.fixture
async def slow() -> AsyncIterator[MeasuredWorld]:
    """Whose promotions take as long as some windows do."""
    made = MeasuredWorld(Options(timing=Timing(ready_after=120)))
    yield made
    made.close()


async def released(
    world: MeasuredWorld, pickers: Pickers, *gates: dict[str, Any], running: tuple[str, ...] = (OLD, NEW)
) -> None:
    """A step with these gates, at a tenth of the requests; the release has begun."""
    world.prometheus = cast(PrometheusClient, pickers)
    named = [{"name": f"gate-{place}", "metric": gate, "window": 300} for place, gate in enumerate(gates)]
    step = {"replicas": 1, "traffic": "10%", "gates": named, "pause": {"duration": 0}}
    create_provider(world, BY_POOLS)
    for name in running:
        start_picker(world, name)
    strategy = {"canary": {"trafficRoutings": routing(BY_POOLS)}, "analysis": {"from": "Prometheus"}}
    await at_rest(world, step, {"replicas": "100%"}, **strategy, onFailure="Abort")
    world.set_image("v2")
    await world.until_state("Analyzing")


def results(world: MeasuredWorld) -> dict[str, Any]:
    return {each["name"]: each.get("result") for each in world.status.get("gates", ())}


async def test_a_version_goes_on_by_its_own_pickers_figures(world: MeasuredWorld) -> None:
    """What clients get wrong and what servers answer is no fault of the picker's, and no errors at all are none."""
    pickers = Pickers(world, {NEW: {"ModelServerError": 50.0, "BadRequest": 50.0}})
    await released(world, pickers, UNPICKED, FIRST_TOKEN)
    await world.until_state("Healthy", 7200)
    assert pickers.asked == {NEW}


@pytest.mark.parametrize(
    ("gate", "pickers", "told"),
    [
        pytest.param(FIRST_TOKEN, {"slow": {NEW: 20.0}}, "p95 of the time to first token", id="slow"),
        pytest.param(
            UNPICKED,
            {"codes": {NEW: {"ServiceUnavailable": 6.0}}},
            "failed requests 5.66%, at most 2%",
            id="failed",
        ),
        pytest.param(COMPARED, {"slow": {NEW: 20.0}}, "% of stable's", id="compared"),
        # Three of four find no server, and are no part of what was picked.
        pytest.param(
            UNPICKED, {"codes": {NEW: {"ServiceUnavailable": 300.0}}}, "failed requests 75%, at most 2%", id="unpicked"
        ),
    ],
)
async def test_a_version_that_its_picker_finds_bad_goes_back_by_itself(
    world: MeasuredWorld, gate: dict[str, Any], pickers: dict[str, Any], told: str
) -> None:
    await released(world, Pickers(world, **pickers), gate)
    await world.until_state("Aborted")
    assert results(world) == {"gate-0": "Failed"}
    assert told in world.status["gates"][0]["message"]


async def test_pickers_of_another_cluster_are_not_read(world: MeasuredWorld) -> None:
    await released(world, Pickers(world, elsewhere=True), FIRST_TOKEN)
    await world.until_state("Healthy", 7200)


async def test_without_a_picker_that_is_ready_there_is_no_verdict(world: MeasuredWorld) -> None:
    await released(world, Pickers(world), FIRST_TOKEN, running=(OLD,))
    await world.until(lambda: results(world) == {"gate-0": "Error"}, seconds=3600)
    assert "the new version has no endpoint picker of its own that is ready" in world.status["gates"][0]["message"]
    start_picker(world, NEW)
    world.request("Retry")
    await world.until_state("Healthy", 7200)


async def test_a_picker_that_is_replaced_counts_on(world: MeasuredWorld) -> None:
    """The same requests as before, of another pod under the name, whose counters begin anew."""
    await released(world, Pickers(world), FIRST_TOKEN)
    await world.sleep(150)
    world.server.delete(PODS, NAMESPACE, NEW, grace_seconds=0)
    await world.sleep(20)
    start_picker(world, NEW)
    await world.until_state("Healthy", 7200)
    (told,) = (event.note for event in world.events if event.reason == EventReason.GATE_PASSED)
    counted = re.search(r"([0-9,]+) requests", told)
    assert counted is not None
    # Four a second in 300 s, but those before the first samples of the second pod.
    assert 1000 < int(counted[1].replace(",", "")) <= 1200


async def test_a_version_that_has_nothing_to_be_compared_with_gets_no_verdict(world: MeasuredWorld) -> None:
    await released(world, Pickers(world), COMPARED, running=(NEW,))
    await world.until(lambda: bool(results(world).get("gate-0")), seconds=3600)
    assert "the stable version has no endpoint picker of its own that is ready" in world.status["gates"][0]["message"]


async def test_a_picker_that_both_pools_have_tells_the_versions_apart_from_nothing(world: MeasuredWorld) -> None:
    """Refused before a release; and without a verdict, if it comes to be in one."""
    shared = {"spec": {"endpointPickerRef": {"name": OLD}}}
    await released(world, Pickers(world), FIRST_TOKEN)
    world.patch(INFERENCE_POOLS, CANARY_POOL, shared)
    await world.until(lambda: bool(results(world).get("gate-0")), seconds=3600)
    assert "no endpoint picker of its own that is ready" in world.status["gates"][0]["message"]
    world.request("Abort")
    await world.until_state("Aborted")
    world.set_image("v3")
    same = (
        f"gate gate-0 asks each version's endpoint picker, and InferencePools {POOL} and {CANARY_POOL} have the same"
        f" one, Service {OLD}: give {CANARY_POOL} a picker of its own, or remove metric.of"
    )
    await world.until(lambda: world.status.get("message") == same)
    assert world.status["phase"] != "Progressing"


async def test_in_a_promotion_pools_are_compared_no_more(slow: MeasuredWorld) -> None:
    slow.prometheus = cast(PrometheusClient, pickers := Pickers(slow, slow={OLD: 1.0, NEW: 1.0}))
    watched = [{"name": "compared", "metric": COMPARED, "window": 60}]
    create_provider(slow, BY_POOLS)
    for name in (OLD, NEW):
        start_picker(slow, name)
    style = {"trafficRoutings": routing(BY_POOLS), "gates": watched}
    step = {"replicas": 1, "traffic": "10%", "pause": {}}
    await at_rest(slow, step, {"replicas": "100%"}, canary=style, analysis={"from": "Prometheus"}, onFailure="Abort")
    slow.set_image("v2")
    await slow.until_state("AwaitingApproval")
    await slow.sleep(300)
    assert "finishedAt" not in slow.status["releaseGates"][0]
    slow.approve()
    await slow.until(lambda: (slow.status.get("finalising") or {}).get("task") == "Promote")
    # What the first pool says is no more of the stable version by then.
    pickers.slow = {OLD: 1.0, NEW: 50.0}
    await slow.until_state("Healthy", 7200)
    (record,) = slow.status["releaseGates"]
    assert "result" not in record
    assert "finishedAt" in record


async def test_nothing_is_measured_while_pickers_are_not_listed(world: MeasuredWorld) -> None:
    """As after a restart: a round of none would count as one in which nothing was there to be asked."""
    await released(world, Pickers(world), FIRST_TOKEN)
    await world.sleep(100)
    seen = observe(world.view, world.name, world.now)
    assert seen is not None
    assert seen.routing is not None
    assert {each.pod for one in wanted(Draft.of(seen)).measurements for each in one.new} == {NEW}
    unlisted = replace(seen, routing=replace(seen.routing, pickers={}), answers={})
    assert wanted(Draft.of(unlisted)).measurements == ()
    verdict = decide(unlisted).verdict
    assert verdict is not None
    assert "the pods of the pools' endpoint pickers are not listed yet" in verdict.message
    assert verdict.state == "Analyzing"
    late = decide(replace(unlisted, now=world.now + timedelta(hours=1))).verdict
    assert late is not None
    assert late.reason is Reason.GATE_INCONCLUSIVE
