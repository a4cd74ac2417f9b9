"""A data plane's view of the cluster, and the part of each object that it uses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from rollout_lws.objects.resources import (
    DESTINATION_RULES,
    ENDPOINT_SLICES,
    GRPC_ROUTES,
    HTTP_ROUTES,
    INFERENCE_POOLS,
    INGRESSES,
    PODS,
    SERVICES,
    VIRTUAL_SERVICES,
    Resource,
)
from rollout_lws.sandbox.behaviours.base import annotations_of, labels_of, running_and_ready, terminating
from rollout_lws.sandbox.index import key_of

Object: TypeAlias = Mapping[str, Any]
Key: TypeAlias = tuple[Resource, str, str]

#: Routes of the Gateway API.
ROUTES = (HTTP_ROUTES, GRPC_ROUTES)
KINDS = (
    *(SERVICES, ENDPOINT_SLICES, *ROUTES, INFERENCE_POOLS),
    *(INGRESSES, VIRTUAL_SERVICES, DESTINATION_RULES, PODS),
)
#: A backend that some route has named. Proxies without aggregated discovery (Contour's Envoy) learn of it apart
#: from the route, and forget it only after the routes without it: taking one away lost no request there.
CLUSTERS = Resource("", "", "Cluster", "clusters", namespaced=True)
#: The label of an EndpointSlice that names its Service.
SERVICE_NAME = "kubernetes.io/service-name"


class Seen:
    """Objects by kind, namespace and name, each reduced by ``digest``."""

    def __init__(self, objects: Iterable[tuple[Key, Object]] = ()) -> None:
        self._objects: dict[tuple[Resource, str], dict[str, Object]] = {}
        for key, obj in objects:
            self.put(key, obj)

    def put(self, key: Key, obj: Object | None) -> None:
        """Replace an object; None deletes it."""
        space = self._objects.setdefault(key[:2], {})
        if obj is None:
            space.pop(key[2], None)
        else:
            space[key[2]] = obj

    def get(self, resource: Resource, namespace: str, name: str) -> Object | None:
        return self._objects.get((resource, namespace), {}).get(name)

    def list(self, resource: Resource, namespace: str) -> Iterator[tuple[str, Object]]:
        """Names and objects, by name."""
        yield from sorted(self._objects.get((resource, namespace), {}).items())


def views(resource: Resource, obj: Object) -> Iterator[tuple[Key, Object]]:
    """What a data plane learns from an object, each part with a delay of its own; nothing while it keeps what it knows
    (see ``digest``).
    """
    found = digest(resource, obj)
    if found is None:
        return
    _, namespace, _ = key = key_of(resource, obj)
    yield key, found
    for rule in found["rules"] if resource in ROUTES else ():
        for ref in rule.get("backendRefs") or ():
            yield cluster(namespace, ref), {}


def cluster(namespace: str, ref: Mapping[str, Any]) -> Key:
    return CLUSTERS, namespace, f"{ref['kind']}/{ref['name']}"


def digest(resource: Resource, obj: Object) -> Object | None:
    """The part of an object that a data plane sees; None if it keeps its previous state.

    A data plane uses a route's rules once a Gateway has accepted that very generation. Until then, and if the Gateway
    refuses them, it keeps the previous rules.
    """
    if resource in ROUTES:
        return {"rules": obj["spec"].get("rules") or ()} if _accepted(obj) else None
    if resource == PODS:
        ready = running_and_ready(obj) and not terminating(obj)
        return {"uid": obj["metadata"]["uid"], "labels": labels_of(obj), "ready": ready}
    if resource == ENDPOINT_SLICES:
        return {
            "service": labels_of(obj).get(SERVICE_NAME, ""),
            "uids": tuple(
                (endpoint.get("targetRef") or {}).get("uid", "")
                for endpoint in obj.get("endpoints") or ()
                if (endpoint.get("conditions") or {}).get("ready") is not False
            ),
        }
    if resource == SERVICES:
        return {"ports": obj["spec"].get("ports") or ()}
    if resource == INFERENCE_POOLS:
        return {"labels": obj["spec"]["selector"]["matchLabels"]}
    return {"spec": obj["spec"], "annotations": annotations_of(obj)}


def _accepted(route: Object) -> bool:
    generation = route["metadata"]["generation"]
    return any(
        condition["type"] == "Accepted"
        and condition["status"] == "True"
        and condition.get("observedGeneration") == generation
        for parent in (route.get("status") or {}).get("parents") or ()
        for condition in parent.get("conditions") or ()
    )
