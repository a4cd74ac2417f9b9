"""Events: counted, limited, dropped, and never in anybody's way."""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from rollout_lws.errors import Unreachable
from rollout_lws.kube.client import Client
from rollout_lws.kube.events import EventRecorder
from rollout_lws.objects.meta import Meta
from rollout_lws.objects.resources import LEADER_WORKER_SETS, NODES
from tests.kube.fakes import Asked, FakeTransport, Reply, ok, refusal

pytestmark = pytest.mark.looptime

_START = datetime(2026, 1, 1, 12, tzinfo=UTC)


class Recording:
    """A recorder over a scripted server that accepts everything unless told otherwise."""

    def __init__(self, *replies: Reply | Exception) -> None:
        self.transport = FakeTransport(*replies, *[ok({}, 201)] * 2000)
        self.now = _START
        self.recorder = EventRecorder(Client(self.transport), "ctl", "host-1", lambda: self.now)

    def record(self, note: str = "note", *, name: str = "a", reason: str = "Step") -> bool:
        about = Meta(name=name, namespace="ns", uid=f"uid-{name}", resource_version="7")
        return self.recorder.record(LEADER_WORKER_SETS, about, type="Normal", reason=reason, note=note)

    async def sent(self) -> list[Asked]:
        await asyncio.sleep(0.5)
        return self.transport.requests


@pytest.fixture
def recording() -> Recording:
    return Recording()


async def test_an_event_says_what_happened_to_which_object(recording: Recording) -> None:
    recording.record("two of four groups are ready")
    (asked,) = await recording.sent()
    assert (asked.method, asked.path) == ("POST", "/apis/events.k8s.io/v1/namespaces/ns/events")
    body = asked.body
    assert body["eventTime"] == "2026-01-01T12:00:00.000000Z"
    assert (body["type"], body["reason"], body["note"]) == ("Normal", "Step", "two of four groups are ready")
    assert (body["reportingController"], body["reportingInstance"]) == ("ctl", "host-1")
    assert body["action"], "the API refuses an event without an action"
    assert body["regarding"] == {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "namespace": "ns",
        "name": "a",
        "uid": "uid-a",
        "resourceVersion": "7",
    }


async def test_the_same_again_is_counted_on_the_first_one(recording: Recording) -> None:
    recording.record()
    await recording.sent()
    recording.now += timedelta(minutes=9)
    recording.record()
    await recording.sent()
    recording.now += timedelta(minutes=9)
    recording.record()
    first, *counts = await recording.sent()
    assert [each.method for each in counts] == ["PATCH", "PATCH"]
    assert {each.path.rsplit("/", 1)[1] for each in counts} == {first.body["metadata"]["name"]}
    assert [each.body["series"]["count"] for each in counts] == [2, 3]
    assert counts[-1].body["series"]["lastObservedTime"] == "2026-01-01T12:18:00.000000Z"


async def test_after_ten_quiet_minutes_the_same_is_a_new_event(recording: Recording) -> None:
    recording.record()
    recording.now += timedelta(minutes=10)
    recording.record()
    sent = await recording.sent()
    assert [each.method for each in sent] == ["POST", "POST"]
    assert len({each.body["metadata"]["name"] for each in sent}) == 2


async def test_another_note_reason_or_object_is_another_event(recording: Recording) -> None:
    recording.record()
    recording.record("another")
    recording.record(reason="Other")
    recording.record(name="b")
    assert [each.method for each in await recording.sent()] == ["POST"] * 4


async def test_only_the_newest_count_of_those_waiting_is_sent(recording: Recording) -> None:
    for _ in range(5):
        recording.record()
    sent = await recording.sent()
    assert [each.method for each in sent] == ["POST", "PATCH"]
    assert sent[1].body["series"]["count"] == 5


async def test_an_object_that_talks_too_much_is_limited_and_others_are_not(recording: Recording) -> None:
    for number in range(40):
        recording.record(f"note {number}")
    recording.record(name="b")
    assert len(await recording.sent()) == 26
    assert recording.recorder.dropped == 15
    recording.now += timedelta(seconds=12)
    recording.record("one more")
    recording.record("and one too many")
    assert len(await recording.sent()) == 27


async def test_counts_are_limited_like_events_and_lose_nothing(recording: Recording) -> None:
    for _ in range(100):
        recording.record()
        await recording.sent()
    assert len(recording.transport.requests) == 25
    recording.now += timedelta(seconds=12)
    recording.record()
    assert (await recording.sent())[-1].body["series"]["count"] == 101


async def test_recording_never_waits_and_drops_what_is_too_much(recording: Recording) -> None:
    for number in range(1100):
        recording.record(name=f"object-{number}")
    assert recording.transport.requests == []
    assert recording.recorder.dropped == 100
    assert len(await recording.sent()) == 1000


async def test_a_forbidden_event_is_logged_once_and_hurts_nobody(caplog: pytest.LogCaptureFixture) -> None:
    recording = Recording(*[refusal(403, "Forbidden", "may not create events")] * 3)
    with caplog.at_level(logging.WARNING):
        for number in range(3):
            recording.record(f"note {number}")
        await recording.sent()
    assert [each.message for each in caplog.records] == ["events cannot be recorded"]
    assert recording.recorder.dropped == 3


@pytest.mark.parametrize("failure", [Unreachable("cut"), refusal(500, "InternalError")])
async def test_an_event_that_was_lost_is_not_counted_upon(failure: Reply | Exception) -> None:
    recording = Recording(failure)
    recording.record()
    await recording.sent()
    recording.record()
    assert [each.method for each in await recording.sent()] == ["POST", "POST"]


async def test_an_event_that_the_server_let_go_is_made_anew_without_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    recording = Recording(ok({}, 201), refusal(404, "NotFound"))
    for _ in range(3):
        recording.record()
        await recording.sent()
    assert [each.method for each in recording.transport.requests] == ["POST", "PATCH", "POST"]
    assert caplog.records == []


async def test_notes_and_names_fit_the_limits_of_the_api_in_bytes(recording: Recording) -> None:
    recording.record("ü" * 1000, name="a" * 229 + "." + "b" * 23, reason="R" * 200)
    (asked,) = await recording.sent()
    assert asked.body["note"] == "ü" * 512
    assert len(asked.body["reason"]) == len(asked.body["action"]) == 128
    assert len(asked.body["metadata"]["name"]) <= 253
    assert ".." not in asked.body["metadata"]["name"]


async def test_an_event_about_an_object_of_the_cluster_goes_to_the_default_namespace(recording: Recording) -> None:
    recording.recorder.record(NODES, Meta(name="n", uid="u"), type="Warning", reason="R", note="note")
    (asked,) = await recording.sent()
    assert asked.path == "/apis/events.k8s.io/v1/namespaces/default/events"


async def test_what_is_queued_is_sent_before_the_end(recording: Recording) -> None:
    recording.record()
    await recording.recorder.close()
    assert len(recording.transport.requests) == 1


async def test_the_end_does_not_wait_longer_than_a_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    recording = Recording()

    async def hang(*_: Any, **__: Any) -> Reply:
        await asyncio.sleep(3600)
        raise AssertionError

    monkeypatch.setattr(recording.transport, "request", hang)
    recording.record()
    began = asyncio.get_running_loop().time()
    await recording.recorder.close()
    assert asyncio.get_running_loop().time() - began <= 1.01


async def test_news_is_what_is_neither_the_same_again_nor_too_much(recording: Recording) -> None:
    assert [recording.record(), recording.record()] == [True, False]
    recording.now += timedelta(minutes=11)
    assert recording.record()
    said = [recording.record(f"note {number}", name="b") for number in range(40)]
    assert said == [True] * 25 + [False] * 15


async def test_news_is_news_though_the_api_server_takes_no_events(recording: Recording) -> None:
    said = [recording.record(name=f"rollout-{number}") for number in range(1500)]
    assert all(said)
    assert recording.recorder.dropped == 500
