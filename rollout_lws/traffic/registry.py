"""The kinds of routers as data, used by watches, RBAC, ``lint``, ``plan``, ``init`` and others.

Cheap to import. The implementation of each kind is in ``routers``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from rollout_lws.objects.resources import (
    DESTINATION_RULES,
    GRPC_ROUTES,
    HTTP_ROUTES,
    INFERENCE_POOLS,
    INGRESSES,
    POD_DISRUPTION_BUDGETS,
    SERVICES,
    VIRTUAL_SERVICES,
    Resource,
)
from rollout_lws.traffic.names import CANARY, POLICY, STABLE, ManagedRef, Names

#: Members that lead from ``trafficRoutings[0]`` to a name.
Field: TypeAlias = tuple[str, ...]
Json: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class RouterSpec:
    """A kind of routers.

    ``resource`` is the kind of the user's object, ``field`` the member that names it. A release writes ``members`` of
    spec, and annotations that begin with ``annotations`` ("": none): in the user's object or, for a kind that
    ``copies`` it, in a canary object of the release. ``older`` are API versions with the same meaning.
    """

    resource: Resource
    field: Field
    members: tuple[str, ...]
    example: Callable[[str, Sequence[Json]], Json]
    """Builds the spec of the simplest object that can split requests, from the stable version's Service and the
    references to the backends that it names; for forecasts without a cluster.
    """
    advice: str
    """Advice for configuring a GitOps tool that overwrites the object."""
    annotations: str = ""
    copies: bool = False
    older: tuple[str, ...] = ()
    conditions: tuple[str, ...] = ()
    """The conditions that controllers report in status.parents; () for a kind that does not report its use."""
    schema: Json | None = None
    """Schema of the members of spec that are read; None where the kind's own definition is available."""
    to_pools: bool = False
    """Whether it can send requests to InferencePools."""
    of_pairs: bool = False
    """Whether a user may name the backends of two workloads in it, so that a pair can be released by it."""
    policy: RouterSpec | None = None
    """The kind that says how its requests are sent to a Service; None: there is none, or it is the router's own."""
    grace_seconds: int | None = None
    """gracePeriodSeconds that ``init`` proposes; None: the default."""

    @property
    def verbs(self) -> tuple[str, ...]:
        """The verbs that a release needs on the kind, apart from reading."""
        return ("create", "patch", "delete") if self.copies else ("patch",)

    def in_use(self, live: Json) -> dict[str, Any]:
        """The object with the status that it has when in use, if it has no status yet."""
        if not self.conditions or (live.get("status") or {}).get("parents"):
            return dict(live)
        conditions = [{"type": each, "status": "True", "observedGeneration": 1} for each in self.conditions]
        parents = [{"parentRef": each, "conditions": conditions} for each in live["spec"].get("parentRefs") or ()]
        return {**live, "status": {"parents": parents}}


def _open(properties: Json, *required: str) -> Json:
    schema = {"type": "object", "properties": properties, "x-kubernetes-preserve-unknown-fields": True}
    return schema | ({"required": list(required)} if required else {})


def _list(item: Json) -> Json:
    return {"type": "array", "items": item}


_TEXT: Json = {"type": "string"}
_SERVICE = _open({"service": _open({"name": _TEXT}, "name")})
_PATH_TYPE: Json = {"type": "string", "enum": ["Exact", "ImplementationSpecific", "Prefix"]}
_PATH = _open({"path": _TEXT, "pathType": _PATH_TYPE, "backend": _SERVICE}, "backend", "pathType")
_INGRESS_RULE = _open({"host": _TEXT, "http": _open({"paths": _list(_PATH)}, "paths")})


def _route(_: str, backends: Sequence[Json]) -> Json:
    return {"parentRefs": [{"name": "assumed"}], "rules": [{"backendRefs": list(backends)}]}


def _virtual_service(service: str, backends: Sequence[Json]) -> Json:
    route = [{**_rest(each, "name", "port"), "destination": _destination(each)} for each in backends]
    return {"hosts": [service], "http": [{"route": route}]}


def _destination(backend: Json) -> Json:
    return {"host": backend["name"]} | ({"port": {"number": backend["port"]}} if "port" in backend else {})


def _rest(backend: Json, *members: str) -> Json:
    return {member: value for member, value in backend.items() if member not in members}


def _ingress(service: str, _: Sequence[Json]) -> Json:
    backend = {"service": {"name": service, "port": {"number": 80}}}
    path = {"path": "/", "pathType": "Prefix", "backend": backend}
    return {"ingressClassName": "nginx", "rules": [{"http": {"paths": [path]}}]}


HTTP_ROUTE = RouterSpec(
    HTTP_ROUTES,
    ("gateway", "httpRouteName"),
    ("rules",),
    _route,
    "let it ignore the rules of the route",
    older=("v1beta1",),
    conditions=("Accepted", "ResolvedRefs"),
    to_pools=True,
    of_pairs=True,
)
GRPC_ROUTE = RouterSpec(
    GRPC_ROUTES,
    ("gateway", "grpcRouteName"),
    ("rules",),
    _route,
    "let it ignore the rules of the route",
    conditions=("Accepted", "ResolvedRefs"),
    of_pairs=True,
)
#: Says how the requests of a VirtualService are sent to a Service. A release makes a copy for the new version's.
DESTINATION_RULE = RouterSpec(
    DESTINATION_RULES,
    ("istio", "destinationRuleName"),
    ("host", "subsets", "trafficPolicy"),
    lambda service, _: {"host": service},
    "let it leave that DestinationRule alone, which the release has made",
    copies=True,
    older=("v1beta1", "v1alpha3"),
)
VIRTUAL_SERVICE = RouterSpec(
    VIRTUAL_SERVICES,
    ("istio", "virtualServiceName"),
    ("http",),
    _virtual_service,
    "let it ignore the HTTP routes of the VirtualService",
    older=("v1beta1", "v1alpha3"),
    of_pairs=True,
    # Istio does not report when all proxies have applied a change, unless it is told to.
    grace_seconds=15,
    policy=DESTINATION_RULE,
)
INGRESS = RouterSpec(
    INGRESSES,
    ("ingress", "name"),
    ("rules",),
    _ingress,
    "let it leave that Ingress alone, which the release has made",
    annotations="nginx.ingress.kubernetes.io/canary",
    copies=True,
    schema=_open({"ingressClassName": _TEXT, "rules": _list(_INGRESS_RULE)}),
    # Controllers do not report in it when they have applied a change.
    grace_seconds=15,
)
#: Objects of kinds that are known only when a Rollout names them (customNetworkRefs): an administrator's script says
#: what is written, and the controller's role has rights to none that the installation does not name.
CUSTOM = RouterSpec(
    Resource("*", "*", "object", "*"),
    ("customNetworkRefs",),
    (),
    lambda _, __: {},
    "let it leave the object alone during releases",
    # Nothing reports when a change is in use.
    grace_seconds=15,
)
#: Every kind of router that is known ahead, in the order of evaluation and output.
SPECS = (HTTP_ROUTE, GRPC_ROUTE, VIRTUAL_SERVICE, INGRESS)
#: Every kind that a release writes apart from Services and pools.
WRITTEN_SPECS = (*SPECS, *(spec.policy for spec in SPECS if spec.policy is not None))
#: The kinds by which a pair can be released. Its weights are there at rest, too.
PAIR_KINDS: tuple[Resource, ...] = tuple(spec.resource for spec in SPECS if spec.of_pairs)
#: Kinds apart from Services that a release modifies or creates; they are watched on demand.
ROUTING_KINDS: tuple[Resource, ...] = (*(spec.resource for spec in WRITTEN_SPECS), INFERENCE_POOLS)
_BY_KIND = {each.kind: each for each in ROUTING_KINDS}
#: Members of ``trafficRoutings[0]`` that name Services: the one of workloadRef, and of a pair that of counterpartRef.
_SERVICE_FIELD: Field = ("service",)
_OTHER_SERVICE_FIELD: Field = ("counterpartService",)
#: Members of ``trafficRoutings[0]`` that name objects apart from Services: kind, version and path of each.
_FIELDS: tuple[tuple[str, str, Field], ...] = (
    *((spec.resource.kind, "", spec.field) for spec in SPECS),
    *((spec.policy.resource.kind, POLICY, spec.policy.field) for spec in SPECS if spec.policy is not None),
    *((INFERENCE_POOLS.kind, version, ("gateway", "inferencePool", version)) for version in (STABLE, CANARY)),
)


def either(kinds: Iterable[Resource]) -> str:
    """The names of these kinds, for a sentence: "A, B or C"."""
    *others, last = (each.kind for each in kinds)
    return f"{', '.join(others)} or {last}" if others else last


def named_in(said: Json) -> Names:
    """The objects that ``trafficRoutings[0]``, as plain JSON, names; unreadable parts are skipped."""
    found = ((kind, version, _at(said, field)) for kind, version, field in _FIELDS)
    refs = tuple(ManagedRef(kind=kind, name=name, version=version) for kind, version, name in found if name)
    refs += _custom(said)
    return Names(service=_at(said, _SERVICE_FIELD), canary_service=_at(said, _OTHER_SERVICE_FIELD), refs=refs)


def _custom(said: Json) -> tuple[ManagedRef, ...]:
    named = said.get(CUSTOM.field[0])
    refs = ({key: _at(each, (key,)) for key in ("apiVersion", "kind", "name")} for each in named or () if each)
    return tuple(
        ManagedRef(kind=each["kind"], name=each["name"], api_version=each["apiVersion"])
        for each in refs
        if all(each.values())
    )


def field_of(names: Names, kind: str, name: str) -> Field:
    """The member of ``trafficRoutings[0]`` that names this object; ``names`` are as the spec gives them."""
    if any((ref.kind, ref.name) == (kind, name) for ref in names.custom):
        return CUSTOM.field
    version = next((ref.version for ref in names.refs if (ref.kind, ref.name) == (kind, name)), "")
    service = _OTHER_SERVICE_FIELD if (kind, name) == (SERVICES.kind, names.canary_service) else _SERVICE_FIELD
    return next((field for each, of, field in _FIELDS if (each, of) == (kind, version)), service)


def spec_of(kind: str) -> RouterSpec | None:
    """The spec of this kind; None for a kind that a release does not write, and for Services and pools."""
    return next((spec for spec in WRITTEN_SPECS if spec.resource.kind == kind), None)


def resources_of(names: Names) -> tuple[tuple[Resource, str], ...]:
    """Resource and name of each named object, Services first; kinds that are not known ahead are left out."""
    known = ((_BY_KIND[ref.kind], ref.name) for ref in names.refs if ref.kind in _BY_KIND and not ref.api_version)
    services = (names.service, names.canary_service) if names.canary_service else (names.service,)
    return (*((SERVICES, each) for each in services), *known)


def needed_kinds(names: Names) -> tuple[Resource, ...]:
    """Kinds that a decision requires, apart from Services."""
    return tuple(dict.fromkeys(resource for resource, _ in resources_of(names) if resource != SERVICES))


def looked_at_kinds(names: Names) -> tuple[Resource, ...]:
    """The needed kinds, and those that may hold objects that a release has to consider: of a pair, a route that the
    Rollout has named before.
    """
    left = PAIR_KINDS if names.is_pair else ()
    return tuple(dict.fromkeys((*needed_kinds(names), *left, INFERENCE_POOLS, POD_DISRUPTION_BUDGETS)))


def _at(said: Json, field: Field) -> str:
    value: Any = said
    for member in field:
        value = value.get(member) if isinstance(value, Mapping) else None
    return str(value or "")
