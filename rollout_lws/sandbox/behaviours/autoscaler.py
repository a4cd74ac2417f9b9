"""The HorizontalPodAutoscaler controller, for any kind with a scale; an annotation on the HPA stands for its metric.

Like the real controller it acts with a delay, does not scale a workload with 0 replicas, and cannot scale one without
a number of replicas. Without the annotation it only keeps the replicas within minReplicas and maxReplicas.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from rollout_lws.objects.resources import HORIZONTAL_POD_AUTOSCALERS, Resource
from rollout_lws.objects.writes import Patch
from rollout_lws.sandbox.admission.scaling import NO_REPLICAS
from rollout_lws.sandbox.behaviours.base import (
    NOTHING,
    Change,
    Key,
    Object,
    Outcome,
    View,
    annotations_of,
    key_of,
    terminating,
)
from rollout_lws.sandbox.behaviours.faults import PREFIX

DESIRED = f"{PREFIX}desired-replicas"


class Autoscalers:
    """Reconciles HPAs; triggered by them and by the objects that they scale.

    ``lag`` is the number of seconds between the moment another replica count is desired and the write to the scale
    subresource.
    """

    name = "autoscaler"

    def __init__(self, lag: float) -> None:
        self._lag = lag
        self._since: dict[Key, float] = {}

    def wakes(self, change: Change, view: View) -> Iterable[Key]:
        if change.resource == HORIZONTAL_POD_AUTOSCALERS:
            return (key_of(change.object),)
        if _counts(change.object) != _counts(change.previous):
            return self._scaling(change.resource, change.object, view)
        return ()

    def _scaling(self, resource: Resource, workload: Object, view: View) -> Iterator[Key]:
        namespace, name = key_of(workload)
        for each in view.list(HORIZONTAL_POD_AUTOSCALERS, namespace):
            if _target(each) == (resource, name):
                yield key_of(each)

    def decide(self, key: Key, view: View, now: float) -> Outcome:
        found = view.get(HORIZONTAL_POD_AUTOSCALERS, *key)
        target = _target(found) if found is not None else None
        if found is None or target is None or terminating(found):
            self._since.pop(key, None)
            return NOTHING
        resource, name = target
        workload = view.get(resource, key[0], name)
        why = ""
        if workload is None or terminating(workload):
            why = f'{resource.kind} "{name}" not found'
        elif "replicas" not in workload["spec"]:
            why = NO_REPLICAS
        if workload is None or why:
            self._since.pop(key, None)
            return Outcome(_told(found, {"conditions": [_condition("AbleToScale", "FailedGetScale", why)]}))
        current = int(workload["spec"]["replicas"])
        wanted, problem = _wanted(found, current)
        told = _told(found, _status(workload, wanted, problem))
        if wanted == current:
            self._since.pop(key, None)
            return Outcome(told)
        due = self._since.setdefault(key, now) + self._lag
        if now < due:
            return Outcome(told, wake_at=due)
        scale = {"spec": {"replicas": wanted}}
        return Outcome((*told, Patch(resource, key[0], name, scale, "wanted by its metric", None, "scale")))


def _target(found: Object) -> tuple[Resource, str] | None:
    """What the HPA scales, and its name; None if it does not say. The plural is that of every kind that is scaled."""
    reference = (found.get("spec") or {}).get("scaleTargetRef") or {}
    version, kind, name = (str(reference.get(each, "")) for each in ("apiVersion", "kind", "name"))
    if not (version and kind and name):
        return None
    group, _, version = version.rpartition("/")
    return Resource(group, version, kind, f"{kind.lower()}s"), name


def _counts(workload: Object | None) -> tuple[Any, ...]:
    """The fields of a scaled object that an HPA reads."""
    spec = (workload or {}).get("spec")
    if workload is None or not isinstance(spec, dict):
        return ()
    return spec.get("replicas"), (workload.get("status") or {}).get("replicas"), terminating(workload)


def _wanted(found: Object, current: int) -> tuple[int, str]:
    """The desired replicas, and the error in the annotation."""
    spec = found["spec"]
    low, high = spec.get("minReplicas", 1), spec["maxReplicas"]
    if current == 0 and low > 0:
        return 0, ""
    text, problem = annotations_of(found).get(DESIRED, str(current)), ""
    if not text.isdecimal():
        text, problem = str(current), f'annotation {DESIRED}: "{text}" is not a whole number of groups'
    return max(low, min(int(text), high)), problem


def _status(workload: Object, wanted: int, problem: str) -> dict[str, Any]:
    counted = {
        "currentReplicas": (workload.get("status") or {}).get("replicas", 0),
        "desiredReplicas": wanted,
    }
    return counted | {"conditions": [_condition("ScalingActive", "InvalidMetric", problem)] if problem else None}


def _condition(kind: str, reason: str, message: str) -> dict[str, str]:
    return {"type": kind, "status": "False", "reason": reason, "message": message}


def _told(found: Object, status: dict[str, Any]) -> tuple[Patch, ...]:
    known = found.get("status") or {}
    changed = {member: value for member, value in status.items() if known.get(member) != value}
    if not changed:
        return ()
    namespace, name = key_of(found)
    body = {"status": changed}
    return (Patch(HORIZONTAL_POD_AUTOSCALERS, namespace, name, body, "what it wants", None, "status"),)
