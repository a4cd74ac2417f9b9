"""The sandbox's API server over HTTP, for kubectl and every other client.

kubectl sends no credentials over plain HTTP. The server therefore accepts the token as a bearer token and as the first
part of the path; the kubeconfig written here uses the path.
"""

from __future__ import annotations

import hmac
import secrets
from contextlib import suppress
from email.utils import formatdate
from typing import Any

from aiohttp import web

from rollout_lws.errors import ApiError, Unreachable
from rollout_lws.sandbox import codec
from rollout_lws.sandbox.apiserver import ApiServer
from rollout_lws.sandbox.faults import Faults
from rollout_lws.sandbox.request_pipeline import Gate
from rollout_lws.sandbox.routes import Request, Response, target_of, verb_of

#: The largest accepted body: a little above etcd's limit.
_LARGEST_BODY = 3 * 1024 * 1024
_OPEN_PATHS = ("/healthz", "/livez", "/readyz", "/version")
_TOKEN_PATH = "/token/"


class Server:
    """An ApiServer over HTTP. Clients must send ``token``; by default it is random."""

    def __init__(self, server: ApiServer, *, faults: Faults | None = None, token: str | None = None) -> None:
        self.gate = Gate(server, faults)
        self.token = token or secrets.token_urlsafe(24)
        self._runner: web.AppRunner | None = None
        self._address = ("", 0)

    @property
    def url(self) -> str:
        """http://host:port, once started."""
        return f"http://{self._address[0]}:{self._address[1]}"

    async def start(self, host: str = "127.0.0.1", port: int = 0) -> None:
        """Listen; port 0 picks a free port."""
        application = web.Application(client_max_size=_LARGEST_BODY)
        application.router.add_route("*", "/{path:.*}", self._serve)
        application.on_response_prepare.append(self._date)
        self._runner = web.AppRunner(application, access_log=None, handler_cancellation=True, shutdown_timeout=1.0)
        await self._runner.setup()
        site = web.TCPSite(self._runner, host, port)
        await site.start()
        self._address = self._runner.addresses[0][:2]

    async def stop(self) -> None:
        """End all watches and stop listening."""
        self.gate.faults.cut_watches()
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    def kubeconfig(self) -> dict[str, Any]:
        """The kubeconfig of this server."""
        name = "sandbox"
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": name,
            "clusters": [{"name": name, "cluster": {"server": self.url + _TOKEN_PATH + self.token}}],
            "users": [{"name": name, "user": {"token": self.token}}],
            "contexts": [{"name": name, "context": {"cluster": name, "user": name, "namespace": "default"}}],
        }

    async def _date(self, _: web.Request, response: web.StreamResponse) -> None:
        """Clients learn the server's time from there."""
        response.headers["Date"] = formatdate(self.gate.server.clock(), usegmt=True)

    async def _serve(self, http: web.Request) -> web.StreamResponse:
        headers = {name.lower(): value for name, value in http.headers.items()}
        path, given = http.rel_url.raw_path, headers.get("authorization", "").removeprefix("Bearer ")
        if path.startswith(_TOKEN_PATH):
            given, _, path = path.removeprefix(_TOKEN_PATH).partition("/")
            path = f"/{path}"
        if path not in _OPEN_PATHS and not hmac.compare_digest(given.encode(), self.token.encode()):
            return _plain(codec.refused(ApiError(401, "Unauthorized", "Unauthorized")))
        request = Request(http.method, path, dict(http.query), headers, await http.read())
        try:
            if request.flag("watch") and verb_of(request, target_of(self.gate.server, path)) == "watch":
                return await self._watch(http, request)
            return _plain(await self.gate.answer(request))
        except ApiError as error:
            return _plain(codec.refused(error))
        except Unreachable:
            if http.transport is not None:
                http.transport.abort()
            return web.Response(status=503)

    async def _watch(self, http: web.Request, request: Request) -> web.StreamResponse:
        async with self.gate.watch(request) as lines:
            response = web.StreamResponse(headers={"content-type": "application/json"})
            response.enable_chunked_encoding()
            # A client may disconnect at any time; that is not an error.
            with suppress(ConnectionResetError):
                await response.prepare(http)
                async for line in lines:
                    await response.write(line)
                await response.write_eof()
            return response


def _plain(response: Response) -> web.Response:
    return web.Response(status=response.status, body=response.body, headers=response.headers)
