"""Whatever may happen to a release in a walk: acts of people, machines, the API server and a dying controller.

A method is called as an act is, and takes the act's value.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from rollout_lws.errors import ApiError
from rollout_lws.objects.resources import NODES, PODS
from rollout_lws.objects.writes import Write
from tests.scenarios.judge import CANARY, Judge
from tests.scenarios.routed import routing
from tests.scenarios.walk_plans import PLANS, STEP_GATE, WATCHED, Plan, template
from tests.scenarios.world import KEYS, NAME, NAMESPACE, World


@dataclass
class Acts:
    """What can be done to ``world``; ``refusals`` are what the API server says to the next writes."""

    world: World
    plan: Plan
    seen: Counter[str]
    judge: Judge
    refusals: list[Callable[[Write], ApiError]] = field(default_factory=list)
    tasks: set[asyncio.Task[None]] = field(default_factory=set)

    # People

    def create_lws(self, version: str = "v1") -> None:
        plan = self.plan
        annotated = template(version, self.world.containers)
        annotations = annotated["metadata"]["annotations"]
        annotated["metadata"]["annotations"] = {key: value for key, value in annotations.items() if value is not None}
        made = self.world.kind.spec(annotated, plan.replicas, plan.size, unavailable=plan.unavailable, surge=plan.surge)
        self.world.create_workload(replicas=made.pop("replicas"), size=plan.size, **made)

    def create_rollout(self) -> None:
        plan = self.plan
        strategy: dict[str, Any] = {"progressDeadlineSeconds": plan.deadline, "onFailure": plan.on_failure}
        if plan.min_ready:
            strategy["minReadySeconds"] = plan.min_ready
        words: dict[str, Any] = dict(plan.style.words)
        if plan.threshold is not None:
            words["failureThreshold"] = plan.threshold
        if plan.routed:
            words["trafficRoutings"] = routing(plan.provider, gracePeriodSeconds=1, drainSeconds=5)
        if plan.gated:
            words["gates"] = [WATCHED]
        strategy[plan.style.key] = words
        self.world.create_rollout(*self.steps_of(plan.steps), **strategy)

    def steps_of(self, plan: str) -> list[dict[str, Any]]:
        """The plan's steps; with traffic each sends some requests to the new version."""
        steps = PLANS[plan] if not self.plan.gated else [{**step, "gates": [STEP_GATE]} for step in PLANS[plan]]
        if not self.plan.routed:
            return [{key: value for key, value in step.items() if key != "traffic"} for step in steps]
        if not self.plan.style.apart:
            # Where one LWS holds both versions, a share that does not fit its groups is refused.
            return [{**step, "traffic": "auto"} for step in steps]
        return [{"traffic": f"{10 * number}%", **step} for number, step in enumerate(steps, 1)]

    def apply(self, version: str) -> None:
        self.world.patch_lws(self.world.kind.versioned(template(version, self.world.containers)))

    def replicas(self, count: int) -> None:
        """None, or so many, or the fewest that the style can release."""
        self.world.patch_lws({"replicas": max(count, self.plan.style.least) if count else 0})

    def label(self, text: str) -> None:
        self.world.patch(self.world.kind.resource, NAME, {"metadata": {"labels": {KEYS.rollout_id: text}}})

    def partition(self, value: int) -> None:
        self.world.patch_lws(self.world.kind.partitioned(value))

    def forget_original(self) -> None:
        self.world.patch(self.world.kind.resource, NAME, {"metadata": {"annotations": {KEYS.original: None}}})

    def break_glass(self, on: bool) -> None:
        value = "true" if on else None
        self.world.patch(self.world.kind.resource, NAME, {"metadata": {"annotations": {KEYS.release_hold: value}}})

    def approve(self) -> None:
        self.world.approve()

    def jump(self, step: int) -> None:
        self.world.patch(
            self.world.ROLLOUT, NAME, {"status": {self.plan.style.sub_status: {"nextStepIndex": step}}}, "status"
        )

    def ask(self, kind: str) -> None:
        self.world.request(kind)

    def skip(self, gate: str) -> None:
        self.world.request("SkipGate", gate=gate)

    def ask_jump(self, step: int) -> None:
        self.world.request("Jump", toStep=step)

    def steps(self, plan: str) -> None:
        self.world.patch_rollout({"strategy": {self.plan.style.key: {"steps": self.steps_of(plan)}}})

    def paused(self, on: bool) -> None:
        self.world.patch_rollout({"strategy": {"paused": on}})

    def disabled(self, on: bool) -> None:
        self.world.patch_rollout({"disabled": on})

    def delete_rollout(self, propagation: str) -> None:
        self.world.delete(self.world.ROLLOUT, NAME, propagation)

    def delete_record(self) -> None:
        self.world.delete(self.world.RECORD, NAME)

    def delete_canary(self, propagation: str) -> None:
        self.world.delete(self.world.kind.resource, CANARY, propagation)

    def delete_lws(self, propagation: str) -> None:
        self.world.delete(self.world.kind.resource, NAME, propagation)

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
        kind = self.world.kind
        pods = [pod for pod in kind.pods(self.world.server.store, name) if kind.index(pod) == ordinal]
        found = [pod for pod in pods if kind.leads(pod) == leader]
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
            self.world.store_write(write)
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
