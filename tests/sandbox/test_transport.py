"""Requests without sockets: lists, watches and faults in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import looptime
import msgspec
import pytest

from rollout_lws.errors import Unreachable
from rollout_lws.objects.resources import CONFIG_MAPS, PODS
from rollout_lws.sandbox.apiserver import ApiServer
from rollout_lws.sandbox.faults import Effect, Faults
from rollout_lws.sandbox.routes import Response
from rollout_lws.sandbox.transport import DirectTransport
from tests.sandbox.conftest import config_map, pod

pytestmark = pytest.mark.looptime

MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture
def faults() -> Faults:
    return Faults()


@pytest.fixture
def transport(server: ApiServer, faults: Faults) -> DirectTransport:
    return DirectTransport(server, faults)


async def ask(transport: DirectTransport, method: str, path: str, body: Any = None, **params: str) -> Response:
    encoded = None if body is None else msgspec.json.encode(body)
    content_type = "application/merge-patch+json" if method == "PATCH" else "application/json"
    return await transport.request(method, path, params=params, body=encoded, content_type=content_type, timeout=30)


async def read(lines: AsyncIterator[bytes], count: int) -> list[tuple[str, str]]:
    found = []
    async for line in lines:
        event = msgspec.json.decode(line)
        found.append((event["type"], event["object"].get("metadata", {}).get("name", "")))
        if len(found) == count:
            break
    return found


async def test_verbs_reach_the_store(transport: DirectTransport, server: ApiServer) -> None:
    assert (await ask(transport, "POST", MAPS, config_map(a="1"))).status == 201
    assert (await ask(transport, "PATCH", f"{MAPS}/settings", {"data": {"a": "2"}})).status == 200
    assert server.get(CONFIG_MAPS, "default", "settings")["data"] == {"a": "2"}
    answer = await ask(transport, "GET", f"{MAPS}/other")
    assert (answer.status, msgspec.json.decode(answer.body)["reason"]) == (404, "NotFound")
    assert (await ask(transport, "DELETE", f"{MAPS}/settings")).status == 200
    assert server.list(CONFIG_MAPS) == []


async def test_pages_show_one_moment(transport: DirectTransport, server: ApiServer) -> None:
    for number in range(5):
        server.create(CONFIG_MAPS, config_map(f"m{number}"))
    first = msgspec.json.decode((await ask(transport, "GET", MAPS, limit="2")).body)
    server.delete(CONFIG_MAPS, "default", "m3")
    token = first["metadata"]["continue"]
    rest = msgspec.json.decode((await ask(transport, "GET", MAPS, **{"continue": token})).body)
    assert [obj["metadata"]["name"] for obj in first["items"] + rest["items"]] == ["m0", "m1", "m2", "m3", "m4"]
    assert first["metadata"]["resourceVersion"] == rest["metadata"]["resourceVersion"]
    assert (await ask(transport, "GET", MAPS, **{"continue": "page.1.9"})).status == 410


async def test_a_watch_goes_on_from_its_version(transport: DirectTransport, server: ApiServer) -> None:
    version = server.create(CONFIG_MAPS, config_map("a"))["metadata"]["resourceVersion"]
    server.create(CONFIG_MAPS, config_map("b"))
    async with transport.stream(MAPS, params={"resourceVersion": version}, timeout=30) as lines:
        server.patch(CONFIG_MAPS, "default", "a", {"data": {"x": "y"}})
        server.delete(CONFIG_MAPS, "default", "b")
        assert await read(lines, 3) == [("ADDED", "b"), ("MODIFIED", "a"), ("DELETED", "b")]


async def test_an_object_that_leaves_the_selection_is_deleted_for_its_watch(
    transport: DirectTransport, server: ApiServer
) -> None:
    server.create(PODS, pod("a", labels={"x": "1"}))
    params = {"labelSelector": "x=1"}
    async with transport.stream("/api/v1/pods", params=params, timeout=30) as lines:
        server.create(PODS, pod("b"))
        server.patch(PODS, "default", "a", {"metadata": {"labels": {"x": "2"}}})
        server.patch(PODS, "default", "b", {"metadata": {"labels": {"x": "1"}}})
        assert await read(lines, 3) == [("ADDED", "a"), ("DELETED", "a"), ("ADDED", "b")]


async def test_a_watch_from_a_forgotten_version_is_told_so(transport: DirectTransport, server: ApiServer) -> None:
    server.create(CONFIG_MAPS, config_map("a"))
    server.create(CONFIG_MAPS, config_map("b"))
    server.store.compact()
    async with transport.stream(MAPS, params={"resourceVersion": "3"}, timeout=30) as lines:
        events = [msgspec.json.decode(line) async for line in lines]
    assert [(event["type"], event["object"]["code"]) for event in events] == [("ERROR", 410)]


async def test_history_is_bounded(clock: Any) -> None:
    small = ApiServer(clock, history=2)
    for number in range(4):
        small.create(CONFIG_MAPS, config_map(f"m{number}"))
    newest = small.store.version
    assert [event.object["metadata"]["name"] for event in small.store.since(CONFIG_MAPS, newest - 2)] == ["m2", "m3"]
    async with DirectTransport(small).stream(MAPS, params={"resourceVersion": str(newest - 3)}, timeout=9) as lines:
        assert await read(lines, 1) == [("ERROR", "")]


async def test_initial_events_end_with_a_bookmark_and_others_follow_each_minute(
    transport: DirectTransport, server: ApiServer, looptime: looptime.LoopTimeProxy
) -> None:
    server.create(CONFIG_MAPS, config_map("a"))
    params = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
    params |= {"allowWatchBookmarks": "true", "timeoutSeconds": "90"}
    async with transport.stream(MAPS, params=params, timeout=100) as lines:
        events = [msgspec.json.decode(line) async for line in lines]
    assert [event["type"] for event in events] == ["ADDED", "BOOKMARK", "BOOKMARK", "BOOKMARK"]
    assert events[1]["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
    assert looptime == 90


@pytest.mark.parametrize("moment", [60, 90])
@pytest.mark.parametrize("first", [True, False])
async def test_a_version_is_told_after_all_changes_up_to_it(
    transport: DirectTransport, server: ApiServer, moment: int, first: bool
) -> None:
    """Also after a change in the very moment of a bookmark or of the watch's end: who resumes there misses nothing."""

    async def change() -> None:
        await asyncio.sleep(moment)
        server.create(CONFIG_MAPS, config_map("a"))

    version = server.create(PODS, pod("other"))["metadata"]["resourceVersion"]
    params = {"resourceVersion": version, "allowWatchBookmarks": "true", "timeoutSeconds": "90"}
    changing = asyncio.create_task(change())
    await asyncio.sleep(0 if first else 1e-9)
    async with transport.stream(MAPS, params=params, timeout=100) as lines:
        events = [msgspec.json.decode(line) async for line in lines]
    await changing
    (created,) = server.list(CONFIG_MAPS)
    changed = int(created["metadata"]["resourceVersion"])
    told = [int(event["object"]["metadata"]["resourceVersion"]) for event in events]
    assert told == sorted(told)
    kinds = [event["type"] for event in events if int(event["object"]["metadata"]["resourceVersion"]) >= changed]
    assert not kinds or kinds[0] == "ADDED"


async def test_a_refusal_comes_on_the_call_it_was_asked_for(
    transport: DirectTransport, server: ApiServer, faults: Faults
) -> None:
    faults.refuse(429, "create", "configmaps", retry_after=3, nth=2)
    answers = [await ask(transport, "POST", MAPS, config_map(name)) for name in ("a", "b", "c")]
    assert [answer.status for answer in answers] == [201, 429, 201]
    assert answers[1].headers["retry-after"] == "3"
    assert [obj["metadata"]["name"] for obj in server.list(CONFIG_MAPS)] == ["a", "c"]


async def test_a_slow_answer_runs_into_the_timeout(
    transport: DirectTransport, faults: Faults, looptime: looptime.LoopTimeProxy
) -> None:
    faults.add(Effect(delay=31), "list")
    with pytest.raises(Unreachable, match="no answer in 30 s"):
        await ask(transport, "GET", MAPS)
    assert looptime == 30
    assert (await ask(transport, "GET", MAPS)).status == 200


async def test_a_lost_answer_may_have_been_carried_out(
    transport: DirectTransport, server: ApiServer, faults: Faults
) -> None:
    faults.add(Effect(lost=True, carried_out=True), "create")
    with pytest.raises(Unreachable, match="was carried out"):
        await ask(transport, "POST", MAPS, config_map())
    assert len(server.list(CONFIG_MAPS)) == 1


async def test_a_server_that_is_stopped_answers_nobody(transport: DirectTransport, faults: Faults) -> None:
    faults.stopped = True
    with pytest.raises(Unreachable):
        await ask(transport, "GET", MAPS)
    faults.restore()
    assert (await ask(transport, "GET", MAPS)).status == 200


async def test_watches_are_silenced_repeated_and_delayed(
    transport: DirectTransport, server: ApiServer, faults: Faults, looptime: looptime.LoopTimeProxy
) -> None:
    for name in ("a", "b"):
        server.create(CONFIG_MAPS, config_map(name))
    faults.add(Effect(silent=True), "watch")
    faults.add(Effect(copies=2, event_delay=5), "watch", nth=2)
    async with transport.stream(MAPS, params={}, timeout=30) as lines:
        with pytest.raises(Unreachable, match="silent for 30 s"):
            await read(lines, 1)
    assert looptime == 30
    async with transport.stream(MAPS, params={}, timeout=30) as lines:
        assert await read(lines, 4) == [("ADDED", "a"), ("ADDED", "a"), ("ADDED", "b"), ("ADDED", "b")]
    assert looptime == 40


async def test_a_watch_can_be_cut_while_it_waits(transport: DirectTransport, faults: Faults) -> None:
    async with transport.stream(MAPS, params={}, timeout=30) as lines:
        reading = asyncio.ensure_future(read(lines, 1))
        await asyncio.sleep(1)
        faults.cut_watches()
        assert await reading == []
