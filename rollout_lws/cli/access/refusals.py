"""Explains an API server's refusal: what to do about it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rollout_lws.errors import ApiError

_ANONYMOUS = 'User "system:anonymous"'


def refusal(code: int, status: Mapping[str, Any]) -> ApiError:
    """The error for an answer with ``code`` and a (possibly partial) Status, with advice."""
    message = str(status.get("message") or f"the API server answered {code}")
    if code == 401:
        message += "; log in again, or check the kubeconfig's user"
    elif code == 403 and _ANONYMOUS in message:
        message += "; the request had no login: check the kubeconfig's user"
    elif code == 403 and 'User "' in message:
        # Only RBAC names the user; admission webhooks and quotas answer 403 too.
        message += "; ask an administrator for that permission"
    return ApiError(code, str(status.get("reason") or ""), message)


def too_busy(code: int, status: Mapping[str, Any], method: str, path: str, asked: int) -> ApiError:
    """The error after ``asked`` attempts at a server that was too busy each time; the request had no effect."""
    error = refusal(code, status)
    times = "once" if asked == 1 else f"{asked} times"
    return ApiError(
        code,
        error.reason,
        f"the API server is too busy for {method} {path}, asked {times}: {error.message}; nothing was done: try again,"
        " and look at the API server's load if it stays so",
    )
