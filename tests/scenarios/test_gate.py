"""A gate that begins in mid-release is about what the controller has seen, and never waits for what is there."""

from __future__ import annotations

from typing import Any

import pytest

from rollout_lws.cli.status.gate import Goal, judge, pin
from rollout_lws.objects.resources import LEADER_WORKER_SETS
from tests.scenarios.names import NAMESPACE, ROLLOUTS
from tests.scenarios.stories import PROMOTED_STEPS, at_rest, waiting_for_approval
from tests.scenarios.styles import STYLES, Style
from tests.scenarios.world import NAME, World

pytestmark = pytest.mark.looptime


@pytest.mark.one_in(4, of="edit")
@pytest.mark.parametrize(
    "edit",
    [
        {"startupPolicy": "LeaderReady"},
        {"rolloutStrategy": {"rollingUpdateConfiguration": {"maxUnavailable": 2}}},
        {"replicas": 5},
    ],
    ids=lambda edit: next(iter(edit)),
)
@pytest.mark.parametrize("style", STYLES, ids=str)
async def test_an_edit_that_makes_no_version_is_seen_while_a_step_waits(
    world: World, style: Style, edit: dict[str, Any]
) -> None:
    await at_rest(world, *PROMOTED_STEPS, **{style.key: dict(style.words)})
    await waiting_for_approval(world)
    world.patch_lws(edit)
    await world.rest()
    rollout = world.server.get(ROLLOUTS, NAMESPACE, NAME)
    pinned = pin(rollout, world.server.get(LEADER_WORKER_SETS, NAMESPACE, NAME))
    verdict = judge(rollout, Goal("paused"), pinned)
    assert verdict is not None and verdict.word == "paused"
