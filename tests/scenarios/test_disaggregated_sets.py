"""LeaderWorkerSets that DisaggregatedSets make: refused alone, released as a pair between which requests move."""

from __future__ import annotations

import pytest

from rollout_lws.cli.sides import edited
from rollout_lws.cli.status.gate import Goal, judge, pin
from rollout_lws.objects.resources import DISAGGREGATED_SETS, LEADER_WORKER_SETS
from rollout_lws.rollout.reasons import EventReason, Reason
from tests.scenarios import disaggregated as ds
from tests.scenarios.crashes import PARTS, kill_after_every_write
from tests.scenarios.paired import (
    ALL_BLUE,
    ALL_GREEN,
    BLUE,
    GREEN,
    WeightJudge,
    approve_to_the_end,
    retirable,
    rollout,
    share,
    weights,
)
from tests.scenarios.told import tells
from tests.scenarios.world import NAME, NAMESPACE, ROLLOUTS, World

pytestmark = pytest.mark.looptime

DECODE = "llama-0-ae67aee7-decode"
SAYS_HOW = "docs/disaggregated-sets.md says how"
ALONE = (
    f"LeaderWorkerSet {DECODE} is made by DisaggregatedSet llama, which rolls all its roles together and would undo a"
    " release: run two DisaggregatedSets, and a Rollout of a pair (capacity: Pair, touch: RouteOnly) whose workloadRef"
    f" and counterpartRef name a LeaderWorkerSet of each; {SAYS_HOW}"
)
SCALED = (
    f"LeaderWorkerSet {DECODE} is made by DisaggregatedSet llama, which rolls all its roles together and would undo a"
    f" release: set touch: RouteOnly, with which no LeaderWorkerSet is written; {SAYS_HOW}"
)
ONE_SET = (
    f"LeaderWorkerSet {DECODE} and llama-0-ae67aee7-prefill are both made by DisaggregatedSet llama, which makes and"
    f" takes the groups of its versions by itself: give each side a DisaggregatedSet of its own; {SAYS_HOW}"
)


async def _made(world: World) -> None:
    ds.create(world)
    await world.until(lambda: all(ds.is_whole(world, side) for side in (BLUE, GREEN)), "all groups ready")


async def _refused(world: World, message: str) -> None:
    before = world.server.list(LEADER_WORKER_SETS, NAMESPACE)
    world.start_controller()
    await world.rest()
    told = world.condition("Stalled")
    assert (told["reason"], told["message"]) == (Reason.WORKLOAD_OWNED, message)
    assert world.server.list(LEADER_WORKER_SETS, NAMESPACE) == before, "nothing is written into what is not the user's"
    assert weights(world) == ALL_BLUE
    refused = world.server.get(ROLLOUTS, NAMESPACE, NAME)
    lws = world.server.get(LEADER_WORKER_SETS, NAMESPACE, edited(refused))
    verdict = judge(refused, Goal("healthy"), pin(refused, lws))
    assert verdict is not None and (verdict.code, verdict.word) == (3, "stalled"), "a pipeline does not wait for ever"


@tells({Reason.WORKLOAD_OWNED: ALONE}, {EventReason.STALLED: ALONE})
async def test_one_alone_is_refused_and_told_what_to_do_instead(world: World) -> None:
    await _made(world)
    world.create_rollout({"replicas": 1, "pause": {}}, workload=ds.only(world, BLUE, "decode"))
    await _refused(world, ALONE)


@tells({Reason.WORKLOAD_OWNED: SCALED}, {EventReason.STALLED: SCALED})
async def test_a_pair_that_would_scale_them_is_told_how_not_to(world: World) -> None:
    await _made(world)
    body = rollout(spec={})
    body["spec"] |= {each: value for each, value in ds.refs(world).items() if each != "companions"}
    world.server.create(ROLLOUTS, body)
    await _refused(world, SCALED)


@tells({Reason.WORKLOAD_OWNED: ONE_SET}, {EventReason.STALLED: ONE_SET})
async def test_two_roles_of_one_are_no_two_sides(world: World) -> None:
    await _made(world)
    body = rollout()
    body["spec"]["workloadRef"]["name"] = ds.only(world, BLUE, "decode")
    body["spec"]["counterpartRef"]["name"] = ds.only(world, BLUE, "prefill")
    world.server.create(ROLLOUTS, body)
    await _refused(world, ONE_SET)


async def test_one_with_the_label_and_without_the_owner_is_released(world: World) -> None:
    world.create_workload()
    world.patch(LEADER_WORKER_SETS, NAME, {"metadata": {"labels": {f"{DISAGGREGATED_SETS.group}/name": "chat"}}})
    world.create_rollout({"replicas": 1, "pause": {}})
    world.start_controller()
    await world.until_state("Healthy")


async def test_a_version_is_released_and_the_side_before_is_retired_and_serves_again() -> None:
    async with ds.metered_sets() as pair:
        world = pair.world
        WeightJudge(world).watch()
        old = ds.only(world, BLUE, "decode")
        await ds.renamed(world, GREEN, "v2")
        new = ds.only(world, GREEN, "decode")
        assert weights(world) == ALL_BLUE and world.status["active"] == old
        await world.sleep(3600)
        assert world.state == "Healthy" and weights(world) == ALL_BLUE, "it is released by request only"
        world.request("Start")
        await world.until_state("AwaitingApproval")
        assert await pair.shares() == {old: 0.8, new: 0.2}
        await approve_to_the_end(world)
        assert await pair.shares() == {new: 1.0} and world.status["active"] == new
        await world.until(lambda: retirable(world), "ReadyToRetire", 3600)
        ds.apply(world, BLUE, "v1", decode=0, prefill=0)
        await world.rest()
        assert ds.replicas(world, BLUE) == {old: 0, ds.only(world, BLUE, "prefill"): 0}, "a number changes no name"
        assert world.state == "Healthy" and weights(world) == ALL_GREEN
        ds.apply(world, BLUE, "v1")
        await world.until(lambda: ds.is_whole(world, BLUE), "it has loaded", 3600)
        world.request("Start")
        await world.until_state("AwaitingApproval")
        await approve_to_the_end(world)
        assert await pair.shares() == {old: 1.0} and world.status["active"] == old
        pair.assert_unharmed()


async def test_an_abort_gives_the_requests_back_and_leaves_all_groups() -> None:
    async with ds.metered_sets() as pair:
        world = pair.world
        old = ds.only(world, BLUE, "decode")
        await ds.renamed(world, GREEN, "v2")
        world.request("Start")
        await world.until_state("AwaitingApproval")
        world.approve()
        await world.until(lambda: world.status["currentStepIndex"] == 2 and world.state == "AwaitingApproval")
        assert share(world, GREEN) == 0.5
        stood = ds.replicas(world, GREEN)
        world.request("Abort")
        await world.until_state("Aborted")
        await world.rest()
        assert await pair.shares() == {old: 1.0}
        assert ds.replicas(world, GREEN) == stood
        # What is better then has other names, as every version.
        await ds.renamed(world, GREEN, "v3")
        world.request("Start")
        await world.until_state("AwaitingApproval")
        await approve_to_the_end(world)
        assert await pair.shares() == {ds.only(world, GREEN, "decode"): 1.0}
        pair.assert_unharmed()


NOT_FOLLOWED = (
    "LeaderWorkerSet llama-green-0-ae67aee7-decode and llama-green-0-ae67aee7-prefill does not exist;"
    " llama-0-ae67aee7-decode has all requests: DisaggregatedSet llama gives its LeaderWorkerSets another name for each"
    f" version: disable the Rollout before a version is applied, and name those of that version then; {SAYS_HOW}"
)


@tells({Reason.COUNTERPART_MISSING: NOT_FOLLOWED})
async def test_a_version_that_the_rollout_does_not_name_gets_no_request(world: World) -> None:
    await ds.at_rest(world)
    ds.apply(world, GREEN, "v2")
    await world.until(lambda: world.condition("Stalled").get("reason") == Reason.COUNTERPART_MISSING, "told", 1200)
    await world.sleep(3600)
    assert world.condition("Stalled")["message"] == NOT_FOLLOWED
    assert weights(world) == ALL_BLUE
    # And it is released once it is named.
    world.patch_rollout({"disabled": True})
    await world.until_state("Disabled")
    world.patch_rollout({"disabled": False, **ds.refs(world)})
    await world.until_state("Healthy")
    world.request("Start")
    await world.until_state("AwaitingApproval")
    await approve_to_the_end(world)
    assert weights(world) == ALL_GREEN


async def test_a_version_for_a_side_with_a_share_ends_with_all_requests_at_the_other_one(world: World) -> None:
    await ds.at_rest(world)
    await ds.renamed(world, GREEN, "v2")
    world.request("Start")
    await world.until_state("AwaitingApproval")
    ds.apply(world, GREEN, "v3")
    await world.until(lambda: world.condition("Stalled").get("reason") == Reason.COUNTERPART_MISSING, "told", 1200)
    await world.rest()
    assert weights(world) == ALL_BLUE


@pytest.mark.parametrize("stands", [True, False], ids=["the other one stands", "the other one is retired"])
async def test_a_version_for_the_side_that_serves_loses_no_request(stands: bool) -> None:
    """Its own controller rolls it, and the Rollout loses sight of it: requests go where there are groups."""
    async with ds.metered_sets() as pair:
        world = pair.world
        if not stands:
            ds.apply(world, GREEN, "v1", decode=0, prefill=0)
            await world.rest()
        ds.apply(world, BLUE, "v2")
        reason = Reason.COUNTERPART_MISSING if stands else Reason.WORKLOAD_NOT_FOUND
        await world.until(lambda: world.condition("Stalled").get("reason") == reason, "told", 3600)
        await world.rest()
        assert world.condition("Stalled")["message"].endswith(SAYS_HOW)
        assert weights(world) == (ALL_GREEN if stands else ALL_BLUE)
        serving = ds.only(world, GREEN if stands else BLUE, "decode")
        assert await pair.shares() == {serving: 1.0}
        assert not pair.meter.failures


async def _release(world: World, _: None) -> None:
    world.request("Start")
    await world.until_state("AwaitingApproval", 3600)
    world.approve()
    await world.until(lambda: world.status["currentStepIndex"] == 2 and world.state == "AwaitingApproval", "", 3600)
    world.request("Abort")
    await world.until_state("Aborted", 3600)
    world.request("Retry")
    await world.until_state("AwaitingApproval", 3600)
    await approve_to_the_end(world)
    assert weights(world) == ALL_GREEN and world.status["active"] == ds.only(world, GREEN, "decode")
    assert world.names()["batchreleases"] == []


async def _begun(world: World) -> None:
    await ds.at_rest(world)
    await ds.renamed(world, GREEN, "v2")


@pytest.mark.parametrize("part", [pytest.param(each, marks=pytest.mark.long if each else ()) for each in range(PARTS)])
def test_a_controller_killed_after_any_write_comes_to_the_same_end(part: int) -> None:
    kill_after_every_write(_begun, _release, part)
