"""Pairs with companions: the side that serves whole keeps its requests, and no half of a version starts by itself."""

from __future__ import annotations

import asyncio

import pytest

from rollout_lws.errors import ApiError
from rollout_lws.objects.resources import (
    HORIZONTAL_POD_AUTOSCALERS,
    LEADER_WORKER_SETS,
    LWS_NAME,
    SERVICES,
)
from rollout_lws.objects.writes import Patch, Write
from rollout_lws.rollout.reasons import Reason
from tests.scenarios.count import partition
from tests.scenarios.paired import (
    ALL_BLUE,
    BLUE,
    GREEN,
    SERVICES_OF,
    all_ready,
    approve_to_the_end,
    rollout,
    set_ready,
    share,
    weights,
)
from tests.scenarios.paired_companions import (
    COMPANIONS,
    MOMENTS,
    PREFILL,
    SETS,
    apply_one,
    apply_set,
    at_rest,
    come_to,
    create_sets,
    metered_sets,
    sets,
)
from tests.scenarios.paired_scaled import OPEN, stalled
from tests.scenarios.routed import OF_PAIRS
from tests.scenarios.scaled import AUTOSCALER, create_autoscaler, scale
from tests.scenarios.test_pair_companions import waits_for
from tests.scenarios.test_pair_companions_faults import apply_faulty
from tests.scenarios.world import KEYS, NAME, ROLLOUTS, World

pytestmark = [pytest.mark.looptime, *OF_PAIRS]

EACH_MOMENT = pytest.mark.parametrize("moment", MOMENTS)


def label(world: World, name: str, release_id: str) -> None:
    """A workload gets this release id, and keeps its template."""
    world.patch(LEADER_WORKER_SETS, name, {"metadata": {"labels": {KEYS.rollout_id: release_id}}})


# A side that serves whole


@pytest.mark.one_in(4)
@EACH_MOMENT
@pytest.mark.parametrize("how", ["aborted", "deleted", "third version"])
async def test_requests_do_not_go_back_to_a_side_without_its_companion(world: World, moment: str, how: str) -> None:
    await at_rest(world)
    await come_to(world, moment)
    set_ready(world, PREFILL[BLUE], False)
    await world.sleep(5)
    before = weights(world)
    match how:
        case "aborted":
            world.request("Abort")
        case "deleted":
            world.delete(ROLLOUTS, NAME)
        case _:
            apply_set(world, "v3")
    await world.sleep(300)
    assert weights(world) == before and min(sets(world)[GREEN]) > 0
    set_ready(world, PREFILL[BLUE], True)
    await world.until(lambda: weights(world) == ALL_BLUE, "requests go back", 600)
    if how == "deleted":
        await world.until(lambda: world.get(ROLLOUTS, NAME) is None, "the Rollout leaves", 600)
    await world.until(lambda: how == "third version" or sets(world)[GREEN] == (0, 0), "parked", 600)


async def test_a_rollout_that_leaves_waits_no_longer_than_the_deadline(world: World) -> None:
    await at_rest(world, progressDeadlineSeconds=300)
    await come_to(world, "step 2")
    world.delete(LEADER_WORKER_SETS, PREFILL[BLUE])
    await world.until(lambda: stalled(world, Reason.COMPANION_MISSING), "told", 60)
    before = weights(world)
    world.delete(ROLLOUTS, NAME)
    await world.sleep(60)
    assert world.get(ROLLOUTS, NAME) is not None and weights(world) == before
    await world.until(lambda: world.get(ROLLOUTS, NAME) is None, "the Rollout leaves", 3600)
    assert weights(world) == before
    green = [(world.get(LEADER_WORKER_SETS, name) or {})["spec"]["replicas"] for name in SETS[GREEN]]
    assert green == [4, 2]


@pytest.mark.one_in(3)
@EACH_MOMENT
async def test_a_companion_of_the_active_side_may_be_recreated_in_a_release(moment: str) -> None:
    async with metered_sets() as (pair, _):
        world = pair.world
        await come_to(world, moment)
        await world.sleep(40 if moment != "hand-over" else 5)
        before = share(world, GREEN)
        world.delete(LEADER_WORKER_SETS, PREFILL[BLUE])
        await world.sleep(20)
        world.create_workload(name=PREFILL[BLUE], replicas=2, size=2, tag="v1")
        for _ in range(40):
            await world.sleep(0.5)
            assert share(world, GREEN) >= before
        await approve_to_the_end(world)
        assert world.status["active"] == GREEN and sets(world) == {BLUE: (0, 0), GREEN: (4, 2)}
        await world.sleep(60)
        pair.assert_unharmed()


async def test_the_hold_and_the_number_are_kept_while_a_companion_is_missing(world: World) -> None:
    await at_rest(world)
    world.delete(LEADER_WORKER_SETS, PREFILL[BLUE])
    await world.until(lambda: stalled(world, Reason.COMPANION_MISSING), "told", 60)
    world.patch_lws(OPEN, BLUE)
    apply_one(world, BLUE, "v9")
    world.patch_lws({"replicas": 3}, BLUE)
    await world.sleep(300)
    blue = world.get(LEADER_WORKER_SETS, BLUE) or {}
    assert blue["spec"]["replicas"] == 4 and set(world.groups(BLUE).values()) == {"v1"}


async def test_requests_wait_for_the_groups_that_another_client_took_from_a_companion(world: World) -> None:
    await at_rest(world)
    await come_to(world, "hand-over")
    world.patch_lws({"replicas": 0}, PREFILL[BLUE])
    await world.sleep(8)
    world.request("Abort")
    while weights(world) != ALL_BLUE:
        assert share(world, GREEN) == 1
        await world.sleep(0.5)
    assert sets(world)[BLUE] == (4, 2)
    assert not any("!" in told for told in world.groups(PREFILL[BLUE]).values())


# What is complete


async def test_a_start_is_for_the_version_that_was_there(world: World) -> None:
    await at_rest(world)
    create_autoscaler(world, target=PREFILL[BLUE])
    apply_one(world, PREFILL[GREEN], "v2")
    await world.sleep(5)
    world.request("Start")
    await world.until(lambda: stalled(world, Reason.AUTOSCALER_PROBLEM), "told", 60)
    apply_one(world, PREFILL[GREEN], "v3")
    await world.sleep(3600)
    world.delete(HORIZONTAL_POD_AUTOSCALERS, AUTOSCALER)
    await world.until(lambda: waits_for(world, f"when {GREEN} has another version"), "told", 60)
    await world.sleep(60)
    assert sets(world)[GREEN] == (0, 0)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("first", [0, 1])
async def test_one_that_is_late_is_awaited_after_both_sides_were_alike(world: World, first: int) -> None:
    await at_rest(world)
    apply_set(world, "v2")
    await world.until_state("AwaitingApproval", 1200)
    await approve_to_the_end(world)
    apply_set(world, "v2", BLUE)
    await world.sleep(600)
    assert world.state == "Healthy"
    late = SETS[BLUE][1 - first]
    apply_one(world, SETS[BLUE][first], "v3")
    await world.until(lambda: waits_for(world, f"when {late} has another version"), "told", 60)
    await world.sleep(60)
    assert sets(world)[BLUE] == (0, 0)
    apply_one(world, late, "v3")
    await world.until_state("AwaitingApproval", 1200)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("moment", ["rest", "step 1"])
async def test_a_release_id_comes_first_to_a_template_that_stays(world: World, moment: str) -> None:
    await at_rest(world)
    if moment != "rest":
        apply_set(world, "v2", release_id="r2")
        await world.until_state("AwaitingApproval", 1200)
    label(world, GREEN, "r3")
    await world.sleep(5)
    apply_one(world, PREFILL[GREEN], "v3", release_id="r3")
    await world.until(lambda: set(world.groups(PREFILL[GREEN]).values()) == {"v3"}, "the release", 1200)
    await world.until_state("AwaitingApproval", 1200)
    await approve_to_the_end(world)


async def test_one_with_a_release_id_is_started_and_then_the_other_one_comes(world: World) -> None:
    await at_rest(world)
    apply_one(world, GREEN, "v2", release_id="r2")
    await world.sleep(30)
    world.request("Start")
    await world.until_state("AwaitingApproval", 1200)
    apply_one(world, PREFILL[GREEN], "v2", release_id="r2")
    await world.until(lambda: set(world.groups(PREFILL[GREEN]).values()) == {"v2"}, "both", 1200)
    await world.until_state("AwaitingApproval", 1200)


async def test_all_may_have_the_same_release_id_as_the_active_side(world: World) -> None:
    """A pipeline stamps the manifests of both sides with each release's id, before templates change."""
    await at_rest(world)
    for name in (*SETS[GREEN], *SETS[BLUE]):
        label(world, name, "r2")
    await world.sleep(5)
    apply_one(world, GREEN, "v2")
    await world.until(lambda: waits_for(world, PREFILL[GREEN]), "told", 60)
    apply_one(world, PREFILL[GREEN], "v2")
    await world.until_state("AwaitingApproval", 1200)


async def test_a_third_version_of_one_that_is_withdrawn_leaves_the_second_one(world: World) -> None:
    await at_rest(world)
    apply_set(world, "v2")
    await world.until_state("AwaitingApproval", 1200)
    apply_one(world, PREFILL[GREEN], "v3")
    await world.until(lambda: waits_for(world, GREEN), "told", 1200)
    apply_one(world, PREFILL[GREEN], "v2")
    await world.until_state("AwaitingApproval", 1200)
    assert {tag for name in SETS[GREEN] for tag in world.groups(name).values()} == {"v2"}


async def test_the_old_side_that_gets_its_version_by_halves_as_the_roles_change_is_released(world: World) -> None:
    await at_rest(world)
    await come_to(world, "hand-over")
    await world.sleep(20)
    apply_one(world, PREFILL[BLUE], "v3")
    await world.until(lambda: world.status["active"] == GREEN and world.state != "Promoting", "roles", 600)
    await world.sleep(60)
    assert sets(world)[BLUE] == (0, 0)
    apply_one(world, BLUE, "v3")
    await world.until_state("AwaitingApproval", 1200)
    await approve_to_the_end(world)
    assert {tag for name in SETS[BLUE] for tag in world.groups(name).values()} == {"v3"}


async def test_what_a_side_had_before_its_companion_came_is_not_released_by_itself(world: World) -> None:
    create_sets(world)
    world.delete(LEADER_WORKER_SETS, PREFILL[GREEN])
    apply_one(world, GREEN, "v0")
    world.server.create(ROLLOUTS, rollout(spec={"companions": [*COMPANIONS]}))
    await all_ready(world, *SETS[BLUE])
    world.start_controller()
    await world.until(lambda: stalled(world, Reason.COUNTERPART_MISSING), "told", 120)
    world.create_workload(name=PREFILL[GREEN], replicas=0, size=2, tag="v0")
    await world.until_state("Healthy", 120)
    await world.sleep(120)
    assert sets(world)[GREEN] == (0, 0)
    apply_set(world, "v2")
    await world.until_state("AwaitingApproval", 1200)


async def test_what_a_side_had_before_is_judged_when_its_templates_are_restored(world: World) -> None:
    create_sets(world)
    apply_set(world, "v0")
    world.server.create(ROLLOUTS, rollout(spec={"companions": [*COMPANIONS]}))
    await all_ready(world, *SETS[BLUE])
    world.start_controller()
    await world.until_state("Healthy", 120)
    await come_to(world, "step 1")
    apply_set(world, "v0")
    await world.until_state("Healthy", 1200)
    assert (
        world.status["observedTemplateHash"] == world.status["inactiveHash"] != world.status["stable"]["templateHash"]
    )
    await world.sleep(120)
    assert sets(world) == {BLUE: (4, 2), GREEN: (0, 0)} and weights(world) == ALL_BLUE


# Services and readiness


async def test_a_service_may_lead_to_the_companion_of_its_side(world: World) -> None:
    create_sets(world)
    for side, service in SERVICES_OF.items():
        template = {"metadata": {"labels": {"side": side}}}
        for name in SETS[side]:
            world.patch_lws({"leaderWorkerTemplate": {"workerTemplate": template}}, name)
        world.patch(SERVICES, service, {"spec": {"selector": {LWS_NAME: None}}})
    world.server.create(ROLLOUTS, rollout(spec={"companions": [*COMPANIONS]}))
    await all_ready(world, *SETS[BLUE])
    world.start_controller()
    await world.until(lambda: stalled(world, Reason.SERVICE_PROBLEM), "told", 60)
    # They have no groups yet.
    assert f"selects leaders of LeaderWorkerSet {GREEN}, {PREFILL[GREEN]} besides {BLUE}" in world.status["message"]
    for side, service in SERVICES_OF.items():
        world.patch(SERVICES, service, {"spec": {"selector": {"side": side}}})
    await world.until_state("Healthy", 600)
    apply_set(world, "v2")
    await world.until_state("AwaitingApproval", 1200)


async def test_the_hand_over_goes_on_when_a_slow_companion_counts(world: World) -> None:
    await at_rest(world, {"replicas": 1, "traffic": "20%", "pause": {}}, minReadySeconds=20)
    apply_faulty(world, PREFILL[GREEN], ready_after="100s")
    apply_one(world, GREEN, "v2")
    await world.until_state("AwaitingApproval", 1200)
    world.approve()
    await world.until(lambda: world.status["active"] == GREEN, "the end", 600)


async def test_all_requests_wait_for_the_last_group_of_a_companion(world: World) -> None:
    await at_rest(world, {"replicas": 1, "traffic": "20%", "pause": {}})
    apply_faulty(world, PREFILL[GREEN], ready_after="400s")
    apply_one(world, GREEN, "v2")
    await world.until_state("AwaitingApproval", 1200)
    world.approve()
    await world.sleep(300)
    assert sets(world)[GREEN] == (4, 2) and not any("!" in told for told in world.groups(GREEN).values())
    assert share(world, GREEN) == pytest.approx(0.2) and PREFILL[GREEN] in world.status["message"]
    await world.until(lambda: world.status["active"] == GREEN, "the end", 600)


async def test_companions_keep_their_groups_while_those_that_they_go_with_do(world: World) -> None:
    await at_rest(world)

    def refuse(write: Write) -> ApiError | None:
        of_main = (
            isinstance(write, Patch) and write.name == BLUE and (write.body.get("spec") or {}).get("replicas") == 0
        )
        return ApiError(403, "Forbidden", "refused by a webhook or a policy") if of_main else None

    world.refuse = refuse
    scale(world, 0)
    await world.sleep(120)
    assert sets(world)[BLUE] == (4, 2)
    world.refuse = lambda _: None
    await world.until(lambda: sets(world)[BLUE] == (0, 0), "scaled", 1200)


# Tools and failures


async def test_a_tool_that_insists_on_a_companions_partition_is_left_alone_for_a_while(world: World) -> None:
    await at_rest(world)

    async def insist() -> None:
        while True:
            await asyncio.sleep(0.3)
            if partition(world.get(LEADER_WORKER_SETS, PREFILL[BLUE]) or {}) > 4:
                world.patch_lws(OPEN, PREFILL[BLUE])

    begun = len(world.writes)
    tool = asyncio.create_task(insist())
    apply_one(world, PREFILL[BLUE], "v9")
    await world.until(lambda: stalled(world, Reason.HOLD_CONFLICT), "told", 60)
    assert f"resets the partition of LeaderWorkerSet {PREFILL[BLUE]}" in world.status["message"]
    await world.sleep(300)
    tool.cancel()
    assert len(world.writes) - begun < 60
    await world.until(lambda: partition(world.get(LEADER_WORKER_SETS, PREFILL[BLUE]) or {}) > 4, "held", 1200)
    await world.until_state("Healthy", 600)


async def test_companions_have_a_tolerance_of_their_own(world: World) -> None:
    """Two of four groups may fail, and one of two of prefill."""
    step = {"replicas": "100%", "traffic": "50%", "pause": {}}
    await at_rest(world, step, onFailure="Abort")
    world.patch(ROLLOUTS, NAME, {"spec": {"strategy": {"canary": {"failureThreshold": "50%"}}}})
    apply_faulty(world, PREFILL[GREEN], fail="CrashLoopBackOff")
    apply_one(world, GREEN, "v2")
    begun = world.now
    await world.until_state("Aborted", 3600)
    assert (world.now - begun).total_seconds() < 300
