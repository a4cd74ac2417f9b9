"""What users and GitOps do with kubectl while a release is on: nothing of it disturbs the hold or opens a window."""

from __future__ import annotations

import asyncio

import pytest

from tests.kubectl.operator import Operator, workload
from tests.kubectl.witness import CANARY, HOLD, STABLE, Picture, Witness

pytestmark = pytest.mark.kubectl

GITOPS = ("--server-side", "--field-manager=gitops")


@pytest.fixture
async def witness(operator: Operator) -> Witness:
    """Looks on from the very first object."""
    looking = Witness()
    await looking.look_on(operator)
    return looking


async def waiting(operator: Operator, witness: Witness, version: str = "v2") -> None:
    """The release of ``version`` waits for approval with half of the groups."""
    await operator.apply(workload(version))
    await witness.until(lambda seen: seen.state == "AwaitingApproval" and seen.ready(CANARY) == 2)


def partitions(witness: Witness) -> list[int]:
    """What the stable LWS's partition has been, each change of it once."""
    found: list[int] = []
    picture = Picture()
    for change in witness.changes:
        picture.take(change)
        if STABLE in picture.workloads and found[-1:] != [picture.partition]:
            found.append(picture.partition)
    return found


@pytest.mark.long
@pytest.mark.parametrize("flags", [(), GITOPS], ids=["client-side", "server-side"])
async def test_the_same_manifest_applied_again_and_again_disturbs_nothing(
    operator: Operator, witness: Witness, flags: tuple[str, ...]
) -> None:
    await operator.apply(workload("v1"), *flags)
    await operator.wait("lws/llama", "Available")
    await operator.adopted_by_rollout()
    await operator.apply(workload("v2"), *flags)
    synced = 0
    await witness.until(lambda seen: seen.state == "AwaitingApproval")
    before = await operator.get("lws", "llama")
    await operator.apply(workload("v2"), *flags)
    after = await operator.get("lws", "llama")
    assert (before["spec"], before["metadata"]["generation"]) == (after["spec"], after["metadata"]["generation"])
    await operator.approve()
    while not witness.now.at_rest("v2"):
        await operator.apply(workload("v2"), *flags)
        synced += 1
    assert synced > 1
    assert partitions(witness) == [0, HOLD, 3, HOLD, 2, HOLD, 1, HOLD, 0, HOLD]
    assert witness.judge(replicas=4, unavailable=1) == 4


async def test_a_manifest_that_owns_the_strategy_is_no_conflict(operator: Operator, witness: Witness) -> None:
    await operator.apply(workload("v1"), *GITOPS)
    await operator.wait("lws/llama", "Available")
    await operator.adopted_by_rollout()
    told = await operator.apply(workload("v1", unavailable=2), *GITOPS)
    assert "serverside-applied" in told
    await witness.until(lambda seen: seen.at_rest("v1"))
    assert witness.now.partition == HOLD
    live = await operator.get("lws", "llama")
    assert live["spec"]["rolloutStrategy"]["rollingUpdateConfiguration"]["maxUnavailable"] == 2


@pytest.mark.long
async def test_a_plan_edited_in_mid_release_is_followed(operator: Operator, witness: Witness) -> None:
    await operator.adopted()
    await waiting(operator, witness)
    told = await operator.run("edit", "rollout", "llama", KUBE_EDITOR="sed -i 's/replicas: 50%/replicas: 3/'")
    assert "edited" in told
    await witness.until(lambda seen: seen.state == "AwaitingApproval" and seen.ready(CANARY) == 3)
    assert witness.now.images() == {"v1"}
    refused = await operator.run("edit", "rollout", "llama", code=1, KUBE_EDITOR="sed -i 's/replicas: 3/replicas: 0/'")
    assert 'rollouts.rollouts.kruise.io "llama" is invalid' in refused
    await operator.approve()
    await witness.until(lambda seen: seen.at_rest("v2"))
    assert witness.judge(replicas=4, unavailable=1) == 4


@pytest.mark.long
async def test_an_lws_deleted_in_the_foreground_leaves_its_canary_serving_and_then_nothing(
    operator: Operator, witness: Witness
) -> None:
    before = await operator.everything()
    await operator.adopted()
    await waiting(operator, witness)
    serving = {pod["metadata"]["uid"] for pods in witness.now.members(CANARY).values() for pod in pods}
    assert "deleted" in await operator.run("delete", "lws", "llama", "--cascade=foreground", "--timeout=25s")
    await witness.until(lambda seen: seen.state == "Stalled")
    everything = await operator.everything()
    named = {name.partition("/")[2] for name in everything}
    assert not {name for name in named if name == "llama-0" or name.startswith("llama-0-")}
    assert {item["metadata"]["uid"] for item in everything.values() if item["kind"] == "Pod"} == serving
    assert "StatefulSet/llama" not in everything
    message = (await operator.get("rollout", "llama"))["status"]["message"]
    assert "LeaderWorkerSet llama does not exist in namespace prod" in message
    assert "its canary keeps serving" in message
    assert "deleted" in await operator.run("delete", "rollout", "llama", "--timeout=25s")
    await asyncio.gather(
        operator.gone("pods", "--all"),
        operator.gone("statefulsets,services,endpointslices,controllerrevisions", "--all"),
        operator.gone("lws,batchreleases", "--all"),
    )
    assert (await operator.everything()).keys() == before.keys()
