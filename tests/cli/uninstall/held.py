"""Workloads and Rollouts as a controller leaves them, put on a server where none runs."""

from __future__ import annotations

from typing import Any

import msgspec

from rollout_lws.api.resources import keys
from rollout_lws.cli.demo import manifests
from rollout_lws.cli.releases import typed, version_hash
from rollout_lws.cli.uninstall.detach_plan import Place, place_of
from rollout_lws.objects.resources import LWS_NAME, LWS_REVISION, LWS_WORKER_INDEX
from rollout_lws.targets.table import released_type
from rollout_lws.targets.target import Target
from rollout_lws.workload.hold import HOLD

Object = dict[str, Any]
GROUP = "rollouts.kruise.io"
KEYS = keys(GROUP)
NEW = "vllm/vllm-openai:v2"


def lws(
    name: str = "llama",
    *,
    image: str = "",
    by: str = "",
    users: Object | None = None,
    side: str = "",
    **marks: str,
) -> Object:
    """With ``image`` in both templates; held for the Rollout with UID ``by``, the strategy having been ``users``;
    labelled as this ``side`` of a pair; ``marks`` are annotations of ours by the names of Keys.
    """
    made = manifests.workload()
    made["metadata"] |= {"name": name, "uid": f"uid-{name}", "resourceVersion": "1"}
    for template in ("leaderTemplate", "workerTemplate"):
        (container,) = made["spec"]["leaderWorkerTemplate"][template]["spec"]["containers"]
        container["image"] = image or container["image"]
    own = {"partition": 0, "maxUnavailable": 1, "maxSurge": 0, **(users or {})}
    annotations = {getattr(KEYS, mark): text for mark, text in marks.items()}
    held = dict(own)
    if by:
        written = {"partition": HOLD} | ({"maxSurge": 0} if own["maxSurge"] else {})
        original = {member: own[member] for member in written}
        annotations[KEYS.original] = msgspec.json.encode({"by": by, "original": original, "written": written}).decode()
        held |= written
    made["metadata"]["annotations"] = annotations
    if side:
        made["metadata"]["labels"] = {**(made["metadata"].get("labels") or {}), KEYS.side: side}
    made["spec"]["rolloutStrategy"] = {"type": "RollingUpdate", "rollingUpdateConfiguration": held}
    return made


def stateful_set(
    name: str = "llama",
    *,
    image: str = "vllm:v1",
    by: str = "",
    users: Object | None = None,
    labels: Object | None = None,
    **marks: str,
) -> Object:
    """Held for the Rollout with UID ``by``, the strategy having been ``users``; ``marks`` are annotations of ours by
    the names of Keys.
    """
    annotations = {getattr(KEYS, mark): text for mark, text in marks.items()}
    update = users or {"type": "RollingUpdate", "rollingUpdate": {"partition": 0, "maxUnavailable": 1}}
    if by:
        written: Object = {"partition": HOLD}
        original: Object = {"partition": (update.get("rollingUpdate") or {}).get("partition", 0)}
        if update["type"] == "OnDelete":
            written, original = written | {"type": "RollingUpdate"}, original | {"type": "OnDelete"}
        mark = {"by": by, "original": original, "written": written}
        annotations[KEYS.original] = msgspec.json.encode(mark).decode()
        parameters = {**(update.get("rollingUpdate") or {}), "partition": HOLD}
        update = {"type": "RollingUpdate", "rollingUpdate": parameters}
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": f"uid-{name}",
            "annotations": annotations,
            "labels": labels or {},
        },
        "spec": {
            "replicas": 4,
            "serviceName": name,
            "selector": {"matchLabels": {"app": "llama"}},
            "template": {
                "metadata": {"labels": {"app": "llama"}},
                "spec": {"containers": [{"name": "vllm", "image": image}]},
            },
            "updateStrategy": update,
        },
    }


#: Our hash of the version that runs, and of one that waits.
RUNS, WAITS = version_hash(lws()), version_hash(lws(image=NEW))


def rollout(name: str = "llama", *, workload: str = "llama", finalizer: bool = True, **status: Any) -> Object:
    """At rest, unless ``status`` says otherwise."""
    made = manifests.rollout(f"{GROUP}/v1beta1", {"name": workload, "namespace": manifests.NAMESPACE})
    made["metadata"] = {"name": name, "namespace": manifests.NAMESPACE, "uid": f"uid-{name}"}
    made["spec"]["workloadRef"]["name"] = workload
    if finalizer:
        made["metadata"]["finalizers"] = [KEYS.rollout_finalizer]
    rest = {"phase": "Healthy", "observedTemplateHash": RUNS, "stable": {"templateHash": RUNS, "revision": "rev-1"}}
    made["status"] = rest | {"summary": {"state": "Healthy"}} | status
    return made


def leaders(*revisions: str, name: str = "llama") -> list[Object]:
    """Leader pods of these revisions of LWS."""
    return [
        {
            "metadata": {
                "name": f"{name}-{index}",
                "namespace": manifests.NAMESPACE,
                "labels": {LWS_NAME: name, LWS_WORKER_INDEX: "0", LWS_REVISION: revision},
            },
            "spec": {"containers": [{"name": "server", "image": "vllm"}]},
        }
        for index, revision in enumerate(revisions)
    ]


def leader_set(revision: str, name: str = "llama") -> Object:
    """Which version LWS wants."""
    labels = {LWS_NAME: name, LWS_REVISION: revision}
    selector = {LWS_NAME: name, LWS_WORKER_INDEX: "0"}
    return {
        "metadata": {"name": name, "namespace": manifests.NAMESPACE, "labels": labels},
        "spec": {
            "replicas": manifests.GROUPS,
            "serviceName": name,
            "selector": {"matchLabels": selector},
            "template": {
                "metadata": {"labels": selector},
                "spec": {"containers": [{"name": "server", "image": "vllm"}]},
            },
        },
    }


def by_place(*workloads: Object) -> dict[Place, Target]:
    """Workloads as the command reads them."""
    known = [typed(each, released_type(each)) for each in workloads]
    return {place_of(each): each for each in known}
