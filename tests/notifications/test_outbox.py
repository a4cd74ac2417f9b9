"""The queues: in order, bounded, never in the way, and what a directory says by now."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from standardwebhooks import Webhook

from rollout_lws.metrics import Metrics
from rollout_lws.notifications.delivery import LIFETIME, LONGEST, TRIES, Answered, Unanswered
from rollout_lws.notifications.outbox import FRESH_SECONDS, MOST, Notifications
from rollout_lws.rollout.reasons import EventReason
from tests.notifications.receiver import KEY, OK, Got, Receiver, directory, notifications
from tests.notifications.samples import transition
from tests.scenarios.names import ORIGIN
from tests.virtual_time import LoopClock

pytestmark = pytest.mark.looptime

AWAY = Unanswered("cannot be reached")
SECRET = "https://hooks.slack.invalid/services/verysecret"


class Told:
    """Notifications to receivers in memory, and how often each was what."""

    def __init__(self, where: str, *more: str) -> None:
        self.receiver, self.metrics = Receiver(), Metrics()
        self.sent: Notifications = notifications(where, self.receiver, LoopClock(ORIGIN), self.metrics, *more)

    def tell(self, *notes: object) -> None:
        for note in notes:
            self.sent.tell(transition(note=str(note)))

    def notes(self) -> list[str]:
        return [each.event["data"]["message"] for each in self.receiver.kept]

    def count(self, outcome: str, destination: str = "hook") -> float | None:
        labels = {"destination": destination, "outcome": outcome}
        return self.metrics.registry.get_sample_value("rollout_lws_notifications_total", labels)


@pytest.fixture
def told(tmp_path: Path) -> Told:
    return Told(directory(tmp_path / "hook", SECRET))


async def test_they_are_sent_in_order_and_signed(told: Told) -> None:
    told.tell(1, 2, 3)
    assert told.receiver.got == []
    await asyncio.sleep(0.1)
    assert told.notes() == ["1", "2", "3"]
    for got in told.receiver.kept:
        assert got.headers["content-type"] == "application/cloudevents+json"
        assert got.headers["webhook-timestamp"] == str(int(ORIGIN.timestamp()))
        signature = Webhook(KEY).sign(got.event["id"], ORIGIN, got.body.decode())
        assert got.headers["webhook-signature"] == signature
    assert (told.count("sent"), told.count("failed"), told.count("dropped")) == (3, 0, 0)


async def test_order_is_kept_over_failures(told: Told) -> None:
    told.receiver.answer = lambda got: OK if got.at > 60 else Answered(503)
    for note in range(5):
        told.tell(note)
        await asyncio.sleep(7)
    await asyncio.sleep(LONGEST)
    assert told.notes() == ["0", "1", "2", "3", "4"]


async def test_another_try_is_signed_anew_with_the_same_id(told: Told) -> None:
    told.receiver.answer = lambda got: OK if got.at > 60 else AWAY
    told.tell("late")
    await asyncio.sleep(LONGEST)
    first, *_, last = told.receiver.got
    assert first.body == last.body
    assert first.headers["webhook-id"] == last.headers["webhook-id"]
    assert int(last.headers["webhook-timestamp"]) >= int(first.headers["webhook-timestamp"]) + 60
    assert first.headers["webhook-signature"] != last.headers["webhook-signature"]


async def test_one_that_the_receiver_fails_by_does_not_hold_up_the_others(told: Told) -> None:
    told.receiver.answer = lambda got: Answered(500) if got.event["data"]["message"] == "bad" else OK
    told.tell("bad", "good")
    await asyncio.sleep(15 * 60)
    assert told.notes() == ["good"]
    assert len(told.receiver.got) == TRIES + 1
    assert (told.count("sent"), told.count("failed")) == (1, 1)


async def test_a_receiver_that_never_comes_back_is_given_up_and_told(
    told: Told, caplog: pytest.LogCaptureFixture
) -> None:
    told.receiver.answer = lambda _: AWAY
    told.tell("lost")
    await asyncio.sleep(LIFETIME + 60)
    assert told.count("failed") == 1
    assert next(iter(told.sent)).waiting == 0
    said = [(each.levelname, each.message) for each in caplog.records]
    assert said == [
        ("WARNING", "notification not delivered, trying again"),
        ("ERROR", "notification not delivered"),
    ]
    (last,) = [each for each in caplog.records if each.levelname == "ERROR"]
    assert last.fields["destination"] == "hook"  # type: ignore[attr-defined]
    assert last.fields["host"] == "https://hooks.slack.invalid"  # type: ignore[attr-defined]
    assert "verysecret" not in "".join(str(vars(each)) for each in caplog.records)


async def test_that_it_is_delivered_again_is_told_once(told: Told, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    told.receiver.answer = lambda got: OK if got.at > 600 else AWAY
    told.tell(1, 2)
    await asyncio.sleep(1000)
    assert [each.message for each in caplog.records] == [
        "notification not delivered, trying again",
        "notifications are delivered again",
    ]


async def test_the_oldest_gives_way_to_the_newest(told: Told, caplog: pytest.LogCaptureFixture) -> None:
    told.receiver.answer = lambda got: OK if got.at > 60 else None
    told.tell("on its way")
    await asyncio.sleep(1)
    told.tell(*range(MOST + 9))
    (box,) = told.sent
    assert box.waiting == MOST
    assert told.count("dropped") == 10
    assert [each.message for each in caplog.records] == ["notifications dropped"]
    await asyncio.sleep(LONGEST)
    assert told.notes() == ["on its way", *(str(each) for each in range(10, MOST + 9))]
    assert told.count("sent") == MOST


async def test_telling_takes_no_time_however_the_receiver_behaves(told: Told) -> None:
    told.receiver.answer = lambda _: None
    begun = asyncio.get_running_loop().time()
    told.tell(*range(100))
    assert asyncio.get_running_loop().time() == begun
    (box,) = told.sent
    await asyncio.sleep(5)
    assert (box.waiting, box.oldest_seconds) == (100, 5)


async def test_a_receiver_that_hangs_holds_up_no_other_one(tmp_path: Path) -> None:
    told = Told(directory(tmp_path / "hook"), directory(tmp_path / "slack", format="slack", keys=""))
    told.receiver.answer = lambda got: None if got.to.name == "hook" else OK
    told.tell(1, 2)
    await asyncio.sleep(1)
    assert [got.to.name for got in told.receiver.kept] == ["slack", "slack"]
    assert told.receiver.kept[0].headers["content-type"] == "application/json; charset=utf-8"
    assert "webhook-signature" not in told.receiver.kept[0].headers
    assert (told.count("sent", "slack"), told.count("sent", "hook")) == (2, 0)


async def test_keys_and_urls_change_without_a_restart(told: Told, tmp_path: Path) -> None:
    told.tell(1)
    await asyncio.sleep(FRESH_SECONDS)
    other = "whsec_" + "A" * 32
    directory(tmp_path / "hook", "https://other.invalid/", keys=f"{KEY}\n{other}")
    told.tell(2)
    await asyncio.sleep(1)
    first, second = told.receiver.kept
    assert (first.to.url, second.to.url) == (SECRET, "https://other.invalid/")
    assert [len(each.headers["webhook-signature"].split()) for each in (first, second)] == [1, 2]


async def test_what_cannot_be_read_any_more_leaves_what_was_read(
    told: Told, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "hook" / "url").write_text("verysecret")
    told.tell(1, 2)
    await asyncio.sleep(1)
    assert [each.to.url for each in told.receiver.kept] == [SECRET, SECRET]
    assert [each.message for each in caplog.records] == ["notification settings unreadable"]
    assert "verysecret" not in str(vars(caplog.records[0]))


@pytest.mark.parametrize(
    ("answer", "seconds", "sent"),
    [(lambda _: OK, 0.0, 3), (lambda _: None, 1.0, 0), (lambda _: AWAY, 1.0, 0), (lambda _: Answered(429, 60), 1.0, 0)],
)
async def test_the_end_waits_for_a_moment_and_no_longer(
    told: Told, answer: Callable[[Got], Answered | Unanswered | None], seconds: float, sent: int
) -> None:
    told.receiver.answer = answer
    told.tell(1, 2, 3)
    begun = asyncio.get_running_loop().time()
    await told.sent.close()
    assert asyncio.get_running_loop().time() - begun == pytest.approx(seconds)
    assert (told.count("sent"), told.count("dropped")) == (sent, 3 - sent)
    assert told.receiver.closed == 1
    told.receiver.answer = lambda _: OK
    told.tell("the next leadership")
    await asyncio.sleep(1)
    assert told.notes()[sent:] == ["the next leadership"]


async def test_a_destination_that_wants_some_of_it_gets_these_alone(told: Told, tmp_path: Path) -> None:
    directory(tmp_path / "hook", only="Completed\nAborted")
    for reason in (EventReason.COMPLETED, EventReason.STALLED, EventReason.ABORTED):
        told.sent.tell(transition(reason, note=reason.value))
    await asyncio.sleep(FRESH_SECONDS)
    assert told.notes() == ["Completed", "Aborted"]
    directory(tmp_path / "hook", only="Warning")
    given = transition(note="a warning")
    normal = replace(given, event=replace(given.event, type="Normal", note="none"))
    for each in (given, normal):
        told.sent.tell(each)
    await asyncio.sleep(FRESH_SECONDS)
    assert told.notes() == ["Completed", "Aborted", "a warning"]
    assert (told.count("sent"), told.count("dropped")) == (3, 0)
