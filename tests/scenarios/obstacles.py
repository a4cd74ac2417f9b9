"""What stands in the way of releases by pools or an Ingress: acts upon a world at rest, made from a few words."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from rollout_lws.objects.resources import INFERENCE_POOLS, INGRESSES, LWS_WORKER_INDEX, SERVICES, Resource
from rollout_lws.observe.cache_types import StoredObject
from tests.scenarios.routed import INGRESS, SERVICE, make
from tests.scenarios.store_world import StoreWorld
from tests.scenarios.world import KEYS, ROLLOUTS, World

Act: TypeAlias = Callable[[World], None]
#: Prefix of what ingress-nginx reads.
NGINX = "nginx.ingress.kubernetes.io/"
#: A Rollout of another LWS.
OTHER = "other"


def delete(resource: Resource, name: str) -> Act:
    return lambda world: world.delete(resource, name)


def select(resource: Resource, name: str, **labels: str | None) -> Act:
    """Change these labels of a selector; None takes one away."""
    selector = labels if resource == SERVICES else {"matchLabels": labels}
    return lambda world: world.patch(resource, name, {"spec": {"selector": selector}})


def say(**more: Any) -> Act:
    """Change what the Rollout says of traffic."""

    def act(world: World) -> None:
        [said] = world.rollout["spec"]["strategy"]["canary"]["trafficRoutings"]
        world.patch_rollout({"strategy": {"canary": {"trafficRoutings": [{**said, **more}]}}})

    return act


def one_step(**said: Any) -> Act:
    """Have the Rollout's only step say this of traffic."""
    steps = [{"replicas": 1, "pause": {}, **said}]
    return lambda world: world.patch_rollout({"strategy": {"canary": {"steps": steps}}})


def borrowed_by_another(resource: Resource, name: str) -> Act:
    """Somebody else's release has it: a Rollout that lives."""

    def act(world: World) -> None:
        world.create_rollout({"replicas": 1}, name=OTHER)
        world.patch(ROLLOUTS, OTHER, {"spec": {"workloadRef": {"name": OTHER}}})
        note = json.dumps({uid_of_other(world): {"original": {}, "written": {}}})
        world.patch(resource, name, {"metadata": {"annotations": {KEYS.original: note}}})

    return act


def uid_of_other(world: World) -> str:
    """ "" when there is none."""
    other = world.get(ROLLOUTS, OTHER)
    return str(other["metadata"]["uid"]) if other else ""


def unserved(resource: Resource) -> Act:
    """A cluster without this kind, or an account that may not see it is there."""

    class Without(StoreWorld):
        def unserved(self, asked: Resource) -> bool:
            return asked == resource or super().unserved(asked)

    def act(world: World) -> None:
        world.view = Without(world.server)

    return act


def refused(resource: Resource) -> Act:
    """The account may not list this kind."""

    class Without(StoreWorld):
        def every(self, asked: Resource) -> Iterable[StoredObject]:
            return [] if asked == resource else super().every(asked)

        def unknown(self, asked: Resource) -> str | None:
            return super().unknown(asked) or (f"{asked} is forbidden" if asked == resource else None)

    def act(world: World) -> None:
        world.view = Without(world.server)

    return act


def served(world: World) -> None:
    """Every kind again; as after a CustomResourceDefinition was installed, the controller is told."""
    world.view = StoreWorld(world.server)
    world.patch_rollout({"strategy": {"minReadySeconds": 1}})


def another_pool(world: World) -> None:
    """A third one that would select the new version's leaders too."""
    selector = {"matchLabels": {"app": "llama", LWS_WORKER_INDEX: "0"}}
    picker = {"name": SERVICE, "port": {"number": 80}}
    spec = {"selector": selector, "targetPorts": [{"number": 8000}], "endpointPickerRef": picker}
    make(world, INFERENCE_POOLS, "llama-internal", spec=spec)


def another_label(world: World) -> None:
    """The template that is applied next calls its groups otherwise."""
    labels = {"labels": {"app": "lama"}}
    world.patch_lws({"leaderWorkerTemplate": {"workerTemplate": {"metadata": labels}}})


def ingress_spec(**spec: Any) -> Act:
    return lambda world: world.patch(INGRESSES, INGRESS, {"spec": spec})


def a_canary(name: str) -> Act:
    return lambda world: world.patch(INGRESSES, name, {"metadata": {"annotations": {f"{NGINX}canary": "true"}}})


def rules_to(service: str) -> list[dict[str, Any]]:
    """Rules of an Ingress: all requests to this Service."""
    backend = {"service": {"name": service, "port": {"number": 80}}}
    return [{"http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": backend}]}}]


def another_ingress(name: str) -> Act:
    spec = {"ingressClassName": "nginx", "rules": rules_to("other")}
    return lambda world: make(world, INGRESSES, name, spec=spec)


def rival(world: World) -> None:
    """Somebody's own canary of the same path."""
    another_ingress("mine")(world)
    a_canary("mine")(world)
