"""What stories with traffic share: a Gateway, a route and a Service before the LWS, and what became of them."""

from __future__ import annotations

from typing import Any

from rollout_lws.objects.resources import HTTP_ROUTES, LWS_WORKER_INDEX, SERVICES
from rollout_lws.sandbox.catalogue import GATEWAYS
from tests.scenarios.stories import at_rest
from tests.scenarios.world import NAME, NAMESPACE, World

SERVICE, ROUTE, GATEWAY = "llama-api", "llama", "inference"
#: Weighted steps for an LWS of five groups.
FIVE: tuple[dict[str, Any], ...] = tuple(
    {"replicas": number, "traffic": f"{10 * number}%", "pause": {}} for number in range(1, 6)
)


def routing(**more: Any) -> list[dict[str, Any]]:
    """The Rollout's words on traffic."""
    return [{"service": SERVICE, "gateway": {"httpRouteName": ROUTE}, **more}]


def create_route(world: World, name: str = ROUTE, service: str = SERVICE, **backend: Any) -> None:
    """A Gateway, a Service for the leaders, and a route to it."""
    meta = {"namespace": NAMESPACE}
    selector = {"app": "llama", LWS_WORKER_INDEX: "0"}
    ports = [{"port": 80, "targetPort": 8000}]
    gateway = {"gatewayClassName": "any", "listeners": [{"name": "http", "port": 80, "protocol": "HTTP"}]}
    rule = {"backendRefs": [{"name": service, "port": 80, **backend}]}
    spec = {"parentRefs": [{"name": GATEWAY}], "rules": [rule]}
    for resource, named, body in (
        (GATEWAYS, GATEWAY, {"spec": gateway}),
        (SERVICES, service, {"spec": {"selector": selector, "ports": ports}}),
        (HTTP_ROUTES, name, {"spec": spec}),
    ):
        head = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {**meta, "name": named}}
        world.server.create(resource, {**head, **body})


def routes_of(world: World, name: str = ROUTE) -> list[dict[str, int]]:
    """Weight by backend, rule by rule."""
    route = world.get(HTTP_ROUTES, name)
    assert route is not None
    rules = route["spec"]["rules"]
    return [{ref["name"]: ref.get("weight", 1) for ref in rule["backendRefs"]} for rule in rules]


def share(world: World, name: str = ROUTE) -> float:
    """Share of the new version in the route's first rule."""
    weights = routes_of(world, name)[0]
    return weights.get(f"{SERVICE}-canary", 0) / sum(weights.values())


def borrowed(world: World) -> dict[str, Any]:
    """What has to come back: spec, labels and annotations of Service and route."""
    kept = {}
    for resource, name in ((SERVICES, SERVICE), (HTTP_ROUTES, ROUTE)):
        found = world.get(resource, name)
        assert found is not None
        meta = found["metadata"]
        kept[name] = (found["spec"], meta.get("labels") or {}, meta.get("annotations") or {})
    return kept


async def routed_at_rest(world: World, *steps: dict[str, Any], replicas: int = 5, **more: Any) -> dict[str, Any]:
    """An LWS at rest with traffic; gives what was there before any release."""
    create_route(world)
    await at_rest(world, *(steps or FIVE), replicas=replicas, canary={"trafficRoutings": routing(**more)})
    return borrowed(world)


def assert_given_back(world: World, before: dict[str, Any]) -> None:
    assert borrowed(world) == before
    assert world.names()["services"] == sorted([NAME, SERVICE])
    assert "traffic" not in world.status
