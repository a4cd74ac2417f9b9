"""Whole releases are what `rollout-lws plan` says before they begin: groups, model loads, accelerators, shares, time,
and the very objects that are written.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from rollout_lws.cli.demo import manifests
from rollout_lws.cli.plan.model import Plan
from rollout_lws.cli.plan.planning import make
from rollout_lws.objects.resources import DESTINATION_RULES, LWS_NAME, PODS, SERVICES, Resource
from rollout_lws.objects.writes import Confirm, Create, Delete, Write
from rollout_lws.sandbox.behaviours.cluster import Options
from rollout_lws.sandbox.behaviours.faults import Timing
from rollout_lws.sandbox.store import Event
from tests.cli.plan.snapshots import plan_of, seen, services_of
from tests.cli.plan.watched import Watch
from tests.scenarios.containers import Containers
from tests.scenarios.gauge import Gauge
from tests.scenarios.kinds import LWS, ORDERED, STATEFUL_SET, LeaderWorkerSets, nested
from tests.scenarios.routed import (
    BY_INGRESS,
    BY_POOLS,
    BY_ROUTE,
    BY_SCRIPT,
    BY_SUBSET,
    SERVICE,
    Provider,
    create_provider,
    create_route,
    routing,
)
from tests.scenarios.scaled import create_autoscaler
from tests.scenarios.stories import at_rest
from tests.scenarios.world import NAME, NAMESPACE, ROLLOUTS, World

pytestmark = [pytest.mark.looptime, pytest.mark.rare(3)]

#: A group's load in seconds: leaders are ready after their workers.
WORKERS, LEADER_LONGER = 50.0, 10.0
LOAD = WORKERS + LEADER_LONGER
#: The most seconds that groups that end and the answers of LWS, routers and endpoint pickers take besides.
BESIDES = 4.0
#: Seconds until what a step has made is known to all.
SETTLES = 1.0
#: Accelerators of a pod by version: a newer one needs more.
TAKES = {"v1": {"nvidia.com/gpu": "1"}, "v2": {"nvidia.com/gpu": "2"}, "v3": {"nvidia.com/gpu": "3"}}
SIZE = 2


class Accelerated(Containers):
    """Containers that take accelerators."""

    def of(self, version: str) -> list[dict[str, Any]]:
        return [{**each, "resources": {"limits": TAKES[version]}} for each in super().of(version)]


@dataclass(frozen=True)
class Case:
    """A plan of ``style`` for a workload of ``replicas`` groups; steps are groups and traffic."""

    style: str
    steps: tuple[tuple[int | str, str | None], ...]
    replicas: int = 4
    unavailable: int | str = 1
    by: Provider | None = BY_ROUTE
    scaled: bool = False
    named: bool = False
    """Whether the Service selects by the name of the LWS."""
    words: Mapping[str, Any] = field(default_factory=dict)
    kind: LeaderWorkerSets = LWS

    def __str__(self) -> str:
        steps = ",".join(f"{groups}@{traffic}" if traffic else f"{groups}" for groups, traffic in self.steps)
        by = "Service by name" if self.named else self.by
        kind = f"{self.kind}-" if self.kind is not LWS else ""
        return f"{kind}{self.style}-R{self.replicas}-U{self.unavailable}-{by}-{steps}"

    @property
    def strategy(self) -> dict[str, Any]:
        plan: dict[str, Any] = {"trafficRoutings": routing(self.by)} if self.by else {}
        return {"blueGreen": plan} if self.style == "BlueGreen" else {"canary": {**plan, "capacity": self.style}}


CASES = [
    Case("ExtraWorkload", (("25%", "25%"), ("50%", "50%"), ("100%", None)), scaled=True),
    Case("ExtraWorkload", ((1, "20%"), ("100%", "100%")), by=BY_POOLS),
    Case("ExtraWorkload", ((1, "5%"), ("34%", "auto")), replicas=5, unavailable="50%"),
    Case("ExtraWorkload", ((1, "30%"),), replicas=1),
    Case("ExtraWorkload", (("50%", None), ("100%", None)), unavailable=2, by=None),
    Case("ExtraWorkload", ((1, None),), replicas=1, by=None),
    Case("ExtraWorkload", ((3, None),), replicas=3),
    Case("ExtraWorkload", ((2, None), ("100%", None)), by=None, named=True),
    Case("BlueGreen", ((1, None), (2, None)), unavailable=2, by=None, named=True),
    Case("InPlace", (("25%", "25%"), ("50%", "50%"), ("100%", None)), scaled=True),
    Case("InPlace", (("25%", "auto"), ("100%", "100%")), unavailable=2),
    Case("InPlace", ((1, "20%"),), replicas=2, by=BY_POOLS),
    Case("InPlace", (("50%", None), ("100%", None)), unavailable=2, by=None),
    Case("InPlace", ((1, None),), replicas=3),
    Case("Surge", (("25%", "25%"), ("50%", "50%"), ("100%", None)), scaled=True),
    Case("Surge", ((1, "50%"),), replicas=1, by=BY_INGRESS),
    Case("Surge", ((4, "100%"),), unavailable=0),
    Case("Surge", (("50%", None), ("100%", None)), by=None),
    Case("BlueGreen", (("50%", "0%"), ("100%", "100%")), scaled=True),
    Case("BlueGreen", ((1, "20%"),), replicas=3, by=BY_INGRESS),
    Case("BlueGreen", ((2, None),), by=None),
    Case("ExtraWorkload", ((1, "20%"), (2, "50%")), by=BY_SCRIPT),
]
#: Of StatefulSets, which have no surge groups.
STATEFUL = [
    replace(case, kind=kind)
    for kind in (STATEFUL_SET, ORDERED)
    for case in CASES
    if case.style != "Surge" and not case.named and (kind is STATEFUL_SET or case.unavailable == 1)
]
#: One of each style in the default run, with and without a route, all of them in the longer one.
SOME = [
    case if at in (0, 8, 10, 17, 18) else pytest.param(case, marks=pytest.mark.long) for at, case in enumerate(CASES)
] + [case if at % 5 == 0 else pytest.param(case, marks=pytest.mark.long) for at, case in enumerate(STATEFUL)]


class Meter:
    """Most accelerators of all leaders that stand, by name, since it was made."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.most: dict[str, int] = {}
        self.now = self._look()
        world.server.store.subscribe(self._see)

    def _see(self, event: Event) -> None:
        if event.resource == PODS:
            self._look()

    def _look(self) -> dict[str, int]:
        held: dict[str, int] = defaultdict(int)
        for pod in filter(self._world.kind.leads, self._world.server.list(PODS, NAMESPACE)):
            if "deletionTimestamp" not in pod["metadata"]:
                for name, amount in pod["spec"]["containers"][0]["resources"]["limits"].items():
                    held[name] += int(amount) * size_of(self._world.kind)
        for name, amount in held.items():
            self.most[name] = max(self.most.get(name, 0), amount)
        return dict(held)


def written(writes: Iterable[Write]) -> set[tuple[Resource, str, str]]:
    """Kind, name and verb of all that was written; pods without their names."""
    found = set()
    for write in writes:
        if isinstance(write, Confirm):
            continue
        verb = "create" if isinstance(write, Create) else "delete" if isinstance(write, Delete) else "patch"
        found.add((write.resource, "" if write.resource == PODS else write.name, verb))
    return found


def size_of(kind: LeaderWorkerSets) -> int:
    """Pods of a group."""
    return min(SIZE, kind.largest)


def new_version(tag: str = "v2", kind: LeaderWorkerSets = LWS) -> dict[str, Any]:
    """The manifest of the workload with the new version."""
    template = {"metadata": {"labels": {"app": "llama"}}, "spec": {"containers": Accelerated().of(tag)}}
    spec = kind.spec(template, 1, size_of(kind))
    return {
        "apiVersion": kind.resource.api_version,
        "kind": kind.resource.kind,
        "metadata": {"name": NAME},
        "spec": {member: value for member, value in spec.items() if member != "replicas"},
    }


@asynccontextmanager
async def planned(case: Case) -> AsyncIterator[tuple[World, Plan]]:
    """A world at rest, and what is said of the release of its next version."""
    single = size_of(case.kind) == 1
    timing = Timing(ready_after=LOAD) if single else Timing(ready_after=WORKERS, leader_longer=LEADER_LONGER)
    world = World(Options(timing=timing))
    world.kind, world.containers = case.kind, Accelerated()
    try:
        if case.by:
            create_provider(world, case.by)
        else:
            create_route(world)
            if case.named:
                world.patch(SERVICES, SERVICE, {"spec": {"selector": {LWS_NAME: NAME}}})
        if case.scaled:
            create_autoscaler(world, of=case.kind.resource)
        steps = [{"replicas": groups} | ({"traffic": traffic} if traffic else {}) for groups, traffic in case.steps]
        await at_rest(world, *steps, replicas=case.replicas, size=size_of(case.kind), **case.strategy)
        strategy = {"maxUnavailable": case.unavailable} | ({"maxSurge": 1} if case.unavailable == 0 else {})
        world.patch_lws(nested(case.kind.strategy, strategy))
        await world.rest()
        yield world, make(seen(world, new_version(kind=case.kind)), seen(world), services=services_of(world))
    finally:
        world.close()


@pytest.mark.one_in(6)
@pytest.mark.parametrize("case", SOME, ids=str)
async def test_a_release_is_what_its_plan_says(case: Case) -> None:
    async with planned(case) as (world, plan):
        assert plan.refusals == ()
        assert plan.forecast is not None
        assert plan.loads.seconds == (LOAD,) * case.replicas
        gauge, meter = Gauge(world, case.replicas), Meter(world)
        begun = len(world.writes), len(world.labels)
        assert plan.now == meter.now
        watch = Watch(world, plan, routed=case.by in (BY_ROUTE, None))
        world.set_image("v2")
        await world.until(lambda: world.state != "Healthy")
        for index in plan.forecast.approvals:
            await world.until(
                lambda: world.state == "AwaitingApproval" and world.status["currentStepIndex"] == index,  # noqa: B023
                f"step {index}",
                3600,
            )
            await world.sleep(SETTLES)
            part = plan.parts[index - 1]
            assert gauge.loads == sum(each.row.loads for each in plan.parts[:index])
            assert gauge.extra == max(each.row.extra for each in plan.parts[:index])
            assert meter.most == most_until(plan, index)
            if case.by:
                assert world.status["traffic"].get("applied", {"weight": 0}) == {"weight": round(100 * part.row.share)}
            old = sum(told.startswith("v1") for told in world.groups().values())
            assert old == part.old
            watch.approves()
            world.approve()
        await world.until_state("Healthy", 3600)
        assert (gauge.loads, gauge.extra, gauge.windows) == (
            plan.forecast.loads,
            plan.forecast.extra,
            plan.forecast.windows,
        )
        if case.by in (BY_ROUTE, None):
            assert (gauge.ready, gauge.peak_load) == (plan.forecast.ready, pytest.approx(plan.forecast.peak_load))
            assert gauge.disrupted == plan.forecast.disrupted
        assert meter.most == plan.peak
        assert meter.now == plan.now
        # While somebody thinks about an approval, routers hear of the first groups.
        most = plan.forecast.seconds + SETTLES * len(plan.forecast.approvals) + BESIDES
        # Pods that are made one after the other end one after the other, too.
        most += BESIDES if case.kind is ORDERED else 0
        assert plan.forecast.seconds <= gauge.seconds <= most
        gauge.stop()
        watch.assert_as_drawn(most - plan.forecast.seconds, SETTLES)
        await world.rest()
        assert Meter(world).now == plan.afterwards
        done = written([*world.writes[begun[0] :], *world.labels[begun[1] :]])
        said = {(each.resource, each.name, verb) for each in plan.writes for verb in each.verbs}
        assert done == said


async def test_a_copy_that_is_the_same_for_all_shares_is_not_said_to_be_changed() -> None:
    """A DestinationRule's, of which a release writes what the user's says; only an edit of that one changes it."""
    async with planned(Case("ExtraWorkload", ((1, "20%"), (2, "50%")), by=BY_SUBSET)) as (world, plan):
        assert plan.forecast is not None
        begun = len(world.writes)
        world.set_image("v2")
        for _ in plan.forecast.approvals:
            await world.until(lambda: world.state == "AwaitingApproval", "an approval", 3600)
            world.approve()
            await world.sleep(SETTLES)
        await world.until_state("Healthy", 3600)
        await world.rest()
        said = {(each.name, verb) for each in plan.writes if each.resource == DESTINATION_RULES for verb in each.verbs}
        done = {(name, verb) for kind, name, verb in written(world.writes[begun:]) if kind == DESTINATION_RULES}
        assert said == done == {("llama-canary", "create"), ("llama-canary", "delete")}


@pytest.mark.parametrize(
    "style",
    ["Surge", *(pytest.param(each, marks=pytest.mark.long) for each in ("ExtraWorkload", "InPlace", "BlueGreen"))],
)
async def test_in_mid_release_the_plan_is_the_same_and_says_what_is_left(style: str) -> None:
    async with planned(Case(style, ((1, "25%"), (2, "50%")))) as (world, before):
        gauge = Gauge(world, 4)
        world.set_image("v2")
        await world.until_state("AwaitingApproval", 3600)
        await world.sleep(SETTLES)
        plan = plan_of(world)
        assert plan.at == "step 1"
        assert plan.refusals == ()
        assert plan.now == Meter(world).now
        assert (plan.parts, plan.afterwards, plan.peak) == (before.parts, before.afterwards, before.peak)
        assert plan.change == before.change
        assert plan.loads.typical == LOAD
        so_far = gauge.loads
        world.approve()
        await world.until(lambda: world.status["currentStepIndex"] == 2 and world.state == "AwaitingApproval", "", 3600)
        world.approve()
        await world.until(lambda: (world.status.get("finalising") or {}).get("task") == "Promote", "promotion", 3600)
        assert plan_of(world).at == "promotion"
        await world.until_state("Healthy", 3600)
        assert gauge.loads - so_far == sum(part.row.loads for part in plan.parts[1:])
        gauge.stop()


async def test_an_lws_in_nobodys_care_is_taken_into_it_as_the_plan_says() -> None:
    world = World(Options(timing=Timing(ready_after=WORKERS, leader_longer=LEADER_LONGER)))
    world.containers = Accelerated()
    try:
        create_provider(world, BY_ROUTE)
        world.create_workload(replicas=2, size=SIZE)
        await world.until(lambda: world.groups() == {0: "v1", 1: "v1"}, "running", 3600)
        await world.rest()
        strategy = {"canary": {"trafficRoutings": routing(), "steps": [{"replicas": 1, "traffic": "20%"}]}}
        rollout = manifests.rollout(ROLLOUTS.api_version, {"name": NAME})
        rollout["spec"]["strategy"] = strategy
        plan = make(seen(world, rollout, new_version()), seen(world, rollout))
        assert plan.refusals == ()
        world.server.create(ROLLOUTS, rollout)
        world.start_controller()
        await world.until_state("Healthy")
        world.set_image("v2")
        await world.until_state("AwaitingApproval", 3600)
        world.approve()
        await world.until_state("Healthy", 3600)
        await world.rest()
        done = written([*world.writes, *world.labels])
        assert done == {(each.resource, each.name, verb) for each in plan.writes for verb in each.verbs}
    finally:
        world.close()


def most_until(plan: Plan, index: int) -> Mapping[str, int]:
    """Most accelerators up to the end of step ``index``."""
    found = dict(plan.now)
    for part in plan.parts[:index]:
        for name, amount in part.accelerators.items():
            found[name] = max(found.get(name, 0), amount)
    return found
