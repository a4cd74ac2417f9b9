"""What is wrong with a spec."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Problem:
    """``path`` names the field, ``message`` says what is wrong and what to do."""

    path: str
    message: str
