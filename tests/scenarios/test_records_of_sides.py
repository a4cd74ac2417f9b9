"""LWS's records of versions where two workloads serve in turn: both are held, so that it deletes none by itself."""

from __future__ import annotations

import pytest

from rollout_lws.objects.resources import CONTROLLER_REVISIONS, LEADER_WORKER_SETS, LWS_REVISION
from rollout_lws.workload.revisions import SPARE_RECORDS
from tests.scenarios import paired_companions as companions
from tests.scenarios.paired import BLUE, GREEN, apply, scaled_pair
from tests.scenarios.stories import CANARY
from tests.scenarios.swapped import plain_swap, released
from tests.scenarios.world import NAME, NAMESPACE, World

pytestmark = pytest.mark.looptime

#: What groups run or may come back with, and what is spared.
MOST = SPARE_RECORDS + 2
TIMED = {"replicas": "100%", "traffic": "50%", "pause": {"duration": 1}}


def records(world: World, name: str) -> list[str]:
    """Revisions that LWS has on record of a workload."""
    uid = (world.get(LEADER_WORKER_SETS, name) or {"metadata": {"uid": None}})["metadata"]["uid"]
    return [
        each["metadata"]["labels"][LWS_REVISION]
        for each in world.server.list(CONTROLLER_REVISIONS, NAMESPACE)
        if any(owner["uid"] == uid for owner in each["metadata"].get("ownerReferences", ()))
    ]


async def test_versions_that_were_given_up_on_a_parked_side_leave_few(world: World) -> None:
    await scaled_pair(world, {"replicas": 1, "traffic": "10%", "pause": {}}, replicas=1, size=1)
    for number in range(MOST + 4):
        apply(world, GREEN, f"v{2 + number % 5}")
        await world.until_state("AwaitingApproval")
        world.request("Abort")
        await world.until_state("Aborted")
        await world.rest()
    found = records(world, GREEN)
    assert len(found) <= MOST and len({*found}) == len(found)


async def test_releases_of_a_pair_with_companions_leave_few(world: World) -> None:
    await companions.at_rest(world, TIMED, sizes={"replicas": 1, "own": 1, "size": 1})
    for number in range(2 * MOST + 2):
        side = (GREEN, BLUE)[number % 2]
        companions.apply_set(world, f"v{number + 2}", side)
        await world.until(lambda side=side: world.status.get("active") == side and world.state == "Healthy", side, 1200)
        await world.rest()
    for name in (*companions.SETS[BLUE], *companions.SETS[GREEN]):
        assert len(records(world, name)) <= MOST, name


async def test_swaps_there_and_back_leave_few(world: World) -> None:
    await plain_swap(world, TIMED, replicas=1)
    for number in range(MOST + 4):
        await released(world, f"v{number + 2}")
    assert len(records(world, NAME)) <= MOST and len(records(world, CANARY)) <= MOST
