"""What a Gateway's controller tells, and when."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from rollout_lws.objects.resources import HTTP_ROUTES, INFERENCE_POOLS, NAMESPACES, SERVICES, Resource
from rollout_lws.sandbox.api_resources import GATEWAYS
from rollout_lws.sandbox.apiserver import ApiServer
from rollout_lws.sandbox.behaviours.cluster import Options
from tests.sandbox.behaviours.world import NAMESPACE, cluster

pytestmark = pytest.mark.looptime

PREFIX = "sandbox.rollouts.kruise.io/"


def meta(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "namespace": NAMESPACE, **more}


def gateway(server: ApiServer, name: str = "front", allow: dict[str, Any] | None = None, **metadata: Any) -> None:
    listener: dict[str, Any] = {"name": "http", "port": 80, "protocol": "HTTP"}
    if allow:
        listener["allowedRoutes"] = {"namespaces": allow}
    spec = {"gatewayClassName": "any", "listeners": [listener]}
    server.create(GATEWAYS, {"metadata": meta(name, **metadata), "spec": spec})


def service(server: ApiServer, name: str = "llama", port: int = 80) -> None:
    server.create(SERVICES, {"metadata": meta(name), "spec": {"ports": [{"port": port}]}})


def route(server: ApiServer, *backends: dict[str, Any], parents: tuple[dict[str, Any], ...] = ()) -> None:
    refs = list(backends) or [{"name": "llama", "port": 80}]
    spec = {"parentRefs": list(parents) or [{"name": "front"}], "rules": [{"backendRefs": refs}]}
    server.create(HTTP_ROUTES, {"metadata": meta("llama"), "spec": spec})


def annotate(server: ApiServer, **annotations: str | None) -> None:
    body = {PREFIX + key.replace("_", "-"): value for key, value in annotations.items()}
    server.patch(GATEWAYS, NAMESPACE, "front", {"metadata": {"annotations": body}})


def told(server: ApiServer, resource: Resource = HTTP_ROUTES, name: str = "llama") -> dict[str, dict[str, str]]:
    """By parent: condition to "status reason generation"."""
    parents = (server.get(resource, NAMESPACE, name).get("status") or {}).get("parents") or ()
    return {entry["parentRef"]["name"]: brief(entry["conditions"]) for entry in parents}


def brief(conditions: list[dict[str, Any]]) -> dict[str, str]:
    return {each["type"]: f"{each['status']} {each['reason']} {each['observedGeneration']}" for each in conditions}


def fine(generation: int) -> dict[str, str]:
    return {"Accepted": f"True Accepted {generation}", "ResolvedRefs": f"True ResolvedRefs {generation}"}


async def test_a_route_is_accepted_after_exactly_the_lag() -> None:
    async with cluster(Options(gateway_lag=0.5)) as server:
        gateway(server)
        service(server)
        route(server)
        await asyncio.sleep(0.499)
        assert told(server) == {}
        await asyncio.sleep(0.002)
        assert told(server) == {"front": fine(1)}


async def test_the_lag_begins_anew_with_what_is_to_be_told_and_with_nothing_else() -> None:
    async with cluster(Options(gateway_lag=0.5)) as server:
        gateway(server)
        service(server)
        route(server)
        await asyncio.sleep(0.45)
        server.patch(HTTP_ROUTES, NAMESPACE, "llama", {"metadata": {"labels": {"a": "b"}}})
        await asyncio.sleep(0.04)
        assert told(server) == {}
        server.patch(HTTP_ROUTES, NAMESPACE, "llama", {"spec": {"hostnames": ["llm.example"]}})
        await asyncio.sleep(0.49)
        assert told(server) == {}
        await asyncio.sleep(0.02)
        assert told(server) == {"front": fine(2)}


async def test_each_generation_is_told_of_and_status_alone_moves_nothing() -> None:
    async with cluster() as server:
        gateway(server)
        service(server)
        route(server)
        await asyncio.sleep(0.3)
        before = server.store.version
        await asyncio.sleep(10)
        assert server.store.version == before
        rules = [{"backendRefs": [{"name": "llama", "port": 80, "weight": 5}]}]
        server.patch(HTTP_ROUTES, NAMESPACE, "llama", {"spec": {"rules": rules}})
        await asyncio.sleep(0.1)
        assert told(server) == {"front": fine(1)}
        await asyncio.sleep(0.11)
        assert told(server) == {"front": fine(2)}


async def test_a_condition_keeps_the_time_of_its_last_change() -> None:
    async with cluster() as server:
        gateway(server)
        service(server)
        route(server)
        await asyncio.sleep(1)

        def times() -> set[str]:
            (entry,) = server.get(HTTP_ROUTES, NAMESPACE, "llama")["status"]["parents"]
            return {each["lastTransitionTime"] for each in entry["conditions"]}

        first = times()
        await asyncio.sleep(60)
        server.patch(HTTP_ROUTES, NAMESPACE, "llama", {"spec": {"hostnames": ["llm.example"]}})
        await asyncio.sleep(1)
        assert told(server) == {"front": fine(2)}
        assert times() == first


async def test_a_gateway_that_does_not_exist_tells_nothing_until_it_does() -> None:
    async with cluster() as server:
        service(server)
        route(server)
        await asyncio.sleep(5)
        assert told(server) == {}
        gateway(server)
        await asyncio.sleep(0.3)
        assert told(server) == {"front": fine(1)}
        server.delete(GATEWAYS, NAMESPACE, "front")
        await asyncio.sleep(0.3)
        assert told(server) == {}


async def test_a_dangling_backend_is_not_resolved_until_it_exists() -> None:
    async with cluster() as server:
        gateway(server)
        route(server)
        await asyncio.sleep(0.3)
        assert told(server)["front"] == {"Accepted": "True Accepted 1", "ResolvedRefs": "False BackendNotFound 1"}
        service(server, port=81)
        await asyncio.sleep(0.3)
        assert told(server)["front"]["ResolvedRefs"] == "False BackendNotFound 1"
        server.patch(SERVICES, NAMESPACE, "llama", {"spec": {"ports": [{"port": 80}]}})
        await asyncio.sleep(0.3)
        assert told(server) == {"front": fine(1)}
        server.delete(SERVICES, NAMESPACE, "llama")
        await asyncio.sleep(0.3)
        assert told(server)["front"]["ResolvedRefs"] == "False BackendNotFound 1"


@pytest.mark.parametrize(
    ("backend", "verdict"),
    [
        ({"group": "example.org", "kind": "Bucket", "name": "b"}, "False InvalidKind 1"),
        ({"name": "llama", "namespace": "other", "port": 80}, "False RefNotPermitted 1"),
    ],
)
async def test_a_backend_that_may_not_be_named_is_not_resolved(backend: dict[str, Any], verdict: str) -> None:
    async with cluster() as server:
        gateway(server)
        route(server, backend)
        await asyncio.sleep(0.3)
        assert told(server)["front"]["ResolvedRefs"] == verdict


@pytest.mark.parametrize("parent", [{"sectionName": "https"}, {"port": 443}])
async def test_a_route_to_a_listener_that_is_not_there_is_not_accepted(parent: dict[str, Any]) -> None:
    async with cluster() as server:
        gateway(server)
        service(server)
        route(server, parents=({"name": "front", **parent},))
        await asyncio.sleep(0.3)
        assert told(server)["front"]["Accepted"] == "False NoMatchingParent 1"


@pytest.mark.parametrize(
    ("allowed", "verdict"),
    [
        ({"from": "Same"}, "False NotAllowedByListeners 1"),
        ({"from": "All"}, "True Accepted 1"),
        ({"from": "Selector", "selector": {"matchLabels": {"team": "llm"}}}, "True Accepted 1"),
        ({"from": "Selector", "selector": {"matchLabels": {"team": "ads"}}}, "False NotAllowedByListeners 1"),
    ],
)
async def test_listeners_choose_the_namespaces_of_their_routes(allowed: dict[str, Any], verdict: str) -> None:
    async with cluster() as server:
        server.create(NAMESPACES, {"metadata": {"name": "team", "labels": {"team": "llm"}}})
        gateway(server, allow=allowed)
        spec = {"parentRefs": [{"name": "front", "namespace": NAMESPACE}]}
        server.create(HTTP_ROUTES, {"metadata": {"name": "llama", "namespace": "team"}, "spec": spec})
        await asyncio.sleep(0.3)
        (entry,) = server.get(HTTP_ROUTES, "team", "llama")["status"]["parents"]
        assert brief(entry["conditions"])["Accepted"] == verdict


async def test_a_gateway_can_be_told_to_refuse() -> None:
    async with cluster() as server:
        gateway(server)
        service(server)
        route(server)
        await asyncio.sleep(0.3)
        annotate(server, refuse_routes="weights are not supported")
        await asyncio.sleep(0.3)
        (entry,) = server.get(HTTP_ROUTES, NAMESPACE, "llama")["status"]["parents"]
        accepted = next(each for each in entry["conditions"] if each["type"] == "Accepted")
        assert (accepted["status"], accepted["message"]) == ("False", "weights are not supported")
        annotate(server, refuse_routes=None)
        await asyncio.sleep(0.3)
        assert told(server) == {"front": fine(1)}


async def test_a_silent_gateway_leaves_what_it_told_before() -> None:
    async with cluster() as server:
        gateway(server)
        service(server)
        route(server)
        await asyncio.sleep(0.3)
        annotate(server, silent="true")
        server.patch(HTTP_ROUTES, NAMESPACE, "llama", {"spec": {"hostnames": ["llm.example"]}})
        await asyncio.sleep(30)
        assert told(server) == {"front": fine(1)}
        annotate(server, silent=None)
        await asyncio.sleep(0.3)
        assert told(server) == {"front": fine(2)}


async def test_a_gateway_that_was_always_silent_never_tells_anything() -> None:
    async with cluster() as server:
        gateway(server, annotations={PREFIX + "silent": "true"})
        service(server)
        route(server)
        await asyncio.sleep(30)
        assert told(server) == {}
        conditions = server.get(GATEWAYS, NAMESPACE, "front")["status"]["conditions"]
        assert {each["status"] for each in conditions} == {"Unknown"}


async def test_every_parent_is_told_of_and_the_entries_of_other_controllers_stay() -> None:
    async with cluster() as server:
        gateway(server)
        gateway(server, "back")
        service(server)
        route(server, parents=({"name": "front"}, {"name": "back"}, {"name": "missing"}))
        await asyncio.sleep(0.3)
        assert told(server) == {"front": fine(1), "back": fine(1)}
        parents = server.get(HTTP_ROUTES, NAMESPACE, "llama")["status"]["parents"]
        mesh = {**parents[0], "parentRef": {"name": "mesh"}, "controllerName": "example.org/mesh"}
        server.patch(HTTP_ROUTES, NAMESPACE, "llama", {"status": {"parents": [*parents, mesh]}}, subresource="status")
        server.patch(HTTP_ROUTES, NAMESPACE, "llama", {"spec": {"parentRefs": [{"name": "back"}]}})
        await asyncio.sleep(0.3)
        assert told(server) == {"back": fine(2), "mesh": fine(1)}


async def test_a_gateway_is_programmed() -> None:
    async with cluster() as server:
        gateway(server)
        await asyncio.sleep(0.3)
        conditions = server.get(GATEWAYS, NAMESPACE, "front")["status"]["conditions"]
        assert brief(conditions) == {"Accepted": "True Accepted 1", "Programmed": "True Programmed 1"}


async def test_a_pool_is_told_of_while_a_route_refers_to_it() -> None:
    async with cluster() as server:
        gateway(server)
        picker = {"name": "epp", "port": {"number": 9002}}
        spec = {"selector": {"matchLabels": {"a": "b"}}, "targetPorts": [{"number": 80}], "endpointPickerRef": picker}
        ref = {"group": INFERENCE_POOLS.group, "kind": "InferencePool", "name": "llama"}
        route(server, ref)
        await asyncio.sleep(0.3)
        assert told(server)["front"]["ResolvedRefs"] == "False BackendNotFound 1"
        server.create(INFERENCE_POOLS, {"metadata": meta("llama"), "spec": spec})
        await asyncio.sleep(0.3)
        assert told(server) == {"front": fine(1)}
        unpicked = {"Accepted": "True Accepted 1", "ResolvedRefs": "False InvalidExtensionRef 1"}
        assert told(server, INFERENCE_POOLS) == {"front": unpicked}
        service(server, "epp", 9002)
        await asyncio.sleep(0.3)
        assert told(server, INFERENCE_POOLS) == {"front": fine(1)}
        annotate(server, refuse_routes="no")
        await asyncio.sleep(0.3)
        assert told(server, INFERENCE_POOLS)["front"]["Accepted"] == "False HTTPRouteNotAccepted 1"
        server.delete(HTTP_ROUTES, NAMESPACE, "llama")
        await asyncio.sleep(0.3)
        assert told(server, INFERENCE_POOLS) == {}


async def test_a_route_that_goes_within_the_lag_is_no_error() -> None:
    async with cluster() as server:
        gateway(server)
        route(server)
        await asyncio.sleep(0.1)
        server.delete(HTTP_ROUTES, NAMESPACE, "llama")
        await asyncio.sleep(1)
        assert server.list(HTTP_ROUTES, NAMESPACE) == []
