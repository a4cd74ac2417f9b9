"""Two people promote at the same moment, and a third a step too late: one step is promoted, the others are told.

Real processes of the command line, and a controller. A step's group finds room only when the test makes a node, so
that however slow a process is, the step after the one that is raced for cannot wait for an approval yet.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from rollout_lws.cli.rollouts import rollouts_of
from rollout_lws.objects.resources import DEFAULT_API_GROUP, LEADER_WORKER_SETS, LWS_NAME, NODES, PODS
from rollout_lws.sandbox.behaviours.cluster import Options
from rollout_lws.sandbox.behaviours.faults import Timing
from rollout_lws.sandbox.behaviours.nodes.scheduler import node, ready_status
from rollout_lws.sandbox.store import Event
from tests.reader import Reader, reading

ROLLOUTS = rollouts_of(DEFAULT_API_GROUP)
Object = dict[str, Any]
#: What the one is told who came second, by what it saw: the other's write, or what the controller made of it.
SECOND = (
    r"rollout-lws: rollout/llama moved on to step \d+/\d+ meanwhile, nothing was changed: look with",
    r"rollout-lws: rollout/llama step \d+/\d+ is not waiting for approval \(now \w+\)",
    r"rollout-lws: rollout/llama has a request by \S+ that waits \(Approve\)",
    r"rollout-lws: rollout/llama: not done: \S+ asked for Approve (instead|right after it)",
    r"rollout-lws: rollout/llama: not done: it was meant for step \d+, the release is at step \d+",
    r"rollout/llama step \d+/\d+ is approved already",
)


class Contest:
    """A release with a step for each race. ``approved`` are the steps whose approvals the controller has filed."""

    def __init__(self, reader: Reader, races: int) -> None:
        self.reader, self.races = reader, races
        self.approved: list[int] = []
        self._nodes = races + 1
        self._filed = ""
        reader.server.store.subscribe(self._look)

    def _look(self, event: Event) -> None:
        last = ((event.object.get("status") or {}).get("lastAction") or {}) if event.resource == ROLLOUTS else {}
        if last and last["id"] != self._filed:
            self._filed = last["id"]
            if (last["type"], last["outcome"]) == ("Approve", "Done"):
                self.approved.append(last["step"])

    async def begin(self) -> None:
        """A new version, with an accelerator a group, waits for the approval of the first of ``races`` + 1 steps."""
        groups = self.races + 1
        server, meta = self.reader.server, {"namespace": "default", "name": "llama"}
        lws = {"replicas": groups, "leaderWorkerTemplate": {"size": 1, "workerTemplate": _template("v1")}}
        server.create(LEADER_WORKER_SETS, {"metadata": meta, "spec": lws})
        reference = {"apiVersion": LEADER_WORKER_SETS.api_version, "kind": LEADER_WORKER_SETS.kind, "name": "llama"}
        steps = [{"replicas": number, "pause": {}} for number in range(1, groups + 1)]
        rollout = {"workloadRef": reference, "strategy": {"canary": {"steps": steps}}}
        server.create(ROLLOUTS, {"metadata": meta, "spec": rollout})
        await self.until(lambda status: (status.get("summary") or {}).get("state") == "Healthy")
        self.make_room()
        body = {"spec": {"leaderWorkerTemplate": {"workerTemplate": _template("v2")}}}
        server.patch(LEADER_WORKER_SETS, "default", "llama", body)
        await self.awaiting(1)

    def make_room(self) -> None:
        """One node more, for one group."""
        server, body = self.reader.server, node(self._nodes, 1)
        self._nodes += 1
        server.create(NODES, body)
        status = ready_status(body, server.clock())
        server.patch(NODES, "", body["metadata"]["name"], {"status": status}, subresource="status")

    async def awaiting(self, step: int) -> None:
        def waits(status: Mapping[str, Any]) -> bool:
            state = (status.get("summary") or {}).get("state")
            return bool(state == "AwaitingApproval" and status.get("currentStepIndex") == step)

        await self.until(waits)

    async def until(self, holds: Any) -> None:
        reached = asyncio.Event()

        def look(_: Event | None = None) -> None:
            if holds(self.reader.server.get(ROLLOUTS, "default", "llama").get("status") or {}):
                reached.set()

        forget = self.reader.server.store.subscribe(look)
        try:
            look()
            await asyncio.wait_for(reached.wait(), 20)
        finally:
            forget()

    async def press(self, *arguments: str) -> tuple[int, str]:
        """``rollout-lws promote llama``: its exit code and what it says."""
        process = await asyncio.create_subprocess_exec(
            *("rollout-lws", "promote", "llama", *arguments),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env=self.reader.environment,
        )
        told = (await asyncio.wait_for(process.communicate(), 30))[0].decode()
        assert process.returncode is not None
        return process.returncode, told

    def new_groups(self) -> int:
        selector = f"{LWS_NAME}=llama-canary"
        return len(self.reader.server.list(PODS, "default", label_selector=selector))


def _template(version: str) -> Object:
    room = {"limits": {"nvidia.com/gpu": "1"}}
    return {"spec": {"containers": [{"name": "server", "image": f"model:{version}", "resources": room}]}}


@pytest.mark.parametrize("races", [3, pytest.param(25, marks=[pytest.mark.long, pytest.mark.timeout(300)])])
async def test_of_two_who_promote_at_once_one_does_and_whoever_is_late_is_told(races: int, tmp_path: Path) -> None:
    options = Options(nodes=races + 1, gpus_per_node=1, timing=Timing(speed=100))
    async with reading(tmp_path, options) as reader:
        contest = Contest(reader, races)
        await contest.begin()
        for step in range(1, races + 1):
            pressed = await asyncio.gather(contest.press(), contest.press())
            first = (0, f"rollout/llama step {step}/{races + 1} approved\n")
            assert pressed.count(first) == 1, pressed
            pressed.remove(first)
            (code, told), *_ = pressed
            assert any(re.match(text, told) for text in SECOND), told
            assert (code == 0) == told.startswith("rollout/"), pressed
            await contest.until(lambda status, step=step: status.get("currentStepIndex") == step + 1)
            await contest.until(lambda _, step=step: contest.new_groups() == step + 1)
            assert contest.approved == list(range(1, step + 1))
            late = await contest.press()
            assert (late[0], "not waiting for approval" in late[1]) == (1, True), late
            contest.make_room()
            await contest.awaiting(step + 1)
            assert await contest.press("--step", str(step)) == (
                1,
                f"rollout-lws: rollout/llama is at step {step + 1}/{races + 1} now, not {step}: look with"
                " `rollout-lws get llama`\n",
            )
            assert contest.approved == list(range(1, step + 1))
