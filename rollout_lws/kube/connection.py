"""The real transport: kubernetes-asyncio's configuration, login and TLS under an aiohttp session.

kubernetes-asyncio's raw mode checks no statuses and has no timeouts, and its session reads proxies and netrc for every
request (which doubles the cost of a call); this module does all of that. ``rollout_lws.kubeconfig`` interprets the
kubeconfig first: kubernetes-asyncio alone could choose another server or user than kubectl.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import aiohttp
from aiohttp.abc import AbstractStreamWriter
from kubernetes_asyncio import config
from kubernetes_asyncio.client import Configuration
from kubernetes_asyncio.client.rest import RESTClientObject

from rollout_lws.errors import Unreachable, UsageError
from rollout_lws.kube.bounded import whole
from rollout_lws.kube.login import Login, configured, why
from rollout_lws.kube.status import refused
from rollout_lws.kube.transport import Guard, Relay
from rollout_lws.kubeconfig.context import Context, load
from rollout_lws.kubeconfig.login import Headers, impersonation, program_of
from rollout_lws.kubeconfig.proxies import proxy_of
from rollout_lws.kubeconfig.target import Target
from rollout_lws.kubeconfig.urls import is_header_value, shown

#: Longest line of a watch: etcd accepts no object above 1.5 MB, and its JSON is not much larger.
_LINE_LIMIT = 8 * 2**20
#: Connection timeout: a machine that is down does not even refuse a connection.
_CONNECT_SECONDS = 10.0
#: Beginnings of headers by which the API server knows a client: they are never a pod's.
_CREDENTIALS = ("authorization", "impersonate-")
_NO_ANSWER = (aiohttp.ClientError, TimeoutError, OSError)


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    status: int
    headers: Mapping[str, str]
    body: bytes


class _Guarded(aiohttp.BytesPayload):
    """A body that calls the guard as it is sent: connecting may have taken seconds, or the process may have been
    stopped meanwhile. A server does not process a request whose body never arrives.
    """

    def __init__(self, body: bytes, guard: Guard) -> None:
        super().__init__(body)
        self._guard = guard

    async def write_with_length(self, writer: AbstractStreamWriter, content_length: int | None) -> None:
        self._guard()
        await super().write_with_length(writer, content_length)


class Connection:
    """A transport to one API server; must be closed. ``login`` refreshes the credentials in ``configuration``;
    ``headers`` are added to each request.
    """

    def __init__(
        self, configuration: Configuration, login: Login | None = None, headers: Sequence[tuple[str, str]] = ()
    ) -> None:
        # Every watch holds a connection for its lifetime; in a limited pool, requests would wait for them.
        configuration.connection_pool_maxsize = 0
        self._configuration = configuration
        self._login = login
        self._headers_of_all = [("accept", "application/json"), ("user-agent", "rollout-lws"), *headers]
        self._wire: dict[str, Any] = {"proxy": configuration.proxy, "proxy_headers": configuration.proxy_headers}
        if configuration.tls_server_name:
            self._wire["server_hostname"] = configuration.tls_server_name
        self._rest = RESTClientObject(configuration)
        connector = self._rest.pool_manager.connector
        self._session = aiohttp.ClientSession(
            connector=connector,
            connector_owner=False,
            trust_env=False,
            # Pods answer in the same session, through the server's proxy.
            cookie_jar=aiohttp.DummyCookieJar(),
            read_bufsize=2**18,
            auto_decompress=True,
        )

    async def close(self) -> None:
        await self._session.close()
        await self._rest.close()

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str],
        body: bytes | None,
        content_type: str,
        timeout: float,  # noqa: ASYNC109 - a property of the connection, not of the caller's scope
        guard: Guard | None = None,
    ) -> HttpAnswer:
        headers = await self._headers(content_type if body is not None else None)
        try:
            async with self._session.request(
                method,
                self._configuration.host.rstrip("/") + path,
                params=params,
                data=body if body is None or guard is None else _Guarded(body, guard),
                headers=headers,
                timeout=aiohttp.ClientTimeout(total=timeout),
                **self._wire,
            ) as response:
                content = await response.read()
                self._look_at(response.status)
                return HttpAnswer(response.status, {k.lower(): v for k, v in response.headers.items()}, content)
        except _NO_ANSWER as error:
            raise Unreachable(f"{method} {path}: no answer ({why(error, self._configuration)})") from error

    async def relay(self, path: str, relay: Relay, guard: Guard | None = None) -> HttpAnswer:
        given = [(name, value) for name, value in relay.headers.items() if not name.lower().startswith(_CREDENTIALS)]
        names = {name.lower() for name, _ in given}
        ours = [(name, value) for name, value in await self._headers(None) if name not in names]
        body = relay.body
        try:
            async with self._session.request(
                relay.method,
                self._configuration.host.rstrip("/") + path,
                data=body if body is None or guard is None else _Guarded(body, guard),
                headers=[*ours, *given],
                timeout=aiohttp.ClientTimeout(total=relay.seconds),
                allow_redirects=False,
                auto_decompress=False,
                **self._wire,
            ) as response:
                content = await whole(response.content, relay.longest)
                return HttpAnswer(response.status, {k.lower(): v for k, v in response.headers.items()}, content)
        except _NO_ANSWER as error:
            raise Unreachable(f"{relay.method} {path}: no answer ({why(error, self._configuration)})") from error

    def stream(
        self, path: str, *, params: Mapping[str, str], timeout: float
    ) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        return self._stream(path, params, timeout)

    @asynccontextmanager
    async def _stream(
        self, path: str, params: Mapping[str, str], silence: float
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        headers = await self._headers(None)
        try:
            response = await self._session.get(
                self._configuration.host.rstrip("/") + path,
                params={**params, "watch": "true"},
                headers=headers,
                timeout=aiohttp.ClientTimeout(
                    total=None, sock_connect=min(silence, _CONNECT_SECONDS), sock_read=silence
                ),
                **self._wire,
            )
        except _NO_ANSWER as error:
            raise Unreachable(f"watch of {path} did not begin ({why(error, self._configuration)})") from error
        # Only transport failures become Unreachable; exceptions of the reading code stay as they are.
        async with response:
            self._look_at(response.status)
            lines = _lines(path, response.content, self._configuration)
            if response.status >= 400:
                told = {key.lower(): value for key, value in response.headers.items()}
                raise refused(response.status, told, b"".join([each async for each in lines]))
            yield lines

    def _look_at(self, status: int) -> None:
        if status == 401 and self._login is not None:
            self._login.refused()

    async def _headers(self, content_type: str | None) -> Headers:
        headers = [*self._headers_of_all]
        if content_type:
            headers.append(("content-type", content_type))
        # Its refresh hook may replace an expired token, from a file or a login program.
        token = await self._configuration.get_api_key_with_prefix("BearerToken")
        if token:
            # Tokens from a kubeconfig's block scalar, a file or a program end with a newline.
            headers.append(("authorization", token.strip()))
        for name, value in headers:
            if not is_header_value(value):
                what = "token" if name == "authorization" else name
                raise Unreachable(f"no request is sent: the login's {what} has characters that no header may have")
        return headers


async def _lines(path: str, content: aiohttp.StreamReader, configuration: Any) -> AsyncIterator[bytes]:
    """Lines of any length up to the limit; aiohttp's own reader stops at its buffer's size."""
    rest = b""
    try:
        async for chunk in content.iter_any():
            *whole, rest = (rest + chunk).split(b"\n")
            for line in whole:
                yield line
            if len(rest) > _LINE_LIMIT:
                raise Unreachable(f"watch of {path} sent a line without end")
    except _NO_ANSWER as error:
        raise Unreachable(f"watch of {path} was cut ({why(error, configuration)})") from error
    if rest:
        yield rest


async def connect(kubeconfig: str | None = None, context: str | None = None) -> Connection:
    """Connect according to a kubeconfig; without one, as the pod's service account, otherwise as kubectl would.

    Only reads the configuration; the first request shows whether the server is reachable. UsageError when there is no
    readable configuration, or it is invalid.
    """
    configuration = Configuration()
    if kubeconfig is None and context is None:
        try:
            config.load_incluster_config(client_configuration=configuration)
        except config.ConfigException:
            pass
        else:
            return Connection(configuration)
    return await connected(load(Target(kubeconfig=kubeconfig, context=context)))


async def connected(chosen: Context) -> Connection:
    """Connect to the server of a context, flags included. UsageError as above."""
    configuration = Configuration()
    if proxy_of(chosen.server, chosen.cluster, {}).startswith("socks"):
        raise UsageError(
            f"the kubeconfig's proxy-url {shown(chosen.cluster['proxy-url'])!r} is a SOCKS proxy, which neither the"
            " controller nor analyze can use: give it one of http:// or https://"
        )
    try:
        loading = partial(config.load_kube_config_from_dict, configured(chosen))
        loader = await loading(client_configuration=configuration)
        login = Login(loading, loader, by_program=program_of(chosen.user) is not None)
        configuration.refresh_api_key_hook = login.renew
        return Connection(configuration, login, impersonation(chosen.user))
    except UsageError:
        raise
    except Exception as error:  # any message of a login program, and any invalid certificate
        raise UsageError(
            f"no access to a cluster by context {chosen.name!r}: {why(error, configuration)}; give another"
            " --kubeconfig or --context"
        ) from error
