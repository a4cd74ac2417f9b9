"""What is told around the end of a release: nothing is Healthy before it is over, and Aborted stays Aborted."""

from __future__ import annotations

import pytest

from rollout_lws.objects.resources import LWS_NAME, LWS_WORKER_INDEX, PODS
from tests.scenarios.stories import PROMOTED_STEPS, at_rest, waiting_for_approval
from tests.scenarios.styles import IN_PLACE, SURGE
from tests.scenarios.world import NAME, NAMESPACE, World

pytestmark = pytest.mark.looptime


def standing(world: World) -> int:
    """Groups of the LWS that are not on their way out."""
    found = world.server.list(PODS, NAMESPACE, label_selector=f"{LWS_NAME}={NAME},{LWS_WORKER_INDEX}=0")
    return sum("deletionTimestamp" not in pod["metadata"] for pod in found)


async def test_a_surge_is_healthy_when_its_groups_are_gone_and_aborted_for_good(world: World) -> None:
    await at_rest(world, *PROMOTED_STEPS, replicas=3, canary={**SURGE.words})
    told: list[str] = []

    def look(seen: World) -> None:
        if not told or told[-1] != seen.state:
            told.append(seen.state)
        over = seen.status["phase"] == "Healthy" and seen.status["stable"]["revision"] != first
        assert not over or standing(seen) == 3, f"{seen.state} with {standing(seen)} groups"
        shown = seen.status["summary"].get("stable", "0/0").partition("/")[2]
        assert int(shown) <= 3, seen.status["summary"]

    first = world.status["stable"]["revision"]
    world.checks.append(look)
    await waiting_for_approval(world)
    while world.state != "Healthy":
        if world.state == "AwaitingApproval":
            world.approve()
        await world._change(60)
    await world.rest()
    assert told.count("Healthy") == 2, told
    await waiting_for_approval(world, "v3")
    world.request("Abort")
    first = world.status["stable"]["revision"]
    await world.until_state("Aborted")
    await world.rest()
    assert told.count("Aborted") == 1, told
    # An edit that is no version leaves it so; one that is a version is looked at first, and that is not Healthy.
    world.patch_lws({"replicas": 4})
    await world.until(lambda: standing(world) == 4)
    world.checks.clear()
    world.cluster.runner.stop()
    world.set_image("v4")
    await world.until_state("Preparing")


async def test_a_portion_that_is_renewed_in_place_is_told_in_one_way_until_its_groups_are_ready(world: World) -> None:
    await at_rest(world, {"replicas": "50%", "pause": {}}, {"replicas": "100%"}, canary={**IN_PLACE.words})
    told: list[tuple[str, str, str]] = []

    def look(seen: World) -> None:
        summary = seen.status["summary"]
        if summary["state"] == "Loading" and "renewing" in seen.status["message"]:
            words = seen.status["message"], summary["new"], summary["stable"]
            told.extend([words] if words not in told[-1:] else [])

    world.checks.append(look)
    await waiting_for_approval(world)
    # Groups of stable that no window is open for stay, one less with each portion.
    assert told == [("renewing group 3", "0/2", "3/3"), ("renewing group 2", "1/2", "2/2")]
