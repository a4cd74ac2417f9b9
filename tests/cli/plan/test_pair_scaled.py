"""Releases of a pair that they scale are what `rollout-lws plan` says: loads, groups beyond R, shares, time, and the
objects that are written.
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
from rollout_lws.objects.resources import HORIZONTAL_POD_AUTOSCALERS, LEADER_WORKER_SETS, LWS_NAME, SERVICES, Resource
from rollout_lws.sandbox.behaviours.cluster import Options
from rollout_lws.sandbox.behaviours.faults import Timing
from rollout_lws.workload.applied import LAST_APPLIED
from tests.cli.plan.snapshots import plan_of, seen, services_of
from tests.cli.plan.test_releases import (
    LEADER_LONGER,
    LOAD,
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
from tests.scenarios.paired import BLUE, GREEN, MATCH, all_ready, apply, create_sides, rollout, scaled_pair, share
from tests.scenarios.world import NAME, ROLLOUTS, World

pytestmark = [pytest.mark.looptime, pytest.mark.rare(3)]

#: The most seconds that LWS, routers and the controller take besides, from one approval to the next.
ANSWERS = 1.5
#: A step's requests, instead of a share.
MATCHES = "matches"


@dataclass(frozen=True)
class Case:
    """A plan for ``replicas`` groups whose steps are groups, traffic or MATCHES, and pause (None: an approval)."""

    replicas: int
    steps: tuple[tuple[int | str, str | None, int | None], ...]
    more: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        steps = ",".join(f"{groups}@{traffic}+{pause}" for groups, traffic, pause in self.steps)
        return f"R{self.replicas} {steps} {' '.join(self.more)}".strip()

    @property
    def words(self) -> list[dict[str, Any]]:
        return [
            {"replicas": groups, "pause": {} if pause is None else {"duration": pause}} | _requests(traffic)
            for groups, traffic, pause in self.steps
        ]


def _requests(traffic: str | None) -> dict[str, Any]:
    if traffic == MATCHES:
        return {"matches": MATCH[0]["matches"]}
    return {"traffic": traffic} if traffic else {}


HALVES = Case(4, (("25%", "60%", None), ("100%", "50%", None)))
CASES = [
    HALVES,
    Case(4, ((1, MATCHES, None), ("50%", "30%", 30))),
    Case(6, (("50%", "auto", None), (9, "80%", 20))),
    # The first share comes after groups that had none, in the last step or at the end.
    Case(5, ((2, None, 45), ("60%", "25%", None))),
    Case(4, ((1, None, None),)),
    Case(4, (("100%", "100%", 20),)),
    Case(4, ((1, "10%", 60), (2, "40%", 0), (3, "70%", None))),
    Case(3, ((9, "auto", None),)),
    Case(1, ((1, "50%", 30),)),
    # Routers take longer than a group loads.
    Case(2, ((1, None, 10), (2, "30%", None)), {"routing": {"gracePeriodSeconds": 90, "drainSeconds": 10}}),
    Case(3, ((1, "20%", None), (3, MATCHES, 15)), {"minReadySeconds": 25}),
]
SOME = [case if at < 3 else pytest.param(case, marks=pytest.mark.long) for at, case in enumerate(CASES)]


class PairGauge(Gauge):
    """Its Services have no clients past the route."""

    def _asked(self) -> set[str]:
        return {*self.carried()}


@asynccontextmanager
async def pair(case: Case) -> AsyncIterator[World]:
    """Two sides at v1, at rest; the second one without groups."""
    world = World(Options(timing=Timing(ready_after=WORKERS, leader_longer=LEADER_LONGER)))
    world.containers = Accelerated()
    try:
        await scaled_pair(world, *case.words, replicas=case.replicas, more=dict(case.more))
        yield world
    finally:
        world.close()


def version_of(name: str) -> dict[str, Any]:
    """The manifest of a side with the new version, without replicas."""
    return {**new_version(), "metadata": {"name": name}}


def told(plan: Plan, words: str) -> bool:
    return any(words in each for each in plan.cautions)


async def at(world: World, step: int) -> None:
    """The release waits for an approval of this step."""
    await world.until(
        lambda: world.state == "AwaitingApproval" and world.status["currentStepIndex"] == step, f"step {step}", 3600
    )


async def ended(world: World, side: str = GREEN) -> None:
    """This side has become the active one, and nothing is left of the release."""
    await world.until(lambda: world.status["active"] == side and world.state == "Healthy", "the end", 3600)


def assert_took(plan: Plan, seconds: float, since: int, until: int) -> None:
    """From the end of step ``since`` to that of step ``until`` it took as long as the plan says."""
    said = sum(each.row.seconds for each in plan.parts[since:until])
    # While an approval is thought about, routers hear of the first groups.
    assert said - (SETTLES if since else 0) <= seconds <= said + ANSWERS


@pytest.mark.parametrize("case", SOME, ids=str)
async def test_a_release_is_what_its_plan_says(case: Case) -> None:
    async with pair(case) as world:
        plan = make(seen(world, version_of(GREEN)), seen(world), services=services_of(world))
        found = plan.forecast
        assert plan.refusals == ()
        assert found is not None
        assert plan.loads.seconds == (LOAD,) * case.replicas
        assert plan.sides == Sides(BLUE, case.replicas, GREEN, 0)
        gauge, meter = PairGauge(world, case.replicas), Meter(world)
        begun = len(world.writes), len(world.labels)
        assert plan.now == meter.now
        watch = Watch(world, plan)
        apply(world, GREEN, "v2")
        last, since = 0, 0.0
        for index in found.approvals:
            await at(world, index)
            assert_took(plan, gauge.seconds - since, last, index)
            await world.sleep(SETTLES)
            rows, part = [each.row for each in plan.parts[:index]], plan.parts[index - 1]
            assert gauge.loads == sum(each.loads for each in rows)
            assert gauge.extra == part.row.extra
            assert gauge.peak_load == pytest.approx(max(each.peak_load for each in rows))
            assert gauge.ready == min(each.ready for each in rows)
            assert share(world, GREEN) == pytest.approx(part.row.share)
            rest = {round(each, 6) for each in gauge.carried().values()}
            assert rest == {round(each, 6) for each in (part.row.load_new, part.row.load_stable) if each}
            assert meter.most == part.accelerators
            last, since = index, gauge.seconds
            watch.approves()
            world.approve()
        await ended(world)
        assert_took(plan, gauge.seconds - since, last, len(plan.parts))
        assert (gauge.loads, gauge.extra) == (found.loads, found.extra) == (case.replicas, case.replicas)
        assert gauge.ready == found.ready
        assert gauge.peak_load == pytest.approx(found.peak_load)
        assert (gauge.windows, gauge.disrupted) == (found.windows, found.disrupted) == (0, 0)
        gauge.stop()
        watch.assert_as_drawn(ANSWERS, SETTLES)
        await world.rest()
        assert meter.most == plan.peak
        assert Meter(world).now == plan.afterwards
        done = written([*world.writes[begun[0] :], *world.labels[begun[1] :]])
        assert done == {(each.resource, each.name, verb) for each in plan.writes for verb in each.verbs}
        after = plan_of(world)
        assert after.sides == Sides(GREEN, case.replicas, BLUE, 0)
        assert (after.change, after.refusals) == ("", ())


async def test_the_way_back_loads_nothing_before_the_end() -> None:
    async with pair(HALVES) as world:
        apply(world, GREEN, "v2")
        await at(world, 1)
        world.approve()
        await at(world, 2)
        plan = plan_of(world)
        assert plan.at == "step 2"
        assert "Now at        step 2; after it 0 loads, about 33s" in lines(plan)
        assert {each.row.back_loads for each in plan.parts} == {0}
        assert not told(plan, "it is scaled to 0 before")
        gauge = PairGauge(world, 4)
        world.request("Abort")
        await world.until_state("Aborted", 3600)
        assert (gauge.loads, gauge.ready) == (0, 4)
        (refusal,) = plan_of(world).refusals
        assert refusal.startswith("this version was aborted (")
        gauge.stop()


@pytest.mark.long
async def test_the_way_back_after_the_end_loads_all_groups() -> None:
    async with pair(HALVES) as world:
        apply(world, GREEN, "v2")
        await at(world, 1)
        world.request("PromoteFull")
        await ended(world)
        await world.rest()
        back = plan_of(world)
        assert told(back, f"the version of LeaderWorkerSet {BLUE} was there at adoption or has been released")
        assert value(back)["pair"]["wayBackAfterwards"] == {"modelLoads": 4}
        assert back.forecast is not None
        gauge = PairGauge(world, 4)
        world.request("Start")
        await at(world, 1)
        world.request("PromoteFull")
        await ended(world, BLUE)
        assert gauge.loads == back.forecast.loads == 4
        gauge.stop()


async def test_an_adoption_is_what_its_plan_says() -> None:
    world = World(Options(timing=Timing(ready_after=WORKERS, leader_longer=LEADER_LONGER)))
    world.containers = Accelerated()
    try:
        create_sides(world, beside=2)
        await all_ready(world, BLUE, GREEN)
        await world.rest()
        (refusal,) = make(seen(world, rollout(spec={}))).refusals
        assert f"name the side that serves in spec.activeSide, or scale {GREEN} to 0" in refusal
        made = rollout(spec={"activeSide": BLUE})
        plan = make(seen(world, made, version_of(GREEN)), seen(world, made))
        assert (plan.refusals, plan.sides) == ((), Sides(BLUE, 4, GREEN, 2))
        assert told(plan, f"LeaderWorkerSet {GREEN} has 2 groups and no requests: it is scaled to 0 before")
        assert plan.now == {"nvidia.com/gpu": 12}
        world.server.create(ROLLOUTS, made)
        world.start_controller()
        await world.until_state("Healthy")
        apply(world, GREEN, "v2")
        for index in (1, 2):
            await at(world, index)
            world.approve()
        await ended(world)
        await world.rest()
        done = written([*world.writes, *world.labels])
        assert done == {(each.resource, each.name, verb) for each in plan.writes for verb in each.verbs}
    finally:
        world.close()


async def test_an_active_side_that_rolls_by_itself_is_waited_for() -> None:
    world = World(Options(timing=Timing(ready_after=WORKERS, leader_longer=LEADER_LONGER)))
    try:
        create_sides(world, beside=0)
        await all_ready(world, BLUE)
        assert not told(make(seen(world, rollout(spec={}))), "waiting until")
        apply(world, BLUE, "v2")
        await world.sleep(WORKERS)
        assert told(make(seen(world, rollout(spec={}))), f"waiting until LeaderWorkerSet {BLUE} has finished its own")
    finally:
        world.close()


async def test_the_groups_are_those_that_the_rollout_asks_for() -> None:
    async with pair(HALVES) as world:
        more = {**(world.get(ROLLOUTS, NAME) or {}), "status": {}}
        plan = make(seen(world, {**more, "spec": {**more["spec"], "replicas": 6}}, version_of(GREEN)), seen(world))
        assert plan.sides == Sides(BLUE, 6, GREEN, 0)
        assert plan.forecast is not None
        assert (plan.forecast.loads, plan.forecast.extra, plan.afterwards) == (6, 6, {"nvidia.com/gpu": 24})
        none = make(seen(world, {**more, "spec": {**more["spec"], "replicas": 0}}, version_of(GREEN)), seen(world))
        assert (none.parts, none.refusals) == ((), ())
        assert told(none, "the pair has 0 groups, and the side that gets another version becomes the active one")


async def test_what_a_user_may_not_expect_is_told() -> None:
    async with pair(HALVES) as world:
        plan = plan_of(world)
        assert told(plan, "whether the cluster has room for 8 more nvidia.com/gpu is known only when groups are")
        assert told(plan, "in step 1 a group carries up to 2.40 times what it has at rest")
        assert told(
            plan,
            f"{BLUE} is scaled to 0 33 s after it has lost its last requests (gracePeriodSeconds and drainSeconds):"
            " what runs there for longer ends as its preStop and terminationGracePeriodSeconds allow, and a way back"
            " after that (kubectl rollout-lws start llama) loads 4 groups again",
        )
        assert not told(plan, "its owner")
        assert not told(plan, "times as many each")
        (short,) = short_of(plan, [{"metadata": {"name": "gpus"}, "spec": {"hard": {"requests.nvidia.com/gpu": "2"}}}])
        assert short.startswith("ResourceQuota gpus leaves 2 nvidia.com/gpu, and the release takes up to 8 more: it")
        routed.make(world, SERVICES, "past", spec={"selector": {LWS_NAME: BLUE}, "ports": [{"port": 80}]})
        assert told(
            plan_of(world),
            f"Service past leads to groups of {BLUE} too: its clients get no share of a step, and have no group when"
            f" {BLUE} is scaled to 0",
        )
        canary = (world.get(ROLLOUTS, NAME) or {})["spec"]["strategy"]["canary"]
        routing = [{**canary["trafficRoutings"][0], "drain": {"until": "Idle", "maxSeconds": 900}}]
        world.patch_rollout({"strategy": {"canary": {"trafficRoutings": routing}}})
        assert told(
            plan_of(world), f"{BLUE} is scaled to 0 when nothing runs there any more, 903 s after it has lost its last"
        )
        world.patch_rollout({"disabled": True})
        assert told(plan_of(world), "rollout/llama is disabled: requests and groups stay where they are, and each side")


async def test_another_template_for_the_active_side_is_told_to_start_nothing() -> None:
    async with pair(HALVES) as world:
        words = (
            f"another template for LeaderWorkerSet {BLUE}, the active side, starts nothing: it is held, and the Rollout"
            " is Stalled with reason ActiveSideEdited until that template is restored; to release the version, apply it"
            f" to LeaderWorkerSet {GREEN}"
        )
        plan = make(seen(world, version_of(BLUE)), seen(world))
        assert told(plan, words) and plan.change == ""
        assert not told(plan_of(world), "starts nothing")
        apply(world, BLUE, "v2")
        await world.until(lambda: world.condition("Stalled").get("reason") == "ActiveSideEdited", "told")
        plan = plan_of(world)
        assert told(plan, words) and plan.change == ""


def autoscaler(kind: Resource, name: str) -> dict[str, Any]:
    """The manifest of an autoscaler of this object."""
    return {
        "apiVersion": HORIZONTAL_POD_AUTOSCALERS.api_version,
        "kind": HORIZONTAL_POD_AUTOSCALERS.kind,
        "metadata": {"name": "scaler"},
        "spec": {"maxReplicas": 8, "scaleTargetRef": target(kind, name)},
    }


def scaled_object(kind: Resource, name: str) -> dict[str, Any]:
    """The manifest from which KEDA makes one."""
    head = {"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "metadata": {"name": "scaler"}}
    return {**head, "spec": {"scaleTargetRef": target(kind, name), "triggers": []}}


def target(kind: Resource, name: str) -> dict[str, str]:
    return {"apiVersion": kind.api_version, "kind": kind.kind, "name": name}


async def test_what_the_controller_would_refuse_is_refused() -> None:
    async with pair(HALVES) as world:
        stated = version_of(GREEN)
        stated["spec"] = {**stated["spec"], "replicas": 4}
        (refusal,) = make(seen(world, stated), seen(world)).refusals
        assert refusal.startswith(f"LeaderWorkerSet {GREEN} gets spec.replicas from a manifest (kubectl apply), which")
        for name in (BLUE, GREEN):
            (refusal,) = make(seen(world, autoscaler(LEADER_WORKER_SETS, name)), seen(world)).refusals
            assert f"HorizontalPodAutoscaler scaler scales LeaderWorkerSet {name}, whose groups are" in refusal
            (refusal,) = make(seen(world, scaled_object(LEADER_WORKER_SETS, name)), seen(world)).refusals
            assert f"of ScaledObject scaler, scales LeaderWorkerSet {name}, whose groups are" in refusal
        for each in (autoscaler(ROLLOUTS, NAME), scaled_object(ROLLOUTS, NAME)):
            assert make(seen(world, each), seen(world)).refusals == ()
        # A manifest without them, of which kubectl knows that it had some, would take them away.
        copied = {LAST_APPLIED: '{"spec": {"replicas": 4}}'}
        world.patch(LEADER_WORKER_SETS, BLUE, {"metadata": {"annotations": copied}})
        (refusal,) = make(seen(world, version_of(GREEN)), seen(world)).refusals
        assert refusal.startswith(f"LeaderWorkerSet {BLUE} gets spec.replicas from a manifest (kubectl apply), which")
