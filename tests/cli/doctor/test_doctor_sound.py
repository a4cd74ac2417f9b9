"""Nothing is called broken that is not: at rest, and at any moment of a release that goes well."""

from __future__ import annotations

import pytest

from rollout_lws.cli.doctor.chain import chain
from rollout_lws.cli.doctor.links import Name, State, first
from rollout_lws.objects.resources import HTTP_ROUTES
from rollout_lws.objects.writes import Patch
from rollout_lws.rollout.decide import decide
from tests.cli.doctor.looking import assert_whole, broken, links, look, told
from tests.cli.doctor.styles import EVERY_STYLE, STYLES
from tests.scenarios.matrix import Moment
from tests.scenarios.matrix_acts import Act
from tests.scenarios.routed import BY_ROUTE, OTHERS, PROVIDERS, ROUTE, Provider, routed_at_rest
from tests.scenarios.scaled import create_autoscaler
from tests.scenarios.stories import PROMOTED_STEPS, at_rest, waiting_for_approval
from tests.scenarios.styles import Style
from tests.scenarios.test_matrix import sample, tell
from tests.scenarios.world import World

pytestmark = pytest.mark.looptime


@pytest.mark.parametrize("by", PROVIDERS, ids=str)
async def test_at_rest_every_link_is_ok(world: World, by: Provider) -> None:
    await routed_at_rest(world, by=by)
    found = await links(world)
    assert {each.state for each in found} == {State.OK}, told(found)


@pytest.mark.parametrize("style", EVERY_STYLE)
async def test_at_no_moment_of_a_release_that_goes_well_is_anything_broken(world: World, style: str) -> None:
    await at_rest(world, *PROMOTED_STEPS, **STYLES[style])
    await _goes_well(world)


@pytest.mark.parametrize("by", [BY_ROUTE, *(pytest.param(each, marks=pytest.mark.long) for each in OTHERS)], ids=str)
async def test_nor_of_one_that_shares_requests(world: World, by: Provider) -> None:
    await routed_at_rest(world, {"replicas": 1, "traffic": "20%", "pause": {}}, by=by)
    await _goes_well(world)


@pytest.mark.parametrize("style", EVERY_STYLE)
async def test_nor_of_one_that_holds_an_autoscaler(world: World, style: str) -> None:
    create_autoscaler(world)
    await at_rest(world, *PROMOTED_STEPS, **STYLES[style])
    await _goes_well(world)
    await assert_whole(world)
    await waiting_for_approval(world, "v3")
    world.request("Abort")
    while True:
        held = next(each for each in await links(world) if each.name is Name.AUTOSCALER)
        assert held.state is State.OK, held
        if world.state == "Aborted":
            break
    assert held.found == "scales as its owner says"


async def test_a_route_that_is_to_lose_its_only_annotation_is_looked_at_like_any_other(world: World) -> None:
    await routed_at_rest(world, {"replicas": 1, "traffic": "20%", "pause": {}})
    await waiting_for_approval(world)
    written = world.get(HTTP_ROUTES, ROUTE)
    assert written is not None
    world.request("Abort")
    await world.until_state("Aborted")
    await world.rest()
    world.stop_controller()
    world.patch(HTTP_ROUTES, ROUTE, {"metadata": {"annotations": written["metadata"]["annotations"]}})
    (back,) = (each for each in decide(look(world).observation).writes if each.resource == HTTP_ROUTES)
    assert isinstance(back, Patch)
    assert back.body == {"metadata": {"annotations": None}}
    assert (await broken(world)).name in (Name.CONTROLLER, Name.ROUTE)


async def _goes_well(world: World) -> None:
    await waiting_for_approval(world)
    while world.state != "Healthy":
        await assert_whole(world)
        if world.state == "AwaitingApproval":
            world.approve()


#: Acts of the story matrix after which nobody has to do anything.
_HARMLESS = ("finish", "rollback by template", "third template", "scale up", "scale down", "group lost in mid-step")
#: Of a story's writes each that many is looked after.
_EVERY = 23


@pytest.mark.long
@pytest.mark.parametrize(
    ("style", "traffic", "act", "moment"), [each for each in sample() if each.values[2].name in _HARMLESS]
)
async def test_nor_in_a_story_of_the_matrix_that_needs_nobody(
    world: World, style: Style, traffic: str, act: Act, moment: Moment
) -> None:
    writes = 0

    def nothing_is_broken(world: World) -> None:
        nonlocal writes
        writes += 1
        if writes % _EVERY == 0:
            found = chain(look(world))
            assert first(found, State.BROKEN) is None, told(found)

    world.checks.append(nothing_is_broken)
    await tell(world, style, traffic, act, moment, 2)
    assert writes > _EVERY
