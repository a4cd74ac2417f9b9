"""The API server's clock, from the Date headers of its answers: since when a step waits is told by that clock."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime


class ServerClock:
    """By how much the server's clock differs from this machine's, which runs by ``local``; any thread may use it."""

    def __init__(self, local: Callable[[], float] = time.time) -> None:
        self._local = local
        #: The least and the most seconds by which the server's clock is ahead; None before the first answer.
        self._ahead: tuple[float, float] | None = None

    def now(self) -> datetime:
        """The server's time; this machine's before the first answer."""
        least, most = self._ahead or (0.0, 0.0)
        return datetime.fromtimestamp(self._local(), UTC) + timedelta(seconds=(least + most) / 2)

    def heard(self, date: str | None, asked: float) -> None:
        """Take note of the Date of an answer to a request that was sent at ``asked`` of the local clock."""
        answered = self._local()
        try:
            told = parsedate_to_datetime(date or "")
        except (TypeError, ValueError):
            return
        # A Date without a zone is in UTC, and its fraction of a second is cut off.
        seconds = (told if told.tzinfo else told.replace(tzinfo=UTC)).timestamp()
        found = seconds - answered, seconds + 1 - asked
        least, most = self._ahead or found
        narrowed = max(least, found[0]), min(most, found[1])
        # One of the clocks was set when the two do not overlap.
        self._ahead = narrowed if narrowed[0] <= narrowed[1] else found
