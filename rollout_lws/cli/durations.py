"""Durations as options take them and as commands show them."""

from __future__ import annotations

import click

from rollout_lws.objects.codec.durations import parse


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
