"""What `kubectl get` shows of each kind: printer columns of custom resources, and our own of the built-in ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from rollout_lws.objects import resources as known
from rollout_lws.objects.resources import Resource
from rollout_lws.sandbox import catalogue
from rollout_lws.sandbox.catalogue import Column, Served
from rollout_lws.sandbox.jsonpath import find

Object = Mapping[str, Any]
#: The cells of one object after its name, given epoch seconds.
Cells = Callable[[Object, float], list[Any]]


def age(moment: str | None, now: float) -> str:
    """A time as kubectl shows it: the time since, in the largest units."""
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


def _pod(pod: Object, now: float) -> list[Any]:
    status, spec = pod.get("status") or {}, pod.get("spec") or {}
    containers = status.get("containerStatuses") or []
    ready = sum(bool(container.get("ready")) for container in containers)
    restarts = sum(int(container.get("restartCount", 0)) for container in containers)
    return [
        f"{ready}/{len(spec.get('containers') or ())}",
        _pod_status(pod),
        str(restarts),
        age(pod["metadata"].get("creationTimestamp"), now),
        status.get("podIP") or "<none>",
        spec.get("nodeName") or "<none>",
    ]


def _service(service: Object, now: float) -> list[Any]:
    spec = service.get("spec") or {}
    ports = ",".join(f"{port.get('port')}/{port.get('protocol', 'TCP')}" for port in spec.get("ports") or ())
    selector = ",".join(f"{key}={value}" for key, value in sorted((spec.get("selector") or {}).items()))
    return [
        spec.get("type", ""),
        spec.get("clusterIP") or "<none>",
        "<none>",
        ports or "<none>",
        age(service["metadata"].get("creationTimestamp"), now),
        selector or "<none>",
    ]


def _stateful_set(obj: Object, now: float) -> list[Any]:
    ready, wanted = (obj.get("status") or {}).get("readyReplicas", 0), (obj.get("spec") or {}).get("replicas", 0)
    return [f"{ready}/{wanted}", age(obj["metadata"].get("creationTimestamp"), now)]


def _node(node: Object, now: float) -> list[Any]:
    status = node.get("status") or {}
    conditions = {entry["type"]: entry["status"] for entry in status.get("conditions") or ()}
    state = "Ready" if conditions.get("Ready", "True") == "True" else "NotReady"
    if (node.get("spec") or {}).get("unschedulable"):
        state += ",SchedulingDisabled"
    version = (status.get("nodeInfo") or {}).get("kubeletVersion", "")
    return [state, "<none>", age(node["metadata"].get("creationTimestamp"), now), version]


def _event(event: Object, now: float) -> list[Any]:
    about = event.get("involvedObject") or event.get("regarding") or {}
    seen = event.get("lastTimestamp") or event.get("eventTime") or event["metadata"].get("creationTimestamp")
    return [
        age(seen, now),
        event.get("type", ""),
        event.get("reason", ""),
        f"{str(about.get('kind', '')).lower()}/{about.get('name', '')}",
        event.get("message") or event.get("note") or "",
    ]


def _namespace(namespace: Object, now: float) -> list[Any]:
    phase = (namespace.get("status") or {}).get("phase", "")
    return [phase, age(namespace["metadata"].get("creationTimestamp"), now)]


def _revision(revision: Object, now: float) -> list[Any]:
    owners = revision["metadata"].get("ownerReferences") or ()
    owner = next((entry for entry in owners if entry.get("controller")), None)
    shown = f"{owner['kind'].lower()}.{owner['apiVersion'].partition('/')[0]}/{owner['name']}" if owner else "<none>"
    return [shown, revision.get("revision", 0), age(revision["metadata"].get("creationTimestamp"), now)]


def _claim(claim: Object, now: float) -> list[Any]:
    spec, status = claim.get("spec") or {}, claim.get("status") or {}
    return [
        status.get("phase", ""),
        spec.get("volumeName", ""),
        (status.get("capacity") or {}).get("storage", ""),
        age(claim["metadata"].get("creationTimestamp"), now),
    ]


def _autoscaler(autoscaler: Object, now: float) -> list[Any]:
    spec, status = autoscaler.get("spec") or {}, autoscaler.get("status") or {}
    target = spec.get("scaleTargetRef") or {}
    return [
        f"{target.get('kind', '')}/{target.get('name', '')}",
        spec.get("minReplicas", 1),
        spec.get("maxReplicas", 0),
        status.get("currentReplicas", 0),
        age(autoscaler["metadata"].get("creationTimestamp"), now),
    ]


def _ingress(ingress: Object, now: float) -> list[Any]:
    spec = ingress.get("spec") or {}
    hosts = dict.fromkeys(rule.get("host") or "*" for rule in spec.get("rules") or ())
    addresses = ((ingress.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()
    return [
        spec.get("ingressClassName") or "<none>",
        ",".join(hosts) or "*",
        ",".join(entry.get("ip") or entry.get("hostname") or "" for entry in addresses),
        "80, 443" if spec.get("tls") else "80",
        age(ingress["metadata"].get("creationTimestamp"), now),
    ]


def _endpoint_slice(endpoints: Object, now: float) -> list[Any]:
    ports = ",".join(str(port.get("port", "*")) for port in endpoints.get("ports") or ())
    addresses = [address for entry in endpoints.get("endpoints") or () for address in entry.get("addresses") or ()]
    more = f" + {len(addresses) - 3} more..." if len(addresses) > 3 else ""
    return [
        endpoints.get("addressType", ""),
        ports or "<unset>",
        (",".join(addresses[:3]) or "<unset>") + more,
        age(endpoints["metadata"].get("creationTimestamp"), now),
    ]


def _plain(obj: Object, now: float) -> list[Any]:
    return [age(obj["metadata"].get("creationTimestamp"), now)]


def _columns(*names: str, wide: tuple[str, ...] = ()) -> tuple[Column, ...]:
    return tuple(Column(name, "string", "", priority=int(name in wide)) for name in (*names, *wide))


_BUILT_IN: dict[Resource, tuple[tuple[Column, ...], Cells]] = {
    known.PODS: (_columns("Ready", "Status", "Restarts", "Age", wide=("IP", "Node")), _pod),
    known.SERVICES: (_columns("Type", "Cluster-IP", "External-IP", "Port(s)", "Age", wide=("Selector",)), _service),
    known.STATEFUL_SETS: (_columns("Ready", "Age"), _stateful_set),
    catalogue.DEPLOYMENTS: (_columns("Ready", "Age"), _stateful_set),
    catalogue.REPLICA_SETS: (_columns("Ready", "Age"), _stateful_set),
    known.NODES: (_columns("Status", "Roles", "Age", "Version"), _node),
    known.CORE_EVENTS: (_columns("Last Seen", "Type", "Reason", "Object", "Message"), _event),
    known.EVENTS: (_columns("Last Seen", "Type", "Reason", "Object", "Message"), _event),
    known.NAMESPACES: (_columns("Status", "Age"), _namespace),
    known.CONTROLLER_REVISIONS: (_columns("Controller", "Revision", "Age"), _revision),
    known.PERSISTENT_VOLUME_CLAIMS: (_columns("Status", "Volume", "Capacity", "Age"), _claim),
    known.INGRESSES: (_columns("Class", "Hosts", "Address", "Ports", "Age"), _ingress),
    known.ENDPOINT_SLICES: (_columns("AddressType", "Ports", "Endpoints", "Age"), _endpoint_slice),
    known.HORIZONTAL_POD_AUTOSCALERS: (_columns("Reference", "MinPods", "MaxPods", "Replicas", "Age"), _autoscaler),
}
_OTHERS = (_columns("Age"), _plain)


def columns_of(served: Served) -> tuple[Column, ...]:
    """The columns after the name."""
    return served.columns if served.custom else _BUILT_IN.get(served.resource, _OTHERS)[0]


def cells_of(served: Served, obj: Object, now: float) -> list[Any]:
    """The cells under ``columns_of``; ``now`` is epoch seconds."""
    if not served.custom:
        return _BUILT_IN.get(served.resource, _OTHERS)[1](obj, now)
    return [_cell(column, obj, now) for column in served.columns]


def _cell(column: Column, obj: Object, now: float) -> Any:
    found = find(obj, column.json_path)
    if not found or found[0] is None:
        return None
    value = found[0] if len(found) == 1 else ",".join(str(entry) for entry in found)
    if column.type == "date":
        return age(str(value), now)
    if column.type in ("integer", "number"):
        return value if isinstance(value, (int, float)) else None
    if column.type == "boolean":
        return value if isinstance(value, bool) else None
    return value if isinstance(value, str) else str(value)
