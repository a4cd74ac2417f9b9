"""Explains an API server's refusal: the missing permission, whom to ask, and which commands work without it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from rollout_lws.errors import ApiError

#: RBAC's message; admission webhooks and quotas answer 403 too, with other messages.
_FORBIDDEN = re.compile(
    r'User "(?P<user>[^"]*)" cannot (?P<verb>\w+) resource "(?P<resource>[^"]+)"'
    r'(?: in API group "(?P<group>[^"]*)")?'
    r'(?: in the namespace "(?P<namespace>[^"]+)"| at the cluster scope)?'
)
_PATH = re.compile(
    r"/(?:api|apis/(?P<group>[^/]+))/[^/]+(?:/namespaces/(?P<namespace>[^/]+))?/(?P<kind>[^/]+)"
    r"(?:/(?P<name>[^/]+)(?:/[^/]+)?)?"
)
_VERBS = {"GET": "read", "PATCH": "write", "POST": "write", "PUT": "write", "DELETE": "delete"}
_ANONYMOUS = 'User "system:anonymous"'
_ACTIONS = "promote, abort, retry, pause and resume"


def refusal(code: int, status: Mapping[str, Any]) -> ApiError:
    """The error for an answer with ``code`` and a (possibly partial) Status, with advice."""
    message = str(status.get("message") or f"the API server answered {code}")
    if code == 401:
        message += "; log in again, or check the kubeconfig's user"
    elif code == 403 and _ANONYMOUS in message:
        message += "; the request had no login: check the kubeconfig's user"
    elif code == 403:
        message += _advice(message)
    return ApiError(code, str(status.get("reason") or ""), message)


def too_busy(code: int, status: Mapping[str, Any], method: str, path: str, asked: int) -> ApiError:
    """The error after ``asked`` attempts at a server that was too busy each time; the request had no effect."""
    error = refusal(code, status)
    times = "once" if asked == 1 else f"{asked} times"
    return ApiError(
        code,
        error.reason,
        f"the API server is too busy to {_VERBS.get(method, method)} {_named(path)}, asked {times}: {error.message};"
        " nothing was done: try again, and look at the API server's load if it stays so",
    )


def _named(path: str) -> str:
    """The object or kind in a request path."""
    found = _PATH.fullmatch(path)
    if found is None:
        return path
    kind = f"{found['kind']}.{found['group']}" if found["group"] else found["kind"]
    name = f"{kind}/{found['name']}" if found["name"] else kind
    return f"{name} in namespace {found['namespace']}" if found["namespace"] else name


def _advice(message: str) -> str:
    found = _FORBIDDEN.search(message)
    if found is None:
        return ""
    verb, resource, group = found["verb"], found["resource"], found["group"]
    named = f"{resource}.{group}" if group else resource
    where = f"in namespace {found['namespace']}" if found["namespace"] else "in the cluster"
    return f"; ask an administrator for a role that may {verb} {named} {where}{_left(verb, resource)}"


def _left(verb: str, resource: str) -> str:
    """Commands that work without the permission."""
    if resource == "rollouts/status":
        return "; get, status and history go on without it"
    if resource == "rollouts" or verb == "impersonate":
        return ""
    return f"; {_ACTIONS} go on without it"
