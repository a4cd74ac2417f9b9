"""In place and surge where reviewers found holes: each story once ended badly."""

from __future__ import annotations

import pytest

from tests.scenarios.one_workload import IN_PLACE, over, routed_in_care, step
from tests.scenarios.routed import assert_given_back
from tests.scenarios.world import World

pytestmark = pytest.mark.looptime


async def promoting(world: World) -> None:
    """v2 in half of the groups, and the promotion begins."""
    world.set_image("v2")
    for number in (1, 2):
        await step(world, number)
        world.approve()
    await world.until(lambda: (world.status.get("finalising") or {}).get("task") == "Promote", "the promotion")


async def test_a_promotion_whose_new_groups_are_scaled_away_does_not_wait_for_their_endpoints(world: World) -> None:
    before = await routed_in_care(world, IN_PLACE)
    await promoting(world)
    world.checks.clear()
    world.patch_lws({"replicas": 2})
    await over(world, "v2")
    assert_given_back(world, before)
