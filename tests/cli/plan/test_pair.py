"""Releases of a pair are what `rollout-lws plan` says: shares, loads of groups, time, the objects that are written."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from rollout_lws.cli.plan.model import Plan, Sides
from rollout_lws.cli.plan.planning import make
from rollout_lws.cli.plan.quotas import short_of
from rollout_lws.cli.plan.show import lines
from rollout_lws.cli.plan.values import value
from rollout_lws.objects.resources import LWS_NAME, SERVICES
from rollout_lws.sandbox.behaviours.cluster import Options
from rollout_lws.sandbox.behaviours.faults import Timing
from tests.cli.plan.snapshots import plan_of, seen, services_of
from tests.cli.plan.test_releases import (
    BESIDES,
    LEADER_LONGER,
    SETTLES,
    WORKERS,
    Accelerated,
    Meter,
    new_version,
    written,
)
from tests.cli.plan.watched import Watch
from tests.scenarios import routed
from tests.scenarios.gauge import Gauge
from tests.scenarios.paired import (
    BLUE,
    GREEN,
    all_ready,
    apply,
    create_sides,
    pair_at_rest,
    rollout,
    set_weights,
    share,
)
from tests.scenarios.world import ROLLOUTS, World

pytestmark = pytest.mark.looptime
#: gracePeriodSeconds of the Rollout, by default.
GRACE = 3


def version_of(name: str, replicas: int = 4, tag: str = "v2") -> dict[str, Any]:
    """The manifest of a side with the new version."""
    made = new_version() if tag == "v2" else World.LWS
    assert isinstance(made, dict)
    return {**made, "metadata": {"name": name}, "spec": {**made["spec"], "replicas": replicas}}


@dataclass(frozen=True)
class Case:
    """A plan whose steps are groups, traffic and pause (None: an approval). ``parked``: the inactive side has no groups
    before its next version is applied.
    """

    steps: tuple[tuple[int | str, str | None, int | None], ...]
    active: int = 4
    inactive: int = 4
    parked: bool = True

    def __str__(self) -> str:
        steps = ",".join(f"{groups}@{traffic}+{pause}" for groups, traffic, pause in self.steps)
        return f"{self.active} to {self.inactive}{' parked' if self.parked else ''}: {steps}"

    @property
    def words(self) -> list[dict[str, Any]]:
        return [
            {"replicas": groups, "pause": {} if pause is None else {"duration": pause}}
            | ({"traffic": traffic} if traffic else {})
            for groups, traffic, pause in self.steps
        ]


HALVES = (("25%", "20%", None), ("100%", "50%", None))
CASES = [
    Case(HALVES),
    Case(HALVES, parked=False),
    Case((("50%", "25%", 60), ("100%", "100%", 20))),
    Case((("100%", "100%", None),), inactive=3),
    Case((("50%", "auto", None), ("100%", "auto", None)), inactive=6),
    Case(((1, None, None),), active=3, inactive=2),
]
SOME = [case if at < 2 else pytest.param(case, marks=pytest.mark.long) for at, case in enumerate(CASES)]


@asynccontextmanager
async def pair(*steps: dict[str, Any], active: int = 4, inactive: int = 4) -> AsyncIterator[World]:
    """Two sides at v1, at rest."""
    world = World(Options(timing=Timing(ready_after=WORKERS, leader_longer=LEADER_LONGER)))
    world.containers = Accelerated()
    try:
        await pair_at_rest(world, *steps, replicas=active, beside=inactive)
        yield world
    finally:
        world.close()


@pytest.mark.parametrize("case", SOME, ids=str)
async def test_a_release_is_what_its_plan_says(case: Case) -> None:
    standing = 0 if case.parked else case.inactive
    async with pair(*case.words, active=case.active, inactive=standing) as world:
        plan = make(seen(world, version_of(GREEN, case.inactive)), seen(world), services=services_of(world))
        assert plan.refusals == ()
        assert plan.forecast is not None
        assert plan.sides == Sides(BLUE, case.active, GREEN, case.inactive)
        assert (plan.forecast.loads, plan.forecast.windows, plan.forecast.disrupted) == (0, 0, 0)
        meter, begun = Meter(world), (len(world.writes), len(world.labels))
        assert plan.now == meter.now
        apply(world, GREEN, "v2", replicas=case.inactive)
        await world.until(lambda: [*world.groups(GREEN).values()] == ["v2"] * case.inactive, "all loaded", 3600)
        gauge, watch = Gauge(world, case.active), Watch(world, plan)
        for index in plan.forecast.approvals:
            await world.until(
                lambda: world.state == "AwaitingApproval" and world.status["currentStepIndex"] == index,  # noqa: B023
                f"step {index}",
                3600,
            )
            await world.sleep(SETTLES)
            row = plan.parts[index - 1].row
            assert share(world, GREEN) == pytest.approx(row.share)
            rest = {round(each, 6) for each in gauge.carried().values()}
            assert rest == {round(each, 6) for each in (row.load_new, row.load_stable) if each}
            watch.approves()
            world.approve()
        await world.until(lambda: world.status["active"] == GREEN and world.state == "Healthy", "the end", 3600)
        took = gauge.seconds - SETTLES * len(plan.forecast.approvals)
        # Of a side that stood, groups were renewed one after the other, and routers knew of the first ones.
        least = plan.forecast.seconds - (0 if case.parked else GRACE)
        assert least - SETTLES * len(plan.forecast.approvals) <= took <= plan.forecast.seconds + BESIDES
        assert (gauge.loads, gauge.windows, gauge.disrupted) == (0, 0, 0)
        assert gauge.ready == plan.forecast.ready
        assert gauge.peak_load == pytest.approx(max(1.0, case.active / case.inactive))
        assert plan.forecast.peak_load >= gauge.peak_load
        gauge.stop()
        watch.assert_as_drawn(BESIDES, SETTLES)
        await world.rest()
        assert meter.most == plan.peak
        assert Meter(world).now == plan.afterwards
        done = written([*world.writes[begun[0] :], *world.labels[begun[1] :]])
        assert done == {(each.resource, each.name, verb) for each in plan.writes for verb in each.verbs}
        after = plan_of(world)
        assert after.sides == Sides(GREEN, case.inactive, BLUE, case.active)
        assert (after.change, after.refusals) == ("", ())


async def test_an_adoption_is_what_its_plan_says() -> None:
    world = World(Options(timing=Timing(ready_after=WORKERS, leader_longer=LEADER_LONGER)))
    world.containers = Accelerated()
    try:
        create_sides(world)
        await all_ready(world, BLUE, GREEN)
        await world.rest()
        made = rollout()
        plan = make(seen(world, made, version_of(GREEN)), seen(world, made))
        assert (plan.refusals, plan.cautions[0][:17]) == ((), "the roles change ")
        assert plan.change
        world.server.create(ROLLOUTS, made)
        world.start_controller()
        await world.until_state("Healthy")
        apply(world, GREEN, "v2")
        for index in (1, 2):
            await world.until(
                lambda: world.state == "AwaitingApproval" and world.status["currentStepIndex"] == index,  # noqa: B023
                f"step {index}",
                3600,
            )
            world.approve()
        await world.until(lambda: world.status["active"] == GREEN and world.state == "Healthy", "the end", 3600)
        await world.rest()
        done = written([*world.writes, *world.labels])
        assert done == {(each.resource, each.name, verb) for each in plan.writes for verb in each.verbs}
    finally:
        world.close()


async def test_in_mid_release_the_plan_says_where_it_is_and_how_to_go_back() -> None:
    async with pair() as world:
        before = make(seen(world, version_of(GREEN)), seen(world), services=services_of(world))
        apply(world, GREEN, "v2")
        await world.until_state("AwaitingApproval", 3600)
        plan = plan_of(world)
        assert (plan.at, plan.parts, plan.change) == ("step 1", before.parts, before.change)
        shown = lines(plan)
        assert "Now at        step 1; after it about 33s" in shown
        assert any(each.startswith("> 1 ") for each in shown)
        world.request("Abort")
        await world.until_state("Aborted")
        (refusal,) = plan_of(world).refusals
        assert refusal.startswith("this version was aborted (")


def told(plan: Plan, words: str) -> bool:
    return any(words in each for each in plan.cautions)


async def test_what_a_user_may_not_expect_is_told() -> None:
    steps = ({"replicas": 1, "traffic": "60%", "pause": {}}, {"replicas": 7, "traffic": "60%", "pause": {}})
    async with pair(*steps, inactive=2) as world:
        plan = make(seen(world, version_of(GREEN, 2)), seen(world))
        assert told(
            plan, f"after the release 2 groups of {GREEN} get all requests, which 4 groups of {BLUE} get now: 2.00"
        )
        assert told(
            plan, f"step 1 sends 60% of requests to {GREEN} when 1 of its 2 groups is ready: each may get up to 2.40"
        )
        assert told(
            plan, f"step 2 waits for 7 ready groups, and {GREEN} has 2: it goes on when its owner has scaled it up"
        )
        assert told(plan, "the roles change 33 s after")
        assert not told(plan, "has room for")
        assert not told(plan, "HorizontalPodAutoscaler")
        assert not told(plan, "preStop")
        routed.make(world, SERVICES, "past", spec={"selector": {LWS_NAME: BLUE}, "ports": [{"port": 80}]})
        assert told(
            plan_of(world), f"Service past leads to groups of {BLUE} too: its clients get no share of a step, and"
        )
        quota = {"metadata": {"name": "gpus"}, "spec": {"hard": {"requests.nvidia.com/gpu": "2"}}}
        (short,) = short_of(plan, [quota])
        assert short == (
            f"ResourceQuota gpus leaves 2 nvidia.com/gpu, and the groups of {GREEN} take up to 24 more: the release"
            " waits in step 1 for quota, and goes on by itself when there is some"
        )


async def test_a_side_without_groups_is_planned_with_as_many_as_the_other_one() -> None:
    async with pair(inactive=0) as world:
        plan = plan_of(world)
        assert plan.sides == Sides(BLUE, 4, GREEN, 0)
        assert [part.row.new for part in plan.parts] == [1, 4, 4]
        assert told(
            plan, f"LeaderWorkerSet {GREEN} has 0 groups: the release of its version begins when its owner scales"
        )
        assert value(plan)["pair"]["inactive"] == {"name": GREEN, "groups": 0}


async def test_a_version_that_was_there_is_told_to_need_a_start() -> None:
    async with pair() as world:
        assert not told(plan_of(world), "start")
        apply(world, GREEN, "v2")
        await world.until_state("AwaitingApproval", 3600)
        world.request("PromoteFull")
        await world.until(lambda: world.status["active"] == GREEN and world.state == "Healthy", "the end", 3600)
        words = f"the version of LeaderWorkerSet {BLUE} was there at adoption or has been released"
        plan = plan_of(world)
        assert told(plan, words) and told(plan, "start it with kubectl rollout-lws start llama")
        assert plan.change == ""
        world.request("Start")
        await world.until_state("AwaitingApproval", 3600)
        assert plan_of(world).change


async def test_another_template_for_the_active_side_is_told_to_be_no_release() -> None:
    async with pair() as world:
        plan = make(seen(world, version_of(BLUE)), seen(world))
        assert told(plan, f"LeaderWorkerSet {BLUE} is the active side, and gets another template")
        assert told(plan, f"apply it to LeaderWorkerSet {GREEN}")
        assert plan.change == ""


async def test_sides_that_the_route_does_not_tell_apart_are_a_refusal() -> None:
    world = World()
    try:
        create_sides(world)
        await all_ready(world, BLUE, GREEN)
        await world.rest()
        set_weights(world, {BLUE: 50, GREEN: 50})
        await world.rest()
        (refusal,) = make(seen(world, rollout())).refusals
        assert refusal.startswith(f"requests go to both {BLUE} and {GREEN}, or to neither")
    finally:
        world.close()
