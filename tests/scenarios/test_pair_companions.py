"""Pairs with companions: decode and prefill are one version, which is released, judged and given up as one."""

from __future__ import annotations

import pytest

from rollout_lws.objects.resources import LEADER_WORKER_SETS
from rollout_lws.rollout.reasons import Reason
from tests.scenarios.crashes import PARTS, kill_after_every_write
from tests.scenarios.paired import ALL_BLUE, BLUE, GREEN, apply, approve_to_the_end, left, share, weights
from tests.scenarios.paired_companions import (
    COMPANIONS,
    MOMENTS,
    PREFILL,
    SETS,
    SetJudge,
    apply_one,
    apply_set,
    at_rest,
    come_to,
    in_step,
    metered_sets,
    roles,
    sets,
)
from tests.scenarios.routed import OF_PAIRS
from tests.scenarios.scaled import scale
from tests.scenarios.told import tells
from tests.scenarios.world import KEYS, NAME, ROLLOUTS, World

pytestmark = [pytest.mark.looptime, *OF_PAIRS]

EACH_MOMENT = pytest.mark.parametrize("moment", MOMENTS)


async def test_both_are_released_as_one_version(world: World) -> None:
    await at_rest(world)
    judge = SetJudge(world)
    assert roles(world) == {BLUE: {"active"}, GREEN: {"parked"}}
    apply_one(world, PREFILL[GREEN], "v2")
    await world.sleep(5)
    apply_one(world, GREEN, "v2")
    await world.until_state("AwaitingApproval", 1200)
    assert sets(world) == {BLUE: (4, 2), GREEN: (1, 1)}
    assert share(world, GREEN) == pytest.approx(0.2)
    world.approve()
    await world.until(lambda: world.status["currentStepIndex"] == 2 and world.state == "AwaitingApproval")
    assert sets(world) == {BLUE: (4, 2), GREEN: (4, 2)}
    await approve_to_the_end(world)
    assert weights(world) == {BLUE: 0, GREEN: 100}
    assert sets(world) == {BLUE: (0, 0), GREEN: (4, 2)}
    assert roles(world) == {BLUE: {"parked"}, GREEN: {"active"}}
    assert judge.loads == {GREEN: 4, PREFILL[GREEN]: 2}
    await world.sleep(3600)
    assert sets(world) == {BLUE: (0, 0), GREEN: (4, 2)} and world.state == "Healthy"


async def test_roles_alternate_and_nothing_is_left(world: World) -> None:
    await at_rest(world)
    judge = SetJudge(world)
    for number, (side, other) in enumerate(((GREEN, BLUE), (BLUE, GREEN), (GREEN, BLUE)), 2):
        apply_set(world, f"v{number}", side)
        await world.until_state("AwaitingApproval", 1200)
        await approve_to_the_end(world)
        assert sets(world) == {side: (4, 2), other: (0, 0)}
        assert roles(world) == {side: {"active"}, other: {"parked"}}
        assert world.names()["batchreleases"] == []
    assert judge.loads == {GREEN: 8, PREFILL[GREEN]: 4, BLUE: 4, PREFILL[BLUE]: 2}


# When a version is complete


def waits_for(world: World, what: str) -> bool:
    reconciling = world.condition("Reconciling")
    return reconciling.get("reason") == Reason.VERSION_INCOMPLETE.value and what in reconciling["message"]


@tells(
    {
        Reason.VERSION_INCOMPLETE: "the release begins when llama-green has another version as well, or when all"
        " workloads of its side carry the same new rollout-id; to release what there is: kubectl rollout-lws start"
        " llama"
    }
)
async def test_one_of_them_alone_starts_nothing_until_a_person_asks(world: World) -> None:
    await at_rest(world)
    judge = SetJudge(world, together=False)
    apply_one(world, PREFILL[GREEN], "v2")
    await world.until(lambda: waits_for(world, f"when {GREEN} has another version"), "told")
    await world.sleep(3600)
    assert sets(world)[GREEN] == (0, 0) and not judge.loads
    world.request("Start")
    await world.until_state("AwaitingApproval", 1200)
    await approve_to_the_end(world)
    assert judge.loads == {GREEN: 4, PREFILL[GREEN]: 2}
    assert sets(world) == {BLUE: (0, 0), GREEN: (4, 2)}


async def test_a_version_that_still_changes_is_awaited(world: World) -> None:
    await at_rest(world)
    apply_set(world, "v2")
    for tag in ("v3", "v4"):
        await world.sleep(7)
        apply_one(world, GREEN, tag)
    await world.sleep(7)
    assert sets(world)[GREEN] == (0, 0)
    await world.until_state("AwaitingApproval", 1200)
    assert set(world.groups(GREEN).values()) == {"v4"} and set(world.groups(PREFILL[GREEN]).values()) == {"v2"}


async def test_the_same_release_id_starts_at_once_though_one_template_stays(world: World) -> None:
    await at_rest(world)
    apply_one(world, GREEN, "v2", release_id="r2")
    await world.until(lambda: waits_for(world, f"{PREFILL[GREEN]} has none"), "told")
    await world.sleep(60)
    assert sets(world)[GREEN] == (0, 0)
    apply_one(world, PREFILL[GREEN], "v1", release_id="r2")
    await world.sleep(5)
    assert sets(world)[GREEN] == (1, 1)
    await world.until_state("AwaitingApproval", 1200)
    assert world.status["observedRolloutID"] == "r2"
    await approve_to_the_end(world)
    assert sets(world) == {BLUE: (0, 0), GREEN: (4, 2)}


async def test_a_release_id_of_an_earlier_release_starts_nothing(world: World) -> None:
    await at_rest(world)
    for release_id, side in (("r2", GREEN), ("r3", BLUE)):
        apply_set(world, release_id, side, release_id=release_id)
        await world.until_state("AwaitingApproval", 1200)
        await approve_to_the_end(world)
    # Applied one after the other, the first one without its new id.
    apply_one(world, GREEN, "v4")
    await world.until(lambda: waits_for(world, f"when {PREFILL[GREEN]} has another version"), "told")
    await world.sleep(60)
    apply_one(world, PREFILL[GREEN], "v4", release_id="r4")
    await world.sleep(60)
    assert sets(world)[GREEN] == (0, 0)
    apply_one(world, GREEN, "v4", release_id="r4")
    await world.until_state("AwaitingApproval", 1200)


@pytest.mark.one_in(3)
@EACH_MOMENT
async def test_a_third_version_of_one_of_them_waits_for_the_other(moment: str) -> None:
    async with metered_sets() as (pair, judge):
        world = pair.world
        await come_to(world, moment)
        apply_one(world, PREFILL[GREEN], "v3")
        await world.until(lambda: share(world, GREEN) == 0, "requests go back", 1200)
        await world.until(lambda: waits_for(world, GREEN), "told", 1200)
        await world.until(lambda: sets(world) == {BLUE: (4, 2), GREEN: (0, 0)}, "parked", 1200)
        await world.sleep(120)
        made = dict(judge.loads)
        apply_one(world, GREEN, "v3")
        await world.until_state("AwaitingApproval", 1200)
        assert judge.loads == {GREEN: made[GREEN] + 1, PREFILL[GREEN]: made[PREFILL[GREEN]] + 1}
        await approve_to_the_end(world)
        assert {tag for name in (GREEN, PREFILL[GREEN]) for tag in world.groups(name).values()} == {"v3"}
        await world.sleep(60)
        pair.assert_unharmed()


# Ends


@pytest.mark.one_in(3)
@EACH_MOMENT
async def test_an_abort_takes_the_groups_of_all(moment: str) -> None:
    async with metered_sets() as (pair, _):
        world = pair.world
        await come_to(world, moment)
        await world.sleep(10 if moment == "hand-over" else 40)
        world.request("Abort")
        await world.until_state("Aborted", 1200)
        await world.rest()
        assert sets(world) == {BLUE: (4, 2), GREEN: (0, 0)} and roles(world) == {BLUE: {"active"}, GREEN: {"parked"}}
        await world.sleep(600)
        assert await pair.shares() == {BLUE: 1.0}
        world.request("Retry")
        await world.until_state("AwaitingApproval", 1200)
        await approve_to_the_end(world)
        assert sets(world) == {BLUE: (0, 0), GREEN: (4, 2)}
        await world.sleep(60)
        pair.assert_unharmed()


@pytest.mark.one_in(3)
@EACH_MOMENT
async def test_the_stable_templates_take_the_release_back(moment: str) -> None:
    async with metered_sets() as (pair, _):
        world = pair.world
        await come_to(world, moment)
        apply_set(world, "v1")
        await world.until(lambda: sets(world)[GREEN] == (0, 0), "groups go", 1200)
        await world.until_state("Healthy", 1200)
        assert sets(world) == {BLUE: (4, 2), GREEN: (0, 0)} and weights(world) == ALL_BLUE
        await world.sleep(60)
        pair.assert_unharmed()


@pytest.mark.one_in(3)
@pytest.mark.parametrize("moment", ["rest", *MOMENTS])
@pytest.mark.parametrize("how", ["deleted", "disabled"])
async def test_a_rollout_that_leaves_gives_everything_back(moment: str, how: str) -> None:
    async with metered_sets() as (pair, _):
        world = pair.world
        if moment != "rest":
            await come_to(world, moment)
            await world.sleep(10)
        if how == "deleted":
            await left(world)
        else:
            world.patch(ROLLOUTS, NAME, {"spec": {"disabled": True}})
            await world.until_state("Disabled", 1200)
        await world.rest()
        assert sets(world) == {BLUE: (4, 2), GREEN: (0, 0)} and weights(world) == ALL_BLUE
        assert roles(world) == {BLUE: {None}, GREEN: {None}}
        for name in (BLUE, PREFILL[BLUE]):
            lws = world.get(LEADER_WORKER_SETS, name)
            assert lws is not None and not (lws["metadata"].get("annotations") or {})
        await world.sleep(60)
        pair.assert_unharmed()


# Numbers


@pytest.mark.one_in(3)
@EACH_MOMENT
@pytest.mark.parametrize("count", [2, 6])
async def test_the_rollout_is_scaled_in_a_release(moment: str, count: int) -> None:
    async with metered_sets() as (pair, _):
        world = pair.world
        await come_to(world, moment)
        scale(world, count)
        await world.sleep(60)
        assert moment == "hand-over" or sets(world)[BLUE][1] >= 2, "no companion goes in a release"
        await approve_to_the_end(world)
        await world.until(lambda: sets(world) == {BLUE: (0, 0), GREEN: (count, count // 2)}, "scaled", 600)
        await world.sleep(60)
        assert not pair.meter.failures and not (pair.meter.cuts and count > 4)


async def test_companions_follow_at_rest_and_to_zero_and_back(world: World) -> None:
    await at_rest(world)
    for count in (6, 3, 0, 5):
        scale(world, count)
        wanted = (count, -(-count // 2))
        await world.until(lambda wanted=wanted: sets(world) == {BLUE: wanted, GREEN: (0, 0)}, "scaled", 600)  # type: ignore[misc]
        await world.rest()
        assert weights(world) == ALL_BLUE
    await world.until_state("Healthy")
    await in_step(world)
    assert sets(world)[GREEN] == (2, 2)


async def test_the_last_group_of_companions_goes_after_those_that_they_go_with(world: World) -> None:
    await at_rest(world)
    gone_first: list[tuple[int, int]] = []

    def judge(seen: World) -> None:
        main, own = sets(seen)[BLUE]
        if main and not own:
            gone_first.append((main, own))

    world.checks.append(judge)
    scale(world, 0)
    await world.until(lambda: sets(world)[BLUE] == (0, 0), "scaled", 600)
    assert not gone_first


async def test_a_count_of_its_own_stays_whatever_the_rollout_is_scaled_to(world: World) -> None:
    await at_rest(world, companions=({**COMPANIONS[0], "replicas": 3},))
    assert sets(world)[BLUE] == (4, 3)
    scale(world, 8)
    await world.until(lambda: sets(world)[BLUE] == (8, 3), "scaled", 600)
    await in_step(world)
    # Two of eight groups take one of three with them.
    assert sets(world)[GREEN] == (2, 1)
    await approve_to_the_end(world)
    assert sets(world) == {BLUE: (0, 0), GREEN: (8, 3)}


async def test_another_number_in_the_spec_is_followed_at_rest_and_in_a_step(world: World) -> None:
    await at_rest(world)
    world.patch(ROLLOUTS, NAME, {"spec": {"companions": [{**COMPANIONS[0], "replicas": "100%"}]}})
    await world.until(lambda: sets(world)[BLUE] == (4, 4), "scaled", 600)
    await in_step(world, 2)
    assert sets(world)[GREEN] == (4, 4)
    world.patch(ROLLOUTS, NAME, {"spec": {"companions": [{**COMPANIONS[0], "replicas": "50%"}]}})
    await world.until(lambda: sets(world)[GREEN] == (4, 2), "scaled", 600)
    assert sets(world)[BLUE] == (4, 4)
    await approve_to_the_end(world)
    assert sets(world) == {BLUE: (0, 0), GREEN: (4, 2)}


# Dying controllers


async def _tell_release(world: World, judge: SetJudge) -> None:
    apply_set(world, "v2")
    await world.until_state("AwaitingApproval", 1200)
    await approve_to_the_end(world)
    assert sets(world) == {BLUE: (0, 0), GREEN: (4, 2)} and judge.loads == {GREEN: 4, PREFILL[GREEN]: 2}


async def _tell_abort(world: World, _: SetJudge) -> None:
    await in_step(world, 2)
    world.request("Abort")
    await world.until_state("Aborted", 1200)
    await world.until(lambda: sets(world) == {BLUE: (4, 2), GREEN: (0, 0)}, "parked", 1200)
    assert weights(world) == ALL_BLUE


async def _begin(world: World) -> SetJudge:
    await at_rest(world)
    return SetJudge(world)


@pytest.mark.long
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("tell", [_tell_release, _tell_abort])
def test_each_write_may_be_the_last(tell: object, part: int) -> None:
    assert kill_after_every_write(_begin, tell, part)  # type: ignore[arg-type]


async def test_ids_and_templates_that_come_one_by_one_are_released_in_the_end(world: World) -> None:
    """The id of the last workload comes before its template, so that a release begins with half of the version."""
    await at_rest(world)
    for name in SETS[GREEN]:
        world.patch(LEADER_WORKER_SETS, name, {"metadata": {"labels": {KEYS.rollout_id: "r2"}}})
        await world.sleep(1)
        apply(world, name, "v2")
        await world.sleep(1)
    await world.until_state("AwaitingApproval", 1200)
    await world.sleep(60)
    assert {tag for name in SETS[GREEN] for tag in world.groups(name).values()} == {"v2"}
    await approve_to_the_end(world)
    assert world.status["active"] == GREEN and world.status["complete"]["templateHash"]
