"""What a server says it serves, and how it says that it is well."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from rollout_lws.api.resources import batch_releases
from rollout_lws.objects import resources as known
from rollout_lws.objects.resources import CONFIG_MAPS, LEADER_WORKER_SETS, PODS, SERVICES, STATEFUL_SETS, Resource
from tests.conformance.asking import Asking
from tests.conformance.objects import ROLLOUTS

_OBJECT = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
_PART = ["get", "patch", "update"]
#: Singular name, short names, categories and subresources, those left out that only kubelets and schedulers use.
_EXPECTED: dict[Resource, tuple[str, list[str], list[str], list[str]]] = {
    PODS: ("pod", ["po"], ["all"], ["status"]),
    SERVICES: ("service", ["svc"], ["all"], ["status"]),
    CONFIG_MAPS: ("configmap", ["cm"], [], []),
    known.SECRETS: ("secret", [], [], []),
    known.CORE_EVENTS: ("event", ["ev"], [], []),
    known.EVENTS: ("event", ["ev"], [], []),
    known.NAMESPACES: ("namespace", ["ns"], [], ["status"]),
    known.NODES: ("node", ["no"], [], ["status"]),
    known.PERSISTENT_VOLUME_CLAIMS: ("persistentvolumeclaim", ["pvc"], [], ["status"]),
    STATEFUL_SETS: ("statefulset", ["sts"], ["all"], ["scale", "status"]),
    known.CONTROLLER_REVISIONS: ("controllerrevision", [], [], []),
    known.ENDPOINT_SLICES: ("endpointslice", [], [], []),
    known.LEASES: ("lease", [], [], []),
    known.HORIZONTAL_POD_AUTOSCALERS: ("horizontalpodautoscaler", ["hpa"], ["all"], ["status"]),
    known.INGRESSES: ("ingress", ["ing"], [], ["status"]),
    known.POD_DISRUPTION_BUDGETS: ("poddisruptionbudget", ["pdb"], [], ["status"]),
    known.CUSTOM_RESOURCE_DEFINITIONS: ("customresourcedefinition", ["crd", "crds"], ["api-extensions"], ["status"]),
    ROLLOUTS: ("rollout", ["lwsro"], [], ["scale", "status"]),
    batch_releases(): ("batchrelease", [], [], ["status"]),
    LEADER_WORKER_SETS: ("leaderworkerset", ["lws"], [], ["scale", "status"]),
}
_UNUSED = (
    "attach",
    "binding",
    "ephemeralcontainers",
    "eviction",
    "exec",
    "log",
    "portforward",
    "proxy",
    "resize",
    "token",
)


def base(resource: Resource) -> str:
    return f"/apis/{resource.group}/{resource.version}" if resource.group else f"/api/{resource.version}"


async def test_the_versions_of_the_core_are_told(server: Asking) -> None:
    found = (await server.ask("GET", "/api")).ok()
    assert (found["kind"], found["versions"]) == ("APIVersions", ["v1"])
    assert found["serverAddressByClientCIDRs"][0]["clientCIDR"] == "0.0.0.0/0"


async def test_groups_are_told_with_their_versions(server: Asking) -> None:
    found = (await server.ask("GET", "/apis")).ok()
    assert (found["kind"], found["apiVersion"]) == ("APIGroupList", "v1")
    groups = {each["name"]: each for each in found["groups"]}
    assert groups.keys() >= {resource.group for resource in _EXPECTED if resource.group}
    version = {"groupVersion": LEADER_WORKER_SETS.api_version, "version": "v1"}
    group = {"name": LEADER_WORKER_SETS.group, "versions": [version], "preferredVersion": version}
    assert groups[LEADER_WORKER_SETS.group] == group
    alone = (await server.ask("GET", f"/apis/{LEADER_WORKER_SETS.group}")).ok()
    assert alone == {"kind": "APIGroup", "apiVersion": "v1", **group}


@pytest.mark.parametrize("resource", _EXPECTED, ids=str)
async def test_each_kind_is_told_of(server: Asking, resource: Resource) -> None:
    singular, short, categories, subresources = _EXPECTED[resource]
    found = (await server.ask("GET", base(resource))).ok()
    assert (found["kind"], found["groupVersion"]) == ("APIResourceList", resource.api_version)
    entries = {each["name"]: each for each in found["resources"]}
    told = entries[resource.plural]
    assert (told["singularName"], told["namespaced"], told["kind"]) == (singular, resource.namespaced, resource.kind)
    assert (told.get("shortNames", []), told.get("categories", [])) == (short, categories)
    verbs = [verb for verb in _OBJECT if resource != known.NAMESPACES or verb != "deletecollection"]
    assert sorted(told["verbs"]) == verbs
    parts = {name.partition("/")[2]: each for name, each in entries.items() if name.startswith(f"{resource.plural}/")}
    assert sorted(parts.keys() - {*_UNUSED, "finalize"}) == subresources
    for name in subresources:
        assert sorted(parts[name]["verbs"]) == _PART
        assert parts[name]["kind"] == ("Scale" if name == "scale" else resource.kind)


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz"])
async def test_a_server_that_is_well_says_ok(server: Asking, path: str) -> None:
    answer = await server.ask("GET", path)
    assert (answer.code, answer.body) == (200, b"ok")


async def test_a_version_is_told(server: Asking) -> None:
    found = (await server.ask("GET", "/version")).ok()
    assert found["gitVersion"].startswith(f"v{found['major']}.{found['minor']}.")


async def _paths_of_schemas(server: Asking, awaited: set[str]) -> dict[str, Any]:
    """Once those of all groups are there: Kubernetes publishes them a moment after their kinds are established."""
    async with asyncio.timeout(30):
        while True:
            paths: dict[str, Any] = (await server.ask("GET", "/openapi/v3")).ok()["paths"]
            if awaited <= paths.keys():
                return paths
            await asyncio.sleep(0.1)


async def test_schemas_are_offered_for_each_group(server: Asking) -> None:
    paths = await _paths_of_schemas(server, {base(resource).strip("/") for resource in _EXPECTED})
    for resource in _EXPECTED:
        assert paths[base(resource).strip("/")]["serverRelativeURL"].startswith(f"/openapi/v3{base(resource)}?hash=")
    found = (await server.ask("GET", f"/openapi/v3{base(LEADER_WORKER_SETS)}")).ok()
    schema = found["components"]["schemas"]["io.x-k8s.leaderworkerset.v1.LeaderWorkerSet"]
    kind = {"group": LEADER_WORKER_SETS.group, "version": "v1", "kind": "LeaderWorkerSet"}
    assert kind in schema["x-kubernetes-group-version-kind"]
    assert schema["properties"]["spec"]["properties"]["replicas"]["maximum"] == 1_000_000
