"""A Rollout of a StatefulSet: nothing sound is called broken, and what is broken is named in the words of its kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from rollout_lws.api.resources import rollouts
from rollout_lws.cli.doctor.links import Link, Name, State, first
from rollout_lws.objects.resources import PODS, SERVICES, STATEFUL_SETS
from rollout_lws.sandbox.behaviours.faults import PREFIX
from rollout_lws.workload.draining import Draining, taken_out
from tests.cli.doctor.looking import assert_whole, broken, links, told
from tests.cli.doctor.test_doctor_pods import assert_names
from tests.scenarios.kinds import LWS, ON_DELETE, ORDERED, STATEFUL_SET, LeaderWorkerSets
from tests.scenarios.routed import BY_INGRESS, BY_POOLS, BY_ROUTE, SERVICE, Provider, create_provider, routing
from tests.scenarios.scaled import create_autoscaler
from tests.scenarios.stories import CANARY, PROMOTED_STEPS, at_rest, waiting_for_approval
from tests.scenarios.swapped import STEPS as SWAPPED
from tests.scenarios.world import KEYS, NAME, NAMESPACE, World

pytestmark = [pytest.mark.looptime, pytest.mark.rare(3)]

KINDS = (STATEFUL_SET, ORDERED, ON_DELETE)
ABOUT = f"StatefulSet/{NAME}"
TWO: tuple[dict[str, Any], ...] = ({"replicas": 2, "pause": {}}, {"replicas": "100%"})


async def resting(
    world: World, kind: LeaderWorkerSets = STATEFUL_SET, *steps: dict[str, Any], by: Provider | None = None, **more: Any
) -> None:
    world.kind = kind
    if by is not None:
        create_provider(world, by)
        more["canary"] = {"trafficRoutings": routing(by), **more.pop("canary", {})}
    await at_rest(world, *(steps or PROMOTED_STEPS), size=1, **more)


def apply(world: World, tag: str = "v2", **faults: str) -> None:
    """Change the template; ``faults`` are the sandbox's annotations."""
    annotations = {PREFIX + name.replace("_", "-"): text for name, text in faults.items()}
    template = {"metadata": {"annotations": annotations}, "spec": {"containers": world.containers.of(tag)}}
    world.patch_lws(world.kind.versioned(template))


def of(found: tuple[Link, ...], name: Name, about: str = "") -> Link:
    return next(each for each in found if each.name is name and about in ("", each.about))


# What goes well


@pytest.mark.parametrize("by", [BY_ROUTE, BY_POOLS, BY_INGRESS], ids=str)
@pytest.mark.parametrize("kind", KINDS, ids=str)
async def test_at_rest_every_link_is_ok_and_says_what_is_released(
    world: World, kind: LeaderWorkerSets, by: Provider
) -> None:
    await resting(world, kind, by=by)
    found = await links(world)
    assert {each.state for each in found} == {State.OK}, told(found)
    assert of(found, Name.ROLLOUT).found == "for StatefulSet llama, the only one for it"
    assert of(found, Name.WORKLOAD).found.endswith(", 4 groups")
    names = (Name.WORKLOAD, Name.HOLD, Name.LEADER_SET, Name.GROUPS, Name.CONTAINERS)
    assert {of(found, name).about for name in names} == {ABOUT}
    assert of(found, Name.GROUPS).found == "4 of 4 groups are made"
    assert of(found, Name.RELEASE).found == "none is on; the version that the StatefulSet asks for is stable"
    assert "LeaderWorkerSet" not in told(found)


@pytest.mark.parametrize("plan", [{}, {"canary": {"capacity": "InPlace"}}], ids=["canary", "in place"])
@pytest.mark.parametrize("kind", KINDS, ids=str)
async def test_at_no_moment_of_a_release_that_goes_well_is_anything_broken(
    world: World, kind: LeaderWorkerSets, plan: Mapping[str, Any]
) -> None:
    create_autoscaler(world)
    await resting(world, kind, by=BY_ROUTE, **plan)
    await waiting_for_approval(world)
    while world.state != "Healthy":
        await assert_whole(world)
        if world.state == "AwaitingApproval":
            world.approve()
    assert {each.state for each in await links(world)} == {State.OK}


@pytest.mark.parametrize("kind", [STATEFUL_SET, ORDERED], ids=str)
async def test_where_one_that_a_release_has_made_serves_both_are_told_with_their_roles(
    world: World, kind: LeaderWorkerSets
) -> None:
    world.kind = kind
    create_provider(world, BY_ROUTE)
    await at_rest(world, *SWAPPED, size=1, blueGreen={"trafficRoutings": routing(BY_ROUTE), "promotion": "Swap"})
    await waiting_for_approval(world)
    while world.state != "Healthy":
        await assert_whole(world)
        if world.state == "AwaitingApproval":
            world.approve()
    await world.sleep(120)
    found = await links(world)
    assert {each.state for each in found} == {State.OK}, told(found)
    assert of(found, Name.ROLLOUT).found == f"for StatefulSet {NAME}, the only one for it; {CANARY} serves in its place"
    serving, parked = (of(found, Name.WORKLOAD, f"StatefulSet/{name}").found for name in (CANARY, NAME))
    assert serving.endswith(f"4 groups, the active side, in place of {NAME}")
    assert parked.endswith("0 groups, the inactive side, parked")


# Its controller, its hold


async def test_a_controller_that_does_not_act_is_that_of_stateful_sets(world: World) -> None:
    await resting(world)
    world.cluster.runner.stop()
    world.set_image("v2")
    await world.sleep(70)
    found = await broken(world)
    words = "the StatefulSet controller has not acted on its last change: is kube-controller-manager running?"
    assert_names(found, Name.LEADER_SET, ABOUT, words)
    assert found.next == (
        "kubectl get lease -n kube-system kube-controller-manager",
        f"kubectl describe statefulsets.apps {NAME}",
    )


@pytest.mark.parametrize(
    ("strategy", "words"),
    [
        ({"rollingUpdate": {"partition": 0}}, "partition is 0, written by another client; a new version would roll"),
        (
            {"type": "OnDelete", "rollingUpdate": None},
            "the type of its strategy is OnDelete, written by another client; a group whose pod is deleted would get",
        ),
    ],
    ids=["rolls", "on delete"],
)
async def test_a_hold_that_is_not_closed(world: World, strategy: dict[str, Any], words: str) -> None:
    await resting(world)
    world.stop_controller()
    world.patch_lws({"updateStrategy": strategy})
    found = of(await links(world), Name.HOLD)
    assert found.state is State.BROKEN
    assert_names(found, Name.HOLD, ABOUT, words)
    assert found.next == (f"kubectl get statefulsets.apps {NAME} -o jsonpath='{{.spec.updateStrategy}}'",)


async def test_a_workload_that_does_not_exist(world: World) -> None:
    world.kind = STATEFUL_SET
    world.create_rollout(*TWO)
    world.start_controller()
    await world.rest()
    assert_names(await broken(world), Name.WORKLOAD, ABOUT, "does not exist")


async def test_one_that_a_leader_worker_set_has_made_is_not_released(world: World) -> None:
    world.create_workload()
    await world.rest()
    world.kind = STATEFUL_SET
    world.create_rollout(*TWO)
    world.kind = LWS
    world.start_controller()
    await world.rest()
    found = await broken(world)
    assert_names(found, Name.WORKLOAD, ABOUT, f"is part of LeaderWorkerSet {NAME}, which makes and changes it")
    assert found.next == (f"kubectl edit {rollouts()} {NAME}",)


async def test_what_may_not_be_read_is_open(world: World) -> None:
    await resting(world)
    found = await links(world, STATEFUL_SETS.__eq__)
    assert of(found, Name.WORKLOAD).state is State.UNKNOWN
    assert first(found, State.BROKEN) is None, told(found)


# Its pods


async def test_the_pods_of_one_that_begins_at_another_ordinal_are_named_by_it(world: World) -> None:
    await resting(world, ON_DELETE)
    await world.sleep(120)
    world.cluster.runner.stop()
    world.server.delete(PODS, NAMESPACE, f"{NAME}-5", grace_seconds=0)
    assert_names(await broken(world), Name.GROUPS, ABOUT, f"3 of 4 groups are made: pod {NAME}-5 is missing")


async def test_a_pod_that_was_left_without_requests_is_one_of_its_groups(world: World) -> None:
    await resting(world, ON_DELETE)
    world.stop_controller()
    world.patch(PODS, f"{NAME}-5", taken_out(Draining({"app": "llama"}, world.now), KEYS))
    world.cluster.runner.stop()
    found = of(await links(world), Name.READINESS, f"Pod/{NAME}-5")
    assert found.state is State.BROKEN
    assert found.next[0] == f"kubectl label pod {NAME}-5 --overwrite app=llama"


async def test_pods_that_are_rebuilt_again_and_again_are_shown_by_its_selector(world: World) -> None:
    await resting(world, STATEFUL_SET, *TWO)
    world.set_image("v2")
    await world.until_state("AwaitingApproval")
    for _ in range(3):
        world.delete(PODS, f"{CANARY}-0")
        await world.sleep(30)
    found = await broken(world)
    assert_names(found, Name.CONTAINERS, f"StatefulSet/{CANARY}", "was rebuilt 3 times")
    live = world.get(STATEFUL_SETS, CANARY)
    assert live is not None
    selector = ",".join(f"{key}={value}" for key, value in sorted(live["spec"]["selector"]["matchLabels"].items()))
    assert f"{KEYS.made}={CANARY}" in selector
    assert found.next == (f"kubectl rollout-lws abort {NAME}", f"kubectl get pods -l {selector}")
    assert found.by_itself == "the kubelet restarts it; that does not make this version ready"


async def test_a_pod_of_an_earlier_one_of_the_name_is_left_over(world: World) -> None:
    """The garbage collector has missed that its StatefulSet was deleted and made again."""
    await resting(world)
    live = world.get(STATEFUL_SETS, NAME)
    assert live is not None
    world.cluster.runner.stop()
    world.server.delete(STATEFUL_SETS, NAMESPACE, NAME, propagation="Orphan")
    world.patch(STATEFUL_SETS, NAME, {"metadata": {"finalizers": None}})
    world.server.create(STATEFUL_SETS, {**live, "metadata": {"name": NAME, "namespace": NAMESPACE}})
    await world.sleep(60)
    found = of(await links(world), Name.GROUPS)
    assert found.state is State.BROKEN
    assert_names(found, Name.GROUPS, f"Pod/{NAME}-0", f"it belongs to a StatefulSet {NAME} that is gone")
    assert found.next[0] == f"kubectl delete pod {NAME}-0"


# One after the other


async def test_pods_that_wait_for_one_are_no_fault_and_that_one_is(world: World) -> None:
    await resting(world, ORDERED, *TWO)
    apply(world, fail="ImagePullBackOff")
    await world.until(lambda: "ImagePullBackOff" in str(world.get(PODS, f"{CANARY}-0")))
    await world.sleep(120)
    found = await links(world)
    waits = f"pod {CANARY}-1 is not made until pod {CANARY}-0 is ready, as podManagementPolicy is OrderedReady"
    groups = of(found, Name.GROUPS, f"StatefulSet/{CANARY}")
    assert (groups.state, groups.found) == (State.WAITING, f"1 of 2 groups are made: {waits}")
    one = first(found, State.BROKEN)
    assert one is not None, told(found)
    assert_names(one, Name.CONTAINERS, f"Pod/{CANARY}-0", waits)
    # The version that is released would come again.
    assert one.next == (f"kubectl describe pod {CANARY}-0", f"kubectl rollout-lws abort {NAME}")


async def test_at_rest_the_pod_that_others_wait_for_may_be_deleted(world: World) -> None:
    await resting(world, ORDERED, progressDeadlineSeconds=120)
    await world.sleep(600)
    world.cluster.runner.stop()
    said = {"type": "Ready", "status": "False", "lastTransitionTime": f"{world.now:%Y-%m-%dT%H:%M:%SZ}"}
    world.patch(PODS, f"{NAME}-1", {"status": {"conditions": [said]}}, "status")
    for name in (f"{NAME}-2", f"{NAME}-3"):
        world.server.delete(PODS, NAMESPACE, name, grace_seconds=0)
    await assert_whole(world)
    await world.sleep(200)
    found = await broken(world)
    words = f"pod {NAME}-2 and 1 more are not made until pod {NAME}-1 is ready"
    assert_names(found, Name.READINESS, f"Pod/{NAME}-1", words)
    assert found.next[-1] == f"kubectl delete pod {NAME}-1   # it is recreated"


async def test_a_broken_pod_that_keeps_its_own_version_from_being_replaced(world: World) -> None:
    """The known deadlock: without a hold the version before is back in the template, and nothing happens."""
    await resting(world, ORDERED)
    world.judges_words = False
    world.checks.clear()
    world.patch(STATEFUL_SETS, NAME, {"metadata": {"annotations": {KEYS.release_hold: "true"}}})
    await world.rest()
    before = of(await links(world), Name.LEADER_SET).found
    apply(world, fail="ImagePullBackOff")
    await world.until(lambda: "ImagePullBackOff" in str(world.get(PODS, f"{NAME}-3")))
    world.patch_lws({"template": {"metadata": {"annotations": None}}})
    world.set_image("v1")
    await world.sleep(600)
    found = await broken(world)
    words = f"pod {NAME}-3 is not replaced until it is ready, as podManagementPolicy is OrderedReady"
    assert_names(found, Name.CONTAINERS, f"Pod/{NAME}-3", words)
    revision = before.removeprefix("revision ")
    assert found.next[-1] == f"kubectl delete pod {NAME}-3   # it is recreated, at revision {revision}"
    # As it is told.
    world.delete(PODS, f"{NAME}-3")
    await world.sleep(600)
    await assert_whole(world)


@pytest.mark.parametrize("kind", [STATEFUL_SET, ORDERED], ids=str)
async def test_what_a_scaling_waits_for(world: World, kind: LeaderWorkerSets) -> None:
    await resting(world, kind, progressDeadlineSeconds=120)
    world.checks.clear()
    await world.sleep(600)
    world.cluster.runner.stop()
    said = {"type": "Ready", "status": "False", "lastTransitionTime": f"{world.now:%Y-%m-%dT%H:%M:%SZ}"}
    world.patch(PODS, f"{NAME}-0", {"status": {"conditions": [said]}}, "status")
    world.patch_lws({"replicas": 3})
    await world.sleep(200)
    found = of(await links(world), Name.READINESS)
    words = f"pod {NAME}-3 is not deleted until pod {NAME}-0 is ready"
    assert (found.state, words in found.found) == (State.BROKEN, kind is ORDERED)


# What selects its pods, and what gates ask


async def test_a_service_that_selects_nothing(world: World) -> None:
    await resting(world, by=BY_ROUTE)
    world.patch(SERVICES, SERVICE, {"spec": {"selector": {"app": "lama"}}})
    await world.rest()
    found = await broken(world)
    assert_names(found, Name.SERVICE, f"Service/{SERVICE}", "selects no leader of StatefulSet llama (app=lama)")
    assert "worker-index" not in told(await links(world))


async def test_a_port_that_gates_ask_is_to_be_declared_in_its_template(world: World) -> None:
    gate = {"name": "first-token", "metric": {"signal": "TimeToFirstToken", "max": "1s"}}
    await resting(world, STATEFUL_SET, {"replicas": 1, "gates": [gate]}, {"replicas": "100%"})
    found = of(await links(world), Name.GATES)
    assert (found.state, found.about) == (State.WAITING, ABOUT)
    assert f"the template of {NAME} declares no port, so its pods are not asked" in found.found
    assert found.next == (f"kubectl get statefulsets.apps {NAME} -o jsonpath='{{.spec.template}}'",)
