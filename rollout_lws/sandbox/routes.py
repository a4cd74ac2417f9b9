"""Maps URL path and method to resource and verb; HTTP and the in-memory transport share it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote

from rollout_lws.errors import ApiError
from rollout_lws.sandbox.api_resources import Served
from rollout_lws.sandbox.apiserver import ApiServer
from rollout_lws.sandbox.wire.api_errors import NoSuchPath, no_such_resource


@dataclass(frozen=True, slots=True)
class Request:
    """One request; header names are lower case. ``path`` starts with /api or /apis and has no query."""

    method: str
    path: str
    params: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""

    def flag(self, name: str) -> bool:
        return self.params.get(name, "").lower() in ("true", "1")


@dataclass(frozen=True, slots=True)
class Response:
    """One complete response; header names are lower case."""

    status: int
    body: bytes
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Target:
    """A collection; with ``name`` an object in it; with ``subresource`` a subresource of that object."""

    served: Served
    namespace: str
    name: str = ""
    subresource: str = ""


_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


def target_of(server: ApiServer, path: str) -> Target:
    """The resource at ``path``; ApiError 404 when nothing is served there."""
    parts = [unquote(part) for part in path.strip("/").split("/")]
    if parts[0] == "api" and len(parts) > 2:
        group, version, rest = "", parts[1], parts[2:]
    elif parts[0] == "apis" and len(parts) > 3:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        raise _nothing_at(server, parts[1] if parts[0] == "apis" and len(parts) > 1 else parts[0])
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2 and rest[2] not in ("status", "finalize"):
        namespace, rest = rest[1], rest[2:]
    served = server.find(group, version, rest[0])
    if served is None or len(rest) > 3 or bool(namespace) > served.resource.namespaced:
        raise _nothing_at(server, group)
    return Target(served, namespace, *rest[1:])


@dataclass(frozen=True, slots=True)
class Behind:
    """What a request for a pod's proxy asks of the pod."""

    method: str
    namespace: str
    pod: str
    port: int
    path: str


#: Verbs of pods/proxy by method; others are not passed on.
BEHIND_VERBS = {"GET": "get", "POST": "create"}
_PROXY = re.compile(r"/api/v1/namespaces/([^/]+)/pods/([^/:]+):([0-9]{1,5})/proxy(/.*)?")


def behind(request: Request) -> Behind | None:
    """The request for a pod that stands behind the API server; None for one of the API itself."""
    found = _PROXY.fullmatch(unquote(request.path))
    if found is None or request.method not in BEHIND_VERBS:
        return None
    return Behind(request.method, found[1], found[2], int(found[3]), found[4] or "/")


def _nothing_at(server: ApiServer, group: str) -> ApiError:
    """The 404 for an API group: a Status for built-in groups, plain text for unknown ones."""
    return no_such_resource() if server.builds_in(group) else NoSuchPath()


def verb_of(request: Request, target: Target) -> str:
    """The API verb of a request: get, list, watch, create, update, patch, delete or deletecollection."""
    if request.method == "GET":
        if target.name:
            return "get"
        return "watch" if request.flag("watch") else "list"
    verb = _VERBS.get(request.method, "")
    return "deletecollection" if verb == "delete" and not target.name else verb
