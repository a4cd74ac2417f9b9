"""All measurements, one after the other, and their figures in one table: `make bench`."""

from __future__ import annotations

import asyncio
import json
import os
import platform
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import click

from tests.bench.figures import FAILS_AT, Figure, table
from tests.bench.measures import Bench, details
from tests.bench.processes import Failed, busy_seconds


@click.command()
@click.option(
    "--json", "path", type=click.Path(dir_okay=False, path_type=Path), help="Write the figures there as JSON."
)
@click.option("--rollouts", type=click.IntRange(1), default=1000, show_default=True, help="Size of the fleet at rest.")
def bench(path: Path | None, rollouts: int) -> None:
    """Measure the controller against its goals; exit code 1 when a figure is worse than three times its goal."""
    if sys.platform != "linux":
        raise click.ClickException("the figures of processes are read from /proc: run this on Linux")
    try:
        others = _Others()
        figures, told = asyncio.run(_measured(rollouts))
    except Failed as failure:
        raise click.ClickException(str(failure)) from failure
    machine = {**_machine(), "coresTakenByOthers": round(others.cores(), 2)}
    click.echo(f"\n{table(figures)}\n\n{told}\n")
    click.echo(f"On {machine['cores']} cores, of which other programs took {machine['coresTakenByOthers']} meanwhile.")
    if path is not None:
        path.write_text(json.dumps({"machine": machine, "figures": [each.to_json() for each in figures]}, indent=2))
    failed = [each.name for each in figures if each.failed]
    if failed:
        click.echo(f"\nworse than {FAILS_AT:g} times the goal: {'; '.join(failed)}", err=True)
        sys.exit(1)


async def _measured(rollouts: int) -> tuple[Sequence[Figure], str]:
    started = time.monotonic()

    def progress(what: str) -> None:
        click.echo(f"{time.monotonic() - started:5.0f} s  {what}", err=True)

    with tempfile.TemporaryDirectory(prefix="rollout-lws-bench-") as directory:
        run = Bench(Path(directory), progress)
        progress("releases: a controller and an API server, each in a process of its own")
        of_releases, found = await run.releases()
        figures = [*of_releases, *await run.flood(), *await run.rest(rollouts)]
        progress("done")
    return figures, details(found)


class _Others:
    """What else the machine was busy with since this was made: latencies of a crowded machine say little."""

    def __init__(self) -> None:
        self._since, self._before = time.monotonic(), busy_seconds()

    def cores(self) -> float:
        everybody, ours = (now - then for now, then in zip(busy_seconds(), self._before, strict=True))
        return max(0.0, everybody - ours) / (time.monotonic() - self._since)


def _machine() -> dict[str, object]:
    return {"system": platform.platform(), "cores": os.cpu_count(), "python": platform.python_version()}


if __name__ == "__main__":
    bench()
