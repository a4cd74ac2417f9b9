"""The Job controller: pods until as many have succeeded as are wanted, or more have failed than may.

Of a Job's spec it follows completions, parallelism, backoffLimit, activeDeadlineSeconds and suspend. A pod that is
deleted while it runs is made again and not counted. CronJobs are stored only.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from rollout_lws.errors import ApiError
from rollout_lws.objects.jobs import JOB_NAME
from rollout_lws.objects.resources import JOBS, PODS
from rollout_lws.objects.writes import Create, Delete, Patch, Write
from rollout_lws.sandbox.admission.metadata import timestamp
from rollout_lws.sandbox.behaviours.base import (
    NOTHING,
    Change,
    Key,
    Object,
    Outcome,
    View,
    controlled_by,
    controller_of,
    has_condition,
    key_of,
    owner_reference,
    terminating,
)
from rollout_lws.sandbox.behaviours.events import event
from rollout_lws.sandbox.behaviours.revisions import short_hash

_UID = "batch.kubernetes.io/controller-uid"
#: Seconds until a pod that failed is followed by another one; doubled with each failure.
_FIRST_BACK_OFF, _LONGEST_BACK_OFF = 10.0, 600.0


class Jobs:
    """Reconciles Jobs; triggered by them and their pods."""

    name = "job"

    def wakes(self, change: Change, view: View) -> Iterable[Key]:  # noqa: ARG002 (the change is enough)
        if change.resource == JOBS:
            return () if change.deleted else (key_of(change.object),)
        owner = controller_of(change.object) if change.resource == PODS else None
        if owner and owner["kind"] == JOBS.kind:
            return ((change.object["metadata"]["namespace"], owner["name"]),)
        return ()

    def decide(self, key: Key, view: View, now: float) -> Outcome:
        job = view.get(JOBS, *key)
        if job is None or terminating(job) or has_condition(job, "Complete") or has_condition(job, "Failed"):
            return NOTHING
        uid = job["metadata"]["uid"]
        return decide(job, [pod for pod in view.owned(uid, PODS) if controlled_by(pod, uid)], now)

    def complaint(self, key: Key, view: View, write: Write, error: ApiError, now: float) -> Write | None:
        """The FailedCreate event on the Job, with kube-controller-manager's message."""
        job = view.get(JOBS, *key)
        if job is None or not isinstance(write, Create):
            return None
        return event(
            JOBS, job, now, "FailedCreate", f"Error creating: {error}", reporter="job-controller", warning=True
        )


def decide(job: Object, pods: list[Object], now: float) -> Outcome:
    """What the controller does with a Job that has not ended, and its pods."""
    spec, before = job["spec"], job.get("status") or {}
    phases = [(pod.get("status") or {}).get("phase") for pod in pods]
    succeeded, failed = phases.count("Succeeded"), phases.count("Failed")
    active = [pod for pod, phase in zip(pods, phases, strict=True) if phase not in ("Succeeded", "Failed")]
    living = [pod for pod in active if not terminating(pod)]
    suspended = bool(spec.get("suspend"))
    begun = None if suspended else before.get("startTime") or timestamp(now)
    status: dict[str, Any] = {"active": len(living), "succeeded": succeeded, "failed": failed}
    status |= {"startTime": begun} if begun else {}
    conditions = [each for each in before.get("conditions") or () if each["type"] != "Suspended"]
    limit = spec.get("activeDeadlineSeconds")
    due = datetime.fromisoformat(begun).timestamp() + limit if begun and limit is not None else None
    writes: list[Write] = []
    times = [due]
    if succeeded >= spec["completions"]:
        conditions.append(
            _condition("Complete", "CompletionsReached", "Reached expected number of succeeded pods", now)
        )
        status["completionTime"] = timestamp(now)
    elif failed > spec["backoffLimit"]:
        writes += map(_ended, living)
        told = "Job has reached the specified backoff limit"
        conditions.append(_condition("Failed", "BackoffLimitExceeded", told, now))
    elif due is not None and now >= due:
        writes += map(_ended, living)
        told = "Job was active longer than specified deadline"
        conditions.append(_condition("Failed", "DeadlineExceeded", told, now))
    elif suspended:
        writes += map(_ended, living)
        status["active"] = 0
        conditions.append(_condition("Suspended", "JobSuspended", "Job suspended", now, before))
    elif len(active) < min(spec["parallelism"], spec["completions"] - succeeded):
        after = _back_off(pods, failed)
        if after <= now:
            writes.append(Create(PODS, _pod(job, len(pods), now), "another try"))
        times.append(after)
    status["conditions"] = conditions
    if status != before:
        namespace, name = key_of(job)
        version = job["metadata"].get("resourceVersion")
        writes.append(Patch(JOBS, namespace, name, {"status": status}, "its pods changed", version, "status"))
    return Outcome(tuple(writes), min((each for each in times if each is not None and each > now), default=None))


def _back_off(pods: list[Object], failed: int) -> float:
    """When the next pod may be made, in epoch seconds."""
    ends = [
        datetime.fromisoformat(state["terminated"]["finishedAt"]).timestamp()
        for pod in pods
        for container in (pod.get("status") or {}).get("containerStatuses") or ()
        if (state := container.get("state") or {}).get("terminated")
    ]
    if not failed or not ends:
        return 0.0
    return max(ends) + float(min(_FIRST_BACK_OFF * 2 ** min(failed - 1, 10), _LONGEST_BACK_OFF))


def _pod(job: Object, number: int, now: float) -> dict[str, Any]:
    metadata, template = job["metadata"], job["spec"]["template"]
    given = template.get("metadata") or {}
    name, uid = metadata["name"], metadata["uid"]
    own = {_UID: uid, "controller-uid": uid, JOB_NAME: name, "job-name": name}
    return {
        "apiVersion": PODS.api_version,
        "kind": PODS.kind,
        "metadata": {
            **({"annotations": given["annotations"]} if given.get("annotations") else {}),
            "name": f"{name[:57]}-{short_hash([uid, number, now])[:5]}",
            "generateName": f"{name}-",
            "namespace": metadata["namespace"],
            "labels": {**(given.get("labels") or {}), **own},
            "ownerReferences": [owner_reference(JOBS, job)],
        },
        "spec": template["spec"],
    }


def _ended(pod: Object) -> Delete:
    namespace, name = key_of(pod)
    return Delete(PODS, namespace, name, pod["metadata"]["uid"], "its Job has ended or is suspended")


def _condition(kind: str, reason: str, message: str, now: float, before: Object | None = None) -> dict[str, Any]:
    for each in (before or {}).get("conditions") or ():
        if (each["type"], each["status"]) == (kind, "True"):
            return dict(each)
    moment = timestamp(now)
    told = {"reason": reason, "message": message}
    return {"type": kind, "status": "True", "lastProbeTime": moment, "lastTransitionTime": moment, **told}
