"""Releases write only what the definitions that the Gateway API and Istio publish accept, and all of it is stored.

Contour accepts the routes. Of Istio there are the definitions alone: no proxy reads what is written.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any

import pytest
import pytest_asyncio

from rollout_lws.kube.client import Client
from rollout_lws.objects.resources import DESTINATION_RULES, GRPC_ROUTES, HTTP_ROUTES, VIRTUAL_SERVICES, Resource
from rollout_lws.sandbox.definitions import gateway_api
from rollout_lws.sandbox.definitions import istio as sandboxed_istio
from tests.e2e import audit, contour, istio, tools
from tests.e2e.audit import Entry
from tests.e2e.cluster import CONTROLLER, Cluster, beyond_the_role, cluster, invalid
from tests.e2e.defining import define
from tests.e2e.plane import connected
from tests.e2e.world import RemoteWorld, remote_world
from tests.kubectl.programs import Programs
from tests.scenarios import paired
from tests.scenarios.paired import BLUE, GREEN, SERVICES_OF
from tests.scenarios.routed import (
    BY_GRPC,
    BY_ROUTE,
    BY_SUBSET,
    BY_VIRTUAL_SERVICE,
    ROUTE,
    SERVICE,
    Provider,
    assert_given_back,
    make,
    routed_at_rest,
)
from tests.scenarios.world import ROLLOUTS

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(300)]

WRITTEN = (HTTP_ROUTES, GRPC_ROUTES, VIRTUAL_SERVICES, DESTINATION_RULES)
WAITS = {"gracePeriodSeconds": 1, "drainSeconds": 1}
#: A wait that takes longer hangs.
_STORY_SECONDS = 90
HEADERS = [
    {"name": "X-Canary", "value": "yes"},
    {"name": "x-team", "value": "ml|search", "type": "RegularExpression"},
]
#: Of everything that a step can ask for, what each kind can do.
BY_HEADERS: list[dict[str, Any]] = [{"headers": HEADERS}, {"headers": HEADERS[:1]}]
BY_ALL: list[dict[str, Any]] = [
    *BY_HEADERS,
    {"path": {"type": "Exact", "value": "/v1/models"}, "queryParams": [{"name": "beta", "value": "1"}]},
    {"path": {"type": "PathPrefix", "value": "/v2"}, "headers": HEADERS[:1]},
    {"path": {"type": "RegularExpression", "value": "/v[34]/.*"}},
]
MODIFIER = {
    "set": [{"name": "x-version", "value": "new"}],
    "add": [{"name": "x-seen", "value": "canary"}],
    "remove": ["x-old"],
}
PROVIDERS = (BY_ROUTE, BY_GRPC, BY_VIRTUAL_SERVICE, BY_SUBSET)
#: Pairs by an HTTPRoute have stories of their own.
PAIRED = (BY_GRPC, BY_VIRTUAL_SERVICE)


def steps(provider: Provider) -> list[dict[str, Any]]:
    """Matches and header changes, then a share and a match, then a share alone."""
    matches = BY_HEADERS if provider is BY_GRPC else BY_ALL
    return [
        {"replicas": 1, "matches": matches, "requestHeaderModifier": MODIFIER, "pause": {}},
        {"replicas": 1, "traffic": "30%", "matches": matches[-1:], "pause": {}},
        {"replicas": "100%", "traffic": "50%"},
    ]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def whole(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Cluster]:
    """A control plane with the published definitions; it writes down all that becomes of objects of these kinds."""
    if why := contour.missing() or istio.missing():
        pytest.skip(f"tests with a real control plane: {why}")
    logs = tmp_path_factory.mktemp("cluster")
    async with (
        cluster(tools.directory(), logs, in_full=WRITTEN, ready_after="0.5s", with_contour=True) as running,
        connected(running.plane.admin) as connection,
    ):
        await define(Client(connection), istio.definitions(), "releases write these kinds")
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def told(whole: Cluster) -> list[Entry]:
    """What the controllers have written in all stories, which are told beside each other."""
    async with asyncio.TaskGroup() as group:
        for provider in PROVIDERS:
            group.create_task(_told(whole, f"by-{provider}".lower(), provider, _release))
        for provider in PAIRED:
            group.create_task(_told(whole, f"pair-by-{provider}".lower(), provider, _release_of_a_pair))
    kinds = {str(each) for each in WRITTEN}
    entries = audit.read(whole.plane.audit_log)
    return [each for each in entries if each.user == CONTROLLER and each.is_write and each.resource in kinds]


async def _told(whole: Cluster, namespace: str, provider: Provider, tell: Any) -> None:
    programs = Programs()
    try:
        async with remote_world(
            whole.plane.admin, whole.controller, namespace, programs, gateway=whole.gateway, also=WRITTEN[1:]
        ) as world:
            await tell(world, provider)
    except BaseException as error:
        error.add_note("\n".join(programs.logs()))
        raise
    finally:
        await programs.close()


async def _release(world: RemoteWorld, provider: Provider) -> None:
    before = await routed_at_rest(world, *steps(provider), replicas=2, by=provider, **WAITS)  # type: ignore[arg-type]
    world.set_image("v2")
    for number, _ in enumerate(steps(provider)[:-1], 1):
        await world.until(
            lambda step=number: (  # type: ignore[misc]
                world.state == "AwaitingApproval" and world.status["currentStepIndex"] == step
            ),
            f"step {number} waits for approval",
            _STORY_SECONDS,
        )
        assert world.status["traffic"]["applied"] == world.status["traffic"]["desired"]
        world.approve()
    await world.until_state("Healthy", _STORY_SECONDS)
    assert_given_back(world, before, provider)  # type: ignore[arg-type]


async def _release_of_a_pair(world: RemoteWorld, provider: Provider) -> None:
    paired.create_sides(world, replicas=1, beside=1, size=1)  # type: ignore[arg-type]
    resource = _create_route_to_both(world, provider)
    route = world.get(resource, ROUTE)
    words = {**WAITS, "gateway": None, **provider.words}
    world.server.create(ROLLOUTS, paired.rollout(*steps(provider)[1:], routing=words))
    await paired.all_ready(world, BLUE, GREEN)  # type: ignore[arg-type]
    await world.until(lambda: world.state == "Healthy", "at rest", 60)
    paired.apply(world, GREEN, "v2")  # type: ignore[arg-type]
    await world.until_state("AwaitingApproval", _STORY_SECONDS)
    await paired.approve_to_the_end(world)  # type: ignore[arg-type]
    assert world.status["active"] == GREEN
    world.delete(ROLLOUTS, world.name)
    await world.until(lambda: world.get(ROLLOUTS, world.name) is None, "the Rollout leaves", _STORY_SECONDS)
    assert _apart_from_weights(world.get(resource, ROUTE)) == _apart_from_weights(route)


def _create_route_to_both(world: RemoteWorld, provider: Provider) -> Resource:
    """A route that names both Services, all weight at the first; its kind."""
    ((resource, _),) = provider.hold_record
    weights = {SERVICES_OF[BLUE]: 100, SERVICES_OF[GREEN]: 0}
    if resource == GRPC_ROUTES:
        references = [{"name": name, "port": 80, "weight": weight} for name, weight in weights.items()]
        parents = {"parentRefs": [dict(world.gateway or {})], "hostnames": [f"grpc.{each}" for each in world.hosts]}
        make(world, resource, ROUTE, spec={**parents, "rules": [{"backendRefs": references}]})  # type: ignore[arg-type]
    else:
        route = [{"destination": {"host": name}, "weight": weight} for name, weight in weights.items()]
        spec = {"hosts": ["api.example.com"], "http": [{"route": route}]}
        make(world, resource, ROUTE, spec=spec)  # type: ignore[arg-type]
    return resource


def _apart_from_weights(route: Mapping[str, Any] | None) -> Any:
    """Metadata that are a user's, and spec, without the weights, which stay as a release leaves them."""
    assert route is not None

    def without(value: Any) -> Any:
        if isinstance(value, list):
            return [without(each) for each in value]
        if isinstance(value, dict):
            return {key: without(each) for key, each in value.items() if key != "weight"}
        return value

    metadata = {key: route["metadata"].get(key) for key in ("labels", "annotations")}
    return metadata, without(route["spec"])


async def test_the_server_refuses_nothing(whole: Cluster, told: list[Entry]) -> None:
    assert {each.resource for each in told} == {str(each) for each in WRITTEN}
    assert invalid(whole.plane.audit_log) == []
    assert beyond_the_role(whole.plane.audit_log) == []


async def test_what_is_written_is_stored_as_it_was_written(told: list[Entry]) -> None:
    """A field that the server does not know is taken away, with a warning that no controller reads."""
    written = [each for each in told if each.verb != "delete" and not each.was_refused]
    assert len(written) > len(PROVIDERS) * len(steps(BY_ROUTE))
    lost = [
        told
        for each in written
        for member in each.body.keys() & {"spec", "metadata"}
        for told in _lost(each.body[member], each.answer[member], f"{each.resource} {each.name}: {member}")
    ]
    assert lost == []
    stored = str([each.answer["spec"] for each in written])
    for words in (
        "x-version",
        "RequestHeaderModifier",
        "RegularExpression",
        "regex",
        "queryParams",
        f"{SERVICE}-canary",
    ):
        assert words in stored


async def test_a_copy_of_a_destination_rule_is_there_before_its_host_is_named(told: list[Entry]) -> None:
    home = f"by-{BY_SUBSET}".lower()
    verbs = [(each.resource, each.verb) for each in told if each.namespace == home]
    first, last = (str(DESTINATION_RULES), "create"), (str(DESTINATION_RULES), "delete")
    assert (verbs[0], verbs[-1]) == (first, last)
    assert verbs.count(first) == verbs.count(last) == 1


def _lost(asked: Any, stored: Any, at: str) -> Iterator[str]:
    """What was asked for and is not stored; None asks for a member that is not there, and the version of an object is
    the one that a write is bound to.
    """
    if at.endswith(".resourceVersion"):
        return
    if isinstance(asked, Mapping) and isinstance(stored, Mapping):
        for key, value in asked.items():
            yield from _lost(value, stored.get(key), f"{at}.{key}")
    elif isinstance(asked, list) and isinstance(stored, list) and len(asked) == len(stored):
        for index, (one, other) in enumerate(zip(asked, stored, strict=True)):
            yield from _lost(one, other, f"{at}[{index}]")
    elif asked != stored:
        yield f"{at}: {asked!r} became {stored!r}"


#: Members of a schema that say which values are accepted, and what is filled in.
_TERMS = (
    *("type", "format", "minimum", "maximum", "minItems", "maxItems", "minLength", "maxLength", "pattern"),
    *("default", "oneOf", "anyOf", "not", "x-kubernetes-int-or-string"),
)
#: Where the sandbox's schema differs, and why.
DIFFERENT = {
    "HTTPRoute v1 spec.rules: minItems": "newer versions of the Gateway API refuse an empty list",
    "HTTPRoute v1 spec.rules[].filters[]: required": "insides of filters are not read",
    "HTTPRoute v1 spec.rules[].backendRefs[].filters[]: required": "insides of filters are not read",
    "GRPCRoute v1 spec.rules[].filters[]: required": "insides of filters are not read",
    "GRPCRoute v1 spec.rules[].backendRefs[].filters[]: required": "insides of filters are not read",
}


async def test_the_sandbox_asks_of_routes_what_the_published_definitions_ask() -> None:
    if why := contour.missing() or istio.missing():
        pytest.skip(f"tests with a real control plane: {why}")
    published = {each["metadata"]["name"]: each for each in (*contour.definitions(), *istio.definitions())}
    found: set[str] = set()
    for ours in (*gateway_api.manifests(), *sandboxed_istio.manifests()):
        kind = ours["spec"]["names"]["kind"]
        if kind not in {each.kind for each in WRITTEN}:
            continue
        theirs = {each["name"]: each for each in published[ours["metadata"]["name"]]["spec"]["versions"]}
        for version in ours["spec"]["versions"]:
            at, other = f"{kind} {version['name']}", theirs[version["name"]]
            assert (version["served"], version["storage"]) == (other["served"], other["storage"]), at
            found |= {*_differences(_spec(version), _spec(other), f"{at} spec")}
    assert found == set(DIFFERENT)


def _spec(version: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
    return found


def _differences(ours: Mapping[str, Any], theirs: Mapping[str, Any], at: str) -> Iterator[str]:
    """Places where one accepts, or fills in, what the other does not."""
    yield from (f"{at}: {term}" for term in _TERMS if ours.get(term) != theirs.get(term))
    yield from (f"{at}: {term}" for term in ("required", "enum") if {*ours.get(term, ())} != {*theirs.get(term, ())})
    own, other = ours.get("properties") or {}, theirs.get("properties") or {}
    kept = ours.get("x-kubernetes-preserve-unknown-fields")
    yield from (f"{at}.{name}: only here" for name in own.keys() - other.keys())
    yield from (f"{at}.{name}: only there" for name in other.keys() - own.keys() if not kept)
    for name in own.keys() & other.keys():
        yield from _differences(own[name], other[name], f"{at}.{name}")
    for member, where in (("items", "[]"), ("additionalProperties", ".*")):
        inner = ours.get(member)
        if isinstance(inner, Mapping):
            yield from _differences(inner, theirs.get(member) or {}, at + where)
