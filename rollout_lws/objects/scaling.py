"""Numbers that may be given as a count or as a percentage."""

from __future__ import annotations

import re

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
