"""Integer-or-percentage values, and numbers in untrusted text."""

from __future__ import annotations

import re

_WHOLE = re.compile(r"[0-9]{1,9}")
_PERCENT = re.compile(r"([0-9]{1,3})%")


def scaled(value: int | str, total: int, *, up: bool = True) -> int:
    """``value`` (a count, or "N%" of ``total``) as a count; percentages are rounded up, or down when ``up`` is False.

    ValueError when it is neither.
    """
    if isinstance(value, int):
        return value
    match = _PERCENT.fullmatch(value)
    if match is None:
        raise ValueError(f"{value!r} is neither a whole number nor a percentage like 25%")
    hundredths = int(match.group(1)) * total
    return -(-hundredths // 100) if up else hundredths // 100


def whole_number(text: str) -> int | None:
    """The number that 1 to 9 digits represent; None for any other text, of any length."""
    return int(text) if _WHOLE.fullmatch(text) else None


def weight_text(weight: int, matches: int) -> str:
    """A traffic weight in percent, and how many matches also go to the new version: "20%", "20% and 1 match"."""
    if not matches:
        return f"{weight}%"
    return f"{weight}% and {matches} match{'es' if matches > 1 else ''}"
