"""plan: previews a release step by step, before anything is written."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TextIO

import click

from rollout_lws.cli import screen
from rollout_lws.cli.durations import DURATION
from rollout_lws.cli.lint.linter import check_valid
from rollout_lws.cli.lint.manifests import Scope
from rollout_lws.cli.manifests import read_manifests
from rollout_lws.cli.options import known_names, output_option, with_target
from rollout_lws.cli.plan import show
from rollout_lws.cli.plan.model import Plan
from rollout_lws.cli.plan.picture import course_of, only
from rollout_lws.cli.plan.sources import gather, plans
from rollout_lws.cli.plan.values import value
from rollout_lws.cli.rollouts import release_name
from rollout_lws.cli.view import document, plain
from rollout_lws.drawing.picture import picture
from rollout_lws.kubeconfig.target import Target


@click.command()
@click.argument("name", required=False, shell_complete=known_names)
@click.option("-f", "--filename", "files", multiple=True, metavar="FILE", help="Manifests to be applied; - for stdin.")
@output_option("text", "json", "yaml")
@click.option("--load-time", type=DURATION, metavar="DURATION", help="How long a group loads; as today's by default.")
@click.option(
    "--rate",
    type=click.FloatRange(min=0, min_open=True),
    metavar="NUMBER",
    help="Requests a second that both versions get together: how long gates take.",
)
@click.option(
    "--svg",
    type=click.File("w", encoding="utf-8", lazy=True),
    metavar="FILE",
    help="Write a picture of the release to FILE, too; - for stdout, and nothing else there.",
)
@click.option("--offline", is_flag=True, help="Ask no cluster: with -f, plan from the files alone.")
@with_target
def plan(
    name: str | None,
    files: tuple[str, ...],
    output: str,
    load_time: float | None,
    rate: float | None,
    svg: TextIO | None,
    offline: bool,
    target: Target,
) -> None:
    """Show step by step what a release by Rollout NAME will do, or what applying FILE would lead to.

    Nothing is written. Ends with 1 where the release would be refused.
    """
    if not name and not files:
        raise click.UsageError("give the NAME of a Rollout, or -f FILE with one")
    if offline and not files:
        raise click.UsageError("--offline plans from files: give them with -f FILE")
    asked = release_name(name) if name else ""
    given = tuple(read_manifests(files))
    check_valid(given, Scope(target.api_group), whole=offline)
    sources = gather(target, asked, given, offline=offline)
    made = plans(sources, asked, datetime.now(UTC), load_time, rate)
    if svg is not None:
        drawn = picture(course_of(only(made)))
        svg.write(drawn)
    if svg is None or svg.name != "-":
        _tell(made, output)
    if any(each.refusals for each in made):
        click.get_current_context().exit(1)


def _tell(made: Sequence[Plan], output: str) -> None:
    if output == "text":
        width = screen.width() or 0
        click.echo("\n\n".join("\n".join(map(plain, show.lines(each, width))) for each in made))
    else:
        values = [value(each) for each in made]
        click.echo(document(values[0] if len(values) == 1 else values, output), nl=False)
