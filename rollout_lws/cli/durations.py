"""Durations in text: `40s`, `10m`, `1h30m`; a bare number is seconds."""

from __future__ import annotations

import re

import click

_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")


def parse(text: str) -> float:
    """Seconds; ValueError when the text is not a duration."""
    if re.fullmatch(r"\d+(\.\d+)?", text):
        return float(text)
    if not text or _PART.sub("", text):
        raise ValueError(f"{text!r} is no duration: write for example 40s, 10m or 1h30m; a bare number is seconds")
    return sum(float(number) * _SECONDS[unit] for number, unit in _PART.findall(text))


def short(seconds: float) -> str:
    """The two largest units, as `kubectl` shows ages: 41d, 3h12m, 11m42s, 8s; below 10 s with one decimal."""
    if seconds < 10:
        return f"{max(seconds, 0):.1f}s"
    rest = round(seconds)
    days, rest = divmod(rest, 86400)
    hours, rest = divmod(rest, 3600)
    minutes, rest = divmod(rest, 60)
    parts = [(days, "d"), (hours, "h"), (minutes, "m"), (rest, "s")]
    first = next(index for index, (count, _) in enumerate(parts) if count)
    return "".join(f"{count}{unit}" for count, unit in parts[first : first + 2] if count)


class Duration(click.ParamType[float]):
    name = "duration"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, float | int):
            return float(value)
        try:
            return parse(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)


DURATION = Duration()
