"""Kueue's Workload and AdmissionCheck (v1beta1 and v1beta2), as far as they say what a group's admission waits for.

Read only. One Workload a group of a LeaderWorkerSet; it is owned by the LeaderWorkerSet and bears the group's index.
"""

from __future__ import annotations

from datetime import datetime

from rollout_lws.objects.meta import Condition, Meta, Struct

PREFIX = "kueue.x-k8s.io/"
#: Label of an LWS that Kueue queues.
QUEUE_NAME = PREFIX + "queue-name"
#: Label of an object that MultiKueue has copied into a worker cluster.
ORIGIN = PREFIX + "multikueue-origin"
#: Label of a Workload: UID of what it is for.
JOB_UID = PREFIX + "job-uid"
#: Annotation of a Workload: index of its group.
GROUP_INDEX = PREFIX + "component-workload-index"
#: controllerName of the AdmissionChecks that dispatch to other clusters.
MULTIKUEUE = PREFIX + "multikueue"


class CheckState(Struct, frozen=True):
    """One admission check of a Workload; ``state`` is Pending, Ready, Retry or Rejected."""

    name: str = ""
    state: str = ""
    message: str = ""


class RequeueState(Struct, frozen=True):
    requeue_at: datetime | None = None


class WorkloadSpec(Struct, frozen=True):
    active: bool | None = None
    """None means true."""


class WorkloadStatus(Struct, frozen=True):
    conditions: tuple[Condition, ...] | None = None
    admission_checks: tuple[CheckState, ...] | None = None
    requeue_state: RequeueState | None = None
    cluster_name: str | None = None
    """Worker cluster to which MultiKueue has dispatched it."""
    nominated_cluster_names: tuple[str, ...] | None = None
    """Worker clusters from which MultiKueue is choosing."""


class Workload(Struct, frozen=True):
    metadata: Meta
    spec: WorkloadSpec = WorkloadSpec()
    status: WorkloadStatus = WorkloadStatus()

    def condition(self, kind: str) -> Condition | None:
        return next((each for each in self.status.conditions or () if each.type == kind), None)

    def is_true(self, kind: str) -> bool:
        found = self.condition(kind)
        return found is not None and found.status == "True"

    @property
    def checks(self) -> tuple[CheckState, ...]:
        return self.status.admission_checks or ()


class AdmissionCheckSpec(Struct, frozen=True):
    controller_name: str = ""


class AdmissionCheck(Struct, frozen=True):
    metadata: Meta
    spec: AdmissionCheckSpec = AdmissionCheckSpec()
