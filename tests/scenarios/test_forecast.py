"""Whole releases take what their forecast says: extra groups, model loads, windows, time, each group's load."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import pytest

from rollout_lws.api import Rollout
from rollout_lws.forecast.forecast import forecast
from rollout_lws.forecast.model import Forecast, Given, Order
from rollout_lws.objects.resources import LWS_NAME, SERVICES
from rollout_lws.sandbox.behaviours.cluster import Options
from rollout_lws.sandbox.behaviours.faults import Timing
from tests.scenarios.gauge import Gauge
from tests.scenarios.kinds import LWS, ORDERED, STATEFUL_SET, LeaderWorkerSets, nested
from tests.scenarios.observed import Observed
from tests.scenarios.routed import create_route, make, routing, share
from tests.scenarios.stories import CANARY, at_rest
from tests.scenarios.swapped import SWAP, released
from tests.scenarios.world import NAME, World

pytestmark = pytest.mark.looptime

#: A group's load in seconds: leaders are ready after their workers, as those of a model server are.
WORKERS, LEADER_LONGER = 50.0, 10.0
LOAD = WORKERS + LEADER_LONGER
#: The most seconds that groups that end and the answers of LWS and routers take besides, less than any grace.
BESIDES = 2.0
#: Seconds until what a step has made is known to all.
SETTLES = 1.0


@dataclass(frozen=True)
class Case:
    """A plan of ``style`` (a capacity, BlueGreen or Swap) for a workload of ``replicas`` groups; steps are groups and
    traffic. ``swapped``: another release has swapped, so that this one brings the requests back.
    """

    style: str
    steps: tuple[tuple[int | str, str | None], ...]
    replicas: int = 4
    unavailable: int = 1
    routed: bool = True
    min_ready: int = 0
    unlisted: bool = False
    grace: int = 3
    swapped: bool = False
    kind: LeaderWorkerSets = LWS

    def __str__(self) -> str:
        steps = ",".join(f"{groups}@{traffic}" if traffic else f"{groups}" for groups, traffic in self.steps)
        routed = ("unlisted" if self.unlisted else "routed") if self.routed else "unrouted"
        ready = f"-ready for {self.min_ready}s" if self.min_ready else ""
        grace = f"-grace {self.grace}s" if self.grace != 3 else ""
        back = "-back" if self.swapped else ""
        kind = f"{self.kind}-" if self.kind is not LWS else ""
        return f"{kind}{self.style}{back}-R{self.replicas}-U{self.unavailable}-{routed}-{steps}{ready}{grace}"

    @property
    def is_raced(self) -> bool:
        """Whether groups of a batch go together, or one when the one before is back: a controller that makes pods one
        after the other deletes none while one is missing, and the other controller may have been first.
        """
        return self.kind is ORDERED and self.unavailable > 1

    @property
    def given(self) -> Given:
        return Given(
            self.replicas,
            self.unavailable,
            LOAD,
            self.min_ready,
            unlisted=self.unlisted,
            swapped=self.swapped,
            named=self.kind is LWS,
            order=Order() if self.kind is ORDERED else None,
        )

    @property
    def words(self) -> dict[str, Any]:
        """The Rollout's strategy."""
        plan: dict[str, Any] = {}
        if self.routed:
            plan["trafficRoutings"] = routing(allowUnmanagedBackends=self.unlisted, gracePeriodSeconds=self.grace)
        return {**self._style(plan), "minReadySeconds": self.min_ready}

    def _style(self, plan: dict[str, Any]) -> dict[str, Any]:
        if self.style in ("BlueGreen", "Swap"):
            return {"blueGreen": plan | (SWAP if self.style == "Swap" else {})}
        return {"canary": {**plan, "capacity": self.style}}


QUARTERS = (("25%", "25%"), ("50%", "50%"), ("100%", None))
FULL = (("50%", "0%"), ("100%", "100%"))
CASES = [
    Case("ExtraWorkload", QUARTERS),
    Case("ExtraWorkload", ((1, "5%"),), replicas=5, unavailable=3),
    Case("ExtraWorkload", ((2, "10%"), ("100%", None)), replicas=5, unavailable=2),
    Case("ExtraWorkload", ((1, "40%"), (2, "40%"), (3, "50%")), unavailable=2),
    Case("ExtraWorkload", ((1, "20%"), ("100%", "100%"))),
    Case("ExtraWorkload", ((1, None),)),
    Case("ExtraWorkload", QUARTERS, min_ready=20),
    Case("ExtraWorkload", ((1, "30%"),), replicas=1),
    Case("ExtraWorkload", (("50%", None), ("100%", None)), unavailable=2, routed=False),
    Case("ExtraWorkload", ((1, None),), replicas=1, routed=False),
    Case("InPlace", QUARTERS),
    Case("InPlace", ((1, "5%"), (3, "60%")), unavailable=2, replicas=5),
    Case("InPlace", (("25%", "auto"), ("100%", "100%")), min_ready=20),
    Case("InPlace", (("50%", "40%"), ("100%", "auto")), unavailable=2),
    Case("InPlace", ((1, "20%"),), replicas=2),
    Case("InPlace", (("50%", None), ("100%", None)), unavailable=2, routed=False),
    Case("InPlace", QUARTERS, unlisted=True),
    Case("InPlace", (("100%", "100%"),), replicas=3),
    Case("InPlace", ((3, "40%"),), replicas=6, unavailable=2),
    Case("InPlace", ((4, "67%"), ("100%", None)), replicas=6, unavailable=2),
    Case("Surge", QUARTERS),
    Case("Surge", ((1, "5%"), (3, "60%")), replicas=5, unavailable=2),
    Case("Surge", (("25%", "auto"), ("100%", "100%")), min_ready=20),
    Case("Surge", ((1, "50%"),), replicas=1),
    Case("Surge", (("50%", None), ("100%", None)), routed=False),
    Case("BlueGreen", FULL),
    Case("BlueGreen", FULL, min_ready=2),
    Case("BlueGreen", FULL, unlisted=True),
    Case("BlueGreen", ((1, "20%"),), replicas=3),
    Case("BlueGreen", (("50%", "0%"),), unavailable=2, min_ready=20),
    Case("BlueGreen", (("50%", None), ("100%", None)), unavailable=2, routed=False),
    Case("BlueGreen", ((2, None),), routed=False),
    *(
        replace(case, swapped=swapped)
        for case in (
            Case("Swap", FULL),
            Case("Swap", QUARTERS[:2]),
            Case("Swap", ((1, "20%"),), min_ready=20),
            Case("Swap", ((1, None), (2, "30%")), grace=90),
            Case("Swap", ((1, None),), replicas=1),
            Case("Swap", (("50%", "auto"), ("100%", "auto")), replicas=5, unavailable=2),
            Case("Swap", (("50%", None), ("100%", None)), routed=False),
        )
        for swapped in (False, True)
    ),
]
#: Of StatefulSets, which have no surge groups, and whose pods start in parallel or one after the other.
STATEFUL = [
    replace(case, kind=kind)
    for kind in (ORDERED, STATEFUL_SET)
    for case in (
        *(each for each in CASES if each.style != "Surge" and not each.unlisted),
        Case("InPlace", ((3, "40%"), ("100%", "auto")), replicas=6, unavailable=3, min_ready=20),
        Case("InPlace", (("50%", None), ("100%", None)), replicas=7, unavailable=3, routed=False),
    )
]


@asynccontextmanager
async def measured(case: Case) -> AsyncIterator[tuple[World, Forecast, Gauge]]:
    """A release of the case that has just begun, with its forecast."""
    single = case.kind is not LWS
    timing = Timing(ready_after=LOAD) if single else Timing(ready_after=WORKERS, leader_longer=LEADER_LONGER)
    world = World(Options(timing=timing))
    world.kind = case.kind
    try:
        create_route(world)
        if case.unlisted:
            make(world, SERVICES, "for-some", spec={"selector": {LWS_NAME: NAME}, "ports": [{"port": 80}]})
        steps = [{"replicas": groups} | ({"traffic": traffic} if traffic else {}) for groups, traffic in case.steps]
        await at_rest(world, *steps, replicas=case.replicas, size=1 if single else 2, **case.words)
        world.patch_lws(nested((*case.kind.strategy, "maxUnavailable"), case.unavailable))
        await world.rest()
        if case.swapped:
            await released(world, "v2")
        await world.sleep(case.min_ready)
        style = Rollout.model_validate(world.rollout).spec.strategy.style
        assert style is not None
        told = forecast(style, case.given)
        # Times that objects state are whole seconds.
        await world.sleep(-world.server.clock() % 1)
        gauge = Gauge(world, case.replicas)
        world.set_image("v3" if case.swapped else "v2")
        yield world, told, gauge
        gauge.stop()
    finally:
        world.close()


async def approved(world: World, index: int) -> None:
    """Wait until step ``index`` asks for an approval and routers know of its groups."""
    await world.until(
        lambda: world.state == "AwaitingApproval" and world.status["currentStepIndex"] == index, f"step {index}", 3600
    )
    await world.sleep(SETTLES)


#: A fifth of the cases in the default run, all of them in the longer one.
SOME = [
    case if number % 5 == 0 else pytest.param(case, marks=pytest.mark.long)
    for number, case in enumerate((*CASES, *STATEFUL))
]


@pytest.mark.each_change
@pytest.mark.one_in(4)
@pytest.mark.parametrize("case", SOME, ids=str)
async def test_a_release_takes_what_its_preview_says(case: Case) -> None:
    async with measured(case) as (world, told, gauge):
        await world.until(lambda: world.state != "Healthy")
        for index in told.approvals:
            await approved(world, index)
            row = told.rows[index - 1]
            assert gauge.extra == row.extra
            assert gauge.loads == sum(each.loads for each in told.rows[:index])
            assert gauge.windows == sum(each.windows for each in told.rows[:index])
            assert gauge.disrupted == sum(each.disrupted for each in told.rows[:index])
            if case.routed:
                assert share(world) == pytest.approx(row.share)
            rest = {round(each, 6) for each in gauge.carried().values()}
            assert rest == {round(each, 6) for each in (row.load_new, row.load_stable) if each}
            world.approve()
        await world.until_state("Healthy", 3600)
        assert (gauge.extra, gauge.loads, gauge.windows) == (told.extra, told.loads, told.windows)
        assert gauge.disrupted == told.disrupted
        assert gauge.undrained == 0
        took = gauge.seconds - SETTLES * len(told.approvals)
        # While an approval is thought about, routers hear of the first groups.
        heard = SETTLES if case.routed and case.steps[0][1] is None else 0
        if case.is_raced:
            assert told.ready <= gauge.ready
            assert gauge.peak_load <= told.peak_load + 1e-6
            assert told.seconds - heard - case.grace <= took <= told.seconds + 2 * BESIDES
            return
        assert gauge.ready == told.ready
        assert gauge.peak_load == pytest.approx(told.peak_load)
        assert told.seconds - heard <= took <= told.seconds + BESIDES


@pytest.mark.one_in(4)
@pytest.mark.parametrize(
    "case",
    [
        Case("ExtraWorkload", QUARTERS),
        Case("InPlace", QUARTERS),
        Case("Surge", QUARTERS),
        Case("BlueGreen", FULL),
        *(Case("Swap", QUARTERS[:2], swapped=swapped) for swapped in (False, True)),
        *(Case("Swap", ((1, None), (2, None)), routed=False, swapped=swapped) for swapped in (False, True)),
        *(Case(style, ((1, None), (2, None)), routed=False) for style in ("ExtraWorkload", "InPlace", "Surge")),
        *(Case(style, QUARTERS, unlisted=True) for style in ("ExtraWorkload", "InPlace", "Surge")),
        *(Case(style, QUARTERS, kind=ORDERED) for style in ("ExtraWorkload", "InPlace")),
        *(Case("InPlace", ((1, "0%"), (2, "0%")), unavailable=3, kind=kind) for kind in (STATEFUL_SET, ORDERED)),
        # All new groups go together, some stay for a second batch, and the weight follows them or need not.
        *(Case("InPlace", ((2, "50%"), (3, "50%")), unavailable=unavailable) for unavailable in (1, 2, 3)),
        Case("InPlace", ((3, "60%"), (4, "70%")), replicas=5, unavailable=3),
        Case("InPlace", ((3, "60%"), (4, "70%")), replicas=5, unavailable=3, grace=40),
        Case("InPlace", ((2, "0%"), (3, "0%")), replicas=7),
        # The last groups stay until the ones before them are back; meanwhile they keep their part.
        Case("InPlace", ((1, "30%"), (2, "60%")), replicas=3),
        Case("InPlace", ((4, "67%"), (5, "85%")), replicas=6, unavailable=2),
        Case("InPlace", ((4, "67%"), (5, "85%")), replicas=6, unavailable=4, grace=40),
        Case("InPlace", ((2, "50%"), (3, "50%")), unavailable=3, unlisted=True),
    ],
    ids=str,
)
@pytest.mark.parametrize("at", [1, 2])
async def test_the_way_back_from_a_step_takes_what_the_preview_says(case: Case, at: int) -> None:
    async with measured(case) as (world, told, gauge):
        for index in range(1, at):
            await approved(world, index)
            world.approve()
        await approved(world, at)
        before, disrupted = gauge.loads, gauge.disrupted
        observed = Observed(world, (NAME, CANARY), "v3" if case.swapped else "v2")
        world.request("Abort")
        asked = world.server.clock()
        stable, new = (CANARY, NAME) if case.swapped else (NAME, CANARY)
        back = dict.fromkeys(range(case.replicas), "v2" if case.swapped else "v1")
        await world.until(lambda: back.items() <= world.groups(stable).items() and share(world) == 0, "all old", 3600)
        row = told.rows[at - 1]
        assert gauge.loads - before == row.back_loads
        took = world.server.clock() - asked
        assert row.back_seconds <= took <= row.back_seconds + BESIDES
        await world.until_state("Aborted", 600)
        await world.until(lambda: not world.groups(new), "no group of the new version")
        assert gauge.disrupted - disrupted == row.back_disrupted
        observed.stop()
        took = world.server.clock() - asked
        assert row.back[-1].at - case.grace <= took <= row.back[-1].at + BESIDES
        # What goes at once is gone before it can be seen.
        assert observed.assert_was(row.back, asked, took, BESIDES, case.grace) or len(row.back) == 1
        assert gauge.undrained == 0
