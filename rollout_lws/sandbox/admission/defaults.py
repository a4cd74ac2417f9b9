"""Defaults of built-in kinds, limited to those that clients and controllers rely on; other fields stay as sent.

Each function returns the same object or a new one; none changes its argument.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rollout_lws.objects import resources as known
from rollout_lws.objects.resources import Resource

Object = dict[str, Any]

#: The initial condition of a pod with scheduling gates; the API server does not remove it with the gates.
_GATED: Object = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "SchedulingGated",
    "message": "Scheduling is blocked due to non-empty scheduling gates",
}


def _container(container: Object) -> Object:
    image = str(container.get("image", ""))
    latest = image.rpartition("/")[2].partition(":")[2] in ("", "latest") and "@" not in image
    filled = {
        "imagePullPolicy": "Always" if latest else "IfNotPresent",
        "resources": {},
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        **container,
    }
    if "ports" in container:
        filled["ports"] = [{"protocol": "TCP", **port} for port in container["ports"] or ()]
    resources = filled["resources"] or {}
    if limits := resources.get("limits"):
        filled["resources"] = {**resources, "requests": {**limits, **(resources.get("requests") or {})}}
    return filled


def pod_spec(spec: Object) -> Object:
    filled = {
        "restartPolicy": "Always",
        "dnsPolicy": "ClusterFirst",
        "schedulerName": "default-scheduler",
        "securityContext": {},
        "terminationGracePeriodSeconds": 30,
        **spec,
    }
    for containers in ("containers", "initContainers"):
        if spec.get(containers):
            filled[containers] = [_container(container) for container in spec[containers]]
    return filled


def _template(template: Object) -> Object:
    return {**template, "spec": pod_spec(template.get("spec") or {})}


def _pod(pod: Object) -> Object:
    spec = pod_spec(pod.get("spec") or {})
    spec.setdefault("enableServiceLinks", True)
    spec.setdefault("serviceAccountName", "default")
    spec.setdefault("serviceAccount", spec["serviceAccountName"])
    status: Object = {"phase": "Pending", **(pod.get("status") or {})}
    if spec.get("schedulingGates") and not status.get("conditions"):
        status["conditions"] = [dict(_GATED)]
    return {**pod, "spec": spec, "status": status}


def _service(service: Object) -> Object:
    spec: Object = {"type": "ClusterIP", "sessionAffinity": "None", "internalTrafficPolicy": "Cluster"}
    spec |= service.get("spec") or {}
    if "ports" in spec:
        spec["ports"] = [{"protocol": "TCP", "targetPort": port.get("port"), **port} for port in (spec["ports"] or ())]
    return {**service, "spec": spec, "status": service.get("status") or {"loadBalancer": {}}}


def _claim(claim: Object) -> Object:
    spec = {"volumeMode": "Filesystem", **(claim.get("spec") or {})}
    return {**claim, "spec": spec, "status": {"phase": "Pending", **(claim.get("status") or {})}}


def _stateful_set(stateful_set: Object) -> Object:
    given = stateful_set.get("spec") or {}
    spec = {
        "replicas": 1,
        "podManagementPolicy": "OrderedReady",
        "revisionHistoryLimit": 10,
        "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
        **given,
        "template": _template(given.get("template") or {}),
        "updateStrategy": {"type": "RollingUpdate", **(given.get("updateStrategy") or {})},
    }
    if spec["updateStrategy"]["type"] == "RollingUpdate":
        rolling = spec["updateStrategy"].get("rollingUpdate") or {}
        spec["updateStrategy"]["rollingUpdate"] = {"partition": 0, **rolling}
    if claims := given.get("volumeClaimTemplates"):
        spec["volumeClaimTemplates"] = [
            {"apiVersion": "v1", "kind": "PersistentVolumeClaim", **_claim(claim)} for claim in claims
        ]
    return {**stateful_set, "spec": spec, "status": stateful_set.get("status") or {"replicas": 0}}


def _deployment(deployment: Object) -> Object:
    given = deployment.get("spec") or {}
    spec = {
        "replicas": 1,
        "revisionHistoryLimit": 10,
        "progressDeadlineSeconds": 600,
        **given,
        "strategy": {"type": "RollingUpdate", **(given.get("strategy") or {})},
        "template": _template(given.get("template") or {}),
    }
    return {**deployment, "spec": spec}


def _job_spec(given: Object) -> Object:
    defaults = {"parallelism": 1, "completions": 1, "backoffLimit": 6, "suspend": False}
    return {**defaults, **given, "template": _template(given.get("template") or {})}


def _job(job: Object) -> Object:
    return {**job, "spec": _job_spec(job.get("spec") or {})}


def _cron_job(cron_job: Object) -> Object:
    given = cron_job.get("spec") or {}
    template = given.get("jobTemplate") or {}
    job = template.get("spec") or {}
    spec = {
        "concurrencyPolicy": "Allow",
        "suspend": False,
        "successfulJobsHistoryLimit": 3,
        "failedJobsHistoryLimit": 1,
        **given,
        # Of the Job itself nothing is filled in before it is made.
        "jobTemplate": {**template, "spec": {**job, "template": _template(job.get("template") or {})}},
    }
    return {**cron_job, "spec": spec}


def _namespace(namespace: Object) -> Object:
    labels = {
        **(namespace["metadata"].get("labels") or {}),
        "kubernetes.io/metadata.name": namespace["metadata"]["name"],
    }
    return {
        **namespace,
        "metadata": {**namespace["metadata"], "labels": labels},
        "spec": {"finalizers": ["kubernetes"], **(namespace.get("spec") or {})},
        "status": {"phase": "Active", **(namespace.get("status") or {})},
    }


def _autoscaler(autoscaler: Object) -> Object:
    return {**autoscaler, "spec": {"minReplicas": 1, **(autoscaler.get("spec") or {})}}


def _node(node: Object) -> Object:
    return {**node, "spec": node.get("spec") or {}, "status": node.get("status") or {}}


def _secret(secret: Object) -> Object:
    return {"type": "Opaque", **secret}


_BY_RESOURCE: dict[Resource, Callable[[Object], Object]] = {
    known.PODS: _pod,
    known.SERVICES: _service,
    known.PERSISTENT_VOLUME_CLAIMS: _claim,
    known.STATEFUL_SETS: _stateful_set,
    known.JOBS: _job,
    known.CRON_JOBS: _cron_job,
    known.NAMESPACES: _namespace,
    known.SECRETS: _secret,
    known.NODES: _node,
    known.DEPLOYMENTS: _deployment,
    known.HORIZONTAL_POD_AUTOSCALERS: _autoscaler,
}


def fill(resource: Resource, obj: Object) -> Object:
    """``obj`` with the defaults of its kind."""
    function = _BY_RESOURCE.get(resource)
    return obj if function is None else function(obj)
