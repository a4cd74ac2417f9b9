"""Rules by kind before a write is stored: defaults, the fields that a subresource may change, validation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rollout_lws.objects.resources import (
    CONTROLLER_REVISIONS,
    CORE_EVENTS,
    EVENTS,
    HORIZONTAL_POD_AUTOSCALERS,
    INGRESSES,
    PODS,
    SERVICES,
    STATEFUL_SETS,
)
from rollout_lws.sandbox.admission import defaults, event_rules, ingress, naming, scaling
from rollout_lws.sandbox.api_resources import Served
from rollout_lws.sandbox.definitions import crds
from rollout_lws.sandbox.patching import verbatim
from rollout_lws.sandbox.wire import api_errors

Object = dict[str, Any]

#: Members of a StatefulSet's spec that an update may change.
STATEFUL_SET_MUTABLE = (
    *("replicas", "ordinals", "template", "updateStrategy", "revisionHistoryLimit"),
    *("persistentVolumeClaimRetentionPolicy", "minReadySeconds"),
)
_POD_MUTABLE = ("activeDeadlineSeconds", "tolerations", "terminationGracePeriodSeconds", "schedulingGates")


def prepare(served: Served, obj: Object, old: Object | None, now: str) -> Object:
    """``obj`` pruned and with defaults; parts shared with ``old`` are not processed again."""
    if served.schema is not None:
        return served.schema.prepared(obj, old)
    if served.resource == crds.RESOURCE:
        return crds.prepared(obj, now)
    if old is not None and obj.get("spec") is old.get("spec"):
        return obj
    filled = defaults.fill(served.resource, obj)
    if served.resource == SERVICES:
        return _with_address(filled, old)
    return filled


def limited_to(body: Object, old: Object, served: Served, subresource: str) -> Object:
    """``body`` with the old values of all fields that this request may not change."""
    if subresource == "status":
        if not served.status:
            raise api_errors.no_such_resource()
        limited = {**old, "metadata": _with_owners_of(body, old) if served.custom else body["metadata"]}
        limited.pop("status", None)
        return limited | ({"status": body["status"]} if body.get("status") is not None else {})
    if subresource not in ("", "scale"):
        raise api_errors.no_such_resource()
    if not served.status:
        return body
    limited = dict(body)
    limited.pop("status", None)
    if "status" in old:
        limited["status"] = old["status"]
    return limited


def _with_owners_of(body: Object, old: Object) -> Object:
    """``old``'s metadata with the managedFields of ``body``: all that a custom resource's status write may change."""
    owners = body["metadata"].get("managedFields")
    return old["metadata"] if owners is None else {**old["metadata"], "managedFields": owners}


def spec_changed(new: Mapping[str, Any], old: Mapping[str, Any], served: Served) -> bool:
    """Whether an update increments metadata.generation: a change outside metadata and a status subresource."""
    ignored = ("metadata", "status") if served.status else ("metadata",)
    keys = {*new, *old}.difference(ignored)
    return any(new.get(key) != old.get(key) for key in keys)


def check(served: Served, obj: Object, old: Object | None) -> None:
    """ApiError 422 with all violations."""
    found: list[str] = []
    if old is None or obj["metadata"] != old["metadata"]:
        found += naming.violations(served.resource, obj["metadata"])
    if served.schema is not None:
        found += served.schema.violations(obj, old)
        found += scaling.violations(served, obj)
    elif served.resource == crds.RESOURCE:
        found += crds.violations(obj)
    elif old is not None and obj.get("spec") is not old.get("spec"):
        found += _immutable(served, obj, old)
    if served.resource == INGRESSES and (old is None or obj.get("spec") is not old.get("spec")):
        found += ingress.violations(obj)
    if served.resource in (CORE_EVENTS, EVENTS):
        found += event_rules.violations(served.resource, obj, old)
    if served.resource == SERVICES and (old is None or obj.get("spec") is not old.get("spec")):
        found += _service(obj, old)
    if served.resource == HORIZONTAL_POD_AUTOSCALERS:
        found += _bounds(obj)
    if old is not None and served.resource == CONTROLLER_REVISIONS and obj.get("data") != old.get("data"):
        found.append(f"data: Invalid value: {verbatim.spelled(obj.get('data') or {}).decode()}: field is immutable")
    if found:
        raise api_errors.invalid(served.storage, obj["metadata"]["name"], found)


def _service(service: Mapping[str, Any], old: Mapping[str, Any] | None) -> list[str]:
    """A Service's clusterIP is immutable once set; ports are required unless it is headless or an ExternalName."""
    found: list[str] = []
    spec, before = service["spec"], (old or {}).get("spec") or {}
    named = "ExternalName" in (spec.get("type"), before.get("type"))
    if before.get("clusterIP") and not named and spec.get("clusterIP") != before["clusterIP"]:
        found.append(f'spec.clusterIPs[0]: Invalid value: ["{spec.get("clusterIP")}"]: may not change once set')
    if not spec.get("ports") and spec.get("clusterIP") != "None" and spec.get("type") != "ExternalName":
        found.append("spec.ports: Required value")
    return found


def _bounds(autoscaler: Mapping[str, Any]) -> list[str]:
    spec = autoscaler.get("spec") or {}
    low, high = spec.get("minReplicas", 1), spec.get("maxReplicas", 0)
    if high < 1:
        return ["spec.maxReplicas: Invalid value: must be greater than 0"]
    if high < low:
        return [f"spec.maxReplicas: Invalid value: {high}: must be greater than or equal to `minReplicas`"]
    return []


def _immutable(served: Served, obj: Mapping[str, Any], old: Mapping[str, Any]) -> list[str]:
    new_spec, old_spec = obj.get("spec") or {}, old.get("spec") or {}
    if served.resource == STATEFUL_SETS:
        if _without(new_spec, STATEFUL_SET_MUTABLE) != _without(old_spec, STATEFUL_SET_MUTABLE):
            allowed = ", ".join(f"'{field}'" for field in STATEFUL_SET_MUTABLE[:-1])
            return [
                f"spec: Forbidden: updates to statefulset spec for fields other than {allowed} and "
                f"'{STATEFUL_SET_MUTABLE[-1]}' are forbidden"
            ]
    elif served.resource == PODS and _pod_core(new_spec, old_spec) != _pod_core(old_spec, old_spec):
        return [
            "spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`,"
            "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to "
            "existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 "
            "if it was previously negative)"
        ]
    return []


def _without(spec: Mapping[str, Any], fields: tuple[str, ...]) -> Object:
    return {key: value for key, value in spec.items() if key not in fields}


def _pod_core(spec: Mapping[str, Any], old: Mapping[str, Any]) -> Object:
    """The immutable part of a pod's spec; nodeName may be set once, as a binding does."""
    core = _without(spec, _POD_MUTABLE if old.get("nodeName") else (*_POD_MUTABLE, "nodeName"))
    for containers in ("containers", "initContainers"):
        if containers in core:
            core[containers] = [_without(container, ("image",)) for container in core[containers]]
    return core


def _with_address(service: Object, old: Object | None) -> Object:
    """Assign a clusterIP, derived from the uid and stable for the Service's life, unless it needs none."""
    spec = service["spec"]
    if spec["type"] == "ExternalName" or spec.get("clusterIP"):
        address = spec.get("clusterIP", "")
    elif old is not None and (old.get("spec") or {}).get("clusterIP"):
        address = old["spec"]["clusterIP"]
    else:
        number = int(service["metadata"]["uid"][-4:], 16)
        address = f"10.96.{number >> 8}.{number & 255}"
    if not address:
        return service
    families = {"ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack"}
    return {**service, "spec": {**families, **spec, "clusterIP": address, "clusterIPs": [address]}}
