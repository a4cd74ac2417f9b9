"""dashboard: serves one page for releases to the user's own browser, until it is interrupted."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import click

from rollout_lws.cli.access.transport import Transport
from rollout_lws.cli.dashboard.server import Page
from rollout_lws.cli.dashboard.serving import LOOPBACK, Place, serve
from rollout_lws.cli.get.caller import caller_of
from rollout_lws.cli.options import known_names, with_target
from rollout_lws.cli.rollouts import fetch_rollout, find_rollouts, release_name
from rollout_lws.errors import ApiError
from rollout_lws.kubeconfig.target import Target
from rollout_lws.objects.resources import Resource

#: The same each time, so that an address that was sent leads to the reader's own page.
PORT = 8321


@click.command()
@click.argument("name", required=False, shell_complete=known_names)
@click.option("--port", type=click.IntRange(0, 65535), default=PORT, show_default=True, help="0 takes a free one.")
@click.option("--address", default=LOOPBACK, show_default=True, help="Address to listen on.")
@click.option(
    "--host",
    "hosts",
    multiple=True,
    metavar="NAME[:PORT]",
    help="A further name by which browsers reach it, through a tunnel for example; repeatable.",
)
@click.option("--no-browser", is_flag=True, help="Print the address only.")
@click.option("--read-only", is_flag=True, help="Show releases, and refuse all actions.")
@click.option("-l", "--selector", metavar="SELECTOR", help="Only Rollouts with these labels.")
@with_target
def dashboard(
    name: str | None,
    port: int,
    address: str,
    hosts: tuple[str, ...],
    no_browser: bool,
    read_only: bool,
    selector: str | None,
    target: Target,
) -> None:
    """Show releases on a page in the browser, with what one may do with them, until Ctrl-C.

    It serves on loopback, with your kubeconfig and your rights. NAME opens that release at once. It lists the
    Rollouts of all namespaces where you may, else those of yours; -n lists one namespace's.
    """
    transport = click.get_current_context().with_resource(Transport.to(target))
    rollouts = find_rollouts(transport, target.api_group)
    first = ""
    if name:
        found = fetch_rollout(transport, rollouts, release_name(name))
        first = f"{found['metadata']['namespace']}/{found['metadata']['name']}"
    namespace = target.namespace or _listable(transport, rollouts)
    page = Page(
        transport,
        rollouts,
        namespace,
        selector,
        read_only,
        lambda namespace: caller_of(replace(target, namespace=namespace)),
    )
    with asyncio.Runner() as runner:
        runner.run(serve(page, Place(address, port, hosts), first=first, opens=not no_browser))


def _listable(transport: Transport, rollouts: Resource) -> str:
    """ "" where the user may list the Rollouts of all namespaces, else the context's namespace."""
    try:
        transport.get(rollouts.path(""), limit="1")
    except ApiError as error:
        if error.code != 403:
            raise
        click.echo(f"Of namespace {transport.namespace} alone: you may not list the Rollouts of all of them", err=True)
        return transport.namespace
    return ""
