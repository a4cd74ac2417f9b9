"""Result of a capacity operation: what to write now, whether it is done, and what it waits for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from rollout_lws.objects.writes import Write


@dataclass(frozen=True, slots=True)
class CapacityResult:
    """``message`` names what it waits for, "" for nothing. ``blocked`` is a reason if it cannot continue by itself."""

    writes: tuple[Write, ...] = ()
    done: bool = False
    message: str = ""
    wake_at: datetime | None = None
    blocked: str = ""
    preparing: bool = False
    """Leftovers of an earlier release go first: no group starts up yet, and no deadline runs."""
    opened: tuple[int, ...] = ()
    """Ordinals for which a partition window is opened."""

    def with_further(self, other: CapacityResult) -> CapacityResult:
        """This one and that of a further workload: done when both are."""
        return replace(
            self,
            writes=(*self.writes, *other.writes),
            done=self.done and other.done,
            message=self.message or other.message,
            wake_at=min(filter(None, (self.wake_at, other.wake_at)), default=None),
            blocked=self.blocked or other.blocked,
            preparing=self.preparing or other.preparing,
        )
