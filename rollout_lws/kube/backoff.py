"""How long to wait before a watch is begun again: short after a good one, ever longer where waiting helps."""

from __future__ import annotations

import random

from rollout_lws.errors import ApiError, Unreachable

_FIRST, _LONGEST = 0.1, 30.0
#: Where nobody answers, nobody has to be spared, and a server that is back should not stay unheard for long.
_LONGEST_UNHEARD = 2.0
#: A watch that lived this long was a good one.
_GOOD_SECONDS = 1.0
#: One that ends again for being too old has to live so long: listing everything is dear.
_GOOD_SECONDS_OF_A_LIST = 60.0
#: Whatever a server asks for, a controller must not be deaf for longer.
_LONGEST_ASKED = 60.0


class BackOff:
    """Seconds between the attempts of one watch, in the order of what became of them."""

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
            # A server that answers again refuses a little at first: its own caches are empty.
            self._delay, self._heard_again = _FIRST, True
        if _is_expired(error) and not too_old_again and not isinstance(last, Unreachable):
            # After its restart a server knows no old version and says so to every watch. Twice in a row is no restart.
            return 0.0
        delay = min(self._delay, _LONGEST_UNHEARD if isinstance(error, Unreachable) else _LONGEST)
        self._delay = min(self._delay * 2, _LONGEST)
        asked = min(_LONGEST_ASKED, (isinstance(error, ApiError) and error.retry_after) or 0.0)
        return max(delay * self._chance.uniform(0.8, 1.2), asked * self._chance.uniform(1.0, 1.2))


def _is_expired(error: Exception | None) -> bool:
    return isinstance(error, ApiError) and error.code == 410
