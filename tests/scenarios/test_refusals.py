"""Every refusal as its user meets it: the whole message, what kubectl and pipelines read, and what was not touched."""

from __future__ import annotations

from typing import Any

import pytest

from rollout_lws.api import crd
from rollout_lws.objects.resources import CUSTOM_RESOURCE_DEFINITIONS, LEADER_WORKER_SETS, Resource
from rollout_lws.rollout.observation import Capabilities
from rollout_lws.rollout.reasons import EventReason, Reason
from tests.scenarios.stories import CANARY, STEPS, at_rest, waiting_for_approval
from tests.scenarios.told import assert_only_held, assert_stalled, assert_untouched, tells
from tests.scenarios.world import NAME, NAMESPACE, World

pytestmark = pytest.mark.looptime

TRAFFIC = (
    "nothing is named that could route it: give the strategy trafficRoutings, or remove it; requests then reach the new"
    " version through your own Service, in proportion to its groups"
)


def without_rules(world: World) -> None:
    """Serve Rollouts by a definition without its rules: clusters hold objects that are older than a rule."""
    manifest = crd.render()[0]
    _drop(manifest, "x-kubernetes-validations")
    world.server.patch(
        CUSTOM_RESOURCE_DEFINITIONS,
        "",
        manifest["metadata"]["name"],
        {"spec": None} | manifest,
        "application/merge-patch+json",
    )


def _drop(node: Any, key: str) -> None:
    if isinstance(node, dict):
        node.pop(key, None)
        for each in node.values():
            _drop(each, key)
    elif isinstance(node, list):
        for each in node:
            _drop(each, key)


async def managed(world: World, *steps: dict[str, Any], **strategy: Any) -> None:
    """LWS and Rollout as applied together; decided until nothing changes any more."""
    world.create_workload()
    await world.rest()
    world.create_rollout(*(steps or STEPS), **strategy)
    world.start_controller()
    await world.rest()


# Cannot manage: nothing is touched

WRONG_KIND = (
    "spec.workloadRef names workload.kubernetes.io/v1alpha1 LeaderWorkerSet; only leaderworkerset.x-k8s.io/v1"
    " LeaderWorkerSet or apps/v1 StatefulSet can be released: correct apiVersion and kind"
)


@tells({Reason.WRONG_WORKLOAD_KIND: WRONG_KIND}, {EventReason.STALLED: WRONG_KIND})
async def test_another_kind_of_workload_is_told_the_right_one(world: World) -> None:
    without_rules(world)
    world.create_workload()
    await world.rest()
    world.create_rollout(*STEPS)
    ref = {"apiVersion": "workload.kubernetes.io/v1alpha1", "kind": "LeaderWorkerSet", "name": NAME}
    world.patch_rollout({"workloadRef": ref})
    world.start_controller()
    await world.rest()
    assert_stalled(world, Reason.WRONG_WORKLOAD_KIND, WRONG_KIND, phase="Initial")
    assert_untouched(world)


SECOND = "LeaderWorkerSet llama is already released by Rollout older, which is older: delete one of the two"


@tells({Reason.SECOND_ROLLOUT: SECOND}, {EventReason.STALLED: SECOND})
async def test_the_younger_of_two_rollouts_is_told_which_one_is_in_charge(world: World) -> None:
    world.create_rollout(*STEPS, name="older")
    await world.sleep(5)
    await managed(world)
    assert_stalled(world, Reason.SECOND_ROLLOUT, SECOND, phase="Initial")
    assert_untouched(world)
    world.delete(world.ROLLOUT, "older")
    await world.until_state("Healthy")


OWNED = (
    "LeaderWorkerSet llama is controlled by InferenceService chat, which would undo a release: release the"
    " InferenceService by its own means, or remove the owner reference"
)


OWNER = Resource("serving.kserve.io", "v1beta1", "InferenceService", "inferenceservices")


def own(world: World) -> None:
    """Let an InferenceService control the LWS, as KServe's controller does."""
    world.define(OWNER)
    made = world.server.create(OWNER, {"metadata": {"name": "chat", "namespace": NAMESPACE}})
    owner = {"apiVersion": OWNER.api_version, "kind": OWNER.kind, "name": "chat", "uid": made["metadata"]["uid"]}
    world.patch(LEADER_WORKER_SETS, NAME, {"metadata": {"ownerReferences": [owner | {"controller": True}]}})


@tells({Reason.WORKLOAD_OWNED: OWNED}, {EventReason.STALLED: OWNED})
async def test_an_lws_of_another_controller_is_left_to_it(world: World) -> None:
    world.create_workload()
    own(world)
    world.create_rollout(*STEPS)
    world.start_controller()
    await world.rest()
    assert_stalled(world, Reason.WORKLOAD_OWNED, OWNED, phase="Initial")
    assert_untouched(world)


async def test_an_lws_that_gets_an_owner_at_rest_is_given_back_with_its_own_strategy(world: World) -> None:
    await at_rest(world)
    before = world.leader_uids()
    own(world)
    await world.rest()
    assert_stalled(world, Reason.WORKLOAD_OWNED, OWNED, phase="Disabled")
    assert world.lws["spec"]["rolloutStrategy"]["rollingUpdateConfiguration"]["partition"] == 0
    assert world.leader_uids() == before
    world.patch(LEADER_WORKER_SETS, NAME, {"metadata": {"ownerReferences": None}})
    await world.until_state("Healthy")
    assert world.condition("Held")["status"] == "True"


async def test_an_lws_that_gets_an_owner_in_mid_release_is_taken_back_to_stable_first(world: World) -> None:
    await at_rest(world)
    before = world.leader_uids()
    await waiting_for_approval(world)
    own(world)
    await world.rest()
    assert_stalled(world, Reason.WORKLOAD_OWNED, OWNED, phase="Disabled")
    assert world.get(LEADER_WORKER_SETS, CANARY) is None
    assert world.leader_uids() == before


HASH = (
    "LeaderWorkerSet llama has groupIdentity Hash, which cannot be held back by a partition: release it as one of a"
    " pair without shift and companions, or make it anew with groupIdentity Ordinal, which cannot be changed later"
)


@tells({Reason.HASH_IDENTITY: HASH})
async def test_groups_without_ordinals_are_refused(world: World) -> None:
    world.upgrade_lws()
    world.create_workload(groupIdentity="Hash")
    world.create_rollout(*STEPS)
    world.start_controller()
    await world.rest()
    assert_stalled(world, Reason.HASH_IDENTITY, HASH, phase="Initial")
    assert_untouched(world)


TOO_OLD = "LeaderWorkerSet's status has no observedGeneration in this cluster: upgrade LeaderWorkerSet to 0.9 or newer"


@tells({Reason.LWS_TOO_OLD: TOO_OLD})
async def test_an_lws_controller_that_does_not_say_what_it_has_seen_is_too_old(world: World) -> None:
    world.view.capabilities = Capabilities(observed_generation=False)
    await managed(world)
    assert_stalled(world, Reason.LWS_TOO_OLD, TOO_OLD, phase="Initial")
    assert_untouched(world)


MISSING = "LeaderWorkerSet llama does not exist in namespace default: create it, or delete this Rollout"


@tells({Reason.WORKLOAD_NOT_FOUND: MISSING}, {EventReason.STALLED: MISSING})
async def test_a_missing_lws_is_told_and_adopted_when_it_comes(world: World) -> None:
    world.create_rollout(*STEPS)
    world.start_controller()
    await world.rest()
    assert_stalled(world, Reason.WORKLOAD_NOT_FOUND, MISSING, phase="Initial")
    assert_untouched(world)
    world.create_workload()
    await world.until_state("Healthy")


LONG = "n" * 64
TOO_LONG = "the Rollout's name has 64 characters: make it anew with a name of at most 63"


@tells({Reason.NAME_TOO_LONG: TOO_LONG})
async def test_a_name_that_no_label_can_carry_is_refused_before_anything_is_held(world: World) -> None:
    without_rules(world)
    world.name = LONG
    world.create_workload()
    world.create_rollout(*STEPS, name=LONG)
    world.start_controller()
    await world.rest()
    assert_stalled(world, Reason.NAME_TOO_LONG, TOO_LONG, phase="Initial")
    assert_untouched(world)


# Cannot release now: only the hold is written

UNSUPPORTED: tuple[tuple[str, dict[str, Any], str], ...] = (
    ("traffic", {"steps": [{"replicas": 1, "traffic": "20%"}]}, f"spec.strategy.canary.steps[0].traffic: {TRAFFIC}"),
    (
        "auto traffic",
        {"steps": [{"replicas": 1, "traffic": "auto"}]},
        f"spec.strategy.canary.steps[0].traffic: {TRAFFIC}",
    ),
    (
        "matches",
        {"steps": [{"replicas": 1}, {"replicas": 2, "matches": [{"headers": [{"name": "x-canary", "value": "1"}]}]}]},
        f"spec.strategy.canary.steps[1].matches: {TRAFFIC}",
    ),
    (
        "header modifier",
        {"steps": [{"replicas": 1, "requestHeaderModifier": {"remove": ["x-a"]}}]},
        f"spec.strategy.canary.steps[0].requestHeaderModifier: {TRAFFIC}",
    ),
    (
        "custom routers",
        {
            "trafficRoutings": [
                {"service": "llama", "customNetworkRefs": [{"apiVersion": "v1", "kind": "R", "name": "r"}]}
            ]
        },
        "spec.strategy.canary.trafficRoutings[0].customNetworkRefs: this controller runs no scripts: start it with"
        " --custom-network-scripts, or name a route in gateway, istio or ingress",
    ),
    (
        "single Service",
        {"disableGenerateCanaryService": True},
        "spec.strategy.canary.disableGenerateCanaryService: the single-Service mode is not built yet: remove it",
    ),
    (
        "labels for a second LWS that is not made",
        {"capacity": "InPlace", "patchPodTemplateMetadata": {"labels": {"a": "b"}}},
        "spec.strategy.canary.patchPodTemplateMetadata: it is for the pods of a second workload, and capacity"
        " InPlace makes none: remove it, or use capacity ExtraWorkload",
    ),
    (
        "decreasing steps",
        {"steps": [{"replicas": 2}, {"replicas": 1}]},
        "spec.strategy.canary.steps[1].replicas: 1 is less than the step before (2): raise it, steps must not decrease",
    ),
    (
        "decreasing percentages",
        {"steps": [{"replicas": "50%"}, {"replicas": "25%"}]},
        "spec.strategy.canary.steps[1].replicas: 25% is less than the step before (50%): raise it, steps must not"
        " decrease",
    ),
    (
        "several problems",
        {
            "steps": [{"replicas": 2, "traffic": "5%"}, {"replicas": 1}],
            "capacity": "Surge",
            "patchPodTemplateMetadata": {"labels": {"a": "b"}},
        },
        f"spec.strategy.canary.steps[0].traffic: {TRAFFIC} (and 2 more)",
    ),
)


@pytest.mark.parametrize(
    ("canary", "message"), [case[1:] for case in UNSUPPORTED], ids=[case[0] for case in UNSUPPORTED]
)
async def test_what_is_not_built_is_refused_and_released_once_it_is_removed(
    world: World, canary: dict[str, Any], message: str
) -> None:
    world.create_workload()
    await world.rest()
    before = world.leader_uids()
    world.create_rollout(*STEPS, canary=canary)
    world.start_controller()
    await world.rest()
    assert_stalled(world, Reason.INVALID_SPEC, message, phase="Healthy")
    assert_only_held(world, before)
    world.set_image("v2")
    await world.rest()
    assert_stalled(world, Reason.INVALID_SPEC, message, phase="Healthy")
    assert_only_held(world, before)
    assert [(each.about, each.note) for each in world.events if each.reason == EventReason.RELEASE_REFUSED] == [
        ("LeaderWorkerSet", f"the new version waits: {message}")
    ]
    world.patch_rollout({"strategy": {"canary": dict.fromkeys(canary) | {"steps": list(STEPS)}}})
    await world.until_state("AwaitingApproval")


UNBUILT = "spec.strategy.blueGreen.disableGenerateCanaryService: the single-Service mode is not built yet: remove it"


@tells({Reason.INVALID_SPEC: UNBUILT}, {EventReason.STALLED: UNBUILT})
async def test_what_is_not_built_is_refused(world: World) -> None:
    world.create_workload()
    await world.rest()
    before = world.leader_uids()
    world.create_rollout(*STEPS)
    world.patch_rollout(
        {"strategy": {"canary": None, "blueGreen": {"steps": [STEPS[-1]], "disableGenerateCanaryService": True}}}
    )
    world.start_controller()
    await world.rest()
    assert_stalled(world, Reason.INVALID_SPEC, UNBUILT, phase="Healthy")
    assert_only_held(world, before)


OLDER_SPECS: tuple[tuple[str, dict[str, Any], str], ...] = (
    (
        "no strategy",
        {"canary": None},
        "spec.strategy: exactly one of canary and blueGreen must be set: give the canary one with its steps",
    ),
    (
        "no groups",
        {"canary": {"steps": [{"replicas": 0}]}},
        "spec.strategy.canary.steps[0].replicas: 0 is too small: give at least 1 group",
    ),
    (
        "no percent",
        {"canary": {"steps": [{"replicas": "0%"}]}},
        "spec.strategy.canary.steps[0].replicas: 0% is too small: give at least 1 group",
    ),
    (
        "contradiction",
        {"canary": {"capacity": "Surge", "enableExtraWorkloadForCanary": True}},
        "spec.strategy.canary.capacity: capacity Surge contradicts enableExtraWorkloadForCanary true: remove the"
        " latter",
    ),
)


@pytest.mark.parametrize(
    ("strategy", "message"), [case[1:] for case in OLDER_SPECS], ids=[case[0] for case in OLDER_SPECS]
)
async def test_a_spec_older_than_a_rule_is_refused_like_a_new_one(
    world: World, strategy: dict[str, Any], message: str
) -> None:
    without_rules(world)
    world.create_workload()
    await world.rest()
    before = world.leader_uids()
    world.create_rollout(*STEPS)
    world.patch_rollout({"strategy": strategy})
    world.start_controller()
    await world.rest()
    assert_stalled(world, Reason.INVALID_SPEC, message, phase="Healthy")
    assert_only_held(world, before)
