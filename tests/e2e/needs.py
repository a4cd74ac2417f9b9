"""What stories need of a cluster that somebody else has made, found out once and before any of them is told."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rollout_lws.api import crd
from rollout_lws.api.resources import batch_releases
from rollout_lws.errors import ApiError, Unreachable
from rollout_lws.kube.client import Client
from rollout_lws.kube.connection import Connection
from rollout_lws.objects.resources import (
    CUSTOM_RESOURCE_DEFINITIONS,
    ENDPOINT_SLICES,
    EVENTS,
    HTTP_ROUTES,
    LEADER_WORKER_SETS,
    NAMESPACES,
    PODS,
    SELF_SUBJECT_ACCESS_REVIEWS,
    SERVICES,
    STATEFUL_SETS,
    Resource,
)
from rollout_lws.objects.writes import Create
from rollout_lws.observe.capabilities import CRD_NAME, of_schema
from rollout_lws.sandbox.api_resources import GATEWAYS
from tests.e2e import registration
from tests.e2e.waiting import condition
from tests.scenarios.names import ROLLOUTS

#: The newest that stories were told with by hand.
LWS_VERSION = "v0.10.0"
INSTALL_LWS = (
    "kubectl apply --server-side -f "
    f"https://github.com/kubernetes-sigs/lws/releases/download/{LWS_VERSION}/manifests.yaml"
)
_REVIEWS = SELF_SUBJECT_ACCESS_REVIEWS
_READ, _WRITE = ("list", "watch"), ("create", "patch", "delete")
#: What people in stories do, and what looks on.
RIGHTS: tuple[tuple[Resource, tuple[str, ...]], ...] = (
    (NAMESPACES, ("create", "get", "list", "watch", "delete")),
    (CUSTOM_RESOURCE_DEFINITIONS, ("get", *_READ)),
    (LEADER_WORKER_SETS, (*_READ, *_WRITE)),
    (ROLLOUTS, (*_READ, *_WRITE)),
    (Resource(ROLLOUTS.group, ROLLOUTS.version, ROLLOUTS.kind, f"{ROLLOUTS.plural}/status"), ("patch",)),
    (batch_releases(), (*_READ, "patch")),
    (SERVICES, (*_READ, "create")),
    (PODS, (*_READ, "delete")),
    *((resource, _READ) for resource in (STATEFUL_SETS, ENDPOINT_SLICES, EVENTS)),
)
TO_INSTALL = ((CUSTOM_RESOURCE_DEFINITIONS, ("create", "delete")),)
_TO_ROUTE = ((HTTP_ROUTES, (*_READ, "create")), (GATEWAYS, ("get", *_READ)))


class Lacking(Exception):
    """The cluster cannot be used; the text has a line for each thing that is missing, with what to do."""


@dataclass(frozen=True, slots=True)
class Found:
    """``definitions`` of ours are to be installed; ``unrouted`` says why no story with a route can be told, if so."""

    definitions: tuple[Mapping[str, Any], ...] = ()
    unrouted: str = ""


async def look(connection: Connection, gateway: tuple[str, str] | None) -> Found:
    """Whether all is there, and what is to be installed; ``gateway`` is the namespace and name of the one for routes.

    Nothing is changed. Lacking, with everything that is missing.
    """
    client = Client(connection)
    try:
        lines = await _without_rights(client, RIGHTS)
        if not lines:
            definitions, unrouted = await _definitions(client), await _unrouted(client, gateway)
            missing = [ours for ours, theirs in definitions if theirs is None]
            lines += [incompatible(ours, theirs) for ours, theirs in definitions if theirs is not None]
            further = (*(TO_INSTALL if missing else ()), *(() if unrouted else _TO_ROUTE))
            lines += await _without_rights(client, further)
            lines.append(await _without_lws(connection, client))
            if gateway is not None and not unrouted:
                lines.append(await _without_gateway(client, *gateway))
    except (ApiError, Unreachable) as error:
        raise Lacking(f"the cluster cannot be asked what it has: {error}") from error
    if any(lines):
        raise Lacking("\n".join(filter(None, lines)))
    return Found(tuple(missing), unrouted)


async def _definitions(client: Client) -> list[tuple[Mapping[str, Any], Mapping[str, Any] | None]]:
    """Each of ours, and what is installed of it."""
    return [(ours, await _read(client, CUSTOM_RESOURCE_DEFINITIONS, ours)) for ours in crd.render()]


async def _read(client: Client, resource: Resource, body: Mapping[str, Any]) -> dict[str, Any] | None:
    meta = body["metadata"]
    try:
        found: dict[str, Any] = json.loads(await client.get(resource, meta.get("namespace", ""), meta["name"]))
    except ApiError as error:
        if error.code != 404:
            raise
        return None
    return found


async def _without_rights(client: Client, rights: Sequence[tuple[Resource, tuple[str, ...]]]) -> list[str]:
    lines = []
    for resource, verbs in rights:
        allowed = await asyncio.gather(*(_may(client, verb, resource) for verb in verbs))
        if refused := [verb for verb, may in zip(verbs, allowed, strict=True) if not may]:
            lines.append(f"no permission to {', '.join(refused)} {resource} in all namespaces: ask for it")
    return lines


async def _may(client: Client, verb: str, resource: Resource) -> bool:
    plural, _, subresource = resource.plural.partition("/")
    asked = {"verb": verb, "group": resource.group, "resource": plural, "subresource": subresource}
    body = {
        "apiVersion": _REVIEWS.api_version,
        "kind": _REVIEWS.kind,
        "metadata": {"name": ""},
        "spec": {"resourceAttributes": asked},
    }
    answer = json.loads(await client.send(Create(_REVIEWS, body, "what is missing is told up front")))
    return bool(answer["status"]["allowed"])


async def _without_lws(connection: Connection, client: Client) -> str:
    found = await _read(client, CUSTOM_RESOURCE_DEFINITIONS, {"metadata": {"name": CRD_NAME}})
    if found is None:
        return f"LeaderWorkerSet is not installed: {INSTALL_LWS}"
    if not of_schema(_schema(found, LEADER_WORKER_SETS.version)).observed_generation:
        return f"LeaderWorkerSet is older than 0.9: {INSTALL_LWS}"
    if answer := await registration.uncalled(connection):
        return (
            f"LeaderWorkerSet's webhooks are not called ({answer}): see whether its controller runs,"
            " kubectl get pods -n lws-system"
        )
    return ""


async def _without_gateway(client: Client, namespace: str, name: str) -> str:
    found = await _read(client, GATEWAYS, {"metadata": {"namespace": namespace, "name": name}})
    if found is None:
        return f"there is no Gateway {namespace}/{name}: name one that exists"
    if condition(found, "Accepted") != "True":
        return f"no controller has accepted the Gateway {namespace}/{name}: install that of its class, or name another"
    listeners = found["spec"]["listeners"]
    if not any((each.get("allowedRoutes") or {}).get("namespaces", {}).get("from") == "All" for each in listeners):
        return f"no listener of the Gateway {namespace}/{name} allows routes from all namespaces: name another"
    return ""


async def _unrouted(client: Client, gateway: tuple[str, str] | None) -> str:
    definition = {"metadata": {"name": str(HTTP_ROUTES)}}
    if await _read(client, CUSTOM_RESOURCE_DEFINITIONS, definition) is None:
        return "the Gateway API is not installed: https://gateway-api.sigs.k8s.io/guides/"
    return "" if gateway else "no Gateway is named for them, as ROLLOUT_LWS_E2E_GATEWAY=namespace/name would"


def incompatible(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> str:
    """What is wrong with a definition of ours that is installed: it may be another version's, or OpenKruise's own."""
    name, version = ours["metadata"]["name"], ours["spec"]["versions"][0]["name"]
    missing = next(_missing(_schema(ours, version), _schema(theirs, version), ""), "")
    if not missing:
        return ""
    return (
        f"the CustomResourceDefinition {name} is another version's or OpenKruise's (it has no {missing.lstrip('.')}):"
        " where OpenKruise Rollouts runs take another cluster, else apply crds/"
    )


def _schema(definition: Mapping[str, Any], version: str) -> dict[str, Any]:
    served = (each for each in definition["spec"]["versions"] if each["name"] == version and each["served"])
    found: dict[str, Any] = next(served, {}).get("schema", {}).get("openAPIV3Schema", {})
    return found


def _missing(ours: Mapping[str, Any], theirs: Mapping[str, Any], path: str) -> Iterator[str]:
    """Paths of members that only ``ours`` has, or has as another type."""
    if ours.get("type") != theirs.get("type"):
        yield path or "schema"
        return
    for name, schema in (ours.get("properties") or {}).items():
        yield from _missing(schema, (theirs.get("properties") or {}).get(name, {}), f"{path}.{name}")
    for part in ("items", "additionalProperties"):
        if isinstance(ours.get(part), dict):
            yield from _missing(ours[part], theirs.get(part) or {}, f"{path}[]")
