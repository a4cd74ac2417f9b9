"""A step that asks for most groups at once: it reaches its approval, or the release says why it never would."""

from __future__ import annotations

from typing import Any

import pytest

from rollout_lws.rollout.reasons import Reason
from tests.scenarios.one_workload import IN_PLACE, in_care, over, routed_in_care, step
from tests.scenarios.routed import routed_at_rest, share
from tests.scenarios.told import assert_only_held, assert_stalled, tells
from tests.scenarios.world import World

pytestmark = pytest.mark.looptime

TOO_FEW = (
    "step 1 sends all requests to 4 of 6 groups, which cannot carry them: raise its replicas to 100%, or lower its"
    " traffic"
)
UNSHARED = (
    "step 1 sends 100% of requests to 2 groups of the stable version, 3 times what a group has at rest and more than"
    " the 2 times that it may have: lower its replicas, or raise its traffic to at least 34%"
)


def plan(traffic: str | None, groups: int | str = 4) -> tuple[dict[str, Any], ...]:
    """So many groups with an approval, and then all."""
    shares = {"traffic": traffic} if traffic is not None else {}
    return {"replicas": groups, **shares, "pause": {}}, {"replicas": "100%"}


def take(world: World, unavailable: int) -> None:
    """Groups that may be down at once."""
    world.checks.clear()
    world.patch_lws({"rolloutStrategy": {"rollingUpdateConfiguration": {"maxUnavailable": unavailable}}})


@pytest.mark.parametrize(("traffic", "why"), [("100%", TOO_FEW), (None, UNSHARED)])
async def test_a_share_that_groups_could_not_carry_is_refused_until_the_plan_has_another(
    world: World, traffic: str | None, why: str
) -> None:
    await routed_in_care(world, IN_PLACE, *plan(traffic), replicas=6)
    before = world.leader_uids()
    world.set_image("v2")
    await world.rest()
    assert_stalled(world, Reason.ROUTE_PROBLEM, why, phase="Healthy")
    assert_only_held(world, before)
    world.patch_rollout({"strategy": {"canary": {"steps": [*plan("67%")]}}})
    await step(world, 1)
    assert share(world) == pytest.approx(0.67)
    world.approve()
    await over(world, "v2")


@pytest.mark.one_in(2)
@pytest.mark.parametrize("unavailable", [1, 3])
@pytest.mark.parametrize(("traffic", "shared"), [(None, None), ("auto", 0.67), ("90%", 0.9)])
async def test_four_of_six_groups_are_renewed_in_one_step(
    world: World, traffic: str | None, shared: float | None, unavailable: int
) -> None:
    if traffic is None:
        await in_care(world, IN_PLACE, *plan(None), replicas=6)
    else:
        await routed_in_care(world, IN_PLACE, *plan(traffic), replicas=6)
    take(world, unavailable)
    world.set_image("v2")
    await step(world, 1)
    assert world.groups() == IN_PLACE.new(4, replicas=6)
    assert shared is None or share(world) == pytest.approx(shared)
    world.approve()
    await over(world, "v2")


@pytest.mark.parametrize("threshold", ["20%", "34%"])
@pytest.mark.parametrize("capacity", ["InPlace", "Shift", "Surge", "ExtraWorkload"])
async def test_groups_that_may_fail_are_made_before_the_share_needs_them(
    world: World, capacity: str, threshold: str
) -> None:
    words = {"capacity": capacity, "failureThreshold": threshold}
    await routed_at_rest(world, *plan("100%"), replicas=6, words=words)
    world.checks.clear()
    world.set_image("v2")
    await step(world, 1)
    assert share(world) == 1
    world.approve()
    await world.until_state("Healthy", 1200)


@pytest.mark.parametrize("traffic", ["90%", "75%"])
async def test_a_share_does_not_come_before_its_groups(world: World, traffic: str) -> None:
    words = {"capacity": "InPlace", "failureThreshold": "34%"}
    await routed_at_rest(world, *plan(traffic), replicas=6, words=words)
    early: list[tuple[float, dict[int, str]]] = []

    def follows(seen: World) -> None:
        # One that terminates makes room for the last of the step's groups.
        if sum(tag == "v1" for tag in seen.groups().values()) > 2 and share(seen) > 0.6:
            early.append((share(seen), seen.groups()))

    world.checks[:] = [follows]
    world.set_image("v2")
    await step(world, 1)
    assert early == []
    assert share(world) == pytest.approx(int(traffic[:-1]) / 100)


@tells({Reason.ROUTING: TOO_FEW})
async def test_a_workload_that_has_grown_too_large_for_the_share_says_what_to_change(world: World) -> None:
    await routed_in_care(world, IN_PLACE, *plan("100%"), replicas=5)
    world.set_image("v2")
    await step(world, 1)
    world.checks.clear()
    world.patch_lws({"replicas": 6})
    await world.sleep(60)
    assert (world.state, world.status["message"]) == ("Routing", TOO_FEW)
    world.patch_rollout({"strategy": {"canary": {"steps": [*plan("75%")]}}})
    await step(world, 1)
    assert share(world) == pytest.approx(0.75)
    world.approve()
    await over(world, "v2")
