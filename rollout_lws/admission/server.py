"""The webhook's HTTPS server; its certificate can be replaced while it serves."""

from __future__ import annotations

import logging
import os
import ssl
import tempfile
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from aiohttp import web

from rollout_lws import inbound
from rollout_lws.admission import review
from rollout_lws.admission.desk import SECONDS, Desk, NoRoom, Paper
from rollout_lws.admission.review import BadReview, Look, Outcome, Request, Response, Rule, failed
from rollout_lws.errors import UsageError
from rollout_lws.settings import Address

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rollout_lws.admission.certificates import Identity

log = logging.getLogger(__name__)

#: Decodes the edit. Runs in a thread, as ``Decide`` does.
Judge = Callable[[Rule, Request], Look]
Told = Callable[[Rule, Outcome], None]


def context() -> ssl.SSLContext:
    """The TLS context of a server without a certificate yet: ``show`` sets it, and replaces it later."""
    return ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)


def show(context: ssl.SSLContext, identity: Identity) -> None:
    """Use ``identity`` from the next handshake on; existing connections stay."""
    with _readable(identity.certificate + identity.key) as path:
        context.load_cert_chain(path)


@contextmanager
def _readable(content: bytes) -> Iterator[str]:
    """The ssl module loads keys only from files, and this key must not reach a disk; nor can a container always write
    to one.
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
async def served(address: Address, shown: ssl.SSLContext, judge: Judge, told: Told) -> AsyncIterator[ServerState]:
    """Judges reviews posted to /hold, /pending and /plan, until the block ends. Edits that cannot be judged are allowed
    with a warning. UsageError when ``address`` cannot be listened on.
    """
    async with AsyncExitStack() as stack:
        guard = _Guard(judge, told, Desk(stack.enter_context(ThreadPoolExecutor(1, "guard"))))
        application = web.Application()
        for rule in Rule:
            application.router.add_post(f"/{rule}", partial(guard.answer, rule))
        try:
            guard.room = await stack.enter_async_context(inbound.served(application, address, shown))
        except OSError as error:
            raise UsageError(
                f"{address.host}:{address.port} cannot be listened on: {error.strerror}; give another"
                " --guard-bind-address"
            ) from error
        guard.state.port = guard.room.port
        yield guard.state


@dataclass(slots=True)
class ServerState:
    """``port`` is where it listens. While ``leaving``, each answer closes its connection: API servers reuse connections
    and would otherwise keep calling a terminating pod.
    """

    port: int = 0
    leaving: bool = False


@dataclass(slots=True)
class _Guard:
    judge: Judge
    told: Told
    desk: Desk
    state: ServerState = field(default_factory=ServerState)
    room: inbound.Room = field(default_factory=inbound.Room)

    async def answer(self, rule: Rule, request: web.Request) -> web.Response:
        if (request.content_length or 0) > review.LARGEST:
            return _too_large()
        try:
            async with self.desk.paper() as paper:
                while chunk := await request.content.readany():
                    self.desk.add(paper, chunk)
                    if paper.size > review.LARGEST:
                        return _too_large()
                self.room.complete(request, partial(self.desk.leave, paper))
                async with self.desk.turn(paper):
                    with self.room.judging(request):
                        answer = await self._judged(rule, paper)
        except (ConnectionError, web.RequestPayloadError):
            # The client is gone and will not see this answer.
            return _closing(web.Response(status=400))
        except NoRoom:
            return _closing(web.Response(status=503, text="too much is being asked: ask again\n"))
        except TimeoutError:
            late = f"the review did not come, or was not judged, within {SECONDS:g} seconds\n"
            return _closing(web.Response(status=408, text=late))
        return _closing(answer) if self.state.leaving else answer

    async def _judged(self, rule: Rule, paper: Paper) -> web.Response:
        try:
            asked, crowded = await self.desk.aside(partial(_read, rule, paper))
        except BadReview as error:
            return web.Response(status=400, text=f"{error}\n")
        response = failed(f"it has more than {review.MOST_VALUES[rule]:,} values") if crowded else None
        try:
            response = response or await self._response(rule, asked)
        except Exception:
            # Any exception here is our bug, and must not block the edit.
            log.exception("edit not judged", extra={"fields": _where(rule, asked)})
            response = failed("a bug; see the controller's log")
        self.told(rule, response.outcome)
        if response.outcome is Outcome.DENIED:
            log.info("edit denied", extra={"fields": {**_where(rule, asked), "why": response.message}})
        elif response.outcome is Outcome.REPAIRED:
            log.info("edit repaired", extra={"fields": {**_where(rule, asked), "why": "; ".join(response.warnings)}})
        return web.Response(body=review.answer(asked.uid, response), content_type="application/json")

    async def _response(self, rule: Rule, asked: Request) -> Response:
        look = await self.desk.aside(partial(self.judge, rule, asked))
        # The caches change in the event loop, so they are read there.
        return await self.desk.aside(look())


def _read(rule: Rule, paper: Paper) -> tuple[Request, bool]:
    """The request, and whether it has more values than the limit."""
    body = paper.taken()
    return review.read(body), review.crowded(rule, body)


def _too_large() -> web.Response:
    return _closing(web.Response(status=413, text=f"a review of at most {review.LARGEST} bytes is read\n"))


def _closing(answer: web.Response) -> web.Response:
    # Unread parts of the body stay in the connection, so it cannot be reused.
    answer.force_close()
    return answer


def _where(rule: Rule, asked: Request) -> dict[str, str]:
    by = asked.user_info.username
    return {"rule": str(rule), "namespace": asked.namespace, "name": asked.name, "by": by}
