"""LWS is upgraded and calls the version that runs by another revision; then all groups are recreated with that one."""

from __future__ import annotations

from typing import Any

import pytest

from rollout_lws.objects.resources import LEADER_WORKER_SETS, LWS_REVISION, STATEFUL_SETS
from rollout_lws.sandbox.behaviours.lws import objects
from rollout_lws.workload.hold import HOLD
from tests.scenarios.count import partition
from tests.scenarios.stories import assert_clean, at_rest, waiting_for_approval
from tests.scenarios.test_hold_released import release
from tests.scenarios.world import KEYS, NAME, World

pytestmark = pytest.mark.looptime

IN_PLACE = {"canary": {"capacity": "InPlace"}}
STEPS = ({"replicas": 1, "pause": {}}, {"replicas": "100%", "pause": {}})


def upgrade(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """From here on LWS hashes every template, and stores it, with a member more that says nothing."""
    data = objects.revision_data

    def stored(spec: Any) -> dict[str, Any]:
        found = data(spec)
        return {
            "spec": found["spec"] | {"leaderWorkerTemplate": {**found["spec"]["leaderWorkerTemplate"], "new": None}}
        }

    monkeypatch.setattr(objects, "revision_data", stored)
    world.patch(LEADER_WORKER_SETS, NAME, {"metadata": {"annotations": {"seen": "anew"}}})


async def resting(world: World, monkeypatch: pytest.MonkeyPatch) -> str:
    """What LWS calls stable's version since the upgrade; no group carries it yet."""
    await at_rest(world, *STEPS, replicas=3, size=1, **IN_PLACE)
    world.checks.clear()
    before = world.status["stable"]["revision"]
    upgrade(world, monkeypatch)
    await world.rest()
    leaders = world.get(STATEFUL_SETS, NAME)
    assert leaders is not None
    assert (world.state, world.status["stable"]["revision"]) == ("Healthy", before)
    after = str(leaders["metadata"]["labels"][LWS_REVISION])
    assert after != before
    return after


async def rolled(world: World, before: set[str]) -> None:
    await world.until(lambda: not before & set(world.leader_uids().values()), "all groups are recreated")


async def can_go_back(world: World, revision: str) -> None:
    """The hold stands, stable's revision is the one that groups restart with, and a release can be taken back to it."""
    assert partition(world.lws) == HOLD
    assert (world.state, world.status["stable"]["revision"]) == ("Healthy", revision)
    assert_clean(world, "v1", 3)
    await waiting_for_approval(world)
    world.request("Abort")
    await world.until_state("Aborted")
    await world.rest()
    assert_clean(world, "v1", 3)


@pytest.mark.parametrize(
    "early", [pytest.param(False, id="after the roll", marks=pytest.mark.long), pytest.param(True, id="in the roll")]
)
async def test_a_hold_released_by_hand_comes_back_once_all_groups_have_gone_over(
    world: World, monkeypatch: pytest.MonkeyPatch, early: bool
) -> None:
    revision, old = await resting(world, monkeypatch), set(world.leader_uids().values())
    release(world)
    await world.until(lambda: set(world.leader_uids().values()) - old, "a group is recreated")
    if not early:
        await rolled(world, old)
        await world.rest()
        assert world.state == "HoldReleased"
    release(world, None)
    await rolled(world, old)
    await world.rest()
    await can_go_back(world, revision)


@pytest.mark.long
async def test_stables_template_restored_under_the_annotation_ends_the_release_at_the_new_name(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    revision = await resting(world, monkeypatch)
    await waiting_for_approval(world)
    release(world)
    await world.until(lambda: set(world.groups().values()) == {"v2"}, "a roll of its own")
    world.set_image("v1")
    await world.until(lambda: set(world.groups().values()) == {"v1"}, "and one back")
    await world.rest()
    release(world, None)
    await world.rest()
    await can_go_back(world, revision)


async def test_what_went_over_while_no_controller_was_there_is_recorded(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    revision, old = await resting(world, monkeypatch), set(world.leader_uids().values())
    world.stop_controller()
    held = world.lws["spec"]["rolloutStrategy"]
    world.patch_lws({"rolloutStrategy": {"rollingUpdateConfiguration": {"partition": 0}}})
    await rolled(world, old)
    await world.rest()
    world.patch_lws({"rolloutStrategy": held})
    await world.rest()
    world.start_controller()
    await world.rest()
    assert not {each.reason for each in world.events} & {"HoldReset", "HoldConflict"}
    assert KEYS.original in world.lws["metadata"]["annotations"]
    await can_go_back(world, revision)
