"""BatchRelease: capacity on record, exactly as Kruise's v1beta1 has it, counted in groups."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from rollout_lws.api.base import Metadata, Model, Time
from rollout_lws.api.rollout_spec import IntOrPercent, MetadataPatch, WorkloadRef


class ReleaseBatch(Model):
    """The groups of one step."""

    canary_replicas: IntOrPercent
    """Groups of the new version from this batch on."""


class ReleasePlan(Model):
    """How many groups of the new version there are to be, batch by batch."""

    batches: Annotated[tuple[ReleaseBatch, ...], Field(max_length=50)] = ()
    """One a step of the Rollout, in order."""
    batch_partition: int | None = None
    """0-based highest batch that may run; absent means promote."""
    rollout_id: Annotated[str | None, Field(alias="rolloutID", max_length=253)] = None
    """Id of the release, put on leader pods."""
    failure_threshold: IntOrPercent | None = None
    """Groups of a batch that may be not ready."""
    finalizing_policy: Annotated[str, Field(max_length=63)] | None = None
    """WaitResume or Immediate."""
    patch_pod_template_metadata: MetadataPatch | None = None
    """Labels and annotations for the canary's leader template."""
    rolling_style: Annotated[str, Field(max_length=63)] | None = None
    """Canary, Partition or BlueGreen."""
    enable_extra_workload_for_canary: bool | None = None
    """Whether a second LWS makes the capacity."""


class BatchReleaseSpec(Model):
    """What is wanted."""

    always: ClassVar[frozenset[str]] = frozenset({"workloadRef", "releasePlan"})

    workload_ref: WorkloadRef
    """The workload."""
    release_plan: ReleasePlan = ReleasePlan()
    """What is wanted."""


class BatchReleaseCanaryStatus(Model):
    """How far the batch is. Counts are groups."""

    always: ClassVar[frozenset[str]] = frozenset({"currentBatch"})

    batch_state: str | None = None
    """Upgrading, Verifying or Ready."""
    current_batch: int = 0
    """0-based batch."""
    batch_ready_time: Time | None = None
    """When it became ready."""
    updated_replicas: int | None = None
    """Groups of the new version."""
    updated_ready_replicas: int | None = None
    """Of these, ready."""
    no_need_update_replicas: int | None = None
    """Kruise's count for rollbacks in batches; never set here."""


class BatchReleaseStatus(Model):
    """What is there."""

    phase: str | None = None
    """Preparing, Progressing, Finalizing or Completed."""
    message: str | None = None
    """One sentence about now."""
    stable_revision: str | None = None
    """LWS's revision of the stable version."""
    update_revision: str | None = None
    """LWS's revision of the version being released."""
    observed_generation: int | None = None
    """Generation of this object that was acted on."""
    observed_rollout_id: Annotated[str | None, Field(alias="observedRolloutID")] = None
    """Id of the release that was acted on."""
    observed_workload_replicas: int | None = None
    """Replicas of the LWS."""
    observed_release_plan_hash: str | None = None
    """Hash of the plan that was acted on, its batchPartition apart."""
    collision_count: int | None = None
    """Kruise's; never set here."""
    canary_status: BatchReleaseCanaryStatus | None = None
    """How far the batch is."""


class BatchRelease(Model):
    """Capacity of one release on record: spec says what is wanted, status what is there."""

    metadata: Metadata = Metadata()
    """Standard metadata."""
    spec: BatchReleaseSpec
    """What is wanted."""
    status: BatchReleaseStatus | None = None
    """What is there."""
