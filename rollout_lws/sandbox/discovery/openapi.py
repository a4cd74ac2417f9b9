"""OpenAPI documents for kubectl: enough of v3 for apply, diff and explain, and a v2 document without any types.

kubectl asks for v2 only about kinds that v3 lacks. With an empty document it reports its own error for such a kind: no
matches were found, and its CRD must be installed first. Custom resources have their whole schema. Built-in kinds are
open objects, because a schema would promise validation that the server does not do.
"""

from __future__ import annotations

import hashlib
from typing import Any

from rollout_lws.objects.resources import Resource
from rollout_lws.sandbox import codec
from rollout_lws.sandbox.api_resources import Served
from rollout_lws.sandbox.apiserver import ApiServer
from rollout_lws.sandbox.discovery import documents
from rollout_lws.sandbox.routes import Request, Response

Document = dict[str, Any]

_PARAMETERS = [
    {"name": name, "in": "query", "schema": {"type": "string"}}
    for name in ("dryRun", "fieldManager", "fieldValidation")
]


#: gnostic's openapi.v2.Document in protobuf, the only form that kubectl accepts: field 1 the version, field 2 an Info
#: with 1 title and 2 version.
_V2 = b"\x0a\x032.0\x12\x0c\x0a\x07sandbox\x12\x011"
_V2_TYPE = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"


def document(server: ApiServer, request: Request) -> Response | None:
    """The response for the path of an OpenAPI document; None for other paths."""
    path = request.path.rstrip("/")
    if path == "/openapi/v2":
        return Response(200, _V2, {"content-type": _V2_TYPE})
    if not path.startswith("/openapi/v3"):
        return None
    served_by_path = {
        _base(served[0].resource): served
        for versions in documents.group_versions(server).values()
        for served in versions.values()
    }
    if path == "/openapi/v3":
        paths = {}
        for base, resources in served_by_path.items():
            digest = hashlib.sha256(codec.encoded(_described(resources))).hexdigest()[:32].upper()
            paths[base] = {"serverRelativeURL": f"/openapi/v3/{base}?hash={digest}"}
        return codec.answer({"paths": paths})
    wanted = served_by_path.get(path.removeprefix("/openapi/v3/"))
    return None if wanted is None else codec.answer(_described(wanted))


def _base(resource: Resource) -> str:
    return f"apis/{resource.group}/{resource.version}" if resource.group else f"api/{resource.version}"


def _described(resources: list[Served]) -> Document:
    paths: Document = {}
    schemas: Document = {}
    for served in resources:
        resource = served.resource
        kind = {"group": resource.group, "version": resource.version, "kind": resource.kind}
        name = ".".join([*reversed((resource.group or "core").split(".")), resource.version, resource.kind])
        schemas[name] = {**_schema(served), "x-kubernetes-group-version-kind": [kind]}
        reference = {"schema": {"$ref": f"#/components/schemas/{name}"}}

        def operation(action: str, kind: Document = kind, reference: Document = reference) -> Document:
            return {
                "parameters": _PARAMETERS,
                "responses": {"200": {"description": "OK", "content": {"application/json": reference}}},
                "x-kubernetes-action": action,
                "x-kubernetes-group-version-kind": kind,
            }

        collection = resource.path("namespace").replace("/namespaces/namespace/", "/namespaces/{namespace}/")
        paths[collection] = {"get": operation("list"), "post": operation("post")}
        paths[f"{collection}/{{name}}"] = {
            "get": operation("get"),
            "put": operation("put"),
            "patch": operation("patch"),
            "delete": operation("delete"),
        }
    info = {"title": "Kubernetes", "version": "sandbox"}
    return {"openapi": "3.0.0", "info": info, "paths": paths, "components": {"schemas": schemas}}


def _schema(served: Served) -> Document:
    if served.schema is None:
        return {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return dict(served.schema.document)
