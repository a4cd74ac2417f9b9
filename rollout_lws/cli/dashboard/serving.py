"""Starts the page's server on a socket, and keeps it until it is cancelled."""

from __future__ import annotations

import asyncio
import http.client
import ipaddress
import secrets
import socket
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass

import click
from aiohttp import web

from rollout_lws.cli.dashboard.background import in_thread
from rollout_lws.cli.dashboard.opening import Invitation, opened
from rollout_lws.cli.dashboard.protection import SERVER, TOKEN, Door
from rollout_lws.cli.dashboard.server import Dashboard, Page
from rollout_lws.errors import UsageError

LOOPBACK = "127.0.0.1"
_HTTP = ":80"
#: Seconds that requests may take to end when the server does; streams do not end by themselves.
_FAREWELL = 0.2
#: Seconds to ask another server on the same port who it is.
_PATIENCE = 1.0


@dataclass(frozen=True, slots=True)
class Place:
    """Where to listen, and the names by which browsers reach it besides the address: ``name`` or ``name:port``."""

    address: str = LOOPBACK
    port: int = 0
    names: tuple[str, ...] = ()

    @property
    def is_loopback(self) -> bool:
        return self.address == "localhost" or _is_loopback(self.address)

    def hosts(self, port: int) -> frozenset[str]:
        """What a request may call the server, listening on ``port``."""
        names = {self.address, *(("localhost",) if self.is_loopback else ()), *self.names}
        names |= {LOOPBACK} if self.address == "localhost" else set()
        hosts = {each.lower() for each in _with_port(names, port)}
        # Browsers leave out the usual port of their scheme.
        return frozenset(hosts | {each.removesuffix(_HTTP) for each in hosts})


def _is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


def _with_port(names: Iterable[str], port: int) -> Iterable[str]:
    for each in names:
        if each.count(":") > 1 and not each.startswith("["):
            yield f"[{each}]:{port}"
        else:
            has_port = ":" in each.rpartition("]")[2]
            yield each if has_port else f"{each}:{port}"


@dataclass(frozen=True, slots=True)
class Served:
    """Where a page is: an address with the token, to be printed, and one for the browser that is opened."""

    url: str
    invitation: Invitation


async def serve(page: Page, place: Place, *, first: str = "", opens: bool = False) -> None:
    """Serve the page until it is cancelled, with a line that says where; ``first`` is what it shows at first."""
    async with serving(page, place, first) as served:
        click.echo(f"Releases are shown at {served.url}")
        if not place.is_loopback:
            click.echo(
                f"rollout-lws: {place.address} is not loopback: all who have that address act with your rights, and"
                " what is sent can be read on the way, the token too",
                err=True,
            )
        click.echo("Ctrl-C ends it", err=True)
        async with opened(served.invitation, _tell) if opens else nullcontext():
            await asyncio.Event().wait()


def _tell(trouble: str) -> None:
    click.echo(f"rollout-lws: {trouble}", err=True)


@asynccontextmanager
async def serving(page: Page, place: Place, first: str = "") -> AsyncIterator[Served]:
    """A running server for the duration of the block. UsageError when it cannot listen there."""
    sock = await in_thread(_listen, place)
    port = sock.getsockname()[1]
    token, once, ticket = (secrets.token_urlsafe(24) for _ in range(3))
    # Cookies are the same for all ports of a host.
    door = Door(place.hosts(port), token, ticket, f"rollout-lws-{port}", once)
    dashboard = Dashboard(page, door)
    runner = web.AppRunner(
        dashboard.application, access_log=None, handler_cancellation=True, shutdown_timeout=_FAREWELL
    )
    await runner.setup()
    try:
        await web.SockSite(runner, sock).start()
        host = f"[{place.address}]" if ":" in place.address else place.address
        url = f"http://{host}:{port}/{first}?{TOKEN}="
        yield Served(url + token, Invitation(url + once, dashboard.taken, dashboard.revoke))
    finally:
        await runner.cleanup()


def _listen(place: Place) -> socket.socket:
    family = socket.AF_INET6 if ":" in place.address else socket.AF_INET
    sock = socket.socket(family)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((place.address, place.port))
        # Here, and not when the server starts: another one may have bound the port without listening yet.
        sock.listen()
    except OSError as error:
        sock.close()
        raise UsageError(_why_not(place, error)) from error
    return sock


def _why_not(place: Place, error: OSError) -> str:
    if not _is_dashboard(place):
        return (
            f"port {place.port} of {place.address} cannot be listened on: {error.strerror}; give another --port (0"
            " takes a free one): addresses of releases that others send you name the usual one"
        )
    return (
        f"port {place.port} of {place.address} is taken by another rollout-lws dashboard: use that one's page, end it,"
        " or give another --port (0 takes a free one)"
    )


def _is_dashboard(place: Place) -> bool:
    connection = http.client.HTTPConnection(place.address, place.port, timeout=_PATIENCE)
    try:
        connection.request("HEAD", "/")
        return connection.getresponse().headers.get("Server") == SERVER
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
