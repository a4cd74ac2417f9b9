"""A whole release of each example in virtual time, with loads as long as those of large models."""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator
from typing import Any

import pytest

from rollout_lws.objects.resources import (
    ENDPOINT_SLICES,
    HTTP_ROUTES,
    LEADER_WORKER_SETS,
    LWS_WORKER_INDEX,
    PODS,
    SERVICES,
)
from rollout_lws.sandbox.behaviours.cluster import Options
from rollout_lws.sandbox.behaviours.faults import Timing
from rollout_lws.sandbox.catalogue import GATEWAYS
from tests.examples.examples import NAMES, Object, manifests
from tests.scenarios.invariants import always_serving, at_most_down, never_two_canaries
from tests.scenarios.invariants import stable_untouched_before_promotion as stable_untouched
from tests.scenarios.stories import CANARY
from tests.scenarios.world import NAME, NAMESPACE, ROLLOUTS, World

pytestmark = pytest.mark.looptime
#: Seconds that a group loads.
LOAD = 1200.0
OLD = {"quickstart": "1.27", "gateway": "1.27", "vllm": "v0.27.1", "sglang": "v0.5.17"}


@pytest.fixture
async def world() -> AsyncIterator[World]:
    made = World(Options(timing=Timing(ready_after=LOAD)))
    yield made
    made.close()


def in_the_worlds_name(name: str) -> dict[str, Object]:
    """An example whose LWS and Rollout are called as stories call theirs; nothing else of it changes."""
    found = copy.deepcopy(manifests(name))
    for each in found.values():
        each["metadata"]["namespace"] = NAMESPACE
    for kind in ("LeaderWorkerSet", "Rollout"):
        found[kind]["metadata"]["name"] = NAME
    found["Rollout"]["spec"]["workloadRef"]["name"] = NAME
    return found


async def at_rest(world: World, name: str) -> dict[str, Object]:
    """The example applied, all its groups ready; invariants are watched from here on."""
    found = in_the_worlds_name(name)
    for resource in (SERVICES, GATEWAYS, HTTP_ROUTES):
        if resource.kind in found:
            world.server.create(resource, found[resource.kind])
    world.server.create(LEADER_WORKER_SETS, found["LeaderWorkerSet"])
    world.server.create(ROLLOUTS, found["Rollout"])
    world.start_controller()
    await world.until(lambda: world.groups() == standing(world, OLD[name]), "all groups ready", 2 * LOAD)
    await world.rest()
    world.checks += [always_serving, at_most_down(1), never_two_canaries, stable_untouched(world)]
    return found


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


def weights(world: World) -> dict[str, int]:
    """Weight by backend in the example's only rule."""
    (route,) = world.server.list(HTTP_ROUTES, NAMESPACE)
    (rule,) = route["spec"]["rules"]
    return {ref["name"]: ref["weight"] for ref in rule["backendRefs"]}


def group_count(world: World) -> int:
    return len(world.server.list(PODS, NAMESPACE, label_selector=f"{LWS_WORKER_INDEX}=0"))


@pytest.mark.parametrize(("name", "extra"), [("quickstart", 2), ("gateway", 2), ("vllm", 2), ("sglang", 1)])
async def test_a_release_with_loads_of_twenty_minutes_goes_through(world: World, name: str, extra: int) -> None:
    await at_rest(world, name)
    counts: set[int] = set()
    world.checks.append(lambda seen: counts.add(group_count(seen)))
    release(world, "new")
    await world.until_state("AwaitingApproval", 2 * LOAD)
    assert world.groups(CANARY) == {0: "new"}
    world.approve()
    await world.until_state("Healthy", 20 * LOAD)
    await world.rest()
    assert world.groups() == standing(world, "new")
    assert world.names()["leaderworkersets"] == [NAME]
    assert max(counts) == world.lws["spec"]["replicas"] + extra


@pytest.mark.parametrize("name", [name for name in NAMES if "Service" in manifests(name) and name != "gateway"])
async def test_the_service_takes_the_leaders_of_both_versions_and_no_worker(world: World, name: str) -> None:
    service = (await at_rest(world, name))["Service"]["metadata"]["name"]
    stable = set(world.leader_uids())
    assert endpoints(world, service) == stable
    release(world, "new")
    await world.until_state("AwaitingApproval", 2 * LOAD)
    await world.rest()
    assert endpoints(world, service) == {*stable, f"{CANARY}-0"}


async def test_the_gateways_services_take_the_leaders_of_one_version_each_and_are_given_back(world: World) -> None:
    manifest = await at_rest(world, "gateway")
    service = manifest["Service"]["metadata"]["name"]
    stable = set(world.leader_uids())
    release(world, "new")
    await world.until_state("AwaitingApproval", 2 * LOAD)
    await world.rest()
    assert endpoints(world, service) == stable
    assert endpoints(world, f"{service}-canary") == {f"{CANARY}-0"}
    assert weights(world) == {service: 90, f"{service}-canary": 10}
    world.approve()
    await world.until_state("Pausing", 2 * LOAD)
    assert weights(world) == {service: 70, f"{service}-canary": 30}
    await world.until_state("Healthy", 20 * LOAD)
    await world.rest()
    assert weights(world) == {service: 1}
    assert world.get(SERVICES, service)["spec"]["selector"] == manifest["Service"]["spec"]["selector"]  # type: ignore[index]


@pytest.mark.parametrize("name", NAMES)
async def test_a_version_that_never_becomes_ready_leaves_everything_as_it_was(world: World, name: str) -> None:
    await at_rest(world, name)
    before = world.leader_uids()
    release(world, "bad-new")
    await world.until(lambda: world.get_canary_replicas() == 1)
    world.request("Abort")
    await world.until_state("Aborted")
    await world.rest()
    assert world.leader_uids() == before
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
