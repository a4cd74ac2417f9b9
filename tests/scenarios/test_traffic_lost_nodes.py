"""A node that is lost takes some pods of each group, so that none is whole: ready leaders decide who gets the requests,
for they are what routers send them to.
"""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from rollout_lws.objects.resources import LWS_WORKER_INDEX, PODS
from rollout_lws.sandbox.behaviours.faults import CUT_OFF, PREFIX
from tests.scenarios.invariants import share_only_for_who_serves
from tests.scenarios.metered import ACCEPTED, LAG, NEW_ONLY, STABLE_ONLY, Metered, metered, shared
from tests.scenarios.routed import (
    AND_SCRIPTS,
    EACH,
    Provider,
    behind,
    by_each,
    share,
)
from tests.scenarios.stories import CANARY
from tests.scenarios.world import NAME, World

pytestmark = pytest.mark.looptime

QUARTER = {"replicas": 1, "traffic": "25%", "pause": {}}
HIT = "users are affected: no group of either version is ready as a whole"
#: Who has been away for a moment gets requests again after so many seconds.
BACK = 60


def leader_of(lws: str, group: int) -> str:
    return f"{lws}-{group}"


def cut_off(world: World, pods: Iterable[str], text: str | None = "true") -> None:
    """Whoever runs on the lost node; with None the node is back."""
    for name in pods:
        world.patch(PODS, name, {"metadata": {"annotations": {PREFIX + CUT_OFF: text}}})


def workers(world: World, lws: str, groups: int) -> list[str]:
    """One worker of each group."""
    found = [
        f"{leader_of(lws, group)}-1"
        for group in range(groups)
        if world.get(PODS, f"{leader_of(lws, group)}-1") is not None
    ]
    assert len(found) == groups, found
    labels = world.get(PODS, found[0])["metadata"]["labels"]  # type: ignore[index]
    assert labels[LWS_WORKER_INDEX] == "1"
    return found


async def nothing_whole(m: Metered, lost: list[str]) -> None:
    m.world.checks.append(share_only_for_who_serves())
    cut_off(m.world, lost)
    await m.world.until(lambda: m.world.status.get("traffic", {}).get("answeredBy") is not None, "it is told", 30)
    await m.world.sleep(LAG + ACCEPTED)


def told(world: World) -> str:
    return str(world.status["message"])


@pytest.mark.one_in(2)
@pytest.mark.parametrize("by", AND_SCRIPTS, ids=str)
async def test_a_canary_whose_leader_is_lost_gives_its_share_to_ready_leaders_of_stable(by: Provider) -> None:
    async with metered(QUARTER, replicas=3, by=by) as m:
        world = m.world
        await m.release()
        lost = [leader_of(CANARY, 0), *workers(world, NAME, 3)]
        await nothing_whole(m, lost)
        assert world.status["traffic"]["answeredBy"] == "Stable"
        assert f"{HIT}, and only ready leaders behind " in told(world)
        assert "canary" not in told(world).partition(HIT)[2]
        assert m.meter.now("users") == STABLE_ONLY
        assert world.state == "Loading"
        cut_off(world, lost, None)
        await world.until_state("AwaitingApproval")
        await world.sleep(BACK)
        assert "answeredBy" not in world.status["traffic"]
        assert await m.shares() == shared(0.25)
        await m.finish()


@by_each(EACH)
async def test_ready_leaders_of_the_canary_get_all_requests_when_stable_has_none() -> None:
    async with metered(QUARTER, replicas=3) as m:
        world = m.world
        await m.release()
        lost = [*(leader_of(NAME, group) for group in range(3)), *workers(world, CANARY, 1)]
        await nothing_whole(m, lost)
        assert world.status["traffic"]["answeredBy"] == "New"
        assert f"{HIT}, and only ready leaders behind {behind()[1]} answer requests" in told(world)
        assert m.meter.now("users") == NEW_ONLY
        cut_off(world, lost, None)
        await world.until(lambda: share(world) == pytest.approx(0.25), "stable gets its share back", 600)
        await world.until_state("AwaitingApproval")
        await m.finish()


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("first", "then", "between", "after"), [(NAME, CANARY, 1, 0.25), (CANARY, NAME, 0, 0)])
@by_each(EACH)
async def test_the_canary_gets_no_more_while_leaders_of_both_versions_are_ready(
    first: str, then: str, between: float, after: float
) -> None:
    """Whichever version's groups are known to be lost first: what the other got for a moment is not what stays."""
    groups = {NAME: 3, CANARY: 1}
    async with metered(QUARTER, replicas=3) as m:
        world = m.world
        await m.release()
        lost = [*workers(world, first, groups[first]), *workers(world, then, groups[then])]
        cut_off(world, workers(world, first, groups[first]))
        await world.until(lambda: share(world) == pytest.approx(between), "the other version gets everything", 60)
        await nothing_whole(m, lost)
        assert world.status["traffic"]["answeredBy"] == "Both"
        assert f"{HIT}, and only ready leaders answer requests" in told(world)
        assert share(world) == pytest.approx(after)
        why = "neither version has a whole group: the new version's share does not grow"
        assert world.status["traffic"]["message"] == why
        cut_off(world, lost, None)
        await world.until_state("AwaitingApproval")
        await m.finish()


@by_each(EACH)
async def test_a_version_that_never_had_a_share_gets_none_by_its_leaders() -> None:
    async with metered({"replicas": 1, "pause": {}}, QUARTER, replicas=3) as m:
        world = m.world
        await m.release()
        lost = [*(leader_of(NAME, group) for group in range(3)), *workers(world, CANARY, 1)]
        await nothing_whole(m, lost)
        assert world.status["traffic"]["answeredBy"] == "New"
        assert share(world) == 0
        cut_off(world, lost, None)
        await world.until_state("AwaitingApproval")
        await m.finish()


@pytest.mark.parametrize(("first", "between", "after"), [(NAME, 1, 0.25), (CANARY, 0, 0)])
@by_each(EACH)
async def test_that_no_version_has_a_ready_leader_is_told_and_the_canary_gets_no_more(
    first: str, between: float, after: float
) -> None:
    leaders = {NAME: [leader_of(NAME, group) for group in range(3)], CANARY: [leader_of(CANARY, 0)]}
    lost = [*leaders[NAME], *leaders[CANARY]]
    async with metered(QUARTER, replicas=3) as m:
        world = m.world
        await m.release()
        cut_off(world, leaders[first])
        await world.until(lambda: share(world) == pytest.approx(between), "the other version gets everything", 60)
        await nothing_whole(m, lost)
        assert world.status["traffic"]["answeredBy"] == "Neither"
        assert f"{HIT}, and neither {behind()[0]} nor {behind()[1]} has a ready endpoint" in told(world)
        assert share(world) == pytest.approx(after)
        cut_off(world, lost, None)
        await world.until_state("AwaitingApproval")
        await m.finish()
