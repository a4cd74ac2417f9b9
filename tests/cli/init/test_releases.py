"""What `rollout-lws init` prints is released: applied as it is, a new version goes through all of its steps."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import yaml

from rollout_lws.api import Rollout
from rollout_lws.api.validation import problems
from rollout_lws.capacity import known
from rollout_lws.cli.init.pair import propose_pair
from rollout_lws.cli.init.proposal import Proposal, propose
from rollout_lws.cli.init.render import documents
from rollout_lws.objects.resources import SERVICES
from rollout_lws.sandbox.store import Object
from rollout_lws.targets.leader_worker_set import LeaderWorkerSet
from tests.cli.plan.snapshots import plan_of, snapshot
from tests.scenarios.paired import BLUE, GREEN, all_ready, apply, create_sides, set_weights, share
from tests.scenarios.paired_shift import ShiftJudge
from tests.scenarios.routed import PROVIDERS, Provider, create_provider
from tests.scenarios.stories import CANARY
from tests.scenarios.world import NAME, ROLLOUTS, World

pytestmark = [pytest.mark.looptime, pytest.mark.rare(3)]
KINDS = {each.kind: each for each in (ROLLOUTS, SERVICES)}


@asynccontextmanager
async def running(replicas: int, by: Provider | None) -> AsyncIterator[World]:
    """An LWS that nobody releases, with or without a way to it."""
    world = World()
    try:
        world.create_workload(replicas=replicas)
        if by is not None:
            create_provider(world, by)
        await world.until(
            lambda: len(world.groups()) == replicas and not any("!" in each for each in world.groups().values())
        )
        await world.rest()
        yield world
    finally:
        world.close()


def applied(world: World, made: Proposal) -> list[Object]:
    """What is printed, created through the API server with all of its rules."""
    found = list(yaml.safe_load_all(documents(made)))
    for each in found:
        world.server.create(KINDS[each["kind"]], each)
    return found


STRATEGIES = {each.flag: each for each in known.OF_ONE}
CASES = [
    *((strategy, 4, by) for strategy in STRATEGIES for by in (None, *PROVIDERS) if by or strategy != "shift"),
    *((strategy, 1, None) for strategy in STRATEGIES if strategy not in ("in-place", "shift")),
    *((strategy, 1, PROVIDERS[0]) for strategy in STRATEGIES if strategy != "in-place"),
    *((strategy, 9, PROVIDERS[0]) for strategy in STRATEGIES),
    ("in-place", 2, PROVIDERS[0]),
    ("in-place", 2, None),
]
DEFAULT = (
    ("canary", 4, None),
    ("blue-green", 4, PROVIDERS[0]),
    ("swap", 4, None),
    ("shift", 4, PROVIDERS[0]),
    ("in-place", 4, PROVIDERS[0]),
)
SOME = [case if case in DEFAULT else pytest.param(*case, marks=pytest.mark.long) for case in CASES]


@pytest.mark.one_in(4)
@pytest.mark.parametrize(("strategy", "replicas", "by"), SOME, ids=str)
async def test_what_is_printed_can_be_released(strategy: str, replicas: int, by: Provider | None) -> None:
    async with running(replicas, by) as world:
        made = propose(snapshot(world), LeaderWorkerSet, NAME, STRATEGIES[strategy])
        assert made.routing.routes is (by is not None)
        found = applied(world, made)
        assert [each["kind"] for each in found] == (["Rollout"] if by else ["Service", "Rollout"])
        assert problems(Rollout.model_validate(found[-1]).spec) == ()
        world.start_controller()
        await world.until_state("Healthy")
        plan = plan_of(world)
        assert plan.refusals == ()
        assert plan.strategy is STRATEGIES[strategy]
        assert plan.forecast is not None
        world.set_image("v2")
        for index in plan.forecast.approvals:
            await world.until(
                lambda: world.state == "AwaitingApproval" and world.status["currentStepIndex"] == index,  # noqa: B023
                f"step {index}",
                3600,
            )
            world.approve()
        new = dict.fromkeys(range(replicas), "v2")
        swapped = STRATEGIES[strategy].swaps
        serves = CANARY if swapped else NAME
        await world.until(lambda: world.state == "Healthy" and world.groups(serves) == new, "released", 7200)
        await world.rest()
        assert world.names()["leaderworkersets"] == ([NAME, CANARY] if swapped else [NAME])
        assert world.errors == []


@pytest.mark.one_in(3, of="touch")
@pytest.mark.parametrize("active", [BLUE, GREEN, ""])
@pytest.mark.parametrize("touch", ["", "RouteOnly"])
async def test_a_pair_as_it_is_printed_can_be_released(touch: str, active: str) -> None:
    world = World()
    try:
        create_sides(world)
        set_weights(world, {name: 100 if active in ("", name) else 0 for name in (BLUE, GREEN)})
        await all_ready(world, BLUE, GREEN)
        await world.rest()
        made = propose_pair(snapshot(world), LeaderWorkerSet, BLUE, GREEN, touch=touch)
        first, other = (GREEN, BLUE) if active == GREEN else (BLUE, GREEN)
        # The groups of the other side go, unless its owner scales it.
        assert made.active_side == (first if not touch or not active else "")
        (found,) = applied(world, made)
        assert problems(Rollout.model_validate(found).spec) == ()
        world.start_controller()
        await world.until_state("Healthy")
        assert world.status["active"] == first
        assert plan_of(world).refusals == ()
        apply(world, other, "v2")
        await world.until_state("AwaitingApproval", 3600)
        assert share(world, other) == pytest.approx(0.1)
        world.approve()
        await world.until_state("Healthy", 3600)
        await world.rest()
        assert (world.status["active"], share(world, other)) == (other, 1)
        assert world.groups(other) == dict.fromkeys(range(4), "v2")
        assert len(world.groups(first)) == (4 if touch else 0)
        assert world.errors == []
    finally:
        world.close()


@pytest.mark.parametrize("replicas", [1, 2, pytest.param(4, marks=pytest.mark.long)])
async def test_a_pair_that_shifts_as_it_is_printed_can_be_released(replicas: int) -> None:
    world = World()
    try:
        create_sides(world, replicas=replicas, beside=0)
        await all_ready(world, BLUE)
        await world.rest()
        (found,) = applied(world, propose_pair(snapshot(world), LeaderWorkerSet, BLUE, GREEN, shift=True))
        assert problems(Rollout.model_validate(found).spec) == ()
        world.start_controller()
        await world.until_state("Healthy")
        judge = ShiftJudge(world, replicas + 1, replicas)
        apply(world, GREEN, "v2")
        await world.until_state("AwaitingApproval", 3600)
        world.approve()
        await world.until_state("Healthy", 3600)
        await world.rest()
        assert (world.status["active"], share(world, GREEN)) == (GREEN, 1)
        assert world.groups(GREEN) == dict.fromkeys(range(replicas), "v2")
        assert judge.loads == replicas and world.errors == []
    finally:
        world.close()
