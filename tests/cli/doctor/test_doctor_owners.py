"""The links before the groups: Rollout, controller, LeaderWorkerSet, its hold, what is remembered; and the last one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from rollout_lws.cli.doctor.links import Name, State, first
from rollout_lws.objects.resources import CONTROLLER_REVISIONS, LEADER_WORKER_SETS, STATEFUL_SETS
from rollout_lws.rollout.reasons import Reason
from rollout_lws.sandbox.patching.patches import APPLY_PATCH
from tests.cli.doctor.looking import assert_whole, broken, links, told
from tests.cli.doctor.test_doctor_pods import assert_names
from tests.scenarios import disaggregated as ds
from tests.scenarios.failures import apply
from tests.scenarios.insisting import Insisting
from tests.scenarios.one_workload import PLAIN, SURGE
from tests.scenarios.stories import CANARY, STEPS, at_rest, waiting_for_approval
from tests.scenarios.test_disaggregated_sets import ALONE, DECODE
from tests.scenarios.test_kueue_surge import queued
from tests.scenarios.test_refusals import OWNED, SECOND, WRONG_KIND, managed, own, without_rules
from tests.scenarios.world import KEYS, NAME, NAMESPACE, World

pytestmark = pytest.mark.looptime


async def wrong_kind(world: World) -> None:
    without_rules(world)
    world.create_workload()
    world.create_rollout(*STEPS)
    world.patch_rollout({"workloadRef": {"apiVersion": "workload.kubernetes.io/v1alpha1", "name": NAME}})


async def second(world: World) -> None:
    world.create_rollout(*STEPS, name="older")
    await world.sleep(5)
    await managed(world)


async def invalid(world: World) -> None:
    await at_rest(world)
    world.patch_rollout({"strategy": {"canary": {"disableGenerateCanaryService": True}}})


async def nobody_ever(world: World) -> None:
    world.create_workload()
    world.create_rollout(*STEPS)
    await world.sleep(15)


async def nobody_any_more(world: World) -> None:
    await at_rest(world)
    world.stop_controller()
    world.patch_rollout({"strategy": {"minReadySeconds": 1}})
    await world.sleep(15)


async def nobody_approves(world: World) -> None:
    await at_rest(world)
    await world.sleep(20)
    await waiting_for_approval(world)
    world.stop_controller()
    world.approve()


async def nobody_answers(world: World) -> None:
    await at_rest(world)
    await waiting_for_approval(world)
    world.stop_controller()
    world.request("Abort", by="ann")
    await world.sleep(15)


async def nobody_releases(world: World) -> None:
    await at_rest(world)
    world.stop_controller()
    world.set_image("v2")
    await world.sleep(5)


async def no_workload(world: World) -> None:
    world.create_rollout(*STEPS)
    world.start_controller()
    await world.rest()


async def deleted_workload(world: World) -> None:
    await at_rest(world)
    world.delete(LEADER_WORKER_SETS, NAME)
    await world.rest()


async def owned(world: World) -> None:
    await at_rest(world)
    own(world)
    await world.rest()


async def open_hold(world: World) -> None:
    await at_rest(world)
    world.stop_controller()
    world.patch_lws({"rolloutStrategy": {"rollingUpdateConfiguration": {"partition": 0}}})


async def fought_hold(world: World) -> None:
    await at_rest(world)
    Insisting(world)
    await world.until_state("Stalled")


async def no_history(world: World) -> None:
    await at_rest(world)
    for each in world.server.list(CONTROLLER_REVISIONS, NAMESPACE, label_selector=KEYS.history):
        world.delete(CONTROLLER_REVISIONS, each["metadata"]["name"])


async def silent_lws(world: World) -> None:
    await at_rest(world)
    world.cluster.runner.stop()
    world.set_image("v2")
    await world.sleep(70)


async def silent_canary(world: World) -> None:
    await at_rest(world)
    world.set_image("v2")
    await world.until(lambda: world.get(LEADER_WORKER_SETS, CANARY) is not None)
    world.cluster.runner.stop()
    await world.sleep(70)


async def of_a_disaggregated_set(world: World) -> None:
    ds.create(world)
    await world.until(lambda: ds.is_whole(world, NAME))
    world.create_rollout(*STEPS, workload=DECODE)
    world.start_controller()


async def no_leader_set(world: World) -> None:
    await at_rest(world)
    world.cluster.runner.stop()
    world.server.delete(STATEFUL_SETS, NAMESPACE, NAME, propagation="Orphan")
    world.patch(STATEFUL_SETS, NAME, {"metadata": {"finalizers": None}})
    await world.sleep(70)


async def silent_sets(world: World) -> None:
    await at_rest(world)
    await world.sleep(70)
    world.cluster.runner.stop()
    world.patch(STATEFUL_SETS, NAME, {"spec": {"minReadySeconds": 1}})


async def aborted(world: World) -> None:
    await at_rest(world)
    await waiting_for_approval(world)
    world.request("Abort")
    await world.until_state("Aborted")
    await world.rest()


async def not_approved(world: World) -> None:
    await at_rest(world, {"replicas": 1, "pause": {"approvalTimeoutSeconds": 60}}, {"replicas": "100%"})
    await waiting_for_approval(world)
    await world.until_state("Stalled")


async def to_zero(world: World) -> None:
    await at_rest(world)
    apply(world)
    await world.until_state("AwaitingApproval")
    world.patch_lws({"replicas": 0})
    await world.rest()


_CASES: tuple[tuple[Callable[[World], Awaitable[None]], Name, str, str], ...] = (
    (wrong_kind, Name.ROLLOUT, f"Rollout/{NAME}", WRONG_KIND),
    (second, Name.ROLLOUT, f"Rollout/{NAME}", SECOND),
    (invalid, Name.ROLLOUT, f"Rollout/{NAME}", "disableGenerateCanaryService"),
    (nobody_ever, Name.CONTROLLER, f"Rollout/{NAME}", "no controller has seen this Rollout: is a controller running"),
    (nobody_any_more, Name.CONTROLLER, f"Rollout/{NAME}", "its generation 2 has not been seen (last seen: 1)"),
    (nobody_approves, Name.CONTROLLER, f"Rollout/{NAME}", "no controller makes the pending write"),
    (nobody_answers, Name.CONTROLLER, f"Rollout/{NAME}", "Abort by ann has not been answered"),
    (nobody_releases, Name.CONTROLLER, f"Rollout/{NAME}", "no controller makes the pending write"),
    (no_workload, Name.WORKLOAD, f"LeaderWorkerSet/{NAME}", "does not exist"),
    (deleted_workload, Name.WORKLOAD, f"LeaderWorkerSet/{NAME}", "does not exist"),
    (owned, Name.WORKLOAD, f"LeaderWorkerSet/{NAME}", OWNED),
    (of_a_disaggregated_set, Name.WORKLOAD, f"LeaderWorkerSet/{DECODE}", ALONE),
    (fought_hold, Name.HOLD, f"LeaderWorkerSet/{NAME}", "resets the partition of LeaderWorkerSet"),
    (no_history, Name.HISTORY, f"Rollout/{NAME}", "is not stored: its ControllerRevision is gone"),
    (
        silent_lws,
        Name.LEADER_SET,
        f"StatefulSet/{NAME}",
        "the LeaderWorkerSet controller has seen generation 2 of llama, not 3",
    ),
    (silent_canary, Name.LEADER_SET, f"StatefulSet/{CANARY}", "does not exist"),
    (no_leader_set, Name.LEADER_SET, f"StatefulSet/{NAME}", "does not exist"),
    (silent_sets, Name.LEADER_SET, f"StatefulSet/{NAME}", "is kube-controller-manager running?"),
    (aborted, Name.RELEASE, f"Rollout/{NAME}", "was aborted"),
    (not_approved, Name.RELEASE, f"Rollout/{NAME}", "step 1 was not approved within 60 s"),
)


async def test_a_capacity_that_is_refused_is_fixed_in_the_rollout(world: World) -> None:
    await at_rest(world, *PLAIN, canary=dict(SURGE.words))
    queued(world)
    world.set_image("v2")
    await world.rest()
    found = await links(world)
    refused, last = first(found, State.BROKEN), found[-1]
    assert refused is not None, told(found)
    assert_names(refused, Name.WORKLOAD, f"LeaderWorkerSet/{NAME}", "use capacity InPlace or ExtraWorkload")
    assert refused.next == (f"kubectl edit rollouts.rollouts.kruise.io {NAME}",)
    assert (last.name, last.state) == (Name.RELEASE, State.WAITING), told(found)
    assert last.found.startswith("none is on: the LeaderWorkerSet's new version waits"), told(found)


async def test_a_surge_of_its_own_is_cautioned_about_where_kueue_queues_the_lws(world: World) -> None:
    world.create_workload(rolloutStrategy={"rollingUpdateConfiguration": {"maxSurge": 1}})
    world.create_rollout(*PLAIN)
    world.start_controller()
    await world.until_state("Healthy")
    assert [each.state for each in await links(world) if each.state is not State.OK] == []
    queued(world)
    found = first(await links(world), State.WAITING)
    assert found is not None
    words = (
        "its own maxSurge of 1 comes back when the Rollout leaves, and under Kueue (gpus) a rolling update with a surge"
    )
    assert_names(found, Name.RELEASE, f"LeaderWorkerSet/{NAME}", words)
    assert found.next == (f"kubectl apply --server-side -f {NAME}.yaml   # its manifest, with maxSurge: 0",)
    head = {"apiVersion": LEADER_WORKER_SETS.api_version, "kind": LEADER_WORKER_SETS.kind, "metadata": {"name": NAME}}
    manifest = {**head, "spec": {"rolloutStrategy": {"rollingUpdateConfiguration": {"maxSurge": 0}}}}
    world.server.patch(LEADER_WORKER_SETS, NAMESPACE, NAME, manifest, APPLY_PATCH, field_manager="kubectl")
    await world.rest()
    assert first(await links(world), State.WAITING) is None


@pytest.mark.parametrize(("happens", "name", "about", "words"), _CASES, ids=lambda each: getattr(each, "__name__", ""))
async def test_the_first_broken_link_is_named(
    world: World, happens: Callable[[World], Awaitable[None]], name: Name, about: str, words: str
) -> None:
    await happens(world)
    assert_names(await broken(world), name, about, words)


async def test_after_an_abort_nobody_is_alarmed_for_nothing(world: World) -> None:
    await aborted(world)
    found = await broken(world)
    assert found.by_itself == "nothing: the stable version serves on"


async def test_a_step_that_nobody_approved_in_time_names_the_commands_that_go_on(world: World) -> None:
    await not_approved(world)
    found = await broken(world)
    assert found.by_itself == "nothing but what the cause says"
    assert found.next == (f"kubectl rollout-lws promote {NAME}", f"kubectl rollout-lws abort {NAME}")


async def test_a_hold_that_is_not_closed_is_named_after_who_does_not_close_it(world: World) -> None:
    await open_hold(world)
    controller, hold = [each for each in await links(world) if each.state is State.BROKEN]
    assert controller.name is Name.CONTROLLER
    assert_names(hold, Name.HOLD, f"LeaderWorkerSet/{NAME}", "the hold is not closed: partition is 0")


async def test_a_hold_that_was_released_on_purpose_is_no_fault(world: World) -> None:
    await at_rest(world)
    world.patch(LEADER_WORKER_SETS, NAME, {"metadata": {"annotations": {KEYS.release_hold: "true"}}})
    await world.rest()
    await assert_whole(world)
    found = first(await links(world), State.WAITING)
    assert found is not None
    assert (found.name, found.next) == (
        Name.HOLD,
        (f"kubectl annotate leaderworkersets.leaderworkerset.x-k8s.io {NAME} {KEYS.release_hold}-",),
    )


@pytest.mark.parametrize("spec", [{"disabled": True}, {"strategy": {"paused": True}}], ids=["disabled", "paused"])
async def test_what_somebody_asked_for_is_no_fault(world: World, spec: dict[str, bool]) -> None:
    await at_rest(world)
    world.patch_rollout(spec)
    await world.rest()
    found = await links(world)
    waits = first(found, State.WAITING)
    assert waits is not None, told(found)
    assert waits.name is Name.ROLLOUT
    await assert_whole(world)


async def test_a_controller_gets_a_moment_for_what_it_has_to_do(world: World) -> None:
    await at_rest(world)
    world.set_image("v2")
    await assert_whole(world)


def test_every_reason_for_which_a_rollout_is_stalled_has_its_place() -> None:
    from rollout_lws.cli.doctor.complaint import PLACE

    going = list(Reason)[: list(Reason).index(Reason.ABORTED)]
    assert set(Reason) - set(PLACE) == set(going)
