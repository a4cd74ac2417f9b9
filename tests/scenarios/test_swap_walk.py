"""Swaps in random walks: owners, operators, tools and a dying controller do anything, and what serves stays.

A failure prints the acts, shortened to what is needed.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from typing import Any

import pytest
from hypothesis import strategies as st

from rollout_lws.errors import ApiError
from rollout_lws.objects.resources import LEADER_WORKER_SETS, LWS_NAME, NODES, PODS, SERVICES
from rollout_lws.objects.writes import Delete, Patch, Write
from rollout_lws.rollout.write_conflicts import COOL_DOWN_SECONDS
from tests.scenarios.paired_shift import draining, unlabelled
from tests.scenarios.routed import SERVICE, routed_at_rest, routing
from tests.scenarios.stories import CANARY
from tests.scenarios.swapped import SWAP, replicas, stands_in
from tests.scenarios.test_pair_walk import PLANS, PairWalk, node, walked
from tests.scenarios.test_random_walk import Kind, Lane, wander
from tests.scenarios.walk_plans import Act, Plan
from tests.scenarios.world import KEYS, NAME, NAMESPACE, ROLLOUTS, World

pytestmark = pytest.mark.each_change

#: Groups of the Rollout.
R = 2
both = st.sampled_from((NAME, CANARY))
VERSIONS = st.sampled_from(("v2", "v2", "v3", "v1", "bad", "crash"))
KINDS = (
    *(Kind("release", VERSIONS),) * 7,
    *(Kind("approve"),) * 10,
    *(Kind("ask", st.sampled_from(("Abort", "Abort", "Retry", "Start", "PromoteFull", "Pause", "Resume"))),) * 3,
    *(Kind("scale", st.tuples(both, st.integers(0, 4))),) * 2,
    *(Kind("scale_rollout", st.integers(0, 4)),) * 2,
    Kind("jump", st.integers(0, 3)),
    Kind("plan", st.sampled_from(sorted(set(PLANS) - {"match"}))),
    Kind("promotion", st.sampled_from(("Swap", "InPlace"))),
    *(Kind("keep", st.sampled_from((0, 60, 900, 900))),) * 2,
    Kind("disabled", st.booleans()),
    Kind("leave_as_is", st.sampled_from(("true", "false"))),
    Kind("delete_rollout"),
    Kind("create_rollout"),
    Kind("delete_record"),
    Kind("delete_side", st.tuples(both, st.sampled_from(("Background", "Foreground")))),
    Kind("create_side", st.just(NAME)),
    Kind("unpin"),
    Kind("delete_copy"),
    Kind("wipe_status"),
    Kind("forge", st.sampled_from(("active", "stable", "phase", "capacity", "finalising", "traffic"))),
    Kind("fail_leader", st.tuples(both, st.integers(0, 3))),
    Kind("lose_node", st.integers(0, 2)),
    Kind("unhold", both),
    Kind("refuse", st.tuples(st.sampled_from((409, 429, 500)), st.integers(1, 3))),
    *(Kind("kill", st.tuples(st.integers(0, 8), st.sampled_from((0.0, 0.7, 30.0)))),) * 2,
)


class ServingJudge:
    """Judges each write that takes groups: the last LWS that serves keeps them, unless the Rollout has none."""

    def __init__(self, world: World) -> None:
        self.world = world

    def watch(self) -> None:
        store_write = self.world.store_write

        def judged(write: Write) -> None:
            if write.resource == LEADER_WORKER_SETS and isinstance(write, Patch | Delete):
                self.judge(write)
            store_write(write)

        self.world.store_write = judged  # type: ignore[method-assign]

    def judge(self, write: Patch | Delete) -> None:
        found = self.world.get(LEADER_WORKER_SETS, write.name)
        before = found["spec"]["replicas"] if found is not None else 0
        after = 0 if isinstance(write, Delete) else (write.body.get("spec") or {}).get("replicas", before)
        asked = (self.world.get(ROLLOUTS, NAME) or {"spec": {}})["spec"].get("replicas")
        if after >= before or asked == 0:
            return
        if self.world.get(LEADER_WORKER_SETS, NAME) is None and not stands_in(self.world):
            # A person has deleted what is released.
            return
        ready = {name: self._ready(name) for name in (NAME, CANARY)}
        left = sum(ordinal < after for ordinal in ready[write.name]) + sum(
            len(each) for name, each in ready.items() if name != write.name
        )
        assert left or not any(ready.values()), f"the last that serves would go: {write}"

    def _ready(self, name: str) -> list[int]:
        if self.world.get(LEADER_WORKER_SETS, name) is None:
            return []
        return [ordinal for ordinal, told in self.world.groups(name).items() if not told.endswith("!")]


class SwapWalk(PairWalk):
    """What happens to a swap, and how it has to end."""

    NAMES = (NAME, CANARY)
    COUNT = R
    """Groups of the Rollout."""

    async def begin(self) -> None:
        more = {"gracePeriodSeconds": 1, "drainSeconds": 5}
        plan = PLANS["two"]
        await routed_at_rest(self.world, *plan, replicas=R, style="blueGreen", words=SWAP, **more)
        self.world.patch_rollout({"strategy": {"progressDeadlineSeconds": 600}})
        self.world.checks.clear()

    def watch(self) -> None:
        ServingJudge(self.world).watch()

    def manifest(self) -> dict[str, Any]:
        kind = {"apiVersion": LEADER_WORKER_SETS.api_version, "kind": LEADER_WORKER_SETS.kind}
        asked = routing(gracePeriodSeconds=1, drainSeconds=5)
        return {
            "apiVersion": ROLLOUTS.api_version,
            "kind": ROLLOUTS.kind,
            "metadata": {"name": NAME, "namespace": NAMESPACE},
            "spec": {
                "workloadRef": {**kind, "name": NAME},
                "strategy": {
                    "blueGreen": {
                        **SWAP,
                        "scaleDownDelaySeconds": 0,
                        "steps": list(PLANS["two"]),
                        "trafficRoutings": asked,
                    },
                    "progressDeadlineSeconds": 600,
                },
            },
        }

    def release(self, version: str) -> None:
        self.apply((NAME, version))

    def scale_rollout(self, count: int) -> None:
        self.world.patch_rollout({"replicas": count})

    def jump(self, step: int) -> None:
        self.world.patch(ROLLOUTS, NAME, {"status": {"blueGreenStatus": {"nextStepIndex": step}}}, "status")

    def plan(self, name: str) -> None:
        self.world.patch_rollout({"strategy": {"blueGreen": {"steps": list(PLANS[name])}}})

    def promotion(self, word: str) -> None:
        self.world.patch_rollout({"strategy": {"blueGreen": {"promotion": word}}})

    def keep(self, seconds: int) -> None:
        """Old groups stay so long after a release."""
        self.world.patch_rollout({"strategy": {"blueGreen": {"scaleDownDelaySeconds": seconds}}})

    def leave_as_is(self, on: str) -> None:
        self.world.patch(ROLLOUTS, NAME, {"metadata": {"annotations": {KEYS.leave_as_is: on}}})

    def unpin(self) -> None:
        """A manifest of the Service is applied again."""
        self.world.patch(SERVICES, SERVICE, {"spec": {"selector": {"leaderworkerset.sigs.k8s.io/name": None}}})

    def delete_copy(self) -> None:
        self.world.delete(SERVICES, f"{SERVICE}-canary")

    def unhold(self, name: str) -> None:
        self.world.patch_lws({"rolloutStrategy": {"rollingUpdateConfiguration": {"partition": 0}}}, name)

    # The end

    async def settle(self) -> None:
        """All faults off; two more versions are released, and then nothing happens for a day."""
        world = self.world
        self.refusals.clear()
        for task in tuple(self.tasks):
            task.cancel()
        world.kill_after(10**9)
        for number in range(3):
            with contextlib.suppress(ApiError):
                world.server.create(NODES, node(number))
        going = world.get(ROLLOUTS, NAME)
        world.start_controller()
        if going is not None and "deletionTimestamp" in going["metadata"]:
            self.leave_as_is("true")
            await world.until(lambda: world.get(ROLLOUTS, NAME) is None, "the Rollout leaves", 7200)
        if world.get(LEADER_WORKER_SETS, NAME) is None or self._goes(NAME):
            await world.until(lambda: world.get(LEADER_WORKER_SETS, NAME) is None, "deleted", 3600)
            await world.until(lambda: not self._pods(NAME), "pods gone", 3600)
            self.create_side(NAME)
        if world.get(ROLLOUTS, NAME) is None:
            self.create_rollout()
        spec = self.manifest()["spec"]
        world.patch_rollout(
            {"disabled": None, "replicas": self.COUNT, "strategy": {**spec["strategy"], "paused": None}}
        )
        self.leave_as_is("false")
        with contextlib.suppress(ApiError):
            world.request("Resume")
        for version in ("last", "v1", "last"):
            await self._finished(version)
        # That the hold was reset is told until it has stood for a while.
        await world.sleep(COOL_DOWN_SECONDS)
        before = len(world.writes)
        await world.sleep(24 * 3600)
        assert len(world.writes) == before, world.writes[before:]

    async def _finished(self, version: str) -> None:
        """A good version is applied and approved until it serves, alone."""
        world = self.world
        self.release(version)
        deadline = world.now.timestamp() + 4 * 3600
        while not self._serves(version):
            assert world.now.timestamp() < deadline, f"{version} does not come to serve:\n{world.describe()}"
            stalled = world.condition("Stalled")
            reason = stalled.get("reason") if stalled.get("status") == "True" else ""
            if world.status_of(NAME).get("paused"):
                world.request("Resume")
            elif world.state == "AwaitingApproval":
                world.approve()
            elif reason in ("ProgressDeadlineExceeded", "GroupKeepsRestarting", "Aborted"):
                world.request("Retry")
            await world._change(60)
            await world.sleep(15)
        await world.rest(quiet=120, seconds=7200)
        assert self._serves(version), world.describe()

    def _serves(self, version: str) -> bool:
        world, count = self.world, self.COUNT
        serves = CANARY if stands_in(world) else NAME
        there = replicas(world)
        return (
            world.state == "Healthy"
            and there == ({NAME: 0, CANARY: count} if serves == CANARY else {NAME: count})
            and world.groups(serves) == dict.fromkeys(range(count), version)
            and world.names()["batchreleases"] == []
            and f"{SERVICE}-canary" not in world.names()["services"]
        )


async def swap_walk(_: Plan, acts: list[Act], seen: Counter[str]) -> None:
    await walked(SwapWalk, acts, seen)


class ExchangeWalk(SwapWalk):
    """The same if groups of one workload go as those of the other one come: none stays without its label in the end."""

    COUNT = R + 1

    async def begin(self) -> None:
        more = {"gracePeriodSeconds": 1, "drainSeconds": 5}
        await routed_at_rest(self.world, *PLANS["shift"], replicas=self.COUNT, words={"capacity": "Shift"}, **more)
        self.world.patch_rollout({"strategy": {"progressDeadlineSeconds": 600}})
        self.world.checks.clear()

    def manifest(self) -> dict[str, Any]:
        made = super().manifest()
        style = made["spec"]["strategy"].pop("blueGreen")
        for member in ("promotion", "scaleDownDelaySeconds"):
            style.pop(member)
        made["spec"]["strategy"] |= {
            "canary": {**style, "capacity": "Shift", "steps": list(PLANS["shift"])},
            "blueGreen": None,
        }
        return made

    def jump(self, step: int) -> None:
        self.world.patch(ROLLOUTS, NAME, {"status": {"canaryStatus": {"nextStepIndex": step}}}, "status")

    def plan(self, name: str) -> None:
        self.world.patch_rollout({"strategy": {"canary": {"steps": list(PLANS[name])}}})

    def capacity(self, word: str) -> None:
        self.world.patch_rollout({"strategy": {"canary": {"capacity": word}}})

    def shift(self, margin: tuple[int, int]) -> None:
        asked = None if not any(margin) else {"maxExtraGroups": margin[0], "maxUnavailableGroups": margin[1]}
        self.world.patch_rollout({"strategy": {"canary": {"shift": asked}}})

    def relabel(self, name: str) -> None:
        """Another client gives the groups of a workload their label back."""
        for pod in self.world.server.list(PODS, NAMESPACE, label_selector=f"{LWS_NAME}={name}"):
            self.world.patch(PODS, pod["metadata"]["name"], {"metadata": {"labels": {"app": "llama"}}})

    async def settle(self) -> None:
        await super().settle()
        assert not draining(self.world) and not unlabelled(self.world)


async def exchange_walk(_: Plan, acts: list[Act], seen: Counter[str]) -> None:
    await walked(ExchangeWalk, acts, seen)


SWAP_LANE: Lane = swap_walk, KINDS, st.just(Plan())
EXCHANGE_LANE: Lane = (
    exchange_walk,
    (
        *(each for each in KINDS if each.name not in ("promotion", "keep", "plan")),
        *(Kind("plan", st.just("shift")),) * 2,
        Kind("capacity", st.sampled_from(("Shift", "Shift", "ExtraWorkload"))),
        Kind("shift", st.sampled_from(((1, 0), (0, 1), (2, 1), (0, 0)))),
        Kind("relabel", both),
    ),
    st.just(Plan()),
)


@pytest.mark.timeout(300)
def test_a_walk_keeps_what_serves_and_comes_to_its_end() -> None:
    seen = wander(SWAP_LANE, 3, 10)
    assert seen["told:Completed"] and seen["told:Promoted"]


@pytest.mark.timeout(300)
def test_a_walk_of_releases_that_shift_does_so_too() -> None:
    seen = wander(EXCHANGE_LANE, 2, 10)
    assert seen["told:Completed"] and seen["told:Promoted"]


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("number", range(1, 4))
@pytest.mark.parametrize("lane", [SWAP_LANE, EXCHANGE_LANE], ids=["swap", "shift"])
def test_long_walks_do_so_too(lane: Lane, number: int) -> None:
    wander(lane, 15, 18, number)
