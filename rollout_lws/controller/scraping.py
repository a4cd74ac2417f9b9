"""Scrapes one pod's metrics: from its address, or through the API server for a controller outside of the cluster."""

from __future__ import annotations

from typing import Protocol

import aiohttp

from rollout_lws.errors import ApiError, Unreachable
from rollout_lws.kube.client import Client
from rollout_lws.objects.addresses import leads_elsewhere, node_port, pod_address
from rollout_lws.objects.permissions import Permission, allow, is_denied
from rollout_lws.objects.resources import PODS
from rollout_lws.rollout.decision import Endpoint

#: Seconds in which a pod has to answer.
SECONDS = 5.0
#: Longest answer, in bytes; a vLLM server with many models answers with some 300 kB.
LONGEST = 4 * 1024 * 1024
_TEXT = ("text/plain", "application/openmetrics-text")
_ACCEPT = "text/plain;version=0.0.4;q=1,*/*;q=0.1"


class Unread(Exception):
    """Why a pod could not be read, for a status."""


class Scraper(Protocol):
    """Reads metrics."""

    async def metrics(self, namespace: str, endpoint: Endpoint) -> str:
        """The answer's text. Raises Unread."""
        ...

    async def close(self) -> None:
        """Ends what is open."""
        ...


class PodScraper:
    """Asks pods at their addresses. It follows no redirect and takes no proxy from the environment."""

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None

    async def metrics(self, namespace: str, endpoint: Endpoint) -> str:  # noqa: ARG002 - an address needs none
        address = _dialled(endpoint)
        if self._session is None:
            timeout = aiohttp.ClientTimeout(total=SECONDS)
            self._session = aiohttp.ClientSession(timeout=timeout, trust_env=False, cookie_jar=aiohttp.DummyCookieJar())
        url = f"http://{address}:{endpoint.port}{endpoint.path}"
        try:
            async with self._session.get(url, allow_redirects=False, headers={"accept": _ACCEPT}) as response:
                if response.status != 200:
                    raise Unread(f"{endpoint.path} answered {response.status}")
                if response.content_type not in _TEXT:
                    raise Unread(f"{endpoint.path} answered {response.content_type}, not Prometheus' text format")
                return await _body(response)
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            why = f"no answer in {SECONDS:g} s" if isinstance(error, TimeoutError) else str(error) or repr(error)
            raise Unread(f"{endpoint.path} on port {endpoint.port}: {why}") from error

    async def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()


class ProxyScraper:
    """Asks pods through the API server's proxy, which needs ``get`` on pods/proxy."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def metrics(self, namespace: str, endpoint: Endpoint) -> str:
        _declared(endpoint)
        try:
            body = await self._client.proxied(namespace, endpoint.pod, endpoint.port, endpoint.path, SECONDS)
        except ApiError as error:
            if is_denied(error, "get"):
                needs = Permission("get", PODS, namespace, "proxy")
                raise Unread(allow(needs.verb, needs.what)) from error
            raise Unread(f"{endpoint.path} answered {error.code}: {error.message}") from error
        except Unreachable as error:
            raise Unread(f"{endpoint.path} through the API server: no answer in {SECONDS:g} s") from error
        if len(body) > LONGEST:
            raise Unread(f"{endpoint.path} answered more than {LONGEST // 2**20} MiB")
        return _decoded(body)

    async def close(self) -> None:
        return


def _declared(endpoint: Endpoint) -> None:
    """Only ports that the pod declares are asked: others, those of a node among them, are none of a Rollout's."""
    if endpoint.port <= 0:
        raise Unread("its template declares no such container port: name one in spec.strategy.analysis.pods.port")
    if node_port(endpoint.port):
        raise Unread(node_port(endpoint.port))
    if leads_elsewhere(endpoint.path):
        raise Unread(f"{endpoint.path!r} is no path of metrics")


def _dialled(endpoint: Endpoint) -> str:
    """The pod's address as an URL has it."""
    _declared(endpoint)
    try:
        return pod_address(endpoint.address)
    except ValueError as error:
        raise Unread(str(error)) from error


async def _body(response: aiohttp.ClientResponse) -> str:
    body = bytearray()
    async for chunk in response.content.iter_chunked(65_536):
        body += chunk
        if len(body) > LONGEST:
            raise Unread(f"the answer is longer than {LONGEST // 2**20} MiB")
    return _decoded(bytes(body))


def _decoded(body: bytes) -> str:
    try:
        return body.decode()
    except UnicodeDecodeError as error:
        raise Unread(f"the answer is no text: {error.reason}") from error
