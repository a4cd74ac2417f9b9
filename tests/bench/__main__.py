"""All measurements, one after the other, and their figures in one table: `make bench`."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import click

from tests.bench import report
from tests.bench.commands import of_commands
from tests.bench.figures import Figure
from tests.bench.measures import Bench, details
from tests.bench.processes import Progress


@click.command()
@click.option(
    "--json", "path", type=click.Path(dir_okay=False, path_type=Path), help="Write the figures there as JSON."
)
@click.option("--rollouts", type=click.IntRange(1), default=1000, show_default=True, help="Size of the fleet at rest.")
def bench(path: Path | None, rollouts: int) -> None:
    """Measure the controller against its goals; exit code 1 when a figure is worse than three times its goal."""

    async def measure(progress: Progress) -> tuple[Sequence[Figure], str]:
        with tempfile.TemporaryDirectory(prefix="rollout-lws-bench-") as directory:
            run = Bench(Path(directory), progress)
            progress("releases: a controller and an API server, each in a process of its own")
            of_releases, found = await run.releases()
            figures = [*of_releases, *await run.flood(), *await run.rest(rollouts)]
            figures += await of_commands(Path(directory), progress)
        return figures, details(found)

    report.run(measure, path)


if __name__ == "__main__":
    bench()
