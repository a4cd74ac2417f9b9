"""What a rule is waiting for."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Wait:
    """``message`` names the cause; ``until`` is when the wait ends by time alone, None if it never does."""

    message: str
    until: datetime | None = None
