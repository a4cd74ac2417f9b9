"""Routes, Gateways, pools and Ingresses as the API server takes them: defaults, limits, columns, status."""

from __future__ import annotations

from typing import Any

import pytest

from rollout_lws.objects.resources import (
    CUSTOM_RESOURCE_DEFINITIONS,
    ENDPOINT_SLICES,
    HTTP_ROUTES,
    INFERENCE_POOLS,
    INGRESSES,
    Resource,
)
from rollout_lws.sandbox.api_resources import BUILTINS, GATEWAYS
from rollout_lws.sandbox.apiserver import ApiServer
from rollout_lws.sandbox.definitions import gateway_api
from rollout_lws.sandbox.printing.printers import cells_of, columns_of
from tests.sandbox.conftest import Clock, refused

ANY_PATH = {"path": {"type": "PathPrefix", "value": "/"}}


def meta(name: str = "llama") -> dict[str, Any]:
    return {"name": name, "namespace": "default"}


def route(*rules: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {"metadata": meta(), "spec": {"parentRefs": [{"name": "front"}], "rules": list(rules), **spec}}


def backend(**ref: Any) -> dict[str, Any]:
    return {"backendRefs": [{"name": "llama", "port": 80, **ref}]}


def gateway(**listener: Any) -> dict[str, Any]:
    http = {"name": "http", "port": 80, "protocol": "HTTP", **listener}
    return {"metadata": meta("front"), "spec": {"gatewayClassName": "any", "listeners": [http]}}


def pool(**spec: Any) -> dict[str, Any]:
    base = {"selector": {"matchLabels": {"app": "llama"}}, "targetPorts": [{"number": 8000}]}
    return {"metadata": meta(), "spec": {**base, **spec}}


def ingress(**path: Any) -> dict[str, Any]:
    service = {"service": {"name": "llama", "port": {"number": 80}}}
    first = {"path": "/", "pathType": "Prefix", "backend": service, **path}
    spec = {"ingressClassName": "nginx", "rules": [{"host": "llm.example", "http": {"paths": [first]}}]}
    return {"metadata": meta(), "spec": spec}


def test_a_route_gets_the_defaults_of_its_definition(server: ApiServer) -> None:
    spec = server.create(HTTP_ROUTES, route(backend(), {"matches": [{"headers": [{"name": "a", "value": "b"}]}]}))[
        "spec"
    ]
    assert spec["parentRefs"] == [{"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "front"}]
    assert spec["rules"][0]["matches"] == [ANY_PATH]
    assert spec["rules"][0]["backendRefs"] == [
        {"group": "", "kind": "Service", "name": "llama", "port": 80, "weight": 1}
    ]
    assert spec["rules"][1]["matches"] == [{**ANY_PATH, "headers": [{"type": "Exact", "name": "a", "value": "b"}]}]
    bare = server.create(HTTP_ROUTES, {"metadata": meta("bare"), "spec": {"parentRefs": [{"name": "front"}]}})
    assert bare["spec"]["rules"] == [{"matches": [ANY_PATH]}]


def test_a_gateway_waits_for_a_controller_and_a_pool_fails_closed(server: ApiServer) -> None:
    made = server.create(GATEWAYS, gateway())
    assert {entry["type"]: entry["status"] for entry in made["status"]["conditions"]} == {
        "Accepted": "Unknown",
        "Programmed": "Unknown",
    }
    assert made["spec"]["listeners"][0]["allowedRoutes"] == {"namespaces": {"from": "Same"}}
    picker = {"name": "epp", "port": {"number": 9002}}
    spec = server.create(INFERENCE_POOLS, pool(endpointPickerRef=picker))["spec"]
    assert spec["endpointPickerRef"] == {"group": "", "kind": "Service", "failureMode": "FailClose", **picker}
    assert spec["appProtocol"] == "http"


@pytest.mark.parametrize(
    ("rules", "text"),
    [
        ([backend(weight=-1)], "weight in body should be greater than or equal to 0"),
        ([backend(weight=1_000_001)], "weight in body should be less than or equal to 1000000"),
        ([backend(port=0)], "port in body should be greater than or equal to 1"),
        ([{"backendRefs": [{"name": "llama"}]}], "Must have port for Service reference"),
        ([backend()] * 17, "spec.rules: Too many: 17: must have at most 16 items"),
        ([], "spec.rules in body should have at least 1 items"),
        ([{"matches": [{"path": {"value": "v1"}}]}], "value must be an absolute path and start with '/'"),
        ([{"matches": [{"headers": [{"name": "a", "value": "b"}, {"name": "a", "value": "c"}]}]}], "Duplicate value"),
        ([{"matches": [{"method": "FETCH"}]}], 'Unsupported value: "FETCH"'),
    ],
)
def test_a_route_that_the_definition_forbids_is_invalid(
    server: ApiServer, rules: list[dict[str, Any]], text: str
) -> None:
    with refused(422, "Invalid", text):
        server.create(HTTP_ROUTES, route(*rules))


def test_an_inference_pool_backend_needs_no_port(server: ApiServer) -> None:
    ref = {"group": INFERENCE_POOLS.group, "kind": "InferencePool", "name": "llama", "weight": 0}
    made = server.create(HTTP_ROUTES, route({"backendRefs": [ref]}))
    assert made["spec"]["rules"][0]["backendRefs"] == [ref]


@pytest.mark.parametrize(
    ("resource", "body", "text"),
    [
        (INFERENCE_POOLS, pool(selector={"matchLabels": {}}), "should have at least 1 properties"),
        (INFERENCE_POOLS, pool(targetPorts=[]), "should have at least 1 items"),
        (INFERENCE_POOLS, pool(endpointPickerRef={"name": "epp"}), "port is required when kind is 'Service'"),
        (GATEWAYS, gateway(port=70000), "should be less than or equal to 65535"),
        (GATEWAYS, {"metadata": meta(), "spec": {"gatewayClassName": "any"}}, "spec.listeners: Required value"),
        (INGRESSES, {"metadata": meta(), "spec": {}}, "either `defaultBackend` or `rules` must be specified"),
        (INGRESSES, ingress(pathType=None), "pathType: Required value: pathType must be specified"),
        (INGRESSES, ingress(pathType="Glob"), 'Unsupported value: "Glob"'),
        (INGRESSES, ingress(path="v1"), "must be an absolute path"),
        (INGRESSES, ingress(backend={}), "resource or service backend is required"),
        (INGRESSES, ingress(backend={"service": {"name": "llama"}}), "port name or number is required"),
        (INGRESSES, ingress(backend={"service": {"port": {"number": 80}}}), "service.name: Required value"),
    ],
)
def test_what_no_cluster_takes_is_refused(
    server: ApiServer, resource: Resource, body: dict[str, Any], text: str
) -> None:
    with refused(422, "Invalid", text):
        server.create(resource, body)


def test_an_ingress_may_have_just_a_default_backend(server: ApiServer) -> None:
    backend_ref = {"service": {"name": "llama", "port": {"name": "http"}}}
    server.create(INGRESSES, {"metadata": meta(), "spec": {"defaultBackend": backend_ref}})
    made = server.patch(INGRESSES, "default", "llama", {"metadata": {"annotations": {"a": "b"}}})
    assert made["metadata"]["generation"] == 1
    with refused(422, "Invalid", "port name or number is required"):
        server.patch(INGRESSES, "default", "llama", {"spec": {"defaultBackend": {"service": {"port": None}}}})


@pytest.mark.parametrize(
    ("resource", "body"),
    [(HTTP_ROUTES, route(backend())), (INFERENCE_POOLS, pool()), (GATEWAYS, gateway())],
)
def test_status_is_a_subresource_and_only_spec_changes_count(
    server: ApiServer, resource: Resource, body: dict[str, Any]
) -> None:
    name = server.create(resource, body)["metadata"]["name"]
    conditions = [
        {
            "type": "Accepted",
            "status": "True",
            "reason": "Accepted",
            "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
    ]
    told = {"conditions": conditions} if resource == GATEWAYS else {"parents": []}
    made = server.patch(resource, "default", name, {"status": told}, subresource="status")
    assert made["status"].items() >= told.items()
    assert made["metadata"]["generation"] == 1
    ignored = server.patch(resource, "default", name, {"status": {"parents": None, "conditions": None}})
    assert ignored["status"] == made["status"]


def test_the_tables_are_those_that_users_know(server: ApiServer, clock: Clock) -> None:
    def shown(resource: Resource, body: dict[str, Any]) -> dict[str, Any]:
        served = server.lookup(resource)
        cells = cells_of(served, server.create(resource, body), clock())
        told = dict(zip((column.name for column in columns_of(served)), cells, strict=True))
        assert told.pop("Name") == body["metadata"]["name"]
        return told

    assert shown(GATEWAYS, gateway()) == {"Class": "any", "Address": None, "Programmed": "Unknown", "Age": "0s"}
    assert set(shown(HTTP_ROUTES, route(backend()))) == {"Hostnames", "Age"}
    assert shown(INFERENCE_POOLS, pool()) == {"Age": "0s"}
    assert shown(INGRESSES, ingress()) == {
        "Class": "nginx",
        "Hosts": "llm.example",
        "Address": "",
        "Ports": "80",
        "Age": "0s",
    }
    endpoints = [{"addresses": [f"10.0.0.{n}"]} for n in range(5)]
    body = {"metadata": meta(), "addressType": "IPv4", "endpoints": endpoints, "ports": [{"port": 8000}]}
    assert shown(ENDPOINT_SLICES, body) == {
        "AddressType": "IPv4",
        "Ports": "8000",
        "Endpoints": "10.0.0.0,10.0.0.1,10.0.0.2 + 2 more...",
        "Age": "0s",
    }


def test_the_definitions_can_be_installed_where_the_kinds_are_not_served(clock: Clock) -> None:
    bare = ApiServer(clock, BUILTINS)
    for manifest in gateway_api.manifests():
        bare.create(CUSTOM_RESOURCE_DEFINITIONS, manifest)
    served = {each.resource: each for each in bare.served}
    for each in gateway_api.SERVED:
        assert served[each.resource].status
        assert served[each.resource].short_names == each.short_names
