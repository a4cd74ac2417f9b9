"""Kueue as stories need it: its kinds, gates on pods, and Workloads written by hand, as nobody here reconciles them."""

from __future__ import annotations

import asyncio
from typing import Any

from rollout_lws.objects.kueue import GROUP_INDEX, JOB_UID, MULTIKUEUE
from rollout_lws.objects.resources import (
    CUSTOM_RESOURCE_DEFINITIONS,
    KUEUE_CHECKS,
    KUEUE_WORKLOADS,
    LEADER_WORKER_SETS,
    LWS_GROUP_INDEX,
    PODS,
    Resource,
)
from tests.scenarios.failures import pods
from tests.scenarios.stories import CANARY
from tests.scenarios.world import NAME, NAMESPACE, World

GATE = "kueue.x-k8s.io/admission"
#: What the webhook puts on a pod that Kueue is to admit.
GATED: dict[str, Any] = {"schedulingGates": [{"name": GATE}]}


def definition(resource: Resource) -> dict[str, Any]:
    """A CustomResourceDefinition that takes anything."""
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": resource.version,
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": anything, "status": anything}}},
    }
    return {
        "apiVersion": CUSTOM_RESOURCE_DEFINITIONS.api_version,
        "kind": CUSTOM_RESOURCE_DEFINITIONS.kind,
        "metadata": {"name": str(resource)},
        "spec": {
            "group": resource.group,
            "names": {
                "kind": resource.kind,
                "plural": resource.plural,
                "singular": resource.kind.lower(),
                "listKind": f"{resource.kind}List",
            },
            "scope": "Namespaced" if resource.namespaced else "Cluster",
            "versions": [version],
        },
    }


def install(world: World, workloads: Resource = KUEUE_WORKLOADS) -> None:
    for resource in (workloads, KUEUE_CHECKS):
        world.server.create(CUSTOM_RESOURCE_DEFINITIONS, definition(resource))


def condition(kind: str, status: str, reason: str, message: str = "") -> dict[str, Any]:
    return {"type": kind, "status": status, "reason": reason, "message": message}


def queue(
    world: World,
    group: int = 0,
    *,
    lws: str = CANARY,
    spec: dict[str, Any] | None = None,
    resource: Resource = KUEUE_WORKLOADS,
    **status: Any,
) -> None:
    """The Workload of a group, with this status."""
    live = world.get(LEADER_WORKER_SETS, lws)
    assert live is not None
    owner = {"apiVersion": LEADER_WORKER_SETS.api_version, "kind": LEADER_WORKER_SETS.kind}
    meta = {
        "name": f"leaderworkerset-{lws}-{group}",
        "namespace": NAMESPACE,
        "labels": {JOB_UID: live["metadata"]["uid"]},
        "annotations": {GROUP_INDEX: str(group)},
        "ownerReferences": [{**owner, "name": lws, "uid": live["metadata"]["uid"]}],
    }
    head = {"apiVersion": resource.api_version, "kind": resource.kind}
    world.server.create(resource, {**head, "metadata": meta, "spec": spec or {}})
    world.patch(resource, meta["name"], {"status": status}, "status")


def ends_surge_groups(world: World) -> None:
    """From now on Kueue kills surge groups as soon as LWS counts as many updated groups as it has regular ones."""

    def end() -> None:
        live = world.get(LEADER_WORKER_SETS, NAME)
        if live is None or live.get("status", {}).get("updatedReplicas", 0) < live["spec"]["replicas"]:
            return
        for name, pod in pods(world, NAME).items():
            labels, meta = pod["metadata"]["labels"], pod["metadata"]
            if int(labels[LWS_GROUP_INDEX]) >= live["spec"]["replicas"] and "deletionTimestamp" not in meta:
                world.delete(PODS, name)

    world.server.store.subscribe(lambda _: asyncio.get_running_loop().call_soon(end))


def admit(world: World, lws: str = CANARY) -> None:
    """Every pod of the LWS is let go."""
    for name in pods(world, lws):
        world.patch(PODS, name, {"spec": {"schedulingGates": None}})


#: Conditions of a group that has quota, where its pods are not seen to be ready.
ADMITTED = (
    condition("QuotaReserved", "True", "QuotaReserved"),
    condition("Admitted", "True", "Admitted"),
    condition("PodsReady", "False", "WaitForStart"),
)


def in_cluster(name: str) -> dict[str, Any]:
    """Status of a Workload that MultiKueue has dispatched to that cluster, which has admitted it."""
    said = f'The workload was admitted on "{name}"'
    checks = [{"name": "dispatch", "state": "Ready", "message": said}]
    return {"conditions": list(ADMITTED), "clusterName": name, "admissionChecks": checks}


def dispatching_check(world: World, name: str = "dispatch") -> None:
    """An AdmissionCheck of MultiKueue."""
    head = {"apiVersion": KUEUE_CHECKS.api_version, "kind": KUEUE_CHECKS.kind}
    world.server.create(KUEUE_CHECKS, {**head, "metadata": {"name": name}, "spec": {"controllerName": MULTIKUEUE}})
