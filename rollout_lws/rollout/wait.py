"""What a rule waits for."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Wait:
    """``message`` says what is waited for; ``until`` is when that ends though nothing but time has passed, None where
    it never does by that alone.
    """

    message: str
    until: datetime | None = None
