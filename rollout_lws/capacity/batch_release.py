"""The BatchRelease: the public, durable record of capacity, in OpenKruise's terms.

Its spec has what is wanted (only a null ``batchPartition`` means promote), its status what exists.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec

from rollout_lws.api import (
    BatchRelease,
    BatchReleaseCanaryStatus,
    BatchReleasePhase,
    BatchReleaseStatus,
    BatchState,
    Rollout,
    batch_releases,
)
from rollout_lws.api.resources import Keys
from rollout_lws.capacity.batches import Batch
from rollout_lws.capacity.table import strategy_of_plan
from rollout_lws.objects.json_patch import merge_patch
from rollout_lws.objects.writes import Create, Delete, Patch, Write


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the record should contain: 0-based ``partition`` (None: promote), the release ID and both revisions."""

    partition: int | None
    rollout_id: str
    stable_revision: str
    update_revision: str
    phase: BatchReleasePhase
    replicas: int


def owner_reference(owner: Rollout | BatchRelease, kind: str, api_version: str) -> dict[str, Any]:
    """A controller owner reference that never blocks the owner's deletion."""
    return {
        "apiVersion": api_version,
        "kind": kind,
        "name": owner.metadata.name,
        "uid": owner.metadata.uid,
        "controller": True,
        "blockOwnerDeletion": False,
    }


def plan(rollout: Rollout, wanted: Wanted) -> dict[str, Any]:
    """spec.releasePlan as JSON; Kruise's tools read every field of it."""
    style = rollout.spec.strategy.style
    if style is None:
        return {}
    strategy = strategy_of_plan(style)
    found: dict[str, Any] = {
        "batches": [{"canaryReplicas": step.replicas} for step in style.steps],
        "batchPartition": wanted.partition,
        "rolloutID": wanted.rollout_id,
        "rollingStyle": strategy.rolling_style,
        "finalizingPolicy": "WaitResume",
    }
    if rollout.spec.strategy.canary:
        found["enableExtraWorkloadForCanary"] = not strategy.one_workload
    if style.failure_threshold is not None:
        found["failureThreshold"] = style.failure_threshold
    patch = style.metadata_patch
    # An empty patch reads back as absent, and would be written again and again.
    if patch is not None and (marks := patch.to_json_dict()):
        found["patchPodTemplateMetadata"] = marks
    return found


def create(rollout: Rollout, wanted: Wanted, keys: Keys, owner: Mapping[str, Any]) -> Create:
    """Creates the BatchRelease of a new release, named like its Rollout."""
    resource = batch_releases(keys.group)
    release_plan = {key: value for key, value in plan(rollout, wanted).items() if value is not None}
    body = {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {
            "name": rollout.metadata.name,
            "namespace": rollout.metadata.namespace,
            "ownerReferences": [dict(owner)],
            "finalizers": [keys.batch_release_finalizer],
        },
        "spec": {"workloadRef": rollout.spec.workload_ref.to_json_dict(), "releasePlan": release_plan},
    }
    return Create(resource, body, "a release begins")


def update_spec(record: BatchRelease, rollout: Rollout, wanted: Wanted, keys: Keys) -> tuple[Write, ...]:
    """The patch that brings the record's plan to what is wanted; () if nothing differs."""
    live = record.spec.release_plan.to_json_dict()
    asked = plan(rollout, wanted)
    changes = {key: value for key, value in asked.items() if live.get(key) != value}
    changes |= {key: None for key in live if key not in asked}
    if not changes:
        return ()
    reason = "promote" if wanted.partition is None else f"batch {wanted.partition + 1}"
    body, meta = {"spec": {"releasePlan": changes}}, record.metadata
    resource = batch_releases(keys.group)
    # Conditional, so that a late write of a former leader fails: this field decides what is created or promoted.
    return (Patch(resource, meta.namespace, meta.name, body, reason, meta.resource_version or None),)


def update_status(
    record: BatchRelease, rollout: Rollout, wanted: Wanted, batch: Batch | None, keys: Keys, now: datetime
) -> tuple[Write, ...]:
    """The status write that reports the state of capacity; () if no change is worth a write."""
    before = record.status or BatchReleaseStatus()
    canary = before.canary_status
    current = wanted.partition if wanted.partition is not None else (canary.current_batch if canary else 0)
    if batch is not None:
        state = (
            BatchState.READY
            if batch.enough
            else BatchState.VERIFYING
            if batch.made >= batch.wanted
            else BatchState.UPGRADING
        )
        since = now
        if canary is not None and canary.batch_state == state and canary.current_batch == current:
            since = canary.batch_ready_time or now
        canary = BatchReleaseCanaryStatus(
            batch_state=state,
            current_batch=current,
            batch_ready_time=since if state == BatchState.READY else None,
            updated_replicas=batch.made,
            updated_ready_replicas=batch.ready,
        )
    elif canary is None:
        canary = BatchReleaseCanaryStatus(batch_state=BatchState.UPGRADING, current_batch=current)
    # batchPartition moves within one plan: the hash is of the user's plan, as in Kruise's tools.
    planned = {key: value for key, value in plan(rollout, wanted).items() if key != "batchPartition"}
    digest = hashlib.sha256(msgspec.json.encode(planned, order="sorted")).hexdigest()
    after = before.model_copy(
        update={
            "phase": wanted.phase,
            "stable_revision": wanted.stable_revision,
            "update_revision": wanted.update_revision,
            "observed_generation": record.metadata.generation,
            "observed_rollout_id": wanted.rollout_id,
            "observed_workload_replicas": wanted.replicas,
            "observed_release_plan_hash": digest,
            "canary_status": canary,
        }
    )
    if significant(after) == significant(before) or _only_began(before, after):
        return ()
    resource = batch_releases(keys.group)
    body = {"status": merge_patch(before.to_json_dict(), after.to_json_dict())}
    meta = record.metadata
    return (
        Patch(
            resource, meta.namespace, meta.name, body, "how far capacity is", meta.resource_version or None, "status"
        ),
    )


def _only_began(before: BatchReleaseStatus, after: BatchReleaseStatus) -> bool:
    """True if the only news is the start of the next batch, which the plan shows already. It is reported when the batch
    is ready; until then observedGeneration says that the status is of the batch before.
    """
    canary, told = after.canary_status, before.observed_generation
    ready = canary is None or canary.batch_state == BatchState.READY
    return not ready and before.phase == after.phase and told is not None and told != after.observed_generation


def significant(status: BatchReleaseStatus) -> dict[str, Any]:
    """The fields of the status whose change is worth a write: counts of groups that only start up can wait."""
    kept = status.model_dump(exclude={"message", "canary_status"})
    canary = status.canary_status
    if canary is not None:
        kept["batch"] = (canary.batch_state == BatchState.READY, canary.current_batch, canary.updated_ready_replicas)
    return kept


def dismiss(record: BatchRelease, keys: Keys) -> tuple[Write, ...]:
    """Drops our finalizer from the record and deletes it; its canary must be gone by then."""
    resource, meta = batch_releases(keys.group), record.metadata
    writes: list[Write] = []
    if keys.batch_release_finalizer in meta.finalizers:
        others = [each for each in meta.finalizers if each != keys.batch_release_finalizer]
        body = {"metadata": {"finalizers": others or None}}
        reason = "nothing depends on this record any more"
        writes.append(Patch(resource, meta.namespace, meta.name, body, reason, meta.resource_version))
    if meta.deletion_timestamp is None:
        writes.append(Delete(resource, meta.namespace, meta.name, meta.uid, "the release is over"))
    return tuple(writes)
