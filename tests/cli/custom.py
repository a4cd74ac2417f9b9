"""A Rollout `llama` whose requests a script shares, on a server where nobody acts: its parts, one by one."""

from __future__ import annotations

from typing import Any

from rollout_lws.cli.demo import manifests
from rollout_lws.cli.install.manifests import objects
from rollout_lws.cli.install.options import Installation
from rollout_lws.errors import ApiError
from rollout_lws.objects.resources import (
    CONFIG_MAPS,
    CUSTOM_RESOURCE_DEFINITIONS,
    DEPLOYMENTS,
    LEADER_WORKER_SETS,
    NAMESPACES,
    SERVICES,
    Resource,
)
from rollout_lws.sandbox.faults import Effect
from tests.cli.conftest import World

Object = dict[str, Any]
MESH_ROUTES = Resource("mesh.example.com", "v1", "MeshRoute", "meshroutes")
HOME, SCRIPTS = "rollout-lws-system", "rollout-lws-scripts"
KEY = "lua.traffic.routing.MeshRoute.mesh.example.com"
#: Weights of the two versions, in a list of destinations.
SCRIPT = """
local stable = obj.data.spec.destinations[1]
stable.weight = obj.stableWeight
table.insert(obj.data.spec.destinations, {service = obj.canaryService, weight = obj.canaryWeight})
return obj.data
"""
REF = {"apiVersion": MESH_ROUTES.api_version, "kind": MESH_ROUTES.kind, "name": "llama"}
ROUTE: Object = {**REF, "metadata": {"name": "llama"}, "spec": {"destinations": [{"service": "llama-api"}]}}
del ROUTE["name"]


def definition(*, namespaced: bool = True) -> Object:
    """The CustomResourceDefinition of MeshRoutes."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": CUSTOM_RESOURCE_DEFINITIONS.api_version,
        "kind": CUSTOM_RESOURCE_DEFINITIONS.kind,
        "metadata": {"name": str(MESH_ROUTES)},
        "spec": {
            "group": MESH_ROUTES.group,
            "scope": "Namespaced" if namespaced else "Cluster",
            "names": {"kind": MESH_ROUTES.kind, "plural": MESH_ROUTES.plural, "singular": "meshroute"},
            "versions": [version],
        },
    }


def config_map(**texts: str) -> Object:
    """The ConfigMap with scripts; of MeshRoutes by default."""
    return {**CONFIG_MAPS.manifest(SCRIPTS, HOME), "data": texts or {KEY: SCRIPT}}


def rollout(world: World) -> Object:
    """Releases LeaderWorkerSet `llama`: 20% of requests in step 1, and all of them in the end."""
    made = manifests.rollout(world.rollouts.api_version, manifests.workload()["metadata"])
    made["spec"]["strategy"] = {
        "canary": {
            "trafficRoutings": [{"service": "llama-api", "customNetworkRefs": [REF]}],
            "steps": [{"replicas": 1, "traffic": "20%", "pause": {}}, {"replicas": "100%"}],
        }
    }
    return made


def service() -> Object:
    selector = {"leaderworkerset.sigs.k8s.io/name": "llama", "leaderworkerset.sigs.k8s.io/worker-index": "0"}
    return {**SERVICES.manifest("llama-api", "default"), "spec": {"selector": selector, "ports": [{"port": 80}]}}


def deployment(scripts: str = SCRIPTS) -> Object:
    """The controller's Deployment; "" for one that runs no scripts."""
    chosen = Installation("registry.example.com/rollout-lws:0.1.0", custom_network_scripts=scripts)
    return next(each for each in objects(chosen) if each["kind"] == DEPLOYMENTS.kind)


#: What a release by a script takes, by name.
PARTS: dict[str, Object] = {
    "definition": definition(),
    "route": ROUTE,
    "scripts": config_map(),
    "controller": deployment(),
}


def given(world: World, *without: str, **parts: Object) -> None:
    """The LeaderWorkerSet and its Rollout with everything that a release takes, with these parts in place of the usual
    ones, and ``without`` some.
    """
    lws = manifests.workload()
    lws["metadata"]["namespace"] = "default"
    world.do(lambda: world.server.create(LEADER_WORKER_SETS, lws))
    world.do(lambda: world.server.create(NAMESPACES, NAMESPACES.manifest(HOME)))
    put(world, service(), rollout(world))
    put(world, *(each for name, each in {**PARTS, **parts}.items() if name not in without))


def put(world: World, *made: Object) -> None:
    """Create these objects, of the namespace that they name, else of the default one."""
    kinds = (world.rollouts, MESH_ROUTES, CONFIG_MAPS, DEPLOYMENTS, SERVICES, CUSTOM_RESOURCE_DEFINITIONS)
    by_kind = {each.kind: each for each in kinds}
    for each in made:
        resource = by_kind[each["kind"]]
        namespace = each["metadata"].get("namespace") or ("default" if resource.namespaced else "")
        body = {**each, "metadata": {**each["metadata"], **({"namespace": namespace} if namespace else {})}}
        world.do(lambda resource=resource, body=body: world.server.create(resource, body))  # type: ignore[misc]


def refuse(world: World, verb: str, plural: str, code: int = 403, told: str = "you may not") -> None:
    """Every such request from now on."""
    effect = Effect(refusal=ApiError(code, "Forbidden", told))
    world.do(lambda: world.http.gate.faults.add(effect, verb, plural, count=None))
