"""A walk: any acts in any order, and how it has to end.

The judge looks on; the last word has one person who ends what is left and then looks for traces of it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from rollout_lws.errors import ApiError
from rollout_lws.objects.resources import NODES, PODS
from rollout_lws.rollout.write_conflicts import COOL_DOWN_SECONDS
from rollout_lws.sandbox.behaviours.nodes import scheduler
from rollout_lws.sandbox.store import Event
from tests.scenarios.count import partition
from tests.scenarios.judge import HOLD
from tests.scenarios.walk_others import Others
from tests.scenarios.walk_plans import Act
from tests.scenarios.world import KEYS, NAME, ROLLOUTS

#: The errors a person shrugs off: what was to be deleted is gone, what was to be made is there, or LWS's own webhook
#: has something against it.
SHRUGGED = (404, 409, 422, 403)
#: Ten times what it takes to come to the end once all faults are off: a walk that goes on longer fails there and then,
#: with its story, and not by the patience of whoever waits for it.
MOST_DECISIONS = 7000


@dataclass
class Walk(Others):
    """One walk through ``world``; ``seen`` counts acts, events and states."""

    where: tuple[str, str, str] = ("", "", "")
    #: Since when the canary keeps serving because nothing else does, by the clock; 0 while something does.
    alone_since: float = 0
    #: Seconds at the end in which nothing may be written.
    quiet: float = 24 * 3600

    def __post_init__(self) -> None:
        super().__post_init__()
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

    # The end

    async def settle(self) -> None:
        """All faults off, everybody gone but one person who ends what is left: approves it all, or aborts."""
        # Pods that crash all the while, each time a reason to look again, may have come before.
        self.world.decisions = 0
        await self._calm()
        if self.plan.ending == "abort" and await self._aborted():
            version = self.running_version()
        else:
            version = "last"
            await self._finished(version)
        # What a slow watch still brings is waited for.
        await self.world.rest(quiet=60, seconds=7200)
        self.assert_clean(version)
        # That the hold was reset again and again is told until it has stood for ten minutes.
        await self.world.sleep(COOL_DOWN_SECONDS)
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
                body = world.server.create(NODES, scheduler.node(number))
                status = scheduler.ready_status(body, world.server.clock())
                world.server.patch(NODES, "", f"node-{number}", {"status": status}, subresource="status")
        going = world.get(world.ROLLOUT, NAME)
        if going is not None and "deletionTimestamp" in going["metadata"]:
            await self._until(lambda: world.get(world.ROLLOUT, NAME) is None, "the Rollout leaves")
        dying = world.get(world.kind.resource, NAME)
        if dying is not None and "deletionTimestamp" in dying["metadata"]:
            await world.until(lambda: world.get(world.kind.resource, NAME) is None, "the LWS goes", 7200)
        with self.judge.user():
            if world.get(world.kind.resource, NAME) is None:
                self.create_lws()
            if world.get(world.ROLLOUT, NAME) is not None and "replicas" in world.rollout["spec"]:
                # One that LeaderWorkerSet's webhook refuses is tried for ever.
                self.delete_autoscaler()
                self.scale_rollout(self.plan.replicas)
            if not world.lws["spec"]["replicas"]:
                self.replicas(self.plan.replicas)
            if KEYS.release_hold in (world.lws["metadata"].get("annotations") or {}):
                self.break_glass(False)
            if world.get(world.ROLLOUT, NAME) is None:
                self.create_rollout()
            self.paused(False)
            self.disabled(False)
            self.ask("Resume")
            conflicts = world.status.get("holdConflicts") or ()
            if conflicts and "putBackAt" not in conflicts[-1]:
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
                self._delete_in_the_way(version)
                if world.status.get("paused"):
                    world.request("Resume")
                elif world.state == "AwaitingApproval" or stalled.get("reason") == "ApprovalTimeout":
                    world.approve()
                elif stalled.get("status") == "True" and stalled["reason"] in _SKIPPED:
                    self._skip_one()
                elif stalled.get("status") == "True" and stalled["reason"] in _RETRIED:
                    world.request("Retry")
                elif stalled.get("status") == "True" and stalled["reason"] == "PartitionInUse":
                    self.partition(0)
                elif stalled.get("status") == "True" and stalled["reason"] == "HoldConflict":
                    self.partition(HOLD)
            await self._look_again()

    def _delete_in_the_way(self, version: str) -> None:
        """The pods that a Rollout names whose workload rolls by itself: where a controller makes one after the other
        it waits for a broken one of an earlier version, and where its strategy is OnDelete for all of those.
        """
        world = self.world
        told = (world.status.get("verdict") or {}).get("reason") == "NativeRolloutInProgress"
        if not told or "delete pod" not in world.status["message"]:
            return
        by_hand = world.lws["spec"]["updateStrategy"]["type"] == "OnDelete"
        broken = {index for index, tag in world.groups().items() if tag.endswith("!")}
        old = [
            pod
            for pod in world.kind.pods(world.server.store, NAME)
            if world.containers.version(pod) != version and (by_hand or world.kind.index(pod) in broken)
        ]
        assert old, world.status["message"]
        for pod in old:
            world.delete(PODS, pod["metadata"]["name"])

    def _skip_one(self) -> None:
        """A gate that has come to nothing, of the step or of the release."""
        status = self.world.status
        every = (*status.get("gates", ()), *status.get("releaseGates", ()))
        open_ones = (each["name"] for each in every if each.get("result") in ("Failed", "Inconclusive", "Error"))
        self.skip(next(open_ones))

    async def _until(self, holds: Callable[[], bool], what: str) -> None:
        """Wait for what comes by itself, but for a canary that serves alone and that a person has to give up."""
        deadline = self.world.now.timestamp() + 2 * 3600
        while not holds():
            assert self.world.now.timestamp() < deadline, f"{what}: not in two hours\n{self.world.describe()}"
            await self._look_again()

    async def _look_again(self) -> None:
        """A person looks again when something has changed, but not all the time."""
        assert self.world.decisions <= MOST_DECISIONS, f"comes to no end\n{self.world.describe()}"
        now = self.world.now.timestamp()
        alone = "keep serving until one is" in self.world.status_of(NAME).get("message", "")
        self.alone_since = (self.alone_since or now) if alone else 0
        if alone and now - self.alone_since > 600:
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
        assert partition(world.lws) < HOLD, world.lws["spec"]
        assert self.ready(version)


#: Reasons of a stalled step after which a person goes on without a gate.
_SKIPPED = ("GateFailed", "GateInconclusive")
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
        here.seen.update(f"told:{event.reason}" for event in here.world.events)
        here.seen[f"style:{here.plan.style}"] += 1
        here.world.close()
