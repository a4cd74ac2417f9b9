"""What becomes of a release that somebody drives with `kubectl kruise`: docs/kruise-plugin.md, row by row."""

from __future__ import annotations

from typing import Any

import pytest

from rollout_lws.objects.resources import INGRESSES, SERVICES
from tests.docs.pages import ROOT
from tests.scenarios.kinds import LWS, ORDERED, STATEFUL_SET, LeaderWorkerSets
from tests.scenarios.kruise_plugin import KruisePlugin, Refused
from tests.scenarios.routed import make, routed_at_rest, share
from tests.scenarios.stories import CANARY, PROMOTED_STEPS, assert_clean, at_rest, mid_promotion, waiting_for_approval
from tests.scenarios.styles import STYLES, Style
from tests.scenarios.world import NAME, NAMESPACE, ROLLOUTS, World

pytestmark = pytest.mark.looptime

PAGE = (ROOT / "docs" / "kruise-plugin.md").read_text()
#: Green in full before it gets requests.
GREEN: tuple[dict[str, Any], ...] = (
    {"replicas": 1, "traffic": "0%", "pause": {}},
    {"replicas": "100%", "traffic": "0%", "pause": {}},
    {"replicas": "100%", "traffic": "50%", "pause": {}},
    {"replicas": "100%", "traffic": "100%", "pause": {}},
)
PORTS = [{"port": 80, "targetPort": 8000}]
ROUTED: tuple[dict[str, Any], ...] = (
    {"replicas": 1, "pause": {}},
    {"replicas": 2, "traffic": "30%", "pause": {}},
    {"replicas": "100%", "pause": {}},
)


@pytest.fixture(
    params=[LWS, STATEFUL_SET, pytest.param(ORDERED, marks=pytest.mark.long)],
    ids=str,
    autouse=True,
)
def kind(world: World, request: pytest.FixtureRequest) -> LeaderWorkerSets:
    """The plugin reads and writes the Rollout alone, so each kind is driven in the same way."""
    world.kind = request.param
    style = getattr(request.node, "callspec", None)
    chosen = style.params.get("style") if style is not None else None
    if world.kind is not LWS and isinstance(chosen, Style) and chosen.spared:
        pytest.skip("a StatefulSet has no surge groups")
    return world.kind


@pytest.fixture
def plugin(world: World) -> KruisePlugin:
    return KruisePlugin(world.server)


async def at_step(world: World, number: int) -> None:
    await world.until(
        lambda: world.state == "AwaitingApproval" and world.status["currentStepIndex"] == number, f"step {number}"
    )


async def refused(asking: Any) -> None:
    """The plugin refuses, in words that the page has."""
    with pytest.raises(Refused) as told:
        await asking
    assert str(told.value) in PAGE


def events(world: World) -> list[str]:
    return [event.note for event in world.events if event.reason == "ActionRefused"]


# approve


@pytest.mark.one_in(4)
@pytest.mark.parametrize("style", STYLES, ids=str)
async def test_each_approval_is_one_step_and_the_last_one_promotes(
    world: World, plugin: KruisePlugin, style: Style
) -> None:
    await at_rest(world, *PROMOTED_STEPS, **{style.key: dict(style.words)})
    await refused(plugin.approve())
    world.set_image("v2")
    await world.until_state("Loading")
    await refused(plugin.approve())
    for number in (1, 2):
        await at_step(world, number)
        await plugin.approve()
    if style.key == "blueGreen":
        await at_step(world, 3)
        await plugin.approve()
    await world.until_state("Healthy")
    await world.rest()
    assert_clean(world, "v2")
    await refused(plugin.approve())


async def test_of_two_approvals_at_the_same_moment_one_counts(world: World, plugin: KruisePlugin) -> None:
    await at_rest(world, *PROMOTED_STEPS)
    await waiting_for_approval(world)
    seen = await plugin.seen()
    await plugin.approve(seen)
    await plugin.approve(seen)
    await world.until(lambda: world.status["currentStepIndex"] == 2, "step 2")
    await plugin.approve(seen)
    assert world.state == "Loading"
    await at_step(world, 2)
    await world.sleep(600)
    assert (world.state, world.status["currentStepIndex"]) == ("AwaitingApproval", 2)


async def test_an_approval_that_was_meant_for_the_step_before_approves_the_one_that_waits(
    world: World, plugin: KruisePlugin
) -> None:
    """The patch does not say which step was seen; `rollout-lws promote` does."""
    await at_rest(world, {"replicas": 1, "pause": {}}, {"replicas": 2, "pause": {}}, {"replicas": 3, "pause": {}})
    await waiting_for_approval(world)
    seen = await plugin.seen()
    await plugin.approve(seen)
    await at_step(world, 2)
    await plugin.approve(seen)
    await at_step(world, 3)


async def test_an_approval_cuts_a_timed_pause_short(world: World, plugin: KruisePlugin) -> None:
    await at_rest(world, {"replicas": 1, "pause": {"duration": 3600}}, {"replicas": 2, "pause": {}})
    world.set_image("v2")
    await world.until_state("Pausing")
    await plugin.approve()
    await at_step(world, 2)


# pause, resume


async def test_a_release_that_is_paused_keeps_an_approval_until_it_is_resumed(
    world: World, plugin: KruisePlugin
) -> None:
    await at_rest(world, *PROMOTED_STEPS)
    await waiting_for_approval(world)
    await refused(plugin.resume())
    await plugin.pause()
    await world.until_state("Paused")
    await refused(plugin.pause())
    await plugin.approve()
    await world.sleep(600)
    assert (world.state, world.status["currentStepIndex"]) == ("Paused", 1)
    await plugin.resume()
    await at_step(world, 2)
    assert "paused" not in world.rollout["spec"]["strategy"]


async def test_a_promotion_is_paused_and_goes_on(world: World, plugin: KruisePlugin) -> None:
    await at_rest(world)
    await mid_promotion(world)
    await plugin.pause()
    await world.until_state("Paused")
    await world.rest()
    assert "v1" in world.groups().values()
    await plugin.resume()
    await world.until_state("Healthy")
    await world.rest()
    assert_clean(world, "v2")


# undo --fast


async def test_a_fast_undo_takes_all_requests_from_green_and_keeps_its_groups(
    world: World, plugin: KruisePlugin
) -> None:
    await routed_at_rest(world, *GREEN, replicas=4, style="blueGreen")
    await waiting_for_approval(world)
    await refused(plugin.undo_fast())
    for number in (2, 3):
        await plugin.approve()
        await at_step(world, number)
    assert share(world) == pytest.approx(0.5)
    await plugin.undo_fast()
    await at_step(world, 2)
    assert share(world) == 0
    assert world.groups(CANARY) == dict.fromkeys(range(4), "v2")


@pytest.mark.one_in(3)
@pytest.mark.parametrize("style", [each for each in STYLES if each.key == "canary"], ids=str)
async def test_a_fast_undo_goes_back_to_the_earlier_step_without_requests(
    world: World, plugin: KruisePlugin, style: Style
) -> None:
    await routed_at_rest(world, *ROUTED, replicas=4, words=style.words)
    await waiting_for_approval(world)
    await plugin.approve()
    await at_step(world, 2)
    assert share(world) == pytest.approx(0.3)
    await plugin.undo_fast()
    await at_step(world, 1)
    await world.rest()
    assert sorted({**world.groups(CANARY), **world.groups()}.values()).count("v2") == (0 if style.apart else 1)
    assert not style.apart or world.groups(CANARY) == {0: "v2"}
    assert share(world) == 0


async def test_a_fast_undo_takes_automatic_traffic_for_none(world: World, plugin: KruisePlugin) -> None:
    """It goes back a step, and the new version keeps the share of that step; `rollout-lws abort` takes all of it."""
    steps = ({"replicas": count, "traffic": "auto", "pause": {}} for count in (1, 2))
    await routed_at_rest(world, *steps, {"replicas": "100%", "pause": {}}, replicas=4)
    await waiting_for_approval(world)
    await plugin.approve()
    await at_step(world, 2)
    await plugin.undo_fast()
    await at_step(world, 1)
    assert share(world) == pytest.approx(1 / 5)


async def test_a_fast_undo_finds_no_step_where_all_have_requests(world: World, plugin: KruisePlugin) -> None:
    await routed_at_rest(world, *({"replicas": count, "traffic": f"{count}0%", "pause": {}} for count in (1, 2, 3)))
    await waiting_for_approval(world)
    await plugin.approve()
    await at_step(world, 2)
    await refused(plugin.undo_fast())


async def test_a_fast_undo_does_not_stop_a_promotion_and_the_rollout_says_so(
    world: World, plugin: KruisePlugin
) -> None:
    await at_rest(world)
    await mid_promotion(world)
    await plugin.undo_fast()
    await world.until(lambda: bool(events(world)), "the answer")
    (told,) = events(world)
    assert told.startswith("jump to step 2 was refused: the release is being promoted") and told in PAGE
    assert world.status["canaryStatus"]["nextStepIndex"] == -1
    await world.until_state("Healthy")
    await world.rest()
    assert_clean(world, "v2")


async def test_a_fast_undo_of_a_release_that_is_over_is_refused_and_forgotten(
    world: World, plugin: KruisePlugin
) -> None:
    await at_rest(world, *PROMOTED_STEPS)
    await waiting_for_approval(world)
    await plugin.approve()
    await at_step(world, 2)
    await plugin.approve()
    await world.until_state("Healthy")
    await world.rest()
    await plugin.undo_fast()
    await world.rest()
    assert ["no release is in its steps" in each for each in events(world)] == [True]
    world.set_image("v3")
    for number in (1, 2):
        await at_step(world, number)
        await plugin.approve()
    await world.until_state("Healthy")
    await world.rest()
    assert_clean(world, "v3")


async def test_a_fast_undo_while_it_is_paused_is_carried_out_when_it_is_resumed(
    world: World, plugin: KruisePlugin
) -> None:
    await at_rest(world, *PROMOTED_STEPS)
    await waiting_for_approval(world)
    await plugin.approve()
    await at_step(world, 2)
    await plugin.pause()
    await world.until_state("Paused")
    await plugin.undo_fast()
    await world.rest()
    assert world.groups(CANARY) == {0: "v2", 1: "v2"}
    await plugin.resume()
    await at_step(world, 1)
    await world.rest()
    assert world.groups(CANARY) == {0: "v2"}


# describe


@pytest.mark.one_in(4)
@pytest.mark.parametrize("style", STYLES, ids=str)
async def test_what_describe_reads_without_a_question_is_there_from_the_adoption_on(world: World, style: Style) -> None:
    """It ends in a panic where the sub-status is missing, or where a header's match has no type."""
    matched = {"matches": [{"headers": [{"name": "x-team", "value": "a"}]}]}
    steps = ({"replicas": 1, "pause": {}, **matched}, {"replicas": "100%", "pause": {}})
    await routed_at_rest(world, *steps, replicas=4, style=style.key, words=style.words)
    plan = world.rollout["spec"]["strategy"][style.key]
    assert plan["steps"][0]["matches"][0]["headers"][0]["type"] == "Exact"
    for _ in range(2):
        sub = world.status[style.sub_status]
        assert {"currentStepIndex", "currentStepState", "stableRevision", "podTemplateHash"} <= sub.keys()
        if world.state == "Healthy":
            await waiting_for_approval(world)


# Manifests


@pytest.mark.parametrize(
    ("said", "beside"),
    [({"enableExtraWorkloadForCanary": False}, False), ({"enableExtraWorkloadForCanary": True}, True), ({}, True)],
    ids=["in place", "an extra workload", "not said"],
)
async def test_a_manifest_as_written_for_kruise_is_released(
    world: World, plugin: KruisePlugin, kind: LeaderWorkerSets, said: dict[str, bool], beside: bool
) -> None:
    """Kruise releases a StatefulSet in place where nothing is said: there the manifest has to say it."""
    world.create_workload(replicas=4, size=min(2, kind.largest))
    make(world, SERVICES, "echoserver", spec={"selector": {"app": "llama", **kind.leaders_selected()}, "ports": PORTS})
    canary = {
        **said,
        "steps": [
            {"traffic": "20%", "replicas": 1, "pause": {}},
            {"traffic": "50%", "replicas": "50%", "pause": {"duration": 60}},
            {"traffic": "100%", "replicas": "100%"},
        ],
        "trafficRoutings": [{"service": "echoserver", "ingress": {"classType": "nginx", "name": "echoserver"}}],
    }
    backend = {"service": {"name": "echoserver", "port": {"number": 80}}}
    rule = {"host": "echo.example.com", "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": backend}]}}
    make(world, INGRESSES, "echoserver", spec={"ingressClassName": "nginx", "rules": [rule]})
    ref = {"apiVersion": kind.resource.api_version, "kind": kind.resource.kind, "name": NAME}
    body = ROLLOUTS.manifest(NAME, NAMESPACE, spec={"workloadRef": ref, "strategy": {"canary": canary}})
    world.server.create(ROLLOUTS, body)
    world.start_controller()
    await world.until_state("Healthy")
    await waiting_for_approval(world)
    assert bool(world.groups(CANARY)) is beside
    assert [*world.groups().values()].count("v2") == (0 if beside else 1)
    await plugin.approve()
    await world.until_state("Healthy", 1200)
    await world.rest()
    assert world.groups() == world.all_at("v2") and not world.groups(CANARY)
