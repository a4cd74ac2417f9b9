"""The API server's refusals, worded like kube-apiserver's so that people and clients recognise them."""

from __future__ import annotations

from collections.abc import Sequence

from rollout_lws.errors import ApiError
from rollout_lws.objects.resources import Resource


def not_found(resource: Resource, name: str) -> ApiError:
    return ApiError(404, "NotFound", f'{resource} "{name}" not found')


def no_such_resource() -> ApiError:
    return ApiError(404, "NotFound", "the server could not find the requested resource")


def already_exists(resource: Resource, name: str) -> ApiError:
    return ApiError(409, "AlreadyExists", f'{resource} "{name}" already exists')


def conflict(resource: Resource, name: str, why: str) -> ApiError:
    return ApiError(409, "Conflict", f'Operation cannot be fulfilled on {resource} "{name}": {why}')


def modified(resource: Resource, name: str) -> ApiError:
    return conflict(
        resource,
        name,
        "the object has been modified; please apply your changes to the latest version and try again",
    )


def invalid(resource: Resource, name: str, violations: Sequence[str]) -> ApiError:
    """422 Invalid; one violation stands alone, several are bracketed, as kube-apiserver does."""
    kind = f"{resource.kind}.{resource.group}" if resource.group else resource.kind
    unique = list(dict.fromkeys(violations))
    listed = unique[0] if len(unique) == 1 else f"[{', '.join(unique)}]"
    return ApiError(422, "Invalid", f'{kind} "{name}" is invalid: {listed}')


def bad_request(message: str) -> ApiError:
    return ApiError(400, "BadRequest", message)


def forbidden(resource: Resource, name: str, why: str) -> ApiError:
    return ApiError(403, "Forbidden", f'{resource} "{name}" is forbidden: {why}')


def unsupported_patch(custom: bool) -> ApiError:
    accepted = ["application/json-patch+json", "application/merge-patch+json", "application/apply-patch+yaml"]
    if not custom:
        accepted.append("application/strategic-merge-patch+json")
    message = f"the body of the request was in an unknown format - accepted media types include: {', '.join(accepted)}"
    return ApiError(415, "UnsupportedMediaType", message)


def exceeded_quota(pod: str) -> ApiError:
    """403 as the quota admission of a namespace words it that has no accelerators left."""
    used = "requested: requests.nvidia.com/gpu=8, used: requests.nvidia.com/gpu=64, limited: requests.nvidia.com/gpu=64"
    return ApiError(403, "Forbidden", f'pods "{pod}" is forbidden: exceeded quota: accelerators, {used}')
