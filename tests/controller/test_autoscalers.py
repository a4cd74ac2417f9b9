"""Autoscalers with the whole controller: watched while a release needs them, listed first, followed at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from rollout_lws.errors import ApiError
from rollout_lws.objects.permissions import SOURCE
from rollout_lws.objects.resources import HORIZONTAL_POD_AUTOSCALERS, LEADER_WORKER_SETS
from rollout_lws.sandbox.apiserver import ApiServer
from rollout_lws.sandbox.faults import Effect, Faults
from tests.controller.duties import approve, scale, set_image, state, until
from tests.controller.test_controller import cluster, create
from tests.controller.test_routing import A_WHILE, CANARY, Counted, Routed, controlled

pytestmark = [pytest.mark.looptime, pytest.mark.rare(3)]

WATCHED = HORIZONTAL_POD_AUTOSCALERS.plural


@asynccontextmanager
async def at_rest() -> AsyncIterator[Routed]:
    """An LWS of four groups that nothing routes requests to, and its autoscaler."""
    faults = Faults()
    async with cluster() as server, controlled(server, faults) as transport:
        create(server, "default")
        scale(server)
        await asyncio.sleep(A_WHILE)
        yield Routed(server, faults, transport)


def spec(server: ApiServer) -> dict[str, Any]:
    return dict(server.get(HORIZONTAL_POD_AUTOSCALERS, "default", "llama")["spec"])


def low(server: ApiServer) -> int:
    return int(spec(server)["minReplicas"])


def watched(transport: Counted) -> bool:
    return WATCHED in +transport.open


def made(server: ApiServer) -> bool:
    """Whether a canary stands."""
    return CANARY in {each["metadata"]["name"] for each in server.list(LEADER_WORKER_SETS, "default")}


async def test_they_are_watched_and_held_only_while_a_release_is_on() -> None:
    async with at_rest() as scaled:
        before = spec(scaled.server)
        assert not watched(scaled.transport)
        set_image(scaled.server, "v1")
        await scaled.until(state("AwaitingApproval"))
        assert watched(scaled.transport)
        assert (low(scaled.server), made(scaled.server)) == (4, True)
        scaled.server.patch(LEADER_WORKER_SETS, "default", "llama", {"spec": {"replicas": 5}})
        await asyncio.sleep(2)
        assert low(scaled.server) == 5
        scaled.server.patch(HORIZONTAL_POD_AUTOSCALERS, "default", "llama", {"spec": {"minReplicas": 2}})
        await asyncio.sleep(2)
        assert low(scaled.server) == 5
        approve(scaled.server)
        await scaled.until(state("Healthy"))
        await asyncio.sleep(A_WHILE)
        assert spec(scaled.server) == before | {"minReplicas": 2}
        assert not watched(scaled.transport)


async def test_a_release_begins_only_when_it_is_known_what_would_work_against_it() -> None:
    async with at_rest() as scaled:
        scaled.faults.add(Effect(delay=20), "list", WATCHED)
        told = scaled.server.store.version
        set_image(scaled.server, "v1")
        await asyncio.sleep(15)
        assert not made(scaled.server)
        assert scaled.status["summary"]["state"] == "Healthy"
        assert scaled.server.store.version > told
        await scaled.until(state("AwaitingApproval"))
        assert low(scaled.server) == 4


async def test_a_missing_right_to_list_them_keeps_a_version_waiting_and_is_told() -> None:
    async with at_rest() as scaled:
        refused = ApiError(403, "Forbidden", f'{WATCHED} is forbidden: User "x" cannot list resource')
        scaled.faults.add(Effect(refusal=refused), "list", WATCHED, count=None)
        set_image(scaled.server, "v1")
        await asyncio.sleep(A_WHILE)
        (reconciling,) = [each for each in scaled.status["conditions"] if each["type"] == "Reconciling"]
        assert (reconciling["status"], reconciling["reason"]) == ("True", "Preparing")
        assert reconciling["message"] == (
            f'{WATCHED} is forbidden: User "x" cannot list resource: allow the controller\'s account to list and'
            f" watch {WATCHED}.autoscaling in namespace default ({SOURCE})"
        )
        assert (made(scaled.server), low(scaled.server)) == (False, 1)
        waits = scaled.server.store.version
        await asyncio.sleep(3600)
        assert scaled.server.store.version == waits, "waiting writes nothing"
        scaled.faults.restore()
        await scaled.until(state("AwaitingApproval"))
        assert low(scaled.server) == 4


async def test_a_cluster_that_does_not_serve_them_has_none() -> None:
    async with at_rest() as scaled:
        missing = ApiError(404, "NotFound", "the server could not find the requested resource")
        scaled.faults.add(Effect(refusal=missing), "list", WATCHED, count=None)
        set_image(scaled.server, "v1")
        await scaled.until(state("AwaitingApproval"))
        assert low(scaled.server) == 1


async def test_a_controller_that_starts_after_the_end_gives_back_what_its_predecessor_held() -> None:
    async with cluster() as server:
        async with controlled(server):
            create(server, "default")
            scale(server)
            await asyncio.sleep(A_WHILE)
            before = spec(server)
            old = server.get(LEADER_WORKER_SETS, "default", "llama")["spec"]["leaderWorkerTemplate"]
            set_image(server, "v1")
            await until(server, state("AwaitingApproval"))
        assert low(server) == 4
        server.patch(LEADER_WORKER_SETS, "default", "llama", {"spec": {"leaderWorkerTemplate": old}})
        async with controlled(server):
            await until(server, state("Healthy"))
            await asyncio.sleep(A_WHILE)
        assert spec(server) == before
