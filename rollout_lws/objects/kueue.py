"""Kueue's Workload and AdmissionCheck (v1beta1 and v1beta2): what a group's admission waits for.

Read only. Each group of a LeaderWorkerSet has one Workload, which the LeaderWorkerSet owns, with the group's index.
"""

from __future__ import annotations

from datetime import datetime

from rollout_lws.objects.meta import Condition, Meta, Struct

PREFIX = "kueue.x-k8s.io/"
#: Label of an LWS that Kueue queues.
QUEUE_NAME = PREFIX + "queue-name"
#: Label of an object that MultiKueue has copied into a worker cluster.
ORIGIN = PREFIX + "multikueue-origin"
#: Label of a Workload: UID of its job.
JOB_UID = PREFIX + "job-uid"
#: Annotation of a Workload: index of its group.
GROUP_INDEX = PREFIX + "component-workload-index"
#: Label of a pod that Kueue has added to the pod group that a Workload admits.
MANAGED = PREFIX + "managed"
#: Eviction reason of a Workload whose pods were not ready within Kueue's own timeout (waitForPodsReady).
PODS_READY_TIMEOUT = "PodsReadyTimeout"
#: controllerName of the AdmissionChecks that dispatch to other clusters.
MULTIKUEUE = PREFIX + "multikueue"


class CheckState(Struct, frozen=True):
    """One admission check of a Workload; ``state`` is Pending, Ready, Retry or Rejected."""

    name: str = ""
    state: str = ""
    message: str = ""


class RequeueState(Struct, frozen=True):
    requeue_at: datetime | None = None


class Evictions(Struct, frozen=True):
    """How often a Workload was evicted for one reason, since its creation."""

    reason: str = ""
    count: int = 0


class SchedulingStats(Struct, frozen=True):
    evictions: tuple[Evictions, ...] = ()


class WorkloadSpec(Struct, frozen=True):
    active: bool | None = None
    """None means true."""


class WorkloadStatus(Struct, frozen=True):
    conditions: tuple[Condition, ...] | None = None
    admission_checks: tuple[CheckState, ...] | None = None
    requeue_state: RequeueState | None = None
    scheduling_stats: SchedulingStats | None = None
    cluster_name: str | None = None
    """Worker cluster to which MultiKueue has dispatched it."""
    nominated_cluster_names: tuple[str, ...] | None = None
    """Worker clusters from which MultiKueue chooses."""


class Workload(Struct, frozen=True):
    metadata: Meta
    spec: WorkloadSpec = WorkloadSpec()
    status: WorkloadStatus = WorkloadStatus()

    def condition(self, kind: str) -> Condition | None:
        return next((each for each in self.status.conditions or () if each.type == kind), None)

    def is_true(self, kind: str) -> bool:
        found = self.condition(kind)
        return found is not None and found.status == "True"

    def evictions(self, reason: str) -> int:
        """How often it was evicted for ``reason``, as far as its status shows."""
        stats = self.status.scheduling_stats
        counted = sum(each.count for each in stats.evictions if each.reason == reason) if stats is not None else 0
        evicted = self.condition("Evicted")
        standing = evicted is not None and (evicted.status, evicted.reason) == ("True", reason)
        return max(counted, int(standing))

    @property
    def checks(self) -> tuple[CheckState, ...]:
        return self.status.admission_checks or ()


class AdmissionCheckSpec(Struct, frozen=True):
    controller_name: str = ""


class AdmissionCheck(Struct, frozen=True):
    metadata: Meta
    spec: AdmissionCheckSpec = AdmissionCheckSpec()
