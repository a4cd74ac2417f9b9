"""How long a replica waits before it puts its authority back that somebody has taken out of a bundle.

Whoever takes it out may do so each time, and two that write at once whenever the other has written never end.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

#: Seconds.
FIRST, LONGEST = 1.0, 300.0
#: What has stayed for so many seconds was not fought over.
STAYED = 600.0


@dataclass(frozen=True, slots=True)
class Backoff:
    """``pause`` is the last wait, ``back`` when the authority was put back last, ``due`` when it may be put back again,
    None while it is there. All are seconds, of a clock that nobody sets.
    """

    pause: float = 0.0
    back: float | None = None
    due: float | None = None

    def vanished(self, now: float, jitter: float) -> Backoff:
        """``jitter``, from 0 to 1, makes a wait up to half as long again: replicas must not write at one moment."""
        if self.due is not None:
            return self
        fought = self.back is not None and now - self.back < STAYED
        pause = min(LONGEST, max(FIRST, 2 * self.pause)) if fought else FIRST
        return Backoff(pause, self.back, now + pause * (1 + jitter / 2))

    def put_back(self, now: float) -> Backoff:
        return replace(self, back=now, due=None)

    def there(self) -> Backoff:
        """It is in the bundle, whoever has put it there."""
        return self if self.due is None else replace(self, due=None)
