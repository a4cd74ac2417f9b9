"""Durations in text: `40s`, `10m`, `1h30m`; a bare number is seconds."""

from __future__ import annotations

import re

_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")


def parse(text: str) -> float:
    """Seconds; ValueError when the text is not a duration."""
    if re.fullmatch(r"\d+(\.\d+)?", text):
        return float(text)
    if not text or _PART.sub("", text):
        raise ValueError(f"{text!r} is no duration: write for example 40s, 10m or 1h30m; a bare number is seconds")
    return sum(float(number) * _SECONDS[unit] for number, unit in _PART.findall(text))
