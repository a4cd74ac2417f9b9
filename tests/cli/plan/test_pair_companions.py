"""Releases of a pair with companions are what `rollout-lws plan` says: groups and loads of every workload, groups
beyond those at rest, accelerators, approvals, time, and the objects that are written.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest

from rollout_lws.cli.plan.model import Plan
from rollout_lws.cli.plan.planning import make
from rollout_lws.cli.plan.quotas import short_of
from rollout_lws.cli.plan.show import lines
from rollout_lws.cli.plan.values import value
from rollout_lws.objects.resources import LEADER_WORKER_SETS, LWS_NAME, PODS
from rollout_lws.rollout.companions import SETTLED_SECONDS
from rollout_lws.sandbox.behaviours.cluster import Options
from rollout_lws.sandbox.behaviours.faults import PREFIX, Timing
from rollout_lws.sandbox.store import Event
from tests.cli.plan.snapshots import plan_of, seen, services_of
from tests.cli.plan.test_pair_scaled import ANSWERS, MATCHES, PairGauge, at, ended, told, version_of
from tests.cli.plan.test_pair_scaled import Case as Steps
from tests.cli.plan.test_releases import LEADER_LONGER, SETTLES, WORKERS, Accelerated, Meter, written
from tests.cli.plan.watched import Watch
from tests.scenarios.paired import BLUE, GREEN, all_ready, apply, create_sides, rollout, share
from tests.scenarios.world import KEYS, NAMESPACE, ROLLOUTS, World

pytestmark = [pytest.mark.looptime, pytest.mark.rare(3)]

#: Random plans that are compared with their releases, and those of them in the default run.
PLANS, SHOWN = 18, 2


@dataclass(frozen=True)
class Case:
    """A plan for ``replicas`` groups whose steps are groups, traffic or MATCHES, and pause (None: an approval). Of each
    companion its number, and the seconds until a group is ready. ``named``: a version has a release ID.
    """

    replicas: int
    steps: tuple[tuple[int | str, str | None, int | None], ...]
    companions: tuple[tuple[int | str, float], ...]
    named: bool = False
    more: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        beside = " ".join(f"{asked} in {seconds:g}s" for asked, seconds in self.companions)
        return f"{Steps(self.replicas, self.steps, self.more)} with {beside}{' named' if self.named else ''}"

    @property
    def spec(self) -> list[dict[str, Any]]:
        """The Rollout's companions."""
        return [
            {"name": beside(BLUE, at), "counterpart": beside(GREEN, at), "replicas": asked}
            for at, (asked, _) in enumerate(self.companions)
        ]

    def own(self, number: int) -> int:
        """Groups of a companion at full size."""
        asked = self.companions[number][0]
        return asked if isinstance(asked, int) else -(-self.replicas * int(asked.removesuffix("%")) // 100)

    @property
    def sizes(self) -> dict[str, int]:
        """Groups of each workload of the active side."""
        return {BLUE: self.replicas} | {beside(BLUE, at): self.own(at) for at in range(len(self.companions))}


def beside(side: str, number: int) -> str:
    """The name of a companion of this side."""
    return f"{side}-beside-{number}"


def members(case: Case, side: str) -> tuple[str, ...]:
    return (side, *(beside(side, number) for number in range(len(case.companions))))


def drawn(seed: int) -> Case:
    """A random plan; the steps never take groups or requests back."""
    random = Random(seed)
    replicas = random.randint(1, 6)
    groups, share, steps = 0, 0, []
    for _ in range(random.randint(1, 3)):
        groups = random.randint(max(1, groups), replicas + 1)
        percent = -(-100 * min(groups, replicas) // replicas)
        size: int | str = random.choice([groups, f"{percent}%"])
        traffic: str | None = None
        if share or random.random() < 0.7:
            share = random.randint(max(1, share), 90)
            traffic = f"{share}%"
        elif random.random() < 0.3:
            traffic, share = MATCHES, 1
        steps.append((size, traffic, random.choice([None, None, 0, 7, 40])))
    asked = [random.choice([1, 2, 3, 5, "25%", "50%", "100%", "150%"]) for _ in range(random.randint(1, 2))]
    companions = tuple((each, random.choice([5.0, 60.0, 100.0])) for each in asked)
    more = random.choice([{}, {}, {"minReadySeconds": 20}, {"routing": {"gracePeriodSeconds": 70, "drainSeconds": 8}}])
    return Case(replicas, tuple(steps), companions, random.random() < 0.5, more)


HALVES = Case(4, (("25%", "20%", None), ("100%", "50%", None)), (("50%", 60.0),))
CASES = [
    HALVES,
    # The companion is slower, and has fewer groups, or none to add.
    Case(4, ((1, "20%", None), (2, "30%", None), (3, "40%", None)), ((1, 100.0), ("75%", 5.0)), named=True),
    # It decides when routers hear of the first groups.
    Case(3, ((1, None, 20), (2, "30%", None)), ((3, 150.0),)),
    # Requests drain while the last step pauses.
    Case(4, (("100%", "100%", 20),), (("50%", 100.0),)),
    *map(drawn, range(PLANS)),
]
SOME = [
    case if at < len(CASES) - PLANS + SHOWN else pytest.param(case, marks=pytest.mark.long)
    for at, case in enumerate(CASES)
]


class Loads:
    """Leaders made of each workload since it was made."""

    def __init__(self, world: World) -> None:
        self._world, self.of = world, dict[str, int]()
        self._known = {pod["metadata"]["uid"] for pod in self._leaders()}
        world.server.store.subscribe(self._see)

    def _leaders(self) -> list[dict[str, Any]]:
        return [pod for pod in self._world.server.list(PODS, NAMESPACE) if self._world.kind.leads(pod)]

    def _see(self, event: Event) -> None:
        if event.resource != PODS:
            return
        for pod in self._leaders():
            uid, name = pod["metadata"]["uid"], pod["metadata"]["labels"][LWS_NAME]
            if uid not in self._known:
                self._known.add(uid)
                self.of[name] = self.of.get(name, 0) + 1


@asynccontextmanager
async def pair(case: Case) -> AsyncIterator[World]:
    """Two sides at v1, at rest; the second one without groups."""
    world = World(Options(nodes=32, timing=Timing(ready_after=WORKERS, leader_longer=LEADER_LONGER)))
    world.containers = Accelerated()
    try:
        create_sides(world, replicas=case.replicas, beside=0)
        for number, (_, seconds) in enumerate(case.companions):
            for side, count in ((BLUE, case.own(number)), (GREEN, 0)):
                name = beside(side, number)
                world.create_workload(name=name, replicas=count, size=2, tag="v1")
                slow = {"metadata": {"annotations": {f"{PREFIX}ready-after": f"{seconds:g}s"}}}
                world.patch_lws({"leaderWorkerTemplate": {"workerTemplate": slow}}, name)
        more = dict(case.more)
        made = rollout(*Steps(case.replicas, case.steps).words, spec={"companions": case.spec}, **more)
        world.server.create(ROLLOUTS, made)
        await all_ready(world, *members(case, BLUE))
        world.start_controller()
        await world.until_state("Healthy")
        await world.rest()
        yield world
    finally:
        world.close()


def new_versions(world: World, case: Case) -> list[dict[str, Any]]:
    """Manifests of the inactive side with the new version."""
    found = []
    for name in members(case, GREEN):
        made = version_of(name)
        live = world.get(LEADER_WORKER_SETS, name)
        assert live is not None
        meta = live["spec"]["leaderWorkerTemplate"]["workerTemplate"]["metadata"]
        made["spec"]["leaderWorkerTemplate"]["workerTemplate"]["metadata"] = meta
        if case.named:
            made["metadata"]["labels"] = {KEYS.rollout_id: "r2"}
        found.append(made)
    return found


def apply_all(world: World, case: Case) -> None:
    for name in members(case, GREEN):
        if case.named:
            world.patch(LEADER_WORKER_SETS, name, {"metadata": {"labels": {KEYS.rollout_id: "r2"}}})
        apply(world, name, "v2")


def loads_of(case: Case, plan: Plan, until: int) -> dict[str, int]:
    """Loads of each workload up to part ``until``, those without any left out."""
    rows = [part.row for part in plan.parts[:until]]
    beside = [sum(row.companions[number].loads for row in rows) for number in range(len(case.companions))]
    counts = [sum(row.loads for row in rows) - sum(beside), *beside]
    return {name: count for name, count in zip(members(case, GREEN), counts, strict=True) if count}


def standing(world: World, case: Case, side: str) -> list[int]:
    """Groups asked for of each workload."""
    found = (world.get(LEADER_WORKER_SETS, name) for name in members(case, side))
    return [each["spec"]["replicas"] for each in found if each is not None]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("case", SOME, ids=str)
async def test_a_release_is_what_its_plan_says(case: Case) -> None:
    async with pair(case) as world:
        plan = make(seen(world, *new_versions(world, case)), seen(world), services=services_of(world))
        found, sides, before = plan.forecast, plan.sides, sum(case.sizes.values())
        assert plan.refusals == ()
        assert found is not None
        assert sides is not None
        assert plan.begins is not None
        assert [each.active_groups for each in sides.companions] == [*case.sizes.values()][1:]
        assert plan.begins.seconds == (0 if case.named else SETTLED_SECONDS)
        gauge, meter, made = PairGauge(world, case.replicas), Meter(world), Loads(world)
        begun = len(world.writes), len(world.labels)
        assert plan.now == meter.now
        watch = Watch(world, plan)
        apply_all(world, case)
        last, since = 0, plan.begins.seconds
        for index in found.approvals:
            await at(world, index)
            _assert_took(plan, gauge.seconds - since, last, index)
            await world.sleep(SETTLES)
            rows, part = [each.row for each in plan.parts[:index]], plan.parts[index - 1]
            assert made.of == loads_of(case, plan, index)
            assert gauge.extra + case.replicas - before == part.row.extra
            assert standing(world, case, GREEN) == [part.row.new, *(each.new for each in part.row.companions)]
            assert standing(world, case, BLUE) == [part.old, *(each.active_groups for each in sides.companions)]
            assert gauge.peak_load == pytest.approx(max(each.peak_load for each in rows))
            assert gauge.ready == min(each.ready for each in rows)
            assert share(world, GREEN) == pytest.approx(part.row.share)
            assert meter.most == part.accelerators
            last, since = index, gauge.seconds
            watch.approves()
            world.approve()
        await ended(world)
        _assert_took(plan, gauge.seconds - since, last, len(plan.parts))
        assert made.of == loads_of(case, plan, len(plan.parts))
        assert gauge.loads == found.loads == before
        assert gauge.extra + case.replicas - before == found.extra == before
        assert (gauge.ready, gauge.disrupted) == (found.ready, found.disrupted)
        assert gauge.peak_load == pytest.approx(found.peak_load)
        gauge.stop()
        watch.assert_as_drawn(ANSWERS, SETTLES)
        await world.rest()
        assert meter.most == plan.peak
        assert Meter(world).now == plan.afterwards
        done = written([*world.writes[begun[0] :], *world.labels[begun[1] :]])
        assert done == {(each.resource, each.name, verb) for each in plan.writes for verb in each.verbs}
        after = plan_of(world)
        assert (after.change, after.refusals) == ("", ())


def _assert_took(plan: Plan, seconds: float, since: int, until: int) -> None:
    """From the end of step ``since`` to that of step ``until`` it took as long as the plan says."""
    said = sum(each.row.seconds for each in plan.parts[since:until])
    # While an approval is thought about, routers hear of the first groups.
    assert said - (SETTLES if since else 0) <= seconds <= said + ANSWERS


async def test_in_mid_release_the_plan_is_the_same_and_says_what_is_left() -> None:
    async with pair(HALVES) as world:
        before = make(seen(world, *new_versions(world, HALVES)), seen(world), services=services_of(world))
        apply_all(world, HALVES)
        await at(world, 1)
        plan = plan_of(world)
        assert (plan.at, plan.begins, plan.parts) == ("step 1", None, before.parts)
        assert (plan.change, plan.peak, plan.afterwards) == (before.change, before.peak, before.afterwards)
        assert "Now at        step 1; after it 4 loads, about 1m33s" in lines(plan)
        assert plan.now == Meter(world).now
        assert not told(plan, "before any release")


async def test_a_version_that_is_incomplete_is_told() -> None:
    async with pair(HALVES) as world:
        (main, own), running = new_versions(world, HALVES), seen(world)
        plan = make(seen(world, main), running)
        assert plan.refusals == ()
        assert told(plan, f"the release begins when {beside(GREEN, 0)} has another version as well, or when all")
        assert value(plan)["begins"] == {"when": "not by itself, since the version is incomplete", "seconds": None}
        assert plan.change == "vllm v1 -> v2 (worker), vllm: resources (worker)"
        plan = make(seen(world, own), running)
        assert told(plan, f"the release begins when {GREEN} has another version as well, or when all")
        assert plan.change == f"{beside(GREEN, 0)}: vllm v1 -> v2 (worker), vllm: resources (worker)"
        main["metadata"]["labels"] = {KEYS.rollout_id: "r2"}
        assert told(make(seen(world, main, own), running), f"({GREEN} has r2, {beside(GREEN, 0)} has none)")
        own["metadata"]["labels"] = {KEYS.rollout_id: "r2"}
        plan = make(seen(world, main, own), running)
        assert not told(plan, "the release begins when")
        assert any("have the same rollout-id, r2" in each for each in lines(plan))
        generic = plan_of(world).begins
        assert generic is not None and generic.seconds is None
        assert generic.when.startswith(f"when {GREEN} and {beside(GREEN, 0)} have the same new rollout-id, or 10 s")


async def test_a_version_that_settles_is_told_for_how_long() -> None:
    async with pair(HALVES) as world:
        apply_all(world, HALVES)
        await world.sleep(4)
        plan = plan_of(world)
        assert plan.begins is not None
        assert plan.begins.seconds == pytest.approx(SETTLED_SECONDS - 4, abs=0.5)


async def test_what_is_missing_is_a_refusal() -> None:
    async with pair(HALVES) as world:
        world.delete(LEADER_WORKER_SETS, beside(GREEN, 0))
        await world.rest()
        plan = plan_of(world)
        (refusal,) = plan.refusals
        assert refusal == (
            f"LeaderWorkerSet {beside(GREEN, 0)} does not exist: create {beside(GREEN, 0)} to release a version on the"
            f" side of {GREEN}"
        )
        assert (plan.begins, plan.beside[0].inactive_groups, plan.beside[0].replicas) == (None, 0, 2)
        world.delete(LEADER_WORKER_SETS, beside(BLUE, 0))
        await world.rest()
        first, second = plan_of(world).refusals
        assert first.startswith(f"LeaderWorkerSet {beside(BLUE, 0)} does not exist in namespace")
        assert second == refusal


async def test_an_adoption_is_what_its_plan_says() -> None:
    world = World(Options(nodes=32, timing=Timing(ready_after=WORKERS, leader_longer=LEADER_LONGER)))
    world.containers = Accelerated()
    try:
        create_sides(world, beside=0)
        for side, count in ((BLUE, 3), (GREEN, 1)):
            world.create_workload(name=beside(side, 0), replicas=count, size=2, tag="v1")
        await all_ready(world, BLUE, GREEN, beside(BLUE, 0), beside(GREEN, 0))
        await world.rest()
        made = rollout(spec={"activeSide": BLUE, "companions": HALVES.spec})
        plan = make(seen(world, made, *new_versions(world, HALVES)), seen(world, made))
        assert plan.refusals == ()
        assert told(plan, f"{beside(BLUE, 0)} has 3 groups, and is scaled down to 2 groups before any release")
        assert told(plan, f"{beside(GREEN, 0)} has 1 group and no requests: it is scaled to 0 before anything")
        assert plan.now == {"nvidia.com/gpu": 16}
        world.server.create(ROLLOUTS, made)
        world.start_controller()
        await world.until_state("Healthy")
        await world.rest()
        apply_all(world, HALVES)
        for index in (1, 2):
            await at(world, index)
            world.approve()
        await ended(world)
        await world.rest()
        done = written([*world.writes, *world.labels])
        assert done == {(each.resource, each.name, verb) for each in plan.writes for verb in each.verbs}
        assert Meter(world).now == plan.afterwards
    finally:
        world.close()


async def test_what_a_user_may_not_expect_is_told() -> None:
    async with pair(HALVES) as world:
        plan = plan_of(world)
        assert told(plan, "whether the cluster has room for 12 more nvidia.com/gpu is known only when groups are")
        assert told(
            plan, f"lost its last requests (gracePeriodSeconds and drainSeconds), together with {beside(BLUE, 0)}:"
        )
        assert told(plan, "a way back after that (kubectl rollout-lws start llama) loads 6 groups again")
        assert value(plan)["pair"]["wayBackAfterwards"] == {"modelLoads": 6}
        assert not told(plan, "states no accelerators")
        quota = {"metadata": {"name": "gpus"}, "spec": {"hard": {"requests.nvidia.com/gpu": "2"}}}
        (short,) = short_of(plan, [quota])
        assert short.startswith("ResourceQuota gpus leaves 2 nvidia.com/gpu, and the release takes up to 12 more: it")
        bare = version_of(beside(GREEN, 0))
        del bare["spec"]["leaderWorkerTemplate"]["workerTemplate"]["spec"]["containers"][0]["resources"]
        plan = make(seen(world, bare, new_versions(world, HALVES)[0]), seen(world))
        assert told(
            plan, f"{beside(GREEN, 0)} states no accelerators in the limits of its containers: its groups count"
        )
        # Those of the other version count all the same.
        assert (plan.peak, plan.afterwards) == ({"nvidia.com/gpu": 28}, {"nvidia.com/gpu": 16})
        late = {"strategy": {"progressDeadlineSeconds": 30}}
        world.patch_rollout(late)
        assert told(plan_of(world), f"a group of {beside(GREEN, 0)} loads for 1m, longer than progressDeadlineSeconds")


async def test_another_template_for_a_companion_that_serves_is_told_to_start_nothing() -> None:
    async with pair(HALVES) as world:
        plan = make(seen(world, version_of(beside(BLUE, 0))), seen(world))
        assert told(
            plan, f"another template for LeaderWorkerSet {beside(BLUE, 0)}, of the active side, starts nothing:"
        )
        assert told(plan, f"to release the version, apply it to LeaderWorkerSet {beside(GREEN, 0)}")
        assert plan.change == ""


async def test_a_pair_that_its_owner_scales_waits_for_all_and_loads_none() -> None:
    world = World(Options(timing=Timing(ready_after=WORKERS, leader_longer=LEADER_LONGER)))
    world.containers = Accelerated()
    spec = {"touch": "RouteOnly", "companions": [{"name": beside(BLUE, 0), "counterpart": beside(GREEN, 0)}]}
    try:
        create_sides(world, replicas=4, beside=4)
        for side, count in ((BLUE, 2), (GREEN, 0)):
            world.create_workload(name=beside(side, 0), replicas=count, size=2, tag="v1")
        await all_ready(world, BLUE, GREEN, beside(BLUE, 0))
        world.server.create(ROLLOUTS, rollout(spec=spec))
        world.start_controller()
        await world.until_state("Healthy")
        await world.rest()
        plan = make(seen(world, *new_versions(world, HALVES)), seen(world), services=services_of(world))
        assert plan.refusals == ()
        assert told(plan, f"{beside(GREEN, 0)} has 0 groups: no step ends before its owner has scaled it up, and this")
        shown = lines(plan)
        assert any(each.startswith("1           1 of 4 + 1 of 2   20%") for each in shown)
        assert any(each.startswith("promotion   4 of 4 + 2 of 2   100%") for each in shown)
        assert {each.name for each in plan.writes if each.resource == LEADER_WORKER_SETS} == set()
        begun = len(world.writes), len(world.labels)
        apply_all(world, HALVES)
        await world.sleep(600)
        assert share(world, GREEN) == 0
        world.patch_lws({"replicas": 2}, beside(GREEN, 0))
        gauge = PairGauge(world, 4)
        await at(world, 1)
        world.approve()
        await at(world, 2)
        world.approve()
        await ended(world)
        assert plan.forecast is not None
        assert plan.forecast.loads == 0
        gauge.stop()
        await world.rest()
        assert Meter(world).now == plan.afterwards
        done = written([*world.writes[begun[0] :], *world.labels[begun[1] :]])
        assert done == {(each.resource, each.name, verb) for each in plan.writes for verb in each.verbs}
    finally:
        world.close()
