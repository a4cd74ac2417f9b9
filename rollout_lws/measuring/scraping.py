"""Scrapes one pod's metrics: from its address, or through the API server for a controller outside of the cluster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import aiohttp

from rollout_lws.errors import ApiError, Unreachable
from rollout_lws.kube.bounded import whole
from rollout_lws.kube.client import Client
from rollout_lws.kube.transport import Relay, TooLong
from rollout_lws.objects.addresses import declared, leads_elsewhere, pod_address
from rollout_lws.objects.permissions import Grant, Permission, allow, is_denied
from rollout_lws.objects.resources import PODS
from rollout_lws.rollout.decision import Endpoint

#: Seconds in which a pod has to answer.
SECONDS = 5.0
#: Longest answer, in bytes; a vLLM server with many models answers with some 300 kB.
LONGEST = 4 * 1024 * 1024
#: What the API server itself answers for a pod that it cannot reach, or that is gone.
_UNREACHED = frozenset({404, 502, 503, 504})
_TEXT = ("text/plain", "application/openmetrics-text")
_HEADERS = {"accept": "text/plain;version=0.0.4;q=1,*/*;q=0.1", "accept-encoding": "identity"}


class Unread(Exception):
    """Why a pod could not be read, for a status; ``silent`` if it did not answer at all."""

    def __init__(self, why: str, *, silent: bool = False) -> None:
        super().__init__(why)
        self.silent = silent


class Scraper(Protocol):
    """Reads metrics."""

    async def metrics(self, namespace: str, endpoint: Endpoint) -> str:
        """The answer's text. Raises Unread."""
        ...

    async def close(self) -> None:
        """Ends what is open."""
        ...


class PodScraper:
    """Asks pods at their addresses, never at that of the ``api_server`` ("" if it is not known). It follows no redirect
    and takes no proxy from the environment.
    """

    def __init__(self, api_server: str = "") -> None:
        self._api_server = api_server
        self._session: aiohttp.ClientSession | None = None

    async def metrics(self, namespace: str, endpoint: Endpoint) -> str:  # noqa: ARG002 - an address needs none
        address = _dialled(endpoint, self._api_server)
        if self._session is None:
            timeout = aiohttp.ClientTimeout(total=SECONDS)
            self._session = aiohttp.ClientSession(
                timeout=timeout, trust_env=False, cookie_jar=aiohttp.DummyCookieJar(), auto_decompress=False
            )
        url = f"http://{address}:{endpoint.port}{endpoint.path}"
        try:
            async with self._session.get(url, allow_redirects=False, headers=_HEADERS) as response:
                _checked(endpoint, response.status, response.headers)
                return _text(endpoint, await whole(response.content, LONGEST))
        except TooLong as error:
            raise Unread(f"{endpoint.path} answered {error}") from error
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            why = f"no answer in {SECONDS:g} s" if isinstance(error, TimeoutError) else str(error) or repr(error)
            raise Unread(f"{endpoint.path} on port {endpoint.port}: {why}", silent=True) from error

    async def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()


class ProxyScraper:
    """Asks pods through the API server's proxy, which needs ``get`` on pods/proxy."""

    def __init__(self, client: Client, grant: Grant = allow) -> None:
        self._client = client
        self._grant = grant

    async def metrics(self, namespace: str, endpoint: Endpoint) -> str:
        _declared(endpoint)
        try:
            answer = await self._client.relayed(
                namespace,
                f"{endpoint.pod}:{endpoint.port}",
                endpoint.path,
                Relay("GET", _HEADERS, None, SECONDS, LONGEST),
            )
        except TooLong as error:
            raise Unread(f"{endpoint.path} answered {error}") from error
        except ApiError as error:
            if is_denied(error, "get"):
                needs = Permission("get", PODS, namespace, "proxy")
                raise Unread(self._grant(needs.verb, needs.what)) from error
            told = f"{endpoint.path} answered {error.code}: {error.message}"
            raise Unread(told, silent=error.code in _UNREACHED) from error
        except Unreachable as error:
            raise Unread(f"{endpoint.path} through the API server: no answer in {SECONDS:g} s", silent=True) from error
        _checked(endpoint, answer.status, answer.headers)
        return _text(endpoint, answer.body)

    async def close(self) -> None:
        return


def _checked(endpoint: Endpoint, status: int, headers: Mapping[str, str]) -> None:
    """Raises Unread for what is no text of metrics. Both kinds of headers are looked up by names in lower case."""
    if 300 <= status < 400:
        raise Unread(f"{endpoint.path} answered {status}: name in spec.strategy.analysis.pods.path where it leads")
    if status != 200:
        raise Unread(f"{endpoint.path} answered {status}")
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in _TEXT:
        raise Unread(f"{endpoint.path} answered {kind or 'no content-type'}, not Prometheus' text format")
    packed = headers.get("content-encoding", "identity").strip().lower()
    if packed != "identity":
        raise Unread(f"{endpoint.path} answered {packed}, which was not asked for and may unpack to any size")


def _declared(endpoint: Endpoint) -> None:
    """Only ports that the pod declares are asked: others, those of a node among them, are none of a Rollout's."""
    try:
        declared(endpoint.port, "spec.strategy.analysis.pods.port")
    except ValueError as error:
        raise Unread(str(error)) from error
    if leads_elsewhere(endpoint.path):
        raise Unread(f"{endpoint.path!r} is no path of metrics")


def _dialled(endpoint: Endpoint, api_server: str) -> str:
    """The pod's address as an URL has it. A status that names the API server is not believed."""
    _declared(endpoint)
    try:
        address = pod_address(endpoint.address)
    except ValueError as error:
        raise Unread(str(error)) from error
    if address.strip("[]") == api_server:
        raise Unread(f"{address} is the API server's address")
    return address


def _text(endpoint: Endpoint, body: bytes) -> str:
    try:
        return body.decode()
    except UnicodeDecodeError as error:
        raise Unread(f"{endpoint.path} answered what is no text: {error.reason}") from error
