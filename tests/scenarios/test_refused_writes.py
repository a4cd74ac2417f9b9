"""Writes that the API server does not carry out: told with verb, object and way out, tried again, and forgotten."""

from __future__ import annotations

from itertools import pairwise

import pytest

from rollout_lws.api.resources import batch_releases
from rollout_lws.errors import ApiError
from rollout_lws.objects.permissions import SOURCE
from rollout_lws.objects.resources import CONTROLLER_REVISIONS, LEADER_WORKER_SETS, Resource
from rollout_lws.objects.writes import Create, Patch, Write
from rollout_lws.rollout.reasons import EventReason, Reason
from tests.scenarios.names import ROLLOUTS
from tests.scenarios.stories import CANARY, STEPS, assert_clean, at_rest, waiting_for_approval
from tests.scenarios.told import assert_stalled, assert_untouched, tells
from tests.scenarios.world import NAME, World

pytestmark = pytest.mark.looptime


def refuse_creation(world: World, resource: Resource, error: ApiError) -> list[float]:
    """Refuse every creation of a kind; the answer collects the moments of the tries."""
    tries: list[float] = []

    def refuse(write: Write) -> ApiError | None:
        if not (isinstance(write, Create) and write.resource == resource):
            return None
        tries.append(world.server.clock())
        return error

    world.refuse = refuse
    return tries


QUOTA = ApiError(
    403,
    "Forbidden",
    'leaderworkersets.leaderworkerset.x-k8s.io "llama-canary" is forbidden: exceeded quota: models, requested:'
    " count/leaderworkersets.leaderworkerset.x-k8s.io=1, used: 3, limited: 3",
)
OVER_QUOTA = (
    f"the API server refuses to create LeaderWorkerSet llama-canary: {QUOTA.message}. To go on, raise the quota or free"
    " some of it; it is tried again until then"
)


@tells({Reason.WRITE_REFUSED: OVER_QUOTA}, {EventReason.STALLED: OVER_QUOTA})
async def test_a_canary_that_a_quota_refuses_is_told_tried_again_and_goes_on_by_itself(world: World) -> None:
    await at_rest(world)
    before = world.leader_uids()
    tries = refuse_creation(world, LEADER_WORKER_SETS, QUOTA)
    world.set_image("v2")
    await world.until_state("Stalled")
    await world.sleep(600)
    assert_stalled(world, Reason.WRITE_REFUSED, OVER_QUOTA, phase="Progressing")
    assert world.leader_uids() == before
    pauses = [later - earlier for earlier, later in pairwise(tries)]
    assert max(pauses) <= 31
    assert len(tries) < 40, "each try waits longer than the one before"
    assert [event.reason for event in world.events].count(EventReason.STALLED) == 1
    world.refuse = lambda _: None
    await world.until_state("AwaitingApproval")
    world.approve()
    await world.until_state("Healthy")
    await world.rest()
    assert_clean(world, "v2")


REFUSALS: tuple[tuple[str, ApiError, str], ...] = (
    (
        "a missing permission",
        ApiError(403, "Forbidden", 'User "rollout-lws" cannot create resource "leaderworkersets" in the namespace'),
        "allow the controller's account to create leaderworkersets.leaderworkerset.x-k8s.io in namespace default"
        f" ({SOURCE})",
    ),
    (
        "a webhook's verdict",
        ApiError(403, "Forbidden", 'admission webhook "policy.acme.io" denied the request: image is not signed.'),
        "correct what the webhook asks for, or the webhook",
    ),
    (
        "a schema",
        ApiError(422, "Invalid", 'LeaderWorkerSet "llama-canary" is invalid: spec.replicas: Invalid value'),
        "correct what the error names",
    ),
    (
        "a namespace that goes",
        ApiError(403, "Forbidden", "unable to create new content in namespace default because it is being terminated"),
        "the namespace is going, and this Rollout with it",
    ),
)


@pytest.mark.parametrize(("error", "deed"), [case[1:] for case in REFUSALS], ids=[case[0] for case in REFUSALS])
async def test_each_refusal_names_the_deed_that_ends_it(world: World, error: ApiError, deed: str) -> None:
    await at_rest(world)
    refuse_creation(world, LEADER_WORKER_SETS, error)
    world.set_image("v2")
    await world.until_state("Stalled")
    message = (
        f"the API server refuses to create LeaderWorkerSet llama-canary: {error.message.rstrip('.')}. To go on, {deed};"
        " it is tried again until then"
    )
    assert_stalled(world, Reason.WRITE_REFUSED, message, phase="Progressing")


async def test_a_refused_release_can_be_aborted(world: World) -> None:
    await at_rest(world)
    refuse_creation(world, LEADER_WORKER_SETS, QUOTA)
    world.set_image("v2")
    await world.until_state("Stalled")
    world.request("Abort")
    await world.until_state("Aborted")
    await world.rest()
    assert_clean(world, "v1")


async def test_a_refusal_is_forgotten_when_the_write_is_no_longer_wanted(world: World) -> None:
    await at_rest(world)
    refuse_creation(world, LEADER_WORKER_SETS, QUOTA)
    world.set_image("v2")
    await world.until_state("Stalled")
    world.set_image("v1")
    await world.until_state("Healthy")
    await world.rest()
    assert_clean(world, "v1")


async def test_a_hold_that_may_not_be_written_leaves_the_rollout_unadopted_and_says_so(world: World) -> None:
    world.create_workload()
    await world.rest()
    world.create_rollout(*STEPS)
    error = ApiError(403, "Forbidden", 'User "rollout-lws" cannot patch resource "leaderworkersets"')
    world.refuse = lambda write: error if write.resource == LEADER_WORKER_SETS else None
    world.start_controller()
    await world.until_state("Stalled")
    message = (
        f"the API server refuses to patch LeaderWorkerSet llama: {error.message}. To go on, allow the controller's"
        " account to patch leaderworkersets.leaderworkerset.x-k8s.io in namespace default"
        f" ({SOURCE}); it is tried again until then"
    )
    assert_stalled(world, Reason.WRITE_REFUSED, message, phase="Initial")
    assert "stable" not in world.status
    world.refuse = lambda _: None
    await world.until_state("Healthy")
    await world.rest()
    assert_clean(world, "v1")


async def test_a_finalizer_that_may_not_be_written_keeps_everything_untouched(world: World) -> None:
    world.create_workload()
    await world.rest()
    world.create_rollout(*STEPS)
    error = ApiError(403, "Forbidden", 'User "rollout-lws" cannot patch resource "rollouts"')
    world.refuse = lambda write: error if write.resource == world.ROLLOUT and not _status(write) else None
    world.start_controller()
    await world.until_state("Stalled")
    message = (
        f"the API server refuses to patch Rollout llama: {error.message}. To go on, allow the controller's account to"
        f" patch rollouts.rollouts.kruise.io in namespace default ({SOURCE}); it is tried again until then"
    )
    assert_stalled(world, Reason.WRITE_REFUSED, message, phase="Initial")
    assert_untouched(world)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("record", [batch_releases(), ROLLOUTS], ids=["BatchRelease", "status"])
async def test_a_step_that_may_not_be_put_on_record_makes_and_takes_no_groups(world: World, record: Resource) -> None:
    """A step whose groups are made before it is on record would be taken back and begun again with each try."""
    await at_rest(world, {"replicas": 1, "pause": {}}, {"replicas": 2}, {"replicas": "100%"})
    await waiting_for_approval(world)
    denied = ApiError(403, "Forbidden", f'{record} "llama" is forbidden: User "x" cannot patch resource')
    world.approve()
    world.refuse = lambda write: denied if isinstance(write, Patch) and write.resource == record else None
    await world.sleep(60)
    waits = world.server.store.version
    await world.sleep(600)
    assert world.server.store.version == waits, "waiting writes nothing"
    world.refuse = lambda _: None
    await world.until(lambda: world.state == "AwaitingApproval" and world.get_canary_replicas() == 2, "step 2")
    world.approve()
    await world.until_state("Healthy")
    await world.rest()
    assert_clean(world, "v2")


async def test_a_webhook_that_is_down_is_told_only_when_it_stays_down(world: World) -> None:
    await at_rest(world)
    error = ApiError(500, "InternalError", 'failed calling webhook "mleaderworkerset.kb.io": connection refused')
    refuse_creation(world, LEADER_WORKER_SETS, error)
    world.set_image("v2")
    await world.sleep(25)
    assert world.state != "Stalled"
    await world.until_state("Stalled", seconds=60)
    message = (
        f"the API server refuses to create LeaderWorkerSet llama-canary: {error.message}. To go on, bring the"
        " webhook back; it is tried again until then"
    )
    assert_stalled(world, Reason.WRITE_REFUSED, message, phase="Progressing")
    world.refuse = lambda _: None
    await world.until_state("AwaitingApproval")


async def test_an_object_that_stands_in_the_way_unseen_is_named(world: World) -> None:
    await at_rest(world)
    stored = f"{NAME}-{world.status['stable']['templateHash']}"
    world.patch(CONTROLLER_REVISIONS, stored, {"metadata": {"ownerReferences": None}})
    world.delete(world.ROLLOUT, NAME)
    await world.until(lambda: world.get(world.ROLLOUT, NAME) is None)
    await world.rest()
    world.create_rollout(*STEPS)
    await world.until_state("Stalled", seconds=120)
    message = (
        f'the API server refuses to create ControllerRevision {stored}: controllerrevisions.apps "{stored}" already'
        " exists. To go on, delete or rename the existing object if it is not needed; it is tried again until then"
    )
    assert_stalled(world, Reason.WRITE_REFUSED, message, phase="Initial")
    world.delete(CONTROLLER_REVISIONS, stored)
    await world.until_state("Healthy")
    await world.rest()
    assert world.get(LEADER_WORKER_SETS, CANARY) is None


def _status(write: Write) -> bool:
    return isinstance(write, Patch) and write.subresource == "status"


async def test_what_a_release_says_of_its_end_is_told_though_the_next_write_is_refused(world: World) -> None:
    """The status has it already, so that no later decision has."""
    await at_rest(world)
    await waiting_for_approval(world)
    conflicts = [ApiError(409, "Conflict", "it has changed")]
    world.refuse = lambda write: (
        conflicts.pop() if conflicts and isinstance(write, Patch) and write.name == CANARY else None
    )
    world.set_image("v3")
    await world.until(lambda: set(world.groups(CANARY).values()) == {"v3"}, "a canary of the third version")
    assert not conflicts
    assert [event.reason for event in world.events].count("Superseded") == 1
