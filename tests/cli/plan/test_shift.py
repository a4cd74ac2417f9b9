"""Releases with capacity Shift are what `rollout-lws plan` says, there and back: loads, groups of both workloads
together, ready groups, shares, time, the way back, and the objects that are written.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from rollout_lws.cli.plan.model import Plan as Planned
from rollout_lws.cli.plan.planning import make
from rollout_lws.cli.plan.show import lines
from rollout_lws.cli.plan.values import value
from rollout_lws.objects.resources import LWS_NAME, SERVICES
from rollout_lws.sandbox.behaviours.cluster import Options
from rollout_lws.sandbox.behaviours.faults import Timing
from tests.cli.plan.snapshots import plan_of, seen, services_of
from tests.cli.plan.test_pair_scaled import Case as Steps
from tests.cli.plan.test_pair_scaled import at, told
from tests.cli.plan.test_pair_shift import ANSWERS, EXTRA, LACKING
from tests.cli.plan.test_pair_shift import CASES as PLANS
from tests.cli.plan.test_pair_shift import Case as Plan
from tests.cli.plan.test_releases import (
    LEADER_LONGER,
    LOAD,
    WORKERS,
    Accelerated,
    Meter,
    most_until,
    new_version,
    size_of,
    written,
)
from tests.cli.plan.watched import Watch
from tests.scenarios import routed
from tests.scenarios.gauge import Gauge
from tests.scenarios.kinds import LWS, ORDERED, STATEFUL_SET, LeaderWorkerSets
from tests.scenarios.paired_shift import ShiftJudge
from tests.scenarios.routed import SERVICE, routed_at_rest, share
from tests.scenarios.stories import CANARY
from tests.scenarios.swapped import replicas, to_the_end
from tests.scenarios.world import NAME, World

pytestmark = [pytest.mark.looptime, pytest.mark.rare(6)]


@dataclass(frozen=True)
class Case:
    """A plan, and whether its release brings the requests back to the user's workload."""

    plan: Plan
    back: bool = False
    kind: LeaderWorkerSets = LWS

    def __str__(self) -> str:
        kind = f"{self.kind}: " if self.kind is not LWS else ""
        return f"{kind}{self.plan}{' back' if self.back else ''}"

    @property
    def roles(self) -> tuple[str, str]:
        """The workload that serves before the release, and the one that does after it."""
        return (CANARY, NAME) if self.back else (NAME, CANARY)

    @property
    def services(self) -> tuple[str, str]:
        """The Services of the old version and of the new one in the release."""
        return SERVICE, f"{SERVICE}-canary"

    @property
    def tag(self) -> str:
        """The version that is released."""
        return "v3" if self.back else "v2"


#: With minReadySeconds old groups go while an approval is thought about, for which a plan has no time: of versions with
#: other accelerators, fewer stand together than it says.
CASES = [
    Case(each, back, kind)
    for kind in (LWS, STATEFUL_SET, ORDERED)
    for each in PLANS
    for back in (False, True)
    if not (back and each.more)
]


@asynccontextmanager
async def shifts(case: Case) -> AsyncIterator[World]:
    """A workload at v1, at rest, or one that a release has made and that serves at v2."""
    single = size_of(case.kind) == 1
    timing = Timing(ready_after=LOAD) if single else Timing(ready_after=WORKERS, leader_longer=LEADER_LONGER)
    world = World(Options(nodes=16, timing=timing))
    world.kind, world.containers = case.kind, Accelerated()
    plan = case.plan
    words = dict(plan.words)
    routing = words.pop("routing")
    strategy = {"minReadySeconds": words.pop("minReadySeconds")} if "minReadySeconds" in words else {}
    try:
        steps = Steps(plan.replicas, plan.steps).words
        await routed_at_rest(world, *steps, replicas=plan.replicas, words={"capacity": "Shift", **words}, **routing)
        world.patch_rollout({"strategy": strategy})
        await world.until(lambda: world.rollout["spec"].get("replicas") == plan.replicas, "its number of groups")
        world.checks.clear()
        if case.back:
            world.set_image("v2")
            await world.until(lambda: world.state != "Healthy")
            await to_the_end(world, 3600)
            await world.until(lambda: len(world.ready_endpoints(SERVICE)) == plan.replicas, "all are ready", 3600)
            await world.rest()
        await world.sleep(-world.server.clock() % 1)
        yield world
    finally:
        world.close()


def assert_took(case: Case, plan: Planned, seconds: float, since: int, until: int) -> None:
    """From the end of step ``since`` to that of step ``until`` it took as long as the plan says."""
    rows = [each.row for each in plan.parts[since:until]]
    said, approvals = sum(row.seconds for row in rows), sum(part.row.approval for part in plan.parts[:since])
    # The Service that changes sides is waited for, too.
    answers = ANSWERS * (2 + sum(row.rounds for row in rows))
    assert said - approvals * case.plan.thought <= seconds <= said + answers


@pytest.mark.one_in(10)
@pytest.mark.parametrize("case", CASES, ids=str)
async def test_a_release_is_what_its_plan_says(case: Case) -> None:
    async with shifts(case) as world:
        plan = make(seen(world, new_version(case.tag, case.kind)), seen(world), services=services_of(world))
        found, count, (before, after) = plan.forecast, case.plan.replicas, case.roles
        assert plan.refusals == ()
        assert found is not None and plan.sides is not None
        assert plan.loads.seconds == (LOAD,) * count
        assert (plan.sides.active, plan.sides.active_groups) == (before, count)
        assert (plan.sides.inactive, plan.sides.inactive_groups, plan.sides.is_back) == (after, 0, case.back)
        gauge, meter = Gauge(world, count), Meter(world)
        judge = ShiftJudge(world, count + found.extra, None)
        begun = len(world.writes), len(world.labels)
        assert plan.now == meter.now
        watch = Watch(world, plan, case.tag)
        world.set_image(case.tag)
        await world.until(lambda: world.state != "Healthy", "the release")
        last, since = 0, 0.0
        for index in found.approvals:
            await at(world, index)
            assert_took(case, plan, gauge.seconds - since, last, index)
            await world.sleep(case.plan.thought)
            rows, part = [each.row for each in plan.parts[:index]], plan.parts[index - 1]
            assert gauge.loads == sum(each.loads for each in rows)
            assert gauge.extra == max(each.extra for each in rows)
            assert gauge.peak_load == pytest.approx(max(each.peak_load for each in rows))
            assert gauge.ready == min(each.ready for each in rows)
            assert share(world) == pytest.approx(part.row.share)
            with_requests = [len(world.ready_endpoints(each)) for each in reversed(case.services)]
            assert with_requests == [part.row.new, part.old]
            assert meter.most == most_until(plan, index)
            last, since = index, gauge.seconds
            watch.approves()
            world.approve()
        await world.until(lambda: world.state == "Healthy", "the end", 3600)
        assert_took(case, plan, gauge.seconds - since, last, len(plan.parts))
        assert gauge.ready == found.ready
        assert gauge.peak_load == pytest.approx(found.peak_load)
        assert (gauge.windows, gauge.disrupted) == (found.windows, found.disrupted) == (0, 0)
        # Without extra groups the last one is created by now.
        await world.until(lambda: len(world.ready_endpoints(SERVICE)) == count, "all are ready", 3600)
        assert meter.most == plan.peak
        assert (gauge.loads, gauge.extra) == (found.loads, found.extra)
        assert judge.loads == count
        gauge.stop()
        watch.assert_as_drawn(ANSWERS * (2 + found.rounds), case.plan.early)
        await world.rest()
        assert Meter(world).now == plan.afterwards
        done = written([*world.writes[begun[0] :], *world.labels[begun[1] :]])
        assert done == {(each.resource, each.name, verb) for each in plan.writes for verb in each.verbs}
        then = plan_of(world)
        assert then.sides is not None
        assert (then.sides.active, then.sides.inactive, then.sides.is_back) == (after, before, not case.back)
        assert (then.replicas, then.change, then.refusals) == (count, "", ())


@pytest.mark.one_in(6)
@pytest.mark.parametrize("case", [Case(EXTRA), Case(EXTRA, back=True), Case(LACKING)], ids=str)
@pytest.mark.parametrize("moment", [1, 2, None])
async def test_the_way_back_takes_what_the_plan_says(case: Case, moment: int | None) -> None:
    async with shifts(case) as world:
        found, count = plan_of(world).forecast, case.plan.replicas
        assert found is not None
        world.set_image(case.tag)
        for index in found.approvals[:moment]:
            await at(world, index)
            if index != moment:
                world.approve()
        if moment is None:
            await world.until(lambda: share(world) == 1, "all requests", 3600)
        # All groups that have lost their requests are gone, and the roles have not changed.
        await world.sleep(case.plan.gone if moment else case.plan.grace + case.plan.drain - 1)
        row, gauge = found.rows[moment - 1 if moment else -1], Gauge(world, count)
        world.request("Abort")
        await world.until_state("Aborted", 3600)
        assert gauge.loads == row.back_loads
        gauge.stop()
        await world.rest()
        assert replicas(world)[case.roles[0]] == count == len(world.ready_endpoints(SERVICE))
        (refusal,) = plan_of(world).refusals
        assert refusal.startswith("this version was aborted (")


async def test_which_workload_serves_before_and_after_is_told() -> None:
    async with shifts(Case(EXTRA)) as world:
        routed.make(world, SERVICES, "past", spec={"selector": {"app": "llama"}, "ports": [{"port": 80}]})
        plan = make(seen(world, new_version()), seen(world), services=services_of(world))
        shown = lines(plan)
        assert shown[0] == "llama  LeaderWorkerSet/llama  ns default   4 groups of 2 pods, capacity Shift"
        assert shown[1] == (
            "Requests      go to llama, 4 groups; a release makes llama-canary, which gets groups as those of llama go,"
            " until that has none"
        )
        assert (
            "Way back      by abort until the roles change, up to 3 loads; after that a release of the former version"
            " loads 4 groups"
        ) in shown
        assert "Then          the next release goes the other way, from llama-canary to llama" in shown
        assert told(plan, "a way back loads again what llama has given up by then, up to 3 groups before the roles")
        assert told(plan, "each group of llama goes 33 s after it has lost its requests (gracePeriodSeconds and")
        assert told(plan, "groups of llama that go lose label app, so that no request finds them")
        assert told(plan, "after the release llama-canary serves in place of llama, which has no groups and keeps the")
        lost = "its clients get no share of a step, and lose what runs on a group each time that one goes"
        assert told(plan, f"Service past leads to groups of llama too: {lost}")
        for never in ("times what", "is scaled to 0", "start llama"):
            assert not told(plan, never), never
        assert (value(plan)["style"], value(plan)["swap"]["next"]) == ("Shift", {"from": "llama-canary", "to": "llama"})
        world.delete(SERVICES, "past")
        world.set_image("v2")
        await at(world, 1)
        await world.sleep(EXTRA.gone)
        here = plan_of(world)
        assert here.at == "step 1" and here.sides is not None
        assert (here.sides.active_groups, here.sides.inactive_groups, here.replicas) == (4, 1, 4)
        assert "Now at        step 1; after it 3 loads, about 5m24s" in lines(here)


async def test_what_would_be_refused_is_told() -> None:
    async with shifts(Case(EXTRA, back=True)) as world:
        plan = make(seen(world, new_version("v3")), seen(world), services=services_of(world))
        assert lines(plan)[1] == (
            "Requests      go to llama-canary, 4 groups; a release moves them to llama, which has 0 and gets groups as"
            " those of llama-canary go, and deletes llama-canary"
        )
        world.patch_rollout({"replicas": 1, "strategy": {"canary": {"shift": LACKING.words["shift"]}}})
        await world.rest()
        one = "has 1 group, and with shift.maxExtraGroups 0 it would go"
        assert any(one in each for each in plan_of(world).refusals)
        only: dict[str, Any] = {"app": None, LWS_NAME: CANARY}
        world.patch(SERVICES, SERVICE, {"spec": {"selector": only}})
        only_by = f"Service {SERVICE} selects groups only"
        assert any(each.startswith(only_by) for each in plan_of(world).refusals)
