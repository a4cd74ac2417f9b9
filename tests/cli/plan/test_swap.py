"""Releases of a swap are what `rollout-lws plan` says, there and back: loads, groups beyond R, shares, time, and the
objects that are written.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import pytest

from rollout_lws.cli.plan.planning import make
from rollout_lws.cli.plan.show import lines
from rollout_lws.cli.plan.values import value
from rollout_lws.objects.resources import LWS_NAME, POD_DISRUPTION_BUDGETS, SERVICES
from rollout_lws.sandbox.behaviours.cluster import Options
from rollout_lws.sandbox.behaviours.faults import Timing
from tests.cli.plan.snapshots import plan_of, seen, services_of
from tests.cli.plan.test_pair_scaled import ANSWERS, assert_took, at, told
from tests.cli.plan.test_releases import (
    LEADER_LONGER,
    LOAD,
    SETTLES,
    SIZE,
    WORKERS,
    Accelerated,
    Meter,
    new_version,
    written,
)
from tests.cli.plan.watched import Watch
from tests.scenarios import routed
from tests.scenarios.gauge import Gauge
from tests.scenarios.routed import BY_INGRESS, BY_POOLS, BY_ROUTE, Provider, create_provider, create_route, share
from tests.scenarios.stories import CANARY, at_rest
from tests.scenarios.swapped import SWAP, released
from tests.scenarios.world import NAME, World

pytestmark = pytest.mark.looptime


@dataclass(frozen=True)
class Case:
    """A plan for ``replicas`` groups whose steps are groups, traffic and pause (None: an approval). ``back``: the
    release brings the requests back to the user's workload.
    """

    steps: tuple[tuple[int | str, str | None, int | None], ...]
    replicas: int = 4
    by: Provider | None = BY_ROUTE
    back: bool = False
    keeps: int = 0
    """Seconds that old groups stay after a release."""

    def __str__(self) -> str:
        steps = ",".join(f"{groups}@{traffic}+{pause}" for groups, traffic, pause in self.steps)
        return f"R{self.replicas} {self.by or 'unrouted'} {steps}{' back' if self.back else ''}"

    @property
    def words(self) -> list[dict[str, Any]]:
        return [
            {"replicas": groups, "pause": {} if pause is None else {"duration": pause}}
            | ({"traffic": traffic} if traffic else {})
            for groups, traffic, pause in self.steps
        ]

    @property
    def roles(self) -> tuple[str, str]:
        """The workload that serves before the release, and the one that does after it."""
        return (CANARY, NAME) if self.back else (NAME, CANARY)

    @property
    def tag(self) -> str:
        """The version that is released."""
        return "v3" if self.back else "v2"


FULL = Case((("50%", "0%", None), ("100%", "50%", None)))
BACK = replace(FULL, back=True)
CASES = [
    FULL,
    BACK,
    Case((("50%", None, None), (4, None, 20)), by=None),
    Case((("100%", "100%", None),), replicas=3, by=BY_POOLS, back=True),
    *(
        replace(case, back=back)
        for back in (False, True)
        for case in (
            Case(((1, "20%", None),)),
            Case((("25%", "auto", 60), ("75%", "auto", None)), replicas=5),
            Case(((1, None, None),), replicas=1),
            Case(((2, "10%", None),), replicas=3, by=BY_INGRESS),
            Case(((1, "5%", 30),), by=BY_POOLS),
            Case(((1, None, None), (2, None, 0)), by=None),
        )
    ),
]
SOME = [case if number < 3 else pytest.param(case, marks=pytest.mark.long) for number, case in enumerate(CASES)]


@asynccontextmanager
async def swap(case: Case) -> AsyncIterator[World]:
    """A workload at v1, at rest, or one that a release has made and that serves at v2."""
    world = World(Options(timing=Timing(ready_after=WORKERS, leader_longer=LEADER_LONGER)))
    world.containers = Accelerated()
    try:
        words: dict[str, Any] = dict(SWAP) | ({"scaleDownDelaySeconds": case.keeps} if case.keeps else {})
        if case.by is not None:
            create_provider(world, case.by)
            words["trafficRoutings"] = routed.routing(case.by)
        else:
            create_route(world)
        await at_rest(world, *case.words, replicas=case.replicas, size=SIZE, blueGreen=words)
        if case.back:
            await released(world, "v2")
        await world.sleep(-world.server.clock() % 1)
        yield world
    finally:
        world.close()


async def ended(world: World) -> None:
    await world.until(lambda: world.state == "Healthy", "the end", 3600)


@pytest.mark.parametrize("case", SOME, ids=str)
async def test_a_release_is_what_its_plan_says(case: Case) -> None:
    async with swap(case) as world:
        plan = make(seen(world, new_version(case.tag)), seen(world), services=services_of(world))
        found, (before, after) = plan.forecast, case.roles
        assert plan.refusals == ()
        assert found is not None and plan.sides is not None
        assert plan.loads.seconds == (LOAD,) * case.replicas
        assert (plan.sides.active, plan.sides.active_groups) == (before, case.replicas)
        assert (plan.sides.inactive, plan.sides.inactive_groups, plan.sides.is_back) == (after, 0, case.back)
        gauge, meter = Gauge(world, case.replicas), Meter(world)
        begun = len(world.writes), len(world.labels)
        assert plan.now == meter.now
        watch = Watch(world, plan, case.tag, routed=case.by in (BY_ROUTE, None))
        world.set_image(case.tag)
        await world.until(lambda: world.state != "Healthy")
        last, since = 0, 0.0
        for index in found.approvals:
            await at(world, index)
            if case.by is BY_ROUTE:
                assert_took(plan, gauge.seconds - since, last, index)
            await world.sleep(SETTLES)
            rows, part = [each.row for each in plan.parts[:index]], plan.parts[index - 1]
            assert gauge.loads == sum(each.loads for each in rows)
            assert gauge.extra == part.row.extra
            if case.by is BY_ROUTE:
                assert share(world) == pytest.approx(part.row.share)
            assert meter.most == part.accelerators
            last, since = index, gauge.seconds
            watch.approves()
            world.approve()
        await ended(world)
        assert (gauge.loads, gauge.extra) == (found.loads, found.extra) == (case.replicas, case.replicas)
        assert (gauge.windows, gauge.disrupted) == (found.windows, found.disrupted)
        if case.by in (BY_ROUTE, None):
            assert (gauge.ready, gauge.peak_load) == (found.ready, pytest.approx(found.peak_load))
            assert_took(plan, gauge.seconds - since, last, len(plan.parts))
        gauge.stop()
        watch.assert_as_drawn(2 * ANSWERS, SETTLES)
        await world.rest()
        assert meter.most == plan.peak
        assert Meter(world).now == plan.afterwards
        done = written([*world.writes[begun[0] :], *world.labels[begun[1] :]])
        assert done == {(each.resource, each.name, verb) for each in plan.writes for verb in each.verbs}
        then = plan_of(world)
        assert then.sides is not None
        assert (then.sides.active, then.sides.inactive, then.sides.is_back) == (after, before, not case.back)
        assert (then.replicas, then.change, then.refusals) == (case.replicas, "", ())


async def test_which_workload_serves_before_and_after_is_told() -> None:
    async with swap(FULL) as world:
        plan = make(seen(world, new_version()), seen(world), services=services_of(world))
        shown = lines(plan)
        assert shown[0] == "llama  LeaderWorkerSet/llama  ns default   4 groups of 2 pods, promotion Swap"
        assert shown[1] == (
            "Requests      go to llama, 4 groups; a release makes as many of llama-canary, moves them there, and scales"
            " llama to 0"
        )
        assert (
            "Way back      at once until the roles change, by abort; after that a release of the former version loads"
            " 4 groups"
        ) in shown
        assert "Then          the next release goes the other way, from llama-canary to llama" in shown
        assert told(
            plan,
            "llama is scaled to 0 33 s after it has lost its last requests (gracePeriodSeconds and drainSeconds): what"
            " runs there for longer ends as its preStop and terminationGracePeriodSeconds allow, and a way back after"
            " that is another release, which loads 4 groups again",
        )
        assert told(plan, "after the release llama-canary serves in place of llama, which has no groups and keeps the")
        shown_values = value(plan)
        assert (shown_values["style"], shown_values["pair"]) == ("Swap", None)
        assert shown_values["swap"] == {
            "active": {"name": "llama", "groups": 4},
            "inactive": {"name": "llama-canary", "groups": 0},
            "wayBackAfterwards": {"modelLoads": 4},
            "next": {"from": "llama-canary", "to": "llama"},
        }
        world.set_image("v2")
        await at(world, 1)
        here = plan_of(world)
        assert here.at == "step 1" and "Now at        step 1; after it 2 loads, about 1m36s" in lines(here)
        assert {each.row.back_loads for each in here.parts} == {0}
        gauge = Gauge(world, 4)
        world.request("Abort")
        await world.until_state("Aborted", 3600)
        assert gauge.loads == 0
        gauge.stop()


async def test_the_way_back_home_is_told_and_so_is_what_the_made_one_leaves() -> None:
    async with swap(BACK) as world:
        routed.make(world, SERVICES, "past", spec={"selector": {LWS_NAME: CANARY}, "ports": [{"port": 80}]})
        selector = {"matchLabels": {LWS_NAME: CANARY}}
        routed.make(world, POD_DISRUPTION_BUDGETS, "budget", spec={"selector": selector, "minAvailable": 1})
        plan = make(seen(world, new_version("v3")), seen(world), services=services_of(world))
        shown = lines(plan)
        assert shown[0].startswith("llama  LeaderWorkerSet/llama-canary  ns default   4 groups of 2 pods")
        assert shown[1] == (
            "Requests      go to llama-canary, 4 groups; a release loads as many of llama, which has 0, moves them"
            " there, and deletes llama-canary"
        )
        assert "Then          the next release goes the other way, from llama to llama-canary" in shown
        assert told(plan, "llama-canary is deleted 33 s after it has lost its last requests")
        assert [each.split(" selects")[0] for each in plan.refusals] == [
            "Service past",
            "PodDisruptionBudget budget",
        ]
        world.delete(SERVICES, "past")
        world.delete(POD_DISRUPTION_BUDGETS, "budget")
        world.patch_lws({"replicas": 2})
        plan = make(seen(world, new_version("v3")), seen(world))
        assert told(plan, "LeaderWorkerSet llama has 2 groups and no requests: it is scaled to 0 before anything")


@pytest.mark.parametrize("plan_words", ["canary", "blue-green"])
async def test_a_plan_that_swaps_no_more_brings_the_next_release_home(plan_words: str) -> None:
    async with swap(BACK) as world:
        blue = world.rollout["spec"]["strategy"]["blueGreen"]
        if plan_words == "canary":
            style = {"trafficRoutings": blue["trafficRoutings"], "steps": [{"replicas": 4}, {"replicas": "100%"}]}
            world.patch_rollout({"strategy": {"blueGreen": None, "canary": style}})
        else:
            world.patch_rollout({"strategy": {"blueGreen": {"promotion": None}}})
        await world.rest()
        plan = make(seen(world, new_version("v3")), seen(world), services=services_of(world))
        assert plan.refusals == () and plan.forecast is not None
        assert (plan.forecast.loads, plan.forecast.extra, plan.forecast.windows) == (4, 4, 0)
        by = {"canary": "capacity ExtraWorkload", "blue-green": "blue-green"}[plan_words]
        assert f"Then          llama keeps the requests: the next release goes by {by}" in lines(plan)
        assert value(plan)["swap"]["next"] is None
        assert not told(plan, "more than half as many again")


async def test_the_version_that_runs_is_brought_home_by_request() -> None:
    async with swap(BACK) as world:
        assert plan_of(world).change == ""
        world.request("Start")
        await at(world, 1)
        plan = plan_of(world)
        assert (plan.at, plan.change) == ("step 1", "none: the version that runs, on llama")
        assert not any("<hash>" in each.name for each in plan.writes)
        world.patch_rollout({"disabled": True})
        assert told(
            plan_of(world),
            "rollout/llama is disabled, and llama-canary serves on: LeaderWorkerSet llama gets the requests back by"
            " kubectl rollout-lws home llama, and releases go on when the Rollout is not disabled",
        )


async def test_the_groups_are_those_that_the_rollout_asks_for() -> None:
    async with swap(BACK) as world:
        spec = {**world.rollout["spec"], "replicas": 6}
        plan = make(seen(world, {**world.rollout, "spec": spec}, new_version("v3")), seen(world))
        assert plan.sides is not None and plan.forecast is not None
        assert (plan.replicas, plan.sides.active_groups, plan.sides.inactive_groups) == (6, 6, 0)
        assert (plan.forecast.loads, plan.forecast.extra) == (6, 6)
        none = make(seen(world, {**world.rollout, "spec": {**spec, "replicas": 0}}, new_version("v3")), seen(world))
        assert (none.parts, none.refusals) == ((), ())
        assert told(none, "the workload has 0 groups, and a version takes effect there by itself")


@pytest.mark.parametrize("back", [False, True], ids=["from home", "back home"])
async def test_groups_that_have_stayed_get_the_requests_as_the_plan_says(back: bool) -> None:
    case = replace(BACK if back else FULL, keeps=1800)
    async with swap(case) as world:
        plan = plan_of(world)
        assert told(plan, f"the groups of {case.roles[0]} stay 30m after the release, without requests")
        assert told(plan, "kubectl rollout-lws undo llama moves all requests back at once")
        await released(world, case.tag)
        # What has served before the release is the other one by now.
        now, old = case.roles[1], case.roles[0]
        third = "v1" if back else "v3"
        other = make(seen(world, new_version(third)), seen(world), services=services_of(world))
        assert other.forecast is not None and other.forecast.loads == 4
        assert told(other, f"LeaderWorkerSet {old} has 4 groups and no requests: ")
        plan = make(seen(world, new_version("v2" if back else "v1")), seen(world), services=services_of(world))
        found = plan.forecast
        assert found is not None and plan.refusals == () and plan.sides is not None
        assert (plan.sides.active, plan.sides.inactive) == (now, old)
        assert (found.loads, found.extra, len(plan.parts)) == (0, 4, 1)
        assert told(plan, f"4 groups of {old} run this version still, and get all requests at once")
        assert not told(plan, f"{old} has 4 groups and no requests")
        gauge, meter = Gauge(world, 4), Meter(world)
        world.set_image("v2" if back else "v1")
        await world.until(lambda: world.state != "Healthy")
        await ended(world)
        gauge.stop()
        assert gauge.loads == 0 and meter.most == plan.peak
        assert_took(plan, gauge.seconds, 0, 1)
