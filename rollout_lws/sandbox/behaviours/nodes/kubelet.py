"""All kubelets in one: bound pods start up, become ready, fail as annotated, and terminate when deleted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from rollout_lws.objects.resources import PODS
from rollout_lws.objects.writes import Delete, Patch
from rollout_lws.sandbox.admission.deletion import FOREGROUND
from rollout_lws.sandbox.admission.metadata import timestamp
from rollout_lws.sandbox.behaviours.base import (
    NOTHING,
    Change,
    Key,
    Object,
    Outcome,
    View,
    has_condition,
    key_of,
    terminating,
    within,
)
from rollout_lws.sandbox.behaviours.faults import Timing, script_of
from rollout_lws.sandbox.behaviours.nodes.batch_life import ended, ends_after, runs_to_its_end
from rollout_lws.sandbox.behaviours.nodes.pod_life import Stage, stage

#: How containers terminate: on their own, or OOMKilled.
_CRASHED: Mapping[str, Any] = {"exitCode": 1, "reason": "Error"}
_KILLED: Mapping[str, Any] = {"exitCode": 137, "reason": "OOMKilled"}

#: Exit code of a container that was told to end, and did not handle that: 128 and SIGTERM.
_STOPPED = 143

#: Seconds before the kubelet repeats the final delete, in case the API server died between setting grace 0 and removing
#: the pod.
_HALF_DONE = 1.0


class Kubelet:
    """Reconciles pods that are bound to a node or being deleted.

    Like a real kubelet it remembers when it started a pod, because the API stores whole seconds only.
    """

    name = "kubelet"

    def __init__(self, timing: Timing) -> None:
        self._timing = timing
        self._started: dict[str, float] = {}
        self._doomed: dict[str, float] = {}

    def wakes(self, change: Change, view: View) -> Iterable[Key]:  # noqa: ARG002 (the change is enough)
        if change.resource != PODS:
            return ()
        if change.deleted:
            uid = change.object["metadata"]["uid"]
            self._started.pop(uid, None)
            self._doomed.pop(uid, None)
            return ()
        pod = change.object
        return (key_of(pod),) if pod["spec"].get("nodeName") or terminating(pod) else ()

    def decide(self, key: Key, view: View, now: float) -> Outcome:
        pod = view.get(PODS, *key)
        if pod is None or not (pod["spec"].get("nodeName") or terminating(pod)):
            return NOTHING
        uid = pod["metadata"]["uid"]
        started = self._started.setdefault(uid, _recorded_start(pod, now))
        doomed = self._doomed.setdefault(uid, now) if terminating(pod) else None
        return decide(pod, self._timing, now, started=started, doomed=doomed)


def decide(pod: Object, timing: Timing, now: float, *, started: float, doomed: float | None = None) -> Outcome:
    """What the kubelet does with a pod that it started, and saw being deleted, at these epoch seconds."""
    script = script_of(pod, timing)
    namespace, name = key_of(pod)
    if doomed is not None:
        end = doomed + script.terminate_after
        if pod["metadata"].get("deletionGracePeriodSeconds") == 0:
            if pod["metadata"].get("finalizers"):
                return NOTHING  # containers ended; a finalizer of another controller keeps the object
            end += _HALF_DONE
        if now < end:
            return Outcome(wake_at=end)
        return Outcome((*_last_report(pod, now), _gone(pod)))
    if (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
        return NOTHING
    if script.cut_off:
        # What the node controller says of the pods of a node that it does not hear of: nothing of their containers.
        lost = {"Ready": (False, "NodeNotReady", "")}
        said = {"conditions": _conditions((pod.get("status") or {}).get("conditions") or (), lost, timestamp(now))}
        if within(said, pod.get("status") or {}):
            return NOTHING
        return Outcome((Patch(PODS, namespace, name, {"status": said}, "its node is lost", subresource="status"),))
    # When a timer fires exactly at a boundary, the age can be a rounding error too small.
    current = stage(script, round(now - started, 5), timing.speed)
    wake_at = None if current.until is None else started + current.until
    crash = _KILLED if script.failure == "OOMKilled" else _CRASHED
    status = _status(pod, current, crash, now)
    lasts = ends_after(pod, script) if runs_to_its_end(pod) and not current.waiting else None
    if lasts is not None:
        wake_at = started + lasts
        if round(now - started, 5) >= lasts:
            status, wake_at = ended(pod, script, status, now), None
    if script.problem:
        status["message"] = script.problem
    if within(status, pod.get("status") or {}):
        return Outcome(wake_at=wake_at)
    report = Patch(PODS, namespace, name, {"status": status}, "containers changed", subresource="status")
    return Outcome((report,), wake_at)


def _gone(pod: Object) -> Delete:
    """The final delete of a pod. It keeps the propagation policy of the deletion: with another one the API server would
    drop the finalizer that keeps the pod until its dependants are gone.
    """
    namespace, name = key_of(pod)
    finalizers = pod["metadata"].get("finalizers") or ()
    return Delete(
        PODS,
        namespace,
        name,
        pod["metadata"]["uid"],
        "its containers have ended",
        propagation="Foreground" if FOREGROUND in finalizers else "Background",
        grace_seconds=0,
    )


def _last_report(pod: Object, now: float) -> tuple[Patch, ...]:
    """How the containers of a pod have ended that another controller's finalizer keeps: its phase is final then, and
    nodes have room for others.
    """
    kept = set(pod["metadata"].get("finalizers") or ()) - {FOREGROUND}
    before = pod.get("status") or {}
    if not kept or not before.get("containerStatuses") or before.get("phase") in ("Succeeded", "Failed"):
        return ()
    moment = timestamp(now)
    over = {"exitCode": _STOPPED, "reason": "Error", "finishedAt": moment}
    unready = dict.fromkeys(("Ready", "ContainersReady"), (False, "PodFailed", ""))
    status = {
        "phase": "Failed",
        "conditions": _conditions(before.get("conditions") or (), unready, moment),
        "containerStatuses": [
            {**each, "ready": False, "started": False, "state": {"terminated": over}}
            for each in before["containerStatuses"]
        ],
    }
    return (Patch(PODS, *key_of(pod), {"status": status}, "its containers have ended", subresource="status"),)


def _recorded_start(pod: Object, now: float) -> float:
    recorded = (pod.get("status") or {}).get("startTime")
    return datetime.fromisoformat(recorded).timestamp() if recorded else now


def _status(pod: Object, current: Stage, crash: Mapping[str, Any], now: float) -> dict[str, Any]:
    before = pod.get("status") or {}
    moment = timestamp(now)
    pulled = current.waiting != "ImagePullBackOff"
    running = pulled and not current.waiting
    unready = f"containers with unready status: [{' '.join(item['name'] for item in pod['spec']['containers'])}]"
    gates = [gate["conditionType"] for gate in pod["spec"].get("readinessGates") or ()]
    lacking = next((gate for gate in gates if not has_condition(pod, gate)), None)
    ready, reason, unready_words = current.ready, "ContainersNotReady", unready
    if ready and lacking is not None:
        ready, reason = False, "ReadinessGatesNotReady"
        unready_words = f'corresponding condition of pod readiness gate "{lacking}" does not exist or is not "True".'
    conditions = {
        "PodScheduled": (True, "", ""),
        "Initialized": (True, "", ""),
        "ContainersReady": (current.ready, "ContainersNotReady", unready),
        "Ready": (ready, reason, unready_words),
    }
    address = _address(pod["metadata"]["uid"])
    status: dict[str, Any] = {
        "phase": "Running" if pulled else "Pending",
        "startTime": before.get("startTime") or moment,
        "podIP": address,
        "podIPs": [{"ip": address}],
        "conditions": _conditions(before.get("conditions") or (), conditions, moment),
        "containerStatuses": [
            _container(item, _known(before, item["name"]), current, running, pod["metadata"]["name"], moment, crash)
            for item in pod["spec"]["containers"]
        ],
    }
    if pod["spec"].get("initContainers"):
        ended = {"exitCode": 0, "reason": "Completed"}
        status["initContainerStatuses"] = [
            {
                "name": item["name"],
                "image": item.get("image", ""),
                "ready": True,
                "restartCount": 0,
                "state": {"terminated": ended},
            }
            for item in pod["spec"]["initContainers"]
        ]
    return status


def _conditions(
    before: Iterable[Mapping[str, Any]], wanted: Mapping[str, tuple[bool, str, str]], moment: str
) -> list[dict[str, Any]]:
    known = {condition["type"]: condition for condition in before}
    after = [dict(condition) for kind, condition in known.items() if kind not in wanted]
    for kind, (is_true, reason, message) in wanted.items():
        status = "True" if is_true else "False"
        same = kind in known and known[kind]["status"] == status
        condition = {
            "type": kind,
            "status": status,
            "lastTransitionTime": known[kind]["lastTransitionTime"] if same else moment,
        }
        after.append(condition if is_true else {**condition, "reason": reason, "message": message})
    return after


def _known(status: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    for container in status.get("containerStatuses") or ():
        if container["name"] == name:
            return dict(container)
    return {}


def _container(
    container: Mapping[str, Any],
    before: Mapping[str, Any],
    current: Stage,
    running: bool,
    pod: str,
    moment: str,
    crash: Mapping[str, Any],
) -> dict[str, Any]:
    image = container.get("image", "")
    last: Mapping[str, Any] = before.get("lastState") or {}
    state: dict[str, Any]
    if current.waiting == "ImagePullBackOff":
        state = {"waiting": {"reason": current.waiting, "message": f'Back-off pulling image "{image}"'}}
    elif current.waiting:
        message = f"back-off {current.back_off:g}s restarting failed container={container['name']} pod={pod}"
        state = {"waiting": {"reason": current.waiting, "message": message}}
    else:
        since = ((before.get("state") or {}).get("running") or {}).get("startedAt")
        again = since is None or before.get("restartCount") != current.restarts
        state = {"running": {"startedAt": moment if again else since}}
    if before.get("state", {}).get("running") and state != before["state"]:
        last = {"terminated": {**crash, "finishedAt": moment}}
    return {
        "name": container["name"],
        "image": image,
        "imageID": f"sandbox://{image}" if running else "",
        "ready": current.ready,
        "started": running,
        "restartCount": current.restarts,
        "state": state,
        "lastState": dict(last),
    }


def _address(uid: str) -> str:
    """An address in 10.64.0.0/10, stable for the pod's life."""
    number = int(uid.replace("-", "")[-6:], 16)
    return f"10.{64 + (number >> 16 & 63)}.{number >> 8 & 255}.{number & 255}"
