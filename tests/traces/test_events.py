"""What LeaderWorkerSet's controller tells as Events while versions come and go: the recorded words, all of them.

``events.txt`` holds type, reason, action and note of each, once, with the revisions' names left out; the moves are
those of the story below, on groups that take a second to become ready.
"""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

from rollout_lws.objects.resources import EVENTS, LEADER_WORKER_SETS
from rollout_lws.sandbox.apiserver import ApiServer
from tests.sandbox.behaviours.world import NAMESPACE, cluster, lws, patch_lws, template

HOLD = 10**6


def told(server: ApiServer) -> set[str]:
    mine = (each for each in server.list(EVENTS, NAMESPACE) if each["reportingController"] == "leaderworkerset")
    return {
        "\t".join((each["type"], each["reason"], each["action"], re.sub(r"key \w+", "key K", each["note"])))
        for each in mine
    }


def rolling(partition: int) -> dict[str, Any]:
    return {"rolloutStrategy": {"rollingUpdateConfiguration": {"partition": partition}}}


@pytest.mark.looptime
async def test_every_event_has_the_recorded_words() -> None:
    recorded = (Path(__file__).parent / "lws-0.10.0" / "events.txt").read_text().splitlines()
    async with cluster() as server:
        server.create(LEADER_WORKER_SETS, lws(replicas=2, size=2))
        await asyncio.sleep(6)
        moves = ((rolling(HOLD), 2), (None, 2), (rolling(1), 6), (rolling(HOLD), 2), (rolling(0), 6))
        for spec, seconds in moves:
            patch_lws(server, spec or {"leaderWorkerTemplate": {"workerTemplate": template("model:B")}})
            await asyncio.sleep(seconds)
        assert told(server) == set(recorded)
