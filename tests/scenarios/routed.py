"""What stories with traffic share: a Gateway, a route and a Service before the LWS, and what became of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar, TypeAlias, TypeVar

import pytest

from rollout_lws.objects.resources import (
    CONFIG_MAPS,
    DESTINATION_RULES,
    ENDPOINT_SLICES,
    GRPC_ROUTES,
    HTTP_ROUTES,
    INFERENCE_POOLS,
    INGRESSES,
    LWS_NAME,
    LWS_WORKER_INDEX,
    NAMESPACES,
    SERVICES,
    VIRTUAL_SERVICES,
    Resource,
)
from rollout_lws.objects.workloads import SERVICE_NAME
from rollout_lws.sandbox.api_resources import GATEWAYS
from rollout_lws.traffic.copies import ingress
from rollout_lws.traffic.registry import HTTP_ROUTE, named_in, spec_of
from rollout_lws.traffic.registry import INGRESS as INGRESS_SPEC
from rollout_lws.traffic.route.kinds import RULES
from rollout_lws.traffic.route.state import references, weight_of
from tests.scenarios import lua
from tests.scenarios.invariants import pinned_while_reachable
from tests.scenarios.kinds import MADE
from tests.scenarios.stories import at_rest
from tests.scenarios.world import NAME, NAMESPACE, World

SERVICE, ROUTE, GATEWAY = "llama-api", "llama", "inference"
#: Namespace and name of the ConfigMap with scripts.
SCRIPTS = ("rollout-lws-system", "rollout-scripts")
#: Weighted steps for an LWS of five groups.
FIVE: tuple[dict[str, Any], ...] = tuple(
    {"replicas": number, "traffic": f"{10 * number}%", "pause": {}} for number in range(1, 6)
)


POOL, CANARY_POOL, INGRESS = "llama-pool", "llama-pool-canary", "llama"


@dataclass(frozen=True)
class Provider:
    """What a release shares requests by: ``words`` of the Rollout on it, what is borrowed besides the Service, what
    makes all of it, and by what a measured client enters. ``tells``: something says when it has acted on a change.
    ``backends`` are those of the two versions.
    """

    name: str
    words: Mapping[str, Any]
    hold_record: tuple[tuple[Resource, str], ...]
    create: Callable[[World], None]
    entry: Mapping[str, Any] = field(default_factory=lambda: {"route": ROUTE})
    tells: bool = True
    backends: tuple[str, str] = (SERVICE, f"{SERVICE}-canary")

    def __str__(self) -> str:
        return self.name


def make(world: World, resource: Resource, name: str, **body: Any) -> None:
    head = {"apiVersion": resource.api_version, "kind": resource.kind}
    world.server.create(resource, {**head, "metadata": {"namespace": NAMESPACE, "name": name}, **body})


def create_gateway(world: World) -> Mapping[str, str]:
    """A Gateway of the story's own, and the parentRef to it."""
    listeners = [{"name": "http", "port": 80, "protocol": "HTTP"}]
    make(world, GATEWAYS, GATEWAY, spec={"gatewayClassName": "any", "listeners": listeners})
    return {"name": GATEWAY}


def create_service(world: World, name: str = SERVICE) -> None:
    """A Service for the leaders."""
    selector = {"app": "llama", **world.kind.leaders_selected()}
    make(world, SERVICES, name, spec={"selector": selector, "ports": [{"port": 80, "targetPort": 8000}]})


def create_route(
    world: World,
    name: str = ROUTE,
    service: str = SERVICE,
    backend: Mapping[str, Any] | None = None,
    kind: Resource = HTTP_ROUTES,
    **more: Any,
) -> None:
    """A Gateway where none is lent, a Service for the leaders, and a route to it, or to another ``backend``."""
    reference = dict(backend or {"name": service, "port": 80}) | more
    create_service(world, service)
    parents = [world.gateway or create_gateway(world)]
    hosts = {"hostnames": [*world.hosts]} if world.hosts else {}
    make(world, kind, name, spec={"parentRefs": parents, **hosts, "rules": [{"backendRefs": [reference]}]})


def create_virtual_service(world: World, **more: str) -> None:
    """A Service for the leaders, and a VirtualService to it, or to a subset of it."""
    create_service(world)
    destination = {"host": SERVICE, "port": {"number": 80}, **more}
    make(world, VIRTUAL_SERVICES, ROUTE, spec={"hosts": [SERVICE], "http": [{"route": [{"destination": destination}]}]})


def create_pools(world: World) -> None:
    """A pool for each version, each with an endpoint picker of its own that does not run, and a route to the first."""
    selector = {"matchLabels": {"app": "llama", **world.kind.leaders_selected()}}
    for pool in (POOL, CANARY_POOL):
        ports = [{"port": 9002}]
        make(world, SERVICES, f"{pool}-epp", spec={"selector": {"app": f"{pool}-epp"}, "ports": ports})
        picker = {"name": f"{pool}-epp", "port": {"number": 9002}, "failureMode": "FailOpen"}
        spec = {"selector": selector, "targetPorts": [{"number": 8000}], "endpointPickerRef": picker}
        make(world, INFERENCE_POOLS, pool, spec=spec)
    create_route(world, backend={"group": INFERENCE_POOLS.group, "kind": INFERENCE_POOLS.kind, "name": POOL})


def create_ingress(world: World, of: str = "nginx") -> None:
    """An Ingress of this class beside a route."""
    create_route(world)
    backend = {"service": {"name": SERVICE, "port": {"number": 80}}}
    path = {"path": "/", "pathType": "Prefix", "backend": backend}
    rules = [{"http": {"paths": [path]}}]
    make(world, INGRESSES, INGRESS, spec={"ingressClassName": of, "rules": rules})


def create_subset(world: World) -> None:
    """A VirtualService to a subset of a Service for the leaders, and the DestinationRule that says what it is."""
    create_virtual_service(world, subset="llama")
    subsets = [{"name": "llama", "labels": {"app": "llama"}}]
    policy = {"loadBalancer": {"simple": "LEAST_REQUEST"}}
    make(world, DESTINATION_RULES, ROUTE, spec={"host": SERVICE, "subsets": subsets, "trafficPolicy": policy})


def custom_ref(resource: Resource, name: str) -> dict[str, str]:
    """An entry of customNetworkRefs."""
    return {"apiVersion": resource.api_version, "kind": resource.kind, "name": name}


def create_scripts(world: World, texts: Mapping[str, str]) -> None:
    """The ConfigMap with scripts, in the controller's namespace, and a controller that runs them."""
    namespace, name = world.view.scripts_in = SCRIPTS
    world.server.create(NAMESPACES, NAMESPACES.manifest(namespace))
    world.server.create(CONFIG_MAPS, CONFIG_MAPS.manifest(name, namespace, data=dict(texts)))


def create_scripted_route(world: World) -> None:
    """An HTTPRoute that a script shares."""
    create_scripts(world, {f"lua.traffic.routing.HTTPRoute.{HTTP_ROUTES.group}": lua.HTTP_ROUTE})
    create_route(world)


BY_ROUTE = Provider("HTTPRoute", {"gateway": {"httpRouteName": ROUTE}}, ((HTTP_ROUTES, ROUTE),), create_route)
BY_POOLS = Provider(
    "InferencePool",
    {"gateway": {"httpRouteName": ROUTE, "inferencePool": {"stable": POOL, "canary": CANARY_POOL}}},
    ((HTTP_ROUTES, ROUTE), (INFERENCE_POOLS, POOL), (INFERENCE_POOLS, CANARY_POOL)),
    create_pools,
    backends=(POOL, CANARY_POOL),
)
BY_INGRESS = Provider(
    "Ingress",
    {"ingress": {"name": INGRESS}},
    ((INGRESSES, INGRESS),),
    create_ingress,
    {"ingress": INGRESS},
    tells=False,
)
BY_TRAEFIK = Provider(
    "Traefik",
    {"ingress": {"name": INGRESS, "classType": "traefik"}},
    ((INGRESSES, INGRESS),),
    lambda world: create_ingress(world, of="public"),
    {"ingress": INGRESS, "ingress_class": "traefik"},
    tells=False,
)
BY_GRPC = Provider(
    "GRPCRoute",
    {"gateway": {"grpcRouteName": ROUTE}},
    ((GRPC_ROUTES, ROUTE),),
    lambda world: create_route(world, kind=GRPC_ROUTES),
    {"grpc_route": ROUTE},
)
BY_VIRTUAL_SERVICE = Provider(
    "VirtualService",
    {"istio": {"virtualServiceName": ROUTE}},
    ((VIRTUAL_SERVICES, ROUTE),),
    create_virtual_service,
    {"virtual_service": ROUTE},
    tells=False,
)
BY_SUBSET = Provider(
    "DestinationRule",
    {"istio": {"virtualServiceName": ROUTE, "destinationRuleName": ROUTE}},
    ((VIRTUAL_SERVICES, ROUTE), (DESTINATION_RULES, ROUTE)),
    create_subset,
    {"virtual_service": ROUTE},
    tells=False,
)
BY_SCRIPT = Provider(
    "Script",
    {"customNetworkRefs": [custom_ref(HTTP_ROUTES, ROUTE)]},
    ((HTTP_ROUTES, ROUTE),),
    create_scripted_route,
    tells=False,
)
#: All there are. Stories that name none go by ``ROUTES.provider``, and those of ``OTHERS`` tell what differs.
PROVIDERS = (BY_ROUTE, BY_POOLS, BY_INGRESS, BY_TRAEFIK, BY_GRPC, BY_VIRTUAL_SERVICE, BY_SUBSET)
OTHERS = PROVIDERS[1:]
#: With one whose objects only a script knows, which the command line does not propose.
AND_SCRIPTS = (*PROVIDERS, BY_SCRIPT)


Story = TypeVar("Story", bound=Callable[..., Any])
#: Why a story is not told with a provider, by its name.
Reasons: TypeAlias = Mapping[str, str]


class ROUTES:
    """By what stories share requests that name no provider; see the fixture ``router``. ``made`` are the names of those
    that this story has made.
    """

    provider = BY_ROUTE
    made: ClassVar[set[str]] = set()


def because(why: str, *providers: Provider) -> dict[str, str]:
    """``why`` stories are not told with these."""
    return {each.name: why for each in providers}


def told_with(*providers: Provider, but: Reasons) -> pytest.MarkDecorator:
    """Declares of stories that name their providers themselves that these are all there are, ``but`` for a reason."""
    return pytest.mark.told_with(*(each.name for each in providers), but=but)


def told_only_with(*providers: Provider, why: str) -> pytest.MarkDecorator:
    """The same where all others are left out for one reason."""
    return told_with(*providers, but=because(why, *(each for each in AND_SCRIPTS if each not in providers)))


def each_router(*providers: Provider, but: Reasons | None = None) -> tuple[pytest.MarkDecorator, ...]:
    """Marks of stories that go by each of these, and by all there are ``but`` for a reason: by the first one in the
    default run, by each of the others in the longer lanes, with one variant of a test.
    """
    first, *others = providers
    rest = [pytest.param(each, marks=(pytest.mark.long, pytest.mark.other_router)) for each in others]
    parameters = pytest.mark.parametrize("router", [first, *rest], ids=str, indirect=True)
    return pytest.mark.usefixtures("router"), parameters, told_with(*providers, but=but or {})


def by_each(marks: Iterable[pytest.MarkDecorator]) -> Callable[[Story], Story]:
    """These marks on one story, where not all of a module go by each."""

    def marked(story: Story) -> Story:
        for mark in marks:
            story = mark(story)
        return story

    return marked


AN_INGRESS = (BY_INGRESS, BY_TRAEFIK)
MESHES = (BY_VIRTUAL_SERVICE, BY_SUBSET)
NO_WEIGHTS = because("an Ingress has no rules with weights", *AN_INGRESS)
SAYS_NOTHING = because("nothing says that it accepts a change", *AN_INGRESS, *MESHES, BY_SCRIPT)
#: Any at all.
EACH = each_router(*AND_SCRIPTS)


def not_by_pools(why: str) -> tuple[pytest.MarkDecorator, ...]:
    """Any but InferencePools, for a reason."""
    return each_router(*(each for each in AND_SCRIPTS if each is not BY_POOLS), but=because(why, BY_POOLS))


#: In which a release makes a canary Ingress.
OF_INGRESS = each_router(
    *AN_INGRESS, but=because("about canary Ingresses", *(each for each in AND_SCRIPTS if each not in AN_INGRESS))
)
#: With rules that have weights, and those of them of which a Gateway says that it has accepted them.
WEIGHTS = each_router(BY_ROUTE, BY_POOLS, BY_GRPC, *MESHES, BY_SCRIPT, but=NO_WEIGHTS)
RULES_OF_OURS = each_router(
    BY_ROUTE,
    BY_POOLS,
    BY_GRPC,
    *MESHES,
    but=NO_WEIGHTS | because("a script says what the route looks like", BY_SCRIPT),
)
ACCEPTING = each_router(BY_ROUTE, BY_POOLS, BY_GRPC, but=SAYS_NOTHING)
#: In which a user may name the backends of two workloads.
NOT_OF_PAIRS = {
    **because("an Ingress cannot name both Services of a pair", *AN_INGRESS),
    **because("a pair's Services are the user's: no DestinationRule is copied", BY_SUBSET),
    **because("scripts move no weight between two Services", BY_SCRIPT),
    **because("pairs of pools have stories of their own in test_pair_gateways", BY_POOLS),
}
OF_PAIRS = each_router(BY_ROUTE, BY_GRPC, BY_VIRTUAL_SERVICE, but=NOT_OF_PAIRS)
OF_ACCEPTED_PAIRS = each_router(BY_ROUTE, BY_GRPC, but=SAYS_NOTHING | NOT_OF_PAIRS)


def backends() -> tuple[str, str]:
    """The backends of both versions, as the route that stories go by has them."""
    return ROUTES.provider.backends


def kind() -> Resource:
    """The kind of the route that stories go by."""
    return ROUTES.provider.hold_record[0][0]


def called() -> str:
    """What messages call the route."""
    return f"{kind().kind} {ROUTE}"


def advice() -> str:
    """What messages advise against those who write over what shares requests."""
    spec = spec_of(kind().kind)
    assert spec is not None
    return spec.advice


def written() -> str:
    """The name of what shares requests: the route itself, or the copy that a release makes of an Ingress."""
    return f"{ROUTE}-canary" if kind() == INGRESSES else ROUTE


def write_over(world: World, weight: int) -> None:
    """Somebody gives the new version another share."""
    live = world.get(kind(), written())
    assert live is not None
    if kind() == INGRESSES:
        meta = live["metadata"]
        said = {f"{INGRESS_SPEC.annotations}-weight": str(weight)}
        after = {**live, "metadata": {**meta, "annotations": {**meta["annotations"], **said}}}
    else:
        [rule] = rules_of(world)
        stable, new = rule["backendRefs"]
        refs = [{**stable, "weight": 100 - weight}, {**new, "weight": weight}]
        after = with_rules(live, [{**rule, "backendRefs": refs}])
    world.server.replace(kind(), after, field_manager="argocd-controller")


def of_router(text: str) -> str:
    """What is told of an HTTPRoute, as it is told of the route that stories go by."""
    named = ", ".join(f"{resource.kind} {name}" for resource, name in ROUTES.provider.hold_record)
    all_named = text.replace(f"{SERVICE}, {HTTP_ROUTES.kind} {ROUTE}:", f"{SERVICE}, {named}:")
    return all_named.replace(f"{HTTP_ROUTES.kind} {ROUTE}", called()).replace(HTTP_ROUTE.advice, advice())


def renamed(name: str) -> dict[str, Any]:
    """The words of the provider that stories go by, with another route."""
    [(family, words)] = ROUTES.provider.words.items()
    if isinstance(words, list):
        return {family: [{**each, "name": name} for each in words]}
    return {family: {key: name if value == ROUTE else value for key, value in words.items()}}


def behind() -> tuple[str, str]:
    """What messages call the backends of both versions."""
    kind = INFERENCE_POOLS.kind if ROUTES.provider is BY_POOLS else SERVICES.kind
    stable, new = backends()
    return f"{kind} {stable}", f"{kind} {new}"


def rules_of(world: World, name: str = ROUTE) -> list[Any]:
    """The rules of the route, in the Gateway API's shape."""
    live = world.get(kind(), name)
    assert live is not None
    return RULES[kind()].read(live)


def with_rules(live: Mapping[str, Any], rules: Sequence[Any]) -> dict[str, Any]:
    """The route with these rules of the Gateway API's shape."""
    return dict(RULES[kind()].with_rules(live, list(rules)))


def create_provider(world: World, provider: Provider) -> None:
    """All that requests need to reach the LWS, whichever way the provider takes."""
    ROUTES.made.add(provider.name)
    provider.create(world)


def routing(provider: Provider | None = None, **more: Any) -> list[dict[str, Any]]:
    """The Rollout's words on traffic."""
    return [{"service": SERVICE, **(provider or ROUTES.provider).words, **more}]


def select_all_pods(world: World, by: Provider) -> None:
    """Have Service and pools select workers as well as leaders."""
    world.patch(SERVICES, SERVICE, {"spec": {"selector": {LWS_WORKER_INDEX: None}}})
    for resource, name in by.hold_record:
        if resource == INFERENCE_POOLS:
            world.patch(resource, name, {"spec": {"selector": {"matchLabels": {LWS_WORKER_INDEX: None}}}})


def routes_of(world: World, name: str = ROUTE) -> list[dict[str, int]]:
    """Weight by backend, rule by rule; of an Ingress and its canary as of one rule."""
    if kind() == INGRESSES:
        copy = world.get(INGRESSES, f"{name}-canary")
        new = ingress.weight(copy) if copy is not None else 0
        return [dict(zip(backends(), (100 - new, new), strict=True))]
    return [{ref["name"]: weight_of(ref) for ref in references(rule)} for rule in rules_of(world, name)]


def share(world: World, name: str = ROUTE) -> float:
    """Share of the new version in the route's first rule."""
    weights = routes_of(world, name)[0]
    return weights.get(ROUTES.provider.backends[1], 0) / sum(weights.values())


def hold_record(world: World, provider: Provider | None = None) -> dict[str, Any]:
    """What has to come back: spec, labels and annotations of Service, routes and pools."""
    kept = {}
    for resource, name in ((SERVICES, SERVICE), *(provider or ROUTES.provider).hold_record):
        found = world.get(resource, name)
        assert found is not None
        meta = found["metadata"]
        kept[f"{resource.kind} {name}"] = (found["spec"], meta.get("labels") or {}, meta.get("annotations") or {})
    return kept


async def routed_at_rest(
    world: World,
    *steps: dict[str, Any],
    replicas: int = 5,
    by: Provider | None = None,
    style: str = "canary",
    words: Mapping[str, Any] | None = None,
    all_pods: bool = False,
    **more: Any,
) -> dict[str, Any]:
    """An LWS at rest with traffic; gives what was there before any release. ``words`` are the style's besides. With
    ``all_pods`` Service and pools select workers, too, as those of expert-parallel servers do.
    """
    by = by or ROUTES.provider
    create_provider(world, by)
    if all_pods:
        select_all_pods(world, by)
    plan = {"trafficRoutings": routing(by, **more), **(words or {})}
    await at_rest(world, *(steps or FIVE), replicas=replicas, **{style: plan})
    world.checks.append(pinned_while_reachable)
    return hold_record(world, by)


def assert_given_back(world: World, before: dict[str, Any], by: Provider | None = None) -> None:
    """Everything is as before any release, and nothing that was made for one is left."""
    by = by or ROUTES.provider
    assert hold_record(world, by) == before
    assert f"{SERVICE}-canary" not in world.names()["services"]
    for copied in (INGRESSES, DESTINATION_RULES):
        users = [name for resource, name in by.hold_record if resource == copied]
        assert [each["metadata"]["name"] for each in world.server.list(copied, NAMESPACE)] == users
    assert "traffic" not in world.status


def emptied(world: World) -> bool:
    """Whether nothing sends requests to groups of the stable LWS any more, and those that ran have had their time."""
    strategy = world.rollout["spec"]["strategy"]
    routings = (strategy.get("canary") or strategy["blueGreen"]).get("trafficRoutings")
    since = (world.status.get("traffic") or {}).get("stableDrainedAt")
    if not routings or since is None:
        return False
    asked = routings[0]
    waited = (world.now - datetime.fromisoformat(since)).total_seconds()
    patience = asked.get("gracePeriodSeconds", 3) + asked.get("drainSeconds", 30)
    return waited >= patience and _leads_to_the_canary(world, asked)


def _weights(world: World, asked: Mapping[str, Any]) -> list[tuple[str, int]]:
    """Backends and their weights in what shares requests, rule by rule."""
    refs = [ref for ref in named_in(asked).refs if not ref.version]
    found = []
    for resource, rules in RULES.items():
        live = next((world.get(resource, ref.name) for ref in refs if ref.kind == resource.kind), None)
        found += [
            (ref["name"], weight_of(ref)) for rule in (rules.read(live) if live else ()) for ref in references(rule)
        ]
    return found


def _leads_to_the_canary(world: World, asked: Mapping[str, Any]) -> bool:
    """Whether what had the stable version's requests has those of the new one, and none of them by the route."""
    gateway = asked.get("gateway") or {}
    pools = gateway.get("inferencePool")
    if pools:
        pool = world.get(INFERENCE_POOLS, pools["stable"])
        selector = pool["spec"]["selector"]["matchLabels"] if pool else {}
    else:
        service = world.get(SERVICES, SERVICE)
        selector = service["spec"]["selector"] if service else {}
        listed = [
            endpoint["targetRef"]["name"]
            for each in world.server.list(ENDPOINT_SLICES, NAMESPACE, label_selector=f"{SERVICE_NAME}={SERVICE}")
            for endpoint in each["endpoints"] or ()
            if endpoint["conditions"].get("ready")
        ]
        if not listed or not all(name.startswith(f"{NAME}-canary-") for name in listed):
            return False
    stable = pools["stable"] if pools else SERVICE
    drained = all(weight == 0 for name, weight in _weights(world, asked) if name == stable)
    return f"{NAME}-canary" in (selector.get(LWS_NAME), selector.get(MADE)) and drained
