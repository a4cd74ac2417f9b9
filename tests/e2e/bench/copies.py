"""A fleet out of one LWS at rest: its objects, as the LWS controller and a kubelet left them, in many namespaces.

A thousand of them, each brought up in its own time, would keep two cores busy for a quarter of an hour; what a resting
controller sees of them is the same. StatefulSets are real, and the real controller takes their pods over.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rollout_lws.kube.client import Client
from rollout_lws.objects.resources import (
    CONTROLLER_REVISIONS,
    LEADER_WORKER_SETS,
    NAMESPACES,
    PODS,
    SERVICE_ACCOUNTS,
    SERVICES,
    STATEFUL_SETS,
    Resource,
)
from rollout_lws.objects.writes import Create, Patch
from tests.bench.manifests import ROLLOUTS
from tests.e2e.bench.informed import Informed
from tests.e2e.bench.person import Object, each

#: Owners before those that they own; pods before their StatefulSet, which would make others.
_KINDS = (LEADER_WORKER_SETS, CONTROLLER_REVISIONS, SERVICES, PODS, STATEFUL_SETS, ROLLOUTS)
#: What the API server or the owner's own controller writes anew.
_OWN = (
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "managedFields",
    "namespace",
    "ownerReferences",
    "finalizers",
)
_WITH_STATUS = (LEADER_WORKER_SETS, PODS)
#: Requests under way at a time: more would only wait for the same two cores.
_HANDS = 16
_WHY = "a fleet at rest"


@dataclass(frozen=True, slots=True)
class Original:
    """The objects of a namespace; each with its kind, in the order in which they can be made again."""

    objects: Sequence[tuple[Resource, Object]]


async def original(client: Client, namespace: str) -> Original:
    """What stands in ``namespace``, without what controllers make of it by themselves."""
    found: list[tuple[Resource, Object]] = []
    for resource in _KINDS:
        listed = json.loads(await client.list(resource, namespace))["items"]
        head = {"apiVersion": resource.api_version, "kind": resource.kind}
        found += [(resource, head | obj) for obj in listed if _is_kept(resource, obj)]
    return Original(found)


def _is_kept(resource: Resource, obj: Object) -> bool:
    """A StatefulSet's revisions and the Rollout's history have to be their owners' own."""
    owners = obj["metadata"].get("ownerReferences") or ()
    return resource != CONTROLLER_REVISIONS or any(owner["kind"] == LEADER_WORKER_SETS.kind for owner in owners)


async def copy(client: Client, source: Original, namespaces: Iterable[str]) -> None:
    """Make one copy of ``source`` in each of ``namespaces``, which are made too."""
    names, hands = sorted(namespaces), asyncio.Semaphore(_HANDS)
    missing = set(names)

    async def make(name: str) -> None:
        async with hands:
            await client.send(Create(NAMESPACES, {"metadata": {"name": name}}, _WHY))

    async def fill(name: str) -> None:
        async with hands:
            await _fill(client, source, name)

    def complete(account: Mapping[str, Any]) -> bool:
        missing.discard(account["metadata"]["namespace"])
        return not missing

    # No pod is taken in a namespace without its service account.
    async with Informed(client, SERVICE_ACCOUNTS, complete) as informed:
        await each(make(name) for name in names)
        await informed.reached()
    await each(fill(name) for name in names)


async def _fill(client: Client, source: Original, namespace: str) -> None:
    uids: dict[str, str] = {}
    for resource, obj in source.objects:
        answer = json.loads(await client.send(Create(resource, copied(obj, namespace, uids), _WHY)))
        meta = answer["metadata"]
        uids[obj["metadata"]["uid"]] = meta["uid"]
        if resource in _WITH_STATUS:
            status = obj["status"]
            if "observedGeneration" in status:
                status = {**status, "observedGeneration": meta["generation"]}
            await client.send(Patch(resource, namespace, meta["name"], {"status": status}, _WHY, subresource="status"))


def copied(obj: Object, namespace: str, uids: Mapping[str, str]) -> Object:
    """``obj`` as somebody would make it in ``namespace``; ``uids`` are its other objects', by the originals'.

    A pod has no owner: its StatefulSet adopts it.
    """
    meta = {key: value for key, value in obj["metadata"].items() if key not in _OWN}
    owners = [
        {**owner, "uid": uids[owner["uid"]]}
        for owner in obj["metadata"].get("ownerReferences") or ()
        if owner["uid"] in uids
    ]
    meta |= {"namespace": namespace} | ({"ownerReferences": owners} if owners else {})
    return {**{key: value for key, value in obj.items() if key != "status"}, "metadata": meta}
