"""The Deployment and ReplicaSet controllers of Kubernetes 1.36, as far as rolling updates go: ReplicaSets by template,
scaled within maxSurge and maxUnavailable, and pods of which the worst go first.

Neither pauses, nor keeps several old versions in proportion, nor deletes old ReplicaSets. Only Deployments that
LeaderWorkerSets have made are played; others are stored, so that manifests with them apply.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rollout_lws.objects.resources import DEPLOYMENTS, LWS_NAME, PODS
from rollout_lws.objects.writes import Create, Delete, Patch, Write
from rollout_lws.sandbox.api_resources import REPLICA_SETS
from rollout_lws.sandbox.behaviours.base import (
    NOTHING,
    Change,
    Key,
    Object,
    Outcome,
    View,
    condition_since,
    controlled_by,
    controller_of,
    key_of,
    labels_of,
    owner_reference,
    running_and_ready,
    terminating,
)
from rollout_lws.sandbox.behaviours.revisions import short_hash

TEMPLATE_HASH = "pod-template-hash"


class Deployments:
    """Reconciles Deployments; triggered by them and by their ReplicaSets."""

    name = "deployment"

    def wakes(self, change: Change, view: View) -> Iterable[Key]:  # noqa: ARG002 (the change is enough)
        if LWS_NAME not in labels_of(change.object):
            return ()
        if change.resource == DEPLOYMENTS:
            return (key_of(change.object),)
        owner = controller_of(change.object) if change.resource == REPLICA_SETS else None
        return ((change.object["metadata"]["namespace"], owner["name"]),) if owner else ()

    def decide(self, key: Key, view: View, now: float) -> Outcome:  # noqa: ARG002 (it does not depend on time)
        deployment = view.get(DEPLOYMENTS, *key)
        if deployment is None or terminating(deployment):
            return NOTHING
        uid = deployment["metadata"]["uid"]
        sets = [item for item in view.owned(uid, REPLICA_SETS) if controlled_by(item, uid) and not terminating(item)]
        return Outcome(roll(deployment, sets))


@dataclass(frozen=True, slots=True)
class _Budget:
    """Of a rolling update, in pods."""

    replicas: int
    surge: int
    unavailable: int

    @classmethod
    def of(cls, spec: Mapping[str, Any]) -> _Budget:
        replicas = int(spec.get("replicas", 1))
        rolling = (spec.get("strategy") or {}).get("rollingUpdate") or {}
        surge = _resolved(rolling.get("maxSurge", "25%"), replicas, up=True)
        unavailable = _resolved(rolling.get("maxUnavailable", "25%"), replicas, up=False)
        return cls(replicas, surge, unavailable if surge or unavailable else 1)


def _resolved(value: int | str, replicas: int, *, up: bool) -> int:
    if isinstance(value, int):
        return value
    share = int(value.removesuffix("%")) * replicas / 100
    return math.ceil(share) if up else math.floor(share)


def roll(deployment: Object, sets: Sequence[Object]) -> tuple[Write, ...]:
    """One pass: the new ReplicaSet is made or scaled up, else old ones are scaled down; then the status."""
    template = deployment["spec"]["template"]
    digest = short_hash(template)
    new = next((item for item in sets if labels_of(item).get(TEMPLATE_HASH) == digest), None)
    old = [item for item in sets if item is not new]
    budget = _Budget.of(deployment["spec"])
    total = sum(_wanted(item) for item in sets)
    writes: list[Write] = []
    if new is None:
        count = max(0, min(budget.replicas, budget.replicas + budget.surge - total))
        body = _replica_set(deployment, digest, count)
        writes.append(Create(REPLICA_SETS, body, "the template has no ReplicaSet yet"))
    else:
        writes += _scaled(new, old, budget, total)
    status = _status(deployment, sets, new)
    if status != deployment.get("status"):
        version = deployment["metadata"].get("resourceVersion")
        body = {"status": status}
        writes.append(Patch(DEPLOYMENTS, *key_of(deployment), body, "pods changed", version, "status"))
    return tuple(writes)


def _scaled(new: Object, old: Sequence[Object], budget: _Budget, total: int) -> Iterable[Write]:
    own = _wanted(new)
    room = budget.replicas + budget.surge - total
    wanted = budget.replicas if own > budget.replicas else own + max(0, min(room, budget.replicas - own))
    if wanted != own:
        return [_scale(new, wanted)]
    least = budget.replicas - budget.unavailable
    lacking = own - _available(new)
    spare = total - least - lacking
    if spare <= 0:
        return []
    writes: list[Write] = []
    # Pods that are not available go first: they cost nothing.
    left = {id(item): _wanted(item) for item in old}
    for item in old:
        going = min(spare, max(0, _wanted(item) - _available(item)))
        left[id(item)] -= going
        spare -= going
    serving = _available(new) + sum(map(_available, old)) - least
    for item in old:
        going = min(max(0, serving), min(left[id(item)], _available(item)))
        left[id(item)] -= going
        serving -= going
    for item in old:
        if left[id(item)] != _wanted(item):
            writes.append(_scale(item, left[id(item)]))
    return writes


def _status(deployment: Object, sets: Sequence[Object], new: Object | None) -> dict[str, Any]:
    def total(member: str) -> int:
        return sum(int((item.get("status") or {}).get(member, 0)) for item in sets)

    updated = int((new.get("status") or {}).get("replicas", 0)) if new is not None else 0
    return {
        "observedGeneration": deployment["metadata"]["generation"],
        "replicas": total("replicas"),
        "updatedReplicas": updated,
        "readyReplicas": total("readyReplicas"),
        "availableReplicas": total("availableReplicas"),
    }


def _replica_set(deployment: Object, digest: str, count: int) -> dict[str, Any]:
    metadata, spec = deployment["metadata"], deployment["spec"]
    marked = {TEMPLATE_HASH: digest}
    given = spec["template"].get("metadata") or {}
    labels = {**(given.get("labels") or {}), **marked}
    return {
        "apiVersion": REPLICA_SETS.api_version,
        "kind": REPLICA_SETS.kind,
        "metadata": {
            "name": f"{metadata['name']}-{digest}",
            "namespace": metadata["namespace"],
            "labels": labels,
            "ownerReferences": [owner_reference(DEPLOYMENTS, deployment)],
        },
        "spec": {
            "replicas": count,
            "selector": {"matchLabels": {**spec["selector"]["matchLabels"], **marked}},
            "template": {**spec["template"], "metadata": {**given, "labels": labels}},
        },
    }


def _scale(item: Object, count: int) -> Patch:
    version = item["metadata"].get("resourceVersion")
    return Patch(REPLICA_SETS, *key_of(item), {"spec": {"replicas": count}}, "a rolling update", version)


def _wanted(item: Object) -> int:
    return int(item["spec"].get("replicas", 1))


def _available(item: Object) -> int:
    return int((item.get("status") or {}).get("availableReplicas", 0))


class ReplicaSets:
    """Reconciles ReplicaSets; triggered by them and by their pods."""

    name = "replicaset"

    def wakes(self, change: Change, view: View) -> Iterable[Key]:  # noqa: ARG002 (the change is enough)
        if change.resource == REPLICA_SETS:
            return (key_of(change.object),)
        owner = controller_of(change.object) if change.resource == PODS else None
        if owner is None or owner["kind"] != REPLICA_SETS.kind:
            return ()
        return ((change.object["metadata"]["namespace"], owner["name"]),)

    def decide(self, key: Key, view: View, now: float) -> Outcome:  # noqa: ARG002 (it does not depend on time)
        replica_set = view.get(REPLICA_SETS, *key)
        if replica_set is None or terminating(replica_set):
            return NOTHING
        uid = replica_set["metadata"]["uid"]
        return Outcome(fill(replica_set, [pod for pod in view.owned(uid, PODS) if controlled_by(pod, uid)]))


def fill(replica_set: Object, pods: Sequence[Object]) -> tuple[Write, ...]:
    """One pass: missing pods are made, surplus ones deleted; then the status."""
    active = [pod for pod in pods if not terminating(pod) and not _is_over(pod)]
    lacking = _wanted(replica_set) - len(active)
    writes: list[Write] = [
        Create(PODS, _pod(replica_set, number), "the ReplicaSet lacks a pod") for number in range(lacking)
    ]
    for pod in sorted(active, key=_goes_first)[: max(0, -lacking)]:
        writes.append(Delete(PODS, *key_of(pod), pod["metadata"]["uid"], "the ReplicaSet has a pod too many"))
    ready = sum(map(running_and_ready, active))
    status = {
        "observedGeneration": replica_set["metadata"]["generation"],
        "replicas": len(active),
        "readyReplicas": ready,
        "availableReplicas": ready,
    }
    if status != replica_set.get("status"):
        version = replica_set["metadata"].get("resourceVersion")
        body = {"status": status}
        writes.append(Patch(REPLICA_SETS, *key_of(replica_set), body, "pods changed", version, "status"))
    return tuple(writes)


def _is_over(pod: Object) -> bool:
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")


def _goes_first(pod: Object) -> tuple[bool, bool, bool, float, str]:
    """Pods without a node, then those that do not run, then unready ones, then those that became ready last."""
    running = (pod.get("status") or {}).get("phase") == "Running"
    since = condition_since(pod, "Ready") or 0.0
    return bool(pod["spec"].get("nodeName")), running, running_and_ready(pod), -since, pod["metadata"]["name"]


def _pod(replica_set: Object, number: int) -> dict[str, Any]:
    metadata, template = replica_set["metadata"], replica_set["spec"]["template"]
    given = template.get("metadata") or {}
    # The API server would append five characters that cannot be known before.
    ending = short_hash([metadata["uid"], metadata["resourceVersion"], number])[:5]
    return {
        "apiVersion": PODS.api_version,
        "kind": PODS.kind,
        "metadata": {
            **{key: given[key] for key in ("annotations", "labels", "finalizers") if given.get(key)},
            "name": f"{metadata['name']}-{ending}",
            "generateName": f"{metadata['name']}-",
            "namespace": metadata["namespace"],
            "ownerReferences": [owner_reference(REPLICA_SETS, replica_set)],
        },
        "spec": dict(template["spec"]),
    }
