"""API discovery: /version, /api, /apis and a document for each group version, which kubectl asks for one by one."""

from __future__ import annotations

from typing import Any

from rollout_lws.objects.resources import NAMESPACES
from rollout_lws.sandbox import codec
from rollout_lws.sandbox.api_resources import Served
from rollout_lws.sandbox.apiserver import ApiServer
from rollout_lws.sandbox.routes import Request, Response

Document = dict[str, Any]

#: The minor version of the Kubernetes release that this API models.
_MINOR = 33
_VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
#: Stability ranks (GA is 2): the most stable version of a group is the preferred one and comes first.
_STABILITY = {"alpha": 0, "beta": 1}


def document(server: ApiServer, request: Request) -> Response | None:
    """The response for a path of discovery or health checks; None for other paths."""
    path = request.path.rstrip("/") or "/"
    if path in ("/healthz", "/livez", "/readyz"):
        return Response(200, b"ok", {"content-type": "text/plain"})
    if path == "/version":
        version = f"v1.{_MINOR}.0"
        return codec.answer(
            {"major": "1", "minor": str(_MINOR), "gitVersion": version, "platform": "sandbox", "goVersion": ""}
        )
    groups = group_versions(server)
    if path == "/api":
        addresses = [{"clientCIDR": "0.0.0.0/0", "serverAddress": request.headers.get("host", "")}]
        return codec.answer({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": addresses})
    if path == "/apis":
        listed = [_group(name, versions) for name, versions in groups.items() if name]
        return codec.answer({"kind": "APIGroupList", "apiVersion": "v1", "groups": listed})
    parts = path.strip("/").split("/")
    if parts[0] == "api" and len(parts) == 2 and parts[1] in groups[""]:
        return codec.answer(_resource_list(parts[1], groups[""][parts[1]]))
    if parts[0] == "apis" and len(parts) == 2 and parts[1] in groups:
        return codec.answer({"kind": "APIGroup", "apiVersion": "v1", **_group(parts[1], groups[parts[1]])})
    if parts[0] == "apis" and len(parts) == 3 and parts[2] in groups.get(parts[1], ()):
        return codec.answer(_resource_list(f"{parts[1]}/{parts[2]}", groups[parts[1]][parts[2]]))
    return None


def group_versions(server: ApiServer) -> dict[str, dict[str, list[Served]]]:
    """Served resources by group, then version, the preferred version first."""
    groups: dict[str, dict[str, list[Served]]] = {}
    for served in server.served:
        groups.setdefault(served.resource.group, {}).setdefault(served.resource.version, []).append(served)
    return {name: dict(sorted(versions.items(), key=_preference, reverse=True)) for name, versions in groups.items()}


def _preference(entry: tuple[str, Any]) -> tuple[int, str]:
    stability = next((rank for word, rank in _STABILITY.items() if word in entry[0]), 2)
    return stability, entry[0]


def _group(name: str, versions: dict[str, list[Served]]) -> Document:
    listed = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"name": name, "versions": listed, "preferredVersion": listed[0]}


def _resource_list(group_version: str, resources: list[Served]) -> Document:
    entries: list[Document] = []
    for served in resources:
        resource = served.resource
        entry: Document = {
            "name": resource.plural,
            "singularName": served.singular,
            "namespaced": resource.namespaced,
            "kind": resource.kind,
            # A collection of Namespaces cannot be deleted.
            "verbs": [verb for verb in _VERBS if (verb, resource) != ("deletecollection", NAMESPACES)],
        }
        if served.short_names:
            entry["shortNames"] = list(served.short_names)
        if served.categories:
            entry["categories"] = list(served.categories)
        entries.append(entry)
        for subresource in (*(["status"] if served.status else []), *(["scale"] if served.scale else [])):
            below = {**entry, "name": f"{resource.plural}/{subresource}", "singularName": ""}
            below["verbs"] = ["get", "patch", "update"]
            if subresource == "scale":
                below |= {"kind": "Scale", "group": "autoscaling", "version": "v1"}
            entries.append({key: value for key, value in below.items() if key not in ("shortNames", "categories")})
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": entries}
