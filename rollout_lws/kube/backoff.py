"""Back-off of watches: short after a healthy watch, ever longer where waiting helps."""

from __future__ import annotations

import random

from rollout_lws.errors import ApiError, Unreachable

_FIRST, _LONGEST = 0.1, 30.0
#: An unreachable server needs no sparing, and once it is back the watch should resume soon.
_LONGEST_UNHEARD = 2.0
#: A watch that lived this long counts as healthy.
_GOOD_SECONDS = 1.0
#: A watch that repeatedly expires has to live this long: a full list is expensive.
_GOOD_SECONDS_OF_A_LIST = 60.0
#: Upper limit of a server's Retry-After, so that the controller does not miss changes for longer.
_LONGEST_ASKED = 60.0


class BackOff:
    """Seconds between the attempts of one watch, from the sequence of their results."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._delay = _FIRST
        self._last: Exception | None = None
        self._heard_again = False

    def after(self, error: Exception | None, lived: float) -> float:
        """Seconds to wait after an attempt that ended with ``error`` and whose watch was open for ``lived`` seconds."""
        last, self._last = self._last, error
        too_old_again = _is_expired(error) and _is_expired(last)
        if lived >= (_GOOD_SECONDS_OF_A_LIST if too_old_again else _GOOD_SECONDS):
            self._delay, self._heard_again = _FIRST, False
        if isinstance(last, Unreachable) and isinstance(error, ApiError) and not self._heard_again:
            # A server that is back denies some requests at first: its own caches are empty.
            self._delay, self._heard_again = _FIRST, True
        if _is_expired(error) and not too_old_again and not isinstance(last, Unreachable):
            # A restarted server knows no old version and answers 410 to every watch. Twice in a row is no restart.
            return 0.0
        delay = min(self._delay, _LONGEST_UNHEARD if isinstance(error, Unreachable) else _LONGEST)
        self._delay = min(self._delay * 2, _LONGEST)
        asked = min(_LONGEST_ASKED, (isinstance(error, ApiError) and error.retry_after) or 0.0)
        return max(delay * self._chance.uniform(0.8, 1.2), asked * self._chance.uniform(1.0, 1.2))


def _is_expired(error: Exception | None) -> bool:
    return isinstance(error, ApiError) and error.code == 410
