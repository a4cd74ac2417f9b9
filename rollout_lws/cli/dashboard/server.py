"""The page's own HTTP server: files of the page, server-sent events, and requests to act."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.resources import files
from typing import Any

from aiohttp import web

from rollout_lws.cli.access.transport import Transport
from rollout_lws.cli.dashboard.acting import Acting
from rollout_lws.cli.dashboard.feeds import Feeds, ListFeed, event
from rollout_lws.cli.dashboard.protection import HEADERS, TOKEN, Door, Enter, Refused, judge
from rollout_lws.errors import ApiError, RolloutLwsError, UsageError
from rollout_lws.objects.resources import Resource

Object = dict[str, Any]
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
#: Seconds between two signs of life on a quiet stream, by which a browser notices a server that is gone.
_ALIVE = 15.0
#: Files of the page, by the end of their names.
_TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_LARGEST_BODY = 16 * 1024


@dataclass(frozen=True, slots=True)
class Page:
    """What the server is told: the cluster, the namespace that it lists ("" for all), and whether it may act."""

    transport: Transport
    rollouts: Resource
    namespace: str
    selector: str | None
    read_only: bool


class Dashboard:
    """The server of one page. ``application`` is aiohttp's."""

    def __init__(self, page: Page, door: Door) -> None:
        self._page, self._door = page, door
        self._feeds = Feeds(page.transport, page.rollouts)
        self._acting = Acting(page.transport, page.rollouts, read_only=page.read_only)
        self._files = {each.name: each.read_bytes() for each in files(__package__).joinpath("page").iterdir()}
        self._list: ListFeed | None = None
        self.application = web.Application(client_max_size=_LARGEST_BODY, middlewares=[self._guarded])
        self.application.cleanup_ctx.append(self._listing)
        add = self.application.router.add_route
        add("GET", "/files/{name}", self._file)
        add("GET", "/stream/list", self._stream_list)
        add("GET", "/stream/release/{namespace}/{name}", self._stream_release)
        add("GET", "/rights/{namespace}", self._rights)
        add("POST", "/actions/{namespace}/{name}", self._act)
        # An address is what is shown: the page reads it.
        add("GET", "/", self._index)
        add("GET", "/{namespace}/{name}", self._index)

    async def _listing(self, _: web.Application) -> Any:
        page = self._page
        with ListFeed(page.transport, page.rollouts, page.namespace, page.selector) as self._list:
            yield

    @web.middleware
    async def _guarded(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        headers = {name.lower(): value for name, value in request.headers.items()}
        verdict = judge(self._door, request.method, headers, request.query.get(TOKEN))
        if isinstance(verdict, Refused):
            return _refused(verdict.code, verdict.why)
        if isinstance(verdict, Enter):
            return self._let_in(request)
        try:
            answer = await handler(request)
        except web.HTTPException as error:
            answer = _refused(error.status, error.reason)
        except ApiError as error:
            answer = _refused(error.code, error.message)
        except UsageError as error:
            answer = _refused(409, str(error))
        except RolloutLwsError as error:
            answer = _refused(502, str(error))
        if not answer.prepared:
            answer.headers.update(HEADERS)
        return answer

    def _let_in(self, request: web.Request) -> web.Response:
        """To the same address without the token, which is then in no history."""
        answer = web.Response(
            status=303, headers={**HEADERS, "Location": request.rel_url.without_query_params(TOKEN).human_repr()}
        )
        answer.set_cookie(self._door.cookie, self._door.ticket, httponly=True, samesite="Lax", path="/")
        return answer

    async def _index(self, _: web.Request) -> web.Response:
        return self._of_page("index.html")

    async def _file(self, request: web.Request) -> web.Response:
        return self._of_page(request.match_info["name"])

    def _of_page(self, name: str) -> web.Response:
        found = self._files.get(name)
        kind = _TYPES.get("." + name.rpartition(".")[2])
        if found is None or kind is None:
            return _refused(404, "there is no such file")
        return web.Response(body=found, content_type=kind, charset="utf-8")

    async def _stream_list(self, request: web.Request) -> web.StreamResponse:
        assert self._list is not None
        hello = {"cluster": self._page.transport.cluster, "namespace": self._page.namespace}
        return await self._stream(request, self._list.messages(), hello)

    async def _stream_release(self, request: web.Request) -> web.StreamResponse:
        async with self._feeds.of(request.match_info["namespace"], request.match_info["name"]) as feed:
            return await self._stream(request, feed.messages(), {"cluster": self._page.transport.cluster})

    async def _stream(self, request: web.Request, messages: Any, hello: Object) -> web.StreamResponse:
        stream = web.StreamResponse(headers={**HEADERS, "Content-Type": "text/event-stream"})
        await stream.prepare(request)
        # A page may go at any time; that is no error.
        with suppress(ConnectionResetError):
            await stream.write(event("hello", {**hello, "now": datetime.now(UTC).isoformat()}))
            waiting = asyncio.ensure_future(anext(messages))
            try:
                while True:
                    done, _ = await asyncio.wait({waiting}, timeout=_ALIVE)
                    if not done:
                        await stream.write(b": alive\n\n")
                        continue
                    kind, value = waiting.result()
                    await stream.write(event(kind, value))
                    waiting = asyncio.ensure_future(anext(messages))
            finally:
                waiting.cancel()
        return stream

    async def _rights(self, request: web.Request) -> web.Response:
        found = await asyncio.to_thread(self._acting.rights, request.match_info["namespace"])
        return web.json_response(found)

    async def _act(self, request: web.Request) -> web.Response:
        try:
            asked = await request.json()
        except json.JSONDecodeError:
            asked = None
        if not isinstance(asked, dict):
            return _refused(400, "send a JSON object")
        namespace, name = request.match_info["namespace"], request.match_info["name"]
        told = await asyncio.to_thread(self._acting.act, namespace, name, asked)
        return web.json_response({"told": told})


def _refused(code: int, why: str) -> web.Response:
    return web.json_response({"refused": why}, status=code, headers=HEADERS)
