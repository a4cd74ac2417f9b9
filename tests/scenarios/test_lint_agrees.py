"""Every story of a refusal, told to lint as manifests: it says the controller's own words where objects can tell."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from rollout_lws.cli.lint.findings import CODE_OF
from rollout_lws.cli.lint.linter import lint
from rollout_lws.cli.lint.manifests import Scope
from rollout_lws.cli.manifests import Source
from rollout_lws.objects.kueue import QUEUE_NAME
from rollout_lws.objects.resources import (
    HORIZONTAL_POD_AUTOSCALERS,
    HTTP_ROUTES,
    INFERENCE_POOLS,
    INGRESSES,
    LEADER_WORKER_SETS,
    LWS_NAME,
    SERVICES,
)
from rollout_lws.rollout.reasons import Reason
from tests.scenarios import test_kueue_surge as kueue
from tests.scenarios import test_one_workload_refused as one_workload
from tests.scenarios import test_refusals as refusals
from tests.scenarios import test_refused_versions as versions
from tests.scenarios import test_traffic_refused as by_route
from tests.scenarios import test_traffic_refused_providers as by_all
from tests.scenarios.obstacles import uid_of_other
from tests.scenarios.one_workload import IN_PLACE, PLAIN, SURGE
from tests.scenarios.routed import BY_POOLS, BY_ROUTE, FIVE, POOL, SERVICE, Provider, create_provider, routing
from tests.scenarios.stories import STEPS
from tests.scenarios.world import NAME, World

pytestmark = pytest.mark.looptime

KINDS = (LEADER_WORKER_SETS, SERVICES, HTTP_ROUTES, INGRESSES, INFERENCE_POOLS, HORIZONTAL_POD_AUTOSCALERS)
#: Only a cluster knows.
OF_A_CLUSTER = ("no kind of", "this cluster does not serve", "no Gateway accepts")
#: Files do not have the version that runs, so what suits the new one as little is told of either.
BEFORE = {
    "Service of nobody new": "Service llama-api selects no leader of LeaderWorkerSet llama"
    " (app=llama,leaderworkerset.sigs.k8s.io/worker-index=0); correct its selector"
}


def linted(world: World) -> list[tuple[str, str]]:
    """Code and message of everything that is found in what stands in the world."""
    items = [each for resource in (World.ROLLOUT, *KINDS) for each in _whole(world, resource)]
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": items}, indent=1)
    return [(each.code, each.message) for each in lint([Source("all.json", text)], Scope()).findings]


def _whole(world: World, resource: Any) -> list[dict[str, Any]]:
    head = {"apiVersion": resource.api_version, "kind": resource.kind}
    return [{**each, **head} for each in world.server.list(resource, "default")]


def routed(world: World, by: Provider = BY_ROUTE, *steps: dict[str, Any]) -> None:
    create_provider(world, by)
    world.create_workload(replicas=5)
    world.create_rollout(*(steps or FIVE), canary={"trafficRoutings": routing(by)})


def assert_told(world: World, reason: Reason, message: str) -> None:
    found = linted(world)
    if "does not exist in namespace" in message:
        # Another file may have it.
        told = f"{message.partition(' does not exist')[0]} is not among the files"
        assert any(code == "LWS401" and said.startswith(told) for code, said in found), found
    else:
        assert (CODE_OF[reason], message) in found


def test_what_is_fine_in_a_cluster_is_fine_here(world: World) -> None:
    routed(world)
    assert [code for code, _ in linted(world) if code < "LWS3"] == []


@pytest.mark.parametrize(
    ("obstacle", "reason", "message"),
    [each for each in by_route.OBSTACLES if not each[2].startswith(OF_A_CLUSTER)],
    ids=lambda each: getattr(each, "__name__", ""),
)
async def test_an_obstacle_of_a_route(
    world: World, obstacle: Callable[[World], None], reason: Reason, message: str
) -> None:
    routed(world)
    obstacle(world)
    assert_told(world, reason, message)


@pytest.mark.parametrize(
    "obstacle", [name for name, each in by_all.OBSTACLES.items() if not each[3].startswith(OF_A_CLUSTER)]
)
async def test_an_obstacle_of_any_provider(world: World, obstacle: str) -> None:
    by, act, reason, message = by_all.OBSTACLES[obstacle]
    routed(world, by)
    act(world)
    assert_told(world, reason, BEFORE.get(obstacle) or message.replace("{other}", uid_of_other(world)))


async def test_all_requests_at_too_few_groups(world: World) -> None:
    routed(world, BY_ROUTE, {"replicas": 1, "traffic": "100%"})
    assert_told(world, Reason.ROUTE_PROBLEM, by_route.ALL_AT_ONE)


async def test_a_pool_that_selects_several_lwss(world: World) -> None:
    world.create_workload(replicas=1, name="qwen")
    routed(world, BY_POOLS)
    world.patch(SERVICES, SERVICE, {"spec": {"selector": {LWS_NAME: NAME}}})
    told = f"InferencePool {POOL} selects leaders of LeaderWorkerSet qwen besides llama"
    assert any(code == "LWS211" and said.startswith(told) for code, said in linted(world))


async def test_one_group_in_place(world: World) -> None:
    world.create_workload(replicas=1)
    world.create_rollout(*PLAIN, canary=dict(IN_PLACE.words))
    assert_told(world, Reason.TOO_FEW_GROUPS, one_workload.ONE_GROUP)


async def test_a_surge_under_kueue(world: World) -> None:
    world.create_workload()
    world.patch(LEADER_WORKER_SETS, NAME, {"metadata": {"labels": {QUEUE_NAME: "gpus"}}})
    world.create_rollout(*PLAIN, canary=dict(SURGE.words))
    assert_told(world, Reason.SURGE_UNDER_KUEUE, kueue.KUEUE_SURGE)


async def test_an_lws_of_another_controller(world: World) -> None:
    world.create_workload()
    world.create_rollout(*STEPS)
    refusals.own(world)
    assert_told(world, Reason.WORKLOAD_OWNED, refusals.OWNED)


async def test_the_younger_of_two_rollouts(world: World) -> None:
    world.create_workload()
    world.create_rollout(*STEPS, name="older")
    world.create_rollout(*STEPS)
    assert any(code == "LWS204" for code, _ in linted(world))


async def test_another_kind_of_workload(world: World) -> None:
    refusals.without_rules(world)
    world.create_rollout(*STEPS)
    ref = {"apiVersion": "workload.kubernetes.io/v1alpha1", "kind": "LeaderWorkerSet", "name": NAME}
    world.patch_rollout({"workloadRef": ref})
    assert_told(world, Reason.WRONG_WORKLOAD_KIND, refusals.WRONG_KIND)


async def test_a_name_that_is_taken(world: World) -> None:
    world.create_workload()
    world.create_rollout(*STEPS)
    world.create_workload(name=f"{NAME}-canary")
    assert_told(world, Reason.NAME_TAKEN, versions.TAKEN)
