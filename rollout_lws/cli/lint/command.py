"""lint: checks manifests offline and reports findings with file, line and column."""

from __future__ import annotations

import sys

import click

from rollout_lws.cli.lint import output
from rollout_lws.cli.lint.findings import Severity
from rollout_lws.cli.options import target_of
from rollout_lws.cli.screen import has_colours
from rollout_lws.errors import UsageError
from rollout_lws.settings import Settings

_NOTHING = (
    "nothing to look at: {} no Rollout, and nothing that one refers to (LeaderWorkerSet, StatefulSet, Service,"
    " HTTPRoute, Ingress, InferencePool, HorizontalPodAutoscaler); name the files that do, or a directory with -R"
)


@click.command()
@click.option(
    "-f",
    "--filename",
    "names",
    multiple=True,
    type=click.Path(allow_dash=True),
    metavar="FILE|DIR|-",
    help="File, directory, or - for standard input; may be repeated.",
)
@click.argument("more", nargs=-1, type=click.Path(allow_dash=True), metavar="[FILE]...")
@click.option("-R", "--recursive", is_flag=True, help="Look into directories of directories as well.")
@click.option("-o", "--output", "form", type=click.Choice(list(output.FORMATS)), default="text", help="Form of output.")
@click.option("--allow-empty", is_flag=True, help="Succeed when there is nothing to look at.")
@click.option("--strict", is_flag=True, help="Fail for warnings, too.")
@click.option("-n", "--namespace", metavar="NAME", help="Namespace of objects that state none; default by default.")
@click.option(
    "--api-group", metavar="GROUP", help="API group of our kinds; by default any that has Rollouts of our form."
)
def lint(
    names: tuple[str, ...],
    more: tuple[str, ...],
    recursive: bool,
    form: str,
    allow_empty: bool,
    strict: bool,
    **_given: str | None,
) -> None:
    """Find in manifests what the controller would refuse, and traps; no cluster is asked.

    Reads Rollouts, and the workloads, Services, routes, pools and autoscalers that they refer to, from the same
    files. Exit code 1 with an error (with --strict also a warning), 2 when there is nothing to look at.
    """
    # Imported here, since help and completion need none of the rules.
    from rollout_lws.cli.lint.linter import lint as judge
    from rollout_lws.cli.lint.manifests import Scope
    from rollout_lws.cli.manifests import sources

    if not names and not more:
        raise click.UsageError("nothing to lint is named: add -f FILE, -f DIRECTORY, or -f - for standard input")
    # Both may stand before the command's name, too.
    target = target_of(click.get_current_context())
    try:
        if target.api_group:
            Settings(api_group=target.api_group)
        scope = Scope(target.api_group, target.namespace or Scope().namespace)
        report = judge(sources((*names, *more), recursive=recursive), scope)
    except UsageError as error:
        raise click.UsageError(str(error)) from error
    if not (report.objects or report.findings or allow_empty):
        files = "no file was found, so there is" if not report.files else f"{report.files} files have"
        raise click.UsageError(_NOTHING.format(files if report.files != 1 else "the file has"))
    if form == "text":
        click.echo(output.text(report, colour=has_colours()), nl=False, color=True)
    else:
        click.echo(output.FORMATS[form](report), nl=False)
    click.echo(output.summary(report), err=True)
    worst = Severity.WARNING if strict else Severity.ERROR
    sys.exit(int(any(each.severity <= worst for each in report.findings)))
