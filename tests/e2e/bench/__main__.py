"""All measurements on a real control plane, one after the other, and their figures in one table: `make bench-e2e`."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Sequence
from pathlib import Path

import click

from tests.bench import report
from tests.bench.figures import Figure
from tests.bench.processes import Progress
from tests.e2e import tools
from tests.e2e.bench import fleet, outages, releases
from tests.e2e.cluster import cluster
from tests.e2e.costs import FOLLOWED


@click.command()
@click.option(
    "--json", "path", type=click.Path(dir_okay=False, path_type=Path), help="Write the figures there as JSON."
)
@click.option(
    "--rollouts",
    "sizes",
    type=click.IntRange(1),
    multiple=True,
    default=(1, 100, 1000),
    show_default=True,
    help="Sizes of the fleets at rest, each larger than the one before.",
)
@click.option(
    "--rest", type=click.IntRange(1), default=60, show_default=True, help="Seconds for which each fleet is looked at."
)
def bench(path: Path | None, sizes: tuple[int, ...], rest: int) -> None:
    """Measure the controller on a real control plane; exit code 1 when a figure is worse than three times its goal."""
    if why := tools.missing():
        raise click.ClickException(why)
    if list(sizes) != sorted(set(sizes)):
        raise click.BadParameter("each has to be larger than the one before", param_hint="--rollouts")

    # Its own watches fail together with the API server that it kills, and nobody needs to read of them.
    logging.getLogger("rollout_lws").addHandler(logging.NullHandler())

    async def measure(progress: Progress) -> tuple[Sequence[Figure], str]:
        with tempfile.TemporaryDirectory(prefix="rollout-lws-bench-e2e-") as name:
            logs = _room(name, "releases")
            progress("releases: a control plane, and the sandbox's machines")
            async with cluster(tools.directory(), logs, gpus_per_node=64, in_full=FOLLOWED) as whole:
                of_releases, told = await releases.measure(whole, logs, progress)
                of_outages = await outages.measure(whole, logs, progress)
                source = await fleet.original_of(whole, logs)
            of_fleets = await fleet.measure(source, sizes, rest, _room(name, "fleet"), progress)
            return [*of_releases, *of_outages, *of_fleets], told

    report.run(measure, path)


def _room(directory: str, name: str) -> Path:
    made = Path(directory) / name
    made.mkdir()
    return made


if __name__ == "__main__":
    bench()
