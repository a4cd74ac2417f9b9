"""What stories with scripts share: kinds that this version does not know, objects of them, and scripts for both."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rollout_lws.objects.resources import CONFIG_MAPS, CUSTOM_RESOURCE_DEFINITIONS, HTTP_ROUTES, NAMESPACES, Resource
from tests.scenarios import lua
from tests.scenarios.routed import ROUTE, SERVICE, Provider, create_route, make
from tests.scenarios.world import World

MESH_GROUP = "mesh.example.com"
MESH_ROUTES = Resource(MESH_GROUP, "v1", "MeshRoute", "meshroutes")
MESH_RULES = Resource(MESH_GROUP, "v1", "MeshRule", "meshrules")
SCRIPTS = ("rollout-lws-system", "rollout-scripts")
#: The texts of the ConfigMap with scripts.
TEXTS = {
    f"lua.traffic.routing.MeshRoute.{MESH_GROUP}": lua.VIRTUAL_SERVICE,
    f"lua.traffic.routing.MeshRule.{MESH_GROUP}": lua.DESTINATION_RULE,
    f"lua.traffic.routing.HTTPRoute.{HTTP_ROUTES.group}": lua.HTTP_ROUTE,
}
MESH, RULE = "llama-mesh", "llama-subsets"


def ref(resource: Resource, name: str) -> dict[str, str]:
    return {"apiVersion": resource.api_version, "kind": resource.kind, "name": name}


def definition(resource: Resource) -> dict[str, Any]:
    """A CustomResourceDefinition that takes any spec."""
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": resource.version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": anything, "status": anything}}},
    }
    names = {"kind": resource.kind, "plural": resource.plural, "singular": resource.kind.lower()}
    spec = {"group": resource.group, "scope": "Namespaced", "names": names, "versions": [version]}
    return CUSTOM_RESOURCE_DEFINITIONS.manifest(str(resource), spec=spec)


def create_scripts(world: World, texts: Mapping[str, str] | None = None) -> None:
    """The ConfigMap with scripts, in the controller's namespace, and a controller that runs them."""
    namespace, name = world.view.scripts_in = SCRIPTS
    world.server.create(NAMESPACES, NAMESPACES.manifest(namespace))
    world.server.create(
        CONFIG_MAPS, CONFIG_MAPS.manifest(name, namespace, data=dict(TEXTS if texts is None else texts))
    )


def create_mesh(world: World) -> None:
    """A Service, and objects of two kinds of a mesh for it."""
    create_scripts(world)
    create_route(world)
    for resource in (MESH_ROUTES, MESH_RULES):
        world.server.create(CUSTOM_RESOURCE_DEFINITIONS, definition(resource))
    host = {"destination": {"host": SERVICE, "port": {"number": 80}}}
    rules = [
        {"match": [{"uri": {"prefix": "/admin"}}], "route": [{"destination": {"host": "admin"}}]},
        {"route": [host]},
    ]
    make(world, MESH_ROUTES, MESH, spec={"hosts": ["llama.example.com"], "http": rules})
    make(world, MESH_RULES, RULE, spec={"host": SERVICE})


def create_scripted_route(world: World) -> None:
    """An HTTPRoute that a script shares."""
    create_scripts(world)
    create_route(world)


BY_MESH = Provider(
    "Mesh",
    {"customNetworkRefs": [ref(MESH_ROUTES, MESH), ref(MESH_RULES, RULE)]},
    ((MESH_ROUTES, MESH), (MESH_RULES, RULE)),
    create_mesh,
    tells=False,
)
BY_SCRIPT = Provider(
    "Script",
    {"customNetworkRefs": [ref(HTTP_ROUTES, ROUTE)]},
    ((HTTP_ROUTES, ROUTE),),
    create_scripted_route,
    tells=False,
)
