"""Which ControllerRevisions LeaderWorkerSet's controller stores, deletes, and makes again: as was recorded.

``records.json`` holds what there was after each move of the story below: the number of each record of LWS, and the
version in it. Groups take a second to become ready.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rollout_lws.objects.resources import CONTROLLER_REVISIONS, LEADER_WORKER_SETS, PODS
from rollout_lws.sandbox.apiserver import ApiServer
from tests.sandbox.behaviours.world import NAMESPACE, cluster, leaders, lws, patch_lws, template

RECORDED = json.loads((Path(__file__).parent / "lws-0.10.0" / "records.json").read_text())
HOLD = 10**6


def image_of(pod: dict[str, Any]) -> str:
    return str(pod["spec"]["containers"][0]["image"])


class Story:
    """The moves, each with the time that its groups take."""

    def __init__(self, server: ApiServer) -> None:
        self.server = server
        self.seen: dict[str, list[list[Any]]] = {}

    def note(self, move: str) -> None:
        self.seen[move] = [[each["revision"], _version(each)] for each in self._records()]

    def _records(self) -> list[dict[str, Any]]:
        found = self.server.list(CONTROLLER_REVISIONS, NAMESPACE)
        own = (each for each in found if each["metadata"]["ownerReferences"][0]["kind"] == LEADER_WORKER_SETS.kind)
        return sorted(own, key=lambda each: each["revision"])

    async def apply(self, version: str) -> None:
        patch_lws(self.server, {"leaderWorkerTemplate": {"workerTemplate": template(version)}})
        await asyncio.sleep(2)

    async def open(self, partition: int, seconds: float) -> None:
        patch_lws(self.server, {"rolloutStrategy": {"rollingUpdateConfiguration": {"partition": partition}}})
        await asyncio.sleep(seconds)

    async def window(self, ordinal: int, version: str) -> None:
        """Open for one group, and closed when its leader exists, long before it is ready."""
        await self.open(ordinal, 0.7)
        assert image_of(leaders(self.server)[str(ordinal)]) == version
        await self.open(HOLD, 6)

    async def delete_records(self, needless: Callable[[str], bool]) -> None:
        for each in self._records():
            if needless(_version(each)):
                self.server.delete(CONTROLLER_REVISIONS, NAMESPACE, each["metadata"]["name"])
        await asyncio.sleep(2)

    async def delete_pod(self, name: str) -> None:
        self.server.delete(PODS, NAMESPACE, name)
        await asyncio.sleep(7)


def _version(record: dict[str, Any]) -> str:
    return image_of(record["data"]["spec"]["leaderWorkerTemplate"]["workerTemplate"])


async def tell(story: Story) -> None:
    hold = {"type": "RollingUpdate", "rollingUpdateConfiguration": {"partition": HOLD}}
    first = {"workerTemplate": template("v1")}
    story.server.create(LEADER_WORKER_SETS, lws(leaderWorkerTemplate=first, rolloutStrategy=hold))
    await asyncio.sleep(6)
    story.note("made under a hold, two groups of two pods")
    for version in ("v2", "v3", "v4"):
        await story.apply(version)
    story.note("v2, v3 and v4 under the hold")
    for ordinal in (1, 0):
        await story.window(ordinal, "v4")
    story.note("promoted through windows that close when leaders exist")
    await story.open(0, 1.5)
    await story.open(HOLD, 2)
    story.note("opened when all is new and ready, and held again")
    for version in ("v5", "v6"):
        await story.apply(version)
        for ordinal in (1, 0):
            await story.window(ordinal, version)
    story.note("v5 and v6 through such windows")
    await story.delete_records(lambda version: version != "v6")
    story.note("old records deleted by hand")
    await story.delete_pod("llm-0")
    await story.delete_pod("llm-1-1")
    patch_lws(story.server, {"replicas": 3})
    await asyncio.sleep(6)
    story.note("a leader and a worker deleted, scaled to three groups")
    await story.apply("v5")
    story.note("v5 again under the hold")
    await story.open(0, 25)
    story.note("rolled to the end")
    await story.open(HOLD, 1)
    await story.delete_records(lambda _: True)
    story.note("held, and the record in use deleted")
    await story.delete_pod("llm-0")
    story.note("a leader deleted")


@pytest.mark.looptime
async def test_records_come_and_go_as_was_recorded() -> None:
    async with cluster() as server:
        story = Story(server)
        await tell(story)
        assert story.seen == RECORDED
        assert {image_of(pod) for pod in server.list(PODS, NAMESPACE)} == {"v5"}
        assert len(server.list(PODS, NAMESPACE)) == 6
