"""Who looks on while a release runs: every change of pods, LWSs and Rollouts as watches tell it, and what it proves.

The server numbers all writes in one row, so the changes that several watches tell are put back into the order in which
they were made, and each promise is checked at each of them.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.kubectl.operator import Operator

Object = dict[str, Any]

STABLE, CANARY = "llama", "llama-canary"
HOLD = 1_000_000
LWS = "leaderworkerset.sigs.k8s.io"


@dataclass(frozen=True, slots=True)
class Change:
    """One write: ``kind`` of ADDED, MODIFIED or DELETED on ``obj``, as it was afterwards."""

    kind: str
    obj: Object

    @property
    def number(self) -> int:
        return int(self.obj["metadata"]["resourceVersion"])


@dataclass
class Picture:
    """The world after some change: live objects by name."""

    pods: dict[str, Object] = field(default_factory=dict)
    workloads: dict[str, Object] = field(default_factory=dict)
    rollouts: dict[str, Object] = field(default_factory=dict)

    def take(self, change: Change) -> None:
        known = {"Pod": self.pods, "LeaderWorkerSet": self.workloads, "Rollout": self.rollouts}[change.obj["kind"]]
        if change.kind == "DELETED":
            known.pop(change.obj["metadata"]["name"], None)
        else:
            known[change.obj["metadata"]["name"]] = change.obj

    @property
    def status(self) -> Object:
        return dict(self.rollouts.get(STABLE, {}).get("status") or {})

    @property
    def state(self) -> str:
        return str((self.status.get("summary") or {}).get("state", ""))

    @property
    def task(self) -> str:
        """What a release that is ending does: Promote, RollBackPromotion or CleanUp."""
        return str((self.status.get("finalising") or {}).get("task", ""))

    @property
    def partition(self) -> int:
        return int(self.workloads[STABLE]["spec"]["rolloutStrategy"]["rollingUpdateConfiguration"]["partition"])

    @property
    def replicas(self) -> int:
        return int(self.workloads[STABLE]["spec"]["replicas"])

    def members(self, workload: str) -> dict[int, list[Object]]:
        """Pods of each group."""
        found: dict[int, list[Object]] = {}
        for pod in self.pods.values():
            labels = pod["metadata"]["labels"]
            if labels.get(f"{LWS}/name") == workload:
                found.setdefault(int(labels[f"{LWS}/group-index"]), []).append(pod)
        return found

    def ready(self, workload: str) -> int:
        """Groups of two whose pods are both ready, at one revision and there to stay."""
        return sum(
            len(pods) == 2
            and all(_is_ready(pod) for pod in pods)
            and len({pod["metadata"]["labels"][f"{LWS}/template-revision-hash"] for pod in pods}) == 1
            for pods in self.members(workload).values()
        )

    def leaders(self) -> dict[str, str]:
        """UIDs of the stable LWS's leaders that nobody has asked to go, by pod name."""
        return {
            pod["metadata"]["name"]: pod["metadata"]["uid"]
            for pods in self.members(STABLE).values()
            for pod in pods
            if pod["metadata"]["labels"][f"{LWS}/worker-index"] == "0" and "deletionTimestamp" not in pod["metadata"]
        }

    def images(self, workload: str = STABLE) -> set[str]:
        """Tags that the pods of an LWS carry."""
        groups = self.members(workload).values()
        return {pod["spec"]["containers"][0]["image"].rpartition(":")[2] for pods in groups for pod in pods}

    def at_rest(self, version: str) -> bool:
        """Whether ``version`` is released and nothing is under way."""
        status = self.status
        released = status.get("stable", {}).get("templateHash") == status.get("observedTemplateHash")
        return (
            self.state == "Healthy"
            and status.get("observedRolloutID") == version
            and released
            and self.images() == {version}
        )


class Witness:
    """Everything that three watches of kubectl have told so far."""

    def __init__(self) -> None:
        self.changes: list[Change] = []
        self.now = Picture()
        self._waiters: set[asyncio.Future[None]] = set()

    async def look_on(self, operator: Operator) -> None:
        """Begin; from here on nothing is missed."""
        for kind in ("pods", "leaderworkersets", "rollouts"):
            command = ("kubectl", "get", kind, "-w", "-o", "json", "--output-watch-events")
            await operator.programs.start(*command, environment=operator.kubectl.environment, told=self._take)

    def _take(self, line: str) -> None:
        document = json.loads(line)
        change = Change(document["type"], document["object"])
        self.changes.append(change)
        self.now.take(change)
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)
        self._waiters.clear()

    async def change(self) -> None:
        """Wait for the next change."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.add(waiter)
        await waiter

    async def until(self, holds: Callable[[Picture], bool], seconds: float = 30) -> None:
        try:
            async with asyncio.timeout(seconds):
                while not holds(self.now):
                    await self.change()
        except TimeoutError:
            status = json.dumps(self.now.status, indent=1)
            raise AssertionError(f"not within {seconds} s; state {self.now.state!r}\n{status}") from None

    def judge(self, replicas: int, unavailable: int) -> int:
        """Check each promise at each change; the number of groups of stable that were renewed."""
        picture, leaders, managed, renewed = Picture(), dict[str, str](), False, 0
        for change in sorted(self.changes, key=lambda each: each.number):
            picture.take(change)
            if STABLE not in picture.workloads:
                continue
            told = f"at {change.number}: {change.kind} {change.obj['kind']} {change.obj['metadata']['name']}"
            before, leaders = leaders, picture.leaders()
            stable, canary = picture.ready(STABLE), picture.ready(CANARY)
            managed = managed or (picture.partition == HOLD and stable == replicas)
            if not managed:
                continue
            gone = {name for name, uid in before.items() if leaders.get(name) != uid}
            renewed += len(gone)
            open_to_change = picture.task in ("Promote", "RollBackPromotion")
            assert set(picture.workloads) <= {STABLE, CANARY}, told
            assert open_to_change or not gone, f"{gone} restarted outside a promotion, {told}"
            assert open_to_change or picture.partition == HOLD, f"the hold was lifted, {told}"
            batch = max(1, min(unavailable, canary, replicas - 1))
            allowed = {"Promote": batch, "RollBackPromotion": unavailable}.get(picture.task, 0)
            assert replicas - stable <= allowed, f"{stable} of {replicas} ready in {picture.task}, {told}"
            assert stable + canary > 0, f"nobody serves, {told}"
        assert managed, "the Rollout never took the LWS over"
        return renewed


def _is_ready(pod: Object) -> bool:
    conditions = {each["type"]: each["status"] for each in (pod.get("status") or {}).get("conditions", ())}
    return conditions.get("Ready") == "True" and "deletionTimestamp" not in pod["metadata"]
