"""What a controller may write of what is not its own: what the spec names, and what bears its mark. Nothing else."""

from __future__ import annotations

from typing import Any

import msgspec

from rollout_lws.api.resources import rollouts
from rollout_lws.objects.resources import (
    DESTINATION_RULES,
    GRPC_ROUTES,
    HORIZONTAL_POD_AUTOSCALERS,
    HTTP_ROUTES,
    INFERENCE_POOLS,
    INGRESSES,
    LEADER_WORKER_SETS,
    SERVICES,
    VIRTUAL_SERVICES,
    Resource,
)
from rollout_lws.objects.writes import Create, Delete, Write
from rollout_lws.sandbox.store import Store
from tests.scenarios.names import KEYS

#: Kinds of which a release changes objects of others, or makes some beside them.
FOREIGN = (SERVICES, HTTP_ROUTES, INGRESSES, INFERENCE_POOLS, HORIZONTAL_POD_AUTOSCALERS)

#: Groups of what a release makes or writes otherwise. Objects of other groups are of custom kinds.
KNOWN = {rollouts().group, LEADER_WORKER_SETS.group, "", "apps", "batch", "discovery.k8s.io", "events.k8s.io"}


def assert_within(store: Store, write: Write, name: str, namespace: str) -> None:
    """AssertionError where Rollout ``name`` writes an object that it has not made, that bears no mark of it or of one
    that is gone, and that its spec does not name; or where it deletes one that it has not made.
    """
    if write.resource not in FOREIGN and write.resource.group in KNOWN:
        return
    rollout, live = store.get(rollouts(), namespace, name), store.get(write.resource, namespace, write.name)
    if rollout is None or (live is None and not isinstance(write, Create)):
        # It is refused as out of date.
        return
    made = live is not None and _made(live, rollout["metadata"]["uid"])
    if isinstance(write, Delete):
        assert made, f"not made by a release: {write}"
    known = {each["metadata"]["uid"] for each in store.list(rollouts(), namespace)}
    if made or (live is not None and _marked(live, rollout["metadata"]["uid"], known)):
        return
    names = (*named(rollout).get(write.resource, ()), *_custom(rollout, write.resource))
    if isinstance(write, Create):
        names = tuple(f"{each}-canary" for each in names)
    elif write.resource == HORIZONTAL_POD_AUTOSCALERS and live is not None:
        names = (write.name,) if live["spec"]["scaleTargetRef"]["name"] in names else ()
    assert write.name in names, f"neither marked nor named by the spec: {write}"


def marks(live: dict[str, Any]) -> set[str]:
    """UIDs of the Rollouts that have left notes on an object."""
    text = (live["metadata"].get("annotations") or {}).get(KEYS.original)
    return set(msgspec.json.decode(text)) if text else set()


def named(rollout: dict[str, Any]) -> dict[Resource, tuple[str, ...]]:
    """What the spec names, by kind."""
    asked = asked_of(rollout)
    istio = asked.get("istio") or {}
    gateway, pools = asked.get("gateway") or {}, (asked.get("gateway") or {}).get("inferencePool") or {}
    found = {
        SERVICES: (asked.get("service"),),
        HTTP_ROUTES: (gateway.get("httpRouteName"),),
        GRPC_ROUTES: (gateway.get("grpcRouteName"),),
        VIRTUAL_SERVICES: (istio.get("virtualServiceName"),),
        DESTINATION_RULES: (istio.get("destinationRuleName"),),
        INGRESSES: ((asked.get("ingress") or {}).get("name"),),
        INFERENCE_POOLS: (pools.get("stable"), pools.get("canary")),
        HORIZONTAL_POD_AUTOSCALERS: (rollout["spec"]["workloadRef"]["name"],),
    }
    return {resource: tuple(filter(None, names)) for resource, names in found.items()}


def _custom(rollout: dict[str, Any], resource: Resource) -> tuple[str, ...]:
    """The objects of a kind that only scripts know."""
    refs = asked_of(rollout).get("customNetworkRefs") or ()
    kind = resource.api_version, resource.kind
    return tuple(each["name"] for each in refs if (each["apiVersion"], each["kind"]) == kind)


def asked_of(rollout: dict[str, Any]) -> dict[str, Any]:
    """The first of trafficRoutings; {} without any."""
    strategy = rollout["spec"]["strategy"]
    routings = (strategy.get("canary") or strategy.get("blueGreen") or {}).get("trafficRoutings") or ()
    return dict(next(iter(routings), {}))


def _made(live: dict[str, Any], uid: str) -> bool:
    owners = live["metadata"].get("ownerReferences") or ()
    return live["metadata"]["name"].endswith("-canary") and any(
        each["uid"] == uid and each.get("controller") for each in owners
    )


def _marked(live: dict[str, Any], uid: str, known: set[str]) -> bool:
    return any(each == uid or each not in known for each in marks(live))
