"""Whole releases with a whole controller, whose Events a receiver is told, each once, whatever becomes of either."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from rollout_lws.errors import ApiError
from rollout_lws.notifications.delivery import LONGEST, Answered, Reply, Unanswered
from rollout_lws.notifications.outbox import Notifications
from rollout_lws.objects.resources import CRON_JOBS, EVENTS
from rollout_lws.sandbox.faults import Effect
from tests.metrics.tour import Scrape, scrape, value
from tests.notifications.receiver import OK, Got, Receiver, directory, notifications
from tests.scenarios.evals import EVALS, cron_job
from tests.scenarios.replicas import Replica, ReplicatedWorld
from tests.scenarios.shell import ShellWorld
from tests.scenarios.stories import at_rest, waiting_for_approval
from tests.scenarios.world import NAME, NAMESPACE

pytestmark = pytest.mark.looptime

NAMED = "hook"
HOUR = 3600.0


@pytest.fixture
def receiver() -> Receiver:
    return Receiver()


@pytest.fixture
async def world(receiver: Receiver, tmp_path: Path) -> AsyncIterator[ShellWorld]:
    made = ShellWorld()
    made.notifications = partial(notifications, directory(tmp_path / NAMED), receiver)
    yield made
    await made.gone()
    made.close()


def recorded(world: ShellWorld) -> Counter[tuple[str, str]]:
    """The Events that our controller has recorded, by reason and note."""
    ours = (each for each in world.server.list(EVENTS) if each.get("reportingController") == "rollout-lws")
    return Counter((each["reason"], each["note"]) for each in ours)


def count(told: Scrape, outcome: str) -> float | None:
    return value(told, "rollout_lws_notifications_total", destination=NAMED, outcome=outcome)


def assert_each_is_told_once(world: ShellWorld, receiver: Receiver) -> None:
    assert Counter(receiver.told()) == recorded(world)
    ids = [each["id"] for each in receiver.events]
    assert len(set(ids)) == len(ids)
    assert [each.headers["webhook-id"] for each in receiver.kept] == ids


async def released(world: ShellWorld, *steps: dict[str, Any]) -> None:
    """A release of v2, through an approval, to its end."""
    await at_rest(world, *(steps or ({"replicas": 1, "pause": {}}, {"replicas": "100%"})))
    world.set_image("v2")
    await world.until_state("AwaitingApproval")
    world.approve()
    await world.until_state("Healthy", 3600)
    await world.rest()


async def test_each_event_of_a_release_is_told_once_and_in_order(world: ShellWorld, receiver: Receiver) -> None:
    await released(world)
    assert_each_is_told_once(world, receiver)
    told = [reason for reason, _ in receiver.told()]
    assert told[0] == "Adopted"
    assert told[-1] == "Completed"
    assert {"ReleaseStarted", "BatchReady", "StepChanged", "Promoting", "Promoted"} <= {*told}
    times = [each["time"] for each in receiver.events]
    assert times == sorted(times)
    assert count(await scrape(world), "sent") == len(told)


async def test_it_says_where_the_release_stands_and_what_to_do(world: ShellWorld, receiver: Receiver) -> None:
    await at_rest(world, {"replicas": 1, "pause": {}}, {"replicas": "100%"})
    world.set_image("v2")
    await world.until_state("AwaitingApproval")
    await world.rest()
    (ready,) = [each for each in receiver.events if each["data"]["reason"] == "BatchReady"]
    data = ready["data"]
    assert ready["type"] == "io.rollout-lws.BatchReady"
    assert ready["subject"] == f"Rollout/{NAME}"
    assert ready["source"] == f"/apis/rollouts.kruise.io/v1beta1/namespaces/{NAMESPACE}/rollouts/{NAME}"
    assert data["rollout"] == {"namespace": NAMESPACE, "name": NAME, "uid": world.rollout["metadata"]["uid"]}
    assert data["workload"] == {"kind": "LeaderWorkerSet", "name": NAME}
    assert data["step"] == {"index": 1, "of": 2, "state": "StepPaused"}
    assert data["state"] == "AwaitingApproval"
    assert data["verdict"]["reason"] == "AwaitingApproval"
    assert data["verdict"]["needsPerson"]
    assert data["groups"] == {"stable": {"ready": 4, "total": 4}, "new": {"ready": 1, "total": 1}}
    status = world.status
    assert data["versions"]["stable"]["templateHash"] == status["stable"]["templateHash"]
    assert data["versions"]["new"]["templateHash"] == status["observedTemplateHash"]
    place = "" if NAMESPACE == "default" else f" -n {NAMESPACE}"
    assert data["next"] == [f"kubectl rollout-lws {verb} {NAME}{place}" for verb in ("promote", "abort")]


async def test_a_gate_tells_its_result_though_the_step_ends_with_it(world: ShellWorld, receiver: Receiver) -> None:
    world.server.create(CRON_JOBS, cron_job())
    await at_rest(world, {"replicas": 1, "gates": [EVALS], "pause": {"duration": 0}}, {"replicas": "100%"})
    world.set_image("v2")
    await world.until_state("Analyzing")
    await world.until_state("Healthy", 3600)
    await world.rest()
    assert_each_is_told_once(world, receiver)
    (passed,) = [each["data"] for each in receiver.events if each["data"]["reason"] == "GatePassed"]
    (gate,) = passed["gates"]
    assert (gate["name"], gate["kind"], gate["result"]) == ("evals", "job", "Passed")
    assert gate["job"]
    assert gate["seconds"] > 0


async def test_a_failed_gate_names_the_commands_that_go_on_and_back(world: ShellWorld, receiver: Receiver) -> None:
    world.server.create(CRON_JOBS, cron_job(exit_code="1"))
    await at_rest(world, {"replicas": 1, "gates": [EVALS], "pause": {"duration": 0}}, {"replicas": "100%"})
    world.set_image("v2")
    await world.until_state("Stalled")
    await world.rest()
    (failed,) = [each["data"] for each in receiver.events if each["data"]["reason"] == "GateFailed"]
    assert failed["type"] == "Warning"
    assert [command.split()[2:5] for command in failed["next"]] == [
        ["abort", NAME],
        ["retry", NAME],
        ["skip", NAME, "evals"],
    ]


async def test_a_receiver_that_is_down_for_an_hour_gets_all_of_it_later(world: ShellWorld, receiver: Receiver) -> None:
    await at_rest(world)
    down = [world.now.timestamp()]
    receiver.answer = lambda _: Unanswered("cannot be reached") if world.now.timestamp() < down[0] + HOUR else OK
    world.set_image("v2")
    await world.until_state("AwaitingApproval")
    waiting = await scrape(world)
    assert (value(waiting, "rollout_lws_notifications_waiting", destination=NAMED) or 0) >= 1
    world.approve()
    await world.until_state("Healthy", 3000)
    assert world.now.timestamp() < down[0] + HOUR, "no release waits for a receiver"
    tries = len(receiver.got)
    await world.sleep(HOUR + 2 * LONGEST)
    assert_each_is_told_once(world, receiver)
    assert tries < 50
    after = await scrape(world)
    assert count(after, "failed") == count(after, "dropped") == 0
    assert value(after, "rollout_lws_notifications_waiting", destination=NAMED) == 0
    assert value(after, "rollout_lws_notifications_oldest_seconds", destination=NAMED) == 0


async def test_a_receiver_that_hangs_does_not_slow_the_release(receiver: Receiver, tmp_path: Path) -> None:
    took = []
    for answer in (OK, None):
        receiver.answer = lambda _, answer=answer: answer  # type: ignore[misc]
        world = ShellWorld()
        world.notifications = partial(notifications, directory(tmp_path / NAMED), receiver)
        begun = world.now
        await released(world)
        took.append((world.now - begun).total_seconds())
        await world.gone()
        world.close()
    assert took[0] == pytest.approx(took[1], abs=1)


async def test_retry_after_is_obeyed(world: ShellWorld, receiver: Receiver) -> None:
    def answer(_: Got) -> Reply:
        return Answered(429, 90.0) if len(receiver.got) == 1 else OK

    receiver.answer = answer
    await at_rest(world)
    await world.sleep(200)
    first, second = receiver.got[:2]
    assert first.headers["webhook-id"] == second.headers["webhook-id"]
    assert first.body == second.body
    assert 90 <= second.at - first.at <= 100
    assert_each_is_told_once(world, receiver)


async def test_what_is_refused_is_told_once_and_the_next_goes_on(world: ShellWorld, receiver: Receiver) -> None:
    receiver.answer = lambda got: Answered(400) if got.event["data"]["reason"] == "ReleaseStarted" else OK
    await released(world)
    refused = [each for each in receiver.got if each.event["data"]["reason"] == "ReleaseStarted"]
    assert len(refused) == 1
    assert Counter(receiver.told()) == recorded(world) - Counter(
        (each.event["data"]["reason"], each.event["data"]["message"]) for each in refused
    )
    assert count(await scrape(world), "failed") == 1


async def test_controllers_that_are_killed_and_begin_again_tell_nothing_twice(
    world: ShellWorld, receiver: Receiver
) -> None:
    await at_rest(world)
    world.set_image("v2")
    for _ in range(12):
        await world.sleep(7)
        world.stop_controller()
        await world.sleep(1)
        world.start_controller()
    await world.until_state("AwaitingApproval")
    world.stop_controller()
    world.start_controller()
    await world.sleep(5)
    world.approve()
    await world.until_state("Healthy", 3600)
    await world.rest()
    said = Counter(receiver.told())
    assert max(said.values()) == 1
    ids = {each["id"] for each in receiver.events}
    assert len(ids) == len(receiver.events)
    assert {"ReleaseStarted", "Promoted", "Completed"} <= {reason for reason, _ in said}
    assert said - recorded(world) == Counter()


async def test_a_standby_that_takes_over_tells_only_what_comes(
    world: ShellWorld, receiver: Receiver, tmp_path: Path
) -> None:
    await at_rest(world)
    world.set_image("v2")
    await world.until_state("AwaitingApproval")
    await world.rest()
    before = len(receiver.kept)
    world.stop_controller()
    second = Receiver()
    world.notifications = partial(notifications, directory(tmp_path / NAMED), second)
    world.start_controller()
    await world.sleep(60)
    assert second.got == []
    world.approve()
    await world.until_state("Healthy", 3600)
    await world.rest()
    assert len(receiver.kept) == before
    both = Receiver(kept=[*receiver.kept, *second.kept])
    assert_each_is_told_once(world, both)


@pytest.mark.parametrize("fate", [Replica.kill, Replica.cut, Replica.terminate], ids=["killed", "cut off", "ended"])
async def test_another_leader_goes_on_and_says_nothing_again(
    fate: Callable[[Replica], Awaitable[None] | None], receiver: Receiver, tmp_path: Path
) -> None:
    world = ReplicatedWorld()
    world.notifications = partial(notifications, directory(tmp_path / NAMED), receiver)
    try:
        await at_rest(world)
        await waiting_for_approval(world)
        await world.rest()
        before = Counter(receiver.told())
        leader = world.leader
        other = world.other(leader)
        gone = fate(leader)
        if gone is not None:
            await gone
        await world.until(lambda: world.leads(other), "the other leads", 60)
        await world.sleep(30)
        assert Counter(receiver.told()) == before, "what has been told is not told again"
        world.approve()
        await world.until_state("Healthy", 3600)
        await world.rest()
        assert_each_is_told_once(world, receiver)
        assert {"Adopted", "ReleaseStarted", "Promoted", "Completed"} <= {reason for reason, _ in receiver.told()}
    finally:
        world.stop_controller()
        world.close()


async def test_what_the_api_server_does_not_take_as_an_event_is_told_all_the_same(
    world: ShellWorld, receiver: Receiver
) -> None:
    denied = ApiError(403, "Forbidden", 'User "x" cannot create resource "events"')
    world.faults.add(Effect(refusal=denied), "create", EVENTS.plural, count=None)
    await released(world)
    assert recorded(world) == Counter()
    said = Counter(reason for reason, _ in receiver.told())
    assert {"Adopted", "ReleaseStarted", "Promoted", "Completed"} <= {*said}
    assert max(Counter(receiver.told()).values()) == 1


async def test_a_status_that_is_written_over_and_over_is_told_once(world: ShellWorld, receiver: Receiver) -> None:
    """Answers to writes get lost, and others write meanwhile."""
    await at_rest(world)
    world.faults.add(Effect(lost=True, carried_out=True), "patch", count=3)
    world.set_image("v2")
    await world.until_state("AwaitingApproval", 3600)
    world.faults.add(Effect(lost=True), "patch", count=3)
    world.approve()
    await world.until_state("Healthy", 3600)
    await world.rest()
    said = Counter(receiver.told())
    assert max(said.values()) == 1
    assert said == recorded(world)
    assert said.total() == len({each["id"] for each in receiver.events})


async def test_the_same_again_is_no_news(world: ShellWorld, receiver: Receiver) -> None:
    """A tool that resets the hold again and again is one Event that counts, and one notification."""
    await at_rest(world)
    for _ in range(3):
        world.patch_lws({"rolloutStrategy": {"rollingUpdateConfiguration": {"partition": 0}}})
        await world.sleep(20)
    resets = [message for reason, message in receiver.told() if reason == "HoldReset"]
    assert len(resets) == len({*resets}) >= 1
    series = [each.get("series", {}).get("count", 1) for each in world.server.list(EVENTS) if "HoldReset" in str(each)]
    assert sum(series) >= 3


async def test_a_bug_in_what_is_told_stops_no_release(
    world: ShellWorld, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def tell(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(Notifications, "tell", tell)
    await released(world)
    told = await scrape(world)
    assert value(told, "rollout_lws_reconcile_errors_total", kind="bug") == 0
    failed = [each for each in caplog.records if each.message == "notification failed"]
    assert len(failed) == recorded(world).total()


async def test_what_is_queued_when_a_controller_ends_is_sent_or_counted(world: ShellWorld, receiver: Receiver) -> None:
    receiver.answer = lambda _: None
    await released(world)
    told = recorded(world).total()
    metrics = world.metrics
    await world.gone()
    assert receiver.closed == 1
    text = metrics.text().decode()
    assert f'rollout_lws_notifications_total{{destination="{NAMED}",outcome="dropped"}} {float(told)}' in text
