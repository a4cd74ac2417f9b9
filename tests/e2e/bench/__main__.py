"""All measurements on a real control plane, one after the other, and their figures in one table: `make bench-e2e`."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import click

from tests.bench import report
from tests.bench.figures import Figure
from tests.bench.processes import Progress
from tests.e2e import tools
from tests.e2e.bench import releases


@click.command()
@click.option(
    "--json", "path", type=click.Path(dir_okay=False, path_type=Path), help="Write the figures there as JSON."
)
def bench(path: Path | None) -> None:
    """Measure the controller on a real control plane; exit code 1 when a figure is worse than three times its goal."""
    if why := tools.missing():
        raise click.ClickException(why)

    async def measure(progress: Progress) -> tuple[Sequence[Figure], str]:
        with tempfile.TemporaryDirectory(prefix="rollout-lws-bench-e2e-") as name:
            return await releases.measure(Path(name), progress)

    report.run(measure, path)


if __name__ == "__main__":
    bench()
