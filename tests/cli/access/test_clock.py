"""The API server's clock, by the dates of its answers."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from rollout_lws.cli.access.clock import ServerClock

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


class Machine:
    """This machine's clock, and a server whose clock is some seconds ahead."""

    def __init__(self, ahead: float) -> None:
        self.now, self.ahead = NOON.timestamp(), ahead
        self.clock = ServerClock(lambda: self.now)

    def ask(self, seconds: float = 0.0) -> None:
        """A request whose answer takes so many seconds, of which the server looks at its clock half way."""
        asked, self.now = self.now, self.now + seconds / 2
        date = datetime.fromtimestamp(self.now + self.ahead, UTC)
        self.now += seconds / 2
        self.clock.heard(format_datetime(date, usegmt=True), asked)

    @property
    def error(self) -> float:
        return abs(self.clock.now().timestamp() - self.now - self.ahead)


def test_before_the_first_answer_it_is_this_machines() -> None:
    machine = Machine(500)
    assert machine.clock.now() == NOON


@pytest.mark.parametrize("ahead", [0.0, 0.9, -0.3, 3600.25, -86400.0])
def test_the_first_answer_tells_it_within_half_a_second_and_further_ones_closer(ahead: float) -> None:
    machine = Machine(ahead)
    machine.ask()
    assert machine.error <= 0.5
    for _ in range(40):
        machine.now += 1.03
        machine.ask()
    assert machine.error < 0.05


def test_an_answer_that_took_long_makes_it_no_worse() -> None:
    machine = Machine(7.0)
    for _ in range(40):
        machine.now += 1.03
        machine.ask()
    machine.ask(20)
    assert machine.error < 0.05


def test_a_clock_that_was_set_is_believed_at_once() -> None:
    machine = Machine(7.0)
    machine.ask()
    machine.ahead = -300.0
    machine.ask()
    assert machine.error <= 0.5


@pytest.mark.parametrize("date", [None, "", "yesterday", "Thu, 99 Jan 2026 12:00:00 GMT"])
def test_an_answer_without_a_date_says_nothing(date: str | None) -> None:
    machine = Machine(7.0)
    machine.clock.heard(date, machine.now)
    assert machine.clock.now() == NOON
    machine.clock.heard("Thu, 01 Jan 2026 12:00:00 -0000", machine.now)
    assert machine.clock.now() == NOON + timedelta(seconds=0.5)
