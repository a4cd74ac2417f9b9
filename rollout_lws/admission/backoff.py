"""Back-off for restoring a CA that another writer has removed from a bundle.

That writer may remove it each time, and two that overwrite each other immediately never stop.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

#: Seconds.
FIRST, LONGEST = 1.0, 300.0
#: A CA that stayed for so many seconds was not part of a write conflict.
STAYED = 600.0


@dataclass(frozen=True, slots=True)
class Backoff:
    """``pause`` is the last wait, ``back`` when the CA was last restored, ``due`` when it may be restored again, None
    while it is there. All in seconds of a monotonic clock.
    """

    pause: float = 0.0
    back: float | None = None
    due: float | None = None

    def vanished(self, now: float, jitter: float) -> Backoff:
        """``jitter``, from 0 to 1, extends the wait by up to half, so that replicas do not write at the same moment."""
        if self.due is not None:
            return self
        fought = self.back is not None and now - self.back < STAYED
        pause = min(LONGEST, max(FIRST, 2 * self.pause)) if fought else FIRST
        return Backoff(pause, self.back, now + pause * (1 + jitter / 2))

    def put_back(self, now: float) -> Backoff:
        return replace(self, back=now, due=None)

    def there(self) -> Backoff:
        """The CA is in the bundle, whichever writer added it."""
        return self if self.due is None else replace(self, due=None)
