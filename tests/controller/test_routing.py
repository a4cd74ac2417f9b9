"""A weighted release with the whole controller: what it watches and when, and what it does when a watch fails it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from rollout_lws.api.resources import rollouts
from rollout_lws.cli.demo import manifests
from rollout_lws.controller.controller import Controller
from rollout_lws.errors import ApiError
from rollout_lws.kube.client import Client
from rollout_lws.metrics import Metrics
from rollout_lws.objects.resources import HTTP_ROUTES, LEADER_WORKER_SETS, LWS_NAME, PODS, SERVICES
from rollout_lws.sandbox.apiserver import ApiServer
from rollout_lws.sandbox.faults import Effect, Faults
from rollout_lws.sandbox.transport import DirectTransport
from rollout_lws.settings import Settings
from tests.controller.duties import publish, route, set_image, state, until
from tests.controller.test_controller import ORIGIN, cluster, create
from tests.virtual_time import LoopClock

pytestmark = pytest.mark.looptime

Object = dict[str, Any]
CANARY = "llama-canary"
#: Seconds in which what was begun has come to rest.
A_WHILE = 60.0


class Counted(DirectTransport):
    """A transport that knows which watches are open: resource and what it is narrowed to, each with how many."""

    def __init__(self, server: ApiServer, faults: Faults) -> None:
        super().__init__(server, faults)
        self.open: Counter[str] = Counter()

    @asynccontextmanager
    async def stream(
        self,
        path: str,
        *,
        params: Mapping[str, str],
        timeout: float,  # noqa: ASYNC109 - the interface of the client's transports
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        watched = " ".join([path.rpartition("/")[2], params.get("labelSelector", "")]).strip()
        self.open[watched] += 1
        try:
            async with super().stream(path, params=params, timeout=timeout) as lines:
                yield lines
        finally:
            self.open[watched] -= 1

    @property
    def of_traffic(self) -> set[str]:
        """Open watches of what only releases with traffic need."""
        return {
            name
            for name in +self.open
            if name.startswith(("httproutes", "endpointslices", "ingresses", "inferencepools", "poddisruptionbudgets"))
        }


@dataclass
class Routed:
    """A cluster in which LWS ``llama`` and its Rollout are at rest and share requests by a route."""

    server: ApiServer
    faults: Faults
    transport: Counted

    @property
    def status(self) -> Object:
        return dict(self.server.get(rollouts(), "default", "llama").get("status") or {})

    @property
    def weights(self) -> dict[str, int]:
        rules = self.server.get(HTTP_ROUTES, "default", "llama")["spec"]["rules"]
        return {ref["name"]: ref.get("weight", 1) for ref in rules[0]["backendRefs"]}

    @property
    def share(self) -> int:
        """Per cent of requests that the route sends to the new version."""
        weights = self.weights
        return round(100 * weights.get("api-canary", 0) / sum(weights.values()))

    def hold_record(self) -> list[Object]:
        """Spec, labels and annotations of Service and route: what has to be as before when a release is over."""
        found = (
            self.server.get(resource, "default", name) for resource, name in ((SERVICES, "api"), (HTTP_ROUTES, "llama"))
        )
        return [
            {"spec": each["spec"], **{key: each["metadata"].get(key) or {} for key in ("labels", "annotations")}}
            for each in found
        ]

    async def until(self, holds: Callable[[Any], bool]) -> None:
        await until(self.server, holds)

    async def waiting(self) -> None:
        """Release v1 up to its first step, which waits for an approval with a fifth of the requests."""
        set_image(self.server, "v1")
        await self.until(state("AwaitingApproval"))
        assert self.share == 20

    async def finish(self) -> None:
        publish(self.server, {"canaryStatus": {"currentStepState": "StepReady"}})
        await self.until(state("Healthy"))
        await asyncio.sleep(A_WHILE)

    def images(self) -> set[str]:
        pods = self.server.list(PODS, "default")
        return {pod["spec"]["containers"][0]["image"].rpartition(":")[2] for pod in pods}

    def shares(self) -> list[int]:
        """The share at each change of the route from now on."""
        seen: list[int] = []
        self.server.store.subscribe(lambda event: seen.append(self.share) if event.resource == HTTP_ROUTES else None)
        return seen


@asynccontextmanager
async def controlled(server: ApiServer, faults: Faults | None = None) -> AsyncIterator[Counted]:
    transport = Counted(server, faults or Faults())
    controller = Controller(Client(transport), Settings(), LoopClock(ORIGIN), Metrics())
    async with controller.running():
        yield transport


@asynccontextmanager
async def at_rest() -> AsyncIterator[Routed]:
    faults = Faults()
    async with cluster() as server, controlled(server, faults) as transport:
        create(server, "default")
        route(server)
        await asyncio.sleep(A_WHILE)
        yield Routed(server, faults, transport)


async def test_a_weighted_release_shares_requests_and_gives_everything_back() -> None:
    async with at_rest() as routed:
        before = routed.hold_record()
        shares = routed.shares()
        await routed.waiting()
        assert routed.weights == {"api": 80, "api-canary": 20}
        behind = {
            name: routed.server.get(SERVICES, "default", name)["spec"]["selector"][LWS_NAME] for name in routed.weights
        }
        assert behind == {"api": "llama", "api-canary": CANARY}
        written = routed.server.store.version
        await asyncio.sleep(6 * 3600)
        assert routed.server.store.version == written
        await routed.finish()
        assert routed.images() == {"v1"}
        assert routed.hold_record() == before
        assert {"api-canary", CANARY}.isdisjoint(
            each["metadata"]["name"] for each in routed.server.list(SERVICES, "default")
        )
        assert [each["metadata"]["name"] for each in routed.server.list(LEADER_WORKER_SETS, "default")] == ["llama"]
        assert set(shares[: shares.index(20)]) <= {0}
        assert shares[-1] == 0


async def test_routes_and_endpoints_are_watched_only_while_a_release_needs_them() -> None:
    async with at_rest() as routed:
        assert routed.transport.of_traffic == set()
        await routed.waiting()
        service = "endpointslices kubernetes.io/service-name"
        kinds = {"httproutes", "ingresses", "inferencepools", "poddisruptionbudgets"}
        assert routed.transport.of_traffic == {*kinds, f"{service}=api", f"{service}=api-canary"}
        await routed.finish()
        assert routed.transport.of_traffic == set()


async def test_a_version_waits_until_the_cluster_serves_routes_and_is_told_what_to_install() -> None:
    async with at_rest() as routed:
        missing = ApiError(404, "NotFound", "the server could not find the requested resource")
        routed.faults.add(Effect(refusal=missing), "list", "httproutes", count=None)
        set_image(routed.server, "v1")
        await asyncio.sleep(600)
        stalled = next(each for each in routed.status["conditions"] if each["type"] == "Stalled")
        assert "this cluster does not serve httproutes.gateway.networking.k8s.io" in stalled["message"]
        assert "install its CustomResourceDefinition" in stalled["message"]
        assert CANARY not in {each["metadata"]["name"] for each in routed.server.list(LEADER_WORKER_SETS, "default")}
        assert "v1" not in routed.images()
        told = routed.server.store.version
        await asyncio.sleep(600)
        assert routed.server.store.version == told, "waiting writes nothing"
        routed.faults.restore()
        await routed.until(state("AwaitingApproval"))
        assert routed.share == 20


@pytest.mark.one_in(2)
@pytest.mark.parametrize("effect", [Effect(lost=True), Effect(silent=True)], ids=["lost", "silent"])
async def test_a_watch_of_endpoints_that_fails_in_mid_step_takes_no_share_and_is_made_up_for(effect: Effect) -> None:
    async with at_rest() as routed:
        await routed.waiting()
        routed.faults.add(effect, "watch", "endpointslices", count=4)
        routed.faults.cut_watches()
        shares = routed.shares()
        await asyncio.sleep(900)
        assert (shares, routed.share) == ([], 20)
        routed.server.delete(PODS, "default", f"{CANARY}-0")
        await routed.until(lambda _: routed.share == 0)
        await routed.until(lambda _: routed.share == 20)


async def test_an_endpoint_that_vanishes_takes_the_share_away_until_it_is_back() -> None:
    async with at_rest() as routed:
        await routed.waiting()
        asked = asyncio.get_running_loop().time()
        routed.server.delete(PODS, "default", f"{CANARY}-0")
        await routed.until(lambda _: routed.share == 0)
        assert asyncio.get_running_loop().time() - asked <= 2
        await routed.until(lambda _: routed.share == 20)
        await asyncio.sleep(A_WHILE)
        assert "message" not in routed.status["traffic"]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("late", [1, 2])
async def test_a_controller_that_starts_in_mid_step_shifts_nothing_before_it_knows_both_endpoints(late: int) -> None:
    async with cluster() as server:
        async with controlled(server) as transport:
            create(server, "default")
            route(server)
            await asyncio.sleep(A_WHILE)
            await Routed(server, Faults(), transport).waiting()
        faults = Faults()
        faults.add(Effect(delay=20), "list", "endpointslices", nth=late)
        async with controlled(server, faults) as transport:
            routed = Routed(server, faults, transport)
            shares = routed.shares()
            await asyncio.sleep(A_WHILE)
            assert (shares, routed.share) == ([], 20)
            assert "message" not in routed.status["traffic"]
            await routed.finish()
            assert routed.images() == {"v1"}


async def test_what_others_change_at_a_service_is_put_right_at_once() -> None:
    async with at_rest() as routed:
        await routed.waiting()
        unpinned = {"spec": {"selector": {LWS_NAME: None, "app": "llama"}}}
        routed.server.patch(SERVICES, "default", "api", unpinned)
        await asyncio.sleep(2)
        assert routed.server.get(SERVICES, "default", "api")["spec"]["selector"][LWS_NAME] == "llama"
        routed.server.delete(SERVICES, "default", "api-canary")
        await asyncio.sleep(2)
        assert routed.server.get(SERVICES, "default", "api-canary")["spec"]["selector"][LWS_NAME] == CANARY
        await routed.until(lambda _: routed.share == 20)


async def test_a_service_that_is_missing_is_waited_for_by_its_own_coming() -> None:
    async with at_rest() as routed:
        service = routed.server.get(SERVICES, "default", "api")
        routed.server.delete(SERVICES, "default", "api")
        set_image(routed.server, "v1")
        await routed.until(state("Stalled"))
        await asyncio.sleep(3600)
        assert "v1" not in routed.images()
        meta = {"name": "api", "namespace": "default"}
        spec = {key: service["spec"][key] for key in ("selector", "ports")}
        routed.server.create(SERVICES, {"metadata": meta, "spec": spec})
        await routed.until(state("AwaitingApproval"))
        assert routed.share == 20


async def test_a_rollout_deleted_at_rest_goes_without_looking_at_routes() -> None:
    async with at_rest() as routed:
        before = routed.hold_record()
        routed.faults.refuse(503, "list", "httproutes", count=None)
        routed.server.delete(rollouts(), "default", "llama")
        await asyncio.sleep(A_WHILE)
        assert routed.server.list(rollouts(), "default") == []
        assert routed.hold_record() == before


async def gone_beside_another(routed: Routed) -> list[Object]:
    """The Rollout goes in mid-release, its finalizer taken off, beside one of another LWS that is at rest; gives what
    was there before.
    """
    other = manifests.workload()
    other["metadata"]["name"], other["spec"]["replicas"] = "other", 0
    routed.server.create(LEADER_WORKER_SETS, other)
    routed.server.create(rollouts(), manifests.rollout(rollouts().api_version, other["metadata"]))
    await asyncio.sleep(A_WHILE)
    before = routed.hold_record()
    await routed.waiting()
    routed.server.delete(rollouts(), "default", "llama")
    routed.server.patch(rollouts(), "default", "llama", {"metadata": {"finalizers": None}})
    await asyncio.sleep(A_WHILE)
    return before


async def test_what_a_rollout_leaves_that_goes_without_its_finalizer_another_one_gives_back_at_once() -> None:
    async with at_rest() as routed:
        before = await gone_beside_another(routed)
        assert routed.hold_record() == before


async def test_what_would_lead_to_two_versions_is_given_back_by_another_rollout_when_one_is_gone() -> None:
    async with at_rest() as routed:
        routed.server.patch(SERVICES, "default", "api", {"spec": {"selector": {LWS_NAME: None, "app": "llama"}}})
        before = await gone_beside_another(routed)
        service, given_back = routed.hold_record()
        assert (service["spec"]["selector"][LWS_NAME], given_back) == ("llama", before[1])
        routed.server.patch(LEADER_WORKER_SETS, "default", CANARY, {"metadata": {"finalizers": None}})
        routed.server.delete(LEADER_WORKER_SETS, "default", CANARY)
        await asyncio.sleep(A_WHILE)
        assert routed.hold_record() == before


async def test_a_service_that_selects_another_lws_is_no_obstacle_any_more_once_those_groups_are_gone() -> None:
    async with at_rest() as routed:
        other = manifests.workload()
        other["metadata"]["name"] = "other"
        routed.server.create(LEADER_WORKER_SETS, other)
        routed.server.patch(SERVICES, "default", "api", {"spec": {"selector": {LWS_NAME: None, "app": "llama"}}})
        await asyncio.sleep(A_WHILE)
        set_image(routed.server, "v1")
        await routed.until(state("Stalled"))
        assert "other" in routed.status["message"]
        await asyncio.sleep(A_WHILE)
        assert routed.status["summary"]["state"] == "Stalled"
        routed.server.patch(LEADER_WORKER_SETS, "default", "other", {"spec": {"replicas": 0}})
        await routed.until(state("AwaitingApproval"))
        assert routed.share == 20


async def test_a_rollout_leaves_though_the_cluster_has_lost_the_kind_of_its_route() -> None:
    async with at_rest() as routed:
        await routed.waiting()
        missing = ApiError(404, "NotFound", "the server could not find the requested resource")
        for verb in ("list", "watch"):
            routed.faults.add(Effect(refusal=missing), verb, "httproutes", count=None)
        routed.faults.cut_watches()
        await asyncio.sleep(A_WHILE)
        routed.server.delete(rollouts(), "default", "llama")
        await asyncio.sleep(2 * A_WHILE)
        with pytest.raises(ApiError, match="not found"):
            routed.server.get(rollouts(), "default", "llama")
        assert {each["metadata"]["name"] for each in routed.server.list(LEADER_WORKER_SETS, "default")} == {"llama"}
        assert LWS_NAME in routed.server.get(SERVICES, "default", "api")["spec"]["selector"]
