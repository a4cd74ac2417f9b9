"""Table cells of built-in kinds: one function a kind, from an object and the time in epoch seconds."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from rollout_lws.sandbox.wire.selectors import format_labels

Object = Mapping[str, Any]

_NONE = "<none>"
_ACCESS_MODES = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}


def age(moment: str | None, now: float) -> str:
    """The time since ``moment`` as kubectl shows it, in the largest units."""
    if not moment:
        return "<unknown>"
    try:
        seconds = max(0, int(now - datetime.fromisoformat(moment).timestamp()))
    except ValueError:
        return "<invalid>"
    if seconds < 120:
        return f"{seconds}s"
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    if minutes < 10:
        return f"{minutes}m{seconds % 60}s" if seconds % 60 else f"{minutes}m"
    if hours < 3:
        return f"{minutes}m"
    if hours < 8:
        return f"{hours}h{minutes % 60}m" if minutes % 60 else f"{hours}h"
    if hours < 48:
        return f"{hours}h"
    if days < 8:
        return f"{days}d{hours % 24}h" if hours % 24 else f"{days}d"
    return f"{days}d" if days < 730 else f"{days // 365}y"


def _pod_status(pod: Object) -> str:
    status = pod.get("status") or {}
    if pod["metadata"].get("deletionTimestamp"):
        return "Terminating"
    for container in (status.get("initContainerStatuses") or []) + (status.get("containerStatuses") or []):
        state = container.get("state") or {}
        reason = (state.get("waiting") or state.get("terminated") or {}).get("reason")
        if reason and reason not in ("PodInitializing", "Completed"):
            return str(reason)
    return str(status.get("reason") or status.get("phase") or "Unknown")


def _name(obj: Object) -> str:
    return str(obj["metadata"]["name"])


def _age(obj: Object, now: float) -> str:
    return age(obj["metadata"].get("creationTimestamp"), now)


def pod(pod: Object, now: float) -> list[Any]:
    status, spec = pod.get("status") or {}, pod.get("spec") or {}
    containers = status.get("containerStatuses") or []
    ready = sum(bool(container.get("ready")) for container in containers)
    restarts = sum(int(container.get("restartCount", 0)) for container in containers)
    return [
        _name(pod),
        f"{ready}/{len(spec.get('containers') or ())}",
        _pod_status(pod),
        str(restarts),
        _age(pod, now),
        status.get("podIP") or _NONE,
        spec.get("nodeName") or _NONE,
        status.get("nominatedNodeName") or _NONE,
        _gates(spec, status),
    ]


def _gates(spec: Mapping[str, Any], status: Mapping[str, Any]) -> str:
    """Open readiness gates out of all."""
    gates = [gate["conditionType"] for gate in spec.get("readinessGates") or ()]
    true = {each["type"] for each in status.get("conditions") or () if each.get("status") == "True"}
    return f"{sum(gate in true for gate in gates)}/{len(gates)}" if gates else _NONE


def service(service: Object, now: float) -> list[Any]:
    spec = service.get("spec") or {}
    ports = ",".join(f"{port.get('port')}/{port.get('protocol', 'TCP')}" for port in spec.get("ports") or ())
    return [
        _name(service),
        spec.get("type", ""),
        spec.get("clusterIP") or _NONE,
        _NONE,
        ports or _NONE,
        _age(service, now),
        format_labels({"matchLabels": spec.get("selector")}) or _NONE,
    ]


def _containers(obj: Object) -> list[str]:
    """Names and images of a template's containers."""
    template = (obj.get("spec") or {}).get("template") or {}
    containers = (template.get("spec") or {}).get("containers") or ()
    return [",".join(str(each.get(field, "")) for each in containers) for field in ("name", "image")]


def _number(obj: Object, part: str, field: str) -> int:
    return int((obj.get(part) or {}).get(field) or 0)


def stateful_set(obj: Object, now: float) -> list[Any]:
    ready = f"{_number(obj, 'status', 'readyReplicas')}/{_number(obj, 'spec', 'replicas')}"
    return [_name(obj), ready, _age(obj, now), *_containers(obj)]


def deployment(obj: Object, now: float) -> list[Any]:
    ready = f"{_number(obj, 'status', 'readyReplicas')}/{_number(obj, 'spec', 'replicas')}"
    counts = [_number(obj, "status", field) for field in ("updatedReplicas", "availableReplicas")]
    return [_name(obj), ready, *counts, _age(obj, now), *_containers(obj), _selector(obj)]


def replica_set(obj: Object, now: float) -> list[Any]:
    counts = [_number(obj, "status", field) for field in ("replicas", "readyReplicas")]
    wanted = _number(obj, "spec", "replicas")
    return [_name(obj), wanted, *counts, _age(obj, now), *_containers(obj), _selector(obj)]


def _selector(obj: Object) -> str:
    return format_labels((obj.get("spec") or {}).get("selector"))


def node(node: Object, now: float) -> list[Any]:
    status = node.get("status") or {}
    conditions = {entry["type"]: entry["status"] for entry in status.get("conditions") or ()}
    state = "Ready" if conditions.get("Ready", "True") == "True" else "NotReady"
    if (node.get("spec") or {}).get("unschedulable"):
        state += ",SchedulingDisabled"
    info = status.get("nodeInfo") or {}
    addresses = {entry["type"]: entry["address"] for entry in status.get("addresses") or ()}
    return [
        _name(node),
        state,
        _NONE,
        _age(node, now),
        info.get("kubeletVersion", ""),
        *(addresses.get(kind) or _NONE for kind in ("InternalIP", "ExternalIP")),
        *(info.get(field) or "<unknown>" for field in ("osImage", "kernelVersion", "containerRuntimeVersion")),
    ]


def event(event: Object, now: float) -> list[Any]:
    """An event in the form of core/v1 or of events.k8s.io."""
    about = event.get("involvedObject") or event.get("regarding") or {}
    series = event.get("series") or {}
    first = event.get("firstTimestamp") or event.get("deprecatedFirstTimestamp") or event.get("eventTime")
    last = series.get("lastObservedTime") or event.get("lastTimestamp") or event.get("deprecatedLastTimestamp") or first
    source = event.get("source") or event.get("deprecatedSource") or {}
    told_by = [
        source.get("component") or event.get("reportingComponent") or event.get("reportingController") or "",
        source.get("host") or event.get("reportingInstance") or "",
    ]
    return [
        age(last, now),
        event.get("type", ""),
        event.get("reason", ""),
        f"{str(about.get('kind', '')).lower()}/{about.get('name', '')}",
        about.get("fieldPath", ""),
        ", ".join(filter(None, told_by)),
        (event.get("message") or event.get("note") or "").strip(),
        age(first, now),
        series.get("count") or event.get("count") or event.get("deprecatedCount") or 1,
        _name(event),
    ]


def namespace(namespace: Object, now: float) -> list[Any]:
    return [_name(namespace), (namespace.get("status") or {}).get("phase", ""), _age(namespace, now)]


def revision(revision: Object, now: float) -> list[Any]:
    owners = revision["metadata"].get("ownerReferences") or ()
    owner = next((entry for entry in owners if entry.get("controller")), None)
    shown = f"{owner['kind'].lower()}.{owner['apiVersion'].partition('/')[0]}/{owner['name']}" if owner else _NONE
    return [_name(revision), shown, revision.get("revision", 0), _age(revision, now)]


def claim(claim: Object, now: float) -> list[Any]:
    spec, status = claim.get("spec") or {}, claim.get("status") or {}
    return [
        _name(claim),
        "Terminating" if claim["metadata"].get("deletionTimestamp") else status.get("phase", ""),
        spec.get("volumeName", ""),
        (status.get("capacity") or {}).get("storage", ""),
        ",".join(_ACCESS_MODES.get(mode, mode) for mode in status.get("accessModes") or ()),
        spec.get("storageClassName") or "",
        spec.get("volumeAttributesClassName") or "<unset>",
        _age(claim, now),
        spec.get("volumeMode") or "<unset>",
    ]


def autoscaler(autoscaler: Object, now: float) -> list[Any]:
    spec, status = autoscaler.get("spec") or {}, autoscaler.get("status") or {}
    target = spec.get("scaleTargetRef") or {}
    return [
        _name(autoscaler),
        f"{target.get('kind', '')}/{target.get('name', '')}",
        # The sandbox has no metrics.
        ", ".join("<unknown>" for _ in spec.get("metrics") or ()) or _NONE,
        str(spec.get("minReplicas", 1)),
        spec.get("maxReplicas", 0),
        status.get("currentReplicas", 0),
        _age(autoscaler, now),
    ]


def ingress(ingress: Object, now: float) -> list[Any]:
    spec = ingress.get("spec") or {}
    hosts = dict.fromkeys(rule.get("host") or "*" for rule in spec.get("rules") or ())
    addresses = ((ingress.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()
    return [
        _name(ingress),
        spec.get("ingressClassName") or _NONE,
        ",".join(hosts) or "*",
        ",".join(entry.get("ip") or entry.get("hostname") or "" for entry in addresses),
        "80, 443" if spec.get("tls") else "80",
        _age(ingress, now),
    ]


def endpoint_slice(endpoints: Object, now: float) -> list[Any]:
    ports = ",".join(str(port.get("port", "*")) for port in endpoints.get("ports") or ())
    addresses = [address for entry in endpoints.get("endpoints") or () for address in entry.get("addresses") or ()]
    more = f" + {len(addresses) - 3} more..." if len(addresses) > 3 else ""
    return [
        _name(endpoints),
        endpoints.get("addressType", ""),
        ports or "<unset>",
        (",".join(addresses[:3]) or "<unset>") + more,
        _age(endpoints, now),
    ]


def config_map(config_map: Object, now: float) -> list[Any]:
    count = sum(len(config_map.get(field) or ()) for field in ("data", "binaryData"))
    return [_name(config_map), count, _age(config_map, now)]


def secret(secret: Object, now: float) -> list[Any]:
    return [_name(secret), secret.get("type", ""), len(secret.get("data") or ()), _age(secret, now)]


def lease(lease: Object, now: float) -> list[Any]:
    return [_name(lease), (lease.get("spec") or {}).get("holderIdentity") or "", _age(lease, now)]


def budget(budget: Object, now: float) -> list[Any]:
    spec = budget.get("spec") or {}
    bounds = [str(spec.get(field, "N/A")) for field in ("minAvailable", "maxUnavailable")]
    return [_name(budget), *bounds, _number(budget, "status", "disruptionsAllowed"), _age(budget, now)]


def definition(definition: Object, now: float) -> list[Any]:  # noqa: ARG001 (a time, not an age)
    return [_name(definition), definition["metadata"].get("creationTimestamp")]


def plain(obj: Object, now: float) -> list[Any]:
    return [_name(obj), _age(obj, now)]
