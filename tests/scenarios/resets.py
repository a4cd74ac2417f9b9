"""Whether the hold is away for a reason that anybody has to accept, told from the LWS alone as it changes.

It knows nothing of how the controller judges a reset: the promises are its own.
"""

from __future__ import annotations

import json
from typing import Any

from tests.scenarios.count import HOLD, partition
from tests.scenarios.names import KEYS

#: The hold is back so many seconds after a reset, and what has begun in them is over as long after that.
MOMENT_SECONDS = 5
#: A tool answers each repair within so many seconds, and so many times in a row, before it is left alone.
ANSWER_SECONDS, MOST_ANSWERS = 10, 5


class Resets:
    """Follows one LWS by ``changed``; times are seconds."""

    def __init__(self) -> None:
        self._answers = 0
        self._reset_at: float | None = None
        self._repaired_at: float | None = None
        self._by_hand = False

    def changed(self, lws: dict[str, Any], now: float) -> None:
        annotations = lws["metadata"].get("annotations") or {}
        if annotations.get(KEYS.release_hold) == "true":
            self._by_hand = True
        if partition(lws) >= HOLD:
            if self._reset_at is not None:
                self._repaired_at = now
            self._reset_at, self._by_hand = None, self._by_hand and KEYS.release_hold in annotations
            return
        written = (json.loads(annotations.get(KEYS.original) or "{}").get("written") or {}).get("partition")
        if written == partition(lws) or self._reset_at is not None:
            # A window of the controller's, or the same reset still.
            return
        answered = self._repaired_at is not None and now - self._repaired_at <= ANSWER_SECONDS
        self._answers = self._answers + 1 if answered else 0
        self._reset_at = now

    @property
    def is_away(self) -> bool:
        """Whether somebody has reset it, and it is not back."""
        return self._reset_at is not None

    def excuse(self, now: float) -> bool:
        """Whether a group may go over to a version that nobody has approved."""
        since = self._repaired_at if self._reset_at is None else self._reset_at
        lately = since is not None and now - since <= MOMENT_SECONDS
        return self._by_hand or self._answers >= MOST_ANSWERS or lately
