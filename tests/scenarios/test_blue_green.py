"""Blue-green: a full second set of groups, requests to it step by step, and back at once at any moment."""

from __future__ import annotations

from typing import Any

import pytest

from rollout_lws.objects.resources import LEADER_WORKER_SETS
from tests.scenarios.metered import NEW_ONLY, STABLE_ONLY, Metered, metered, shared
from tests.scenarios.stories import CANARY, assert_clean, at_rest, waiting_for_approval
from tests.scenarios.world import NAME, ROLLOUTS, World

pytestmark = pytest.mark.looptime

#: Half of green, all of it, and then requests.
STEPS: tuple[dict[str, Any], ...] = (
    {"replicas": "50%", "traffic": "0%", "pause": {}},
    {"replicas": "100%", "traffic": "0%", "pause": {}},
    {"replicas": "100%", "traffic": "50%", "pause": {}},
    {"replicas": "100%", "traffic": "100%", "pause": {}},
)
PLAIN: tuple[dict[str, Any], ...] = ({"replicas": "50%", "pause": {}}, {"replicas": "100%", "pause": {}})


def blue_green(*steps: dict[str, Any], replicas: int = 4) -> Any:
    return metered(*(steps or STEPS), replicas=replicas, style="blueGreen")


async def step(world: World, number: int) -> None:
    await world.until(
        lambda: world.state == "AwaitingApproval" and world.status["currentStepIndex"] == number, f"step {number}"
    )


async def test_green_is_made_in_full_gets_requests_as_the_steps_say_and_becomes_the_lws_by_one_load() -> None:
    async with blue_green() as m:
        world = m.world
        world.set_image("v2")
        for number, groups, share in ((1, 2, STABLE_ONLY), (2, 4, STABLE_ONLY), (3, 4, shared(0.5)), (4, 4, NEW_ONLY)):
            await step(world, number)
            assert world.groups(CANARY) == dict.fromkeys(range(groups), "v2")
            assert await m.all_shares() == {"users": share, "tagged": share, "direct": STABLE_ONLY}
            world.approve()
        await world.until(lambda: any(told.endswith("!") for told in world.groups().values()), "the renewal")
        begun = world.server.clock()
        await world.until(lambda: world.groups() == dict.fromkeys(range(4), "v2"), "all renewed")
        # A group of these loads for twelve seconds after its workers; four one after the other would take four times.
        assert world.server.clock() - begun < 20
        await m.finish()
        m.assert_unharmed()
        assert m.meter.cuts == []


async def test_its_status_is_in_the_words_of_blue_green_alone(world: World) -> None:
    await at_rest(world, *PLAIN, blueGreen={})
    assert "canaryStatus" not in world.status
    await waiting_for_approval(world)
    told = world.status["blueGreenStatus"]
    assert "canaryStatus" not in world.status
    assert (told["currentStepIndex"], told["currentStepState"], told["updatedReadyReplicas"]) == (1, "StepPaused", 2)
    assert told["updatedRevision"] == told["podTemplateHash"] != told["stableRevision"]
    record = world.get(world.RECORD, NAME)
    assert record is not None
    assert record["spec"]["releasePlan"]["rollingStyle"] == "BlueGreen"


async def test_its_last_step_asks_for_an_approval_though_it_has_all_groups(world: World) -> None:
    await at_rest(world, *PLAIN, blueGreen={})
    await waiting_for_approval(world)
    world.approve()
    await step(world, 2)
    assert world.groups(CANARY) == dict.fromkeys(range(4), "v2")
    await world.sleep(86_400)
    assert world.state == "AwaitingApproval"
    world.approve()
    await world.until_state("Healthy")
    await world.rest()
    assert_clean(world, "v2")


@pytest.mark.one_in(2)
@pytest.mark.parametrize("at", [1, 3, pytest.param(4, marks=pytest.mark.long)])
async def test_an_abort_at_any_step_restarts_nothing_and_loses_nothing(at: int) -> None:
    async with blue_green() as m:
        before = m.world.leader_uids()
        m.world.set_image("v2")
        for number in range(1, at):
            await step(m.world, number)
            m.world.approve()
        await step(m.world, at)
        await m.world.sleep(40)
        await m.abort()
        assert m.world.leader_uids() == before
        m.assert_unharmed()
        assert m.meter.cuts == []


async def renewing(m: Metered) -> None:
    """The stable LWS's groups have all gone down to be renewed."""
    m.world.set_image("v2")
    for number in range(1, 5):
        await step(m.world, number)
        m.world.approve()
    await m.world.until(lambda: all(told.endswith("!") for told in m.world.groups().values()), "the renewal")


async def test_an_abort_in_mid_promotion_brings_all_old_groups_back_at_once_while_green_serves() -> None:
    async with blue_green() as m:
        await renewing(m)
        m.world.request("Abort")
        begun = m.world.server.clock()
        await m.world.until(lambda: m.world.groups() == dict.fromkeys(range(4), "v1"), "all back")
        assert m.world.server.clock() - begun < 40
        await m.world.until_state("Aborted", 600)
        await m.settled()
        m.assert_unharmed()
        assert m.meter.cuts == []


async def test_everything_at_once_from_the_first_step_makes_green_whole_before_anything_of_blue_goes() -> None:
    async with blue_green() as m:
        world = m.world
        world.set_image("v2")
        await step(world, 1)
        world.request("PromoteFull")
        await world.until(lambda: any(told.endswith("!") for told in world.groups().values()), "the renewal", 300)
        assert world.groups(CANARY) == dict.fromkeys(range(4), "v2")
        assert await m.all_shares() == dict.fromkeys(("users", "tagged", "direct"), NEW_ONLY)
        await m.finish()
        m.assert_unharmed()


@pytest.mark.long
async def test_green_follows_the_number_of_groups(world: World) -> None:
    await at_rest(world, {"replicas": 2, "pause": {}}, blueGreen={})
    await waiting_for_approval(world)
    world.patch_lws({"replicas": 6})
    await world.until(lambda: world.groups() == dict.fromkeys(range(6), "v1"))
    world.approve()
    await world.until(lambda: world.groups(CANARY) == dict.fromkeys(range(6), "v2"), "green as large as blue")
    await world.until_state("Healthy")
    await world.rest()
    assert_clean(world, "v2", replicas=6)


async def test_one_group_is_released_with_another_beside_it() -> None:
    async with blue_green(replicas=1) as m:
        m.world.set_image("v2")
        for number in range(1, 5):
            await step(m.world, number)
            m.world.approve()
        await m.finish()
        m.assert_unharmed()
        assert m.meter.cuts == []


async def test_the_style_of_a_release_that_is_on_cannot_change(world: World) -> None:
    await at_rest(world, *PLAIN, blueGreen={})
    await waiting_for_approval(world)
    world.patch(ROLLOUTS, NAME, {"spec": {"strategy": {"blueGreen": None, "canary": {"steps": list(PLAIN)}}}})
    await world.until_state("Stalled")
    assert "restore spec.strategy.blueGreen" in world.condition("Stalled")["message"]
    assert world.get(LEADER_WORKER_SETS, CANARY) is not None
    world.patch(ROLLOUTS, NAME, {"spec": {"strategy": {"canary": None, "blueGreen": {"steps": list(PLAIN)}}}})
    await world.until_state("AwaitingApproval")
    world.patch(ROLLOUTS, NAME, {"spec": {"strategy": {"blueGreen": None, "canary": {"steps": list(PLAIN)}}}})
    await world.until_state("Stalled")
    world.request("Abort")
    await world.until_state("Aborted")
    await world.rest()
    assert_clean(world, "v1")
