"""The page's own HTTP server: files of the page, server-sent events, and requests to act."""

from __future__ import annotations

import asyncio
import json
import sys
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Any

from aiohttp import web

from rollout_lws import __version__
from rollout_lws.cli.access.transport import Transport
from rollout_lws.cli.dashboard.acting import Acting
from rollout_lws.cli.dashboard.background import in_thread
from rollout_lws.cli.dashboard.feeds import Feeds
from rollout_lws.cli.dashboard.group_view import fetch_group
from rollout_lws.cli.dashboard.history_view import fetch_history
from rollout_lws.cli.dashboard.list_feed import ListFeed
from rollout_lws.cli.dashboard.protection import HEADERS, TOKEN, Door, Enter, Refused, judge
from rollout_lws.cli.dashboard.sse import STREAM_HEADERS, Feed, send
from rollout_lws.cli.get.caller import Caller
from rollout_lws.errors import ApiError, RolloutLwsError, UsageError
from rollout_lws.objects.resources import Resource

Object = dict[str, Any]
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
#: The one script that is no module.
_NO_MODULE = "boot.js"
#: Files of the page, by the end of their names.
_TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_LARGEST_BODY = 16 * 1024
#: Names of namespaces and Rollouts, as the API server takes them.
_NAME = "[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?"
#: A group's index: a number, or a key.
_INDEX = "[A-Za-z0-9][A-Za-z0-9._-]{0,62}"
_ROLLOUT = f"/{{namespace:{_NAME}}}/{{name:{_NAME}}}"


@dataclass(frozen=True, slots=True)
class Page:
    """What the server is told: the cluster, the namespace that it lists ("" for all), whether it may act, and how
    commands that act on a namespace are printed.
    """

    transport: Transport
    rollouts: Resource
    namespace: str
    selector: str | None
    read_only: bool
    caller: Callable[[str], Caller]


class Dashboard:
    """The server of one page. ``application`` is aiohttp's; ``taken`` is set once the browser that was opened is in."""

    def __init__(self, page: Page, door: Door) -> None:
        self._page, self._door = page, door
        self._feeds = Feeds(page.transport, page.rollouts, page.caller)
        self._acting = Acting(page.transport, page.rollouts, read_only=page.read_only)
        self._files = _files()
        self._list: ListFeed | None = None
        self.taken = asyncio.Event()
        self.application = web.Application(client_max_size=_LARGEST_BODY, middlewares=[self._guarded])
        self.application.cleanup_ctx.append(self._listing)
        router = self.application.router
        router.add_get("/-/files/{name}", self._file)
        router.add_get("/-/stream/list", self._stream_list)
        router.add_get(f"/-/stream/release{_ROLLOUT}", self._stream_release)
        router.add_get(f"/-/groups{_ROLLOUT}/{{workload:{_NAME}}}/{{index:{_INDEX}}}", self._group)
        router.add_get(f"/-/history{_ROLLOUT}", self._history)
        router.add_get(f"/-/rights{_ROLLOUT}", self._rights)
        router.add_post(f"/-/actions{_ROLLOUT}", self._act)
        # Any other address is what is shown, and the page reads it: no namespace is named "-".
        router.add_get("/", self._index)
        router.add_get(_ROLLOUT, self._index)

    def revoke(self) -> None:
        """The token for one browser lets none in any more."""
        self._door = replace(self._door, once="")

    async def _listing(self, _: web.Application) -> AsyncIterator[None]:
        page = self._page
        self._list = ListFeed(page.transport, page.rollouts, page.namespace, page.selector)
        yield
        await asyncio.gather(in_thread(self._list.close), self._feeds.close())

    @web.middleware
    async def _guarded(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        headers = {name.lower(): value for name, value in request.headers.items()}
        verdict = judge(self._door, request.method, headers, request.query.get(TOKEN))
        if isinstance(verdict, Refused):
            return _refused(verdict.code, verdict.why)
        if isinstance(verdict, Enter):
            return self._let_in(request, verdict)
        answer = await _answered(request, handler)
        if not answer.prepared:
            answer.headers.update(HEADERS)
        return answer

    def _let_in(self, request: web.Request, verdict: Enter) -> web.Response:
        """To the same address without the token, which is then in no history."""
        if verdict.spent:
            self.revoke()
            self.taken.set()
        # Two slashes at the beginning would lead to another server.
        address = "/" + str(request.rel_url.without_query_params(TOKEN)).lstrip("/")
        answer = web.Response(status=303, headers={**HEADERS, "Location": address})
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
        return await self._stream(request, self._list, self._page.namespace)

    async def _stream_release(self, request: web.Request) -> web.StreamResponse:
        namespace, name = request.match_info["namespace"], request.match_info["name"]
        if request.method == "HEAD":
            return web.Response(headers=STREAM_HEADERS)
        feed = self._feeds.enter(namespace, name)
        try:
            return await self._stream(request, feed, namespace)
        finally:
            self._feeds.leave(namespace, name)

    async def _stream(self, request: web.Request, feed: Feed, namespace: str) -> web.StreamResponse:
        if request.method == "HEAD":
            return web.Response(headers=STREAM_HEADERS)
        hello = {
            "cluster": self._page.transport.cluster,
            "namespace": namespace,
            "readOnly": self._page.read_only,
            "version": __version__,
        }
        return await send(request, feed, hello, self._now)

    def _now(self) -> str:
        return self._page.transport.clock.now().isoformat(timespec="milliseconds")

    async def _group(self, request: web.Request) -> web.Response:
        namespace, name, workload, index = (
            request.match_info[each] for each in ("namespace", "name", "workload", "index")
        )
        rollouts, caller = self._page.rollouts, self._page.caller(namespace)
        return await self._fetched(
            namespace, lambda transport: fetch_group(transport, rollouts, caller, name, workload, index)
        )

    async def _history(self, request: web.Request) -> web.Response:
        namespace, name = request.match_info["namespace"], request.match_info["name"]
        return await self._fetched(namespace, lambda transport: fetch_history(transport, self._page.rollouts, name))

    async def _fetched(self, namespace: str, fetch: Callable[[Transport], Object]) -> web.Response:
        """The answer with what is read from the cluster."""

        def read() -> Object:
            # The thread that reads opens and closes its connection: the event loop would wait for that thread to close
            # it, when a page goes whose request is on.
            with self._page.transport.within(namespace) as transport:
                return fetch(transport)

        return web.json_response(await in_thread(read))

    async def _rights(self, request: web.Request) -> web.Response:
        namespace, name = request.match_info["namespace"], request.match_info["name"]
        return web.json_response(await in_thread(self._acting.rights, namespace, name))

    async def _act(self, request: web.Request) -> web.Response:
        try:
            asked = await request.json()
        except ValueError:
            asked = None
        if not isinstance(asked, dict):
            return _refused(400, "send a JSON object")
        namespace, name = request.match_info["namespace"], request.match_info["name"]
        return web.json_response({"told": await in_thread(self._acting.act, namespace, name, asked)})


def _files() -> dict[str, bytes]:
    """Files of the page by name."""
    found = {each.name: each.read_bytes() for each in files(__package__).joinpath("page").iterdir()}
    # A browser learns of a module's imports by reading it; told of all of them at once, it fetches them in one round.
    modules = (name for name in sorted(found) if name.endswith(".js") and name != _NO_MODULE)
    links = (f'<link rel="modulepreload" href="/-/files/{name}">\n' for name in modules)
    head = "".join((f'<meta name="version" content="{__version__}">\n', *links))
    found["index.html"] = found["index.html"].replace(b"</head>", f"{head}</head>".encode())
    return found


async def _answered(request: web.Request, handler: Handler) -> web.StreamResponse:
    """The handler's answer; a refusal in words for what it raises."""
    try:
        return await handler(request)
    except web.HTTPException as error:
        return _refused(error.status, error.reason)
    except ApiError as error:
        # 401 is this server's own word for a browser that was not let in.
        return _refused(error.code if 402 <= error.code < 500 else 502, error.message)
    except UsageError as error:
        return _refused(409, str(error))
    except RolloutLwsError as error:
        return _refused(502, str(error))
    except Exception as error:
        traceback.print_exc(file=sys.stderr)
        return _refused(500, f"rollout-lws dashboard has failed: {error!r}")


def _refused(code: int, why: str) -> web.Response:
    return web.Response(
        text=json.dumps({"refused": why}), status=code, content_type="application/json", headers=HEADERS
    )
