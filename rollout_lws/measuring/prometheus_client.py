"""Asks a Prometheus: only one that the controller allows, with a token of the Rollout's namespace if it names one."""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import Collection
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar

import aiohttp
import msgspec

from rollout_lws.clock import Clock
from rollout_lws.errors import ApiError, Unreachable
from rollout_lws.kube.bounded import whole
from rollout_lws.kube.client import Client
from rollout_lws.kube.transport import TooLong
from rollout_lws.objects.permissions import Permission, allow, is_denied
from rollout_lws.objects.resources import SECRETS
from rollout_lws.origins import Allowed
from rollout_lws.prometheus.scrapes import Prometheus, Series

_Kind = TypeVar("_Kind")
#: Seconds in which it has to answer.
SECONDS = 10.0
#: Longest answer, in bytes: five minutes of 40 pods with 100 series each, scraped every 15 s, are some 3 MB. More is
#: asked for in smaller parts.
LONGEST = 4 * 1024 * 1024
#: Seconds by which its clock and ours may differ: samples are told apart by their times.
SKEW = 30.0
#: Label of Secrets that gates may send.
LABEL = "rollouts.kruise.io/gates"
_API = "/api/v1/query"


class Unanswered(Exception):
    """Why there is no answer, for a status."""


class TooMuch(Unanswered):
    """An answer is too long: less has to be asked for."""


class _Result(msgspec.Struct):
    metric: dict[str, str] = {}
    value: tuple[float, str] | None = None
    values: list[tuple[float, str]] = []
    histogram: msgspec.Raw | None = None
    histograms: list[tuple[float, msgspec.Raw]] = []


class _Data(msgspec.Struct):
    result: msgspec.Raw
    resultType: str = ""


class _Answer(msgspec.Struct):
    status: str = ""
    data: _Data | None = None
    error: str = ""
    warnings: list[str] = []
    isPartial: bool = False


class _Secret(msgspec.Struct):
    metadata: dict[str, Any] = {}
    data: dict[str, str] = {}


# Made before there are threads: answers are read in some, and msgspec may crash a process in which a thread uses a type
# while another one is the first to do so.
_answers = msgspec.json.Decoder(_Answer)
_scalars = msgspec.json.Decoder(tuple[float, str])
_results = msgspec.json.Decoder(list[_Result])


class PrometheusClient:
    """``allowed`` is what may be asked, ``default`` is the URL that is meant by a Rollout that names none.
    Secrets are read with ``client``, and ``token`` is sent to those for which no Secret is named; "" for none.
    """

    def __init__(
        self, client: Client, clock: Clock, allowed: Collection[Allowed], default: str, token: str = ""
    ) -> None:
        self._client = client
        self._clock = clock
        self._allowed = allowed
        self._default = default
        self._given = token
        self._session: aiohttp.ClientSession | None = None
        self._ahead: dict[str, float] = {}

    def ahead(self, prometheus: Prometheus) -> float:
        """Seconds by which the server's clock was ahead of ours at its last answer, rounded up; 0 if it was not.

        What it stamps may have been scraped so much earlier.
        """
        return self._ahead.get(prometheus.address or self._default, 0.0)

    async def samples(self, namespace: str, prometheus: Prometheus, query: str, at: datetime) -> list[Series]:
        """The series of a range of samples. Raises Unanswered."""
        kind, found = await self._asked(namespace, prometheus, query, at)
        if kind != "matrix":
            raise Unanswered(f"Prometheus answered a {kind}, not samples")
        # Some megabytes take longer than others should wait for the event loop.
        return await asyncio.to_thread(_all_series, found)

    async def number(self, namespace: str, prometheus: Prometheus, query: str, at: datetime) -> float:
        """The one number that a query has. Raises Unanswered."""
        kind, found = await self._asked(namespace, prometheus, query, at)
        if kind == "scalar":
            return _number(_decoded(found, _scalars)[1])
        if kind != "vector":
            raise Unanswered(f"the query's result is a {kind}: make it one number")
        results = _decoded(found, _results)
        if not results:
            raise Unanswered("the query has no result: no series matches it")
        if len(results) > 1:
            shown = ", ".join(sorted(_labels(each.metric) for each in results)[:3])
            raise Unanswered(f"the query has {len(results)} results, {shown}: make it one, with sum() for example")
        if results[0].value is None:
            raise Unanswered("the query's result is a histogram: make it one number")
        return _number(results[0].value[1])

    async def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def _asked(self, namespace: str, prometheus: Prometheus, query: str, at: datetime) -> tuple[str, msgspec.Raw]:
        address = prometheus.address or self._default
        self._permitted(address)
        headers = {"accept": "application/json", "accept-encoding": "identity"}
        token = await self._token(namespace, prometheus) if prometheus.secret else self._given
        if token:
            headers["authorization"] = f"Bearer {token}"
        form = {"query": query, "time": f"{at.timestamp():.3f}", "timeout": f"{SECONDS:g}s"}
        try:
            async with self._open().post(address + _API, data=form, headers=headers, allow_redirects=False) as response:
                if 300 <= response.status < 400:
                    raise Unanswered(f"{address} answered {response.status}: name where it leads")
                if response.headers.get("content-encoding", "identity") != "identity":
                    raise Unanswered(f"{address} answered compressed, which was not asked for")
                self._ahead[address] = _ahead(address, response.headers.get("date", ""), self._clock.now())
                body = await whole(response.content, LONGEST)
        except TooLong as error:
            raise TooMuch(f"{address} answered {error}") from error
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            why = f"no answer in {SECONDS:g} s" if isinstance(error, TimeoutError) else str(error) or repr(error)
            raise Unanswered(f"{address}: {why}") from error
        return _result(address, response.status, body)

    def _permitted(self, address: str) -> None:
        if not address:
            raise Unanswered("no Prometheus is named: set spec.strategy.analysis.prometheus.address")
        if not any(each.covers(address) for each in self._allowed):
            raise Unanswered(f"{address} is none of the controller's --gate-addresses: have it added")

    async def _token(self, namespace: str, prometheus: Prometheus) -> str:
        """Only of a Secret that is meant for this: a Rollout must not have others sent anywhere."""
        what = f"secret {prometheus.secret}"
        try:
            found = msgspec.json.decode(await self._client.get(SECRETS, namespace, prometheus.secret), type=_Secret)
        except ApiError as error:
            if is_denied(error, "get"):
                raise Unanswered(allow("get", Permission("get", SECRETS, namespace).what)) from error
            raise Unanswered(f"{what}: {error.message}") from error
        except Unreachable as error:
            raise Unanswered(f"{what}: the API server does not answer") from error
        if (found.metadata.get("labels") or {}).get(LABEL) != "true":
            raise Unanswered(f'{what} is not labelled {LABEL}: "true", so it is not sent')
        if prometheus.key not in found.data:
            raise Unanswered(f"{what} has no key {prometheus.key}")
        try:
            token = base64.b64decode(found.data[prometheus.key], validate=True).decode("ascii").strip()
        except (binascii.Error, UnicodeDecodeError) as error:
            raise Unanswered(f"{what}: its {prometheus.key} is no token") from error
        if not token or any(not each.isprintable() for each in token):
            raise Unanswered(f"{what}: its {prometheus.key} is no token")
        return token

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                timeout=aiohttp.ClientTimeout(total=SECONDS),
                trust_env=False,
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
            )
        return self._session


def _result(address: str, status: int, body: bytes) -> tuple[str, msgspec.Raw]:
    """Kind and result. Errors have a JSON body, too; those of what is in between have none."""
    try:
        answer = _answers.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Unanswered(f"{address} answered {status}, and not as Prometheus does") from error
    if answer.status != "success" or answer.data is None:
        raise Unanswered(f"{address} answered {status}: {answer.error[:256] or 'no data'}")
    if answer.isPartial:
        raise Unanswered(f"{address} has not all of the data: a store of it is not there")
    if answer.warnings:
        # Stores that are not there leave their series out.
        raise Unanswered(f"{address} warns: {answer.warnings[0][:256]}")
    return answer.data.resultType, answer.data.result


def _decoded(raw: msgspec.Raw, decoder: msgspec.json.Decoder[_Kind]) -> _Kind:
    try:
        return decoder.decode(raw)
    except (msgspec.DecodeError, RecursionError) as error:
        raise Unanswered("Prometheus answered a result of an unknown form") from error


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise Unanswered(f"Prometheus answered {text[:32]!r}, which is no number") from error


def _all_series(found: msgspec.Raw) -> list[Series]:
    return [_series(each) for each in _decoded(found, _results)]


def _series(result: _Result) -> Series:
    points = tuple((time, _number(value)) for time, value in result.values)
    native = tuple((time, 0.0) for time, _ in result.histograms)
    return Series(result.metric, points or native, native=bool(native))


def _labels(metric: dict[str, str]) -> str:
    return "{" + ", ".join(f"{name}={value}" for name, value in sorted(metric.items())[:4]) + "}"


def _ahead(address: str, told: str, now: datetime) -> float:
    """Seconds by which the clock that ``told`` is ahead; it tells whole ones. Unanswered if it is too far from ours."""
    try:
        apart = (parsedate_to_datetime(told) - now).total_seconds()
    except (TypeError, ValueError):
        return 0.0
    if abs(apart) > SKEW:
        raise Unanswered(f"the clock of {address} is {abs(apart):.0f} s {'ahead of' if apart > 0 else 'behind'} ours")
    return apart + 1 if apart > 0 else 0.0
