"""What one piece of capacity work answers: what to write now, whether it is finished, and what it waits for."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from rollout_lws.objects.writes import Write


@dataclass(frozen=True, slots=True)
class CapacityResult:
    """``message`` says what is waited for, "" when nothing is. ``blocked`` is a reason word when it cannot go on by
    itself.
    """

    writes: tuple[Write, ...] = ()
    done: bool = False
    message: str = ""
    wake_at: datetime | None = None
    blocked: str = ""
    preparing: bool = False
    """What an earlier release has left goes first: no group loads yet, and no deadline runs."""
    opened: tuple[int, ...] = ()
    """Ordinals for which a window is opened."""
