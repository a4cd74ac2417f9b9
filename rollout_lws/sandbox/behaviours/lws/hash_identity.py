"""LeaderWorkerSets whose groups have no numbers (groupIdentity Hash): a Deployment makes their leaders, and a
scheduling gate keeps a leader back until the pods of the group that it replaces are gone.

As in LWS's pull request 987, which was run, and in the source of its main branch of September 2026.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rollout_lws.objects.released import REPLACEMENT_GATE
from rollout_lws.objects.resources import (
    DEPLOYMENTS,
    LEADER_WORKER_SETS,
    LWS_GROUP_INDEX,
    LWS_NAME,
    LWS_PREFIX,
    LWS_REVISION,
    LWS_WORKER_INDEX,
    PODS,
)
from rollout_lws.objects.writes import Patch, Write
from rollout_lws.sandbox.admission.metadata import timestamp
from rollout_lws.sandbox.behaviours.base import (
    Object,
    View,
    annotations_of,
    has_condition,
    key_of,
    labels_of,
    owner_reference,
    terminating,
)

#: On leaders and workers, and the condition by which a leader is ready only with its whole group.
IDENTITY = LWS_PREFIX + "group-identity"
GROUP_READY = LWS_PREFIX + "group-ready"
LEADER_ADDRESS = LWS_PREFIX + "leader-address"


def is_hash(lws: Object) -> bool:
    return bool(lws["spec"].get("groupIdentity") == "Hash")


def leader_deployment(
    lws: Object, labels: Mapping[str, str], annotations: Mapping[str, str], template: Mapping[str, Any]
) -> dict[str, Any]:
    """The Deployment of the leaders; ``template`` is theirs, with its labels and annotations."""
    name, spec = lws["metadata"]["name"], lws["spec"]
    rolling = spec["rolloutStrategy"]["rollingUpdateConfiguration"]
    given = template["metadata"]
    pod = {**template["spec"], "subdomain": name}
    if int(spec["leaderWorkerTemplate"]["size"]) > 1:
        pod["readinessGates"] = [*(pod.get("readinessGates") or ()), {"conditionType": GROUP_READY}]
    return {
        "apiVersion": DEPLOYMENTS.api_version,
        "kind": DEPLOYMENTS.kind,
        "metadata": {
            "name": name,
            "namespace": lws["metadata"]["namespace"],
            "labels": {**labels_of(lws), **labels},
            "annotations": {**annotations_of(lws), **annotations},
            "ownerReferences": [owner_reference(LEADER_WORKER_SETS, lws)],
        },
        "spec": {
            "replicas": int(spec["replicas"]),
            "selector": {"matchLabels": {LWS_NAME: name, LWS_WORKER_INDEX: "0"}},
            "strategy": {
                "type": "RollingUpdate",
                "rollingUpdate": {"maxSurge": rolling["maxSurge"], "maxUnavailable": rolling["maxUnavailable"]},
            },
            "template": {
                **template,
                "metadata": {**given, "annotations": {**given["annotations"], IDENTITY: "Hash"}},
                "spec": pod,
            },
        },
    }


def counts(deployment: Object | None) -> dict[str, int]:
    """The groups of an LWS by the status of its Deployment; of none that exists none."""
    status = (deployment or {}).get("status") or {}
    return {each: int(status.get(each, 0)) for each in ("replicas", "readyReplicas", "updatedReplicas")}


def is_gated(pod: Object) -> bool:
    return any(gate["name"] == REPLACEMENT_GATE for gate in pod["spec"].get("schedulingGates") or ())


def admitted(view: View, lws: Object, leader: Object) -> tuple[Write, ...]:
    """Lifts a leader's gate, unless as many groups still end as gated leaders are not older."""
    pods = list(view.select(PODS, leader["metadata"]["namespace"], {LWS_NAME: lws["metadata"]["name"]}))
    gated = [pod for pod in pods if _leads(pod) and is_gated(pod) and not terminating(pod)]
    rank = sorted(map(_age, gated)).index(_age(leader))
    waits = 0 if lws["spec"].get("groupReplacementPolicy") == "Immediate" else _ending(pods)
    if rank >= len(gated) - waits:
        return ()
    gates = [gate for gate in leader["spec"]["schedulingGates"] if gate["name"] != REPLACEMENT_GATE]
    return (Patch(PODS, *key_of(leader), {"spec": {"schedulingGates": gates or None}}, "its place is free"),)


def group_ready(leader: Object, workers: Object | None, now: float) -> tuple[Write, ...]:
    """The leader's condition that its workers are ready."""
    status = (workers or {}).get("status") or {}
    whole = (
        workers is not None
        and int(workers["spec"]["replicas"]) == int(status.get("availableReplicas", 0))
        and status.get("currentRevision") == status.get("updateRevision")
    )
    known = (leader.get("status") or {}).get("conditions") or ()
    if has_condition(leader, GROUP_READY) == whole and any(each["type"] == GROUP_READY for each in known):
        return ()
    told = {
        "type": GROUP_READY,
        "status": "True" if whole else "False",
        "reason": "WorkerStatefulSetReady" if whole else "WorkerStatefulSetNotReady",
        "lastTransitionTime": timestamp(now),
    }
    conditions = [*(each for each in known if each["type"] != GROUP_READY), told]
    body = {"status": {"conditions": conditions}}
    version = leader["metadata"].get("resourceVersion")
    return (Patch(PODS, *key_of(leader), body, "its workers", version, "status"),)


def _leads(pod: Object) -> bool:
    return labels_of(pod).get(LWS_WORKER_INDEX) == "0"


def _age(pod: Object) -> tuple[str, str]:
    return pod["metadata"]["creationTimestamp"], pod["metadata"]["name"]


def _ending(pods: Iterable[Object]) -> int:
    """Groups of which pods are left, and whose leader terminates or is gone."""
    alive: dict[str, bool] = {}
    for pod in pods:
        key = labels_of(pod).get(LWS_GROUP_INDEX, "")
        alive[key] = alive.get(key, False) or (_leads(pod) and not terminating(pod))
    return sum(not each for each in alive.values())


def revision_of(deployment: Object | None) -> str | None:
    return labels_of(deployment).get(LWS_REVISION) if deployment is not None else None
