"""The command over HTTP: what is told, what is left out, and when following ends."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any

import pytest

from rollout_lws.cli.access.transport import Transport
from rollout_lws.cli.watch.cache import WatchCache
from rollout_lws.errors import ApiError
from rollout_lws.objects.resources import CORE_EVENTS, EVENTS, PODS, Resource
from rollout_lws.sandbox.behaviours import events as recorded
from rollout_lws.sandbox.behaviours.base import micro_time
from rollout_lws.sandbox.faults import Effect
from tests.cli.conftest import World
from tests.cli.states import HEALTHY, LOADING


def record(world: World, resource: Resource, name: str, reason: str, note: str, **more: Any) -> str:
    """An Event of events.k8s.io about an object; its name."""
    return str(world.do(lambda: record_here(world, resource, name, reason, note, **more))["metadata"]["name"])


def record_here(world: World, resource: Resource, name: str, reason: str, note: str, **more: Any) -> Mapping[str, Any]:
    """The same on the server's own thread."""
    about = {"metadata": {"name": name, "namespace": "default", "uid": f"uid-of-{name}"}}
    create = recorded.event(resource, about, world.server.clock(), reason, note, reporter="kubelet", **more)
    return world.server.create(EVENTS, dict(create.body))


def count(world: World, name: str, times: int, last: str) -> None:
    series = {"series": {"count": times, "lastObservedTime": last}}
    world.do(lambda: world.server.patch(EVENTS, "default", name, series, "application/merge-patch+json"))


def test_what_happened_to_a_release_is_told_in_order_and_nothing_else(world: World) -> None:
    world.release(**LOADING)
    record(world, PODS, "llama-0-1", "Pulled", "image is there")
    record(world, PODS, "other-0", "Pulled", "of another LWS")
    record(world, PODS, "llama-canary-0", "BackOff", "back-off\nrestarting \x1b[2J container", warning=True)
    record(world, world.rollouts, "llama", "BatchReady", "step 1")
    result = world.run("events", "llama")
    assert result.exit_code == 0
    header, *lines = result.stdout.splitlines()
    assert header.split() == ["TIME", "TYPE", "REASON", "OBJECT", "MESSAGE"]
    assert [line.split(maxsplit=4)[1:] for line in lines] == [
        ["Normal", "Pulled", "Pod/llama-0-1", "image is there"],
        ["Warning", "BackOff", "Pod/llama-canary-0", "back-off restarting [2J container"],
        ["Normal", "BatchReady", "Rollout/llama", "step 1"],
    ]
    assert all(line[:20].count("-") == 2 and line[23] == "Z" for line in lines)
    assert "\x1b" not in result.stdout


@pytest.mark.parametrize("output", ["json", "jsonl"])
def test_machines_get_documents(world: World, output: str) -> None:
    world.release(**LOADING)
    name = record(world, PODS, "llama-0", "BackOff", "again", warning=True)
    count(world, name, 7, "2099-01-01T00:00:00.000000Z")
    printed = world.run("events", "llama", "-o", output).stdout
    [told] = json.loads(printed)["events"] if output == "json" else map(json.loads, printed.splitlines())
    assert (told["object"], told["count"], told["time"]) == ("Pod/llama-0", 7, "2099-01-01T00:00:00.000Z")
    assert (told["type"], told["reason"], told["message"], told["from"]) == ("Warning", "BackOff", "again", "kubelet")


def test_events_of_the_older_api_are_told_as_well(world: World) -> None:
    world.release(**LOADING)
    about = {"kind": "Pod", "name": "llama-1", "namespace": "default"}
    body = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "llama-1.17", "namespace": "default"},
        "involvedObject": about,
        "reason": "FailedScheduling",
        "message": "0/8 nodes are available",
        "type": "Warning",
        "count": 12,
        "firstTimestamp": "2026-01-01T12:00:00Z",
        "lastTimestamp": "2026-01-01T12:10:00Z",
        "source": {"component": "default-scheduler"},
    }
    world.do(lambda: world.server.create(CORE_EVENTS, body))
    [told] = json.loads(world.run("events", "llama", "-o", "json").stdout)["events"]
    assert (told["count"], told["firstTime"], told["from"]) == (12, "2026-01-01T12:00:00.000Z", "default-scheduler")


def test_none_at_all_is_told_on_stderr(world: World) -> None:
    world.release(**LOADING)
    result = world.run("events", "llama")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "No Events are left of this release" in result.stderr


def test_following_tells_each_when_it_happens_and_ends_with_the_release(world: World) -> None:
    world.release(**LOADING)
    before = record(world, PODS, "llama-0", "BackOff", "again", warning=True)

    def happen() -> None:
        # Not later than the Event that ends the release: Events that arrive together are told by time.
        series = {"series": {"count": 4, "lastObservedTime": micro_time(world.server.clock())}}
        world.server.patch(EVENTS, "default", before, series, "application/merge-patch+json")
        for resource, name, note in ((PODS, "other-0", "not ours"), (world.rollouts, "llama", "release 1 is complete")):
            about = {"metadata": {"name": name, "namespace": "default", "uid": name}}
            create = recorded.event(resource, about, world.server.clock(), "Completed", note, reporter="us")
            world.server.patch(world.rollouts, "default", "llama", {"status": HEALTHY}, subresource="status")
            world.server.create(EVENTS, dict(create.body))

    world.on_request("watch", "events", happen)
    result = world.run("events", "llama", "-w")
    assert result.exit_code == 0
    messages = [line.split(maxsplit=4)[4] for line in result.stdout.splitlines()]
    assert messages[0] == "again"
    assert messages[1].startswith("again (x4 over ")
    assert messages[2:] == ["release 1 is complete"]


def test_following_survives_a_server_that_is_away_and_one_that_has_forgotten(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rollout_lws.cli.watch.stream.RECONNECT", 0.05)
    world.release(**LOADING)
    faults = world.http.gate.faults
    world.do(lambda: faults.refuse(503, "watch", "events", nth=1))
    world.do(lambda: faults.refuse(410, "watch", "events", nth=2))

    world.on_request("watch", "events", lambda: end(world), nth=3)
    result = world.run("events", "llama", "-w", "-o", "jsonl")
    assert [json.loads(line)["message"] for line in result.stdout.splitlines()] == ["done"]
    assert "trying again" in result.stderr


def end(world: World) -> None:
    """The release ends, and an Event tells so."""
    world.server.patch(world.rollouts, "default", "llama", {"status": HEALTHY}, subresource="status")
    record_here(world, world.rollouts, "llama", "Completed", "done")


def test_following_asks_a_busy_server_for_the_rollout_again_at_once(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rollout_lws.cli.watch.cache.RECONNECT", 0.05)
    world.release(**LOADING)
    world.do(lambda: world.http.gate.faults.refuse(503, "*", "rollouts", nth=2, count=2))
    world.on_request("watch", "events", lambda: end(world))
    began = time.monotonic()
    result = world.run("events", "llama", "-w", "-o", "jsonl")
    assert time.monotonic() - began < 9
    assert [json.loads(line)["message"] for line in result.stdout.splitlines()] == ["done"]
    assert "currently unable to handle the request; trying again" in result.stderr


def test_following_ends_when_the_rollout_may_not_be_watched(world: World) -> None:
    world.release(**LOADING)
    refusal = ApiError(403, "Forbidden", 'User "ann" cannot list resource "rollouts"')
    world.do(lambda: world.http.gate.faults.add(Effect(refusal=refusal), "*", "rollouts", nth=2, count=None))
    assert 'User "ann" cannot list' in str(world.run("events", "llama", "-w").exception)


def test_following_ends_when_the_rollout_is_deleted(world: World) -> None:
    world.release(**LOADING)

    def happen() -> None:
        record_here(world, PODS, "llama-0", "Killing", "stopping")
        world.server.delete(world.rollouts, "default", "llama")

    world.on_request("watch", "events", happen)
    began = time.monotonic()
    result = world.run("events", "llama", "-w", "-o", "jsonl")
    assert time.monotonic() - began < 9
    assert str(result.exception) == "rollout/llama was deleted while its Events were followed"
    assert [json.loads(line)["reason"] for line in result.stdout.splitlines()] == ["Killing"]


def test_a_namespace_with_many_events_of_others_is_never_in_memory_as_a_whole(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rollout_lws.cli.watch.cache.RECONNECT", 0.05)
    monkeypatch.setattr("rollout_lws.cli.access.transport._PAGE", 10)
    monkeypatch.setattr("rollout_lws.cli.watch.cache._PAGE", 10)
    world.release(**LOADING)
    for number in range(25):
        record(world, PODS, f"other-{number}", "Pulled", "of another LWS")
    # The watch ends, and all Events are listed anew.
    world.do(lambda: world.http.gate.faults.refuse(410, "watch", "events"))
    world.on_request("watch", "events", lambda: end(world), nth=2)
    sizes, kept = [], []
    get, objects = Transport.get, WatchCache.objects

    def counted(asked: Transport, path: str, **query: str) -> dict[str, Any]:
        answer = get(asked, path, **query)
        sizes.extend([len(answer.get("items") or ())] if path.endswith("/events") else ())
        return answer

    def looked(cache: WatchCache[Any]) -> list[Any] | None:
        kept.append(objects(cache))
        return kept[-1]

    monkeypatch.setattr(Transport, "get", counted)
    monkeypatch.setattr(WatchCache, "objects", looked)
    result = world.run("events", "llama", "-w", "-o", "jsonl")
    assert [json.loads(line)["message"] for line in result.stdout.splitlines()] == ["done"]
    assert sizes[:6] == [10, 10, 5, 10, 10, 5]
    assert max(len(each or ()) for each in kept) == 1


def test_a_release_that_has_ended_is_not_followed(world: World) -> None:
    world.release(**HEALTHY)
    record(world, world.rollouts, "llama", "Completed", "done")
    assert world.run("events", "llama", "-w").stdout.endswith("done\n")


def test_json_has_no_end_to_wait_for(world: World) -> None:
    result = world.run("events", "llama", "-w", "-o", "json")
    assert result.exit_code == 2
    assert "use -o jsonl" in result.stderr
