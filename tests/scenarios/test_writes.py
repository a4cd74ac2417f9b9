"""How many requests a release costs the API server: what everybody who watches its objects pays for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import pytest

from rollout_lws.objects.resources import LEADER_WORKER_SETS, PODS
from rollout_lws.objects.writes import Patch, Write
from rollout_lws.sandbox.behaviours.faults import PREFIX
from tests.scenarios.containers import TAGGED
from tests.scenarios.routed import assert_given_back, routed_at_rest
from tests.scenarios.shell import ShellWorld
from tests.scenarios.walk_plans import template
from tests.scenarios.world import NAME

pytestmark = pytest.mark.looptime

#: Five groups, of which each step adds one and a tenth of the requests.
STEPS: tuple[dict[str, Any], ...] = tuple(
    {"replicas": number, "traffic": f"{10 * number}%", "pause": {"duration": 300}} for number in range(1, 6)
)
#: Of one release, whatever the model's load time; labels of leaders and what opens and closes windows come on top.
MOST = 60


def steering(writes: Iterable[Write]) -> list[Write]:
    """Without leaders' labels, and without windows."""
    return [each for each in writes if not (isinstance(each, Patch) and (each.resource == PODS or _is_window(each)))]


def _is_window(write: Patch) -> bool:
    spec = write.body.get("spec") or {}
    return (write.resource, write.name) == (LEADER_WORKER_SETS, NAME) and "rolloutStrategy" in spec


@pytest.mark.parametrize("load", ["1s", "90s", "600s"])
async def test_five_weighted_steps_take_no_more_than_sixty_writes(load: str) -> None:
    world = ShellWorld()
    written: list[Write] = []
    world.refuse = written.append  # type: ignore[assignment]
    try:
        before = await routed_at_rest(world, *STEPS, size=4)
        written.clear()
        changes = {"metadata": {"annotations": {PREFIX + "ready-after": load}}, "spec": template("v2", TAGGED)["spec"]}
        world.patch_lws({"leaderWorkerTemplate": {"workerTemplate": changes}})
        await world.until(lambda: world.state == "Healthy" and set(world.groups().values()) == {"v2"}, "released", 4e4)
        await world.rest()
        assert_given_back(world, before)
        steered = steering(written)
        assert len(steered) <= MOST, Counter(f"{type(each).__name__} {each.resource.plural}" for each in steered)
    finally:
        await world.gone()
        world.close()
