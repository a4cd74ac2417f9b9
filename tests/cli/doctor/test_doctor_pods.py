"""Groups and pods that do not come, of either version: the first broken link, and the object that shows it."""

from __future__ import annotations

from typing import Any

import pytest

from rollout_lws.cli.doctor.chain import chain
from rollout_lws.cli.doctor.checks.group_troubles import ROOM_SECONDS
from rollout_lws.cli.doctor.checks.groups import COLLECTED_SECONDS
from rollout_lws.cli.doctor.command import SECOND_LOOK
from rollout_lws.cli.doctor.links import Link, Name, State, first
from rollout_lws.errors import ApiError
from rollout_lws.objects.resources import PODS, STATEFUL_SETS
from rollout_lws.sandbox.apiserver import Operation
from tests.cli.doctor.looking import assert_whole, broken, links, look, told
from tests.cli.doctor.styles import EVERY_STYLE, STYLES
from tests.scenarios.failures import apply, cordon, say, waiting
from tests.scenarios.kueue import GATED, condition, install, queue
from tests.scenarios.stories import CANARY, PROMOTED_STEPS, STEPS, at_rest
from tests.scenarios.world import NAME, NAMESPACE, World

pytestmark = pytest.mark.looptime

LEADER, WORKER = f"{CANARY}-0", f"{CANARY}-0-1"


def assert_names(found: Link, name: Name, about: str, words: str) -> None:
    assert (found.name, found.about) == (name, about), found
    assert words in found.found, found
    assert found.by_itself, found
    assert found.affected, found
    assert found.next, found


_FAULTS: dict[str, tuple[dict[str, str], Name, str, str]] = {
    "image": (
        {"fail": "ImagePullBackOff"},
        Name.CONTAINERS,
        f"Pod/{LEADER}",
        f"pod {LEADER} (leader) container vllm: ImagePullBackOff",
    ),
    "image of the worker": (
        {"fail": "ImagePullBackOff", "fail-on": "worker"},
        Name.CONTAINERS,
        f"Pod/{WORKER}",
        f"pod {WORKER} (worker) container vllm: ImagePullBackOff",
    ),
    "no room": (
        {"fail": "Unschedulable"},
        Name.SCHEDULING,
        f"Pod/{LEADER}",
        f"pod {LEADER} (leader) is not scheduled: ",
    ),
    "no room for the worker": (
        {"fail": "Unschedulable", "fail-on": "worker"},
        Name.SCHEDULING,
        f"Pod/{WORKER}",
        f"pod {WORKER} (worker) is not scheduled: ",
    ),
    "quota": ({"fail": "FailedCreate"}, Name.GROUPS, f"StatefulSet/{CANARY}", "exceeded quota"),
    "quota of the workers": (
        {"fail": "FailedCreate", "fail-on": "worker"},
        Name.GROUPS,
        f"StatefulSet/{LEADER}",
        "exceeded quota",
    ),
    "never ready": ({"fail": "NeverReady"}, Name.READINESS, f"Pod/{LEADER}", f"pod {LEADER} (leader) is not ready"),
    "worker never ready": (
        {"fail": "NeverReady", "fail-on": "worker"},
        Name.READINESS,
        f"Pod/{WORKER}",
        f"pod {WORKER} (worker) is not ready",
    ),
    "killed for memory": (
        {"fail": "OOMKilled"},
        Name.CONTAINERS,
        f"LeaderWorkerSet/{CANARY}",
        "ended last with OOMKilled (exit 137)",
    ),
    "crash loop of the worker": (
        {"fail": "CrashLoopBackOff", "fail-on": "worker"},
        Name.CONTAINERS,
        f"LeaderWorkerSet/{CANARY}",
        "container vllm ended last with Error (exit 1)",
    ),
}
#: Groups that are rebuilt again and again make many events in little time.
_LONG = ("killed for memory",)


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    "case", [pytest.param(each, marks=pytest.mark.long) if each in _LONG else each for each in _FAULTS]
)
async def test_a_group_of_the_new_version_that_does_not_come(world: World, case: str) -> None:
    faults, name, about, words = _FAULTS[case]
    await at_rest(world, *STEPS, progressDeadlineSeconds=120)
    apply(world, faults=faults)
    await world.until(lambda: world.state in ("Stalled", "WaitingForQuota", "WaitingForAccelerators"))
    await world.sleep(5)
    if world.state != "Stalled":
        await waited_for(world, name, about, words)
    found = await broken(world)
    assert_names(found, name, about, words)
    assert found.affected == "no user yet: 4 of 4 groups of llama are ready"


async def waited_for(world: World, name: Name, about: str, words: str, seconds: float = ROOM_SECONDS) -> None:
    """Room is waited for as long as may be, and then it is somebody's to look at."""
    await assert_whole(world)
    waits = next(each for each in await links(world) if each.name is name and each.state is not State.OK)
    assert_names(waits, name, about, words)
    await world.sleep(seconds)


_SAID: dict[str, tuple[str, dict[str, Any], Name, str]] = {
    "configuration": (
        WORKER,
        {"containerStatuses": waiting("CreateContainerConfigError", 'secret "hf-token" not found')},
        Name.CONTAINERS,
        'CreateContainerConfigError: secret "hf-token" not found',
    ),
    "init container": (
        LEADER,
        {"initContainerStatuses": [{"name": "fetch", "state": {"terminated": {"reason": "Error", "exitCode": 2}}}]},
        Name.CONTAINERS,
        "container fetch: Error (exit 2)",
    ),
    "evicted": (LEADER, {"phase": "Failed", "reason": "Evicted"}, Name.CONTAINERS, "failed: Evicted"),
    "taints": (
        LEADER,
        {
            "conditions": [
                {
                    "type": "PodScheduled",
                    "status": "False",
                    "reason": "Unschedulable",
                    "message": "0/2 nodes are available: 2 node(s) had untolerated taint {gpu: true}",
                }
            ]
        },
        Name.SCHEDULING,
        "untolerated taint",
    ),
    "volumes": (
        WORKER,
        {
            "conditions": [
                {
                    "type": "PodScheduled",
                    "status": "False",
                    "reason": "Unschedulable",
                    "message": "0/2 nodes are available: pod has unbound immediate PersistentVolumeClaims",
                }
            ]
        },
        Name.SCHEDULING,
        "unbound immediate PersistentVolumeClaims",
    ),
}


@pytest.mark.parametrize("case", _SAID)
async def test_what_the_kubelet_or_the_scheduler_says_of_a_pod(world: World, case: str) -> None:
    pod, status, name, words = _SAID[case]
    await at_rest(world, *STEPS, progressDeadlineSeconds=120)
    world.set_image("bad-v2")
    await say(world, pod, **status)
    if name is Name.SCHEDULING:
        await waited_for(world, name, f"Pod/{pod}", words)
    assert_names(await broken(world), name, f"Pod/{pod}", words)


async def test_the_log_to_read_is_that_of_the_container_before(world: World) -> None:
    await at_rest(world, *STEPS)
    world.set_image("bad-v2")
    ended = {"reason": "OOMKilled", "exitCode": 137}
    await say(world, LEADER, containerStatuses=waiting("CrashLoopBackOff", "back-off 5m0s", ended=ended))
    assert (await broken(world)).next[0] == f"kubectl logs {LEADER} -c vllm --previous"


async def test_nodes_that_are_cordoned(world: World) -> None:
    await at_rest(world, *STEPS, capacityDeadlineSeconds=60)
    cordon(world)
    apply(world)
    await world.until(lambda: world.get(PODS, LEADER) is not None)
    await world.sleep(5)
    await waited_for(world, Name.SCHEDULING, f"Pod/{LEADER}", "is not scheduled", 60)
    assert_names(await broken(world), Name.SCHEDULING, f"Pod/{LEADER}", "is not scheduled")


_PODS = {"InPlace": f"{NAME}-3", "Surge": f"{NAME}-4", "blue-green": LEADER}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("style", _PODS)
async def test_in_every_style_the_pod_of_the_new_version_is_named(world: World, style: str) -> None:
    await at_rest(world, *STEPS, **STYLES[style])
    apply(world, faults={"fail": "ImagePullBackOff"})
    await world.until(lambda: "ImagePullBackOff" in str(world.get(PODS, _PODS[style])))
    assert_names(await broken(world), Name.CONTAINERS, f"Pod/{_PODS[style]}", "ImagePullBackOff")


@pytest.mark.parametrize("style", EVERY_STYLE)
async def test_in_every_style_a_promotion_that_stands_still_is_named(world: World, style: str) -> None:
    await at_rest(world, *PROMOTED_STEPS, **STYLES[style])
    world.set_image("v2")
    await world.until_state("AwaitingApproval")
    cordon(world)
    world.request("PromoteFull")
    await world.until(lambda: any(told.endswith("!") for lws in (NAME, CANARY) for told in world.groups(lws).values()))
    await world.sleep(ROOM_SECONDS + 5)
    found = await broken(world)
    assert_names(found, Name.SCHEDULING, found.about, "is not scheduled")
    assert found.about.startswith(f"Pod/{NAME}-")


# At rest, and the LWS's own groups


async def test_a_group_of_the_version_that_serves_concerns_its_users(world: World) -> None:
    await at_rest(world)
    world.cluster.runner.stop()
    unready = {"conditions": [{"type": "Ready", "status": "False"}]}
    world.patch(PODS, f"{NAME}-2", {"status": {"containerStatuses": waiting("CrashLoopBackOff"), **unready}}, "status")
    found = await broken(world)
    assert_names(found, Name.CONTAINERS, f"Pod/{NAME}-2", "CrashLoopBackOff")


def unready(world: World, pod: str) -> None:
    """From now on, as the kubelet would say."""
    said = {"type": "Ready", "status": "False", "lastTransitionTime": f"{world.now:%Y-%m-%dT%H:%M:%SZ}"}
    world.patch(PODS, pod, {"status": {"conditions": [said]}}, "status")


@pytest.mark.parametrize("pod", [f"{NAME}-2", f"{NAME}-2-1"])
async def test_a_pod_that_was_ready_for_long_has_its_time_to_become_so_again(world: World, pod: str) -> None:
    await at_rest(world, *STEPS, progressDeadlineSeconds=120)
    await world.sleep(3600)
    world.cluster.runner.stop()
    unready(world, pod)
    if pod != f"{NAME}-2":
        world.patch(STATEFUL_SETS, f"{NAME}-2", {"status": {"availableReplicas": 0}}, "status")
    await assert_whole(world)
    await world.sleep(120)
    assert_names(await broken(world), Name.READINESS, f"Pod/{pod}", " for 12")


async def test_a_pod_that_is_missing_in_one_look_only_is_on_its_way(world: World) -> None:
    await at_rest(world)
    await world.sleep(120)
    before = look(world)
    await world.sleep(SECOND_LOOK)
    world.cluster.runner.stop()
    for name in (f"{NAME}-1", f"{NAME}-1-1"):
        world.server.delete(PODS, NAMESPACE, name, grace_seconds=0)
    found = chain(look(world, before=before))
    assert first(found, State.BROKEN) is None, told(found)
    assert first(chain(look(world, before=look(world))), State.BROKEN) is not None


async def test_a_group_that_nobody_makes(world: World) -> None:
    await at_rest(world)
    await world.sleep(120)
    world.cluster.runner.stop()
    for name in (f"{NAME}-1", f"{NAME}-1-1"):
        world.server.delete(PODS, NAMESPACE, name, grace_seconds=0)
    found = await broken(world)
    assert_names(found, Name.GROUPS, f"StatefulSet/{NAME}", f"pod {NAME}-1 is missing")
    assert found.affected == "users, as far as the other groups cannot carry the load: 3 of 4 groups of llama are ready"


async def test_a_pod_that_may_not_be_made(world: World) -> None:
    await at_rest(world)

    def refuse(operation: Operation) -> dict[str, Any]:
        if (operation.resource, operation.verb) == (PODS, "create"):
            raise ApiError(403, "Forbidden", 'admission webhook "policy" denied the request: no root')
        return operation.object

    world.server.admission.append(refuse)
    apply(world)
    await world.sleep(10)
    assert_names(await broken(world), Name.GROUPS, f"StatefulSet/{CANARY}", "denied the request: no root")


async def test_a_leader_that_never_gets_its_workers(world: World) -> None:
    await at_rest(world)

    def refuse(operation: Operation) -> dict[str, Any]:
        if operation.resource == STATEFUL_SETS and operation.verb == "create" and LEADER in str(operation.object):
            raise ApiError(403, "Forbidden", "exceeded quota: objects")
        return operation.object

    world.server.admission.append(refuse)
    apply(world)
    await world.sleep(10)
    words = f"pod {LEADER} (leader) is ready, but its worker StatefulSet does not exist"
    assert_names(await broken(world), Name.GROUPS, f"Pod/{LEADER}", words)


# What the garbage collector has missed


def make_anew(world: World, name: str) -> None:
    """A StatefulSet was deleted and made again under its name; who collects garbage heard of neither."""
    found = world.get(STATEFUL_SETS, name)
    assert found is not None
    world.cluster.runner.stop()
    world.server.delete(STATEFUL_SETS, NAMESPACE, name, propagation="Orphan")
    gone = world.get(STATEFUL_SETS, name)
    if gone is not None:
        world.patch(STATEFUL_SETS, name, {"metadata": {"finalizers": None}})
    meta = {key: value for key, value in found["metadata"].items() if key in ("name", "namespace", "labels")}
    owners = found["metadata"]["ownerReferences"]
    world.server.create(STATEFUL_SETS, {**found, "metadata": {**meta, "ownerReferences": owners}})


async def test_a_worker_of_a_stateful_set_that_was_made_anew_is_named_with_what_to_type(world: World) -> None:
    await at_rest(world)
    make_anew(world, f"{NAME}-1")
    soon = first(await links(world), State.BROKEN)
    assert soon is None or soon.name is not Name.GROUPS, "the garbage collector gets its time"
    await world.sleep(COLLECTED_SECONDS)
    found = next(each for each in await links(world) if each.name is Name.GROUPS)
    assert found.state is State.BROKEN
    assert_names(found, Name.GROUPS, f"Pod/{NAME}-1-1", f"it belongs to a StatefulSet {NAME}-1 that is gone")
    assert found.next == (f"kubectl delete pod {NAME}-1-1",)
    assert "kube-controller-manager restarts" in found.by_itself


# Kueue


async def test_a_queue_is_waited_for_and_named(world: World) -> None:
    install(world)
    await at_rest(world)
    apply(world, **GATED)
    await world.until(lambda: world.get(PODS, LEADER) is not None)
    queue(world, conditions=[condition("QuotaReserved", "False", "Pending", "insufficient quota for nvidia.com/gpu")])
    await world.sleep(5)
    await assert_whole(world)
    found = await links(world)
    waits = first(found, State.WAITING)
    assert waits is not None, told(found)
    assert_names(waits, Name.SCHEDULING, f"Pod/{LEADER}", "insufficient quota for nvidia.com/gpu")
    assert waits.next[0] == "kubectl get workloads.kueue.x-k8s.io"


async def test_what_a_queue_will_never_admit_is_broken(world: World) -> None:
    install(world)
    await at_rest(world)
    apply(world, **GATED)
    await world.until(lambda: world.get(PODS, LEADER) is not None)
    queue(world, conditions=[condition("QuotaReserved", "False", "ExceedsMaxQuota", "too large")])
    await world.sleep(5)
    assert_names(await broken(world), Name.SCHEDULING, f"Pod/{LEADER}", "waiting will not fix that")


# Pods that go


async def test_a_pod_that_is_ending_on_a_node_that_is_gone(world: World) -> None:
    await at_rest(world)
    world.cluster.runner.stop()
    world.server.delete(PODS, NAMESPACE, f"{NAME}-0-1", grace_seconds=30)
    await world.sleep(20)
    names = {each.name for each in await links(world) if each.state is State.BROKEN}
    assert Name.READINESS not in names
    await world.sleep(80)
    found = next(each for each in await links(world) if each.name is Name.READINESS)
    assert found.state is State.BROKEN
    assert_names(found, Name.READINESS, f"Pod/{NAME}-0-1", "is still terminating")


async def test_pods_that_are_kept_since_their_group_may_not_restart(world: World) -> None:
    world.upgrade_lws()
    await at_rest(world)
    world.patch_lws({"leaderWorkerTemplate": {"maxGroupRestarts": 0}})
    world.delete(PODS, f"{NAME}-0-1")
    await world.sleep(600)
    found = await broken(world)
    assert_names(found, Name.CONTAINERS, f"Pod/{NAME}-0", "has used up its restarts")
    assert "leaderworkerset.sigs.k8s.io/recover=true" in found.found
    assert found.by_itself.startswith("nothing: LeaderWorkerSet keeps its pods")
