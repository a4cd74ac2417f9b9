"""Result of a capacity operation: what to write now, whether it is done, and what it waits for."""

from __future__ import annotations

from dataclasses import dataclass
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
