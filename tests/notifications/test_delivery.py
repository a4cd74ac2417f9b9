"""What becomes of a notification: a table of replies, and how long is waited for what."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from rollout_lws.notifications.delivery import (
    LIFETIME,
    LONGEST,
    TRIES,
    Again,
    Answered,
    Delivered,
    GivenUp,
    Outcome,
    Reply,
    Tries,
    Unanswered,
    outcome,
    retry_after,
)

NOW = datetime(2026, 11, 29, 12, 0, 0, tzinfo=UTC)
AWAY = Unanswered("cannot be reached")


def first(reply: Reply, spread: float = 0.0) -> Outcome:
    return outcome(reply, Tries().plus(reply), spread)


@pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
def test_what_is_taken_is_delivered(status: int) -> None:
    assert first(Answered(status)) == Delivered()


@pytest.mark.parametrize("status", [408, 429, 500, 501, 502, 503, 504, 507, 599])
def test_what_may_pass_is_tried_again(status: int) -> None:
    assert first(Answered(status)) == Again(1.0, f"answered {status}")


@pytest.mark.parametrize("status", [100, 400, 401, 403, 404, 405, 409, 410, 413, 422, 451])
def test_what_does_not_pass_is_given_up_at_once(status: int) -> None:
    assert first(Answered(status)) == GivenUp(f"answered {status}")


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_is_not_followed(status: int) -> None:
    assert first(Answered(status)) == GivenUp(f"answered {status}: a redirect is not followed")


def test_the_word_of_a_refusal_is_told() -> None:
    assert first(Answered(410, word="channel_is_archived")) == GivenUp("answered 410: channel_is_archived")


def waits(reply: Reply, spread: float) -> tuple[list[float], Outcome]:
    """Seconds between tries, until the last outcome."""
    tries, found = Tries(), []
    while True:
        tries = tries.plus(reply)
        reached = outcome(reply, tries, spread)
        if not isinstance(reached, Again):
            return found, reached
        found.append(reached.seconds)
        tries = Tries(tries.total, tries.failed, tries.age + reached.seconds)


@pytest.mark.parametrize("spread", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("reply", [AWAY, Answered(503), Answered(429), Answered(502)])
def test_a_receiver_that_is_not_there_is_waited_for_longer_and_longer_for_hours(reply: Reply, spread: float) -> None:
    seconds, last = waits(reply, spread)
    assert seconds[:5] == [each * (1 + spread / 2) for each in (1, 2, 4, 8, 16)]
    assert max(seconds) == LONGEST * (1 + spread / 2)
    assert LIFETIME - 2 * LONGEST < sum(seconds) <= LIFETIME
    assert len(seconds) < 150
    assert isinstance(last, GivenUp)
    assert last.why.endswith("h")


def test_a_receiver_that_fails_by_this_one_does_not_hold_up_the_others_for_long() -> None:
    seconds, last = waits(Answered(500), 1.0)
    assert len(seconds) == TRIES - 1
    assert sum(seconds) < 15 * 60
    assert last == GivenUp(f"answered 500, {TRIES} times")


def test_only_its_own_failures_count_as_the_receivers() -> None:
    tries = Tries()
    for reply in (AWAY, Answered(503), Answered(500), AWAY, Answered(501)):
        tries = tries.plus(reply)
    assert tries == Tries(5, 2)


@pytest.mark.parametrize(
    ("asked", "spread", "seconds"),
    [(None, 0.0, 1.0), (0.5, 0.0, 1.0), (90.0, 0.0, 90.0), (90.0, 1.0, 99.0), (3600.0, 0.0, 3600.0)],
)
def test_retry_after_is_the_least(asked: float | None, spread: float, seconds: float) -> None:
    reached = first(Answered(429, asked), spread)
    assert isinstance(reached, Again)
    assert reached.seconds == pytest.approx(seconds)


def test_a_retry_after_beyond_its_life_gives_it_up_now() -> None:
    assert isinstance(first(Answered(503, LIFETIME + 1)), GivenUp)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("120", 120.0),
        ("0", 0.0),
        ("9" * 400, 2 * LIFETIME),
        ("Sun, 29 Nov 2026 12:01:30 GMT", 90.0),
        ("Sun, 29 Nov 2026 11:00:00 GMT", None),
        ("Sun, 29 Nov 2026 12:01:30", None),
        ("Sun, 29 Nov 9999 12:01:30 GMT", 2 * LIFETIME),
        ("", None),
        ("-5", None),
        ("1.5", None),
        ("soon", None),
        ("١٢", None),
    ],
)
def test_retry_after_is_a_number_or_a_date(text: str, seconds: float | None) -> None:
    assert retry_after(text, NOW) == seconds
