"""A controller under load, and who takes over from it: `make bench-load`."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import click

from rollout_lws.settings import Election
from tests.bench import report
from tests.bench.figures import Figure
from tests.bench.load.fleets import Plan, measured
from tests.bench.load.takeover import side_by_side
from tests.bench.processes import Progress


@click.command()
@click.option(
    "--json", "path", type=click.Path(dir_okay=False, path_type=Path), help="Write the figures there as JSON."
)
@click.option(
    "--rollouts",
    type=click.IntRange(10),
    multiple=True,
    default=(1000, 5000),
    show_default=True,
    help="Size of the fleet; more than one can be named.",
)
@click.option(
    "--in-flight",
    type=click.IntRange(4),
    default=100,
    show_default=True,
    help="Releases among them that are under way.",
)
def load(path: Path | None, rollouts: tuple[int, ...], in_flight: int) -> None:
    """Measure fleets at rest, with releases in flight, and takeovers; exit code 1 when a figure is worse than three
    times its goal.
    """
    if min(rollouts) <= in_flight:
        raise click.UsageError(f"--in-flight {in_flight} has no room in {min(rollouts)} --rollouts: name fewer")

    async def measure(progress: Progress) -> tuple[Sequence[Figure], str]:
        with tempfile.TemporaryDirectory(prefix="rollout-lws-load-") as directory:
            election = Election()
            figures, found = await measured(Path(directory), Plan(rollouts, in_flight), election, progress)
        terms = (
            f"Leader election with its defaults: a lease of {election.duration:g} s, a deadline of"
            f" {election.deadline:g} s, a renewal every {election.retry:g} s."
        )
        return figures, f"{side_by_side(found)}\n\n{terms}"

    report.run(measure, path)


if __name__ == "__main__":
    load()
