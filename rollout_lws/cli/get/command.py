"""The get command: selects the picture or the list, printed once or watched."""

from __future__ import annotations

from datetime import UTC, datetime

import click

from rollout_lws.cli import screen, view
from rollout_lws.cli.access.transport import Object, Transport
from rollout_lws.cli.get import listing
from rollout_lws.cli.get.caller import caller_of
from rollout_lws.cli.options import known_names, with_target
from rollout_lws.cli.rollouts import fetch_rollout, find_rollouts, release_name
from rollout_lws.kubeconfig.target import Target
from rollout_lws.objects.resources import Resource


@click.command()
@click.argument("name", required=False, shell_complete=known_names)
@click.option("-w", "--watch", "watching", is_flag=True, help="Go on until the release has ended; of a list, for ever.")
@click.option("-A", "--all-namespaces", is_flag=True, help="List the Rollouts of all namespaces.")
@click.option("-l", "--selector", metavar="SELECTOR", help="List the Rollouts with these labels.")
@click.option(
    "-o", "--output", type=click.Choice(["wide", "json", "yaml", "jsonl", "name"]), help="Another form of output."
)
@with_target
def get(
    name: str | None, watching: bool, all_namespaces: bool, selector: str | None, output: str | None, target: Target
) -> None:
    """Show Rollout NAME with its steps, versions and groups; without NAME list them all.

    -o wide shows each pod. json, yaml and jsonl are what the API server holds, unchanged.
    """
    if name and (all_namespaces or selector):
        raise click.UsageError("a NAME says it all: leave out either NAME, or -A and -l")
    if watching and output in ("json", "yaml", "name"):
        raise click.UsageError(f"-o {output} is one answer and -w never ends: use -o jsonl, a line a change")
    transport = click.get_current_context().with_resource(Transport.to(target))
    rollouts = find_rollouts(transport, target.api_group)
    if watching:
        # Only -w needs all objects of a release and the libraries that decode them.
        from rollout_lws.cli.get import watch
    if name and watching:
        watch.one(transport, rollouts, release_name(name), output, caller_of(target))
    elif name:
        _one(transport, rollouts, release_name(name), output, target)
    elif watching:
        watch.every(transport, rollouts, "" if all_namespaces else transport.namespace, selector, output)
    else:
        _every(transport, rollouts, "" if all_namespaces else transport.namespace, selector, output)


def _one(transport: Transport, rollouts: Resource, name: str, output: str | None, target: Target) -> None:
    if output in (None, "wide"):
        from rollout_lws.cli.get import picture
        from rollout_lws.cli.releases import fetch_release

        wide, now = output == "wide", datetime.now(UTC)
        shown = fetch_release(transport, rollouts, name, pods=wide)
        _print(picture.release(shown, now, caller=caller_of(target), pods=wide, width=screen.width()))
        return
    _as_it_is(fetch_rollout(transport, rollouts, name), [], rollouts, output or "")


def _every(transport: Transport, rollouts: Resource, namespace: str, selector: str | None, output: str | None) -> None:
    answer = transport.get(rollouts.path(namespace), **({"labelSelector": selector} if selector else {}))
    items = answer.get("items") or []
    if output not in (None, "wide"):
        _as_it_is(answer, items, rollouts, output)
    elif not items:
        where = f" in namespace {namespace}" if namespace else ""
        click.echo(f"No Rollouts found{where}", err=True)
    else:
        _print(
            listing.overview(
                items, datetime.now(UTC), namespaces=not namespace, wide=output == "wide", width=screen.width()
            )
        )


def _as_it_is(answer: Object, items: list[Object], rollouts: Resource, output: str) -> None:
    """The API server's answer unchanged: one object, or a list."""
    listed = items if "items" in answer else [answer]
    if output == "name":
        for each in listed:
            click.echo(f"{rollouts.kind.lower()}.{rollouts.group}/{each['metadata']['name']}")
    elif output == "jsonl":
        for each in listed:
            click.echo(view.line({"apiVersion": rollouts.api_version, "kind": rollouts.kind, **each}))
    else:
        click.echo(view.document(answer, output), nl=False)


def _print(lines: list[str]) -> None:
    paint = listing.coloured if screen.has_colours() else str
    click.echo("\n".join(paint(view.plain(line)) for line in lines), color=True)
