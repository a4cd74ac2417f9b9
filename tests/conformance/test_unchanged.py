"""A write that leaves an object as it is writes nothing: no new version, and no watch is told."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from rollout_lws.objects.resources import CONFIG_MAPS, LEADER_WORKER_SETS, PODS, SERVICES, Resource
from tests.conformance.asking import JSON_PATCH, MERGE, STRATEGIC, Asking, Object, Reply
from tests.conformance.objects import ROLLOUTS, config_map, lws, pod, rollout, service

Write: TypeAlias = Callable[[Asking, Resource, Object], Awaitable[Reply]]

_LABELS: Object = {"app": "web", "tier": "a"}


def _named(body: Object) -> Object:
    return {**body, "metadata": {**body["metadata"], "labels": _LABELS}}


def _routed() -> Object:
    """Its steps are one value to server-side apply, and get defaults that its user has not written."""
    found = rollout()
    found["spec"]["strategy"]["canary"] = {
        "steps": [{"replicas": 1, "traffic": "10%"}, {"replicas": "100%"}],
        "trafficRoutings": [{"service": "llama-api", "gateway": {"httpRouteName": "llama"}}],
    }
    return found


BODIES: dict[Resource, Object] = {
    CONFIG_MAPS: config_map(),
    PODS: pod(),
    SERVICES: service(selector={"app": "web"}),
    LEADER_WORKER_SETS: lws(replicas=1),
    ROLLOUTS: _routed(),
}


async def merge(server: Asking, resource: Resource, body: Object) -> Reply:
    # Of a pod the server adds to a list that its user has written.
    same = {"metadata": body["metadata"]} if resource == PODS else body
    return await server.patch(resource, body["metadata"]["name"], same, MERGE)


async def strategic(server: Asking, resource: Resource, body: Object) -> Reply:
    return await server.patch(resource, body["metadata"]["name"], {"metadata": {"labels": _LABELS}}, STRATEGIC)


async def operations(server: Asking, resource: Resource, body: Object) -> Reply:
    same = [{"op": "replace", "path": "/metadata/labels", "value": _LABELS}]
    return await server.patch(resource, body["metadata"]["name"], same, JSON_PATCH)


async def put(server: Asking, resource: Resource, body: Object) -> Reply:
    live = (await server.get(resource, body["metadata"]["name"])).ok()
    return await server.put(resource, live)


async def put_in_full(server: Asking, resource: Resource, body: Object) -> Reply:
    """As its user has it, who knows nothing of what the server adds but the version."""
    live = (await server.get(resource, body["metadata"]["name"])).ok()
    meta = {**body["metadata"], **{key: live["metadata"][key] for key in ("resourceVersion", "finalizers")}}
    return await server.put(resource, {**body, "metadata": meta})


async def apply(server: Asking, resource: Resource, body: Object) -> Reply:
    return await server.apply(resource, body["metadata"]["name"], body, "one", force="true")


def _writes(resource: Resource) -> tuple[Write, ...]:
    """Those that its kind knows; of some a user cannot leave out what the server has added."""
    in_full = () if resource in (PODS, SERVICES) else (put_in_full,)
    merged = () if resource in (LEADER_WORKER_SETS, ROLLOUTS) else (strategic,)
    return apply, merge, operations, put, *in_full, *merged


async def _made(server: Asking, resource: Resource) -> tuple[Object, Object]:
    """A manifest, and the object that was applied by it and that another has written to."""
    body = _named(BODIES[resource])
    (await apply(server, resource, body)).ok()
    finalizer = {"metadata": {"finalizers": ["example.com/a"]}}
    return body, (await server.patch(resource, body["metadata"]["name"], finalizer)).ok()


async def _next_second() -> None:
    """Times of ownership are told in seconds."""
    await asyncio.sleep(1 - time.time() % 1)


async def test_a_write_that_changes_nothing_writes_nothing(server: Asking) -> None:
    made = {resource: await _made(server, resource) for resource in BODIES}
    await _next_second()
    for resource, (body, before) in made.items():
        # By name: a namespace's ConfigMap of root certificates is written by Kubernetes itself.
        async with server.changes(resource, body["metadata"]["name"], before) as events:
            for write in _writes(resource):
                answer = (await write(server, resource, body)).ok()
                assert answer == before, f"{write.__name__} of {resource}"
            (await server.patch(resource, body["metadata"]["name"], {"metadata": {"labels": {"tier": "b"}}})).ok()
            kind, told = await events.next()
            assert kind == "MODIFIED", told
            assert told["metadata"]["labels"]["tier"] == "b"
