"""Pairs with companions, in harm's way: a member that fails, is deleted, edited or scaled by others; lost evidence."""

from __future__ import annotations

import pytest

from rollout_lws.objects.resources import LEADER_WORKER_SETS
from rollout_lws.rollout.reasons import Reason
from rollout_lws.sandbox.behaviours.faults import PREFIX
from tests.scenarios.count import partition
from tests.scenarios.paired import (
    ALL_BLUE,
    BLUE,
    GREEN,
    all_ready,
    apply,
    approve_to_the_end,
    drop_mark,
    forge,
    no_workload_written,
    rollout,
    set_ready,
    share,
    weights,
    wipe,
)
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
    create_sets,
    in_step,
    metered_sets,
    roles,
    sets,
)
from tests.scenarios.paired_scaled import OPEN, recreate_rollout, stalled
from tests.scenarios.routed import OF_PAIRS
from tests.scenarios.scaled import create_autoscaler, wants
from tests.scenarios.test_pair_scaled_faults import state_replicas
from tests.scenarios.told import tells
from tests.scenarios.world import KEYS, ROLLOUTS, World

pytestmark = [pytest.mark.looptime, *OF_PAIRS]

EACH_MOMENT = pytest.mark.parametrize("moment", MOMENTS)
OPEN_STRATEGY = {"rolloutStrategy": OPEN["rolloutStrategy"]}


def apply_faulty(world: World, name: str, **faults: str) -> None:
    """v2 of this workload, with faults of the sandbox."""
    annotations = {PREFIX + key.replace("_", "-"): text for key, text in faults.items()}
    template = {"metadata": {"annotations": annotations}, "spec": {"containers": world.containers.of("v2")}}
    world.patch_lws({"leaderWorkerTemplate": {"workerTemplate": template}}, name)


# Members that fail


async def test_a_companion_that_keeps_crashing_stops_the_release_of_both(world: World) -> None:
    await at_rest(world)
    apply_faulty(world, PREFILL[GREEN], fail="CrashLoopBackOff")
    apply_one(world, GREEN, "v2")
    await world.until(lambda: stalled(world, Reason.CHURN), "told", 7200)
    assert f"group 0 of {PREFILL[GREEN]} was rebuilt 3 times" in world.status["message"]
    assert sets(world)[GREEN] == (1, 1)
    world.request("Abort")
    await world.until_state("Aborted", 1200)
    await world.rest()
    assert sets(world) == {BLUE: (4, 2), GREEN: (0, 0)} and weights(world) == ALL_BLUE


@pytest.mark.long
async def test_a_companion_that_crashes_aborts_both_where_failures_do(world: World) -> None:
    await at_rest(world, onFailure="Abort")
    apply_faulty(world, PREFILL[GREEN], fail="CrashLoopBackOff")
    apply_one(world, GREEN, "v2")
    await world.until_state("Aborted", 7200)
    await world.until(lambda: sets(world) == {BLUE: (4, 2), GREEN: (0, 0)}, "parked", 600)


async def test_a_companion_that_never_becomes_ready_keeps_requests_away_and_is_named(world: World) -> None:
    await at_rest(world, progressDeadlineSeconds=600)
    apply_faulty(world, PREFILL[GREEN], ready_after="1h")
    apply_one(world, GREEN, "v2")
    await world.until(lambda: stalled(world, Reason.DEADLINE), "told", 7200)
    assert weights(world) == ALL_BLUE
    named = {each["workload"] for each in world.status["notReadyGroups"]}
    assert named == {PREFILL[GREEN]}
    assert PREFILL[GREEN] in world.status["message"]
    await world.until_state("AwaitingApproval", 7200)


@pytest.mark.one_in(3)
@EACH_MOMENT
async def test_requests_leave_a_new_side_whose_companion_stops_serving(moment: str) -> None:
    async with metered_sets() as (pair, _):
        world = pair.world
        await come_to(world, moment)
        await world.sleep(60 if moment != "hand-over" else 5)
        set_ready(world, PREFILL[GREEN], False)
        await world.until(lambda: share(world, GREEN) == 0, "requests leave", 60)
        await world.sleep(300)
        assert share(world, GREEN) == 0 and world.status["active"] == BLUE and sets(world)[BLUE] == (4, 2)
        set_ready(world, PREFILL[GREEN], True)
        await world.until(lambda: share(world, GREEN) > 0, "requests come again", 1200)
        await approve_to_the_end(world)
        assert sets(world) == {BLUE: (0, 0), GREEN: (4, 2)}
        await world.sleep(60)
        pair.assert_unharmed()


async def test_a_side_that_serves_keeps_its_requests_though_its_companion_does_not(world: World) -> None:
    await at_rest(world)
    await in_step(world)
    before = weights(world)
    set_ready(world, PREFILL[BLUE], False)
    await world.sleep(600)
    assert weights(world) == before and sets(world) == {BLUE: (4, 2), GREEN: (1, 1)}


# Members that others change


@tells(
    {
        Reason.ACTIVE_SIDE_EDITED: "LeaderWorkerSet llama-prefill goes with llama, which has all requests, and the"
        " version in its template waits: apply it to llama-prefill-green to release it, and restore the template of"
        " llama-prefill"
    }
)
async def test_a_companion_that_serves_is_held(world: World) -> None:
    await at_rest(world)
    before = world.leader_uids()
    apply(world, PREFILL[BLUE], "v9", **OPEN_STRATEGY)
    await world.until(lambda: stalled(world, Reason.ACTIVE_SIDE_EDITED), "told")
    await world.sleep(600)
    assert set(world.groups(PREFILL[BLUE]).values()) == {"v1"} and world.leader_uids() == before
    await in_step(world)
    assert set(world.groups(PREFILL[BLUE]).values()) == {"v1"}
    await approve_to_the_end(world)
    assert sets(world) == {BLUE: (0, 0), GREEN: (4, 2)}


async def test_a_partition_that_a_tool_resets_is_put_back_each_time(world: World) -> None:
    await at_rest(world)
    for _ in range(5):
        world.patch_lws(OPEN_STRATEGY, PREFILL[BLUE])
        await world.sleep(3)
        assert partition(world.get(LEADER_WORKER_SETS, PREFILL[BLUE]) or {}) > 4


async def test_groups_that_others_add_or_take_are_put_back(world: World) -> None:
    await at_rest(world)
    for count in (5, 1):
        world.patch_lws({"replicas": count}, PREFILL[BLUE])
        await world.sleep(2)
        assert sets(world)[BLUE] == (4, 2)
    await world.sleep(60)
    world.patch_lws({"replicas": 1}, PREFILL[GREEN])
    await world.sleep(2)
    assert sets(world)[GREEN] == (0, 0)
    await in_step(world, 2)
    world.patch_lws({"replicas": 1}, PREFILL[BLUE])
    await world.sleep(2)
    assert sets(world) == {BLUE: (4, 2), GREEN: (4, 2)}


@tells(
    {
        Reason.REPLICAS_APPLIED: "LeaderWorkerSet llama-prefill-green gets spec.replicas from a manifest (kubectl"
        " apply), which would undo what a release scales: remove spec.replicas with kubectl apply edit-last-applied"
        " leaderworkerset llama-prefill-green, and then from the manifest, in this order"
    }
)
async def test_a_manifest_that_states_replicas_of_a_companion_is_refused(world: World) -> None:
    create_sets(world)
    state_replicas(world, PREFILL[GREEN], 0)
    world.server.create(ROLLOUTS, rollout(spec={"companions": [*COMPANIONS]}))
    await all_ready(world, BLUE, PREFILL[BLUE])
    world.start_controller()
    await world.until(lambda: stalled(world, Reason.REPLICAS_APPLIED), "told")
    assert roles(world) == {BLUE: {None}, GREEN: {None}}
    state_replicas(world, PREFILL[GREEN], None)
    await world.until_state("Healthy")
    await world.rest()
    assert roles(world) == {BLUE: {"active"}, GREEN: {"parked"}}


async def test_an_autoscaler_of_a_companion_keeps_the_release(world: World) -> None:
    await at_rest(world)
    create_autoscaler(world, target=PREFILL[BLUE])
    apply_set(world, "v2")
    await world.until(lambda: stalled(world, Reason.AUTOSCALER_PROBLEM), "told")
    assert sets(world) == {BLUE: (4, 2), GREEN: (0, 0)}


async def test_companions_follow_an_autoscaler_of_the_rollout(world: World) -> None:
    await at_rest(world)
    create_autoscaler(world, of=ROLLOUTS)
    wants(world, 6)
    await world.until(lambda: sets(world)[BLUE] == (6, 3), "before", 600)
    await in_step(world, 2)
    wants(world, 8)
    await world.until(lambda: sets(world) == {BLUE: (8, 4), GREEN: (8, 4)}, "up in the release", 600)
    wants(world, 2)
    await world.sleep(120)
    assert sets(world) == {BLUE: (8, 4), GREEN: (8, 4)}
    await approve_to_the_end(world)
    await world.until(lambda: sets(world) == {BLUE: (0, 0), GREEN: (2, 1)}, "down after it", 600)


# Members that are deleted


@tells(
    {
        Reason.COUNTERPART_MISSING: "LeaderWorkerSet llama-prefill-green does not exist; llama has all requests: create"
        " llama-prefill-green to release a version on it"
    }
)
async def test_a_parked_companion_that_is_deleted_is_asked_for(world: World) -> None:
    await at_rest(world)
    world.delete(LEADER_WORKER_SETS, PREFILL[GREEN])
    await world.until(lambda: stalled(world, Reason.COUNTERPART_MISSING), "told")
    apply_one(world, GREEN, "v2")
    await world.sleep(60)
    assert weights(world) == ALL_BLUE
    world.create_workload(name=PREFILL[GREEN], replicas=1, tag="v2")
    await world.until_state("AwaitingApproval", 1200)
    await approve_to_the_end(world)
    assert sets(world) == {BLUE: (0, 0), GREEN: (4, 2)}


@pytest.mark.one_in(3)
@EACH_MOMENT
async def test_a_new_companion_that_is_deleted_ends_the_release(moment: str) -> None:
    async with metered_sets() as (pair, _):
        world = pair.world
        await come_to(world, moment)
        await world.sleep(40 if moment != "hand-over" else 5)
        world.delete(LEADER_WORKER_SETS, PREFILL[GREEN])
        await world.until(lambda: share(world, GREEN) == 0, "requests leave", 120)
        await world.until(lambda: stalled(world, Reason.COUNTERPART_MISSING), "told", 1200)
        lws = world.get(LEADER_WORKER_SETS, GREEN)
        assert lws is not None and lws["spec"]["replicas"] == 0 and weights(world) == ALL_BLUE
        await world.sleep(60)
        pair.assert_unharmed()


@tells(
    {
        Reason.COMPANION_MISSING: "LeaderWorkerSet llama-prefill does not exist in namespace default, and goes with"
        " llama, which has the requests: create llama-prefill, or take it out of spec.companions of a Rollout that is"
        " disabled"
    }
)
@pytest.mark.one_in(3)
@pytest.mark.parametrize("moment", ["rest", "step 1", "step 2"])
async def test_an_active_companion_that_is_deleted_leaves_everything_as_it_is(world: World, moment: str) -> None:
    await at_rest(world)
    if moment != "rest":
        await come_to(world, moment)
    before = weights(world), sets(world)[GREEN]
    world.delete(LEADER_WORKER_SETS, PREFILL[BLUE])
    await world.until(lambda: stalled(world, Reason.COMPANION_MISSING), "told", 120)
    await world.sleep(600)
    green = tuple((world.get(LEADER_WORKER_SETS, name) or {})["spec"]["replicas"] for name in SETS[GREEN])
    assert (weights(world), green) == before
    world.create_workload(name=PREFILL[BLUE], replicas=2, tag="v1")
    await world.until(lambda: world.state in ("Healthy", "AwaitingApproval"), "goes on", 1200)
    await world.rest()
    assert share(world, BLUE) > 0 and sets(world)[BLUE] == (4, 2)


async def test_a_rollout_waits_for_its_companions(world: World) -> None:
    create_sets(world)
    world.delete(LEADER_WORKER_SETS, PREFILL[BLUE])
    world.server.create(ROLLOUTS, rollout(spec={"companions": [*COMPANIONS]}))
    world.start_controller()
    await world.until(lambda: stalled(world, Reason.COMPANION_MISSING), "told")
    assert set().union(*(_labels(world, name) for name in (BLUE, GREEN))) == set()
    world.create_workload(name=PREFILL[BLUE], replicas=2, tag="v1")
    await world.until_state("Healthy", 600)
    await world.rest()
    assert roles(world) == {BLUE: {"active"}, GREEN: {"parked"}}


def _labels(world: World, name: str) -> set[str]:
    labels = (world.get(LEADER_WORKER_SETS, name) or {})["metadata"].get("labels") or {}
    return {labels[KEYS.side]} if KEYS.side in labels else set()


async def test_groups_of_a_companion_on_the_other_side_stay_until_a_person_says_which_serves(world: World) -> None:
    create_sets(world)
    world.patch_lws({"replicas": 1}, PREFILL[GREEN])
    world.server.create(ROLLOUTS, rollout(spec={"companions": [*COMPANIONS]}))
    world.start_controller()
    await world.until(lambda: stalled(world, Reason.ACTIVE_SIDE_UNKNOWN), "told")
    assert sets(world)[GREEN] == (0, 1)
    world.patch_rollout({"activeSide": BLUE})
    await world.until(lambda: sets(world)[GREEN] == (0, 0), "parked", 120)


# Lost and forged evidence


@pytest.mark.one_in(4)
@pytest.mark.parametrize("moment", ["rest", "step", "hand-over", "after"])
@pytest.mark.parametrize("lost", ["status", "mark and status", "labels and status", "Rollout"])
async def test_lost_evidence_neither_moves_requests_nor_groups(moment: str, lost: str) -> None:
    async with metered_sets() as (pair, _):
        world = pair.world
        match moment:
            case "step":
                await in_step(world, 2)
            case "hand-over":
                await come_to(world, "hand-over")
            case "after":
                await in_step(world, 2)
                await approve_to_the_end(world)
        world.stop_controller()
        if "mark" in lost:
            drop_mark(world)
        if "labels" in lost:
            for names in SETS.values():
                for name in names:
                    world.patch(LEADER_WORKER_SETS, name, {"metadata": {"labels": {KEYS.side: None}}})
        if lost == "Rollout":
            recreate_rollout(world, spec={"companions": [*COMPANIONS]})
        else:
            wipe(world)
        world.start_controller()
        await world.rest(quiet=60, seconds=1200)
        while world.state == "AwaitingApproval":
            world.request("Abort")
            await world.rest(quiet=60, seconds=1200)
        await world.rest(quiet=60, seconds=1200)
        served = world.status["active"]
        assert served == (GREEN if moment == "after" else BLUE) or moment == "hand-over", world.describe()
        assert sets(world) == {BLUE: (0, 0), GREEN: (0, 0)} | {served: (4, 2)}
        assert share(world, served) == 1
        pair.assert_unharmed()


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    "forged",
    [
        {"inactiveHash": "another"},
        {"inactiveHash": None, "observedTemplateHash": None},
        {"complete": {"templateHash": "a-b", "releaseID": "r9"}, "arriving": {"templateHash": "a", "since": None}},
        {"stable": {"templateHash": "a-b-c", "revision": "x", "workloadUID": "y"}},
    ],
)
async def test_a_forged_status_moves_nothing_by_itself(world: World, forged: dict[str, object]) -> None:
    await at_rest(world)
    await in_step(world)
    await approve_to_the_end(world)
    forge(world, **forged)
    await world.rest(quiet=60, seconds=1200)
    # A writer of the status can have what is on the other side released, but takes nothing from the one that serves.
    assert sets(world)[GREEN] == (4, 2) and share(world, GREEN) > 0.5


# Without touching workloads


async def test_route_only_waits_for_the_groups_that_owners_make(world: World) -> None:
    create_sets(world, beside=4)
    companions = [{key: value for key, value in COMPANIONS[0].items() if key != "replicas"}]
    spec = {"touch": "RouteOnly", "companions": companions}
    world.server.create(ROLLOUTS, rollout(spec=spec))
    await all_ready(world, *SETS[BLUE], *SETS[GREEN])
    world.checks.append(no_workload_written(world))
    world.start_controller()
    await world.until_state("Healthy")
    world.patch_lws({"replicas": 0}, PREFILL[GREEN])
    world.checks[-1] = no_workload_written(world)
    apply_set(world, "v2")
    await world.sleep(300)
    assert weights(world) == ALL_BLUE and PREFILL[GREEN] in world.status["message"]
    world.patch_lws({"replicas": 2}, PREFILL[GREEN])
    await world.until_state("AwaitingApproval", 1200)
    judge = SetJudge(world)
    await approve_to_the_end(world)
    assert world.status["active"] == GREEN and weights(world) == {BLUE: 0, GREEN: 100} and not judge.loads
