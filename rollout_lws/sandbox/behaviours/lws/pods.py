"""LWS's pod controller: creates a group's worker StatefulSet for its leader and recreates failed groups."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from rollout_lws.objects.resources import (
    CONTROLLER_REVISIONS,
    LEADER_WORKER_SETS,
    LWS_GROUP_INDEX,
    LWS_NAME,
    LWS_PREFIX,
    LWS_REVISION,
    LWS_WORKER_INDEX,
    PODS,
    SERVICES,
    STATEFUL_SETS,
)
from rollout_lws.objects.writes import Create, Delete, Write
from rollout_lws.sandbox.behaviours.base import (
    NOTHING,
    Change,
    Key,
    Object,
    Outcome,
    View,
    annotations_of,
    controlled_by,
    controller_of,
    has_condition,
    key_of,
    labels_of,
    terminating,
)
from rollout_lws.sandbox.behaviours.events import event
from rollout_lws.sandbox.behaviours.lws import objects, restarts
from rollout_lws.sandbox.behaviours.lws.hash_identity import IDENTITY, admitted, group_ready, is_gated, is_hash
from rollout_lws.sandbox.behaviours.revisions import newest

_RECREATE_AFTER_START = LWS_PREFIX + "experimental-recreate-group-after-start"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One pod and the objects of its group; a leader pod is its own ``leader``."""

    pod: Object
    lws: Object
    leader: Object | None
    group: tuple[Object, ...]
    workers: Object | None
    revision: Object | None
    has_service: bool


class GroupPods:
    """Reconciles the pods of LWSs; a leader also when its worker StatefulSet changes or its revision appears."""

    name = "leaderworkerset-pods"

    def wakes(self, change: Change, view: View) -> Iterable[Key]:
        if change.resource == PODS and change.deleted:
            return [key_of(leader) for leader in _gated(view, change.object)]
        if change.resource == PODS:
            return (key_of(change.object),) if LWS_NAME in labels_of(change.object) else ()
        if change.resource == STATEFUL_SETS:
            owner = controller_of(change.object)
            if owner and owner["kind"] == PODS.kind:
                return ((change.object["metadata"]["namespace"], owner["name"]),)
        if change.resource == CONTROLLER_REVISIONS and change.previous is None:
            labels = labels_of(change.object)
            if LWS_REVISION in labels and _is_lws_revision(change.object):
                namespace = change.object["metadata"]["namespace"]
                wanted = {LWS_NAME: labels[LWS_NAME], LWS_REVISION: labels[LWS_REVISION], LWS_WORKER_INDEX: "0"}
                return [key_of(leader) for leader in view.select(PODS, namespace, wanted)]
        return ()

    def decide(self, key: Key, view: View, now: float) -> Outcome:
        snapshot = observe(view, *key)
        if snapshot is None:
            return NOTHING
        if is_gated(snapshot.pod) and not terminating(snapshot.pod):
            # Nothing of its group is made yet; a pod of the workload that goes gives it another chance.
            return Outcome(admitted(view, snapshot.lws, snapshot.pod))
        return decide(snapshot, now)


def observe(view: View, namespace: str, name: str) -> Snapshot | None:
    pod = view.get(PODS, namespace, name)
    if pod is None:
        return None
    labels = labels_of(pod)
    lws = view.get(LEADER_WORKER_SETS, namespace, labels.get(LWS_NAME, ""))
    if lws is None:
        return None
    leader_name = name if labels.get(LWS_WORKER_INDEX) == "0" else annotations_of(pod).get(objects.LEADER_NAME, "")
    leader = view.get(PODS, namespace, leader_name)
    known = {LWS_NAME: labels[LWS_NAME], LWS_REVISION: labels.get(LWS_REVISION, "")}
    group = {LWS_NAME: labels[LWS_NAME], LWS_GROUP_INDEX: labels.get(LWS_GROUP_INDEX, "")}
    return Snapshot(
        pod,
        lws,
        leader,
        tuple(view.select(PODS, namespace, group)),
        view.get(STATEFUL_SETS, namespace, leader_name),
        newest(item for item in view.select(CONTROLLER_REVISIONS, namespace, known) if _is_lws_revision(item)),
        view.get(SERVICES, namespace, _service_of(leader, leader_name)) is not None,
    )


def _service_of(leader: Object | None, name: str) -> str:
    """Name of the headless Service of one group: the leader's subdomain, its own name where groups have numbers."""
    return str(leader["spec"].get("subdomain") or name) if leader is not None else name


def decide(seen: Snapshot, now: float) -> Outcome:
    ended = restarts.exhausted(seen.pod) and not terminating(seen.pod)
    if ended or _failed(seen):
        return Outcome(_recreate(seen, now))
    if labels_of(seen.pod).get(LWS_WORKER_INDEX) != "0":
        return NOTHING
    lws, leader = seen.lws, seen.pod
    writes: list[Write] = []
    unique = lws["spec"]["networkConfig"]["subdomainPolicy"] == "UniquePerReplica"
    if unique and not seen.has_service:
        writes.append(Create(SERVICES, objects.group_service(lws, leader), "headless Service of one group"))
    if terminating(leader) or int(lws["spec"]["leaderWorkerTemplate"]["size"]) == 1:
        return Outcome(tuple(writes))
    if is_hash(lws):
        writes += group_ready(leader, seen.workers, now)
    if seen.workers is not None:
        return Outcome(tuple(writes))
    # A leader with a readiness gate is not ready before its workers are.
    awaited = "ContainersReady" if is_hash(lws) else "Ready"
    if lws["spec"].get("startupPolicy") == "LeaderReady" and not has_condition(leader, awaited):
        return Outcome(tuple(writes))
    if seen.revision is None:
        return Outcome(tuple(writes))  # its creation triggers the next pass
    body = objects.worker_set(lws, leader, seen.revision["data"]["spec"])
    writes.append(Create(STATEFUL_SETS, body, "the group's workers"))
    note = f"Created worker statefulset for leader pod {leader['metadata']['name']}"
    writes.append(
        event(LEADER_WORKER_SETS, lws, now, "GroupsProgressing", note, reporter="leaderworkerset", action="Create")
    )
    return Outcome(tuple(writes))


def _is_lws_revision(revision: Object) -> bool:
    """The StatefulSets' own ControllerRevisions carry the same labels."""
    owner = controller_of(revision)
    return owner is None or owner["kind"] == LEADER_WORKER_SETS.kind


def _failed(seen: Snapshot) -> bool:
    """Whether this pod's failure recreates its group."""
    policy = seen.lws["spec"]["leaderWorkerTemplate"].get("restartPolicy")
    after_start = policy == "RecreateGroupAfterStart" or (
        policy == "RecreateGroupOnPodRestart" and _RECREATE_AFTER_START in annotations_of(seen.lws)
    )
    if policy not in ("RecreateGroupOnPodRestart", "RecreateGroupAfterStart"):
        return False
    if not terminating(seen.pod) and not _restarted(seen.pod):
        return False
    leader, pod = seen.leader, seen.pod
    if leader is None or terminating(leader):
        return False
    if pod is not leader:
        if labels_of(leader).get(LWS_REVISION) != labels_of(pod).get(LWS_REVISION) or seen.workers is None:
            return False
        workers = seen.workers["metadata"]["uid"]
        if not controlled_by(pod, workers) or not controlled_by(seen.workers, leader["metadata"]["uid"]):
            return False
    if after_start:
        pending = any((item.get("status") or {}).get("phase", "Pending") == "Pending" for item in seen.group)
        return not pending and len(seen.group) >= int(seen.lws["spec"]["leaderWorkerTemplate"]["size"])
    return True


def _gated(view: View, gone: Object) -> Iterable[Object]:
    """Gated leaders of the workload that a pod belonged to."""
    name = labels_of(gone).get(LWS_NAME)
    if name is None or IDENTITY not in annotations_of(gone):
        return ()
    leaders = view.select(PODS, gone["metadata"]["namespace"], {LWS_NAME: name, LWS_WORKER_INDEX: "0"})
    return [pod for pod in leaders if is_gated(pod)]


def _workers(seen: Snapshot) -> list[Object]:
    """The group's pods besides its leader that do not terminate."""
    made = seen.workers["metadata"]["uid"] if seen.workers is not None else ""
    return [pod for pod in seen.group if controlled_by(pod, made) and not terminating(pod)]


def _restarted(pod: Object) -> bool:
    status = pod.get("status") or {}
    if status.get("phase") not in ("Running", "Pending"):
        return False
    statuses = [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]
    return any(int(container.get("restartCount", 0)) > 0 for container in statuses)


def _recreate(seen: Snapshot, now: float) -> tuple[Write, ...]:
    leader = seen.leader
    assert leader is not None
    if restarts.spent(seen.lws, leader):
        return restarts.ended(seen.lws, leader, _workers(seen), now)
    namespace, name = key_of(leader)
    pod, index = seen.pod["metadata"]["name"], labels_of(leader).get(LWS_GROUP_INDEX, "")
    note = f"Worker pod {pod} failed, deleted leader pod {name} to recreate group {index}"
    return (
        *restarts.counted(seen.lws, leader),
        Delete(PODS, namespace, name, leader["metadata"]["uid"], "recreate the group", propagation="Foreground"),
        event(LEADER_WORKER_SETS, seen.lws, now, "RecreateGroup", note, reporter="leaderworkerset", action="Delete"),
    )
