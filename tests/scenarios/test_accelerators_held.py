"""Accelerators that are told as held are those that pods have taken from a node, by the version that each group has."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cli.plan.snapshots import plan_of
from tests.scenarios.containers import Containers
from tests.scenarios.paired import GREEN, apply, approve_to_the_end, scaled_pair
from tests.scenarios.stories import at_rest
from tests.scenarios.test_refused_versions import template
from tests.scenarios.world import World

pytestmark = pytest.mark.looptime

GPU = "nvidia.com/gpu"
STEPS: tuple[dict[str, Any], ...] = ({"replicas": 1, "pause": {}}, {"replicas": "100%"})


def asking(world: World, tag: str, each: int) -> dict[str, Any]:
    made = template(tag, world.containers)
    made["spec"]["containers"][0]["resources"] = {"limits": {GPU: str(each)}}
    return {"leaderWorkerTemplate": {"workerTemplate": made}}


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("capacity", "held", "new"), [("ExtraWorkload", 48, 0), ("InPlace", 32, 0)], ids=["beside", "in place"]
)
async def test_a_group_that_fits_on_no_node_holds_nothing(world: World, capacity: str, held: int, new: int) -> None:
    """Nodes have eight each. What the old groups have is told by the old version, whatever the new one asks for."""
    await at_rest(world, *STEPS, replicas=3, canary={"capacity": capacity})
    world.patch_lws(asking(world, "v1", 8))
    await world.until_state("AwaitingApproval")
    world.approve()
    await world.until_state("Healthy", 1200)
    await world.rest()
    assert world.status["summary"]["accelerators"] == 48
    world.patch_lws(asking(world, "v2", 12))
    await world.until_state("WaitingForAccelerators")
    await world.rest()
    summary = world.status["summary"]
    assert (summary["accelerators"], summary["newAccelerators"]) == (held, new)
    plan = plan_of(world)
    assert plan.now == {GPU: held}
    assert plan.requested == {GPU: held + 24}


class Accelerated(Containers):
    """Each version asks for an accelerator for each pod."""

    def of(self, version: str) -> list[dict[str, Any]]:
        return [each | {"resources": {"limits": {GPU: "1"}}} for each in super().of(version)]


@pytest.mark.parametrize("ending", ["promoted", "aborted"])
async def test_a_pair_at_rest_tells_what_one_side_holds(world: World, ending: str) -> None:
    """The last pod of the other side goes after all else has been told."""
    world.containers = Accelerated()
    await scaled_pair(world)
    apply(world, GREEN, "v2")
    await world.until_state("AwaitingApproval", 1200)
    world.approve()
    await world.until(
        lambda: world.status["currentStepIndex"] == 2 and world.state == "AwaitingApproval", "step 2", 1200
    )
    assert world.status["summary"]["accelerators"] == 16
    if ending == "promoted":
        await approve_to_the_end(world)
    else:
        world.request("Abort")
        await world.until_state("Aborted", 1200)
    await world.rest()
    assert world.status["summary"]["accelerators"] == 8
