"""Job (batch/v1), with the members that say how it ended."""

from __future__ import annotations

from rollout_lws.objects.meta import Condition, Meta, Struct

#: Label of a Job's pods: the Job's name (Kubernetes 1.27 and newer).
JOB_NAME = "batch.kubernetes.io/job-name"
#: Annotation of a Job that was made from a CronJob by hand, as ``kubectl create job --from`` sets it.
INSTANTIATE = "cronjob.kubernetes.io/instantiate"


class JobSpec(Struct, frozen=True):
    suspend: bool = False


class JobStatus(Struct, frozen=True):
    conditions: tuple[Condition, ...] = ()


class Job(Struct, frozen=True):
    metadata: Meta
    spec: JobSpec = JobSpec()
    status: JobStatus = JobStatus()

    @property
    def is_complete(self) -> bool:
        return self._true("Complete") is not None

    @property
    def failed(self) -> Condition | None:
        """Why it has failed for good; None while it has not. Its pods may still be ending."""
        return self._true("Failed") or self._true("FailureTarget")

    @property
    def has_ended(self) -> bool:
        """Whether no pod of it runs any more, or will."""
        return self.is_complete or self._true("Failed") is not None

    def _true(self, kind: str) -> Condition | None:
        return next((each for each in self.status.conditions if (each.type, each.status) == (kind, "True")), None)
