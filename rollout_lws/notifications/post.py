"""Sends one request to a receiver: no redirect, no proxy of the environment, no cookie, and next to nothing is read."""

from __future__ import annotations

import os
import re
import ssl
from collections.abc import Mapping
from contextlib import suppress
from typing import Protocol

import aiohttp

from rollout_lws.clock import Clock
from rollout_lws.kube.bounded import whole
from rollout_lws.kube.transport import TooLong
from rollout_lws.notifications.delivery import TIMEOUT, Answered, Reply, Unanswered, retry_after
from rollout_lws.notifications.destination import Destination, Format

#: Bytes of an answer that are read: Slack says in a word what is wrong.
_LONGEST = 1024
_WORD = re.compile(r"[a-z]{2,24}(_[a-z]{1,24}){0,5}")


class Post(Protocol):
    """Sends a request."""

    async def send(self, to: Destination, headers: Mapping[str, str], body: bytes) -> Reply:
        """What became of it; it does not raise."""
        ...

    async def close(self) -> None:
        """End what is open."""
        ...


class HttpPost:
    """Sends over aiohttp. Receivers are verified by the system's CAs, and by those of their destination."""

    def __init__(self, clock: Clock, seconds: float = TIMEOUT) -> None:
        self._clock = clock
        self._timeout = aiohttp.ClientTimeout(total=seconds)
        self._seconds = seconds
        self._session: aiohttp.ClientSession | None = None
        self._trusted: dict[str, ssl.SSLContext] = {}

    async def send(self, to: Destination, headers: Mapping[str, str], body: bytes) -> Reply:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                trust_env=False, cookie_jar=aiohttp.DummyCookieJar(), auto_decompress=False, timeout=self._timeout
            )
        try:
            async with self._session.post(
                to.url,
                data=body,
                headers={"user-agent": "rollout-lws", "accept-encoding": "identity", **dict(to.headers), **headers},
                allow_redirects=False,
                ssl=self._trust(to.ca),
            ) as response:
                asked = retry_after(response.headers.get("retry-after", ""), self._clock.now())
                # Only Slack's answers are words of a closed list: others may repeat what they were sent.
                word = await _word(response) if to.format is Format.SLACK else ""
                return Answered(response.status, asked, word)
        except TimeoutError:
            return Unanswered(f"gave no answer in {self._seconds:g} s")
        except (aiohttp.ClientError, OSError, ValueError) as error:
            return Unanswered(_why(error))

    async def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    def _trust(self, ca: str) -> ssl.SSLContext:
        """Made once for each set of CAs: reading the system's takes some milliseconds."""
        if ca not in self._trusted:
            context = ssl.create_default_context()
            if ca:
                context.load_verify_locations(cadata=ca)
            self._trusted = {**dict(list(self._trusted.items())[-7:]), ca: context}
        return self._trusted[ca]


async def _word(response: aiohttp.ClientResponse) -> str:
    with suppress(TooLong, UnicodeDecodeError):
        said = (await whole(response.content, _LONGEST)).decode().strip()
        return said if _WORD.fullmatch(said) else ""
    return ""


def _why(error: Exception) -> str:
    """Without the text of errors that may have the URL in it, which may be a secret."""
    match error:
        case aiohttp.ClientConnectorCertificateError():
            return f"its certificate is not trusted: {error.certificate_error}"
        case aiohttp.ClientConnectorError():
            return f"cannot be reached: {_os(error.os_error)}"
        case aiohttp.ServerDisconnectedError():
            return "cut the connection"
        case _:
            return f"cannot be reached: {type(error).__name__}"


def _os(error: OSError) -> str:
    """What the system says; of a name that is not known the resolver has words of its own."""
    return os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror or type(error).__name__
