"""The LeaderWorkerSet controller: one leader StatefulSet per LWS, its partition, revisions, status and Service.

A pass writes in the same order as the real controller, because clients can observe the states between two writes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from rollout_lws.errors import ApiError
from rollout_lws.objects.resources import (
    CONTROLLER_REVISIONS,
    DEPLOYMENTS,
    LEADER_WORKER_SETS,
    LWS_GROUP_INDEX,
    LWS_NAME,
    LWS_REVISION,
    LWS_WORKER_INDEX,
    PODS,
    SERVICES,
    STATEFUL_SETS,
)
from rollout_lws.objects.writes import Create, Delete, Patch, Replace, Write
from rollout_lws.sandbox.behaviours.base import (
    NOTHING,
    Change,
    Key,
    Object,
    Outcome,
    View,
    controlled_by,
    controller_of,
    key_of,
    labels_of,
    running_and_ready,
    terminating,
)
from rollout_lws.sandbox.behaviours.events import event
from rollout_lws.sandbox.behaviours.lws import hash_identity, objects, restarts
from rollout_lws.sandbox.behaviours.lws import status as lws_status
from rollout_lws.sandbox.behaviours.lws.hash_identity import is_hash
from rollout_lws.sandbox.behaviours.lws.partition import GroupState, Leaders, Strategy, partition_and_replicas
from rollout_lws.sandbox.behaviours.revisions import newest, next_number

_REPORTER = "leaderworkerset"


@dataclass(frozen=True, slots=True)
class Group:
    """A leader pod and its worker StatefulSet, None if there is none."""

    ordinal: int
    leader: Object
    workers: Object | None


@dataclass(frozen=True, slots=True)
class Snapshot:
    lws: Object
    leader_set: Object | None
    revisions: tuple[Object, ...]
    groups: tuple[Group, ...]
    has_service: bool


class LeaderWorkerSets:
    """Reconciles LeaderWorkerSets; triggered by them, their Services and labelled StatefulSets, never by pods."""

    name = "leaderworkerset"

    def wakes(self, change: Change, view: View) -> Iterable[Key]:  # noqa: ARG002 (the change is enough)
        if change.resource == LEADER_WORKER_SETS:
            return (key_of(change.object),)
        if change.resource in (STATEFUL_SETS, DEPLOYMENTS):
            workload = labels_of(change.object).get(LWS_NAME)
            return ((change.object["metadata"]["namespace"], workload),) if workload else ()
        if change.resource == SERVICES:
            owner = controller_of(change.object)
            if owner and owner["kind"] == LEADER_WORKER_SETS.kind:
                return ((change.object["metadata"]["namespace"], owner["name"]),)
        return ()

    def decide(self, key: Key, view: View, now: float) -> Outcome:
        snapshot = observe(view, *key)
        return decide(snapshot, now) if snapshot else NOTHING

    def complaint(self, key: Key, view: View, write: Write, error: ApiError, now: float) -> Write | None:
        """The FailedCreate or FailedUpdate event on the LeaderWorkerSet."""
        lws = view.get(LEADER_WORKER_SETS, *key)
        if lws is None:
            return None
        reason = "FailedCreate" if isinstance(write, Create) else "FailedUpdate"
        action = reason.removeprefix("Failed")
        return event(LEADER_WORKER_SETS, lws, now, reason, str(error), reporter=_REPORTER, action=action, warning=True)


def observe(view: View, namespace: str, name: str) -> Snapshot | None:
    lws = view.get(LEADER_WORKER_SETS, namespace, name)
    if lws is None or terminating(lws):
        return None
    if is_hash(lws):
        return _observe_hash(view, lws)
    uid = lws["metadata"]["uid"]
    leaders = view.select(PODS, namespace, {LWS_NAME: name, LWS_WORKER_INDEX: "0"})
    return Snapshot(
        lws,
        view.get(STATEFUL_SETS, namespace, name),
        tuple(item for item in view.owned(uid, CONTROLLER_REVISIONS) if controlled_by(item, uid)),
        tuple(
            Group(
                int(labels_of(leader)[LWS_GROUP_INDEX]),
                leader,
                view.get(STATEFUL_SETS, namespace, leader["metadata"]["name"]),
            )
            for leader in leaders
            if labels_of(leader).get(LWS_GROUP_INDEX, "").isdigit()
        ),
        view.get(SERVICES, namespace, name) is not None,
    )


def _observe_hash(view: View, lws: Object) -> Snapshot:
    """With the Deployment in the place of the leader StatefulSet."""
    key, uid = key_of(lws), lws["metadata"]["uid"]
    revisions = tuple(item for item in view.owned(uid, CONTROLLER_REVISIONS) if controlled_by(item, uid))
    return Snapshot(lws, view.get(DEPLOYMENTS, *key), revisions, (), view.get(SERVICES, *key) is not None)


def _decide_hash(seen: Snapshot, now: float) -> Outcome:
    lws, live = seen.lws, seen.leader_set
    writes: list[Write] = []
    revision, _ = _revision(seen, now, writes)
    key = labels_of(revision)[LWS_REVISION]
    desired = objects.leader_deployment(lws, key)
    if live is None:
        writes.append(Create(DEPLOYMENTS, desired, "the LeaderWorkerSet's leaders"))
        name = desired["metadata"]["name"]
        writes.append(_told(lws, now, "GroupsProgressing", f"Created leader deployment {name}", "Create"))
    elif not objects.already_applied(desired, live):
        writes.append(Replace(DEPLOYMENTS, objects.applied(desired, live), "apply the LeaderWorkerSet's spec"))
    if lws["spec"]["networkConfig"]["subdomainPolicy"] == "Shared" and not seen.has_service:
        writes.append(Create(SERVICES, objects.shared_service(lws), "headless Service of all groups"))
    counts = hash_identity.counts(live)
    status = lws_status.status_of_counts(lws, counts, now)
    if status != lws.get("status"):
        writes.append(_status_patch(lws, status))
    acted = live is not None and labels_of(live).get(LWS_REVISION) == key
    if acted and set(counts.values()) == {int(lws["spec"]["replicas"])}:
        writes += [_forget(old) for old in seen.revisions if labels_of(old).get(LWS_REVISION) != key]
    return Outcome(tuple(writes))


def decide(seen: Snapshot, now: float) -> Outcome:
    if is_hash(seen.lws):
        return _decide_hash(seen, now)
    lws, leader_set = seen.lws, seen.leader_set
    if leader_set is not None and terminating(leader_set):
        return Outcome(wake_at=now + 5.0)  # its deletion triggers a pass earlier
    writes: list[Write] = []
    revision, template_updated = _revision(seen, now, writes)
    key = labels_of(revision)[LWS_REVISION]
    strategy = Strategy.of(lws["spec"])
    states = {group.ordinal: _state(group, lws, key) for group in seen.groups}
    leaders = _leaders(leader_set)
    row = [
        states.get(ordinal, GroupState())
        for ordinal in range(max(strategy.replicas, leaders.replicas if leaders else 0))
    ]
    partition, replicas = partition_and_replicas(strategy, leaders, row, template_updated)
    desired = objects.leader_set(lws, key, partition, replicas, strategy)
    _apply(seen, desired, template_updated, now, writes)
    if lws["spec"]["networkConfig"]["subdomainPolicy"] == "Shared" and not seen.has_service:
        writes.append(Create(SERVICES, objects.shared_service(lws), "headless Service of all groups"))
    size_one = int(lws["spec"]["leaderWorkerTemplate"]["size"]) == 1
    present = {group.ordinal: states[group.ordinal] for group in seen.groups if size_one or group.workers is not None}
    existing = int(((leader_set or {}).get("status") or {}).get("replicas", 0))
    spent = {group.ordinal for group in seen.groups if restarts.exhausted(group.leader)}
    status = lws_status.status(lws, present, spent, existing, strategy.partition, now)
    if status != lws.get("status"):
        writes.append(_status_patch(lws, status))
        if told := lws_status.news(lws, present, spent, strategy.partition, status):
            writes.append(_told(lws, now, *told))
    if strategy.partition == 0 and all(group.done for group in row[: strategy.replicas]):
        writes += [_forget(old) for old in seen.revisions if labels_of(old).get(LWS_REVISION) != key]
        writes += restarts.outdated(lws, key)
    return Outcome(tuple(writes))


def _revision(seen: Snapshot, now: float, writes: list[Write]) -> tuple[Object, bool]:
    """The revision to apply and whether the template changed in this pass; a new revision is added to ``writes``."""
    lws = seen.lws
    data = objects.revision_data(lws["spec"])
    leader_set = seen.leader_set
    applied = labels_of(leader_set).get(LWS_REVISION) if leader_set is not None else None
    if applied is None:
        applied = objects.revision_key(data)
    current = newest(item for item in seen.revisions if labels_of(item).get(LWS_REVISION) == applied)
    number = next_number(seen.revisions)
    if current is None:
        current = objects.revision(lws, applied, data, number)
        writes.append(Create(CONTROLLER_REVISIONS, current, "the version in the spec has no record"))
        whose = "for a newly created" if leader_set is None else "for existing"
        kind = "revision" if leader_set is None else "missing revision"
        note = f"Creating {kind} with key {applied} {whose} LeaderWorkerSet"
        writes.append(_told(lws, now, "CreatingRevision", note, "Create"))
        number += 1
    if leader_set is None or current["data"] == data:
        return current, False
    key = objects.revision_key(data)
    candidate = objects.revision(lws, key, data, number)
    writes.append(Create(CONTROLLER_REVISIONS, candidate, "the template changed"))
    note = f"Creating revision with key {key} for updated LWS"
    writes.append(_told(lws, now, "CreatingRevision", note, "Create"))
    return candidate, True


def _state(group: Group, lws: Object, key: str) -> GroupState:
    ready = running_and_ready(group.leader)
    updated = labels_of(group.leader).get(LWS_REVISION) == key
    if int(lws["spec"]["leaderWorkerTemplate"]["size"]) == 1:
        return GroupState(ready, updated)
    if group.workers is None:
        return GroupState()
    status = group.workers.get("status") or {}
    complete = int(group.workers["spec"]["replicas"]) == int(status.get("availableReplicas", 0))
    settled = status.get("currentRevision") == status.get("updateRevision")
    return GroupState(
        ready and complete and settled,
        updated and labels_of(group.workers).get(LWS_REVISION) == key,
    )


def _leaders(leader_set: Object | None) -> Leaders | None:
    if leader_set is None:
        return None
    spec, annotations = leader_set["spec"], leader_set["metadata"].get("annotations") or {}
    rolling = (spec.get("updateStrategy") or {}).get("rollingUpdate") or {}
    return Leaders(int(spec["replicas"]), int(rolling.get("partition", 0)), int(annotations.get(objects.REPLICAS, -1)))


def _apply(seen: Snapshot, desired: Mapping[str, Any], template_updated: bool, now: float, writes: list[Write]) -> None:
    """Create or update the leader StatefulSet, taking its fields over from other managers, and record an event."""
    live = seen.leader_set
    if live is None:
        writes.append(Create(STATEFUL_SETS, desired, "the LeaderWorkerSet's leaders"))
        note = f"Created leader statefulset {desired['metadata']['name']}"
        writes.append(_told(seen.lws, now, "GroupsProgressing", note, "Create"))
        return
    if objects.already_applied(desired, live):
        return
    writes.append(Replace(STATEFUL_SETS, objects.applied(desired, live), "apply the LeaderWorkerSet's spec"))
    before = _leaders(live)
    partition = int(desired["spec"]["updateStrategy"]["rollingUpdate"]["partition"])
    if before is None or template_updated:
        return
    if partition != before.partition:
        # The real controller's text: it names groups that do not exist, and an update when the update stops.
        last = before.partition - 1
        several = f"Updating replicas {partition} to {last} (inclusive)"
        note = f"Updating replica {partition}" if partition == last else several
        writes.append(_told(seen.lws, now, "GroupsUpdating", note, "Update"))
    replicas, name = int(desired["spec"]["replicas"]), desired["metadata"]["name"]
    if int(seen.lws["spec"]["replicas"]) <= replicas < before.replicas:
        last = before.replicas - 1
        several = f"deleting surge replicas from {name}-{replicas} to {name}-{last}"
        note = f"deleting surge replica {name}-{replicas}" if replicas == last else several
        writes.append(_told(seen.lws, now, "GroupsProgressing", note, "Delete"))


def _told(lws: Object, now: float, reason: str, note: str, action: str) -> Create:
    return event(LEADER_WORKER_SETS, lws, now, reason, note, reporter=_REPORTER, action=action)


def _status_patch(lws: Object, status: Mapping[str, Any]) -> Patch:
    namespace, name = key_of(lws)
    version = lws["metadata"].get("resourceVersion")
    return Patch(LEADER_WORKER_SETS, namespace, name, {"status": status}, "groups changed", version, "status")


def _forget(revision: Object) -> Delete:
    namespace, name = key_of(revision)
    return Delete(CONTROLLER_REVISIONS, namespace, name, revision["metadata"]["uid"], "no group is of this version")
