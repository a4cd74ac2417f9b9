"""When a certificate is replaced, and in which order: what is not trusted yet is never shown."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from rollout_lws.admission.certificates import Identity

#: API servers learn of a new bundle by a watch, so within a second; the rest is for one that has to begin it anew.
GRACE = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class Rotation:
    """``serving`` is shown; ``next`` will be, once it has been in every bundle, ``published``, for GRACE."""

    serving: Identity
    next: Identity | None = None
    published: datetime | None = None

    @property
    def authorities(self) -> tuple[bytes, ...]:
        """What has to be in every bundle."""
        return (self.serving.authority, *((self.next.authority,) if self.next is not None else ()))

    @property
    def wake_at(self) -> datetime | None:
        """When there is something to do without anything being written; None while a bundle is waited for."""
        if self.next is None:
            return self.serving.renewed_at
        return None if self.published is None else self.published + GRACE

    def needs_next(self, now: datetime) -> bool:
        return self.next is None and now >= self.serving.renewed_at

    def trusted(self, now: datetime) -> Rotation:
        """After every bundle was seen with all ``authorities``."""
        return self if self.next is None or self.published is not None else replace(self, published=now)

    def turned(self, now: datetime) -> Rotation:
        """With the next one serving, once that may be shown."""
        due = self.published is not None and now >= self.published + GRACE
        return Rotation(self.next) if self.next is not None and due else self
