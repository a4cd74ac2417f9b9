"""What gates ask is looked for before they come to nothing, and one without a verdict says what to type."""

from __future__ import annotations

from typing import Any

import pytest

from rollout_lws.cli.doctor.chain import chain
from rollout_lws.cli.doctor.links import Link, Name, State, first
from rollout_lws.objects.resources import CRON_JOBS, SERVICES
from tests.cli.doctor.looking import assert_whole, broken, links, look, told
from tests.scenarios.evals import EVALS, cron_job
from tests.scenarios.names import NAMESPACE
from tests.scenarios.routed import BY_POOLS, CANARY_POOL, POOL, create_provider, routing
from tests.scenarios.stories import at_rest
from tests.scenarios.test_traffic_second_pool import start_picker
from tests.scenarios.world import World

pytestmark = pytest.mark.looptime

FIRST_TOKEN = {"name": "first-token", "metric": {"signal": "TimeToFirstToken", "max": "1s"}}
BOARD = {"name": "board", "http": {"service": "approvals", "path": "/gate"}}


async def gated(world: World, *gates: dict[str, Any], **strategy: Any) -> None:
    """At rest; the first step of the plan has these gates."""
    first_step = {"replicas": 1, "gates": list(gates), "pause": {"duration": 0}}
    await at_rest(world, first_step, {"replicas": "100%"}, **strategy)


async def measured(world: World, *gates: dict[str, Any], **strategy: Any) -> None:
    await gated(world, *gates, **strategy)
    world.set_image("v2")
    await world.until_state("Analyzing")
    await world.rest()


def of_gates(found: tuple[Link, ...]) -> list[Link]:
    return [each for each in found if each.name is Name.GATES]


async def test_a_plan_without_gates_has_no_such_link(world: World) -> None:
    await at_rest(world)
    assert not of_gates(await links(world))


async def test_a_release_whose_gates_pass_is_sound_at_any_moment(world: World) -> None:
    world.server.create(CRON_JOBS, cron_job())
    await gated(world, EVALS)
    (only,) = of_gates(await links(world))
    assert (only.state, only.found) == (State.OK, "1 of the plan are ahead, and what they ask is there")
    world.set_image("v2")
    await world.until_state("Analyzing")
    while world.state != "Healthy":
        await assert_whole(world)


async def test_a_cron_job_that_is_missing_is_told_before_a_release_needs_it(world: World) -> None:
    await gated(world, EVALS)
    (only,) = of_gates(await links(world))
    assert (only.state, only.about) == (State.WAITING, "CronJob/evals")
    assert only.found == "gate evals: CronJob evals does not exist: create it, or name another one"
    world.set_image("v2")
    await world.until_state("Analyzing")
    found = await broken(world)
    assert (found.name, found.about) == (Name.GATES, "CronJob/evals")
    world.server.create(CRON_JOBS, cron_job())
    await world.rest()
    await assert_whole(world)


async def test_a_gate_that_was_skipped_needs_nothing_any_more(world: World) -> None:
    await measured(world, EVALS, {"name": "errors", "metric": {"signal": "ErrorRate", "max": "2%"}})
    world.request("SkipGate", gate="evals")
    await world.until(lambda: any(each.get("result") == "Skipped" for each in world.status["gates"]))
    of_evals = [each for each in of_gates(await links(world)) if each.about == "CronJob/evals"]
    assert [each.state for each in of_evals] == [State.WAITING]


async def test_leaders_without_a_port_have_no_figures(world: World) -> None:
    await measured(world, FIRST_TOKEN)
    found = await broken(world)
    assert (found.name, found.about) == (Name.GATES, "LeaderWorkerSet/llama")
    assert found.found == (
        "gate first-token: the leaders' template of llama declares no port, so its pods are not asked: declare the port"
        " of its metrics, or name one in spec.strategy.analysis.pods.port"
    )


@pytest.mark.parametrize(
    ("more", "asked", "declared", "lacks"),
    [
        ({}, None, 8000, False),
        ({}, "metrics", 8000, True),
        ({}, "8000", 8000, False),
        ({"from": "Prometheus", "prometheus": {"address": "http://prometheus:9090"}}, "metrics", 8000, False),
    ],
)
async def test_the_port_of_the_plan_is_looked_for(
    world: World, more: dict[str, Any], asked: str | None, declared: int, lacks: bool
) -> None:
    analysis = {**more, "pods": {"port": asked}} if asked else more
    await gated(world, FIRST_TOKEN, analysis=analysis)
    container = {"name": "vllm", "image": "vllm:v1", "ports": [{"name": "http", "containerPort": declared}]}
    world.patch_lws({"leaderWorkerTemplate": {"workerTemplate": {"spec": {"containers": [container]}}}})
    found = [each for each in of_gates(chain(look(world))) if each.about == "LeaderWorkerSet/llama"]
    assert [f"no port {asked}" in each.found for each in found] == ([True] if lacks else [])


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        (None, "Service approvals does not exist in the Rollout's namespace"),
        (
            {"type": "ExternalName", "externalName": "example.com"},
            "Service approvals is of type ExternalName, which leads elsewhere: it needs a selector",
        ),
        ({"ports": [{"port": 80}]}, "Service approvals has no selector, and only pods are asked: give it one"),
        (
            {"selector": {"app": "x"}, "ports": [{"name": "a", "port": 80}, {"name": "b", "port": 81}]},
            "Service approvals has 2 TCP ports: say which in port",
        ),
    ],
    ids=["missing", "external", "bare", "two ports"],
)
async def test_a_service_that_cannot_be_asked_is_named(world: World, spec: dict[str, Any] | None, why: str) -> None:
    if spec is not None:
        world.server.create(SERVICES, SERVICES.manifest("approvals", NAMESPACE, spec=spec))
    await measured(world, BOARD)
    found = await broken(world)
    assert (found.name, found.about, found.found) == (Name.GATES, "Service/approvals", f"gate board: {why}")


async def test_a_pool_whose_picker_does_not_run_has_no_figures(world: World) -> None:
    create_provider(world, BY_POOLS)
    picked = {"of": "EndpointPicker", "signal": "TimeToFirstToken", "maxToStable": "150%"}
    style = {"trafficRoutings": routing(BY_POOLS)}
    await gated(world, {"name": "picked", "metric": picked}, canary=style, analysis={"from": "Prometheus"})
    about = {each.about for each in of_gates(await links(world))}
    assert about == {f"InferencePool/{POOL}", f"InferencePool/{CANARY_POOL}"}
    start_picker(world, f"{POOL}-epp")
    await world.rest()
    (only,) = of_gates(await links(world))
    assert (only.state, only.found) == (
        State.WAITING,
        f"gate picked: the Service that InferencePool {CANARY_POOL} names in endpointPickerRef has no ready pod: start"
        " the picker",
    )
    start_picker(world, f"{CANARY_POOL}-epp")
    await world.rest()
    await assert_whole(world)


async def test_a_service_with_a_selector_is_in_order(world: World) -> None:
    spec = {"selector": {"app": "x"}, "ports": [{"port": 80}]}
    world.server.create(SERVICES, SERVICES.manifest("approvals", NAMESPACE, spec=spec))
    await measured(world, BOARD)
    await assert_whole(world)


async def test_a_gate_that_failed_says_what_to_type(world: World) -> None:
    world.server.create(CRON_JOBS, cron_job(exit_code="3", last_words="accuracy 0.61"))
    await measured(world, EVALS)
    await world.until_state("Stalled")
    found = await broken(world)
    job = world.status["gates"][0]["job"]
    assert (found.name, found.about) == (Name.GATES, "Rollout/llama")
    assert "accuracy 0.61" in found.found
    assert found.affected.startswith("users of the new version")
    assert found.next == (
        f"kubectl logs job/{job}",
        "kubectl rollout-lws abort llama",
        "kubectl rollout-lws retry llama",
        "kubectl rollout-lws skip llama evals",
    )


async def test_a_gate_that_came_to_nothing_is_told_after_what_it_lacks(world: World) -> None:
    await measured(world, EVALS)
    await world.until_state("Stalled")
    lack, verdict = of_gates(await links(world))
    assert (lack.about, lack.state) == ("CronJob/evals", State.BROKEN)
    assert lack.next == ("kubectl get cronjobs", "kubectl rollout-lws retry llama")
    assert (verdict.about, verdict.state) == ("Rollout/llama", State.BROKEN)
    assert verdict.next[0] == "kubectl rollout-lws retry llama"


async def test_what_may_not_be_read_is_not_missing(world: World) -> None:
    await measured(world, EVALS)
    found = await links(world, lambda resource: resource == CRON_JOBS)
    assert [each.state for each in of_gates(found)] == [State.UNKNOWN]
    assert first(found, State.BROKEN) is None, told(found)
