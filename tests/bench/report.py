"""What every run of a benchmark tells: its progress, its figures in a table, and on what machine they were measured."""

from __future__ import annotations

import asyncio
import json
import os
import platform
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import click

from tests.bench.figures import FAILS_AT, Figure, table
from tests.bench.processes import Failed, Progress, busy_seconds

#: Measures, and gives the figures and what is to be told below their table.
Measure = Callable[[Progress], Awaitable[tuple[Sequence[Figure], str]]]


def run(measure: Measure, path: Path | None) -> None:
    """Measure and tell; the figures also go to ``path`` as JSON. Exit code 1 when a figure failed, or a process."""
    if sys.platform != "linux":
        raise click.ClickException("the figures of processes are read from /proc: run this on Linux")
    started, others = time.monotonic(), _Others()

    def progress(what: str) -> None:
        click.echo(f"{time.monotonic() - started:5.0f} s  {what}", err=True)

    async def measured() -> tuple[Sequence[Figure], str]:
        return await measure(progress)

    try:
        figures, told = asyncio.run(measured())
    except Failed as failure:
        raise click.ClickException(str(failure)) from failure
    progress("done")
    machine = {**_machine(), "coresTakenByOthers": round(others.cores(), 2)}
    click.echo(f"\n{table(figures)}\n\n{told}\n")
    click.echo(f"On {machine['cores']} cores, of which other programs took {machine['coresTakenByOthers']} meanwhile.")
    if path is not None:
        path.write_text(json.dumps({"machine": machine, "figures": [each.to_json() for each in figures]}, indent=2))
    failed = [each.name for each in figures if each.failed]
    if failed:
        click.echo(f"\nworse than {FAILS_AT:g} times the goal: {'; '.join(failed)}", err=True)
        sys.exit(1)


class _Others:
    """What else the machine was busy with since this was made: latencies of a crowded machine say little."""

    def __init__(self) -> None:
        self._since, self._before = time.monotonic(), busy_seconds()

    def cores(self) -> float:
        everybody, ours = (now - then for now, then in zip(busy_seconds(), self._before, strict=True))
        return max(0.0, everybody - ours) / (time.monotonic() - self._since)


def _machine() -> dict[str, object]:
    return {"system": platform.platform(), "cores": os.cpu_count(), "python": platform.python_version()}
