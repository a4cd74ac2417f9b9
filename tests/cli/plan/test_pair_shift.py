"""Releases of a pair that shifts are what `rollout-lws plan` says: loads, groups of both sides together, ready groups,
shares, time, the way back, and the objects that are written.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from rollout_lws.cli.plan.model import Plan, Sides
from rollout_lws.cli.plan.planning import make
from rollout_lws.cli.plan.quotas import short_of
from rollout_lws.cli.plan.show import lines
from rollout_lws.cli.plan.values import value
from rollout_lws.objects.resources import LWS_NAME, LWS_WORKER_INDEX, SERVICES
from rollout_lws.sandbox.behaviours.cluster import Options
from rollout_lws.sandbox.behaviours.faults import Timing
from tests.cli.plan.snapshots import plan_of, seen, services_of
from tests.cli.plan.test_pair_scaled import MATCHES, PairGauge, at, ended, told, version_of
from tests.cli.plan.test_pair_scaled import Case as Steps
from tests.cli.plan.test_releases import LEADER_LONGER, LOAD, WORKERS, Accelerated, Meter, most_until, written
from tests.cli.plan.watched import Watch
from tests.scenarios import routed
from tests.scenarios.observed import Observed
from tests.scenarios.paired import BLUE, GREEN, SERVICES_OF, apply, scaled_pair, share
from tests.scenarios.paired_shift import ShiftJudge
from tests.scenarios.world import NAME, ROLLOUTS, World

pytestmark = [pytest.mark.looptime, pytest.mark.rare(3)]

#: The most seconds that LWS, routers and the controller take besides, for each start-up and for each approval.
ANSWERS = 1.0


@dataclass(frozen=True)
class Case:
    """A plan for ``replicas`` groups whose steps are groups, traffic or MATCHES, and pause (None: an approval)."""

    replicas: int
    steps: tuple[tuple[int | str, str | None, int | None], ...]
    extra: int | str = 1
    unavailable: int | str = 0
    grace: int = 3
    drain: int = 30
    more: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        steps = Steps(self.replicas, self.steps, self.more)
        return f"+{self.extra} -{self.unavailable} {self.grace}s {self.drain}s {steps}"

    @property
    def thought(self) -> float:
        """Seconds that an approval takes: for so long that groups which are about to go have lost their requests."""
        return self.grace + 2.0

    @property
    def early(self) -> float:
        """Seconds that what is drawn may come earlier: groups lose their requests while an approval is thought about,
        and in the hand-over together with the weight, before routers have had their time.
        """
        return self.thought + (self.grace if self.grace < LOAD else 0.0)

    @property
    def gone(self) -> float:
        """Seconds from when weights have changed until the groups that are not needed any more are gone."""
        return 2.0 * self.grace + self.drain + 1

    @property
    def words(self) -> dict[str, Any]:
        """The Rollout's words besides its steps."""
        routing = {"gracePeriodSeconds": self.grace, "drainSeconds": self.drain}
        shift = {"maxExtraGroups": self.extra, "maxUnavailableGroups": self.unavailable}
        return {"shift": shift, "routing": routing, **self.more}


QUARTERS = (("25%", "auto", None), ("75%", "auto", None))
EXTRA, LACKING = Case(4, QUARTERS), Case(4, QUARTERS, extra=0, unavailable=1)
CASES = [
    EXTRA,
    LACKING,
    Case(1, ((1, "50%", None),)),
    Case(1, ((1, "100%", 20),), extra="10%"),
    Case(2, (("50%", "40%", None), ("100%", "100%", None)), extra=0, unavailable=1, drain=0),
    # Groups go although the new ones get no requests; the first share comes in the next step, or at the end.
    Case(3, ((1, None, None), ("67%", "50%", None))),
    Case(4, ((2, None, 10),), extra=2, drain=0),
    Case(4, ((1, "40%", None), ("100%", "auto", 30)), extra=2, unavailable=1),
    Case(5, ((2, "30%", None), ("80%", "60%", 20)), drain=0),
    # Groups drain while a step pauses, for as long or not.
    Case(5, ((1, "auto", 10), (3, "auto", 100), (4, "auto", None)), extra=0, unavailable="40%"),
    Case(6, ((1, MATCHES, None), ("50%", "auto", None)), extra="34%", unavailable="34%"),
    Case(7, (("50%", "auto", None),), extra=7),
    Case(8, (("25%", "auto", None), ("75%", "auto", 45)), extra="25%", unavailable="10%"),
    Case(8, ((4, "auto", None), (6, "60%", None)), extra=3, unavailable=2, more={"minReadySeconds": 25}),
    # Routers take longer than a group loads.
    Case(3, ((1, "20%", None), (2, "50%", None)), grace=90, drain=10),
]


@asynccontextmanager
async def pair(case: Case) -> AsyncIterator[World]:
    """Two sides at v1, at rest; the second one without groups."""
    world = World(Options(timing=Timing(ready_after=WORKERS, leader_longer=LEADER_LONGER)))
    world.containers = Accelerated()
    try:
        steps = Steps(case.replicas, case.steps).words
        await scaled_pair(world, *steps, replicas=case.replicas, more=case.words)
        yield world
    finally:
        world.close()


def assert_took(case: Case, plan: Plan, seconds: float, since: int, until: int) -> None:
    """From the end of step ``since`` to that of step ``until`` it took as long as the plan says."""
    rows = [each.row for each in plan.parts[since:until]]
    said, approvals = sum(row.seconds for row in rows), sum(part.row.approval for part in plan.parts[:since])
    assert said - approvals * case.thought <= seconds <= said + ANSWERS * (1 + sum(row.rounds for row in rows))


@pytest.mark.one_in(8)
@pytest.mark.parametrize("case", CASES, ids=str)
async def test_a_release_is_what_its_plan_says(case: Case) -> None:
    async with pair(case) as world:
        plan = make(seen(world, version_of(GREEN)), seen(world), services=services_of(world))
        found, replicas = plan.forecast, case.replicas
        assert plan.refusals == ()
        assert found is not None
        assert plan.loads.seconds == (LOAD,) * replicas
        assert plan.sides == Sides(BLUE, replicas, GREEN, 0)
        gauge, meter = PairGauge(world, replicas), Meter(world)
        judge = ShiftJudge(world, replicas + found.extra, None)
        begun = len(world.writes), len(world.labels)
        assert plan.now == meter.now
        watch = Watch(world, plan)
        apply(world, GREEN, "v2")
        last, since = 0, 0.0
        for index in found.approvals:
            await at(world, index)
            assert_took(case, plan, gauge.seconds - since, last, index)
            await world.sleep(case.thought)
            rows, part = [each.row for each in plan.parts[:index]], plan.parts[index - 1]
            assert gauge.loads == sum(each.loads for each in rows)
            assert gauge.extra == max(each.extra for each in rows)
            assert gauge.peak_load == pytest.approx(max(each.peak_load for each in rows))
            assert gauge.ready == min(each.ready for each in rows)
            assert share(world, GREEN) == pytest.approx(part.row.share)
            rest = {round(each, 6) for each in gauge.carried().values()}
            assert rest == {round(each, 6) for each in (part.row.load_new, part.row.load_stable) if each}
            with_requests = [len(world.ready_endpoints(SERVICES_OF[side])) for side in (GREEN, BLUE)]
            assert with_requests == [part.row.new, part.old]
            assert meter.most == most_until(plan, index)
            last, since = index, gauge.seconds
            watch.approves()
            world.approve()
        await ended(world)
        assert_took(case, plan, gauge.seconds - since, last, len(plan.parts))
        assert gauge.ready == found.ready
        assert gauge.peak_load == pytest.approx(found.peak_load)
        assert (gauge.windows, gauge.disrupted) == (found.windows, found.disrupted) == (0, 0)
        # Without extra groups the last one is created by now.
        await world.until(lambda: len(world.ready_endpoints(SERVICES_OF[GREEN])) == replicas, "all are ready")
        assert meter.most == plan.peak
        assert (gauge.loads, gauge.extra) == (found.loads, found.extra)
        assert judge.loads == replicas
        gauge.stop()
        watch.assert_as_drawn(ANSWERS * (1 + found.rounds), case.early)
        await world.rest()
        assert Meter(world).now == plan.afterwards
        done = written([*world.writes[begun[0] :], *world.labels[begun[1] :]])
        assert done == {(each.resource, each.name, verb) for each in plan.writes for verb in each.verbs}
        after = plan_of(world)
        assert after.sides == Sides(GREEN, replicas, BLUE, 0)
        assert (after.change, after.refusals) == ("", ())


@pytest.mark.one_in(5)
@pytest.mark.parametrize("case", [EXTRA, LACKING, Case(6, ((2, "50%", None), (4, "auto", None)), extra=2)], ids=str)
@pytest.mark.parametrize("moment", [1, 2, None])
async def test_the_way_back_takes_what_the_plan_says(case: Case, moment: int | None) -> None:
    async with pair(case) as world:
        found = plan_of(world).forecast
        assert found is not None
        apply(world, GREEN, "v2")
        for index in found.approvals[:moment]:
            await at(world, index)
            if index != moment:
                world.approve()
        if moment is None:
            await world.until(lambda: share(world, GREEN) == 1, "all requests", 3600)
        # All groups that have lost their requests are gone, and the roles have not changed.
        await world.sleep(case.gone if moment else case.grace + case.drain - 1)
        row, gauge = found.rows[moment - 1 if moment else -1], PairGauge(world, case.replicas)
        observed, asked = Observed(world, (BLUE, GREEN), "v2"), world.server.clock()
        world.request("Abort")
        await world.until_state("Aborted", 3600)
        observed.stop()
        slack = ANSWERS * (1 + row.back_loads)
        assert moment is None or observed.assert_was(row.back, asked, world.server.clock() - asked, slack, case.grace)
        assert gauge.loads == row.back_loads
        assert row.back_seconds <= gauge.seconds <= row.back_seconds + ANSWERS * (1 + row.back_loads)
        gauge.stop()
        await world.sleep(1)
        assert len(world.ready_endpoints(SERVICES_OF[BLUE])) == case.replicas
        (refusal,) = plan_of(world).refusals
        assert refusal.startswith("this version was aborted (")


async def test_in_mid_release_the_plan_is_the_same_and_says_what_is_left() -> None:
    async with pair(EXTRA) as world:
        before = make(seen(world, version_of(GREEN)), seen(world))
        apply(world, GREEN, "v2")
        await at(world, 1)
        await world.sleep(EXTRA.gone)
        plan = plan_of(world)
        assert plan.at == "step 1"
        assert plan.sides == Sides(BLUE, 4, GREEN, 1)
        assert (plan.forecast, plan.parts, plan.peak) == (before.forecast, before.parts, before.peak)
        assert plan.afterwards == before.afterwards
        # Three groups of the old version, and one that takes twice as many.
        assert plan.now == {"nvidia.com/gpu": 3 * 2 + 4}
        assert "Now at        step 1; after it 3 loads, about 5m21s" in lines(plan)
        assert not told(plan, "it is scaled to 0 before")
        assert not told(plan, "auto is")


async def test_the_groups_are_those_that_the_rollout_asks_for() -> None:
    async with pair(EXTRA) as world:
        more = {**(world.get(ROLLOUTS, NAME) or {}), "status": {}}
        plan = make(seen(world, {**more, "spec": {**more["spec"], "replicas": 6}}, version_of(GREEN)), seen(world))
        assert plan.sides == Sides(BLUE, 6, GREEN, 0)
        assert plan.forecast is not None
        assert (plan.forecast.loads, plan.forecast.extra, plan.afterwards) == (6, 1, {"nvidia.com/gpu": 24})


async def test_a_single_group_without_room_for_another_one_is_refused() -> None:
    async with pair(Case(1, ((1, "50%", None),))) as world:
        world.patch_rollout({"strategy": {"canary": {"shift": LACKING.words["shift"]}}})
        plan = plan_of(world)
        assert plan.parts == ()
        (refusal,) = plan.refusals
        assert f"LeaderWorkerSet {BLUE} has 1 group, and with shift.maxExtraGroups 0 it would go before" in refusal
        assert not told(plan, "the pair has 1 group")


async def test_a_service_without_a_label_of_the_template_is_refused() -> None:
    async with pair(EXTRA) as world:
        assert told(
            plan_of(world),
            f"groups of {BLUE} that go lose label app, so that no request finds them: what else selects pods by it",
        )
        only = {"app": None, LWS_NAME: BLUE, LWS_WORKER_INDEX: "0"}
        world.patch(SERVICES, SERVICES_OF[BLUE], {"spec": {"selector": only}})
        (refusal,) = plan_of(world).refusals
        assert refusal.startswith(f"Service {SERVICES_OF[BLUE]} selects groups only by labels that the")


async def test_what_a_user_may_not_expect_is_told() -> None:
    async with pair(EXTRA) as world:
        plan = plan_of(world)
        assert told(plan, "whether the cluster has room for 2 more nvidia.com/gpu is known only when groups are")
        assert told(
            plan,
            f"each group of {BLUE} goes 33 s after it has lost its requests (gracePeriodSeconds and drainSeconds): what"
            " runs there for longer ends as its preStop and terminationGracePeriodSeconds allow",
        )
        assert told(
            plan,
            f"a way back loads again what {BLUE} has given up by then, up to 3 groups before the roles change; a way"
            " back after the release (kubectl rollout-lws start llama) loads 4 groups",
        )
        for never in ("times what", "the last group of", "is scaled to 0 33 s", "its owner"):
            assert not told(plan, never), never
        new = make(seen(world, version_of(GREEN)), seen(world))
        # The last of the new groups needs twice the accelerators of an old one, which is there still.
        assert new.peak == {"nvidia.com/gpu": 2 + 4 * 4}
        (short,) = short_of(new, [{"metadata": {"name": "gpus"}, "spec": {"hard": {"requests.nvidia.com/gpu": "3"}}}])
        assert short.startswith("ResourceQuota gpus leaves 3 nvidia.com/gpu, and the release takes up to 10 more: it")
        assert "waits in step 1 for quota" in short
        routed.make(world, SERVICES, "past", spec={"selector": {LWS_NAME: BLUE}, "ports": [{"port": 80}]})
        assert told(
            plan_of(world),
            f"Service past leads to groups of {BLUE} too: its clients get no share of a step, and lose a group with"
            f" what runs there each time that {BLUE} is scaled down, until it has none",
        )
        canary = (world.get(ROLLOUTS, NAME) or {})["spec"]["strategy"]["canary"]
        routing = [{**canary["trafficRoutings"][0], "drain": {"until": "Idle", "maxSeconds": 900}}]
        world.patch_rollout({"strategy": {"canary": {"trafficRoutings": routing}}})
        assert told(
            plan_of(world), f"each group of {BLUE} goes when nothing runs there any more, 903 s after it has lost its"
        )


@pytest.mark.parametrize(
    ("case", "words"),
    [
        (
            Case(4, ((1, "40%", None),)),
            "step 1 sends 40% of requests to 1 of 4 groups, and it gets 1.60 times what a group has at rest: traffic:"
            " auto sends 25%",
        ),
        (
            Case(4, ((2, "60%", None),)),
            "step 1 sends 60% of requests to 2 of 4 groups, and each of these gets 1.20 times what a group has at",
        ),
        (
            Case(4, ((1, None, None),)),
            "step 1 sends 0% of requests to 1 of 4 groups, and each of the others gets 1.33 times what a group has at",
        ),
        (
            Case(2, ((1, "20%", None),)),
            "step 1 sends 20% of requests to 1 of 2 groups, and the other one gets 1.60 times what a group has at",
        ),
        (
            LACKING,
            "in step 2 a group carries up to 1.36 times what it has at rest: release when there are few",
        ),
        (LACKING, "requests, or set shift.maxUnavailableGroups to 0 and maxExtraGroups to 1"),
        (
            LACKING,
            f"with shift.maxExtraGroups 0 the last group of {GREEN} is created when the release is over: until it has"
            " loaded, 3 groups have all requests, 1.33 times what a group has at rest",
        ),
        (
            Case(2, ((1, "auto", None),), extra=0, unavailable=1),
            "until it has loaded, 1 group has all requests, 2.00 times what a group has at rest",
        ),
        (Case(4, (("100%", "auto", None),)), "step 1 replaces 3 of 4 groups: the last one belongs to the promotion"),
        (Case(3, ((1, "auto", None),)), "step 1: auto is 33%, the nearest that a weight can say to 33.3%"),
        (Case(1, ((1, "auto", None),)), f"the group of {BLUE} goes 33 s after it has lost its requests"),
        (Case(1, ((1, "auto", None),)), "a way back after the release (kubectl rollout-lws start llama) loads 1 group"),
    ],
    ids=str,
)
async def test_what_a_plan_makes_of_the_groups_is_told(case: Case, words: str) -> None:
    async with pair(case) as world:
        assert told(plan_of(world), words)


@pytest.mark.parametrize(
    ("case", "words"),
    [
        # The last step of 100% is the promotion itself.
        (Case(4, (("100%", "80%", None),)), "80% of requests"),
        (Case(8, ((1, "auto", None),)), "of requests to"),
        (Case(1, ((1, "auto", None),)), "auto is"),
        (Case(1, (("100%", "auto", None),)), "belongs to the promotion"),
        (Case(1, ((1, "auto", None),)), "lose label"),
        (Case(4, ((1, "40%", None),)), "shift.maxUnavailableGroups"),
        (LACKING, "make the steps smaller"),
    ],
    ids=str,
)
async def test_what_does_not_apply_is_not_told(case: Case, words: str) -> None:
    async with pair(case) as world:
        assert not told(plan_of(world), words)


async def test_the_figures_of_the_plan_are_values_too() -> None:
    async with pair(LACKING) as world:
        shown = value(make(seen(world, version_of(GREEN)), seen(world)))
        assert shown["style"] == "Pair"
        assert (shown["totals"]["connectionCuts"], shown["totals"]["extraGroups"]) == (4, 0)
        assert [each["groups"] for each in shown["steps"]] == [
            {"new": 1, "old": 3, "extra": 0},
            {"new": 3, "old": 1, "extra": 0},
            {"new": 4, "old": 0, "extra": 0},
        ]
        assert [each["wayBack"]["modelLoads"] for each in shown["steps"]] == [1, 3, 3]
        assert shown["pair"]["wayBackAfterwards"] == {"modelLoads": 4}
