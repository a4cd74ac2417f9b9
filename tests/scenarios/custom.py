"""What stories with scripts share: kinds that this version does not know, objects of them, and scripts for both."""

from __future__ import annotations

from typing import Any

from rollout_lws.objects.resources import CUSTOM_RESOURCE_DEFINITIONS, Resource
from tests.scenarios import lua
from tests.scenarios.routed import SERVICE, Provider, create_route, create_scripts, custom_ref, make
from tests.scenarios.world import World

MESH_GROUP = "mesh.example.com"
MESH_ROUTES = Resource(MESH_GROUP, "v1", "MeshRoute", "meshroutes")
MESH_RULES = Resource(MESH_GROUP, "v1", "MeshRule", "meshrules")
#: The texts of the ConfigMap with scripts.
TEXTS = {
    f"lua.traffic.routing.MeshRoute.{MESH_GROUP}": lua.VIRTUAL_SERVICE,
    f"lua.traffic.routing.MeshRule.{MESH_GROUP}": lua.DESTINATION_RULE,
}
MESH, RULE = "llama-mesh", "llama-subsets"


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


def create_mesh(world: World) -> None:
    """A Service, and objects of two kinds of a mesh for it."""
    create_scripts(world, TEXTS)
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


BY_MESH = Provider(
    "Mesh",
    {"customNetworkRefs": [custom_ref(MESH_ROUTES, MESH), custom_ref(MESH_RULES, RULE)]},
    ((MESH_ROUTES, MESH), (MESH_RULES, RULE)),
    create_mesh,
    tells=False,
)
