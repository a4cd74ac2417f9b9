"""The Job of a gate, made from a CronJob's template as ``kubectl create job --from`` does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from rollout_lws.api import GateRecord, JobGate, StepGate, rollouts
from rollout_lws.capacity.batch_release import owner_reference
from rollout_lws.objects.jobs import INSTANTIATE
from rollout_lws.objects.resources import JOBS
from rollout_lws.rollout.decision import Endpoint
from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.metrics_endpoints import metrics_of_new, metrics_of_stable
from rollout_lws.targets.version import short_hash

Object = dict[str, Any]

#: As many Jobs as a status remembers; older ones are deleted with the Rollout only.
MOST_JOBS = 64
#: Longest name of a Job: its pods carry it in a label.
NAME_BUDGET = 52
_LONGEST_LABEL = 63
#: The end of a container's log becomes its last words, if it fails without a termination message. The API server fills
#: in File where a CronJob says nothing of it, so that this replaces File, of which it takes nothing away.
_LOGS = "FallbackToLogsOnError"


def job_name(d: Draft, gate: StepGate, record: GateRecord) -> str:
    """Deterministic: a controller that is restarted finds its Job, and a gate that is asked again has another one."""
    since = record.since.isoformat() if record.since is not None else ""
    digest = short_hash("/".join((d.uid, str(d.sub.current_step_index), gate.name, record.hash, since)), 8)
    # Pods of an indexed Job need a name without dots.
    head = f"{d.o.rollout.metadata.name}-{gate.name}".replace(".", "-")[: NAME_BUDGET - len(digest) - 1]
    return f"{head.rstrip('-')}-{digest}"


def from_cron_job(gate: StepGate) -> str:
    """Name of the CronJob from which the Job of such a gate is made."""
    return cast(JobGate, gate.job).from_cron_job


def manifest(d: Draft, gate: StepGate, name: str, cron_job: Mapping[str, Any]) -> Object:
    """The Job ``name``. It is kept when it has ended, so that its logs can be read."""
    template = cron_job["spec"]["jobTemplate"]
    given, rollout = template.get("metadata") or {}, d.o.rollout.metadata
    of = rollout.name[:_LONGEST_LABEL].rstrip("-.")
    spec = {key: value for key, value in template["spec"].items() if key != "ttlSecondsAfterFinished"}
    made = JOBS.manifest(name, rollout.namespace, spec=spec)
    made["metadata"] |= {
        "labels": {**(given.get("labels") or {}), d.keys.gate_of: of, d.keys.gate: gate.name},
        "annotations": {**(given.get("annotations") or {}), INSTANTIATE: "manual"},
        "ownerReferences": [
            owner_reference(d.o.rollout, rollouts(d.keys.group).kind, rollouts(d.keys.group).api_version)
        ],
    }
    pod = spec["template"]
    told = environment(d, gate)
    containers = {
        member: [_told(each, told) for each in pod["spec"][member]]
        for member in ("initContainers", "containers")
        if pod["spec"].get(member)
    }
    spec["template"] = {**pod, "spec": {**pod["spec"], **containers}}
    return made


def environment(d: Draft, gate: StepGate) -> dict[str, str]:
    """What a Job is told of its release; addresses are those of leaders of groups that are ready now."""
    meta, routings = d.o.rollout.metadata, d.strategy.traffic_routings
    # Of a pair it is that of the active side.
    names = d.o.routing.names if d.o.routing is not None else None
    return {
        "ROLLOUT_NAME": meta.name,
        "ROLLOUT_NAMESPACE": meta.namespace,
        "ROLLOUT_RELEASE_ID": d.sub.observed_rollout_id or "",
        "ROLLOUT_STEP": str(d.sub.current_step_index),
        "ROLLOUT_GATE": gate.name,
        "ROLLOUT_NEW_REVISION": d.sub.new_revision,
        "ROLLOUT_STABLE_REVISION": d.stable_revision,
        "ROLLOUT_NEW_ADDRESSES": _addresses(metrics_of_new(d)),
        "ROLLOUT_STABLE_ADDRESSES": _addresses(metrics_of_stable(d)),
        **({"ROLLOUT_SERVICE": names.service if names is not None else routings[0].service} if routings else {}),
    }


def _addresses(of: tuple[Endpoint, ...]) -> str:
    return ",".join(each.address for each in of if each.address)


def _told(container: Object, told: Mapping[str, str]) -> Object:
    """A container with the environment; a variable that the template sets itself stays as it is."""
    own = container.get("env") or []
    known = {each["name"] for each in own}
    # A dollar sign would begin a reference to another variable, the value of a Secret for one.
    added = [{"name": name, "value": value.replace("$", "$$")} for name, value in told.items() if name not in known]
    return {**container, "terminationMessagePolicy": _LOGS, "env": [*added, *own]}
