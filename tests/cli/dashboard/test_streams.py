"""What open pages are told, as the cluster changes under them, and what it costs."""

from __future__ import annotations

import asyncio
import socket
import time
import tracemalloc
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import datetime
from email.utils import formatdate
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import pytest

from rollout_lws.cli.dashboard import release_feed
from rollout_lws.cli.dashboard.release_feed import ReleaseFeed
from rollout_lws.cli.dashboard.serving import Place, serving
from rollout_lws.cli.dashboard.sse import event
from rollout_lws.cli.demo import manifests
from rollout_lws.cli.rollouts import summary
from rollout_lws.errors import ApiError
from rollout_lws.objects.resources import CORE_EVENTS, LEADER_WORKER_SETS, NAMESPACES
from rollout_lws.sandbox.faults import Effect
from tests.cli.conftest import World
from tests.cli.dashboard.pages import PATIENCE, Browser, browser, dashboard, eventually, page_of
from tests.cli.dashboard.test_server import put, watches
from tests.cli.get.objects import pod
from tests.cli.states import AWAITING, HEALTHY, LOADING

pytestmark = pytest.mark.rare(3)

Object = dict[str, Any]
HOSTILE = "</script><img src=x onerror=alert(1)>\n\nevent: gone\ndata: {}\n\n\x1b[2J\u2028‮"


@pytest.fixture
async def page(world: World) -> AsyncIterator[Browser]:
    async with dashboard(world) as found:
        yield found


def state(value: str) -> Callable[[Object], bool]:
    return lambda release: bool(release["state"] == value)


async def test_a_release_is_told_as_it_changes(world: World, page: Browser) -> None:
    world.release(**LOADING | {"observedRolloutID": "r7"})
    async with page.release() as stream:
        assert (await stream.next())[0] == "hello"
        seen = await stream.until("release")
        assert (seen["state"], seen["release"], seen["at"]) == ("Loading", "r7", 2)
        put(world, pod("llama", 0, "old"))
        seen = await stream.until("release", lambda told: bool(told["versions"][0]["groups"]))
        assert [each["state"] for each in seen["versions"][0]["groups"]] == ["ready"]
        world.tell(**AWAITING | {"observedRolloutID": "r7"})
        seen = await stream.until("release", state("AwaitingApproval"))
        assert next(each for each in seen["offers"] if each["action"] == "approve")["refused"] == ""


async def test_a_canary_that_is_made_and_a_workload_that_the_plan_names_anew_are_followed(
    world: World, page: Browser
) -> None:
    world.release(**LOADING)
    lws = world.do(lambda: world.server.get(LEADER_WORKER_SETS, "default", "llama"))
    async with page.release() as stream:
        await stream.until("release")
        labels = {"rollouts.kruise.io/canary-leaderworkerset": "llama"}
        canary = {**lws, "metadata": {"name": "llama-canary", "namespace": "default", "labels": labels}}
        world.do(lambda: world.server.create(LEADER_WORKER_SETS, canary))
        await stream.until("release", lambda told: [each["role"] for each in told["versions"]] == ["stable", "canary"])
        other = {**lws, "metadata": {"name": "mistral", "namespace": "default"}}
        world.do(lambda: world.server.create(LEADER_WORKER_SETS, other))
        world.do(lambda: world.server.delete(world.rollouts, "default", "llama"))
        assert "was deleted" in (await stream.until("gone"))["message"]
        renamed = manifests.rollout(world.rollouts.api_version, lws["metadata"])
        renamed["spec"]["workloadRef"]["name"] = "mistral"
        world.do(lambda: world.server.create(world.rollouts, renamed))
        seen = await stream.until("release")
        assert [each["workload"] for each in seen["versions"]] == ["mistral"]


async def test_a_rollout_that_is_gone_is_told_once_and_its_trouble_with_it(
    world: World, page: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks, take = list[None](), ReleaseFeed._take

    def counted(feed: ReleaseFeed) -> None:
        take(feed)
        looks.append(None)

    def fail(*_: object) -> None:
        raise ZeroDivisionError("a flaw")

    monkeypatch.setattr(ReleaseFeed, "_take", counted)
    world.release(**LOADING)
    async with page.release() as stream:
        with monkeypatch.context() as flawed:
            flawed.setattr(release_feed, "view", fail)
            world.tell(**AWAITING)
            assert "a flaw" in (await stream.until("trouble"))["message"]
        world.do(lambda: world.server.delete(world.rollouts, "default", "llama"))
        await stream.settles(lambda known: "gone" in known and known["trouble"]["message"] == "")
        before = len(looks)
        # What belonged to it changes all the same.
        put(world, pod("llama", 0, "old"))
        await eventually(lambda: len(looks) > before)
        lws = world.do(lambda: world.server.get(LEADER_WORKER_SETS, "default", "llama"))
        made = manifests.rollout(world.rollouts.api_version, lws["metadata"])
        world.do(lambda: world.server.create(world.rollouts, made))
        kinds = [(await stream.next())[0]]
        while kinds[-1] != "release":
            kinds.append((await stream.next())[0])
    assert "gone" not in kinds


async def test_a_rollout_that_is_not_there_yet_is_waited_for(world: World, page: Browser) -> None:
    async with page.release() as stream:
        assert "there is no Rollout 'llama' in namespace 'default'" in (await stream.until("gone"))["message"]
        world.release(**HEALTHY)
        await stream.until("release", state("Healthy"))


async def test_the_list_tells_what_has_changed_and_what_is_gone(world: World) -> None:
    world.release(**LOADING)
    second = manifests.rollout(world.rollouts.api_version, {"name": "other", "namespace": "team"})
    world.do(lambda: world.server.create(NAMESPACES, NAMESPACES.manifest("team")))
    async with dashboard(world) as page, page.stream("/-/stream/list") as stream:
        found = await stream.until("rows", lambda told: bool(told["rows"]))
        (first,) = found["rows"]
        assert (found["all"], first["name"], first["state"], first["step"]) == (True, "llama", "Loading", "2/3")
        world.do(lambda: world.server.create(world.rollouts, second))
        found = await stream.until("rows")
        assert [(each["namespace"], each["name"]) for each in found["rows"]] == [("team", "other")]
        assert not found["all"]
        world.tell(**AWAITING)
        found = await stream.until("rows")
        assert [(each["name"], each["state"]) for each in found["rows"]] == [("llama", "AwaitingApproval")]
        world.do(lambda: world.server.delete(world.rollouts, "default", "llama"))
        assert (await stream.until("rows"))["gone"] == [first["uid"]]


async def test_the_list_of_one_namespace_has_no_other_rows(world: World) -> None:
    world.release(**LOADING)
    async with dashboard(world, namespace="team") as page, page.stream("/-/stream/list") as stream:
        assert (await stream.until("hello"))["namespace"] == "team"
        assert await stream.until("rows") == {"all": True, "rows": [], "gone": []}


def happens(world: World, name: str, *, kind: str = "Rollout", about: str = "llama", **more: Any) -> None:
    made = {
        "metadata": {"name": name, "namespace": "default"},
        "involvedObject": {"kind": kind, "name": about, "namespace": "default"},
        "type": "Normal",
        "reason": "StepReady",
        "message": "step 1 is ready",
        "firstTimestamp": "2026-01-01T11:00:00Z",
        **more,
    }
    world.do(lambda: world.server.create(CORE_EVENTS, made))


async def test_events_are_told_at_first_and_as_they_happen(world: World, page: Browser) -> None:
    world.release(**LOADING)
    happens(world, "one")
    happens(world, "of-another", about="mistral")
    happens(world, "of-a-pod", kind="Pod", about="llama-0")
    async with page.release() as stream:
        found = await stream.until("events")
        assert found["all"]
        (first,) = found["events"]
        assert (first["about"], first["reason"], first["count"]) == ("Rollout/llama", "StepReady", 1)
        assert first["first"] == "2026-01-01T11:00:00.000Z"
        happens(world, "warning-of-a-pod", kind="Pod", about="llama-0", type="Warning", reason="BackOff")
        found = await stream.until("events")
        assert (found["all"], [each["reason"] for each in found["events"]]) == (False, ["BackOff"])
        world.do(lambda: world.server.patch(CORE_EVENTS, "default", "one", {"count": 7}))
        found = await stream.until("events")
        assert [(each["uid"], each["count"]) for each in found["events"]] == [(first["uid"], 7)]


async def test_names_and_messages_are_text_and_begin_no_event_of_their_own(world: World, page: Browser) -> None:
    cause = {"workload": "llama", "group": "0", "reason": HOSTILE, "message": HOSTILE}
    world.release(**LOADING | {"message": HOSTILE, "notReadyGroups": [cause]})
    happens(world, "hostile", message=HOSTILE, reason=HOSTILE, type="Warning")
    async with page.stream("/-/stream/list") as stream:
        await stream.until("rows", lambda told: [each["message"] for each in told["rows"]] == [HOSTILE])
    async with page.release() as stream:
        kinds = [(await stream.next())[0] for _ in range(3)]
        assert sorted(kinds) == ["events", "hello", "release"]
    async with page.release() as stream:
        seen = await stream.until("release")
        assert (seen["message"], seen["causes"][0]["message"]) == (HOSTILE, HOSTILE)
    line = event("release", {"message": HOSTILE})
    assert line.count(b"\n") == 3 and line.isascii()


async def test_a_cluster_that_goes_away_is_told_and_comes_back(world: World, page: Browser) -> None:
    world.release(**LOADING)
    faults = world.http.gate.faults

    def stop() -> None:
        faults.stopped = True
        faults.cut_watches()

    async with page.release() as stream, page.stream("/-/stream/list") as listed:
        await stream.until("release", state("Loading"))
        await listed.until("rows", lambda told: bool(told["rows"]))
        world.do(stop)
        for each in (stream, listed):
            told = await each.until("trouble")
            assert told["old"] and told["message"]
        world.do(lambda: setattr(faults, "stopped", False))
        world.tell(**AWAITING)
        await stream.settles(
            lambda known: (
                known.get("trouble") == {"message": "", "old": False}
                and known.get("release", {}).get("state") == "AwaitingApproval"
            )
        )
        await listed.until("rows", lambda told: [each["state"] for each in told["rows"]] == ["AwaitingApproval"])


def forbid(world: World, resource: str) -> None:
    said = f'{resource} is forbidden: User "jane" cannot list resource "{resource}"'
    effect = Effect(refusal=ApiError(403, "Forbidden", said))
    for verb in ("list", "watch"):
        world.http.gate.faults.add(effect, verb, resource, count=None)


async def test_what_the_user_may_not_see_is_told_and_the_rest_is_shown(world: World, page: Browser) -> None:
    world.release(**LOADING)
    forbid(world, "pods")
    forbid(world, "events")
    async with page.release() as stream:
        known = await stream.settles(
            lambda known: "release" in known and str(known.get("trouble")).count("cannot list resource") == 2
        )
        assert known["release"]["state"] == "Loading"
        for kind in ("pods", "events"):
            assert f'User "jane" cannot list resource "{kind}"' in known["trouble"]["message"]
        assert not known["trouble"]["old"]


async def test_rollouts_that_may_not_be_listed_are_told_and_shown_once_they_may(
    world: World, page: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rollout_lws.cli.watch.cache._REFUSED", 0.1)
    world.release(**LOADING)
    forbid(world, "rollouts")
    async with page.release() as stream:
        assert 'cannot list resource "rollouts"' in (await stream.until("trouble"))["message"]
        world.do(world.http.gate.faults.restore)
        assert await stream.until("trouble") == {"message": "", "old": False}
        await stream.until("release", state("Loading"))


async def test_a_release_that_this_program_does_not_understand_is_told_and_the_next_is_shown(
    world: World, page: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.release(**LOADING)
    view = release_feed.view

    def fails_once(*_: Any) -> Object:
        monkeypatch.setattr(release_feed, "view", view)
        raise ZeroDivisionError("a flaw")

    monkeypatch.setattr(release_feed, "view", fails_once)
    async with page.release() as stream:
        told = await stream.until("trouble")
        assert (told["old"], "cannot be shown: ZeroDivisionError('a flaw')" in told["message"]) == (True, True)
        world.tell(**AWAITING)
        await stream.until("release", state("AwaitingApproval"))


async def test_a_rollout_that_cannot_be_read_hides_no_other_one(
    world: World, page: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.release(**LOADING)
    broken = manifests.rollout(world.rollouts.api_version, {"name": "broken", "namespace": "default"})
    broken["metadata"] = {"name": "broken", "namespace": "default"}

    def misshapen(rollout: Object) -> Object:
        is_broken = rollout["metadata"]["name"] == "broken" and "strategy" in rollout["spec"]
        return rollout["nothing"] if is_broken else summary(rollout)

    monkeypatch.setattr("rollout_lws.cli.dashboard.rows.summary", misshapen)
    world.do(lambda: world.server.create(world.rollouts, broken))
    async with page.stream("/-/stream/list") as stream:
        rows: dict[str, Object] = {}
        while set(rows) != {"llama", "broken"} or rows["llama"]["state"] != "Loading":
            rows |= {each["name"]: each for each in (await stream.until("rows"))["rows"]}
        assert "this Rollout cannot be read" in rows["broken"]["message"]


async def test_the_last_page_closes_the_watches_of_a_release_and_no_thread_is_left(world: World) -> None:
    world.release(**LOADING)
    async with dashboard(world) as page:
        await eventually(lambda: watches() == 1)
        async with page.release() as one:
            await one.until("events")
            opened = watches()
            assert opened > 4
            async with page.release() as other:
                await other.until("release")
                assert watches() == opened
            await asyncio.sleep(0.1)
            assert watches() == opened
            world.tell(**AWAITING)
            await one.until("release", state("AwaitingApproval"))
        await eventually(lambda: watches() == 1)
    await eventually(lambda: watches() == 0)


async def test_a_page_that_leaves_does_not_end_what_others_wait_for(world: World, page: Browser) -> None:
    world.release(**LOADING)
    async with page.release() as stays:
        await stays.until("release")
        for _ in range(3):
            async with page.release() as leaves:
                await leaves.until("release")
        world.tell(**AWAITING)
        await stays.until("release", state("AwaitingApproval"))


async def test_the_server_ends_at_once_though_streams_are_open(world: World) -> None:
    world.release(**LOADING)
    async with AsyncExitStack() as browsers:
        async with serving(page_of(world), Place()) as served:
            page = await browsers.enter_async_context(browser(served.url))
            stream = await browsers.enter_async_context(page.release())
            listed = await browsers.enter_async_context(page.stream("/-/stream/list"))
            await stream.until("events")
            await listed.until("rows")
            began = time.monotonic()
        assert time.monotonic() - began < 2
        await eventually(lambda: watches() == 0)


@asynccontextmanager
async def not_reading(page: Browser, path: str) -> AsyncIterator[socket.socket]:
    """A page whose browser takes nothing of the stream, with as little room on the way as there can be."""
    port = urlsplit(page.base).port
    cookie = "; ".join(f"{each.key}={each.value}" for each in page.session.cookie_jar)
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.setblocking(False)
        await asyncio.get_running_loop().sock_connect(connection, ("127.0.0.1", port))
        request = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nCookie: {cookie}\r\n\r\n"
        await asyncio.get_running_loop().sock_sendall(connection, request.encode())
        yield connection


def begins(text: str, told: Object) -> bool:
    return str(told["message"]).startswith(text)


@pytest.mark.long
async def test_a_page_that_does_not_read_holds_up_none_and_its_state_is_not_queued(
    world: World, page: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(release_feed, "_GATHER", 0.0)
    world.release(**LOADING)
    async with not_reading(page, "/-/stream/release/default/llama") as slow, page.release() as stream:
        await stream.until("release")
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        # 300 states of 40 kB are 12 MB, of which the system's buffers take some.
        for turn in range(300):
            message = f"{turn} {'x' * 4000}"
            cause = {"workload": "llama", "group": "0", "reason": "Slow", "message": message}
            world.tell(**LOADING | {"message": message, "notReadyGroups": [cause] * 9})
            await stream.until("release", partial(begins, f"{turn} "))
        grown = tracemalloc.get_traced_memory()[0] - before
        tracemalloc.stop()
        assert grown < 3_000_000
        world.tell(**AWAITING)
        # What it reads in the end is the newest state, after what was under way, and not all of them.
        read, loop = b"", asyncio.get_running_loop()
        async with asyncio.timeout(PATIENCE):
            while b'"AwaitingApproval"' not in read:
                read += await loop.sock_recv(slow, 1 << 16)
        assert read.count(b"event: release") < 250


async def test_the_clock_of_the_page_is_the_api_servers(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rollout_lws.cli.dashboard.sse.send.__defaults__", (0.2,))
    ahead = 3600.0
    monkeypatch.setattr("rollout_lws.sandbox.http.formatdate", lambda at, usegmt: formatdate(at + ahead, usegmt=usegmt))
    async with dashboard(world) as page, page.stream("/-/stream/list") as stream:
        await stream.until("rows")
        for kind in ("clock", "clock"):
            told = datetime.fromisoformat((await stream.until(kind))["now"]).timestamp()
            assert abs(told - time.time() - ahead) < 2
