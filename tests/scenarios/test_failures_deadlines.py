"""Deadlines: of a step, of its routing, of an approval and of the end of a release, and what each does under either
``onFailure``. What takes its time by right (grace, drain, termination, pauses) does not count.
"""

from __future__ import annotations

from typing import Any

import pytest

from rollout_lws.api import ProgressingReason
from rollout_lws.objects.resources import PODS
from rollout_lws.rollout.reasons import EventReason, Reason
from rollout_lws.sandbox.api_resources import GATEWAYS
from rollout_lws.sandbox.behaviours.faults import PREFIX
from tests.scenarios.failures import GO_BACK, V1, V2, WHEN_READY, apply
from tests.scenarios.routed import GATEWAY, assert_given_back, routed_at_rest, share
from tests.scenarios.stories import CANARY, STEPS, assert_clean, at_rest, waiting_for_approval
from tests.scenarios.told import tells
from tests.scenarios.world import World

pytestmark = pytest.mark.looptime

#: One group, and a person.
ONE = ({"replicas": 1, "pause": {}}, {"replicas": "100%"})


def aborted(why: str, release: str = V2) -> str:
    return (
        f"release {release} was aborted ({why}); revision {V1} serves. Apply another version, or start this one again:"
        " kubectl rollout-lws retry llama"
    )


# Of a step


LATE = "no further group became ready within 120 s: pod llama-canary-0 (leader) is not ready"


@tells({Reason.DEADLINE: f"{LATE}. {WHEN_READY}"}, {EventReason.STALLED: f"{LATE}. {WHEN_READY}"})
async def test_a_deadline_names_the_pod_that_is_waited_for(world: World) -> None:
    await at_rest(world, *STEPS, progressDeadlineSeconds=120)
    world.set_image("bad-v2")
    await world.until_state("Stalled")


@tells({Reason.ABORTED: aborted(LATE, "gbcchflfld")}, {EventReason.ROLLING_BACK: f"back to the stable version: {LATE}"})
async def test_a_deadline_ends_the_release_where_failures_abort(world: World) -> None:
    await at_rest(world, *STEPS, progressDeadlineSeconds=120, onFailure="Abort")
    world.set_image("bad-v2")
    await world.until_state("Aborted")


async def test_a_start_up_probe_that_allows_more_than_an_hour_is_given_its_time(world: World) -> None:
    await at_rest(world, *ONE)
    probe = {"httpGet": {"path": "/health", "port": 8000}, "failureThreshold": 720, "periodSeconds": 10}
    containers = [{"name": "vllm", "image": "vllm:bad-v2", "startupProbe": probe}]
    world.patch_lws({"leaderWorkerTemplate": {"workerTemplate": {"spec": {"containers": containers}}}})
    await world.until_state("Loading")
    began = world.now
    await world.until_state("Stalled", seconds=9000)
    # Two hours of probing, and a quarter of one more.
    assert (world.now - began).total_seconds() == pytest.approx(8100, abs=1)


async def test_a_canary_that_takes_long_to_go_costs_the_next_version_nothing_of_its_time(world: World) -> None:
    await at_rest(world, *ONE, progressDeadlineSeconds=60, onFailure="Abort")
    apply(world, faults={"terminate-after": "300s"})
    await world.until_state("AwaitingApproval")
    world.set_image("v3")
    # Its leader goes, and then its worker.
    await world.until(lambda: world.groups(CANARY) == {0: "v3"} and world.state == "AwaitingApproval", seconds=1200)


# Of its routing


UNROUTED = (
    "traffic was not routed in time: HTTPRoute llama: Gateway default/inference: Accepted is False (UnsupportedValue:"
    " no capacity)"
)
REFUSED = {"metadata": {"annotations": {PREFIX + "refuse-routes": "no capacity"}}}


async def refused_in_mid_release(world: World, **more: Any) -> None:
    """The second share is refused by the Gateway."""
    steps: list[dict[str, Any]] = [{"replicas": n, "traffic": f"{10 * n}%", "pause": {}} for n in (1, 2)]
    create = dict(more)
    await routed_at_rest(world, *steps)
    world.patch_rollout({"strategy": create})
    await waiting_for_approval(world)
    world.approve()
    await world.until(lambda: world.get_canary_replicas() == 2)
    world.patch(GATEWAYS, GATEWAY, REFUSED)


@tells({Reason.DEADLINE: f"{UNROUTED}. The release waits, it goes on when it is; {GO_BACK}"})
async def test_a_share_that_is_not_accepted_in_time_is_told_with_the_gateways_words(world: World) -> None:
    await refused_in_mid_release(world, progressDeadlineSeconds=60)
    await world.until_state("Stalled")
    world.patch(GATEWAYS, GATEWAY, {"metadata": {"annotations": {PREFIX + "refuse-routes": None}}})
    await world.until_state("AwaitingApproval")
    assert share(world) == pytest.approx(0.2)


UNTAKEN = (
    "clean-up: traffic was not routed in time: HTTPRoute llama: Gateway default/inference: Accepted is False"
    " (UnsupportedValue: no capacity); it goes on by itself when it is"
)


@tells(
    {Reason.DEADLINE: UNTAKEN, Reason.ABORTED: aborted(UNROUTED)},
    {EventReason.ROLLING_BACK: f"back to the stable version: {UNROUTED}", EventReason.STALLED: UNTAKEN},
)
async def test_where_failures_abort_the_way_back_waits_for_the_gateway_and_says_so(world: World) -> None:
    await refused_in_mid_release(world, progressDeadlineSeconds=60, onFailure="Abort")
    await world.until_state("Stalled")
    # Requests may still run there.
    assert world.groups(CANARY) == {0: "v2", 1: "v2"}
    world.patch(GATEWAYS, GATEWAY, {"metadata": {"annotations": {PREFIX + "refuse-routes": None}}})
    await world.until_state("Aborted")


@tells({Reason.DRAINING: "requests that run on the new version get until 00:11:42 UTC"})
async def test_a_drain_costs_a_step_nothing_of_its_time(world: World) -> None:
    steps: list[dict[str, Any]] = [{"replicas": n, "traffic": f"{10 * n}%", "pause": {}} for n in (1, 2)]
    before = await routed_at_rest(world, *steps, drainSeconds=600)
    world.patch_rollout({"strategy": {"progressDeadlineSeconds": 60, "onFailure": "Abort"}})
    await waiting_for_approval(world)
    await world.sleep(90)
    world.approve()
    await world.until(lambda: (world.status["currentStepIndex"], world.state) == (2, "AwaitingApproval"))
    world.request("Jump", toStep=1)
    await world.until(lambda: (world.status["currentStepIndex"], world.state) == (1, "AwaitingApproval"), seconds=900)
    world.request("Abort")
    await world.until_state("Aborted", seconds=900)
    await world.rest()
    assert_given_back(world, before)


# Of the end of a release


NEVER = {"fail": "NeverReady", "fail-on": "llama-0*"}
SLOW = (
    "promotion: no further group became ready within 120 s: pod llama-0 (leader) is not ready; it goes on by itself:"
    " renewing group 0"
)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("on_failure", ["Pause", "Abort"])
@tells({Reason.DEADLINE: SLOW}, {EventReason.STALLED: SLOW})
async def test_a_promotion_that_does_not_get_on_is_told_and_goes_on(world: World, on_failure: str) -> None:
    await at_rest(world, *ONE, progressDeadlineSeconds=120, onFailure=on_failure)
    apply(world, faults=NEVER)
    await world.until_state("AwaitingApproval")
    world.approve()
    await world.until_state("Stalled")
    assert world.status["phase"] == "Progressing"
    for name in ("llama-0", "llama-0-1"):
        world.patch(PODS, name, {"metadata": {"annotations": {PREFIX + "fail": None}}})
    await world.until_state("Healthy")


BACK = (
    "going back: no further group became ready within 120 s: LeaderWorkerSet llama: its controller has not acted on the"
    " last change; if that lasts, is it running? kubectl get pods -n lws-system; it goes on by itself: waiting for"
    f" groups that came back to revision {V1}. 1 of canary llama-canary serve meanwhile; to do without them now:"
    " kubectl delete leaderworkerset llama-canary -n default"
)


@pytest.mark.each_change
@tells(
    {Reason.ROLLING_BACK: "closing the window", Reason.DEADLINE: BACK},
    {EventReason.ROLLING_BACK: "back to the stable version: wrong prompts", EventReason.STALLED: BACK},
    (ProgressingReason.CANCELLING,),
)
async def test_a_way_back_that_does_not_get_on_is_told_and_goes_on(world: World) -> None:
    await at_rest(world, *ONE, progressDeadlineSeconds=120)
    await waiting_for_approval(world)
    world.approve()
    await world.until(lambda: any(told.startswith("v2") for told in world.groups().values()))
    world.request("Abort", reason="wrong prompts")
    await world.until_state("RollingBack")
    await world.until(lambda: world.groups().get(3, "").startswith("v1"))
    world.cluster.runner.stop()
    await world.until_state("Stalled")


# Of an approval


@tells(
    {
        Reason.APPROVAL_TIMEOUT: "step 1 was not approved within 60 s. The release waits, it still can be approved:"
        f" kubectl rollout-lws promote llama; {GO_BACK}"
    }
)
async def test_a_forgotten_approval_is_told_with_both_ways_on_and_still_counts(world: World) -> None:
    await at_rest(world, {"replicas": 1, "pause": {"approvalTimeoutSeconds": 60}}, {"replicas": "100%"})
    world.set_image("v2")
    await world.until_state("Stalled")
    await world.sleep(3600)
    world.approve()
    await world.until_state("Healthy")
    await world.rest()
    assert_clean(world, "v2")


@tells(
    {Reason.ABORTED: aborted("step 1 was not approved within 60 s")},
    {EventReason.ROLLING_BACK: "back to the stable version: step 1 was not approved within 60 s"},
)
async def test_a_forgotten_approval_ends_the_release_where_failures_abort(world: World) -> None:
    await at_rest(world, {"replicas": 1, "pause": {"approvalTimeoutSeconds": 60}}, onFailure="Abort")
    world.set_image("v2")
    await world.until_state("Aborted")
    await world.rest()
    world.request("Approve")
    await world.rest()
    assert world.status["lastAction"]["message"] == "no release waits for approval"


async def test_a_paused_release_forgets_no_approval(world: World) -> None:
    await at_rest(world, {"replicas": 1, "pause": {"approvalTimeoutSeconds": 60}}, onFailure="Abort")
    world.set_image("v2")
    await world.until_state("AwaitingApproval")
    world.request("Pause")
    await world.sleep(600)
    assert world.state == "Paused"


async def test_a_group_lost_after_a_long_wait_for_approval_has_the_whole_deadline(world: World) -> None:
    await at_rest(world, *STEPS, progressDeadlineSeconds=600, onFailure="Abort")
    await waiting_for_approval(world)
    await world.sleep(7200)
    world.delete(PODS, f"{CANARY}-0")
    await world.sleep(1)
    assert world.state == "Loading", world.describe()


async def test_a_pause_is_no_part_of_the_deadline(world: World) -> None:
    await at_rest(world, *STEPS, progressDeadlineSeconds=600, onFailure="Abort")
    world.set_image("v2")
    await world.until_state("Pausing")
    world.patch_rollout({"strategy": {"paused": True}})
    await world.sleep(7200)
    world.delete(PODS, f"{CANARY}-0")
    await world.sleep(1)
    world.patch_rollout({"strategy": {"paused": False}})
    await world.sleep(1)
    assert world.state == "Loading", world.describe()
