"""How many requests a release costs the API server: what everybody who watches its objects pays for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import pytest

from rollout_lws.objects.resources import CONTROLLER_REVISIONS, LEADER_WORKER_SETS, PODS
from rollout_lws.objects.writes import Patch, Write
from rollout_lws.sandbox.behaviours.faults import PREFIX
from rollout_lws.workload.revisions import HISTORY_LIMIT
from tests.scenarios.containers import TAGGED
from tests.scenarios.routed import assert_given_back, routed_at_rest
from tests.scenarios.shell import ShellWorld
from tests.scenarios.world import NAME

pytestmark = pytest.mark.looptime

#: Five groups, of which each step adds one and a tenth of the requests.
STEPS: tuple[dict[str, Any], ...] = tuple(
    {"replicas": number, "traffic": f"{10 * number}%", "pause": {"duration": 300}} for number in range(1, 6)
)
#: Of one release, whatever the model's load time; labels of leaders and what opens and closes windows come on top.
MOST = 60
#: What is remembered has its limits: then each release deletes a version of the Rollout's history, and LWS's record of
#: another one.
FORGOTTEN = 2


def steering(writes: Iterable[Write]) -> list[Write]:
    """Without leaders' labels, and without windows."""
    return [each for each in writes if not (isinstance(each, Patch) and (each.resource == PODS or _is_window(each)))]


def _is_window(write: Patch) -> bool:
    spec = write.body.get("spec") or {}
    return (write.resource, write.name) == (LEADER_WORKER_SETS, NAME) and "rolloutStrategy" in spec


def kinds(writes: Iterable[Write]) -> Counter[str]:
    return Counter(f"{type(each).__name__} {each.resource.plural}" for each in writes)


async def release(world: ShellWorld, tag: str, load: str) -> None:
    """To its end, by groups that load so long."""
    changes = {"metadata": {"annotations": {PREFIX + "ready-after": load}}, "spec": {"containers": TAGGED.of(tag)}}
    world.patch_lws({"leaderWorkerTemplate": {"workerTemplate": changes}})
    await world.until(lambda: world.state == "Healthy" and set(world.groups().values()) == {tag}, "released", 4e4)
    await world.rest()


@pytest.mark.one_in(3)
@pytest.mark.parametrize("load", ["1s", "90s", "600s"])
async def test_five_weighted_steps_take_no_more_than_sixty_writes(load: str) -> None:
    world = ShellWorld()
    written: list[Write] = []
    world.refuse = written.append  # type: ignore[assignment]
    try:
        before = await routed_at_rest(world, *STEPS, size=4)
        written.clear()
        await release(world, "v2", load)
        assert_given_back(world, before)
        steered = steering(written)
        assert len(steered) <= MOST, kinds(steered)
    finally:
        await world.gone()
        world.close()


@pytest.mark.long
async def test_a_release_after_many_deletes_two_that_are_remembered() -> None:
    world = ShellWorld()
    written: list[Write] = []
    world.refuse = written.append  # type: ignore[assignment]
    try:
        await routed_at_rest(world, *STEPS, size=4)
        for number in range(2, HISTORY_LIMIT + 4):
            before = kinds(written)
            written.clear()
            await release(world, f"v{number}", "90s")
        # The last two are alike: what is remembered does not grow.
        steered = steering(written)
        assert len(steered) <= MOST - 1 + FORGOTTEN, kinds(steered)
        assert kinds(written) == before
        assert kinds(steered)[f"Delete {CONTROLLER_REVISIONS.plural}"] == FORGOTTEN
    finally:
        await world.gone()
        world.close()
