"""kube-apiserver's printer columns of built-in kinds, each with the value of its cells."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from rollout_lws.objects import resources as known
from rollout_lws.objects.resources import Resource
from rollout_lws.sandbox.api_resources import Column, value_at
from rollout_lws.sandbox.printing.jsonpath import joined
from rollout_lws.sandbox.wire.selectors import format_labels

Object: TypeAlias = Mapping[str, Any]

_NONE, _UNKNOWN, _UNSET = "<none>", "<unknown>", "<unset>"
_ACCESS_MODES = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}


class Printed(NamedTuple):
    """A column and the value of its cell; with ``aged`` the cell is the time since that value."""

    column: Column
    value: Callable[[Object], Any]
    aged: bool = False


def _at(*paths: str, absent: Any = "") -> Callable[[Object], Any]:
    """The value at the first JSONPath at which there is one, else ``absent``; several values with commas."""
    return lambda obj: next(filter(None, (joined(obj, path) for path in paths)), absent)


def _text(name: str, value: str | Callable[[Object], Any], absent: Any = "", *, wide: bool = False) -> Printed:
    """A string column; ``value`` is a JSONPath or a function, only ``-o wide`` shows a ``wide`` one."""
    column = Column(name, "string", "", priority=int(wide))
    return Printed(column, _at(value, absent=absent) if isinstance(value, str) else value)


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


def _containers_ready(pod: Object) -> str:
    ready = sum(bool(each.get("ready")) for each in value_at(pod, "status.containerStatuses") or ())
    return f"{ready}/{len(value_at(pod, 'spec.containers') or ())}"


def _restarts(pod: Object) -> str:
    return str(sum(int(each.get("restartCount", 0)) for each in value_at(pod, "status.containerStatuses") or ()))


def _gates(pod: Object) -> str:
    """Open readiness gates out of all."""
    gates = [gate["conditionType"] for gate in value_at(pod, "spec.readinessGates") or ()]
    true = {each["type"] for each in value_at(pod, "status.conditions") or () if each.get("status") == "True"}
    return f"{sum(gate in true for gate in gates)}/{len(gates)}" if gates else _NONE


def _service_ports(service: Object) -> str:
    ports = value_at(service, "spec.ports") or ()
    return ",".join(f"{port.get('port')}/{port.get('protocol', 'TCP')}" for port in ports) or _NONE


def _service_selector(service: Object) -> str:
    return format_labels({"matchLabels": value_at(service, "spec.selector")}) or _NONE


def _replicas_ready(obj: Object) -> str:
    return f"{value_at(obj, 'status.readyReplicas') or 0}/{value_at(obj, 'spec.replicas') or 0}"


def _node_status(node: Object) -> str:
    conditions = {entry["type"]: entry["status"] for entry in value_at(node, "status.conditions") or ()}
    state = "Ready" if conditions.get("Ready", "True") == "True" else "NotReady"
    return f"{state},SchedulingDisabled" if value_at(node, "spec.unschedulable") else state


_FIRST_SEEN = (".firstTimestamp", ".deprecatedFirstTimestamp", ".eventTime")
_LAST_SEEN = (".series.lastObservedTime", ".lastTimestamp", ".deprecatedLastTimestamp", *_FIRST_SEEN)
_event_kind = _at(".involvedObject.kind", ".regarding.kind")
_event_name = _at(".involvedObject.name", ".regarding.name")
_component = _at(
    *(".source.component", ".deprecatedSource.component", ".reportingComponent", ".reportingController"),
)
_host = _at(".source.host", ".deprecatedSource.host", ".reportingInstance")


def _controller(revision: Object) -> str:
    owners = revision["metadata"].get("ownerReferences") or ()
    owner = next((entry for entry in owners if entry.get("controller")), None)
    return f"{owner['kind'].lower()}.{owner['apiVersion'].partition('/')[0]}/{owner['name']}" if owner else _NONE


def _claim_status(claim: Object) -> str:
    return "Terminating" if claim["metadata"].get("deletionTimestamp") else value_at(claim, "status.phase") or ""


def _access_modes(claim: Object) -> str:
    return ",".join(_ACCESS_MODES.get(mode, mode) for mode in value_at(claim, "status.accessModes") or ())


def _hosts(ingress: Object) -> str:
    return ",".join(dict.fromkeys(rule.get("host") or "*" for rule in value_at(ingress, "spec.rules") or ())) or "*"


def _addresses(ingress: Object) -> str:
    entries = value_at(ingress, "status.loadBalancer.ingress") or ()
    return ",".join(entry.get("ip") or entry.get("hostname") or "" for entry in entries)


def _endpoint_ports(endpoints: Object) -> str:
    return ",".join(str(port.get("port", "*")) for port in endpoints.get("ports") or ()) or _UNSET


def _endpoints(endpoints: Object) -> str:
    addresses = [address for entry in endpoints.get("endpoints") or () for address in entry.get("addresses") or ()]
    more = f" + {len(addresses) - 3} more..." if len(addresses) > 3 else ""
    return (",".join(addresses[:3]) or _UNSET) + more


def _scaled(autoscaler: Object) -> str:
    target = value_at(autoscaler, "spec.scaleTargetRef") or {}
    return f"{target.get('kind', '')}/{target.get('name', '')}"


def _size(*fields: str) -> Callable[[Object], int]:
    """The number of entries in some members."""
    return lambda obj: sum(len(obj.get(field) or ()) for field in fields)


#: The name column; scripts that parse tables find it by its format.
NAME = Printed(Column("Name", "string", "", format="name"), _at(".metadata.name"))
AGE = _text("Age", ".metadata.creationTimestamp")._replace(aged=True)
_SELECTOR = _text("Selector", lambda obj: format_labels(value_at(obj, "spec.selector")), wide=True)
_TEMPLATE = (
    _text("Containers", ".spec.template.spec.containers[*].name", wide=True),
    _text("Images", ".spec.template.spec.containers[*].image", wide=True),
)
_EVENT = (
    _text("Last Seen", _at(*_LAST_SEEN))._replace(aged=True),
    _text("Type", ".type"),
    _text("Reason", ".reason"),
    _text("Object", lambda event: f"{_event_kind(event).lower()}/{_event_name(event)}"),
    _text("Subobject", _at(".involvedObject.fieldPath", ".regarding.fieldPath"), wide=True),
    _text("Source", lambda event: ", ".join(filter(None, (_component(event), _host(event)))), wide=True),
    _text("Message", lambda event: (event.get("message") or event.get("note") or "").strip()),
    _text("First Seen", _at(*_FIRST_SEEN), wide=True)._replace(aged=True),
    _text("Count", _at(".series.count", ".count", ".deprecatedCount", absent=1), wide=True),
    Printed(Column("Name", "string", "", format="name", priority=1), _at(".metadata.name")),
)
BUILT_IN: dict[Resource, Sequence[Printed]] = {
    known.PODS: (
        NAME,
        _text("Ready", _containers_ready),
        _text("Status", _pod_status),
        _text("Restarts", _restarts),
        AGE,
        _text("IP", ".status.podIP", _NONE, wide=True),
        _text("Node", ".spec.nodeName", _NONE, wide=True),
        _text("Nominated Node", ".status.nominatedNodeName", _NONE, wide=True),
        _text("Readiness Gates", _gates, wide=True),
    ),
    known.SERVICES: (
        NAME,
        _text("Type", ".spec.type"),
        _text("Cluster-IP", ".spec.clusterIP", _NONE),
        _text("External-IP", lambda _: _NONE),
        _text("Port(s)", _service_ports),
        AGE,
        _text("Selector", _service_selector, wide=True),
    ),
    known.STATEFUL_SETS: (NAME, _text("Ready", _replicas_ready), AGE, *_TEMPLATE),
    known.DEPLOYMENTS: (
        NAME,
        _text("Ready", _replicas_ready),
        _text("Up-to-date", ".status.updatedReplicas", 0),
        _text("Available", ".status.availableReplicas", 0),
        AGE,
        *_TEMPLATE,
        _SELECTOR,
    ),
    known.NODES: (
        NAME,
        _text("Status", _node_status),
        _text("Roles", lambda _: _NONE),
        AGE,
        _text("Version", ".status.nodeInfo.kubeletVersion"),
        _text("Internal-IP", '.status.addresses[?(@.type=="InternalIP")].address', _NONE, wide=True),
        _text("External-IP", '.status.addresses[?(@.type=="ExternalIP")].address', _NONE, wide=True),
        _text("OS-Image", ".status.nodeInfo.osImage", _UNKNOWN, wide=True),
        _text("Kernel-Version", ".status.nodeInfo.kernelVersion", _UNKNOWN, wide=True),
        _text("Container-Runtime", ".status.nodeInfo.containerRuntimeVersion", _UNKNOWN, wide=True),
    ),
    known.CORE_EVENTS: _EVENT,
    known.EVENTS: _EVENT,
    known.NAMESPACES: (NAME, _text("Status", ".status.phase"), AGE),
    known.CONTROLLER_REVISIONS: (NAME, _text("Controller", _controller), _text("Revision", ".revision", 0), AGE),
    known.PERSISTENT_VOLUME_CLAIMS: (
        NAME,
        _text("Status", _claim_status),
        _text("Volume", ".spec.volumeName"),
        _text("Capacity", ".status.capacity.storage"),
        _text("Access Modes", _access_modes),
        _text("StorageClass", ".spec.storageClassName"),
        _text("VolumeAttributesClass", ".spec.volumeAttributesClassName", _UNSET),
        AGE,
        _text("VolumeMode", ".spec.volumeMode", _UNSET, wide=True),
    ),
    known.INGRESSES: (
        NAME,
        _text("Class", ".spec.ingressClassName", _NONE),
        _text("Hosts", _hosts),
        _text("Address", _addresses),
        _text("Ports", lambda ingress: "80, 443" if value_at(ingress, "spec.tls") else "80"),
        AGE,
    ),
    known.ENDPOINT_SLICES: (
        NAME,
        _text("AddressType", ".addressType"),
        _text("Ports", _endpoint_ports),
        _text("Endpoints", _endpoints),
        AGE,
    ),
    known.HORIZONTAL_POD_AUTOSCALERS: (
        NAME,
        _text("Reference", _scaled),
        # The sandbox has no metrics.
        _text("Targets", lambda obj: ", ".join(_UNKNOWN for _ in value_at(obj, "spec.metrics") or ()) or _NONE),
        _text("MinPods", lambda obj: str((obj.get("spec") or {}).get("minReplicas", 1))),
        _text("MaxPods", ".spec.maxReplicas", 0),
        _text("Replicas", ".status.currentReplicas", 0),
        AGE,
    ),
    known.CONFIG_MAPS: (NAME, _text("Data", _size("data", "binaryData")), AGE),
    known.SECRETS: (NAME, _text("Type", ".type"), _text("Data", _size("data")), AGE),
    known.LEASES: (NAME, _text("Holder", ".spec.holderIdentity"), AGE),
    known.POD_DISRUPTION_BUDGETS: (
        NAME,
        _text("Min Available", lambda budget: str((budget.get("spec") or {}).get("minAvailable", "N/A"))),
        _text("Max Unavailable", lambda budget: str((budget.get("spec") or {}).get("maxUnavailable", "N/A"))),
        Printed(Column("Allowed Disruptions", "integer", ""), _at(".status.disruptionsAllowed", absent=0)),
        AGE,
    ),
    known.CUSTOM_RESOURCE_DEFINITIONS: (
        NAME,
        Printed(Column("Created At", "date", ""), _at(".metadata.creationTimestamp")),
    ),
}
