"""A walk: what people, machines and a dying controller do to a release in any order, and how it has to end.

The judge looks on; the last word has one person who ends what is left and then looks for traces of it.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from rollout_lws.errors import ApiError
from rollout_lws.objects.resources import (
    LEADER_WORKER_SETS,
    LWS_GROUP_INDEX,
    LWS_NAME,
    LWS_WORKER_INDEX,
    NODES,
    PODS,
)
from rollout_lws.objects.writes import Write
from rollout_lws.sandbox.behaviours import nodes
from rollout_lws.sandbox.behaviours.runner import carry_out
from rollout_lws.sandbox.store import Event
from tests.scenarios.invariants import share_only_for_who_serves
from tests.scenarios.judge import CANARY, HOLD, Judge
from tests.scenarios.routed import SERVICE, borrowed, create_route, routing
from tests.scenarios.walk_plans import PLANS, Act, Plan, template
from tests.scenarios.world import KEYS, NAME, NAMESPACE, ROLLOUTS, World

#: The errors a person shrugs off: what was to be deleted is gone, what was to be made is there, or LWS's own webhook
#: has something against it.
SHRUGGED = (404, 409, 422, 403)


@dataclass
class Walk:
    """One walk through ``world``; ``seen`` counts acts, notices and states."""

    world: World
    plan: Plan
    seen: Counter[str]
    judge: Judge
    refusals: list[Callable[[Write], ApiError]] = field(default_factory=list)
    tasks: set[asyncio.Task[None]] = field(default_factory=set)
    where: tuple[str, str, str] = ("", "", "")
    #: What a route and its Service were before.
    lent: dict[str, Any] = field(default_factory=dict)
    #: Seconds at the end in which nothing may be written.
    quiet: float = 24 * 3600

    def __post_init__(self) -> None:
        self.world.refuse = self.send
        self.world.server.store.subscribe(self._count)

    def _count(self, event: Event) -> None:
        """Count the states that the release comes through."""
        if event.resource != ROLLOUTS:
            return
        status = event.object.get("status") or {}
        ending = status.get("finalising") or {}
        where = (status.get("summary") or {}).get("state", ""), ending.get("reason", ""), ending.get("task", "")
        if where != self.where:
            self.where = where
            self.seen[f"state:{where[0]}"] += 1
            self.seen[f"task:{where[1]}/{where[2]}"] += 1

    def send(self, write: Write) -> ApiError | None:
        """Judge a write; refuse it when the walk said so."""
        self.judge.judge(write)
        return self.refusals.pop(0)(write) if self.refusals else None

    async def begin(self) -> None:
        if self.plan.routed:
            create_route(self.world)
            self.world.checks.append(share_only_for_who_serves())
            await self.world.sleep(1)
            self.lent = borrowed(self.world)
        self.create_lws()
        self.create_rollout()
        self.world.start_controller()
        await self.world.until(lambda: self.world.state == "Healthy" and self.ready("v1"), "adopted", 120)

    async def do(self, act: Act) -> None:
        status = self.world.status_of(NAME)
        task = (status.get("finalising") or {}).get("task", status.get("phase", "-"))
        self.seen[f"act:{act.kind}"] += 1
        self.seen[f"in {task}"] += 1
        try:
            if act.kind == "push":
                await self.push(act.value)
            else:
                with self.judge.user():
                    getattr(self, act.kind)(*(() if act.value is None else (act.value,)))
        except ApiError as error:
            if error.code not in SHRUGGED:
                raise
        await self.world.sleep(act.then)

    # People

    def create_lws(self, version: str = "v1") -> None:
        plan = self.plan
        annotated = template(version)
        annotations = annotated["metadata"]["annotations"]
        annotated["metadata"]["annotations"] = {key: value for key, value in annotations.items() if value is not None}
        self.world.create_workload(
            replicas=plan.replicas,
            leaderWorkerTemplate={"size": plan.size, "workerTemplate": annotated},
            rolloutStrategy={
                "rollingUpdateConfiguration": {"maxUnavailable": plan.unavailable, "maxSurge": plan.surge}
            },
        )

    def create_rollout(self) -> None:
        plan = self.plan
        limits: dict[str, Any] = {"progressDeadlineSeconds": plan.deadline, "onFailure": plan.on_failure}
        if plan.min_ready:
            limits["minReadySeconds"] = plan.min_ready
        canary: dict[str, Any] = {} if plan.threshold is None else {"failureThreshold": plan.threshold}
        if plan.routed:
            canary["trafficRoutings"] = routing(gracePeriodSeconds=1, drainSeconds=5)
        self.world.create_rollout(*self.steps_of(plan.steps), canary=canary, **limits)

    def steps_of(self, plan: str) -> list[dict[str, Any]]:
        """The plan's steps; with traffic each sends some requests to the new version."""
        steps = PLANS[plan]
        if not self.plan.routed:
            return steps
        return [{**step, "traffic": f"{10 * number}%"} for number, step in enumerate(steps, 1)]

    def apply(self, version: str) -> None:
        self.world.patch_lws({"leaderWorkerTemplate": {"workerTemplate": template(version)}})

    def replicas(self, count: int) -> None:
        self.world.patch_lws({"replicas": count})

    def label(self, text: str) -> None:
        self.world.patch(LEADER_WORKER_SETS, NAME, {"metadata": {"labels": {KEYS.rollout_id: text}}})

    def partition(self, value: int) -> None:
        self.world.patch_lws({"rolloutStrategy": {"rollingUpdateConfiguration": {"partition": value}}})

    def forget_original(self) -> None:
        self.world.patch(LEADER_WORKER_SETS, NAME, {"metadata": {"annotations": {KEYS.original: None}}})

    def break_glass(self, on: bool) -> None:
        value = "true" if on else None
        self.world.patch(LEADER_WORKER_SETS, NAME, {"metadata": {"annotations": {KEYS.release_hold: value}}})

    def approve(self) -> None:
        self.world.approve()

    def jump(self, step: int) -> None:
        self.world.patch(self.world.ROLLOUT, NAME, {"status": {"canaryStatus": {"nextStepIndex": step}}}, "status")

    def ask(self, kind: str) -> None:
        self.world.request(kind)

    def ask_jump(self, step: int) -> None:
        self.world.request("Jump", toStep=step)

    def steps(self, plan: str) -> None:
        self.world.patch_rollout({"strategy": {"canary": {"steps": self.steps_of(plan)}}})

    def paused(self, on: bool) -> None:
        self.world.patch_rollout({"strategy": {"paused": on}})

    def disabled(self, on: bool) -> None:
        self.world.patch_rollout({"disabled": on})

    def delete_rollout(self, propagation: str) -> None:
        self.world.delete(self.world.ROLLOUT, NAME, propagation)

    def delete_record(self) -> None:
        self.world.delete(self.world.RECORD, NAME)

    def delete_canary(self, propagation: str) -> None:
        self.world.delete(LEADER_WORKER_SETS, CANARY, propagation)

    def delete_lws(self, propagation: str) -> None:
        self.world.delete(LEADER_WORKER_SETS, NAME, propagation)

    async def push(self, task: str) -> None:
        """Approve whatever asks for it until the release has come as far as ``task``, two minutes at most."""
        world, deadline = self.world, self.world.now.timestamp() + 120

        def there() -> bool:
            status = world.status_of(NAME)
            return (status.get("finalising") or {}).get("task", "") == task or status.get("phase") != "Progressing"

        while world.now.timestamp() < deadline and not there():
            status = world.status_of(NAME)
            if (status.get("summary") or {}).get("state") == "AwaitingApproval":
                with self.judge.user():
                    world.approve()
            await world._change(1.0)

    # Machines

    def fail_leader(self, chosen: tuple[str, int]) -> None:
        self._fail_pod(chosen, leader=True)

    def fail_worker(self, chosen: tuple[str, int]) -> None:
        self._fail_pod(chosen, leader=False)

    def _fail_pod(self, chosen: tuple[str, int], *, leader: bool) -> None:
        name, ordinal = chosen
        pods = self.world.server.list(PODS, NAMESPACE, label_selector=f"{LWS_NAME}={name},{LWS_GROUP_INDEX}={ordinal}")
        found = [pod for pod in pods if (pod["metadata"]["labels"].get(LWS_WORKER_INDEX) == "0") == leader]
        if found:
            self.world.delete(PODS, found[0]["metadata"]["name"])

    def lose_node(self, number: int) -> None:
        """A machine burns down with all its pods; another one takes its place only at the end of the walk."""
        name = f"node-{number}"
        self.world.server.delete(NODES, "", name)
        for pod in self.world.server.list(PODS, NAMESPACE):
            if pod["spec"].get("nodeName") == name:
                self.world.server.delete(PODS, NAMESPACE, pod["metadata"]["name"], grace_seconds=0)

    # The API server, and the controller's own process

    def refuse(self, told: tuple[int, int]) -> None:
        code, count = told
        self.refusals += [lambda _: ApiError(code, "Injected", "refused by the walk")] * count

    def lose_answer(self, count: int) -> None:
        def lost(write: Write) -> ApiError:
            carry_out(self.world.server, write)
            return ApiError(500, "Injected", "the answer was lost")

        self.refusals += [lost] * count

    def kill(self, told: tuple[int, float]) -> None:
        """The controller dies after so many more writes and is away for so many seconds."""
        writes, away = told
        if self.tasks:
            return
        self.world.kill_after(writes)
        task = asyncio.create_task(self._restart(away))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def _restart(self, away: float) -> None:
        while self.world.running:
            await self.world._change(3600)
        await asyncio.sleep(away)
        self.world.start_controller()

    def heal(self) -> None:
        """No fault is left."""
        self.refusals.clear()

    # The end

    async def settle(self) -> None:
        """All faults off, everybody gone but one person who ends what is left: approves it all, or aborts."""
        await self._calm()
        if self.plan.ending == "abort" and await self._aborted():
            version = self.running_version()
        else:
            version = "last"
            await self._finished(version)
        # What a slow watch still brings is waited for.
        await self.world.rest(quiet=60, seconds=7200)
        self.assert_clean(version)
        await self._silent()
        if self.plan.ending == "leave":
            await self._left(version)

    async def _calm(self) -> None:
        world = self.world
        self.heal()
        for task in tuple(self.tasks):
            task.cancel()
        world.start_controller()
        for number in range(world.cluster.options.nodes):
            if world.server.store.get(NODES, "", f"node-{number}") is None:
                body = world.server.create(NODES, nodes.node(number))
                status = nodes.ready_status(body, world.server.clock())
                world.server.patch(NODES, "", f"node-{number}", {"status": status}, subresource="status")
        going = world.get(world.ROLLOUT, NAME)
        if going is not None and "deletionTimestamp" in going["metadata"]:
            await self._until(lambda: world.get(world.ROLLOUT, NAME) is None, "the Rollout leaves")
        dying = world.get(LEADER_WORKER_SETS, NAME)
        if dying is not None and "deletionTimestamp" in dying["metadata"]:
            await world.until(lambda: world.get(LEADER_WORKER_SETS, NAME) is None, "the LWS goes", 7200)
        with self.judge.user():
            if world.get(LEADER_WORKER_SETS, NAME) is None:
                self.create_lws()
            if not world.lws["spec"]["replicas"]:
                self.replicas(self.plan.replicas)
            if KEYS.release_hold in (world.lws["metadata"].get("annotations") or {}):
                self.break_glass(False)
            if world.get(world.ROLLOUT, NAME) is None:
                self.create_rollout()
            self.paused(False)
            self.disabled(False)
            self.ask("Resume")
            if len(world.status.get("holdFights") or ()) >= 2:
                self.partition(HOLD)

    async def _finished(self, version: str) -> None:
        """One more good version is applied and approved until it runs everywhere."""
        world = self.world
        with self.judge.user():
            self.apply(version)
        deadline = world.now.timestamp() + 4 * 3600
        while not (world.state == "Healthy" and self.ready(version)):
            assert world.now.timestamp() < deadline, f"{version} does not come to run:\n{world.describe()}"
            stalled = world.condition("Stalled")
            with self.judge.user():
                if world.status.get("paused"):
                    world.request("Resume")
                elif world.state == "AwaitingApproval" or stalled.get("reason") == "ApprovalTimeout":
                    world.approve()
                elif stalled.get("status") == "True" and stalled["reason"] in _RETRIED:
                    world.request("Retry")
                elif stalled.get("status") == "True" and stalled["reason"] == "PartitionInUse":
                    self.partition(0)
                elif stalled.get("status") == "True" and stalled["reason"] == "HoldContested":
                    self.partition(HOLD)
            await self._look_again()

    async def _until(self, holds: Callable[[], bool], what: str) -> None:
        """Wait for what comes by itself, but for a canary that serves alone and that a person has to give up."""
        deadline = self.world.now.timestamp() + 2 * 3600
        while not holds():
            assert self.world.now.timestamp() < deadline, f"{what}: not in two hours\n{self.world.describe()}"
            await self._look_again()

    async def _look_again(self) -> None:
        """A person looks again when something has changed, but not all the time."""
        alone = "keep serving until one is" in self.world.status_of(NAME).get("message", "")
        if alone and not await self.world._change(300):
            with self.judge.user():
                self.delete_canary("Background")
        await self.world._change(60)
        await self.world.sleep(15)

    async def _aborted(self) -> bool:
        """Whether the world has come to rest at a version that runs, after one Abort."""
        world = self.world
        with self.judge.user():
            self.ask("Abort")
        await self._until(lambda: "finalising" not in world.status, "the release ends")
        await world.sleep(600)
        # An LWS that was made with a version that crashes never rests.
        return world.state in ("Aborted", "Healthy") and self.ready(self.running_version())

    async def _silent(self) -> None:
        """A wait that changes nothing writes nothing."""
        before = self.world.server.store.version
        await self.world.sleep(self.quiet)
        assert self.world.server.store.version == before, f"written at rest: {self.world.writes[-3:]}"

    async def _left(self, version: str) -> None:
        world, before = self.world, self.world.leader_uids()
        with self.judge.user():
            self.delete_rollout("Background")
        await self._until(lambda: world.get(world.ROLLOUT, NAME) is None, "the Rollout leaves")
        await world.rest()
        assert world.leader_uids() == before, "leaving restarts nothing"
        assert not {key for key in world.lws["metadata"].get("annotations", {}) if KEYS.owns(key)} - {KEYS.aborted}
        strategy = world.lws["spec"]["rolloutStrategy"]["rollingUpdateConfiguration"]
        assert strategy["partition"] < HOLD, strategy
        assert self.ready(version)

    def ready(self, version: str) -> bool:
        return self.world.groups() == dict.fromkeys(range(self.world.lws["spec"]["replicas"]), version)

    def running_version(self) -> str:
        """The one version of which every group is ready, "" when there is none."""
        tags = set(self.world.groups().values())
        return tags.pop() if len(tags) == 1 and not any("!" in tag for tag in tags) else ""

    def assert_clean(self, version: str) -> None:
        world = self.world
        told = world.describe()
        assert self.ready(version), told
        names = world.names()
        assert (names["leaderworkersets"], names["batchreleases"]) == ([NAME], []), told
        assert world.lws["spec"]["rolloutStrategy"]["rollingUpdateConfiguration"]["partition"] == HOLD, told
        marks = {key for key in world.lws["metadata"].get("annotations", {}) if KEYS.owns(key)}
        assert marks <= {KEYS.original, KEYS.aborted}, told
        assert "finalising" not in world.status and "requestedAction" not in world.status, told
        if self.plan.routed:
            assert (borrowed(world), names["services"]) == (self.lent, sorted([NAME, SERVICE])), told


#: Reasons of a stalled step or an aborted version after which a person tries again.
_RETRIED = ("ProgressDeadlineExceeded", "GroupKeepsRestarting", "Aborted")


class Loud(logging.Handler):
    """Keeps what is logged as an error."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.told: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.told.append(self.format(record))


async def walk(here: Walk, acts: list[Act]) -> None:
    """Begin, do everything, settle; AssertionError when a promise is broken or the end is not a legal one."""
    loud = Loud()
    logging.getLogger().addHandler(loud)
    try:
        await here.begin()
        for act in acts:
            await here.do(act)
        await here.settle()
        assert not loud.told, loud.told
    finally:
        logging.getLogger().removeHandler(loud)
        for task in tuple(here.tasks):
            task.cancel()
        here.seen.update(f"told:{notice.reason}" for notice in here.world.notices)
        here.world.close()
