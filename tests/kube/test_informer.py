"""The informer against a scripted server, in virtual time."""

from __future__ import annotations

import asyncio
import gc
import json
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from itertools import pairwise
from typing import Any

import msgspec
import pytest

from rollout_lws.errors import ApiError, Unreachable
from rollout_lws.kube.client import Client
from rollout_lws.kube.informer import Informer
from rollout_lws.objects.meta import Meta, Struct
from rollout_lws.objects.resources import PODS
from rollout_lws.objects.workloads import Pod
from tests.kube.fakes import FakeTransport, Reply, Watch, bookmark, expired, page, pod, refusal

pytestmark = pytest.mark.looptime

Told = tuple[str, str | None, str | None]
_EXPIRED = {"kind": "Status", "status": "Failure", "code": 410, "reason": "Expired", "message": "too old"}


class Follower:
    """An informer at work, and every change it told: name, old version, new version."""

    def __init__(self, transport: FakeTransport, **options: Any) -> None:
        self.told: list[Told] = []
        self.transport = transport
        self.informer: Informer[Pod] = Informer(
            Client(transport), PODS, msgspec.json.Decoder(Pod).decode, chance=random.Random(1), **options
        )
        self.informer.on_change(self._note)

    def _note(self, old: Pod | None, new: Pod | None) -> None:
        each = new or old
        assert each is not None
        before, after = (None if one is None else one.metadata.resource_version for one in (old, new))
        self.told.append((each.metadata.name, before, after))

    @property
    def versions(self) -> dict[str, str]:
        return {each.metadata.name: each.metadata.resource_version for each in self.informer.all()}

    async def watch(self, number: int = 1) -> Watch:
        """The ``number``-th watch, as soon as it is open."""
        while len(self.transport.watches) < number:  # noqa: ASYNC110 - virtual time costs nothing
            await asyncio.sleep(0.01)
        return self.transport.watches[number - 1]


@asynccontextmanager
async def following(*replies: Reply | Exception, **options: Any) -> AsyncIterator[Follower]:
    follower = Follower(FakeTransport(*replies), **options)
    task = asyncio.create_task(follower.informer.run())
    try:
        yield follower
        assert not task.done(), "the informer ended"
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def settle() -> None:
    await asyncio.sleep(0.001)


async def test_a_list_comes_in_pages_and_the_watch_begins_at_its_version() -> None:
    pages = page("10", pod("a", 1), token="more"), page("10", pod("b", 2), token="last"), page("10", pod("c", 3))
    async with following(*pages, label_selector="app=x") as each:
        await each.informer.synced()
        assert each.versions == {"a": "1", "b": "2", "c": "3"}
        assert [asked.params.get("continue") for asked in each.transport.requests] == [None, "more", "last"]
        assert all(asked.params["limit"] == "500" for asked in each.transport.requests)
        params = (await each.watch()).params
        assert params["resourceVersion"] == "10"
        assert params["allowWatchBookmarks"] == "true"
        assert params["labelSelector"] == "app=x"


async def test_nothing_is_synced_before_the_last_page() -> None:
    async with following(page("10", pod("a", 1), token="more"), Unreachable("cut"), page("10")) as each:
        await asyncio.sleep(0.05)
        assert not each.informer.is_synced and each.told == []
        await asyncio.wait_for(each.informer.synced(), 5)
        assert each.versions == {"a": "1"}


async def test_a_continue_token_that_expired_begins_the_list_anew() -> None:
    replies = page("10", pod("a", 1), token="more"), refusal(410, "Expired"), page("20", pod("b", 15))
    async with following(*replies) as each:
        await asyncio.wait_for(each.informer.synced(), 5)
        assert each.versions == {"b": "15"}
        assert "continue" not in each.transport.requests[-1].params


async def test_events_change_the_cache_and_tell_old_and_new() -> None:
    async with following(page("10", pod("a", 1))) as each:
        watch = await each.watch()
        watch.send("ADDED", pod("b", 11))
        watch.send("MODIFIED", pod("a", 12))
        watch.send("DELETED", pod("b", 13))
        await settle()
        assert each.told == [("a", None, "1"), ("b", None, "11"), ("a", "1", "12"), ("b", "11", None)]
        assert each.versions == {"a": "12"}


async def test_repeated_and_late_events_tell_nothing() -> None:
    async with following(page("10", pod("a", 9))) as each:
        watch = await each.watch()
        for version in (9, 12, 12, 11):
            watch.send("MODIFIED", pod("a", version))
        await settle()
        assert each.told == [("a", None, "9"), ("a", "9", "12")]


async def test_a_watch_that_ended_goes_on_where_the_last_bookmark_was() -> None:
    async with following(page("10")) as each:
        watch = await each.watch()
        watch.send("ADDED", pod("a", 12))
        watch.send("BOOKMARK", bookmark(40))
        await asyncio.sleep(60)
        watch.end()
        second = await each.watch(2)
        assert second.params["resourceVersion"] == "40"
        assert each.told == [("a", None, "12")], "a bookmark is no change"
        assert len(each.transport.requests) == 1, "no second list"


async def test_a_watch_without_bookmarks_goes_on_after_its_last_event() -> None:
    async with following(page("10")) as each:
        (await each.watch()).send("ADDED", pod("a", 12))
        await settle()
        (await each.watch()).end()
        assert (await each.watch(2)).params["resourceVersion"] == "12"


@pytest.mark.parametrize("how", ["http", "event"])
async def test_a_watch_that_is_too_old_lists_again_and_tells_only_the_difference(how: str) -> None:
    second = page("50", pod("same", 1), pod("changed", 30), pod("new", 40))
    async with following(page("10", pod("same", 1), pod("changed", 2), pod("gone", 3)), second) as each:
        watch = await each.watch()
        await asyncio.sleep(60)
        each.told.clear()
        if how == "http":
            each.transport.refusals.append(expired())
            watch.end()
        else:
            watch.send("ERROR", _EXPIRED)
        again = await each.watch(2)
        assert sorted(each.told, key=str) == [("changed", "2", "30"), ("gone", "3", None), ("new", None, "40")]
        assert again.params["resourceVersion"] == "50"
        assert watch.closed


async def test_another_error_event_does_not_list_again() -> None:
    async with following(page("10", pod("a", 1))) as each:
        (await each.watch()).send("ERROR", {"kind": "Status", "code": 500, "reason": "InternalError"})
        await each.watch(2)
        assert len(each.transport.requests) == 1


async def test_a_silent_watch_is_cut_and_renewed() -> None:
    async with following(page("10")) as each:
        await each.watch()
        began = asyncio.get_running_loop().time()
        await each.watch(2)
        assert asyncio.get_running_loop().time() - began == pytest.approx(150, abs=1)
        assert each.transport.watches[0].closed


async def test_traffic_keeps_a_watch_alive_and_shows_in_its_age() -> None:
    async with following(page("10")) as each:
        watch = await each.watch()
        for version in range(11, 16):
            await asyncio.sleep(140)
            watch.send("BOOKMARK", bookmark(version))
            await settle()
            assert each.informer.silent_seconds < 1
        assert len(each.transport.watches) == 1
        await asyncio.sleep(100)
        assert each.informer.silent_seconds == pytest.approx(100, abs=1)


async def test_a_watch_that_lived_makes_the_next_back_off_short_again() -> None:
    async with following(page("10")) as each:
        each.transport.refusals.extend([Unreachable("refused")] * 8)
        watch = await each.watch()
        await asyncio.sleep(30)
        ended = asyncio.get_running_loop().time()
        watch.end()
        await each.watch(2)
        assert asyncio.get_running_loop().time() - ended < 0.2


async def test_a_server_that_was_started_again_is_followed_within_moments() -> None:
    second = page("50", pod("a", 40))
    async with following(page("10", pod("a", 1)), second) as each:
        watch = await each.watch()
        await asyncio.sleep(1.5)
        each.transport.refusals.extend([Unreachable("refused")] * 5)
        each.transport.refusals.append(ApiError(403, "Forbidden", "its own caches are empty"))
        each.transport.refusals.append(ApiError(429, "TooManyRequests", "storage is (re)initializing", 1.0))
        each.transport.refusals.append(expired())
        ended = asyncio.get_running_loop().time()
        watch.end()
        await each.watch(2)
        assert each.versions == {"a": "40"}
        unheard = (0.1 * (1 + 2 + 4 + 8 + 16) + 2) * 1.2
        refusing = 0.1 * (1 + 2) * 1.2 + 1.2
        assert asyncio.get_running_loop().time() - ended < unheard + refusing


async def test_a_server_that_calls_every_watch_too_old_is_listed_ever_more_seldom() -> None:
    async with following(*[page("10")] * 60) as each:
        each.transport.refusals.extend([expired()] * 60)
        await asyncio.sleep(600)
        assert 20 <= len(each.transport.requests) <= 35


async def test_a_404_of_a_proxy_takes_nothing_out_of_the_cache() -> None:
    async with following(page("10", pod("a", 1))) as each:
        watch = await each.watch()
        each.transport.refusals.append(ApiError(404, "", "HTTP 404 Not Found, not from the API server itself"))
        watch.end()
        await each.watch(2)
        assert (each.versions, each.informer.unserved) == ({"a": "1"}, False)


async def test_a_watch_refused_with_retry_after_waits_that_long() -> None:
    async with following(page("10")) as each:
        each.transport.refusals.append(ApiError(429, "TooManyRequests", "busy", 20.0))
        await each.watch()
        first, second = each.transport.opened
        assert second - first >= 20


async def test_a_list_refused_with_retry_after_is_asked_for_again_no_sooner() -> None:
    busy = [refusal(429, "TooManyRequests", headers={"retry-after": "8"})] * 4
    async with following(*busy, page("10")) as each:
        await each.informer.synced()
        at = [asked.at for asked in each.transport.requests]
        assert [later - earlier >= 8 for earlier, later in pairwise(at)] == [True] * 4


async def test_an_unreachable_server_is_asked_until_it_is_there() -> None:
    async with following(*[Unreachable("refused")] * 9, page("10", pod("a", 1))) as each:
        await asyncio.wait_for(each.informer.synced(), 120)
        assert each.versions == {"a": "1"}


async def test_a_page_of_html_instead_of_an_event_renews_the_watch() -> None:
    async with following(page("10")) as each:
        (await each.watch()).send_line(b"<html>502 Bad Gateway</html>")
        assert (await each.watch(2)).params["resourceVersion"] == "10"


async def test_bytes_that_are_no_text_renew_the_watch() -> None:
    async with following(page("10")) as each:
        (await each.watch()).send_line(b'{"type":"ADDED","object":{"metadata":{"name":"\xff"}}}')
        assert (await each.watch(2)).params["resourceVersion"] == "10"


async def test_an_answer_to_our_write_is_in_the_cache_at_once_and_its_own_event_tells_nothing_more() -> None:
    async with following(page("10", pod("a", 1))) as each:
        watch = await each.watch()
        each.informer.absorb(json.dumps(pod("a", 13)).encode())
        assert each.versions == {"a": "13"}
        for version in (12, 13):
            watch.send("MODIFIED", pod("a", version))
        await settle()
        assert each.told == [("a", None, "1"), ("a", "1", "13")]
        watch.send("MODIFIED", pod("a", 14))
        await settle()
        assert each.versions == {"a": "14"}


async def test_an_answer_that_comes_after_the_deletion_brings_nothing_back() -> None:
    async with following(page("10", pod("a", 1))) as each:
        (await each.watch()).send("DELETED", pod("a", 14))
        await settle()
        each.informer.absorb(json.dumps(pod("a", 12)).encode())
        assert each.versions == {}


async def test_an_answer_that_an_object_is_gone_removes_it_and_older_events_do_not_revive_it() -> None:
    async with following(page("10", pod("a", 1))) as each:
        watch = await each.watch()
        answer = {"kind": "Status", "status": "Success", "details": {"name": "a", "uid": "uid-a"}}
        each.informer.absorb(json.dumps(answer).encode())
        assert each.versions == {}
        watch.send("MODIFIED", pod("a", 12))
        watch.send("DELETED", pod("a", 13))
        await settle()
        assert each.told == [("a", None, "1"), ("a", "1", None)]
        watch.send("ADDED", pod("a", 14, uid="another"))
        await settle()
        assert each.versions == {"a": "14"}


async def test_the_answer_of_an_object_on_its_way_out_is_kept_as_such() -> None:
    async with following(page("10", pod("a", 1))) as each:
        await each.watch()
        body = pod("a", 12)
        body["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        each.informer.absorb(json.dumps(body).encode())
        known = each.informer.get("ns", "a")
        assert known is not None and known.metadata.terminating


async def test_a_list_older_than_our_write_does_not_take_it_back() -> None:
    async with following(page("10", pod("a", 1)), page("20", pod("a", 15))) as each:
        await each.watch()
        each.informer.absorb(json.dumps(pod("a", 25)).encode())
        each.informer.absorb(json.dumps(pod("b", 26)).encode())
        (await each.watch()).send("ERROR", _EXPIRED)
        await each.watch(2)
        assert each.versions == {"a": "25", "b": "26"}


@pytest.mark.parametrize(
    ("labels", "enters"),
    [({"app": "x", "rank": "0"}, True), ({"app": "x"}, False), ({"app": "y", "rank": "0"}, False), ({}, False)],
)
async def test_an_answer_enters_only_where_the_selector_reaches(labels: dict[str, str], enters: bool) -> None:
    async with following(page("10"), label_selector="app=x,rank") as each:
        await each.watch()
        each.informer.absorb(json.dumps(pod("a", 12, labels=labels)).encode())
        assert bool(each.versions) is enters


async def test_an_answer_of_another_namespace_does_not_enter() -> None:
    async with following(page("10"), namespace="elsewhere") as each:
        await each.watch()
        each.informer.absorb(json.dumps(pod("a", 12)).encode())
        assert each.versions == {}


async def test_indexes_and_namespaces_find_what_the_cache_holds() -> None:
    by_phase = {"phase": lambda each: [each.status.phase]}
    async with following(page("10", pod("a", 1, phase="Running"), pod("b", 2)), indexes=by_phase) as each:
        await each.informer.synced()
        assert [one.metadata.name for one in each.informer.by_index("phase", "Running")] == ["a"]
        (await each.watch()).send("MODIFIED", pod("a", 12, phase="Failed"))
        await settle()
        assert each.informer.by_index("phase", "Running") == []
        assert len(each.informer.all("ns")) == 2 and each.informer.all("other") == []


@pytest.mark.parametrize("bug", [RuntimeError("bug"), TimeoutError("bug"), OSError("bug")])
async def test_a_bug_in_a_handler_ends_the_informer_instead_of_being_taken_for_a_failure_of_the_server(
    bug: Exception,
) -> None:
    follower = Follower(FakeTransport(page("10")))

    def broken(_old: Pod | None, _new: Pod | None) -> None:
        raise bug

    follower.informer.on_change(broken)
    task = asyncio.create_task(follower.informer.run())
    (await follower.watch()).send("ADDED", pod("a", 12))
    with pytest.raises(type(bug)):
        await asyncio.wait_for(asyncio.shield(task), 600)
    assert task.done()


async def test_the_collector_rests_only_while_a_page_is_decoded() -> None:
    collecting: list[bool] = []

    def decode(body: bytes) -> Pod:
        collecting.append(gc.isenabled())
        return msgspec.json.decode(body, type=Pod)

    transport = FakeTransport(page("10", pod("a", 1)))
    informer: Informer[Pod] = Informer(Client(transport), PODS, decode)
    task = asyncio.create_task(informer.run())
    await informer.synced()
    assert collecting == [False] and gc.isenabled()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


class Templated(Struct, frozen=True):
    metadata: Meta
    status: msgspec.Raw = msgspec.Raw(b"{}")


async def test_bytes_kept_of_one_object_do_not_keep_its_whole_page() -> None:
    seen: list[int] = []

    def decode(body: bytes) -> Templated:
        assert type(body) is bytes
        seen.append(len(body))
        return msgspec.json.decode(body, type=Templated)

    reply = page("10", *[pod(f"p{n}", n + 1, phase="Running") for n in range(50)])
    informer: Informer[Templated] = Informer(Client(FakeTransport(reply)), PODS, decode)
    task = asyncio.create_task(informer.run())
    await informer.synced()
    assert len(seen) == 50 and max(seen) < len(reply.body) / 25
    assert bytes(informer.all()[0].status) == b'{"phase": "Running"}'
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def deep(name: str, version: int) -> bytes:
    """A pod that no reader gets to the bottom of."""
    depths = b'{"a":' * 20_000 + b"1" + b"}" * 20_000
    head = b'{"metadata":{"namespace":"default","name":"%s","resourceVersion":"%d"},"spec":' % (name.encode(), version)
    return head + depths + b"}"


async def test_what_is_nested_too_deep_hides_no_other_object() -> None:
    """A ControllerRevision takes any JSON; whoever may make one must not blind the controller of a whole cluster."""
    whole = page("10", pod("a", 1)).body
    listed = Reply(200, whole.replace(b'"items": [', b'"items": [' + deep("deep", 2) + b", "))
    async with following(listed) as each:
        await asyncio.wait_for(each.informer.synced(), 5)
        assert each.versions == {"a": "1", "deep": "2"}
        each.informer.absorb(deep("deep", 11))
        watch = await each.watch()
        watch.send_line(b'{"type":"ADDED","object":' + deep("other", 12) + b"}")
        watch.send_line(json.dumps({"type": "ADDED", "object": pod("b", 13)}).encode())
        await asyncio.sleep(0.1)
        assert each.versions == {"a": "1", "deep": "11", "other": "12", "b": "13"}
        assert each.informer.trouble == ""
