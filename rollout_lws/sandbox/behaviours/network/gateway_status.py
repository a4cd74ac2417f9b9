"""The status of Gateways, routes and pools: conditions with the reasons of Gateway API.

A route's conditions depend on whether the Gateway exists, its listeners' names, ports and allowed namespaces, and
whether its backends exist. Hostnames, filters and route kinds are not evaluated.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from rollout_lws.objects.resources import INFERENCE_POOLS, NAMESPACES, SERVICES, Resource
from rollout_lws.sandbox.admission.metadata import timestamp
from rollout_lws.sandbox.api_resources import GATEWAYS
from rollout_lws.sandbox.behaviours.base import Object, View, annotations_of, key_of, labels_of
from rollout_lws.sandbox.behaviours.faults import PREFIX
from rollout_lws.sandbox.wire.selectors import format_labels, parse_labels

CONTROLLER = PREFIX + "gateway"
#: Annotations of a Gateway: refuse its routes with this message; write no status at all.
REFUSE_ROUTES, SILENT = PREFIX + "refuse-routes", PREFIX + "silent"

#: A condition without its lastTransitionTime.
Condition: TypeAlias = Mapping[str, Any]
Entry: TypeAlias = Mapping[str, Any]
#: The target of a reference.
Reference: TypeAlias = tuple[Resource, str, str]


def parents(route: Object) -> Iterator[tuple[Mapping[str, Any], Reference]]:
    """The parentRefs to Gateways, each with its Gateway."""
    for ref in route["spec"].get("parentRefs") or ():
        if (ref["group"], ref["kind"]) == (GATEWAYS.group, GATEWAYS.kind):
            yield ref, (GATEWAYS, ref.get("namespace") or route["metadata"]["namespace"], ref["name"])


def backend(ref: Mapping[str, Any], namespace: str) -> Reference | None:
    """The Service or pool of a backendRef in ``namespace``; None for kinds that cannot be backends here."""
    for resource in (SERVICES, INFERENCE_POOLS):
        if (ref["group"], ref["kind"]) == (resource.group, resource.kind):
            return resource, ref.get("namespace") or namespace, ref["name"]
    return None


def backend_refs(route: Object) -> Iterator[Mapping[str, Any]]:
    for rule in route["spec"].get("rules") or ():
        yield from rule.get("backendRefs") or ()


def picker(pool: Object) -> Reference | None:
    """The Service of a pool's endpoint picker."""
    ref = pool["spec"].get("endpointPickerRef")
    if not ref or (ref["group"], ref["kind"]) != (SERVICES.group, SERVICES.kind):
        return None
    return SERVICES, pool["metadata"]["namespace"], ref["name"]


def silent(gateway: Object) -> bool:
    return annotations_of(gateway).get(SILENT) == "true"


def of_gateway(gateway: Object) -> list[Condition]:
    generation = gateway["metadata"]["generation"]
    return [
        _condition("Accepted", generation, "Accepted", "Gateway is accepted"),
        _condition("Programmed", generation, "Programmed", "Gateway is programmed"),
    ]


def of_route(route: Object, view: View) -> list[Entry]:
    """The entries of status.parents for all existing Gateways; an entry of a silent Gateway stays unchanged."""
    known = (route.get("status") or {}).get("parents") or ()
    entries: list[Entry] = [entry for entry in known if entry.get("controllerName") != CONTROLLER]
    resolved = _resolved(route, view)
    for ref, (_, namespace, name) in parents(route):
        gateway = view.get(GATEWAYS, namespace, name)
        if gateway is None:
            continue
        if silent(gateway):
            entries += [each for each in known if each.get("controllerName") == CONTROLLER and each["parentRef"] == ref]
        else:
            entries.append(_entry(ref, [_accepted(route, ref, gateway, view), resolved]))
    return entries


def of_pool(pool: Object, routes: Iterable[Object], view: View) -> list[Entry]:
    """The entries of status.parents: one for each Gateway with a route that refers to the pool."""
    known = (pool.get("status") or {}).get("parents") or ()
    entries: list[Entry] = [entry for entry in known if entry.get("controllerName") != CONTROLLER]
    told: dict[tuple[str, str], list[Condition]] = {}
    for route in routes:
        for ref, (_, namespace, name) in parents(route):
            gateway = view.get(GATEWAYS, namespace, name)
            if gateway is not None:
                accepted = _accepted(route, ref, gateway, view)["status"] == "True"
                told.setdefault((namespace, name), []).append(_pool_accepted(pool, accepted))
    for (namespace, name), verdicts in told.items():
        ref = {"group": GATEWAYS.group, "kind": GATEWAYS.kind, "name": name, "namespace": namespace}
        gateway = view.get(GATEWAYS, namespace, name)
        if gateway is not None and silent(gateway):
            entries += [each for each in known if each.get("controllerName") == CONTROLLER and each["parentRef"] == ref]
        else:
            verdict = next((each for each in verdicts if each["status"] == "True"), verdicts[0])
            entries.append(_entry(ref, [verdict, _pool_resolved(pool, view)]))
    return entries


def without_times(entries: Sequence[Entry]) -> list[Entry]:
    return [{**entry, "conditions": [_timeless(each) for each in entry.get("conditions") or ()]} for entry in entries]


def timed(wanted: Sequence[Condition], before: Sequence[Condition], now: float) -> list[Condition]:
    """``wanted`` with lastTransitionTimes, after the conditions of ``before`` that other controllers own."""
    known = {condition["type"]: condition for condition in before}
    types = {condition["type"] for condition in wanted}
    made: list[Condition] = [condition for condition in before if condition["type"] not in types]
    for condition in wanted:
        old = known.get(condition["type"])
        same = old is not None and old["status"] == condition["status"]
        moment = old["lastTransitionTime"] if old is not None and same else timestamp(now)
        made.append({**condition, "lastTransitionTime": moment})
    return made


def timed_entries(wanted: Sequence[Entry], before: Sequence[Entry], now: float) -> list[Entry]:
    made: list[Entry] = []
    for entry in wanted:
        same = (each for each in before if (each["parentRef"], each.get("controllerName")) == _identity(entry))
        old = next(same, {})
        made.append({**entry, "conditions": timed(entry.get("conditions") or (), old.get("conditions") or (), now)})
    return made


def _identity(entry: Entry) -> tuple[Any, Any]:
    return entry["parentRef"], entry.get("controllerName")


def _timeless(condition: Condition) -> Condition:
    return {key: value for key, value in condition.items() if key != "lastTransitionTime"}


def _entry(ref: Mapping[str, Any], conditions: list[Condition]) -> Entry:
    return {"parentRef": dict(ref), "controllerName": CONTROLLER, "conditions": conditions}


def _condition(kind: str, generation: int, reason: str, message: str, *, true: bool = True) -> Condition:
    return {
        "type": kind,
        "status": "True" if true else "False",
        "reason": reason,
        "message": message,
        "observedGeneration": generation,
    }


def _accepted(route: Object, ref: Mapping[str, Any], gateway: Object, view: View) -> Condition:
    generation = route["metadata"]["generation"]

    def refused(reason: str, message: str) -> Condition:
        return _condition("Accepted", generation, reason, message, true=False)

    refusal = annotations_of(gateway).get(REFUSE_ROUTES)
    if refusal is not None:
        return refused("UnsupportedValue", refusal)
    meant = [
        listener
        for listener in gateway["spec"]["listeners"]
        if ref.get("sectionName") in (None, listener["name"]) and ref.get("port") in (None, listener["port"])
    ]
    if not meant:
        return refused("NoMatchingParent", "No listener of the Gateway has this name and port")
    home, there = route["metadata"]["namespace"], key_of(gateway)[0]
    if not any(_open_to(listener, home, there, view) for listener in meant):
        return refused("NotAllowedByListeners", f"No listener allows routes from namespace {home}")
    return _condition("Accepted", generation, "Accepted", "Route is accepted")


def _open_to(listener: Mapping[str, Any], home: str, there: str, view: View) -> bool:
    allowed = listener["allowedRoutes"]["namespaces"]
    if allowed["from"] == "Same":
        return home == there
    if allowed["from"] == "All":
        return True
    namespace = view.get(NAMESPACES, "", home)
    return namespace is not None and parse_labels(format_labels(allowed.get("selector"))).matches(labels_of(namespace))


def _resolved(route: Object, view: View) -> Condition:
    generation = route["metadata"]["generation"]
    for ref in backend_refs(route):
        problem = _problem(ref, route["metadata"]["namespace"], view)
        if problem is not None:
            return _condition("ResolvedRefs", generation, *problem, true=False)
    return _condition("ResolvedRefs", generation, "ResolvedRefs", "All references are resolved")


def _problem(ref: Mapping[str, Any], home: str, view: View) -> tuple[str, str] | None:
    """Reason and message when a backendRef cannot be resolved."""
    meant = backend(ref, home)
    if meant is None:
        kind = f"{ref['kind']}.{ref['group']}" if ref["group"] else ref["kind"]
        return "InvalidKind", f"{kind} is no kind of backend"
    resource, namespace, name = meant
    if namespace != home:
        return "RefNotPermitted", f"{resource.kind} {namespace}/{name} is in another namespace, without a grant"
    found = view.get(resource, namespace, name)
    if found is None:
        return "BackendNotFound", f'{resource.kind} "{name}" not found'
    if resource == SERVICES and ref["port"] not in [port["port"] for port in found["spec"].get("ports") or ()]:
        return "BackendNotFound", f'Service "{name}" has no port {ref["port"]}'
    return None


def _pool_accepted(pool: Object, accepted: bool) -> Condition:
    generation = pool["metadata"]["generation"]
    if accepted:
        return _condition("Accepted", generation, "Accepted", "InferencePool is accepted")
    message = "No HTTPRoute that refers to the InferencePool is accepted"
    return _condition("Accepted", generation, "HTTPRouteNotAccepted", message, true=False)


def _pool_resolved(pool: Object, view: View) -> Condition:
    generation, service = pool["metadata"]["generation"], picker(pool)
    if service is not None and view.get(*service) is None:
        message = f'endpoint picker Service "{service[2]}" not found'
        return _condition("ResolvedRefs", generation, "InvalidExtensionRef", message, true=False)
    return _condition("ResolvedRefs", generation, "ResolvedRefs", "All references are resolved")
