"""get: the state of one release, or a line for each; -w goes on until the release has ended."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import UTC, datetime

import click

from rollout_lws.cli import view
from rollout_lws.cli.access.transport import Object, Transport
from rollout_lws.cli.following import follow
from rollout_lws.cli.options import Target, known_names, release_name, with_target
from rollout_lws.cli.releases import fetch_release, fetch_rollout, find_rollouts, summary
from rollout_lws.objects.resources import Resource

#: States in which a release has ended.
TERMINAL = ("Healthy", "Aborted", "Disabled")


@click.command()
@click.argument("name", required=False, shell_complete=known_names)
@click.option("-w", "--watch", is_flag=True, help="Go on until the release has ended.")
@click.option("-A", "--all-namespaces", is_flag=True, help="List the Rollouts of all namespaces.")
@click.option("-o", "--output", type=click.Choice(["wide", "json", "yaml", "name"]), help="Another form of output.")
@with_target
def get(name: str | None, watch: bool, all_namespaces: bool, output: str | None, target: Target) -> None:
    """Show Rollout NAME with its steps, versions and groups; without NAME list them all."""
    if name and all_namespaces:
        raise click.UsageError("one NAME lives in one namespace: leave out either NAME or -A")
    if watch and not name:
        raise click.UsageError("-w follows one release: give its NAME")
    transport = click.get_current_context().with_resource(Transport.to(target))
    rollouts = find_rollouts(transport, target.api_group)
    if not name:
        _list(transport, rollouts, all_namespaces, output)
        return
    name = release_name(name)
    show = _printer(transport, rollouts, name, output)
    show()
    if watch:
        _follow(transport, rollouts, name, show)


def _list(transport: Transport, rollouts: Resource, everywhere: bool, output: str | None) -> None:
    answer = transport.get(rollouts.path("" if everywhere else transport.namespace))
    items = answer.get("items") or []
    if output == "name":
        for item in items:
            click.echo(f"{rollouts.kind.lower()}.{rollouts.group}/{item['metadata']['name']}")
    elif output in ("json", "yaml"):
        click.echo(view.document(answer, output), nl=False)
    elif not items:
        click.echo("No Rollouts found" + ("" if everywhere else f" in namespace {transport.namespace}"), err=True)
    else:
        click.echo("\n".join(view.overview(items, datetime.now(UTC), namespaces=everywhere)))


def _printer(transport: Transport, rollouts: Resource, name: str, output: str | None) -> Callable[[], None]:
    def show() -> None:
        if output == "name":
            fetch_rollout(transport, rollouts, name)
            click.echo(f"{rollouts.kind.lower()}.{rollouts.group}/{name}")
        elif output in ("json", "yaml"):
            click.echo(view.document(fetch_rollout(transport, rollouts, name), output), nl=False)
        else:
            shown = fetch_release(transport, rollouts, name)
            click.echo("\n".join(view.release(shown, datetime.now(UTC))))

    return show


def _follow(transport: Transport, rollouts: Resource, name: str, show: Callable[[], None]) -> None:
    """Shown anew at each change on a terminal, else one line a change; ends with the release."""
    told = ""
    for seen in follow(transport, rollouts, fetch_rollout(transport, rollouts, name), None):
        told = _tell(seen, told, show)
        if summary(seen)["state"] in TERMINAL:
            return


def _tell(rollout: Object, told: str, show: Callable[[], None]) -> str:
    said = summary(rollout)
    words = [f"{key} {said[key]}" for key in ("step", "traffic", "new", "stable") if said[key]]
    line = " ".join([said["state"] or "Unknown", *words])
    if line == told:
        return told
    if sys.stdout.isatty():
        click.clear()
        show()
    else:
        click.echo(f"{datetime.now(UTC).isoformat(timespec='milliseconds').replace('+00:00', 'Z')} {line}")
    return line
