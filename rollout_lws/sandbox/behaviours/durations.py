"""Durations in annotations and options: ``40s``, ``10m``, ``1h30m``, or plain seconds."""

from __future__ import annotations

import re

from rollout_lws.errors import UsageError

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)")


def seconds(text: str) -> float:
    """Seconds in ``text``; UsageError when it is no duration."""
    try:
        plain = float(text)
    except ValueError:
        parts = _PART.findall(text)
        if not parts or "".join(number + unit for number, unit in parts) != text:
            raise UsageError(f'"{text}" is not a duration: write 40s, 10m, 1h30m or a number of seconds') from None
        return sum(float(number) * _UNITS[unit] for number, unit in parts)
    if not 0 <= plain < float("inf"):
        raise UsageError(f'"{text}" is not a duration: write 40s, 10m, 1h30m or a number of seconds')
    return plain
