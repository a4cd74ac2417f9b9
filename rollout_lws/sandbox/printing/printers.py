"""kube-apiserver's printer columns of built-in kinds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rollout_lws.objects import resources as known
from rollout_lws.objects.resources import Resource
from rollout_lws.sandbox import api_resources
from rollout_lws.sandbox.api_resources import Column
from rollout_lws.sandbox.printing import cells
from rollout_lws.sandbox.printing.cells import Object

#: The cells of one object at a time in epoch seconds.
Cells = Callable[[Object, float], list[Any]]

#: The name column; scripts that parse tables find it by its format.
NAME = Column("Name", "string", "", format="name")


def columns_of(resource: Resource) -> tuple[Column, ...]:
    return _PRINTED.get(resource, _OTHERS)[0]


def cells_of(resource: Resource, obj: Object, now: float) -> list[Any]:
    return _PRINTED.get(resource, _OTHERS)[1](obj, now)


def _columns(*names: str, wide: tuple[str, ...] = (), **types: str) -> tuple[Column, ...]:
    """The name column and string columns; ``types`` sets another type, by lower-case column name."""
    others = (
        Column(name, types.get(name.lower().replace(" ", "_"), "string"), "", priority=int(name in wide))
        for name in (*names, *wide)
    )
    return NAME, *others


_TEMPLATE = ("Containers", "Images")
_EVENT_COLUMNS = (
    *(Column(name, "string", "") for name in ("Last Seen", "Type", "Reason", "Object")),
    *(Column(name, "string", "", priority=1) for name in ("Subobject", "Source")),
    Column("Message", "string", ""),
    *(Column(name, "string", "", priority=1) for name in ("First Seen", "Count")),
    Column("Name", "string", "", format="name", priority=1),
)
_PRINTED: dict[Resource, tuple[tuple[Column, ...], Cells]] = {
    known.PODS: (
        _columns(
            *("Ready", "Status", "Restarts", "Age"),
            wide=("IP", "Node", "Nominated Node", "Readiness Gates"),
        ),
        cells.pod,
    ),
    known.SERVICES: (
        _columns("Type", "Cluster-IP", "External-IP", "Port(s)", "Age", wide=("Selector",)),
        cells.service,
    ),
    known.STATEFUL_SETS: (_columns("Ready", "Age", wide=_TEMPLATE), cells.stateful_set),
    known.DEPLOYMENTS: (
        _columns("Ready", "Up-to-date", "Available", "Age", wide=(*_TEMPLATE, "Selector")),
        cells.deployment,
    ),
    api_resources.REPLICA_SETS: (
        _columns(
            *("Desired", "Current", "Ready", "Age"),
            wide=(*_TEMPLATE, "Selector"),
            desired="integer",
            current="integer",
            ready="integer",
        ),
        cells.replica_set,
    ),
    known.NODES: (
        _columns(
            *("Status", "Roles", "Age", "Version"),
            wide=("Internal-IP", "External-IP", "OS-Image", "Kernel-Version", "Container-Runtime"),
        ),
        cells.node,
    ),
    known.CORE_EVENTS: (_EVENT_COLUMNS, cells.event),
    known.EVENTS: (_EVENT_COLUMNS, cells.event),
    known.NAMESPACES: (_columns("Status", "Age"), cells.namespace),
    known.CONTROLLER_REVISIONS: (_columns("Controller", "Revision", "Age"), cells.revision),
    known.PERSISTENT_VOLUME_CLAIMS: (
        _columns(
            *("Status", "Volume", "Capacity", "Access Modes", "StorageClass", "VolumeAttributesClass", "Age"),
            wide=("VolumeMode",),
        ),
        cells.claim,
    ),
    known.INGRESSES: (_columns("Class", "Hosts", "Address", "Ports", "Age"), cells.ingress),
    known.ENDPOINT_SLICES: (_columns("AddressType", "Ports", "Endpoints", "Age"), cells.endpoint_slice),
    known.HORIZONTAL_POD_AUTOSCALERS: (
        _columns("Reference", "Targets", "MinPods", "MaxPods", "Replicas", "Age"),
        cells.autoscaler,
    ),
    known.CONFIG_MAPS: (_columns("Data", "Age"), cells.config_map),
    known.SECRETS: (_columns("Type", "Data", "Age"), cells.secret),
    known.LEASES: (_columns("Holder", "Age"), cells.lease),
    known.POD_DISRUPTION_BUDGETS: (
        _columns("Min Available", "Max Unavailable", "Allowed Disruptions", "Age", allowed_disruptions="integer"),
        cells.budget,
    ),
    known.CUSTOM_RESOURCE_DEFINITIONS: (_columns("Created At", created_at="date"), cells.definition),
}
_OTHERS = (_columns("Age"), cells.plain)
