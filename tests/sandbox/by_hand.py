"""Objects of a cluster in which nothing runs: a test writes what controllers would have written."""

from __future__ import annotations

from typing import Any

from rollout_lws.objects.resources import (
    ENDPOINT_SLICES,
    HTTP_ROUTES,
    LWS_GROUP_INDEX,
    LWS_NAME,
    LWS_WORKER_INDEX,
    PODS,
    SERVICES,
)
from rollout_lws.sandbox.apiserver import ApiServer

TIME = "2026-01-01T00:00:00Z"
READY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}


def meta(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "namespace": "default", **more}


def pod(server: ApiServer, lws: str, group: int = 0, worker: int = 0, size: int = 1) -> str:
    name = f"{lws}-{group}" + (f"-{worker}" if worker else "")
    labels = {LWS_NAME: lws, LWS_GROUP_INDEX: str(group), LWS_WORKER_INDEX: str(worker)}
    annotations = {"leaderworkerset.sigs.k8s.io/size": str(size)}
    body = {"metadata": meta(name, labels=labels, annotations=annotations), "spec": {"containers": [{"name": "m"}]}}
    uid = server.create(PODS, body)["metadata"]["uid"]
    server.patch(PODS, "default", name, {"status": READY}, subresource="status")
    return str(uid)


def service(server: ApiServer, name: str, *uids: str) -> None:
    """The Service and its slice, as the control plane would have written it for these pods."""
    if not server.list(SERVICES, "default", field_selector=f"metadata.name={name}"):
        server.create(SERVICES, {"metadata": meta(name), "spec": {"ports": [{"port": 80}]}})
        labels = {"kubernetes.io/service-name": name}
        server.create(ENDPOINT_SLICES, {"metadata": meta(name, labels=labels), "addressType": "IPv4", "endpoints": []})
    endpoints = [{"addresses": ["10.0.0.1"], "conditions": {"ready": True}, "targetRef": {"uid": uid}} for uid in uids]
    server.patch(ENDPOINT_SLICES, "default", name, {"endpoints": endpoints})


def route(server: ApiServer, old: int, new: int, *, accepted: bool = True) -> None:
    refs = [{"name": "old", "port": 80, "weight": old}, {"name": "new", "port": 80, "weight": new}]
    spec = {"parentRefs": [{"name": "front"}], "rules": [{"backendRefs": refs}]}
    if server.list(HTTP_ROUTES, "default"):
        server.patch(HTTP_ROUTES, "default", "llama", {"spec": spec})
    else:
        server.create(HTTP_ROUTES, {"metadata": meta("llama"), "spec": spec})
    if accepted:
        accept(server)


def accept(server: ApiServer, status: str = "True") -> None:
    generation = server.get(HTTP_ROUTES, "default", "llama")["metadata"]["generation"]
    condition = {"type": "Accepted", "status": status, "reason": "Accepted", "message": "", "lastTransitionTime": TIME}
    parent = {"parentRef": {"name": "front"}, "controllerName": "a.b/c"}
    parents = [{**parent, "conditions": [{**condition, "observedGeneration": generation}]}]
    server.patch(HTTP_ROUTES, "default", "llama", {"status": {"parents": parents}}, subresource="status")


def remove(server: ApiServer, name: str) -> None:
    server.delete(PODS, "default", name, grace_seconds=0)
