"""The StatefulSet controller of Kubernetes 1.36: stable names, updates by partition, one pod at a time.

``legacy`` is the behaviour with the MaxUnavailableStatefulSet gate off (the default); ``max_unavailable`` is the gate
on, with the fixes of 1.37: broken pods of an old version are deleted first and do not use up the budget.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from rollout_lws.errors import ApiError
from rollout_lws.objects.released import RECORD_HASH
from rollout_lws.objects.resources import CONTROLLER_REVISIONS, PERSISTENT_VOLUME_CLAIMS, PODS, STATEFUL_SETS
from rollout_lws.objects.writes import Create, Delete, Patch, Write
from rollout_lws.sandbox.behaviours import statefulset_pods as pods
from rollout_lws.sandbox.behaviours.base import (
    NOTHING,
    Change,
    Key,
    Object,
    Outcome,
    View,
    annotations_of,
    condition_since,
    controlled_by,
    controller_of,
    key_of,
    owner_reference,
    running_and_ready,
    terminating,
)
from rollout_lws.sandbox.behaviours.events import event
from rollout_lws.sandbox.behaviours.revisions import controller_revision, newest, next_number, short_hash

Variant: TypeAlias = Literal["legacy", "max_unavailable"]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """``occupied`` are pod names that other owners' pods use; ``claims`` are the existing claims; ``now`` is the epoch
    second.
    """

    stateful_set: Object
    pods: tuple[Object, ...]
    revisions: tuple[Object, ...]
    occupied: frozenset[str]
    claims: Mapping[str, Object]
    now: float

    def available(self, pod: Object | None) -> bool:
        """Whether the pod has been ready for minReadySeconds, and does not terminate."""
        return pod is not None and not terminating(pod) and self.counted(pod)

    def counted(self, pod: Object) -> bool:
        """The same, also while it terminates."""
        until = self.available_at(pod)
        return running_and_ready(pod) and (until is None or until <= self.now)

    def available_at(self, pod: Object) -> float | None:
        """When a ready pod will have been ready for minReadySeconds; None if it counts at once."""
        least, since = float(self.stateful_set["spec"].get("minReadySeconds") or 0), condition_since(pod, "Ready")
        return since + least if least and since is not None else None


class StatefulSets:
    """Reconciles StatefulSets; triggered by them, their pods and deletions of their ControllerRevisions."""

    name = "statefulset"

    def __init__(self, variant: Variant = "legacy") -> None:
        self.variant = variant

    def wakes(self, change: Change, view: View) -> Iterable[Key]:  # noqa: ARG002 (the change is enough)
        if change.resource == STATEFUL_SETS:
            return (key_of(change.object),)
        if change.resource == PODS or (change.resource == CONTROLLER_REVISIONS and change.deleted):
            owner = controller_of(change.object)
            if owner and owner["kind"] == STATEFUL_SETS.kind:
                return ((change.object["metadata"]["namespace"], owner["name"]),)
        return ()

    def decide(self, key: Key, view: View, now: float) -> Outcome:
        namespace, name = key
        snapshot = observe(view, namespace, name, now)
        return decide(snapshot, self.variant) if snapshot else NOTHING

    def complaint(self, key: Key, view: View, write: Write, error: ApiError, now: float) -> Write | None:
        """The FailedCreate or FailedDelete event on the StatefulSet, with kube-controller-manager's message."""
        stateful_set = view.get(STATEFUL_SETS, *key)
        if stateful_set is None or not isinstance(write, Create | Delete) or write.resource != PODS:
            return None
        verb = "Create" if isinstance(write, Create) else "Delete"
        note = f"{verb.lower()} Pod {write.name} in StatefulSet {key[1]} failed error: {error}"
        return event(STATEFUL_SETS, stateful_set, now, f"Failed{verb}", note, reporter="statefulset", warning=True)


def observe(view: View, namespace: str, name: str, now: float) -> Snapshot | None:
    stateful_set = view.get(STATEFUL_SETS, namespace, name)
    if stateful_set is None or terminating(stateful_set):
        return None
    uid = stateful_set["metadata"]["uid"]
    own = {pod["metadata"]["name"]: pod for pod in view.owned(uid, PODS) if controlled_by(pod, uid)}
    names = [f"{name}-{ordinal}" for ordinal in _ordinals(stateful_set["spec"])]
    claims: dict[str, Object] = {}
    for template in stateful_set["spec"].get("volumeClaimTemplates") or ():
        for pod_name in {*names, *own}:
            claim = view.get(PERSISTENT_VOLUME_CLAIMS, namespace, pods.claim_name(template, pod_name))
            if claim is not None:
                claims[claim["metadata"]["name"]] = claim
    return Snapshot(
        stateful_set,
        tuple(own.values()),
        tuple(item for item in view.owned(uid, CONTROLLER_REVISIONS) if controlled_by(item, uid)),
        frozenset(item for item in names if item not in own and view.get(PODS, namespace, item) is not None),
        claims,
        now,
    )


def decide(seen: Snapshot, variant: Variant = "legacy") -> Outcome:
    writes: list[Write] = []
    stateful_set, spec = seen.stateful_set, seen.stateful_set["spec"]
    update = _update_revision(seen, writes)
    recorded = (stateful_set.get("status") or {}).get("currentRevision")
    current = next((item for item in seen.revisions if item["metadata"]["name"] == recorded), update)
    slots: dict[int, Object | None] = dict.fromkeys(_ordinals(spec))
    condemned: list[Object] = []
    for pod in sorted(seen.pods, key=pods.ordinal_of):
        ordinal = pods.ordinal_of(pod)
        if ordinal in slots:
            slots[ordinal] = pod
        else:
            condemned.append(pod)
    settled = _fill(seen, slots, condemned, current, update, writes)
    if settled and _rolls(spec):
        writes += [_delete(pod, "of an old version") for pod in _outdated(seen, slots, update, variant)]
    status = _status(seen, current, update)
    if status != stateful_set.get("status"):
        namespace, name = key_of(stateful_set)
        version = stateful_set["metadata"].get("resourceVersion")
        writes.append(Patch(STATEFUL_SETS, namespace, name, {"status": status}, "pods changed", version, "status"))
    writes += _forgotten(seen, current, update)
    ready = (pod for pod in seen.pods if running_and_ready(pod) and not terminating(pod))
    moments = [at for pod in ready if (at := seen.available_at(pod)) is not None and at > seen.now]
    return Outcome(tuple(writes), min(moments, default=None))


def _rolls(spec: Mapping[str, Any]) -> bool:
    """Whether pods are renewed by the controller. Otherwise currentRevision never follows."""
    return bool((spec.get("updateStrategy") or {}).get("type", "RollingUpdate") == "RollingUpdate")


def _ordinals(spec: Mapping[str, Any]) -> range:
    start = int((spec.get("ordinals") or {}).get("start", 0))
    return range(start, start + int(spec.get("replicas", 1)))


def _update_revision(seen: Snapshot, writes: list[Write]) -> Object:
    """The revision of the template; an equal earlier revision is reused and becomes the newest."""
    stateful_set = seen.stateful_set
    data = {"spec": {"template": {**stateful_set["spec"]["template"], "$patch": "replace"}}}
    equal = newest(item for item in seen.revisions if item["data"] == data)
    if equal is None:
        name = f"{stateful_set['metadata']['name']}-{short_hash(data)}"
        labels = {
            **(stateful_set["spec"]["template"].get("metadata", {}).get("labels") or {}),
            RECORD_HASH: name.rsplit("-", 1)[-1],
        }
        number = next_number(seen.revisions)
        equal = controller_revision(stateful_set, STATEFUL_SETS, name, labels, data, number)
        # The real controller copies the set's annotations to a new revision and does not update them later.
        equal["metadata"]["annotations"] = dict(annotations_of(stateful_set))
        writes.append(Create(CONTROLLER_REVISIONS, equal, "the template changed"))
    elif int(equal["revision"]) != next_number(seen.revisions) - 1:
        namespace, name = key_of(equal)
        number = next_number(seen.revisions)
        writes.append(Patch(CONTROLLER_REVISIONS, namespace, name, {"revision": number}, "the template went back"))
    return equal


def _fill(
    seen: Snapshot,
    slots: Mapping[int, Object | None],
    condemned: list[Object],
    current: Object,
    update: Object,
    writes: list[Write],
) -> bool:
    """Create missing pods and delete surplus ones; False if OrderedReady has to wait for one of them first."""
    spec = seen.stateful_set["spec"]
    ordered = spec.get("podManagementPolicy", "OrderedReady") == "OrderedReady"
    held = _ordinals(spec).start + _partition(spec)
    for ordinal, pod in slots.items():
        if pod is None:
            writes += _made(seen, current if ordinal < held else update, ordinal)
        elif (pod.get("status") or {}).get("phase") in ("Failed", "Succeeded") and not terminating(pod):
            writes.append(_delete(pod, "it has ended"))
        if ordered and not seen.available(pod):
            return False
    broken = next((pod for pod in condemned if not seen.available(pod)), None)
    for pod in reversed(condemned):
        if ordered and not seen.available(pod) and pod is not broken:
            # It waits for all before it, even for one that never gets ready.
            return False
        if not terminating(pod):
            writes += _claims_given_to(pod, seen)
            writes.append(_delete(pod, "beyond the wanted replicas"))
        if ordered:
            return False
    return True


def _made(seen: Snapshot, revision: Object, ordinal: int) -> list[Write]:
    stateful_set = seen.stateful_set
    body = pods.pod(stateful_set, revision, ordinal)
    if body["metadata"]["name"] in seen.occupied:
        return []  # the deletion of the other pod triggers the next pass
    claims = [
        pods.claim(stateful_set, template, body["metadata"]["name"])
        for template in stateful_set["spec"].get("volumeClaimTemplates") or ()
    ]
    return [
        *(
            Create(PERSISTENT_VOLUME_CLAIMS, claim, f"of pod {body['metadata']['name']}")
            for claim in claims
            if claim["metadata"]["name"] not in seen.claims
        ),
        Create(PODS, body, f"ordinal {ordinal} is missing"),
    ]


def _claims_given_to(pod: Object, seen: Snapshot) -> list[Write]:
    """With whenScaled Delete, own the claims of a surplus pod by that pod, so that they are deleted with it."""
    spec, namespace = seen.stateful_set["spec"], seen.stateful_set["metadata"]["namespace"]
    if (spec.get("persistentVolumeClaimRetentionPolicy") or {}).get("whenScaled") != "Delete":
        return []
    names = [pods.claim_name(template, pod["metadata"]["name"]) for template in spec.get("volumeClaimTemplates") or ()]
    owner = {**owner_reference(PODS, pod), "controller": False, "blockOwnerDeletion": False}
    body = {"metadata": {"ownerReferences": [owner]}}
    found = [name for name in names if name in seen.claims]
    return [Patch(PERSISTENT_VOLUME_CLAIMS, namespace, name, body, "goes with its pod") for name in found]


def _delete(pod: Object, reason: str) -> Delete:
    namespace, name = key_of(pod)
    return Delete(PODS, namespace, name, pod["metadata"]["uid"], reason)


def _partition(spec: Mapping[str, Any]) -> int:
    return int(((spec.get("updateStrategy") or {}).get("rollingUpdate") or {}).get("partition", 0))


def _outdated(seen: Snapshot, slots: Mapping[int, Object | None], update: Object, variant: Variant) -> list[Object]:
    """Pods to delete now so that they are recreated at the update revision."""
    spec = seen.stateful_set["spec"]
    start = _ordinals(spec).start
    targets = [pod for ordinal, pod in slots.items() if ordinal - start >= _partition(spec)][::-1]
    wanted = update["metadata"]["name"]
    if variant == "legacy":
        for pod in targets:
            if pod is not None and pods.revision_of(pod) != wanted and not terminating(pod):
                return [pod]
            if not seen.available(pod):
                return []
        return []
    stale = [pod for pod in targets if pod is not None and pods.revision_of(pod) != wanted and not terminating(pod)]
    broken = [pod for pod in stale if not seen.available(pod)]
    unavailable = sum(not seen.available(pod) for pod in slots.values())
    budget = max(0, _max_unavailable(spec) - unavailable)
    return [*broken, *[pod for pod in stale if seen.available(pod)][:budget]]


def _max_unavailable(spec: Mapping[str, Any]) -> int:
    value = ((spec.get("updateStrategy") or {}).get("rollingUpdate") or {}).get("maxUnavailable", 1)
    if isinstance(value, str):
        return max(1, math.floor(int(value.removesuffix("%")) * int(spec.get("replicas", 1)) / 100))
    return int(value)


def _status(seen: Snapshot, current: Object, update: Object) -> dict[str, Any]:
    metadata, spec = seen.stateful_set["metadata"], seen.stateful_set["spec"]
    replicas = int(spec.get("replicas", 1))
    alive = [pod for pod in seen.pods if not terminating(pod)]
    ready = sum(running_and_ready(pod) for pod in seen.pods)
    current_name, update_name = current["metadata"]["name"], update["metadata"]["name"]
    updated = sum(pods.revision_of(pod) == update_name for pod in alive)
    if _rolls(spec) and updated == ready == len(seen.pods) == replicas:
        current_name = update_name
    return {
        "observedGeneration": metadata["generation"],
        "replicas": len(seen.pods),
        "readyReplicas": ready,
        "availableReplicas": sum(map(seen.counted, seen.pods)),
        "currentReplicas": sum(pods.revision_of(pod) == current_name for pod in alive),
        "updatedReplicas": updated,
        "currentRevision": current_name,
        "updateRevision": update_name,
        "collisionCount": 0,
    }


def _forgotten(seen: Snapshot, current: Object, update: Object) -> list[Write]:
    """Unused ControllerRevisions beyond revisionHistoryLimit, oldest first."""
    in_use = {current["metadata"]["name"], update["metadata"]["name"], *map(pods.revision_of, seen.pods)}
    idle = sorted(
        (item for item in seen.revisions if item["metadata"]["name"] not in in_use), key=lambda item: item["revision"]
    )
    limit = int(seen.stateful_set["spec"].get("revisionHistoryLimit", 10))
    return [
        Delete(CONTROLLER_REVISIONS, *key_of(item), item["metadata"]["uid"], "beyond revisionHistoryLimit")
        for item in idle[: max(0, len(idle) - limit)]
    ]
