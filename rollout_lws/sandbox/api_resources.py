"""The built-in resources of the sandbox's API server, and how each kind is served."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rollout_lws.objects import resources as known
from rollout_lws.objects.resources import INGRESSES, POD_DISRUPTION_BUDGETS, Resource

if TYPE_CHECKING:
    from rollout_lws.sandbox.schemas.schema import Schema

Convert = Callable[[dict[str, Any]], dict[str, Any]]

PERSISTENT_VOLUMES = Resource("", "v1", "PersistentVolume", "persistentvolumes", namespaced=False)
REPLICA_SETS = Resource("apps", "v1", "ReplicaSet", "replicasets")
ENDPOINTS = Resource("", "v1", "Endpoints", "endpoints")
#: Stored only so that manifests with them apply; the sandbox does no authorization.
RBAC = (
    known.ROLES,
    known.ROLE_BINDINGS,
    known.CLUSTER_ROLES,
    known.CLUSTER_ROLE_BINDINGS,
)
GATEWAY_CLASSES = Resource("gateway.networking.k8s.io", "v1", "GatewayClass", "gatewayclasses", namespaced=False)
GATEWAYS = Resource("gateway.networking.k8s.io", "v1", "Gateway", "gateways")


@dataclass(frozen=True, slots=True)
class Scale:
    """Dotted paths of the scale subresource; ``selector`` is empty when there is none."""

    spec_replicas: str = "spec.replicas"
    status_replicas: str = "status.replicas"
    selector: str = ""


@dataclass(frozen=True, slots=True)
class Column:
    """One printer column; only ``-o wide`` shows a ``priority`` above 0."""

    name: str
    type: str
    json_path: str
    description: str = ""
    format: str = ""
    priority: int = 0


@dataclass(frozen=True, slots=True)
class Served:
    """One served resource.

    ``generation``: spec changes increment metadata.generation. ``status``: it has a status subresource. ``custom``: it
    comes from a CustomResourceDefinition, whose compiled ``schema`` validates it. The store keeps objects under
    ``storage``; ``to_storage``/``from_storage`` convert if that is another version.
    """

    resource: Resource
    storage: Resource
    singular: str
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    status: bool = False
    generation: bool = False
    scale: Scale | None = None
    fields: frozenset[str] = frozenset({"metadata.name", "metadata.namespace"})
    custom: bool = False
    schema: Schema | None = None
    columns: tuple[Column, ...] = ()
    to_storage: Convert | None = None
    from_storage: Convert | None = None

    def shown(self, obj: dict[str, Any]) -> dict[str, Any]:
        """A stored object converted to this version."""
        return obj if self.from_storage is None else self.from_storage(obj)


def _serve(
    resource: Resource,
    *short_names: str,
    status: bool = True,
    generation: bool = False,
    scale: Scale | None = None,
    fields: tuple[str, ...] = (),
    category: str = "",
) -> Served:
    return Served(
        resource,
        resource,
        resource.kind.lower(),
        short_names,
        (category,) if category else (),
        status,
        generation,
        scale,
        frozenset({"metadata.name", "metadata.namespace", *fields}),
    )


_EVENT_FIELDS = (
    *("involvedObject.kind", "involvedObject.namespace", "involvedObject.name", "involvedObject.uid"),
    *("involvedObject.apiVersion", "involvedObject.resourceVersion", "involvedObject.fieldPath"),
    *("reason", "reportingComponent", "source", "type"),
)


#: Members of an events.k8s.io/v1 Event by their names in core/v1, the storage version of both.
_EVENT_NAMES = {
    "message": "note",
    "involvedObject": "regarding",
    "reportingComponent": "reportingController",
    "count": "deprecatedCount",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "source": "deprecatedSource",
}


def _renamed(names: Mapping[str, str], api_version: str) -> Convert:
    return lambda obj: {names.get(key, key): value for key, value in obj.items()} | {"apiVersion": api_version}


_SELECTOR_SCALE = Scale(selector="spec.selector")

BUILTINS: tuple[Served, ...] = (
    _serve(known.NAMESPACES, "ns", fields=("status.phase",)),
    _serve(known.NODES, "no", fields=("spec.unschedulable",)),
    _serve(
        known.PODS,
        "po",
        generation=True,
        fields=("spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "status.phase", "status.podIP"),
        category="all",
    ),
    _serve(known.SERVICES, "svc", fields=("spec.clusterIP", "spec.type"), category="all"),
    _serve(known.CORE_EVENTS, "ev", status=False, fields=_EVENT_FIELDS),
    _serve(known.CONFIG_MAPS, "cm", status=False),
    _serve(known.SECRETS, status=False, fields=("type",)),
    _serve(known.SERVICE_ACCOUNTS, "sa", status=False),
    _serve(ENDPOINTS, "ep", status=False),
    *(_serve(resource, status=False) for resource in RBAC),
    _serve(known.PERSISTENT_VOLUME_CLAIMS, "pvc"),
    _serve(PERSISTENT_VOLUMES, "pv"),
    _serve(known.STATEFUL_SETS, "sts", generation=True, scale=_SELECTOR_SCALE, category="all"),
    _serve(known.DEPLOYMENTS, "deploy", generation=True, scale=_SELECTOR_SCALE, category="all"),
    _serve(REPLICA_SETS, "rs", generation=True, scale=_SELECTOR_SCALE, category="all"),
    _serve(known.CONTROLLER_REVISIONS, status=False),
    _serve(known.JOBS, generation=True, fields=("status.successful",), category="all"),
    _serve(known.CRON_JOBS, "cj", generation=True, category="all"),
    _serve(known.ENDPOINT_SLICES, status=False, generation=True),
    Served(
        resource=known.EVENTS,
        storage=known.CORE_EVENTS,
        singular="event",
        short_names=("ev",),
        fields=frozenset({"metadata.name", "metadata.namespace", "reason", "type"}),
        to_storage=_renamed({new: core for core, new in _EVENT_NAMES.items()}, "v1"),
        from_storage=_renamed(_EVENT_NAMES, "events.k8s.io/v1"),
    ),
    _serve(known.LEASES, status=False),
    _serve(known.CUSTOM_RESOURCE_DEFINITIONS, "crd", "crds", generation=True, category="api-extensions"),
    _serve(known.HORIZONTAL_POD_AUTOSCALERS, "hpa", category="all"),
    _serve(INGRESSES, "ing", generation=True),
    # Stored only so that manifests with them apply; the sandbox enforces no NetworkPolicies or admission policies.
    _serve(known.NETWORK_POLICIES, "netpol", status=False, generation=True),
    _serve(known.MUTATING_WEBHOOKS, status=False, generation=True),
    _serve(known.VALIDATING_WEBHOOKS, status=False, generation=True),
    _serve(known.ADMISSION_POLICIES, generation=True),
    _serve(known.ADMISSION_POLICY_BINDINGS, status=False, generation=True),
    _serve(POD_DISRUPTION_BUDGETS, "pdb", generation=True),
    _serve(GATEWAY_CLASSES, "gc", generation=True),
)


def value_at(obj: Mapping[str, Any], path: str) -> Any:
    """The value at a dotted path; None if there is none."""
    value: Any = obj
    for part in path.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def with_value(obj: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """``obj`` with ``value`` at a dotted path; only the dicts along the path are new."""
    head, _, rest = path.partition(".")
    return {**obj, head: with_value(obj.get(head) or {}, rest, value) if rest else value}
