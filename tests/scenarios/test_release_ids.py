"""The id that a person gives a release, and where it can be put."""

from __future__ import annotations

from typing import Any

import pytest

from rollout_lws.objects.resources import LEADER_WORKER_SETS, PODS
from tests.scenarios.stories import CANARY, at_rest, waiting_for_approval
from tests.scenarios.world import KEYS, NAME, NAMESPACE, World

pytestmark = pytest.mark.looptime


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("where", "given", "label"),
    [
        ("labels", "2026-03-01.1", "2026-03-01.1"),
        ("annotations", "2026-03-01.1", "2026-03-01.1"),
        ("annotations", "a" * 63, "a" * 63),
        ("annotations", "a" * 64, None),
        ("annotations", "build 7 of main", None),
        ("annotations", "feature/x", None),
    ],
)
async def test_leaders_carry_the_id_where_a_label_can_and_their_batch_always(
    world: World, where: str, given: str, label: str | None
) -> None:
    await at_rest(world)
    marks: dict[str, Any] = {"metadata": {where: {KEYS.rollout_id: given}}}
    world.patch(LEADER_WORKER_SETS, NAME, marks)
    await waiting_for_approval(world)
    assert world.status["observedRolloutID"] == given
    leader = world.server.get(PODS, NAMESPACE, f"{CANARY}-0")["metadata"]["labels"]
    assert (leader.get(KEYS.rollout_id), leader[KEYS.rollout_batch_id]) == (label, "1")
