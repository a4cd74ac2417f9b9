"""dashboard: serves one page for releases to the user's own browser, until it is interrupted."""

from __future__ import annotations

import asyncio
import secrets
import webbrowser
from dataclasses import dataclass

import click
from aiohttp import web

from rollout_lws.cli.access.transport import Transport
from rollout_lws.cli.dashboard.protection import TOKEN, Door
from rollout_lws.cli.dashboard.server import Dashboard, Page
from rollout_lws.cli.options import known_names, with_target
from rollout_lws.cli.rollouts import fetch_rollout, find_rollouts, release_name
from rollout_lws.errors import ApiError, UsageError
from rollout_lws.kubeconfig.target import Target
from rollout_lws.objects.resources import Resource

LOOPBACK = "127.0.0.1"
#: The same each time, so that an address that was sent leads to the reader's own page.
PORT = 8321


@click.command()
@click.argument("name", required=False, shell_complete=known_names)
@click.option("--port", type=click.IntRange(0, 65535), default=PORT, show_default=True, help="0 takes a free one.")
@click.option("--address", default=LOOPBACK, show_default=True, help="Address to listen on.")
@click.option("--no-browser", is_flag=True, help="Print the address only.")
@click.option("--read-only", is_flag=True, help="Show, and let nobody act.")
@click.option("-l", "--selector", metavar="SELECTOR", help="Only Rollouts with these labels.")
@with_target
def dashboard(
    name: str | None, port: int, address: str, no_browser: bool, read_only: bool, selector: str | None, target: Target
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
    page = Page(transport, rollouts, namespace, selector, read_only)
    with asyncio.Runner() as runner:
        runner.run(serve(page, address, port, first=first, opens=not no_browser))


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


@dataclass(frozen=True, slots=True)
class Served:
    """Where a page is: its ``url`` with the token, and without."""

    url: str
    bare: str


async def serve(page: Page, address: str, port: int, *, first: str = "", opens: bool = False) -> None:
    """Serve the page until it is cancelled."""
    runner, served = await start(page, address, port, first)
    click.echo(f"Releases are shown at {served.url}")
    if opens:
        await asyncio.to_thread(webbrowser.open, served.url)
    click.echo("Ctrl-C ends it", err=True)
    try:
        await asyncio.Event().wait()
    finally:
        await runner.cleanup()


async def start(page: Page, address: str, port: int, first: str = "") -> tuple[web.AppRunner, Served]:
    """A running server, and where it is. UsageError when the port is taken."""
    runner, served = None, None
    import socket

    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    sock = socket.socket(family)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((address, port))
    except OSError as error:
        sock.close()
        raise UsageError(
            f"port {port} of {address} cannot be listened on: {error.strerror}; give another --port"
        ) from error
    port = sock.getsockname()[1]
    token, ticket = secrets.token_urlsafe(24), secrets.token_urlsafe(24)
    names = {address, "localhost", LOOPBACK} if address == LOOPBACK else {address}
    door = Door(
        frozenset(f"{f'[{each}]' if ':' in each else each}:{port}".lower() for each in names),
        token,
        ticket,
        f"rollout-lws-{port}",
    )
    runner = web.AppRunner(
        Dashboard(page, door).application, access_log=None, handler_cancellation=True, shutdown_timeout=0.5
    )
    await runner.setup()
    await web.SockSite(runner, sock).start()
    host = f"[{address}]" if ":" in address else address
    bare = f"http://{host}:{port}/{first}"
    served = Served(f"{bare}?{TOKEN}={token}", bare)
    return runner, served
