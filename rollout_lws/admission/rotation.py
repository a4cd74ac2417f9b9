"""Certificate rotation: when to replace a certificate, and in which order, so that only trusted ones are served."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from rollout_lws.admission.certificates import Identity

#: API servers see a new bundle by their watch within a second; the rest is for one that has to restart its watch.
GRACE = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class Rotation:
    """``serving`` is in use; ``next`` replaces it GRACE after every bundle contained it, at ``published``."""

    serving: Identity
    next: Identity | None = None
    published: datetime | None = None

    @property
    def authorities(self) -> tuple[bytes, ...]:
        """The CAs that every bundle must contain."""
        return (self.serving.authority, *((self.next.authority,) if self.next is not None else ()))

    @property
    def wake_at(self) -> datetime | None:
        """When the next action is due without any change; None while waiting for a bundle."""
        if self.next is None:
            return self.serving.renewed_at
        return None if self.published is None else self.published + GRACE

    def needs_next(self, now: datetime) -> bool:
        return self.next is None and now >= self.serving.renewed_at

    def trusted(self, now: datetime) -> Rotation:
        """Call when every bundle contains all ``authorities``."""
        return self if self.next is None or self.published is not None else replace(self, published=now)

    def turned(self, now: datetime) -> Rotation:
        """With the next certificate serving, once it may."""
        due = self.published is not None and now >= self.published + GRACE
        return Rotation(self.next) if self.next is not None and due else self
