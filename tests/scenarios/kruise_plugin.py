"""What `kubectl kruise` asks of an API server for a Rollout, request by request, as recorded with v1.2.2-6-g7c240e5.

It reads the Rollout, judges by what it has read, and sends one merge patch; nothing binds the patch to what was read.
"""

from __future__ import annotations

import json
from typing import Any

from rollout_lws.sandbox.apiserver import ApiServer
from rollout_lws.sandbox.transport import DirectTransport
from tests.scenarios.names import NAME, NAMESPACE, ROLLOUTS

Object = dict[str, Any]


class Refused(Exception):
    """The plugin sends nothing; its text is what stands after the Rollout's name."""


class KruisePlugin:
    """`kubectl kruise rollout VERB rollout/llama`: each verb sends what the plugin sends."""

    def __init__(self, server: ApiServer) -> None:
        self._transport = DirectTransport(server)

    async def seen(self) -> Object:
        """The Rollout, as the plugin reads it before it judges."""
        answer = await self._transport.request(
            "GET", ROLLOUTS.path(NAMESPACE, NAME), params={}, body=None, content_type="", timeout=10
        )
        found: Object = json.loads(answer.body)
        return found

    async def approve(self, seen: Object | None = None) -> None:
        """``seen``: judged by this, which may be old by now."""
        rollout = seen or await self.seen()
        sub, words = _sub_status(rollout)
        if sub not in rollout["status"]:
            raise Refused("no need to approve: not in canary or blue-green progress")
        if rollout["status"][sub]["currentStepState"] != "StepPaused":
            raise Refused(f"does not allow to approve, because current {words} state is not 'StepPaused'")
        await self._patch({"status": {sub: {"currentStepState": "StepReady"}}}, "status")

    async def pause(self) -> None:
        if (await self.seen())["spec"]["strategy"].get("paused"):
            raise Refused("is already paused")
        await self._patch({"spec": {"strategy": {"paused": True}}})

    async def resume(self) -> None:
        if not (await self.seen())["spec"]["strategy"].get("paused"):
            raise Refused("is not paused")
        await self._patch({"spec": {"strategy": {"paused": None}}})

    async def undo_fast(self) -> None:
        rollout = await self.seen()
        strategy = rollout["spec"]["strategy"]
        steps = (strategy.get("canary") or strategy["blueGreen"])["steps"]
        current = rollout["status"]["currentStepIndex"]
        if current <= 1:
            raise Refused("already at the first step")
        # The nearest earlier step of those with the most groups; a number counts as so many percent.
        target = max(
            (number for number in range(current - 1, 0, -1) if not _has_traffic(steps[number - 1])),
            key=lambda number: int(str(steps[number - 1]["replicas"]).rstrip("%")),
            default=0,
        )
        if not target:
            raise Refused("no previous step with no traffic found")
        sub, _ = _sub_status(rollout)
        if rollout["status"][sub]["nextStepIndex"] != target:
            await self._patch({"status": {sub: {"nextStepIndex": target}}}, "status")

    async def _patch(self, body: Object, subresource: str = "") -> None:
        answer = await self._transport.request(
            "PATCH",
            ROLLOUTS.path(NAMESPACE, NAME, subresource),
            params={},
            body=json.dumps(body).encode(),
            content_type="application/merge-patch+json",
            timeout=10,
        )
        assert answer.status == 200, answer.body


def _sub_status(rollout: Object) -> tuple[str, str]:
    return (
        ("blueGreenStatus", "blue-green") if "blueGreen" in rollout["spec"]["strategy"] else ("canaryStatus", "canary")
    )


def _has_traffic(step: Object) -> bool:
    """What is no percentage counts as none, ``auto`` included."""
    traffic = str(step.get("traffic", "0%"))
    return traffic.endswith("%") and traffic != "0%"
