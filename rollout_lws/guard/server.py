"""Listens for API servers: TLS with a certificate that can be replaced while it serves, a review in, a review out."""

from __future__ import annotations

import asyncio
import logging
import os
import ssl
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from aiohttp import web

from rollout_lws.errors import UsageError
from rollout_lws.guard import review
from rollout_lws.guard.review import BadReview, Request
from rollout_lws.guard.verdict import Outcome, Rule, Verdict, failed
from rollout_lws.settings import Address

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rollout_lws.guard.certificates import Identity

log = logging.getLogger(__name__)

Judge = Callable[[Rule, Request], Verdict]
Told = Callable[[Rule, Outcome], None]
#: What is being answered at the end gets this long; an API server waits no longer either.
_GRACE_SECONDS = 5.0
#: Of a connection that does not go on: an API server has given up by then.
_HANDSHAKE_SECONDS = 5.0
_BODY_SECONDS = 3.0
#: Reviews at a time. Each may take as much memory as ``review.LARGEST``, and the pod has releases to make.
MOST = 16


def context() -> ssl.SSLContext:
    """Of a server that has no certificate yet: ``show`` gives it one, and another one later."""
    return ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)


def show(context: ssl.SSLContext, identity: Identity) -> None:
    """Use ``identity`` from the next handshake on; connections that are there stay."""
    with _readable(identity.certificate + identity.key) as path:
        context.load_cert_chain(path)


@contextmanager
def _readable(content: bytes) -> Iterator[str]:
    """The library takes a key from a file only, and this one must not reach a disk; nor is there one to write to in a
    container.
    """
    if hasattr(os, "memfd_create"):
        with open(os.memfd_create("guard", os.MFD_CLOEXEC), "wb", buffering=0) as file:  # noqa: PTH123
            file.write(content)
            yield f"/proc/self/fd/{file.fileno()}"
        return
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "tls.pem"
        path.touch(0o600)
        path.write_bytes(content)
        yield str(path)


@asynccontextmanager
async def served(address: Address, shown: ssl.SSLContext, judge: Judge, told: Told) -> AsyncIterator[Door]:
    """Judges what is posted to /hold, /pending and /plan, until the block ends. What cannot be judged is let through
    with a warning. UsageError when nobody can listen at ``address``.
    """
    application = web.Application(client_max_size=review.LARGEST)
    door = Door()
    for rule in Rule:
        application.router.add_post(f"/{rule}", _handler(rule, judge, told, door))
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=_GRACE_SECONDS)
    await runner.setup()
    try:
        try:
            # A site of aiohttp would wait a minute for each handshake.
            listening = await asyncio.get_running_loop().create_server(
                _protocols(runner),
                address.host or None,
                address.port,
                ssl=shown,
                ssl_handshake_timeout=_HANDSHAKE_SECONDS,
            )
        except OSError as error:
            raise UsageError(
                f"{address.host}:{address.port} cannot be listened on: {error.strerror}; give another"
                " --guard-bind-address"
            ) from error
        try:
            door.port = int(listening.sockets[0].getsockname()[1])
            yield door
        finally:
            listening.close()
    finally:
        await runner.cleanup()


def _protocols(runner: web.AppRunner) -> web.Server:
    if runner.server is None:
        raise RuntimeError("a runner that is set up has a server")
    return runner.server


@dataclass(slots=True)
class Door:
    """``port`` is where it listens; ``free`` is how many more reviews may be read and judged now. Of one that is
    ``leaving`` each answer ends its connection: API servers keep theirs, and would go on asking a pod that ends.
    """

    port: int = 0
    free: int = MOST
    leaving: bool = False


def _handler(rule: Rule, judge: Judge, told: Told, door: Door) -> Callable[[web.Request], Awaitable[web.Response]]:
    return partial(_bounded, rule, judge, told, door)


async def _bounded(rule: Rule, judge: Judge, told: Told, door: Door, request: web.Request) -> web.Response:
    # What has not been read of a body stays in the connection, so that is of no more use.
    if door.free <= 0:
        return _closing(web.Response(status=503, text=f"{MOST} reviews are being judged: ask again\n"))
    door.free -= 1
    try:
        async with asyncio.timeout(_BODY_SECONDS):
            body = await request.read()
        answer = _answer(rule, judge, told, body)
        return _closing(answer) if door.leaving else answer
    except TimeoutError:
        late = f"the review did not come within {_BODY_SECONDS:g} seconds\n"
        return _closing(web.Response(status=408, text=late))
    finally:
        door.free += 1


def _closing(answer: web.Response) -> web.Response:
    answer.force_close()
    return answer


def _answer(rule: Rule, judge: Judge, told: Told, body: bytes) -> web.Response:
    try:
        asked = review.read(body)
    except BadReview as error:
        return web.Response(status=400, text=f"{error}\n")
    try:
        verdict = judge(rule, asked)
    except Exception:
        # Whatever it is, it is our mistake, and serving goes before it.
        log.exception("edit not judged", extra={"fields": _where(rule, asked)})
        verdict = failed("a bug, which the controller's log tells of")
    told(rule, verdict.outcome)
    if verdict.outcome is Outcome.DENIED:
        log.info("edit denied", extra={"fields": {**_where(rule, asked), "why": verdict.message}})
    elif verdict.outcome is Outcome.REPAIRED:
        log.info("edit repaired", extra={"fields": {**_where(rule, asked), "why": "; ".join(verdict.warnings)}})
    return web.Response(body=review.answer(asked.uid, verdict), content_type="application/json")


def _where(rule: Rule, asked: Request) -> dict[str, str]:
    by = asked.user_info.username
    return {"rule": str(rule), "namespace": asked.namespace, "name": asked.name, "by": by}
