"""A whole release of each example in virtual time, with loads as long as those of large models."""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator
from typing import Any

import pytest

from rollout_lws.capacity import known
from rollout_lws.capacity.base import CapacityStrategy
from rollout_lws.objects.resources import (
    DESTINATION_RULES,
    ENDPOINT_SLICES,
    GRPC_ROUTES,
    HTTP_ROUTES,
    INFERENCE_POOLS,
    INGRESSES,
    LEADER_WORKER_SETS,
    LWS_NAME,
    LWS_REVISION,
    LWS_WORKER_INDEX,
    PODS,
    SERVICES,
    VIRTUAL_SERVICES,
)
from rollout_lws.sandbox.api_resources import GATEWAYS
from rollout_lws.sandbox.behaviours.cluster import Options
from rollout_lws.sandbox.behaviours.faults import Timing
from rollout_lws.sandbox.meter import Client, TrafficMeter
from tests.examples.examples import NAMES, ROUTED, Object, manifests, mostly_long, objects, style
from tests.scenarios.invariants import Check, always_serving, at_most_down, never_two_canaries
from tests.scenarios.invariants import stable_untouched_before_promotion as stable_untouched
from tests.scenarios.one_workload import enough_serve
from tests.scenarios.stories import CANARY
from tests.scenarios.world import NAME, NAMESPACE, ROLLOUTS, World

pytestmark = [pytest.mark.looptime, pytest.mark.rare(3)]
#: Seconds that a group loads.
LOAD = 1200.0
OLD = {**dict.fromkeys(("quickstart", *ROUTED), "1.27"), "grpc": "2.53", "vllm": "v0.27.1", "sglang": "v0.5.17"}
#: What requests go by, in an order in which each finds what it names.
REACHED_BY = (
    *(SERVICES, GATEWAYS, INFERENCE_POOLS, HTTP_ROUTES, GRPC_ROUTES),
    *(DESTINATION_RULES, VIRTUAL_SERVICES, INGRESSES),
)


@pytest.fixture
async def world() -> AsyncIterator[World]:
    made = World(Options(timing=Timing(ready_after=LOAD)))
    yield made
    made.close()


def in_the_worlds_name(name: str) -> list[Object]:
    """An example whose LWS and Rollout are called as stories call theirs; nothing else of it changes."""
    found = copy.deepcopy(objects(name))
    for each in found:
        each["metadata"]["namespace"] = NAMESPACE
        if each["kind"] in ("LeaderWorkerSet", "Rollout"):
            each["metadata"]["name"] = NAME
        if each["kind"] == "Rollout":
            each["spec"]["workloadRef"]["name"] = NAME
    return found


def one_workload(world: World) -> None:
    assert world.names()["leaderworkersets"] == [NAME]


#: What is promised of the LWS itself at every moment, style by style; blue-green renews all of it at once.
PROMISES: dict[CapacityStrategy, tuple[Check, ...]] = {
    known.EXTRA_WORKLOAD: (at_most_down(1),),
    known.IN_PLACE: (at_most_down(1), one_workload),
    known.SURGE: (enough_serve, one_workload),
    known.BLUE_GREEN: (),
}


def new_groups(world: World, tag: str) -> int:
    """Groups of the new version, wherever they are, made or in the making."""
    return sum(found.strip("!") == tag for name in (NAME, CANARY) for found in world.groups(name).values())


async def at_rest(world: World, name: str) -> None:
    """The example applied, all its groups ready; invariants are watched from here on."""
    found = in_the_worlds_name(name)
    for resource in (*REACHED_BY, LEADER_WORKER_SETS, ROLLOUTS):
        for each in found:
            if each["kind"] == resource.kind:
                world.server.create(resource, each)
    world.start_controller()
    await world.until(lambda: world.groups() == standing(world, OLD[name]), "all groups ready", 2 * LOAD)
    await world.rest()
    world.checks += [always_serving, *PROMISES[style(name)], never_two_canaries]
    if style(name) is not known.IN_PLACE:
        world.checks.append(stable_untouched(world))


def standing(world: World, tag: str) -> dict[int, str]:
    return dict.fromkeys(range(world.lws["spec"]["replicas"]), tag)


def release(world: World, tag: str) -> None:
    """Patch the image in each template that there is, as the READMEs do."""
    group = world.lws["spec"]["leaderWorkerTemplate"]
    operations = [
        {
            "op": "replace",
            "path": f"/spec/leaderWorkerTemplate/{role}/spec/containers/0/image",
            "value": f"{group[role]['spec']['containers'][0]['image'].rpartition(':')[0]}:{tag}",
        }
        for role in ("leaderTemplate", "workerTemplate")
        if role in group
    ]
    world.server.patch(LEADER_WORKER_SETS, NAMESPACE, NAME, operations, "application/json-patch+json")


def endpoints(world: World, service: str) -> set[str]:
    """Names of the ready pods that a Service's requests go to."""
    slices = world.server.list(ENDPOINT_SLICES, NAMESPACE, label_selector=f"kubernetes.io/service-name={service}")
    found: list[dict[str, Any]] = [each for item in slices for each in item["endpoints"]]
    return {each["targetRef"]["name"] for each in found if each["conditions"]["ready"]}


def reached_by(world: World) -> dict[str, tuple[Object, Object]]:
    """What requests go by, LWS's own Services apart: spec and annotations of each object."""
    return {
        f"{resource.kind} {each['metadata']['name']}": (each["spec"], each["metadata"].get("annotations") or {})
        for resource in REACHED_BY
        for each in world.server.list(resource, NAMESPACE)
        if not each["metadata"]["name"].startswith(NAME)
    }


def selected(world: World) -> dict[str, str]:
    """What each Service and pool of the example is pinned to: a revision, or else an LWS."""
    found: dict[str, str] = {}
    for what, (spec, _) in reached_by(world).items():
        selector: Object = spec.get("selector") or {}
        labels: dict[str, str] = selector.get("matchLabels", selector)
        if LWS_NAME in labels:
            found[what] = labels.get(LWS_REVISION, labels[LWS_NAME])
    return found


def group_count(world: World) -> int:
    return len(world.server.list(PODS, NAMESPACE, label_selector=f"{LWS_WORKER_INDEX}=0"))


@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", mostly_long("quickstart", "in-place", "vllm", "sglang"))
async def test_a_release_with_loads_of_twenty_minutes_goes_through_with_as_few_groups_as_its_steps_say(
    world: World, name: str
) -> None:
    await at_rest(world, name)
    # Half of the groups are the most that a step asks for before the last one, which adds none; blue-green has all.
    replicas: int = world.lws["spec"]["replicas"]
    extra = {known.IN_PLACE: 0, known.BLUE_GREEN: replicas}.get(style(name), replicas // 2)
    counts: set[int] = set()
    world.checks.append(lambda seen: counts.add(group_count(seen)))
    release(world, "new")
    await world.until_state("AwaitingApproval", 2 * LOAD)
    assert new_groups(world, "new") == 1
    world.approve()
    await world.until_state("Healthy", 20 * LOAD)
    await world.rest()
    assert world.groups() == standing(world, "new")
    assert world.names()["leaderworkersets"] == [NAME]
    assert max(counts) == replicas + extra


@pytest.mark.parametrize("name", [name for name in NAMES if "Service" in manifests(name) and name not in ROUTED])
async def test_the_service_takes_the_leaders_of_both_versions_and_no_worker(world: World, name: str) -> None:
    await at_rest(world, name)
    service = manifests(name)["Service"]["metadata"]["name"]
    stable = set(world.leader_uids())
    assert endpoints(world, service) == stable
    release(world, "new")
    await world.until_state("AwaitingApproval", 2 * LOAD)
    await world.rest()
    assert endpoints(world, service) == {*stable, f"{CANARY}-0"}


#: How requests enter each example, and what a release pins to which LWS besides the Service and its copy.
ENTRIES: dict[str, tuple[dict[str, Any], dict[str, str]]] = {
    **{
        name: ({"route": manifests(name)["HTTPRoute"]["metadata"]["name"], "path": "/v1/chat/completions"}, {})
        for name in ("blue-green", "gateway", "in-place", "surge")
    },
    "inference-pool": (
        {"route": "coder", "path": "/v1/completions"},
        {"InferencePool coder": NAME, "InferencePool coder-next": CANARY},
    ),
    "ingress": ({"ingress": "faq", "host": "faq.example.com", "path": "/v1/chat/completions"}, {}),
    "grpc": ({"grpc_route": "reranker", "path": "/grpc.health.v1.Health/Check"}, {}),
    "istio": ({"virtual_service": "translator", "path": "/v1/batch/translate"}, {}),
}


@pytest.mark.one_in(6)
@pytest.mark.parametrize("name", ROUTED)
async def test_requests_are_shared_as_the_readme_says_and_everything_is_given_back(world: World, name: str) -> None:
    await at_rest(world, name)
    before = reached_by(world)
    entry, pools = ENTRIES[name]
    asking = Client("asking", headers={"x-canary": "yes"}, namespace=NAMESPACE, **entry)
    meter = TrafficMeter(world.server, [Client("users", namespace=NAMESPACE, **entry), asking], lag=0)
    meter.start()
    (old,) = meter.now("users", by="revision")
    release(world, "new")
    await world.until_state("AwaitingApproval", 2 * LOAD)
    await world.rest()
    (new,) = meter.now("users", by="revision").keys() - {old}
    assert meter.now("users", by="revision") == {old: 0.9, new: 0.1}
    matched = name in ("grpc", "inference-pool", "ingress", "istio")
    assert meter.now("asking", by="revision") == ({new: 1.0} if matched else {old: 0.9, new: 0.1})
    service = next(each["metadata"]["name"] for each in objects(name) if each["metadata"]["name"].endswith("-api"))
    pins = (old, new) if style(name).one_workload else (NAME, CANARY)
    assert selected(world) == {f"Service {service}": pins[0], f"Service {service}-canary": pins[1], **pools}
    world.approve()
    await world.until_state("Pausing", 2 * LOAD)
    await world.rest()
    assert meter.now("users", by="revision") == meter.now("asking", by="revision") == {old: 0.7, new: 0.3}
    await world.until_state("Healthy", 20 * LOAD)
    await world.rest()
    assert meter.now("users") == {NAME: 1.0}
    assert meter.now("users", by="revision") == {new: 1.0}
    assert reached_by(world) == before
    meter.stop()


@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", NAMES)
async def test_a_version_that_never_becomes_ready_leaves_everything_as_it_was(world: World, name: str) -> None:
    await at_rest(world, name)
    before = world.leader_uids()
    release(world, "bad-new")
    await world.until(lambda: new_groups(world, "bad-new") == 1)
    world.request("Abort")
    await world.until_state("Aborted", 2 * LOAD)
    await world.rest()
    # In place the group that was renewed is made again.
    again = {f"{NAME}-{len(before) - 1}"} if style(name) is known.IN_PLACE else set()
    assert {leader for leader, uid in world.leader_uids().items() if uid != before[leader]} == again
    assert world.groups() == standing(world, OLD[name])
    assert world.names()["leaderworkersets"] == [NAME]


async def test_sglang_goes_back_by_itself_at_the_deadline_or_when_nobody_approves(world: World) -> None:
    await at_rest(world, "sglang")
    began = world.now
    release(world, "bad-new")
    await world.until_state("Aborted", 3 * 3600)
    assert (world.now - began).total_seconds() >= 1.5 * 3600
    release(world, "slow-to-approve")
    await world.until_state("AwaitingApproval", 2 * LOAD)
    began = world.now
    await world.until_state("Aborted", 30 * 3600)
    assert (world.now - began).total_seconds() == pytest.approx(86400, abs=1)
    assert world.groups() == standing(world, OLD["sglang"])
