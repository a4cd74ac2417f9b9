"""Killed after any single write, a release with traffic gives everything back and loses no request on the way."""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from rollout_lws.objects.resources import INGRESSES
from rollout_lws.rollout.reasons import EventReason
from tests.scenarios.crashes import PARTS, kill_after_every_write
from tests.scenarios.custom import BY_MESH
from tests.scenarios.invariants import always_serving, at_most_down, share_only_for_who_serves
from tests.scenarios.routed import (
    AND_SCRIPTS,
    EACH,
    INGRESS,
    ROUTES,
    Provider,
    assert_given_back,
    by_each,
    routed_at_rest,
)
from tests.scenarios.stories import CANARY, waiting_for_approval
from tests.scenarios.world import World

STEPS = {"replicas": 1, "traffic": "20%", "pause": {}}, {"replicas": 2, "traffic": "50%", "pause": {"duration": 1}}

#: What the requests are shared by, and what was there before any release.
Begun = tuple[Provider, dict[str, Any]]


def no_ingress_to_nobody(world: World) -> None:
    """Whatever a canary Ingress takes somebody of the new version answers."""
    if world.get(INGRESSES, f"{INGRESS}-canary") is not None:
        assert any(not told.endswith("!") for told in world.groups(CANARY).values()), world.groups(CANARY)


def at_rest(by: Provider) -> Callable[[World], Awaitable[Begun]]:
    async def begin(world: World) -> Begun:
        before = await routed_at_rest(world, *STEPS, replicas=4, by=by, gracePeriodSeconds=1, drainSeconds=2)
        world.checks += [at_most_down(1), always_serving, share_only_for_who_serves(), no_ingress_to_nobody]
        return by, before

    return begin


async def settled(world: World, begun: Begun) -> None:
    by, before = begun
    await world.rest()
    assert_given_back(world, before, by)
    assert [each.note for each in world.events if each.reason == EventReason.ROUTE_RESET] == []


async def finished(world: World, begun: Begun) -> None:
    await waiting_for_approval(world)
    world.approve()
    await world.until(lambda: world.state == "Healthy" and set(world.groups().values()) == {"v2"})
    await settled(world, begun)


async def aborted(world: World, begun: Begun) -> None:
    await waiting_for_approval(world)
    world.request("Abort")
    await world.until_state("Aborted")
    await settled(world, begun)


async def aborted_in_mid_promotion(world: World, begun: Begun) -> None:
    await waiting_for_approval(world)
    world.approve()
    await world.until(lambda: any(told.startswith("v2") for told in world.groups().values()), "a renewed group")
    world.request("Abort")
    await world.until(lambda: world.state in ("Aborted", "Healthy"))
    await settled(world, begun)


async def taken_back_while_nobody_looks(world: World, begun: Begun) -> None:
    world.set_image("v2")
    await world.until(lambda: not world.running or world.state == "AwaitingApproval")
    world.set_image("v1")
    await world.until(lambda: world.running and world.state == "Healthy")
    await settled(world, begun)
    assert world.names()["batchreleases"] == []


Story = Callable[[World, Begun], Awaitable[None]]


def dealt() -> Iterator[Any]:
    """Every story by every provider; of the shortest one each provider has a part in the default run."""
    for by, story, part in itertools.product(
        (*AND_SCRIPTS, BY_MESH), (finished, aborted, aborted_in_mid_promotion), range(PARTS)
    ):
        late = part > 0 or story is not aborted
        yield pytest.param(
            by, story, part, marks=[pytest.mark.long] * late, id=f"{story.__name__}-by-{by}-{part + 1}-of-{PARTS}"
        )


@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.long) for part in range(1, PARTS))])
@by_each(EACH)
def test_one_that_is_down_while_the_version_is_taken_back_gives_back_what_it_had_begun_to_borrow(part: int) -> None:
    kill_after_every_write(at_rest(ROUTES.provider), taken_back_while_nobody_looks, part)


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("by", "story", "part"), [*dealt()])
def test_a_controller_killed_after_any_write_gives_everything_back(by: Provider, story: Story, part: int) -> None:
    kill_after_every_write(at_rest(by), story, part)
