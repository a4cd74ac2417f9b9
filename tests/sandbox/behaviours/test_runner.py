"""The runner: refusals are retried, mistakes surface, the same run gives the same history."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

import pytest

from rollout_lws.errors import ApiError
from rollout_lws.objects.resources import CONFIG_MAPS, LEADER_WORKER_SETS, PODS
from rollout_lws.objects.writes import Create
from rollout_lws.sandbox.apiserver import ApiServer, Operation
from rollout_lws.sandbox.behaviours.base import Change, Key, Outcome, View
from rollout_lws.sandbox.behaviours.runner import Runner
from tests.sandbox.behaviours import world
from tests.sandbox.behaviours.world import EPOCH, NAMESPACE, cluster, lws, patch_lws, template

pytestmark = pytest.mark.looptime


class Copier:
    """Makes a copy of each ConfigMap called "original"."""

    name = "copier"

    def wakes(self, change: Change, view: View) -> Iterable[Key]:
        return (("default", "original"),) if change.object["metadata"]["name"] == "original" else ()

    def decide(self, key: Key, view: View, now: float) -> Outcome:
        if view.get(CONFIG_MAPS, "default", "copy") is not None:
            return Outcome()
        body = {"metadata": {"name": "copy", "namespace": "default"}}
        return Outcome((Create(CONFIG_MAPS, body, "copy"),))


class Broken(Copier):
    def decide(self, key: Key, view: View, now: float) -> Outcome:
        raise KeyError("original")


def original(server: ApiServer) -> None:
    server.create(CONFIG_MAPS, {"metadata": {"name": "original", "namespace": "default"}})


def new_server() -> ApiServer:
    loop = asyncio.get_running_loop()
    return ApiServer(lambda: EPOCH + loop.time(), seed=1)


@pytest.mark.parametrize(("code", "seconds"), [(409, 0.02), (500, 0.02)])
async def test_a_refused_write_is_tried_again_until_it_is_taken(code: int, seconds: float) -> None:
    server = new_server()
    refusals = [ApiError(code, "Refused", "not now"), ApiError(code, "Refused", "not yet")]

    def refuse(operation: Operation) -> dict[str, Any]:
        if operation.object["metadata"]["name"] == "copy" and refusals:
            raise refusals.pop()
        return operation.object

    server.admission.append(refuse)
    runner = Runner(server, (Copier(),))
    runner.start()
    original(server)
    await asyncio.sleep(seconds * 5)
    assert server.get(CONFIG_MAPS, "default", "copy")
    runner.stop()


async def test_a_mistake_in_a_behaviour_is_raised_when_it_stops() -> None:
    server = new_server()
    runner = Runner(server, (Broken(),))
    runner.start()
    original(server)
    await asyncio.sleep(0.1)
    with pytest.raises(ExceptionGroup) as raised:
        runner.stop()
    assert raised.group_contains(KeyError, match="original")


async def test_what_exists_before_the_start_is_acted_on() -> None:
    server = new_server()
    original(server)
    runner = Runner(server, (Copier(),))
    runner.start()
    await asyncio.sleep(0.1)
    assert server.get(CONFIG_MAPS, "default", "copy")
    runner.stop()


async def test_after_the_stop_nothing_moves() -> None:
    server = new_server()
    runner = Runner(server, (Copier(),))
    runner.start()
    runner.stop()
    original(server)
    await asyncio.sleep(1)
    assert len(server.list(CONFIG_MAPS, "default")) == 1


async def test_the_same_run_gives_the_same_history() -> None:
    histories = []
    for _ in range(2):
        history: list[tuple[str, str, str]] = []
        async with cluster() as server:
            stop = server.store.subscribe(
                lambda event, history=history: history.append(
                    (event.type, event.object["metadata"]["name"], event.object["metadata"]["uid"])
                )
            )
            server.create(LEADER_WORKER_SETS, lws(replicas=3))
            await asyncio.sleep(5)
            patch_lws(server, {"leaderWorkerTemplate": {"workerTemplate": template("model:B")}})
            await asyncio.sleep(20)
            assert set(world.images(server).values()) == {"model:B"}
            stop()
        histories.append(history)
    assert histories[0] == histories[1]


async def test_at_rest_nothing_is_written() -> None:
    async with cluster() as server:
        server.create(LEADER_WORKER_SETS, lws(replicas=3))
        await asyncio.sleep(10)
        version = server.store.version
        await asyncio.sleep(3600)
        assert server.store.version == version
        assert len(server.list(PODS, NAMESPACE)) == 6
