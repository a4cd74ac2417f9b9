"""What the kubelet says of a container, of any pod and role, reaches whoever reads the status, word by word."""

from __future__ import annotations

from typing import Any

import pytest

from rollout_lws.errors import ApiError
from rollout_lws.objects.resources import STATEFUL_SETS
from rollout_lws.rollout.reasons import Reason
from rollout_lws.sandbox.apiserver import Operation
from tests.scenarios.failures import WHEN_READY, apply, say, waiting
from tests.scenarios.stories import CANARY, STEPS, at_rest
from tests.scenarios.told import assert_stalled, tells
from tests.scenarios.world import World

pytestmark = pytest.mark.looptime

PULLING = 'pod llama-canary-0 (leader) container vllm: ImagePullBackOff: Back-off pulling image "vllm:v2"'


@tells(
    {
        Reason.LOADING: f"0 of 1 groups of the new version ready: {PULLING}",
        Reason.DEADLINE: f"no further group became ready within 120 s: {PULLING}. {WHEN_READY}",
    }
)
async def test_an_image_that_cannot_be_pulled_is_told_at_once_and_at_the_deadline(world: World) -> None:
    await at_rest(world, *STEPS, progressDeadlineSeconds=120)
    apply(world, faults={"fail": "ImagePullBackOff"})
    await world.until_state("Stalled")
    (group,) = world.status["notReadyGroups"]
    blamed = {"pod": f"{CANARY}-0", "container": "vllm"}
    assert group == {"workload": CANARY, "group": "0", "reason": "ImagePullBackOff", "message": PULLING, **blamed}


TERMINATED = {"terminated": {"reason": "Error", "exitCode": 2, "message": "no such bucket: models\n"}}
KILLED = {"terminated": {"reason": "OOMKilled", "exitCode": 137}}
_CASES: dict[str, tuple[str, dict[str, Any], str]] = {
    "worker": (
        f"{CANARY}-0-1",
        {"containerStatuses": waiting("CreateContainerConfigError", 'secret "hf-token" not found')},
        'pod llama-canary-0-1 (worker) container vllm: CreateContainerConfigError: secret "hf-token" not found',
    ),
    "init container": (
        f"{CANARY}-0",
        {"initContainerStatuses": [{"name": "fetch", "state": TERMINATED}]},
        "pod llama-canary-0 (leader) container fetch: Error (exit 2): no such bucket: models",
    ),
    "worker's init container": (
        f"{CANARY}-0-1",
        {"initContainerStatuses": [{"name": "fetch", "state": {"waiting": {"reason": "ErrImagePull"}}}]},
        "pod llama-canary-0-1 (worker) container fetch: ErrImagePull",
    ),
    "crash loop": (
        f"{CANARY}-0",
        {"containerStatuses": waiting("CrashLoopBackOff", "back-off 5m0s", ended=KILLED["terminated"])},
        "pod llama-canary-0 (leader) container vllm: CrashLoopBackOff; it ended last with OOMKilled (exit 137):"
        " back-off 5m0s",
    ),
    "restarted in place": (
        f"{CANARY}-0-1",
        {"containerStatuses": [{"name": "vllm", "restartCount": 2, "state": {}, "lastState": KILLED}]},
        "pod llama-canary-0-1 (worker) is not ready after 2 restarts; container vllm ended last with OOMKilled (exit"
        " 137)",
    ),
    "evicted": (
        f"{CANARY}-0",
        {"phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory."},
        "pod llama-canary-0 (leader) failed: The node was low on resource: memory.",
    ),
}


@pytest.mark.parametrize("case", _CASES)
async def test_the_kubelets_words_name_pod_role_and_container(world: World, case: str) -> None:
    name, status, words = _CASES[case]
    await at_rest(world, *STEPS, progressDeadlineSeconds=120)
    world.set_image("bad-v2")
    await say(world, name, **status)
    await world.until_state("Stalled")
    message = f"no further group became ready within 120 s: {words.rstrip('.')}. {WHEN_READY}"
    assert_stalled(world, Reason.DEADLINE, message, phase="Progressing")


@tells(
    {
        Reason.DEADLINE: "no further group became ready within 120 s: pod llama-canary-0 (leader) is ready, but its"
        f" worker StatefulSet does not exist. {WHEN_READY}"
    }
)
async def test_a_leader_that_never_gets_its_workers_is_told_as_such(world: World) -> None:
    await at_rest(world, *STEPS, progressDeadlineSeconds=120)

    def refuse(operation: Operation) -> dict[str, Any]:
        name = operation.object["metadata"]["name"]
        if operation.resource == STATEFUL_SETS and operation.verb == "create" and name == f"{CANARY}-0":
            raise ApiError(403, "Forbidden", "exceeded quota: objects")
        return operation.object

    world.server.admission.append(refuse)
    world.set_image("v2")
    await world.until_state("Stalled")
