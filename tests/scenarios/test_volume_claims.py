"""Volumes of groups that are made for a release: what stays when they go is what the Event names."""

from __future__ import annotations

from typing import Any

import pytest

from rollout_lws.objects.resources import PERSISTENT_VOLUME_CLAIMS
from rollout_lws.rollout.reasons import EventReason
from tests.scenarios.stories import waiting_for_approval
from tests.scenarios.test_refused_versions import template
from tests.scenarios.told import tells
from tests.scenarios.world import NAME, NAMESPACE, World

pytestmark = pytest.mark.looptime

CLAIM = {
    "metadata": {"name": "cache"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}
STEPS = ({"replicas": 2, "pause": {}}, {"replicas": "100%"})
OWN = {f"cache-{NAME}-{group}{worker}" for group in range(4) for worker in ("", "-1")}


KEPT = ", ".join(f"cache-{NAME}-canary-{pod}" for pod in ("0", "0-1", "1", "1-1"))
STAY = (
    "4 PersistentVolumeClaims of the release's groups stay by their retention policy, and groups of a later version"
    f" would get what is in them: {KEPT}. To remove them: kubectl delete pvc -n default"
    f" -l leaderworkerset.sigs.k8s.io/name={NAME}-canary"
)


@tells(events={EventReason.VOLUME_CLAIMS_KEPT: STAY})
async def test_claims_that_stay_without_a_policy_are_named_with_how_to_remove_them(world: World) -> None:
    canary = {f"cache-{NAME}-canary-{pod}" for pod in ("0", "0-1", "1", "1-1")}
    await assert_named_once(world, "ExtraWorkload", {}, canary)


@pytest.mark.one_in(5)
@pytest.mark.parametrize(
    ("capacity", "policy", "stays"),
    [
        ("ExtraWorkload", {"whenScaled": "Delete"}, {f"cache-{NAME}-canary-{pod}" for pod in ("0-1", "1-1")}),
        ("ExtraWorkload", {"whenDeleted": "Delete"}, set()),
        ("Surge", {"whenDeleted": "Delete"}, {f"cache-{NAME}-{pod}" for pod in ("4", "5")}),
        ("Surge", {"whenDeleted": "Delete", "whenScaled": "Delete"}, set()),
        ("InPlace", {}, set()),
    ],
)
async def test_claims_that_stay_are_named_once(
    world: World, capacity: str, policy: dict[str, str], stays: set[str]
) -> None:
    await assert_named_once(world, capacity, policy, stays)


async def assert_named_once(world: World, capacity: str, policy: dict[str, str], stays: set[str]) -> None:
    """Abort a release whose pods claim volumes; ``stays`` are the claims of its groups that are left."""
    groups: dict[str, Any] = {
        "size": 2,
        "workerTemplate": template("v1", world.containers),
        "volumeClaimTemplates": [CLAIM],
    }
    if policy:
        groups["persistentVolumeClaimRetentionPolicy"] = {"whenDeleted": "Retain", "whenScaled": "Retain", **policy}
    world.create_workload(leaderWorkerTemplate=groups)
    world.create_rollout(*STEPS, canary={"capacity": capacity})
    world.start_controller()
    await world.until_state("Healthy")
    await waiting_for_approval(world)
    world.request("Abort")
    await world.until_state("Aborted", 1200)
    await world.rest()
    claims = {each["metadata"]["name"] for each in world.server.list(PERSISTENT_VOLUME_CLAIMS, NAMESPACE)}
    assert claims == OWN | stays
    told = [each.note for each in world.events if each.reason == EventReason.VOLUME_CLAIMS_KEPT]
    assert len(told) == bool(stays)
    for note in told:
        assert note.startswith(f"{len(stays)} PersistentVolumeClaims of the release's groups stay")
        assert {each.strip(".,") for each in note.partition("To remove them")[0].split() if "cache-" in each} == stays
        assert "To remove them: kubectl delete pvc -n default " in note
