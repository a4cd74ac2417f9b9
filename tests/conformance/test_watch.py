"""Watches: from where they begin, what they tell of a selection, and how they end."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from rollout_lws.objects.resources import CONFIG_MAPS, LEADER_WORKER_SETS, PODS
from tests.conformance.asking import Asking
from tests.conformance.differences import FUTURE_WATCH
from tests.conformance.objects import config_map, lws, pod

_STREAMED = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}
_END = {"k8s.io/initial-events-end": "true"}


async def touch(server: Asking, name: str, **labels: str | None) -> None:
    (await server.patch(LEADER_WORKER_SETS, name, {"metadata": {"labels": labels}})).ok()


@pytest.mark.parametrize("begin", [{}, {"resourceVersion": "0"}], ids=["any", "zero"])
async def test_a_watch_without_a_version_begins_with_what_there_is(server: Asking, begin: Mapping[str, str]) -> None:
    (await server.create(LEADER_WORKER_SETS, lws("a"))).ok()
    async with server.watching(LEADER_WORKER_SETS, **begin) as events:
        assert await events.names(1) == [("ADDED", "a")]
        (await server.create(LEADER_WORKER_SETS, lws("b"))).ok()
        await touch(server, "a", x="y")
        (await server.delete(LEADER_WORKER_SETS, "b")).ok()
        assert await events.names(3) == [("ADDED", "b"), ("MODIFIED", "a"), ("DELETED", "b")]


async def test_a_watch_from_a_version_tells_what_came_after_it(server: Asking) -> None:
    (await server.create(LEADER_WORKER_SETS, lws("a"))).ok()
    version = (await server.list(LEADER_WORKER_SETS)).ok()["metadata"]["resourceVersion"]
    await touch(server, "a", x="1")
    (await server.create(LEADER_WORKER_SETS, lws("b"))).ok()
    await touch(server, "a", x="2")
    (await server.delete(LEADER_WORKER_SETS, "a")).ok()
    async with server.watching(LEADER_WORKER_SETS, resourceVersion=version) as events:
        told = [await events.next() for _ in range(4)]
    assert [(kind, obj["metadata"]["name"]) for kind, obj in told] == [
        ("MODIFIED", "a"),
        ("ADDED", "b"),
        ("MODIFIED", "a"),
        ("DELETED", "a"),
    ]
    assert [told[0][1]["metadata"]["labels"], told[2][1]["metadata"]["labels"]] == [{"x": "1"}, {"x": "2"}]
    versions = [int(obj["metadata"]["resourceVersion"]) for _, obj in told]
    assert versions == sorted(set(versions))
    assert versions[0] > int(version)


async def test_what_is_told_is_the_object_as_it_is_read(server: Asking) -> None:
    async with server.watching(CONFIG_MAPS, fieldSelector="metadata.name=settings") as events:
        made = (await server.create(CONFIG_MAPS, config_map())).ok()
        assert await events.next() == ("ADDED", made)


async def test_an_object_that_goes_slowly_is_changed_before_it_is_deleted(server: Asking) -> None:
    body = {**lws(), "metadata": {"name": "llama", "finalizers": ["example.com/held"]}}
    version = (await server.create(LEADER_WORKER_SETS, body)).ok()["metadata"]["resourceVersion"]
    (await server.delete(LEADER_WORKER_SETS, "llama")).ok()
    (await server.patch(LEADER_WORKER_SETS, "llama", {"metadata": {"finalizers": None}})).ok()
    async with server.watching(LEADER_WORKER_SETS, resourceVersion=version) as events:
        (kind, marked), (last, gone) = await events.next(), await events.next()
    assert (kind, last) == ("MODIFIED", "DELETED")
    assert marked["metadata"]["finalizers"] == ["example.com/held"]
    assert gone["metadata"]["uid"] == marked["metadata"]["uid"]
    assert int(gone["metadata"]["resourceVersion"]) > int(marked["metadata"]["resourceVersion"])


async def test_objects_that_enter_and_leave_a_selection_are_added_and_deleted(server: Asking) -> None:
    (await server.create(LEADER_WORKER_SETS, lws("a"))).ok()
    (await server.create(LEADER_WORKER_SETS, lws("b"))).ok()
    async with server.watching(LEADER_WORKER_SETS, labelSelector="x=1") as events:
        await touch(server, "a", x="1")
        await touch(server, "b", x="2")
        await touch(server, "a", y="1")
        await touch(server, "a", x="2")
        await touch(server, "a", x=None)
        await touch(server, "b", x="1")
        (await server.delete(LEADER_WORKER_SETS, "b")).ok()
        expected = [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a"), ("ADDED", "b"), ("DELETED", "b")]
        assert await events.names(5) == expected


async def test_an_object_that_leaves_a_selection_is_told_as_it_was_with_the_version_of_its_leaving(
    server: Asking,
) -> None:
    (await server.create(LEADER_WORKER_SETS, lws("a"))).ok()
    await touch(server, "a", x="1")
    async with server.watching(LEADER_WORKER_SETS, labelSelector="x=1") as events:
        assert await events.names(1) == [("ADDED", "a")]
        await touch(server, "a", x="2")
        kind, left = await events.next()
    assert (kind, left["metadata"]["labels"]) == ("DELETED", {"x": "1"})
    now = (await server.get(LEADER_WORKER_SETS, "a")).ok()
    assert left["metadata"]["resourceVersion"] == now["metadata"]["resourceVersion"]


async def test_fields_select_what_is_watched(server: Asking) -> None:
    async with server.watching(PODS, fieldSelector="spec.nodeName=one") as events:
        for name, node in (("a", "two"), ("b", "one")):
            body = pod(name)
            body["spec"]["nodeName"] = node
            (await server.create(PODS, body)).ok()
        assert await events.names(1) == [("ADDED", "b")]


async def test_initial_events_end_with_a_bookmark(server: Asking) -> None:
    (await server.create(LEADER_WORKER_SETS, lws("a"))).ok()
    made = (await server.create(LEADER_WORKER_SETS, lws("b"))).ok()
    async with server.watching(LEADER_WORKER_SETS, **_STREAMED) as events:
        assert await events.names(2) == [("ADDED", "a"), ("ADDED", "b")]
        kind, mark = await events.next()
        assert (kind, mark["kind"]) == ("BOOKMARK", "LeaderWorkerSet")
        assert mark["apiVersion"] == LEADER_WORKER_SETS.api_version
        assert mark["metadata"]["annotations"] == _END
        assert int(mark["metadata"]["resourceVersion"]) >= int(made["metadata"]["resourceVersion"])
        (await server.delete(LEADER_WORKER_SETS, "a")).ok()
        assert await events.names(1) == [("DELETED", "a")]


async def test_a_watch_from_a_bookmark_misses_nothing(server: Asking) -> None:
    async with server.watching(LEADER_WORKER_SETS, **_STREAMED) as events:
        _, mark = await events.next()
    (await server.create(LEADER_WORKER_SETS, lws())).ok()
    version = mark["metadata"]["resourceVersion"]
    async with server.watching(LEADER_WORKER_SETS, resourceVersion=version) as events:
        assert await events.names(1) == [("ADDED", "llama")]


async def test_initial_events_need_a_rule_for_versions(server: Asking) -> None:
    refused = await server.list(LEADER_WORKER_SETS, watch="true", sendInitialEvents="true")
    text = "Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
    assert refused.refusal == (422, "Invalid", f'ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: {text}')
    assert refused.causes == [("FieldValueForbidden", "resourceVersionMatch", text)]


async def test_a_watch_ends_in_order_when_its_time_is_over(server: Asking) -> None:
    version = (await server.list(LEADER_WORKER_SETS)).ok()["metadata"]["resourceVersion"]
    async with server.watching(LEADER_WORKER_SETS, resourceVersion=version, timeoutSeconds="1") as events:
        assert await events.rest() == []


async def test_what_is_forgotten_cannot_be_told(server: Asking) -> None:
    async with server.watching(LEADER_WORKER_SETS, resourceVersion="1") as events:
        ((kind, status),) = await events.rest()
    assert (kind, status["kind"], status["code"], status["reason"]) == ("ERROR", "Status", 410, "Expired")
    assert status["message"].startswith("too old resource version: 1 (")


async def test_what_is_yet_to_come_is_waited_for(server: Asking) -> None:
    version = "999999999999"
    async with server.watching(LEADER_WORKER_SETS, resourceVersion=version, timeoutSeconds="1") as events:
        told = await events.rest()
    assert [(kind, status["reason"]) for kind, status in told] == FUTURE_WATCH.on(server.name)


async def test_a_version_that_is_no_number_is_refused(server: Asking) -> None:
    refused = await server.list(LEADER_WORKER_SETS, watch="true", resourceVersion="new")
    text = 'resourceVersion: Invalid value: "new": strconv.ParseUint: parsing "new": invalid syntax'
    assert refused.refusal == (500, "", text)


async def test_one_object_is_read_not_watched(server: Asking) -> None:
    made = (await server.create(CONFIG_MAPS, config_map())).ok()
    path = CONFIG_MAPS.path(server.namespace, "settings")
    assert (await server.ask("GET", path, watch="true")).ok() == made
