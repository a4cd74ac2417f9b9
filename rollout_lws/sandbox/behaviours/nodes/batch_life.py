"""Pods that run to their end, as those of Jobs: how and when they end is said by annotations of the pod template.

``sandbox.rollouts.kruise.io/ends-after: 5s`` (as long as other pods take to be ready, by default), ``…/exit-code: "3"``
(0), ``…/last-words: text`` in the log, and ``…/fail: Evicted``. A container that fails is not started again in its pod.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rollout_lws.sandbox.admission.metadata import timestamp
from rollout_lws.sandbox.behaviours.base import Object, annotations_of
from rollout_lws.sandbox.behaviours.faults import PREFIX, Script

_LOGS = "FallbackToLogsOnError"
_EVICTED = {"reason": "Evicted", "message": "The node was low on resource: ephemeral-storage."}


def runs_to_its_end(pod: Object) -> bool:
    """Whether its containers are to end, and are not started again then."""
    return bool(pod["spec"].get("restartPolicy", "Always") != "Always")


def ends_after(pod: Object, script: Script) -> float | None:
    """Seconds for which its containers run; None for one that never starts or never ends."""
    if script.ends_after is not None or script.failure == "Evicted":
        return script.ends_after if script.ends_after is not None else script.ready_after
    return script.ready_after if script.failure is None and runs_to_its_end(pod) else None


def ended(pod: Object, script: Script, status: Mapping[str, Any], now: float) -> dict[str, Any]:
    """``status``, of a pod that runs, once its containers have ended."""
    code = 137 if script.failure == "Evicted" else script.exit_code
    moment = timestamp(now)
    told = {"exitCode": code, "reason": "Error" if code else "Completed", "finishedAt": moment}
    words = annotations_of(pod).get(PREFIX + "last-words", "")
    policies = {each["name"]: each.get("terminationMessagePolicy") for each in pod["spec"]["containers"]}

    def state(name: str) -> dict[str, Any]:
        return {"terminated": told | ({"message": words} if words and code and policies[name] == _LOGS else {})}

    conditions = [
        {**each, "status": "False", "reason": "PodCompleted"} if each["type"] in ("Ready", "ContainersReady") else each
        for each in status["conditions"]
    ]
    return {
        **status,
        "phase": "Failed" if code else "Succeeded",
        "conditions": conditions,
        "containerStatuses": [
            {**each, "ready": False, "started": False, "state": state(each["name"])}
            for each in status["containerStatuses"]
        ],
        **(_EVICTED if script.failure == "Evicted" else {}),
    }
