"""Until the controller's Deployment is available: what it waits for, told on change."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any

from rollout_lws.cli.access.transport import Transport
from rollout_lws.cli.durations import short
from rollout_lws.cli.install.deployment import SELECTOR
from rollout_lws.errors import ApiError, RolloutLwsError, Unreachable
from rollout_lws.objects.resources import DEPLOYMENTS, PODS

Object = dict[str, Any]
#: Seconds after which the controller's pods are looked at again: their trouble is no change of the Deployment.
_LOOK = 5.0
#: Seconds after which a server that did not answer is asked again.
_AGAIN = 1.0


def wait(transport: Transport, namespace: str, name: str, patience: float, tell: Callable[[str], None]) -> None:
    """Return when the Deployment is available as it is wanted now; RolloutLwsError after ``patience`` seconds, with
    what stands in the way and what to look at.
    """
    deadline, told = time.monotonic() + patience, ""
    while True:
        deployment: Object | None = None
        try:
            deployment = transport.get(DEPLOYMENTS.path(namespace, name))
            now = _missing(transport, deployment)
        except Unreachable as error:
            # A control plane that is upgraded, or a proxy that starts anew, answers a little later.
            now = str(error)
        if not now:
            tell(f"deployment.apps/{name} is available")
            return
        if now != told:
            tell(f"waiting for deployment.apps/{name}: {now}")
            told = now
        if time.monotonic() >= deadline:
            raise RolloutLwsError(
                f"deployment.apps/{name} is not available after {short(patience)}: {now}. Everything is applied, and it"
                f" starts as soon as it can: see kubectl -n {namespace} describe pods, and kubectl -n {namespace} logs"
                f" deployment/{name}"
            )
        _change(transport, deployment, min(deadline, time.monotonic() + _LOOK))


def runs(transport: Transport, namespace: str, name: str) -> bool:
    """Whether the Deployment is available as it is wanted now, without waiting for it."""
    return not lacks(transport.get(DEPLOYMENTS.path(namespace, name)))


def _missing(transport: Transport, deployment: Object) -> str:
    """What a Deployment waits for and what stands in its way, "" when it is available."""
    missing = lacks(deployment)
    if not missing:
        return ""
    selector = ",".join(f"{key}={value}" for key, value in SELECTOR.items())
    pods = transport.get(PODS.path(deployment["metadata"]["namespace"]), labelSelector=selector).get("items") or ()
    return "; ".join([missing, *refusals(deployment), *troubles(pods)])


def _change(transport: Transport, deployment: Object | None, deadline: float) -> None:
    """Return when the Deployment has changed, or at ``deadline``; after a moment when nothing can be followed."""
    if deployment is None:
        time.sleep(max(0.0, min(_AGAIN, deadline - time.monotonic())))
        return
    meta = deployment["metadata"]
    path, chosen = DEPLOYMENTS.path(meta["namespace"]), f"metadata.name={meta['name']}"
    try:
        events = transport.watch(path, meta["resourceVersion"], deadline, fieldSelector=chosen)
        next((event for event in events if event["type"] != "BOOKMARK"), None)
    except Unreachable:
        _change(transport, None, deadline)
    except ApiError as error:
        # What was read is too old to go on from: it is read again.
        if error.code != 410:
            raise


def lacks(deployment: Object) -> str:
    """What a Deployment waits for, "" when it is available in its newest form."""
    spec, status = deployment["spec"], deployment.get("status") or {}
    wanted = int(spec.get("replicas", 1))
    if int(status.get("observedGeneration") or 0) < int(deployment["metadata"].get("generation") or 0):
        return "its controller has not seen it yet"
    updated = int(status.get("updatedReplicas") or 0)
    before = max(0, int(status.get("replicas") or 0) - updated)
    if updated < wanted:
        return f"{updated} of {wanted} pods made" + (f", {before} of the version before left" if before else "")
    if before:
        return f"{before} of the version before left"
    available = int(status.get("availableReplicas") or 0)
    return "" if available >= wanted else f"{available} of {wanted} pods available"


def refusals(deployment: Object) -> list[str]:
    """Why no pod can be made: quota, pod security, or a webhook that says no."""
    conditions = (deployment.get("status") or {}).get("conditions") or ()
    return [
        f"{each.get('reason', '')}: {' '.join(str(each.get('message', '')).split())}"
        for each in conditions
        if (each.get("type"), each.get("status")) == ("ReplicaFailure", "True")
    ]


def troubles(pods: Iterable[Object]) -> list[str]:
    """Why pods do not run or are not ready, a sentence each."""
    found = []
    for pod in pods:
        status, name = pod.get("status") or {}, pod["metadata"]["name"]
        if pod["metadata"].get("deletionTimestamp"):
            continue
        for each in status.get("containerStatuses") or ():
            waiting = (each.get("state") or {}).get("waiting") or {}
            if waiting.get("reason"):
                said = " ".join(str(waiting.get("message") or "").split())
                found.append(f"pod {name}: {waiting['reason']}" + (f": {said}" if said else ""))
        for condition in status.get("conditions") or ():
            if (condition["type"], condition["status"]) == ("PodScheduled", "False"):
                found.append(f"pod {name}: {condition.get('reason', '')}: {condition.get('message', '')}")
    return found
