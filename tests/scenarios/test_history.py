"""The versions that a Rollout remembers, by their last release."""

from __future__ import annotations

import pytest

from rollout_lws.objects.resources import CONTROLLER_REVISIONS
from rollout_lws.workload.revisions import HISTORY_LIMIT
from tests.scenarios.stories import assert_clean, at_rest, waiting_for_approval
from tests.scenarios.world import KEYS, NAMESPACE, World

pytestmark = pytest.mark.looptime


def remembered(world: World) -> list[str]:
    """Image tags of the stored versions, the last released one first."""
    records = world.server.list(CONTROLLER_REVISIONS, NAMESPACE, label_selector=KEYS.history)
    by_age = sorted(records, key=lambda record: record["revision"], reverse=True)
    templates = [record["data"]["spec"]["leaderWorkerTemplate"]["workerTemplate"] for record in by_age]
    return [template["spec"]["containers"][0]["image"].rpartition(":")[2] for template in templates]


async def release(world: World, tag: str) -> None:
    world.set_image(tag)
    await world.until(lambda: world.state == "Healthy" and set(world.groups().values()) == {tag}, f"{tag} everywhere")
    await world.rest()


async def test_a_version_that_is_released_again_is_the_newest_of_the_history(world: World) -> None:
    await at_rest(world, {"replicas": 1, "pause": {"duration": 0}}, replicas=1, size=1)
    for tag in ("v2", "v3", "v1"):
        await release(world, tag)
    assert remembered(world) == ["v1", "v3", "v2"]
    assert_clean(world, "v1", 1)


async def test_ten_versions_are_remembered_and_the_one_released_longest_ago_goes_first(world: World) -> None:
    await at_rest(world, {"replicas": 1, "pause": {"duration": 0}}, replicas=1, size=1)
    released = [f"v{number}" for number in range(2, HISTORY_LIMIT + 1)]
    for tag in (*released, "v1", "next"):
        await release(world, tag)
    assert remembered(world) == ["next", "v1", *reversed(released)][:HISTORY_LIMIT]


def left(world: World) -> dict[str, str]:
    """Image tag and mark of the stored versions whose last release did not end with them."""
    records = world.server.list(CONTROLLER_REVISIONS, NAMESPACE, label_selector=KEYS.history)
    marks = {
        each["data"]["spec"]["leaderWorkerTemplate"]["workerTemplate"]["spec"]["containers"][0]["image"].rpartition(
            ":"
        )[2]: each["metadata"]["annotations"].get(KEYS.rollback_reason, "")
        for each in records
    }
    return {tag: mark for tag, mark in marks.items() if mark}


async def test_a_version_whose_release_went_back_is_marked_until_it_is_released_again(world: World) -> None:
    await at_rest(world)
    await waiting_for_approval(world, "v2")
    world.request("Abort")
    await world.until_state("Aborted")
    assert left(world) == {"v2": "Aborted"}
    await waiting_for_approval(world, "v3")
    world.set_image("v4")
    await world.until(lambda: left(world).get("v3") == "Continuous", "the third version is superseded")
    await world.until_state("AwaitingApproval")
    world.set_image("v1")
    await world.until_state("Healthy")
    assert left(world) == {"v2": "Aborted", "v3": "Continuous", "v4": "Rollback"}
    world.set_image("v2")
    await world.until_state("Aborted")
    world.request("Retry")
    await world.until_state("AwaitingApproval")
    world.approve()
    await world.until_state("Healthy")
    await waiting_for_approval(world, "v3")
    world.approve()
    await world.until_state("Healthy")
    assert left(world) == {"v4": "Rollback"}
