"""The waits between the attempts of one watch, attempt by attempt."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from rollout_lws.errors import ApiError, Unreachable
from rollout_lws.kube.backoff import BackOff

UNHEARD = Unreachable("refused")
EXPIRED = ApiError(410, "Expired", "too old")
BUSY = ApiError(503, "", "no backend")
#: What a server that was just started says first.
STARTING = (ApiError(403, "Forbidden", "its caches are empty"), ApiError(429, "TooManyRequests", "starting", 1.0))


class _Middle(random.Random):
    """No chance: the middle of what it may be."""

    def uniform(self, a: float, b: float) -> float:
        return (a + b) / 2


#: How each attempt ended, and for how many seconds its watch was open before.
Attempt = tuple[Exception | None, float]


def waits(attempts: Sequence[Attempt], chance: random.Random | None = None) -> list[float]:
    back_off = BackOff(chance or _Middle())
    return [back_off.after(error, lived) for error, lived in attempts]


def short(*errors: Exception | None) -> list[Attempt]:
    return [(error, 0.0) for error in errors]


@pytest.mark.parametrize("error", [None, BUSY, ApiError(404, "", "of a proxy"), ValueError("no event")])
def test_whoever_is_ended_again_and_again_asks_ever_more_seldom_and_half_a_minute_apart_at_last(
    error: Exception | None,
) -> None:
    assert waits(short(*[error] * 11)) == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0]


def test_a_server_that_nobody_hears_is_asked_every_two_seconds() -> None:
    assert waits(short(*[UNHEARD] * 8)) == [0.1, 0.2, 0.4, 0.8, 1.6, 2.0, 2.0, 2.0]


def test_a_watch_that_lived_makes_the_wait_short_again() -> None:
    assert waits([*short(*[BUSY] * 6), (None, 1.0), (None, 0.9), (None, 0.0)])[-3:] == [0.1, 0.2, 0.4]


def test_a_server_that_answers_again_is_asked_again_soon() -> None:
    assert waits(short(*[UNHEARD] * 9, BUSY, BUSY, BUSY))[-3:] == [0.1, 0.2, 0.4]


def test_one_that_answers_by_turns_is_asked_again_soon_only_once() -> None:
    turns = waits(short(*[UNHEARD, BUSY] * 12))
    assert turns[-2:] == [2.0, 30.0]


def test_after_a_good_watch_an_answer_after_silence_makes_it_short_anew() -> None:
    by_turns = short(*[UNHEARD, BUSY] * 6)
    assert waits([*by_turns, (None, 5.0), *short(*[UNHEARD] * 6, BUSY)])[-1] == 0.1


def test_what_is_too_old_is_listed_at_once_and_ever_more_seldom_where_that_does_not_help() -> None:
    assert waits([(None, 30.0), *short(*[EXPIRED] * 4)]) == [0.1, 0.0, 0.2, 0.4, 0.8]


def test_a_watch_of_moments_between_two_that_are_too_old_is_no_good_one() -> None:
    assert waits([(EXPIRED, 0.0), (EXPIRED, 5.0), (EXPIRED, 59.0), (EXPIRED, 60.0)]) == [0.0, 0.1, 0.2, 0.1]


def test_a_server_started_again_is_followed_within_moments() -> None:
    told = waits([(None, 30.0), *short(*[UNHEARD] * 5, *STARTING, EXPIRED)])
    assert told == [0.1, 0.2, 0.4, 0.8, 1.6, 2.0, 0.1, 1.1, 0.0]


def test_what_is_too_old_right_after_silence_is_not_listed_without_a_wait() -> None:
    # A server that ends its connections and calls everything too old would be listed without pause.
    assert all(wait > 0 for wait in waits(short(*[UNHEARD, EXPIRED] * 5)))


@pytest.mark.parametrize(("asked", "waited"), [(20.0, 22.0), (3600.0, 66.0)])
def test_a_server_may_ask_for_a_pause_but_not_for_more_than_a_minute(asked: float, waited: float) -> None:
    assert waits(short(ApiError(429, "TooManyRequests", "busy", asked))) == [pytest.approx(waited)]


def test_a_pause_that_is_asked_for_does_not_shorten_the_wait() -> None:
    told = waits(short(*[ApiError(429, "TooManyRequests", "busy", 1.0)] * 9))
    assert told == pytest.approx([1.1, 1.1, 1.1, 1.1, 1.6, 3.2, 6.4, 12.8, 25.6])


def test_many_controllers_do_not_come_at_one_moment_and_none_comes_before_it_was_asked_to() -> None:
    chance = random.Random(1)
    first = [waits(short(None), chance)[0] for _ in range(200)]
    assert min(first) >= 0.08 and max(first) <= 0.12 and max(first) - min(first) > 0.03
    asked = [waits(short(ApiError(429, "", "busy", 20.0)), chance)[0] for _ in range(200)]
    assert min(asked) >= 20 and max(asked) <= 24 and max(asked) - min(asked) > 3
