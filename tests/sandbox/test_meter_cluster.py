"""The meter on a running cluster: who gets what, who was ended by whom."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from rollout_lws.objects.resources import (
    HTTP_ROUTES,
    INFERENCE_POOLS,
    LEADER_WORKER_SETS,
    LWS_NAME,
    LWS_REVISION,
    LWS_WORKER_INDEX,
    PODS,
    SERVICES,
)
from rollout_lws.sandbox.api_resources import GATEWAYS
from rollout_lws.sandbox.apiserver import ApiServer
from rollout_lws.sandbox.behaviours.cluster import Options
from rollout_lws.sandbox.meter import Client, TrafficMeter
from tests.sandbox.behaviours.world import NAMESPACE, cluster, leaders, lws, patch_lws, template

pytestmark = pytest.mark.looptime

USERS = Client("users", route="llm", namespace=NAMESPACE)
INSIDE = Client("inside", service="llm-api", namespace=NAMESPACE)
TAGGED = Client("tagged", route="llm", namespace=NAMESPACE, headers={"x-canary": "yes"})


def meta(name: str) -> dict[str, Any]:
    return {"name": name, "namespace": NAMESPACE}


def service(server: ApiServer, name: str, **labels: str) -> None:
    selector = {LWS_WORKER_INDEX: "0", **labels}
    spec = {"selector": selector, "ports": [{"port": 80, "targetPort": 8000}]}
    server.create(SERVICES, {"metadata": meta(name), "spec": spec})


def rules(stable: int, canary: int) -> list[dict[str, Any]]:
    refs = [
        {"name": "llm-api", "port": 80, "weight": stable},
        {"name": "llm-api-canary", "port": 80, "weight": canary},
    ]
    tagged = [{"headers": [{"name": "x-canary", "value": "yes"}]}]
    return [{"backendRefs": refs}, {"matches": tagged, "backendRefs": [refs[1] | {"weight": 1}]}]


@asynccontextmanager
async def serving(
    options: Options | None = None, *, ours: Callable[[str], bool] = lambda _: False, **spec: Any
) -> AsyncIterator[tuple[ApiServer, TrafficMeter]]:
    """An LWS of four groups and a canary of one, both ready, behind a Gateway that sends all to the first."""
    async with cluster(options) as server:
        listener = {"name": "http", "port": 80, "protocol": "HTTP"}
        server.create(GATEWAYS, {"metadata": meta("front"), "spec": {"gatewayClassName": "a", "listeners": [listener]}})
        server.create(LEADER_WORKER_SETS, lws(replicas=4, **spec))
        server.create(LEADER_WORKER_SETS, lws("llm-canary", replicas=1))
        service(server, "llm-api", **{LWS_NAME: "llm"})
        service(server, "llm-api-canary", **{LWS_NAME: "llm-canary"})
        route = {"parentRefs": [{"name": "front"}], "rules": rules(1, 0)}
        server.create(HTTP_ROUTES, {"metadata": meta("llm"), "spec": route})
        await asyncio.sleep(10)
        meter = TrafficMeter(server, (USERS, INSIDE, TAGGED), ours=ours)
        meter.start()
        yield server, meter
        meter.stop()


def weigh(server: ApiServer, stable: int, canary: int) -> None:
    server.patch(HTTP_ROUTES, NAMESPACE, "llm", {"spec": {"rules": rules(stable, canary)}})


def causes(meter: TrafficMeter, client: str = "users") -> dict[str, str]:
    """By pod: who cut its streams."""
    return {cut.pod: cut.cause for cut in meter.cuts if cut.client == client}


async def test_weights_reach_the_groups_after_gateway_and_data_plane() -> None:
    async with serving() as (server, meter):
        assert meter.now("users", by="pod") == {f"llm-{n}": 0.25 for n in range(4)}
        assert (meter.now("tagged"), meter.now("inside")) == ({"llm-canary": 1.0}, {"llm": 1.0})
        begun = server.clock()
        weigh(server, 95, 5)
        await asyncio.sleep(0.19)
        assert meter.now("users") == {"llm": 1.0}
        await asyncio.sleep(2.02)
        assert meter.now("users") == {"llm": 0.95, "llm-canary": 0.05}
        assert meter.shares("users", begun, begun + 0.2) == {"llm": 1.0}
        assert (meter.failures, meter.cuts) == ([], [])


async def test_a_silent_gateway_moves_no_traffic() -> None:
    async with serving(Options(gateway_lag=3600)) as (server, meter):
        weigh(server, 0, 1)
        await asyncio.sleep(600)
        assert meter.now("users") == {"": 1.0}


async def test_a_canary_that_is_drained_before_it_goes_hurts_nobody() -> None:
    async with serving() as (server, meter):
        weigh(server, 50, 50)
        await asyncio.sleep(60)
        server.delete(HTTP_ROUTES, NAMESPACE, "llm")
        spec = {"parentRefs": [{"name": "front"}], "rules": [rules(1, 0)[0]]}
        server.create(HTTP_ROUTES, {"metadata": meta("llm"), "spec": spec})
        await asyncio.sleep(0.2 + 2 + 30)
        patch_lws(server, {"replicas": 0}, "llm-canary")
        await asyncio.sleep(60)
        assert meter.now("tagged") == meter.now("users") == {"llm": 1.0}
        assert (meter.failures, meter.cuts) == ([], [])


async def test_a_canary_that_is_scaled_away_with_weight_fails_and_cuts() -> None:
    async with serving() as (server, meter):
        weigh(server, 50, 50)
        await asyncio.sleep(60)
        patch_lws(server, {"replicas": 0}, "llm-canary")
        await asyncio.sleep(60)
        assert causes(meter) == {"llm-canary-0": "scaled down"}
        (cut,) = (cut for cut in meter.cuts if cut.client == "users")
        assert (cut.share, cut.lws, cut.group) == (0.5, "llm-canary", "0")
        failed = [(failure.reason, failure.share) for failure in meter.failures if failure.client == "users"]
        assert ('no ready endpoint of Service "llm-api-canary"', 0.5) in failed
        assert meter.now("users") == {"": 0.5, "llm": 0.5}


async def test_groups_that_lws_renews_are_told_from_those_that_somebody_deletes() -> None:
    async with serving() as (server, meter):
        await asyncio.sleep(60)
        patch_lws(server, {"leaderWorkerTemplate": {"workerTemplate": template("model:B")}})
        await asyncio.sleep(60)
        assert causes(meter) == {f"llm-{n}": "renewed" for n in range(4)}
        assert {failure.cause for failure in meter.failures} == {"renewed"}
        (revision,) = {pod["metadata"]["labels"][LWS_REVISION] for pod in leaders(server).values()}
        assert meter.now("users", by="revision") == {revision: 1.0}
        server.delete(PODS, NAMESPACE, "llm-2")
        await asyncio.sleep(60)
        last = meter.cuts[-1]
        assert (last.pod, last.cause, last.revision) == ("llm-2", "deleted", revision)


async def test_a_held_group_that_goes_was_not_renewed_by_lws() -> None:
    rolling = {"type": "RollingUpdate", "rollingUpdateConfiguration": {"partition": 1_000_000}}
    async with serving(rolloutStrategy=rolling) as (server, meter):
        patch_lws(server, {"leaderWorkerTemplate": {"workerTemplate": template("model:B")}})
        await asyncio.sleep(60)
        server.delete(PODS, NAMESPACE, "llm-2")
        await asyncio.sleep(60)
        assert causes(meter) == {"llm-2": "deleted"}


@pytest.mark.parametrize(("told", "cause"), [(True, "deleted"), (False, "renewed")])
async def test_what_the_controller_deletes_in_an_open_window_is_its_own_doing_if_it_says_so(
    told: bool, cause: str
) -> None:
    mine: set[str] = set()
    rolling = {"type": "RollingUpdate", "rollingUpdateConfiguration": {"maxUnavailable": 4}}
    async with serving(ours=mine.__contains__, rolloutStrategy=rolling) as (server, meter):
        await asyncio.sleep(60)
        patch_lws(server, {"leaderWorkerTemplate": {"workerTemplate": template("model:B")}})
        await asyncio.sleep(0.1)
        old = leaders(server)["0"]["metadata"]["uid"]
        if told:
            mine.add(old)
        server.delete(PODS, NAMESPACE, "llm-0", uid=old)
        await asyncio.sleep(60)
        ends = [(cut.pod, cut.cause) for cut in meter.cuts if cut.client == "users"]
        assert sorted(ends) == [("llm-0", cause), *((f"llm-{n}", "renewed") for n in range(1, 4))]


async def test_surge_that_lws_drops_is_not_scaling_down() -> None:
    rolling = {"type": "RollingUpdate", "rollingUpdateConfiguration": {"maxSurge": 1, "maxUnavailable": 1}}
    async with serving(rolloutStrategy=rolling) as (server, meter):
        await asyncio.sleep(60)
        patch_lws(server, {"leaderWorkerTemplate": {"workerTemplate": template("model:B")}})
        await asyncio.sleep(90)
        assert causes(meter) == {"llm-4": "surge dropped", **{f"llm-{n}": "renewed" for n in range(4)}}
        patch_lws(server, {"replicas": 3})
        await asyncio.sleep(60)
        assert causes(meter)["llm-3"] == "scaled down"


async def test_a_worker_that_is_deleted_ends_the_streams_of_its_group_once() -> None:
    async with serving() as (server, meter):
        await asyncio.sleep(60)
        server.delete(PODS, NAMESPACE, "llm-1-1")
        await asyncio.sleep(60)
        assert causes(meter) == {"llm-1": "deleted"}
        assert len([cut for cut in meter.cuts if cut.client == "users"]) == 1
        assert meter.now("users", by="pod") == {f"llm-{n}": 0.25 for n in range(4)}


async def test_a_container_that_crashes_is_told_apart() -> None:
    worker = template(annotations={"sandbox.rollouts.kruise.io/crash-after": "100s"})
    async with serving(leaderWorkerTemplate={"workerTemplate": worker}) as (_, meter):
        await asyncio.sleep(120)
        assert set(causes(meter).values()) == {"crashed"}


async def test_a_workload_that_is_deleted_takes_its_streams_along() -> None:
    async with serving() as (server, meter):
        await asyncio.sleep(60)
        server.delete(LEADER_WORKER_SETS, NAMESPACE, "llm", propagation="Foreground")
        await asyncio.sleep(60)
        assert set(causes(meter).values()) == {"workload deleted"}
        assert len(causes(meter)) == 4


async def test_clients_inside_follow_a_selector() -> None:
    async with serving() as (server, meter):
        server.patch(SERVICES, NAMESPACE, "llm-api", {"spec": {"selector": {LWS_NAME: "llm-canary"}}})
        await asyncio.sleep(5)
        assert meter.now("inside") == {"llm-canary": 1.0}
        assert meter.failures == []


async def test_pools_share_by_weight_and_their_pods_evenly() -> None:
    async with serving() as (server, meter):
        for name in ("llm", "llm-canary"):
            spec = {
                "selector": {"matchLabels": {LWS_NAME: name, LWS_WORKER_INDEX: "0"}},
                "targetPorts": [{"number": 80}],
            }
            server.create(INFERENCE_POOLS, {"metadata": meta(name), "spec": spec})
        await asyncio.sleep(2)
        group = {"group": INFERENCE_POOLS.group, "kind": "InferencePool"}
        refs = [{**group, "name": "llm", "weight": 8}, {**group, "name": "llm-canary", "weight": 2}]
        server.patch(HTTP_ROUTES, NAMESPACE, "llm", {"spec": {"rules": [{"backendRefs": refs}]}})
        await asyncio.sleep(3)
        assert meter.now("users", by="pod") == {**{f"llm-{n}": 0.2 for n in range(4)}, "llm-canary-0": 0.2}
        server.delete(PODS, NAMESPACE, "llm-3")
        await asyncio.sleep(0.9)
        server.delete(LEADER_WORKER_SETS, NAMESPACE, "llm-canary")
        await asyncio.sleep(4)
        assert meter.now("users")[""] == 0.2


async def test_one_seed_gives_one_history() -> None:
    async def history(seed: int) -> list[Any]:
        async with cluster() as server:
            server.create(LEADER_WORKER_SETS, lws(replicas=3))
            service(server, "llm-api", **{LWS_NAME: "llm"})
            await asyncio.sleep(10)
            meter = TrafficMeter(server, (INSIDE,), seed=seed)
            begun = server.clock()
            meter.start()
            for number in range(3):
                await asyncio.sleep(20)
                server.delete(PODS, NAMESPACE, f"llm-{number}")
            await asyncio.sleep(20)
            ends = [(each.share, round(each.end - begun, 6), each.pod) for each in meter.failures]
            return [*ends, *((each.share, each.pod) for each in meter.cuts)]

    first = await history(1)
    assert first == await history(1)
    assert first != await history(2)
