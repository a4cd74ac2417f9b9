"""The API server's error responses, worded like kube-apiserver's so that people and clients recognise them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from rollout_lws.errors import ApiError
from rollout_lws.objects.resources import Resource

#: The reason of a Status cause by the start of its message.
_CAUSES = {
    "Required value": "FieldValueRequired",
    "Invalid value": "FieldValueInvalid",
    "Unsupported value": "FieldValueNotSupported",
    "Duplicate value": "FieldValueDuplicate",
    "Forbidden": "FieldValueForbidden",
    "Too long": "FieldValueTooLong",
    "Too many": "FieldValueTooMany",
}


class Refusal(ApiError):
    """An ApiError with the machine-readable ``details`` of its Status: the object and the causes."""

    def __init__(
        self, code: int, reason: str, message: str, details: Mapping[str, Any], *, retry_after: float | None = None
    ) -> None:
        super().__init__(code, reason, message, retry_after)
        self.details = details


def _about(resource: Resource, name: str, kind: str = "") -> dict[str, Any]:
    """Status details about one object; ``kind`` defaults to the resource's plural."""
    named = {"name": name, "group": resource.group, "kind": kind or resource.plural}
    return {key: value for key, value in named.items() if value}


def not_found(resource: Resource, name: str) -> ApiError:
    return Refusal(404, "NotFound", f'{resource} "{name}" not found', _about(resource, name))


def no_such_resource() -> ApiError:
    return Refusal(404, "NotFound", "the server could not find the requested resource", {})


class NoSuchPath(ApiError):
    """404 for a path that no API serves; Kubernetes sends plain text, without a Status and thus without a reason."""

    def __init__(self) -> None:
        super().__init__(404, "", "404 page not found")


def no_such_method() -> ApiError:
    message = "the server does not allow this method on the requested resource"
    return Refusal(405, "MethodNotAllowed", message, {})


def already_exists(resource: Resource, name: str) -> ApiError:
    return Refusal(409, "AlreadyExists", f'{resource} "{name}" already exists', _about(resource, name))


def version_on_create() -> ApiError:
    return ApiError(500, "", "resourceVersion should not be set on objects to be created")


def conflict(resource: Resource, name: str, why: str) -> ApiError:
    message = f'Operation cannot be fulfilled on {resource} "{name}": {why}'
    return Refusal(409, "Conflict", message, _about(resource, name))


def not_meant(resource: Resource, name: str, why: str) -> ApiError:
    """409 for a delete whose precondition means another object; here Kubernetes names the kind."""
    details = _about(resource, name, resource.kind)
    message = f'Operation cannot be fulfilled on {_kind(resource)} "{name}": {why}'
    return Refusal(409, "Conflict", message, details)


def modified(resource: Resource, name: str) -> ApiError:
    return conflict(
        resource,
        name,
        "the object has been modified; please apply your changes to the latest version and try again",
    )


def conflicting(contested: Mapping[str, Sequence[str]]) -> ApiError:
    """409 for an apply: contested field paths by the manager that owns them with another value."""
    total = sum(map(len, contested.values()))
    if total == 1:
        ((who, (path,)),) = contested.items()
        message = f"conflict: conflict with {who}: {path}"
    else:
        listed = ["".join([f"conflicts with {who}:", *(f"\n- {path}" for path in contested[who])]) for who in contested]
        message = "conflicts: " + "\n".join(listed)
    causes = [
        {"reason": "FieldManagerConflict", "message": f"conflict with {who}", "field": path}
        for who, paths in contested.items()
        for path in paths
    ]
    return Refusal(409, "Conflict", f"Apply failed with {total} {message}", {"causes": causes})


def invalid(resource: Resource, name: str, violations: Sequence[str]) -> ApiError:
    """422 Invalid; like kube-apiserver, several violations are in brackets, a single one is not."""
    return _invalid(_kind(resource), name, _about(resource, name, resource.kind), violations)


def unconditional(resource: Resource, name: str) -> ApiError:
    """422 for a replace without a resourceVersion; here Kubernetes names the resource."""
    why = "metadata.resourceVersion: Invalid value: 0: must be specified for an update"
    return _invalid(str(resource), name, _about(resource, name), [why])


def invalid_options(kind: str, violation: str) -> ApiError:
    """422 for request parameters, which Kubernetes treats as an object of ``kind``."""
    return _invalid(f"{kind}.meta.k8s.io", "", {"group": "meta.k8s.io", "kind": kind}, [violation])


def _kind(resource: Resource) -> str:
    return f"{resource.kind}.{resource.group}" if resource.group else resource.kind


def _invalid(what: str, name: str, about: Mapping[str, Any], violations: Sequence[str]) -> ApiError:
    unique = list(dict.fromkeys(violations))
    listed = unique[0] if len(unique) == 1 else f"[{', '.join(unique)}]"
    details = {**about, "causes": [_cause(each) for each in violations]}
    return Refusal(422, "Invalid", f'{what} "{name}" is invalid: {listed}', details)


def _cause(violation: str) -> dict[str, str]:
    """One entry of details.causes, from "field: Type of error: what is wrong"."""
    field, _, message = violation.partition(": ")
    reason = next((word for start, word in _CAUSES.items() if message.startswith(start)), "FieldValueInvalid")
    if reason == "FieldValueInvalid" and " in body must be of type " in message:
        reason = "FieldValueTypeInvalid"
    return {"reason": reason, "message": message, "field": field}


def wrong_kind(resource: Resource, body: Mapping[str, Any], *, custom: bool) -> ApiError | None:
    """The error in a body's apiVersion and kind; None if they match ``resource`` or the URL may supply them."""
    version, kind = body.get("apiVersion"), body.get("kind")
    if custom and not kind:
        text = f"the object provided is unrecognized (must be of type {resource.kind})"
        return bad_request(f"{text}: Object 'Kind' is missing in {_shortened(body)}")
    if (version or resource.api_version, kind or resource.kind) == (resource.api_version, resource.kind):
        return None
    if not custom:
        what = f'{kind or resource.kind} in version "{version or resource.api_version}"'
        return bad_request(f"{what} cannot be handled as a {resource.kind}: unknown conversion")
    if version and version != resource.api_version:
        text = f"the API version in the data ({version}) does not match the expected API version"
        return bad_request(f"{text} ({resource.api_version})")
    return other_identity(resource, {**body, "apiVersion": resource.api_version})


def other_identity(resource: Resource, body: Mapping[str, Any]) -> ApiError | None:
    """422 for a write that changes a custom resource's apiVersion or kind; None if both stay."""
    version, kind, metadata = str(body.get("apiVersion")), str(body.get("kind")), body.get("metadata")
    name = str(metadata.get("name", "")) if isinstance(metadata, Mapping) else ""
    group = version.rpartition("/")[0]
    details = {"name": name, "group": group, "kind": kind}
    for field, given, expected in (("apiVersion", version, resource.api_version), ("kind", kind, resource.kind)):
        if given != expected:
            why = f'{field}: Invalid value: "{given}": must be {expected}'
            return _invalid(f"{kind}.{group}", name, details, [why])
    return None


def _shortened(body: Mapping[str, Any]) -> str:
    text = str(msgspec.json.encode(body), "utf-8")
    return f"'{text}'" if len(text) < 1024 else f"'{text[:1024]}...'"


def undeclared(resource: Resource, body: Mapping[str, Any], path: str) -> ApiError:
    """500 for an apply with a field that the schema lacks: no manager could own it."""
    given = body.get("metadata") or {}
    what = f"{given.get('namespace', '')}/{given.get('name', '')}; {resource.api_version}, Kind={resource.kind}"
    return ApiError(500, "", f"failed to create typed patch object ({what}): .{path}: field not declared in schema")


def bad_request(message: str) -> ApiError:
    return ApiError(400, "BadRequest", message)


def forbidden(resource: Resource, name: str, why: str, causes: Sequence[Mapping[str, str]] = ()) -> ApiError:
    details = _about(resource, name) | ({"causes": causes} if causes else {})
    return Refusal(403, "Forbidden", f'{resource} "{name}" is forbidden: {why}', details)


def unsupported_patch(custom: bool) -> ApiError:
    accepted = ["application/json-patch+json", "application/merge-patch+json", "application/apply-patch+yaml"]
    if not custom:
        accepted.append("application/strategic-merge-patch+json")
    message = f"the body of the request was in an unknown format - accepted media types include: {', '.join(accepted)}"
    return Refusal(415, "UnsupportedMediaType", message, {})


def rejected_patch() -> ApiError:
    message = "the server rejected our request due to an error in our request"
    return Refusal(422, "Invalid", message, {})


def no_version(text: str) -> str:
    return f'resourceVersion: Invalid value: "{text}": strconv.ParseUint: parsing "{text}": invalid syntax'


def future_version(version: int, current: int) -> ApiError:
    """504 for a list at a resourceVersion that does not exist yet."""
    causes = [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]
    details = {"causes": causes, "retryAfterSeconds": 1}
    message = f"Timeout: Too large resource version: {version}, current: {current}"
    return Refusal(504, "Timeout", message, details, retry_after=1.0)


def exceeded_quota(pod: str) -> ApiError:
    """403 from ResourceQuota admission in a namespace with no accelerators left."""
    used = "requested: requests.nvidia.com/gpu=8, used: requests.nvidia.com/gpu=64, limited: requests.nvidia.com/gpu=64"
    return ApiError(403, "Forbidden", f'pods "{pod}" is forbidden: exceeded quota: accelerators, {used}')
