"""The EndpointSlice controller: one EndpointSlice for each Service with a selector."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

from rollout_lws.objects.resources import ENDPOINT_SLICES, LWS_NAME, PODS, SERVICES
from rollout_lws.objects.writes import Create, Replace
from rollout_lws.sandbox.behaviours.base import (
    NOTHING,
    Change,
    Key,
    Object,
    Outcome,
    View,
    has_condition,
    key_of,
    labels_of,
    owner_reference,
    terminating,
)
from rollout_lws.sandbox.behaviours.revisions import short_hash

_Term: TypeAlias = tuple[str, str, str]

_SERVICE_NAME = "kubernetes.io/service-name"
_MANAGED_BY = "endpointslice.kubernetes.io/managed-by"


class EndpointSlices:
    """Reconciles Services; triggered by them, their slices, and pods whose labels, address or readiness changed."""

    name = "endpoint-slices"

    def __init__(self) -> None:
        self._services: dict[_Term, dict[Key, Object]] = {}

    def wakes(self, change: Change, view: View) -> Iterable[Key]:  # noqa: ARG002 (Services are found by their selectors)
        if change.resource == SERVICES:
            self._remember(change)
            return (key_of(change.object),)
        if change.resource == ENDPOINT_SLICES:
            service = labels_of(change.object).get(_SERVICE_NAME)
            return ((change.object["metadata"]["namespace"], service),) if service else ()
        if change.resource != PODS:
            return ()
        now = None if change.deleted else _fingerprint(change.object)
        before = None if change.previous is None else _fingerprint(change.previous)
        if now == before:
            return ()
        versions = [item for item in (change.object, change.previous) if item is not None]
        return dict.fromkeys(key for pod in versions for key in self._selecting(pod))

    def _remember(self, change: Change) -> None:
        """Index each Service by one term of its selector, so that a pod's labels lead to its Services."""
        key = key_of(change.object)
        for term in _term(change.previous):
            self._services.get(term, {}).pop(key, None)
        for term in _term(None if change.deleted else change.object):
            self._services.setdefault(term, {})[key] = change.object

    def _selecting(self, pod: Object) -> Iterator[Key]:
        namespace, labels = pod["metadata"]["namespace"], labels_of(pod)
        for label, value in labels.items():
            for key, service in self._services.get((namespace, label, value), {}).items():
                if service["spec"]["selector"].items() <= labels.items():
                    yield key

    def decide(self, key: Key, view: View, now: float) -> Outcome:  # noqa: ARG002 (it does not depend on time)
        service = view.get(SERVICES, *key)
        selector = (service["spec"].get("selector") or {}) if service else {}
        if service is None or not selector or terminating(service):
            return NOTHING
        pods = view.select(PODS, key[0], selector)
        body = _slice(service, [_endpoint(service, pod) for pod in pods if _address(pod)])
        known = view.get(ENDPOINT_SLICES, key[0], _slice_name(service))
        if known is None:
            return Outcome((Create(ENDPOINT_SLICES, body, "endpoints of a Service"),))
        if all(known.get(member) == body[member] for member in ("endpoints", "ports")):
            return NOTHING
        changed = {**known, "endpoints": body["endpoints"], "ports": body["ports"]}
        return Outcome((Replace(ENDPOINT_SLICES, changed, "endpoints changed"),))


def _fingerprint(pod: Object) -> tuple[Any, ...] | None:
    """The pod fields that an endpoint depends on; None while the pod cannot be an endpoint."""
    address = _address(pod)
    return (address, has_condition(pod, "Ready"), terminating(pod), labels_of(pod)) if address else None


def _address(pod: Object) -> str:
    status = pod.get("status") or {}
    return "" if status.get("phase") in ("Succeeded", "Failed") else str(status.get("podIP") or "")


def _term(service: Object | None) -> tuple[_Term, ...]:
    """The most selective term of a Service's selector: the LWS name if it has one."""
    selector = (service["spec"].get("selector") or {}) if service else {}
    if service is None or not selector:
        return ()
    label = LWS_NAME if LWS_NAME in selector else next(iter(selector))
    return ((service["metadata"]["namespace"], label, selector[label]),)


def _endpoint(service: Object, pod: Object) -> dict[str, Any]:
    serving, going = has_condition(pod, "Ready"), terminating(pod)
    ready = bool(service["spec"].get("publishNotReadyAddresses")) or (serving and not going)
    namespace, name = key_of(pod)
    return {
        "addresses": [_address(pod)],
        "conditions": {"ready": ready, "serving": serving, "terminating": going},
        "nodeName": pod["spec"].get("nodeName", ""),
        "targetRef": {"kind": PODS.kind, "namespace": namespace, "name": name, "uid": pod["metadata"]["uid"]},
    }


def _slice_name(service: Object) -> str:
    """A stable name for each Service object, so that a repeated create finds the existing slice."""
    return f"{service['metadata']['name']}-{short_hash(service['metadata']['uid'])[:5]}"


def _slice(service: Object, endpoints: list[dict[str, Any]]) -> dict[str, Any]:
    namespace, name = key_of(service)
    labels = {_SERVICE_NAME: name, _MANAGED_BY: "endpointslice-controller.k8s.io"}
    if service["spec"].get("clusterIP") == "None":
        labels["service.kubernetes.io/headless"] = ""
    return {
        "apiVersion": ENDPOINT_SLICES.api_version,
        "kind": ENDPOINT_SLICES.kind,
        "metadata": {
            "name": _slice_name(service),
            "namespace": namespace,
            "labels": labels,
            "ownerReferences": [owner_reference(SERVICES, service)],
        },
        "addressType": "IPv4",
        "endpoints": endpoints,
        "ports": [_port(port) for port in service["spec"].get("ports") or ()],
    }


def _port(port: dict[str, Any]) -> dict[str, Any]:
    """A port as listed in the slice; a named targetPort becomes the Service's port, because no pod listens here."""
    target = port.get("targetPort")
    return {
        "name": port.get("name", ""),
        "port": target if isinstance(target, int) else port["port"],
        "protocol": port.get("protocol", "TCP"),
    }
