"""Waits until the controller's Deployment is available, and reports what it waits for on change."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from rollout_lws.cli.access.transport import Transport
from rollout_lws.cli.durations import short
from rollout_lws.cli.install.inventory import starting
from rollout_lws.cli.install.manifests import SELECTOR
from rollout_lws.cli.releases import typed
from rollout_lws.cli.watch.cache import WatchCache
from rollout_lws.errors import RolloutLwsError, Unreachable
from rollout_lws.objects.resources import DEPLOYMENTS, PODS
from rollout_lws.objects.workloads import Pod
from rollout_lws.workload.pod_words import pod_trouble

Object = dict[str, Any]
#: The controller's pods, whose problems do not change the Deployment.
_PODS = ",".join(f"{key}={value}" for key, value in SELECTOR.items())


def wait(transport: Transport, namespace: str, name: str, patience: float, tell: Callable[[str], None]) -> None:
    """Return when the Deployment's current spec is available; RolloutLwsError after ``patience`` seconds, with the
    cause and what to look at. Follows the Deployment and its pods by watches.
    """
    deadline, told = time.monotonic() + patience, ""
    for now in _seen(transport, namespace, name, deadline):
        if not now:
            tell(f"deployment.apps/{name} is available")
            return
        if now != told:
            tell(f"waiting for deployment.apps/{name}: {now}")
            told = now
    raise RolloutLwsError(
        f"deployment.apps/{name} is not available after {short(patience)}: {told}. Everything is applied, and it"
        f" starts as soon as it can: see kubectl -n {namespace} describe pods, and kubectl -n {namespace} logs"
        f" deployment/{name}"
    )


def _seen(transport: Transport, namespace: str, name: str, deadline: float) -> Iterator[str]:
    """What the Deployment waits for, at once and after each change until ``deadline``; "" when it is available."""
    pods_path = PODS.path(namespace)
    try:
        deployment = transport.get(DEPLOYMENTS.path(namespace, name))
        yield _missing(deployment, transport.get(pods_path, labelSelector=_PODS).get("items") or ())
    except Unreachable as error:
        # A control plane upgrade or a restarting proxy is transient.
        yield str(error)
    changed = threading.Event()
    followed = (
        WatchCache(transport, DEPLOYMENTS.path(namespace), {"fieldSelector": f"metadata.name={name}"}, dict, changed),
        WatchCache(transport, pods_path, {"labelSelector": _PODS}, dict, changed),
    )
    try:
        while changed.wait(max(0.0, deadline - time.monotonic())):
            changed.clear()
            for each in followed:
                if each.failure is not None:
                    raise each.failure
            trouble = next((each.trouble for each in followed if each.trouble), "")
            deployments, pods = (each.objects() for each in followed)
            if trouble:
                yield trouble
            elif deployments is not None and pods is not None:
                if not deployments:
                    raise RolloutLwsError(f"deployment.apps/{name} was deleted while it was waited for")
                yield _missing(deployments[0], pods)
    finally:
        for each in followed:
            each.stop()
        for each in followed:
            each.join()


def _missing(deployment: Object, pods: Iterable[Object]) -> str:
    """What a Deployment waits for and why, "" when it is available."""
    missing = lacks(deployment)
    return "; ".join([missing, *refusals(deployment), *troubles(pods)]) if missing else ""


def available(transport: Transport, namespace: str, name: str) -> bool:
    """Whether the Deployment's latest spec is available now, and no pod of an older one is left."""
    return not lacks(transport.get(DEPLOYMENTS.path(namespace, name)))


def lacks(deployment: Object) -> str:
    """What a Deployment waits for, "" when its latest spec is available."""
    spec, status = deployment["spec"], deployment.get("status") or {}
    wanted = int(spec.get("replicas", 1))
    if not wanted:
        return f"it was scaled to 0: {starting(deployment['metadata']['namespace'])} starts it"
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
    """Why no pod can be created: quota, pod security, or an admission webhook."""
    conditions = (deployment.get("status") or {}).get("conditions") or ()
    return [
        f"{each.get('reason', '')}: {' '.join(str(each.get('message', '')).split())}"
        for each in conditions
        if (each.get("type"), each.get("status")) == ("ReplicaFailure", "True")
    ]


def troubles(pods: Iterable[Object]) -> list[str]:
    """Problems that keep pods from being ready, one sentence each, without those of normal startup."""
    found = ((pod.metadata.name, pod_trouble(pod)) for pod in (typed(each, Pod) for each in pods))
    return [f"pod {name} {' '.join(said.detail.split())}" for name, said in found if said.severity > 1]
