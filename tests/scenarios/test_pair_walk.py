"""Pairs in random walks: owners, operators, tools and a dying controller do anything, and each side keeps its requests.

A failure prints the acts, shortened to what is needed.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, ClassVar

import pytest
from hypothesis import strategies as st

from rollout_lws.errors import ApiError
from rollout_lws.objects.resources import (
    LEADER_WORKER_SETS,
    LWS_NAME,
    NODES,
    PODS,
)
from rollout_lws.objects.writes import Write
from rollout_lws.sandbox.behaviours.cluster import Options
from tests.scenarios.paired import (
    BLUE,
    GREEN,
    SERVICES_OF,
    STEPS,
    ScaleJudge,
    WeightJudge,
    create_route,
    pair_at_rest,
    rollout,
    rules,
    scaled_pair,
    set_rules,
    set_weights,
    weights,
)
from tests.scenarios.paired_companions import COMPANIONS, PREFILL, SETS, sets
from tests.scenarios.paired_companions import at_rest as companions_at_rest
from tests.scenarios.paired_shift import assert_none_left
from tests.scenarios.routed import (
    BY_ROUTE,
    OF_PAIRS,
    ROUTE,
    by_each,
    kind,
    told_only_with,
)
from tests.scenarios.test_random_walk import Kind, Lane, wander
from tests.scenarios.walk_plans import Act, Plan, template
from tests.scenarios.world import KEYS, NAME, NAMESPACE, ROLLOUTS, World

pytestmark = pytest.mark.each_change

#: Errors at which a person does something else instead.
SHRUGGED = (403, 404, 409, 422)
PLANS: dict[str, tuple[dict[str, Any], ...]] = {
    "two": STEPS,
    "all": ({"replicas": "100%", "traffic": "100%", "pause": {}},),
    "timed": ({"replicas": 1, "traffic": "10%", "pause": {"duration": 5}}, {"replicas": "50%", "traffic": "50%"}),
    "shift": (
        {"replicas": "34%", "traffic": "auto", "pause": {}},
        {"replicas": "100%", "traffic": "auto", "pause": {}},
    ),
    "match": (
        {"replicas": 1, "matches": [{"headers": [{"name": "x-canary", "value": "yes"}]}], "pause": {}},
        {"replicas": "100%", "traffic": "50%", "pause": {}},
    ),
}
sides = st.sampled_from((BLUE, GREEN))
KINDS = (
    *(Kind("apply", st.tuples(sides, st.sampled_from(("v2", "v2", "v3", "v1", "bad", "crash")))),) * 6,
    *(Kind("approve"),) * 8,
    *(Kind("scale", st.tuples(sides, st.integers(0, 4))),) * 2,
    Kind("ask", st.sampled_from(("Abort", "Abort", "Retry", "Start", "Start", "PromoteFull", "Pause", "Resume"))),
    *(Kind("ask", st.sampled_from(("Abort", "Abort", "Start"))),) * 4,
    Kind("jump", st.integers(0, 3)),
    Kind("plan", st.sampled_from(sorted(PLANS))),
    Kind("disabled", st.booleans()),
    Kind("delete_rollout"),
    Kind("create_rollout"),
    Kind("delete_record"),
    Kind("delete_side", st.tuples(sides, st.sampled_from(("Background", "Foreground")))),
    Kind("create_side", sides),
    *(Kind("weigh", st.tuples(st.sampled_from((0, 1, 50, 100)), st.sampled_from((0, 1, 50, 100)))),) * 4,
    Kind("unmark"),
    Kind("delete_route"),
    Kind("create_route"),
    Kind("drop_backend", sides),
    Kind("wipe_status"),
    Kind("forge", st.sampled_from(("active", "stable", "phase", "capacity", "inactiveHash", "finalising", "traffic"))),
    Kind("fail_leader", st.tuples(sides, st.integers(0, 3))),
    Kind("lose_node", st.integers(0, 2)),
    Kind("refuse", st.tuples(st.sampled_from((409, 429, 500)), st.integers(1, 3))),
    *(Kind("kill", st.tuples(st.integers(0, 8), st.sampled_from((0.0, 0.7, 30.0)))),) * 2,
)
FORGED: dict[str, dict[str, Any]] = {
    "active": {"active": GREEN},
    "stable": {"stable": {"templateHash": "forged", "revision": "forged", "workloadUid": "forged"}},
    "phase": {"phase": "Healthy"},
    "capacity": {"capacity": "InPlace"},
    "inactiveHash": {"inactiveHash": None},
    "finalising": {"finalising": {"reason": "Success", "task": "Promote"}},
    "traffic": {"traffic": None},
}


@dataclass
class PairWalk:
    """What happens to a pair, and how it has to end."""

    world: World
    seen: Counter[str]
    NAMES: ClassVar[tuple[str, ...]] = (BLUE, GREEN)
    """All workloads."""
    refusals: list[ApiError] = field(default_factory=list)
    tasks: set[asyncio.Task[None]] = field(default_factory=set)

    async def begin(self) -> None:
        await pair_at_rest(self.world, more={"progressDeadlineSeconds": 600}, replicas=2, beside=2, size=1)

    def watch(self) -> None:
        """Has writes judged from now on."""
        WeightJudge(self.world).watch()

    async def do(self, act: Act) -> None:
        self.seen[f"act:{act.kind}"] += 1
        with contextlib.suppress(ApiError):
            try:
                getattr(self, act.kind)(*(() if act.value is None else (act.value,)))
            except ApiError as error:
                if error.code not in SHRUGGED:
                    raise AssertionError(f"{act}: {error}") from error
        await self.world.sleep(act.then)

    # Owners and operators

    def apply(self, told: tuple[str, str]) -> None:
        name, version = told
        pods = template(version, self.world.containers)
        self.world.patch_lws({"leaderWorkerTemplate": {"workerTemplate": pods}}, name)

    def scale(self, told: tuple[str, int]) -> None:
        self.world.patch_lws({"replicas": told[1]}, told[0])

    def delete_side(self, told: tuple[str, str]) -> None:
        self.world.delete(LEADER_WORKER_SETS, *told)

    def create_side(self, name: str) -> None:
        self.world.create_workload(name=name, replicas=2, size=1, tag="v1")

    def approve(self) -> None:
        self.world.approve()

    def ask(self, kind: str) -> None:
        self.world.request(kind)

    def jump(self, step: int) -> None:
        self.world.patch(ROLLOUTS, NAME, {"status": {"canaryStatus": {"nextStepIndex": step}}}, "status")

    def plan(self, name: str) -> None:
        self.world.patch_rollout({"strategy": {"canary": {"steps": list(PLANS[name])}}})

    def disabled(self, on: bool) -> None:
        self.world.patch_rollout({"disabled": on})

    def delete_rollout(self) -> None:
        self.world.delete(ROLLOUTS, NAME)

    def create_rollout(self) -> None:
        self.world.server.create(ROLLOUTS, self.manifest())

    def manifest(self) -> dict[str, Any]:
        return manifest()

    def delete_record(self) -> None:
        self.world.delete(self.world.RECORD, NAME)

    # Tools that write the route or the status

    def weigh(self, told: tuple[int, int]) -> None:
        if self.world.get(kind(), ROUTE) is not None:
            set_weights(self.world, dict(zip((BLUE, GREEN), told, strict=True)))

    def unmark(self) -> None:
        self.world.patch(kind(), ROUTE, {"metadata": {"annotations": {KEYS.original: None}}})

    def delete_route(self) -> None:
        self.world.delete(kind(), ROUTE)

    def create_route(self) -> None:
        create_route(self.world)

    def drop_backend(self, name: str) -> None:
        if self.world.get(kind(), ROUTE) is not None:
            rule = rules(self.world)[0]
            left = [each for each in rule["backendRefs"] if each["name"] != SERVICES_OF[name]]
            set_rules(self.world, {**rule, "backendRefs": left})

    def wipe_status(self) -> None:
        self.world.patch(ROLLOUTS, NAME, {"status": dict.fromkeys(self.world.status_of(NAME))}, "status")

    def forge(self, what: str) -> None:
        self.world.patch(ROLLOUTS, NAME, {"status": FORGED[what]}, "status")

    # Machines, the API server and the controller

    def fail_leader(self, told: tuple[str, int]) -> None:
        self.world.delete(PODS, f"{told[0]}-{told[1]}")

    def lose_node(self, number: int) -> None:
        name = f"node-{number}"
        self.world.server.delete(NODES, "", name)
        for pod in self.world.server.list(PODS, NAMESPACE):
            if pod["spec"].get("nodeName") == name:
                self.world.server.delete(PODS, NAMESPACE, pod["metadata"]["name"], grace_seconds=0)

    def refuse(self, told: tuple[int, int]) -> None:
        self.refusals += [ApiError(told[0], "Injected", "refused by the walk")] * told[1]

    def refused(self, _: Write) -> ApiError | None:
        return self.refusals.pop() if self.refusals else None

    def kill(self, told: tuple[int, float]) -> None:
        """The controller dies after so many more writes and is away for so many seconds."""
        if not self.tasks:
            self.world.kill_after(told[0])
            task = asyncio.create_task(self._restart(told[1]))
            self.tasks.add(task)
            task.add_done_callback(self.tasks.discard)

    async def _restart(self, away: float) -> None:
        while self.world.running:
            await self.world._change(3600)
        await asyncio.sleep(away)
        self.world.start_controller()

    # The end

    async def settle(self) -> None:
        """All faults off; one more version is released on the inactive side, and then nothing happens for a day."""
        world = self.world
        self.refusals.clear()
        for task in tuple(self.tasks):
            task.cancel()
        world.kill_after(10**9)
        for number in range(3):
            with contextlib.suppress(ApiError):
                world.server.create(NODES, node(number))
        for name in self.NAMES:
            await world.until(lambda name=name: not self._goes(name), "deleted", 3600)  # type: ignore[misc]
            if world.get(LEADER_WORKER_SETS, name) is None:
                await world.until(lambda name=name: not self._pods(name), "pods gone", 3600)  # type: ignore[misc]
                self.create_side(name)
            self.mend_side(name)
        self._mend_route()
        if (
            world.get(ROLLOUTS, NAME) is not None
            and "deletionTimestamp" in world.server.get(ROLLOUTS, NAMESPACE, NAME)["metadata"]
        ):
            world.start_controller()
            await world.until(lambda: world.get(ROLLOUTS, NAME) is None, "the Rollout leaves", 3600)
        if world.get(ROLLOUTS, NAME) is None:
            self.create_rollout()
        spec = self.manifest()["spec"]
        world.patch_rollout({"disabled": None, "strategy": {**spec["strategy"], "paused": None}})
        world.start_controller()
        await world.rest(quiet=120, seconds=7200)
        with contextlib.suppress(ApiError):
            world.request("Resume")
        await self._end_what_is_on()
        await self.at_rest()
        active = world.status["active"]
        other = GREEN if active == BLUE else BLUE
        self.release(other)
        await world.until(lambda: world.status.get("phase") == "Progressing", "the last release begins", 3600)
        await self._approve_all()
        assert world.status["active"] == other, world.describe()
        await world.rest(quiet=120, seconds=7200)
        assert weights(world)[active] == 0 < weights(world)[other]
        self.assert_ended(active, other)
        assert world.names()["batchreleases"] == []
        assert len(rules(world)) == 1
        before = len(world.writes)
        await world.sleep(24 * 3600)
        assert len(world.writes) == before, world.writes[before:]

    def release(self, side: str) -> None:
        """The last version comes to this side."""
        self.apply((side, "last"))

    def mend_side(self, name: str) -> None:
        self.scale((name, 2))
        self.apply((name, "v1"))

    async def at_rest(self) -> None:
        """Nothing is released: what has to be so before the last release."""

    def assert_ended(self, active: str, other: str) -> None:
        """What holds besides when the ``other`` side has become the active one."""

    def _goes(self, name: str) -> bool:
        found = self.world.get(LEADER_WORKER_SETS, name)
        return found is not None and "deletionTimestamp" in found["metadata"]

    def _pods(self, name: str) -> list[Any]:
        return self.world.server.list(PODS, NAMESPACE, label_selector=f"{LWS_NAME}={name}")

    def _mend_route(self) -> None:
        """The route has both backends again, with the weights that it has of those that are left."""
        world = self.world
        if world.get(kind(), ROUTE) is None:
            create_route(world)
            return
        rule, *others = rules(world)
        there = {each["name"]: each for each in rule.get("backendRefs") or ()}
        refs = [there.get(name, {"name": name, "port": 80, "weight": 0}) for name in SERVICES_OF.values()]
        set_rules(world, {**rule, "backendRefs": refs}, *others)

    async def _end_what_is_on(self) -> None:
        """Whatever is released is aborted, and an undecided pair is decided."""
        world = self.world
        if world.condition("Stalled")["reason"] == "ActiveSideUnknown":
            self.decide()
        await world.rest(quiet=120, seconds=7200)
        for _ in range(5):
            if world.status.get("phase") == "Progressing":
                world.request("Abort")
                await world.rest(quiet=700, seconds=14400)
        assert world.status.get("phase") in ("Healthy", "Aborted"), world.describe()

    def decide(self) -> None:
        """Says which side serves."""
        set_weights(self.world, {BLUE: 100, GREEN: 0})

    async def _approve_all(self) -> None:
        world = self.world
        for _ in range(20):
            await world.until(
                lambda: world.state in ("AwaitingApproval", "Healthy", "Stalled"), "approval or end", 7200
            )
            if world.state == "Healthy":
                return
            assert world.state == "AwaitingApproval", world.describe()
            world.approve()
            await world.rest(quiet=5, seconds=7200)
        raise AssertionError(f"approved without end\n{world.describe()}")


def manifest(spec: dict[str, Any] | None = None) -> dict[str, Any]:
    return rollout(routing={"gracePeriodSeconds": 1, "drainSeconds": 5}, progressDeadlineSeconds=600, spec=spec)


def node(number: int) -> dict[str, Any]:
    return {"metadata": {"name": f"node-{number}"}}


async def walk(_: Plan, acts: list[Act], seen: Counter[str]) -> None:
    await walked(PairWalk, acts, seen)


async def walked(made: type[PairWalk], acts: list[Act], seen: Counter[str]) -> None:
    world = World(Options(nodes=3))
    here = made(world, seen)
    try:
        await here.begin()
        world.refuse = here.refused
        here.watch()
        for act in acts:
            await here.do(act)
        await here.settle()
    finally:
        seen.update(f"told:{event.reason}" for event in world.events)
        for task in tuple(here.tasks):
            task.cancel()
        world.close()


class ScaledWalk(PairWalk):
    """The same if releases scale both sides: the one without requests has no groups in the end."""

    async def begin(self) -> None:
        await scaled_pair(self.world, more={"progressDeadlineSeconds": 600}, replicas=2, size=1)
        ScaleJudge(self.world).watch()

    def scale_rollout(self, count: int) -> None:
        self.world.patch_rollout({"replicas": count})

    def label(self, told: tuple[str, str | None]) -> None:
        self.world.patch(LEADER_WORKER_SETS, told[0], {"metadata": {"labels": {KEYS.side: told[1]}}})

    def unhold(self, name: str) -> None:
        self.world.patch_lws({"rolloutStrategy": {"rollingUpdateConfiguration": {"partition": 0}}}, name)

    def manifest(self) -> dict[str, Any]:
        return manifest({})

    def mend_side(self, name: str) -> None:
        """What crashes on the active side would be held there for ever: its template is let in effect by hand."""
        super().mend_side(name)
        self._break_glass(name, "true")
        # No Rollout may manage it at the moment.
        self.unhold(name)

    def _break_glass(self, name: str, on: str | None) -> None:
        self.world.patch(LEADER_WORKER_SETS, name, {"metadata": {"annotations": {KEYS.release_hold: on}}})

    def decide(self) -> None:
        found = weights(self.world)
        self.world.patch_rollout({"activeSide": max(found, key=lambda name: found[name])})

    async def at_rest(self) -> None:
        """Both sides are held again; without groups the other one's template is in effect, too."""
        world = self.world
        for name in self.NAMES:
            self._break_glass(name, None)
        await world.rest(quiet=120, seconds=7200)
        self.scale_rollout(0)
        await world.until(lambda: not any(map(self._count, self.NAMES)), "no groups", 7200)
        for name in self.NAMES:
            self.apply((name, "v1"))
        await world.rest(quiet=120, seconds=7200)
        self.scale_rollout(2)
        await world.rest(quiet=120, seconds=7200)
        assert world.state == "Healthy", world.describe()

    def assert_ended(self, active: str, other: str) -> None:
        assert (self._count(active), self._count(other)) == (0, 2), self.world.describe()
        assert {each.rstrip("!") for each in self.world.groups(other).values()} == {"last"}

    def _count(self, name: str) -> int:
        return int((self.world.get(LEADER_WORKER_SETS, name) or {"spec": {}})["spec"].get("replicas", 0))


async def scaled_walk(_: Plan, acts: list[Act], seen: Counter[str]) -> None:
    await walked(ScaledWalk, acts, seen)


class ShiftWalk(ScaledWalk):
    """The same if groups of one side go as those of the other one come: none stays without its label in the end."""

    async def begin(self) -> None:
        more = {"progressDeadlineSeconds": 600, "shift": {}}
        await scaled_pair(self.world, *PLANS["shift"], more=more, replicas=3, size=1)
        ScaleJudge(self.world).watch()

    def manifest(self) -> dict[str, Any]:
        made = manifest({})
        made["spec"]["strategy"]["canary"] |= {"shift": {}, "steps": list(PLANS["shift"])}
        return made

    def shift(self, margin: tuple[int, int]) -> None:
        asked = None if not any(margin) else {"maxExtraGroups": margin[0], "maxUnavailableGroups": margin[1]}
        self.world.patch_rollout({"strategy": {"canary": {"shift": asked}}})

    def relabel(self, name: str) -> None:
        """Another client gives the groups of a side their label back."""
        for pod in self.world.server.list(PODS, NAMESPACE, label_selector=f"{LWS_NAME}={name}"):
            self.world.patch(PODS, pod["metadata"]["name"], {"metadata": {"labels": {"app": "llama"}}})

    def assert_ended(self, active: str, other: str) -> None:
        super().assert_ended(active, other)
        assert_none_left(self.world)


async def shift_walk(_: Plan, acts: list[Act], seen: Counter[str]) -> None:
    await walked(ShiftWalk, acts, seen)


class CompanionsWalk(ScaledWalk):
    """The same if each side has a companion: versions of a side that has requests never mix."""

    NAMES = (*SETS[BLUE], *SETS[GREEN])

    async def begin(self) -> None:
        sizes = {"replicas": 2, "own": 1, "size": 1}
        await companions_at_rest(self.world, sizes=sizes, progressDeadlineSeconds=600)
        ScaleJudge(self.world).watch()

    def manifest(self) -> dict[str, Any]:
        return manifest({"companions": [*COMPANIONS]})

    def apply_set(self, told: tuple[str, str]) -> None:
        for name in SETS[told[0]]:
            self.apply((name, told[1]))

    def release(self, side: str) -> None:
        self.apply_set((side, "last"))

    def assert_ended(self, active: str, other: str) -> None:
        super().assert_ended(active, other)
        assert sets(self.world) == {active: (0, 0), other: (2, 1)}, self.world.describe()
        assert {each.rstrip("!") for each in self.world.groups(PREFILL[other]).values()} == {"last"}


async def companions_walk(_: Plan, acts: list[Act], seen: Counter[str]) -> None:
    await walked(CompanionsWalk, acts, seen)


PAIR: Lane = walk, KINDS, st.just(Plan())
SCALED: Lane = (
    scaled_walk,
    (
        *KINDS,
        *(Kind("scale_rollout", st.integers(0, 4)),) * 3,
        Kind("label", st.tuples(sides, st.sampled_from(("active", "parked", None)))),
        Kind("unhold", sides),
    ),
    st.just(Plan()),
)


members = st.sampled_from(CompanionsWalk.NAMES)
VERSIONS = st.sampled_from(("v2", "v2", "v3", "v1", "bad", "crash"))
OF_ONE = ("apply", "scale", "delete_side", "create_side", "fail_leader", "label", "unhold")
COMPANIONS_LANE: Lane = (
    companions_walk,
    (
        *(each for each in SCALED[1] if each.name not in OF_ONE),
        *(Kind("apply_set", st.tuples(sides, VERSIONS)),) * 6,
        *(Kind("apply", st.tuples(members, VERSIONS)),) * 2,
        *(Kind("scale", st.tuples(members, st.integers(0, 4))),) * 2,
        Kind("delete_side", st.tuples(members, st.sampled_from(("Background", "Foreground")))),
        Kind("create_side", members),
        Kind("fail_leader", st.tuples(members, st.integers(0, 3))),
        Kind("label", st.tuples(members, st.sampled_from(("active", "parked", None)))),
        Kind("unhold", members),
    ),
    st.just(Plan()),
)
SHIFT: Lane = (
    shift_walk,
    (
        *SCALED[1],
        *(Kind("plan", st.just("shift")),) * 3,
        Kind("shift", st.sampled_from(((1, 0), (0, 1), (2, 1), (0, 0)))),
        Kind("relabel", sides),
    ),
    st.just(Plan()),
)


@by_each(OF_PAIRS)
@pytest.mark.timeout(300)
def test_a_walk_of_a_pair_comes_to_a_legal_end() -> None:
    seen = wander(PAIR, 3, 10)
    assert seen["told:Completed"] and seen["told:Promoted"], seen


@by_each(OF_PAIRS)
@pytest.mark.timeout(300)
def test_a_walk_of_a_pair_that_is_scaled_comes_to_a_legal_end() -> None:
    seen = wander(SCALED, 3, 10)
    assert seen["told:Completed"] and seen["told:Promoted"], seen


@by_each(OF_PAIRS)
@pytest.mark.timeout(300)
def test_a_walk_of_a_pair_that_shifts_comes_to_a_legal_end() -> None:
    seen = wander(SHIFT, 3, 10)
    assert seen["told:Completed"] and seen["told:Promoted"], seen


@by_each(OF_PAIRS)
@pytest.mark.timeout(300)
def test_a_walk_of_a_pair_with_companions_comes_to_a_legal_end() -> None:
    seen = wander(COMPANIONS_LANE, 3, 10)
    assert seen["told:Completed"] and seen["told:Promoted"], seen


@told_only_with(BY_ROUTE, why="each walk above is taken by the others too")
@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("lane", [PAIR, SCALED, SHIFT, COMPANIONS_LANE], ids=["pair", "scaled", "shift", "companions"])
def test_many_walks_of_pairs_come_to_legal_ends(lane: Lane) -> None:
    seen: Counter[str] = Counter()
    for number in range(4):
        seen += wander(lane, 20, 16, 1 + number)
    # Walks of companions have more kinds of acts, and these seeds draw no more of them.
    told = ("Completed", "Aborted", *(() if lane is COMPANIONS_LANE else ("Superseded", "RouteReset")))
    assert {end for end in told if not seen[f"told:{end}"]} == set(), seen
