"""Releases that share requests by objects of kinds which only a script knows."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.scenarios.custom import BY_MESH, MESH, MESH_ROUTES, MESH_RULES, RULE
from tests.scenarios.routed import SERVICE, assert_given_back, routed_at_rest
from tests.scenarios.shell import ShellWorld
from tests.scenarios.stories import waiting_for_approval
from tests.scenarios.world import World

pytestmark = pytest.mark.looptime
CANARY_SERVICE = f"{SERVICE}-canary"
STEPS: tuple[dict[str, Any], ...] = (
    {"replicas": 1, "traffic": "20%", "pause": {}},
    {"replicas": 2, "traffic": "40%", "pause": {}},
)


def shares(world: World) -> dict[str, int | None]:
    """Weight by host in the route's rule without matches."""
    live = world.get(MESH_ROUTES, MESH)
    assert live is not None
    rule = next(each for each in live["spec"]["http"] if "match" not in each)
    return {each["destination"]["host"]: each.get("weight") for each in rule["route"]}


@pytest.fixture(params=[World, ShellWorld], ids=["decisions", "controller"])
async def made(request: pytest.FixtureRequest) -> AsyncIterator[World]:
    """A world whose decisions are made over its store, and one with the whole controller in it."""
    world: World = request.param()
    yield world
    if isinstance(world, ShellWorld):
        await world.gone()
    world.close()


async def test_a_release_goes_through_its_shares_and_gives_everything_back(made: World) -> None:
    world = made
    before = await routed_at_rest(world, *STEPS, by=BY_MESH)
    await waiting_for_approval(world)
    assert shares(world) == {SERVICE: 80, CANARY_SERVICE: 20}
    rule = world.get(MESH_RULES, RULE)
    assert rule is not None and [each["name"] for each in rule["spec"]["subsets"]] == ["canary"]
    world.approve()
    await world.until(lambda: world.status["currentStepIndex"] == 2 and world.state == "AwaitingApproval")
    assert shares(world) == {SERVICE: 60, CANARY_SERVICE: 40}
    world.approve()
    await world.until_state("Healthy", 1200)
    await world.rest()
    assert_given_back(world, before, BY_MESH)
    assert world.groups() == world.all_at("v2")
