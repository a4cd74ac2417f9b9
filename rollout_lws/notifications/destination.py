"""Where notifications go: a directory with a file for each setting, as Kubernetes mounts a Secret.

| file | |
|---|---|
| url | the receiver's address, http or https; of Slack it is itself a secret |
| format | ``cloudevents``, the default, or ``slack`` |
| signing-keys | keys of Standard Webhooks, one a line; each signs, so that receivers change over one by one |
| only | what is sent, a word a line: reasons of Events, or ``Warning``; without it all is |
| headers | further headers, ``Name: value`` a line, such as a bearer token |
| ca.crt | CAs that are trusted besides the system's |
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

from rollout_lws.errors import UsageError
from rollout_lws.notifications import cloudevents, signing, slack
from rollout_lws.notifications.data import Notification
from rollout_lws.rollout.reasons import EventReason

#: Bytes of a file that are read.
_LONGEST = 256 * 1024
#: Keys that sign: more make a header that receivers refuse.
_KEYS = 8
_HEADER = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?)[ \t]*")
#: What is ours to say.
_OURS = frozenset({"content-type", "content-length", "transfer-encoding", "connection", "host"})

_T = TypeVar("_T")


class Format(StrEnum):
    CLOUDEVENTS = "cloudevents"
    SLACK = "slack"


@dataclass(frozen=True, slots=True)
class Destination:
    """``name`` is what metrics and logs call it. ``url``, ``keys`` and ``headers`` are secrets, and kept out of its
    text; ``host`` is what is told of the URL.
    """

    name: str
    format: Format
    url: str = field(repr=False)
    only: frozenset[str] = frozenset()
    keys: tuple[bytes, ...] = field(default=(), repr=False)
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    ca: str = field(default="", repr=False)

    @property
    def host(self) -> str:
        """Scheme, host and port of the URL."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc}"

    @property
    def content_type(self) -> str:
        match self.format:
            case Format.CLOUDEVENTS:
                return cloudevents.CONTENT_TYPE
            case Format.SLACK:
                return slack.CONTENT_TYPE

    def wants(self, told: Notification) -> bool:
        """Whether it is to be sent there."""
        return not self.only or not self.only.isdisjoint((told.data.reason, told.data.type))

    def body(self, told: Notification) -> bytes:
        """What is sent of a notification."""
        match self.format:
            case Format.CLOUDEVENTS:
                return cloudevents.cloud_event(told)
            case Format.SLACK:
                return slack.slack(told)


def read(directory: str) -> Destination:
    """The destination of a directory. UsageError, which names the file and tells none of its words."""
    path = Path(directory)
    if not path.is_dir():
        raise UsageError(f"--notify {directory}: there is no such directory: mount the Secret that has its url there")
    url = _file(path / "url", _url, None)
    found = _file(path / "format", Format, Format.CLOUDEVENTS)
    keys: tuple[bytes, ...] = _file(path / "signing-keys", _keys, ())
    if keys and found is not Format.CLOUDEVENTS:
        raise UsageError(f"{path / 'signing-keys'}: only the format {Format.CLOUDEVENTS.value} is signed: remove it")
    headers: tuple[tuple[str, str], ...] = _file(path / "headers", _headers, ())
    only: frozenset[str] = _file(path / "only", _only, frozenset())
    return Destination(path.name, found, url, only, keys, headers, _file(path / "ca.crt", _ca, ""))


def _file(path: Path, parse: Callable[[str], _T], default: _T | None) -> _T:
    """What a file says; ``default`` where there is none."""
    try:
        with path.open("rb") as file:
            text = file.read(_LONGEST + 1)
    except FileNotFoundError:
        if default is not None:
            return default
        raise UsageError(f"{path}: there is no such file: write the receiver's URL to it") from None
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None
    if len(text) > _LONGEST:
        raise UsageError(f"{path} has more than {_LONGEST // 1024} KiB")
    try:
        return parse(text.decode().strip())
    except UnicodeDecodeError:
        raise UsageError(f"{path} is no text") from None
    except ValueError as error:
        raise UsageError(f"{path}: {_OF_FORMAT if path.name == 'format' else error}") from None


_OF_FORMAT = f"write one of {', '.join(each.value for each in Format)}"


def _url(text: str) -> str:
    wrong = ValueError(
        "is no URL of a receiver: write https://host/path, in one line and without a login or a fragment"
    )
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError:
        raise wrong from None
    plain = all("!" <= each <= "~" for each in text)
    if (
        not plain
        or parts.scheme not in ("http", "https")
        or not parts.hostname
        or "@" in parts.netloc
        or parts.fragment
    ):
        raise wrong
    return text


def _only(text: str) -> frozenset[str]:
    found = frozenset(text.split())
    known = {*(each.value for each in EventReason), "Warning"}
    wrong = sorted(found - known)
    if wrong or not found:
        raise ValueError(f"line of {wrong[0] if wrong else 'nothing'}: write reasons of Events, or Warning, one a line")
    return found


def _keys(text: str) -> tuple[bytes, ...]:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not 1 <= len(lines) <= _KEYS:
        raise ValueError(f"has {len(lines)} keys: write 1 to {_KEYS}, one a line")
    found = []
    for number, line in enumerate(lines, 1):
        try:
            found.append(signing.key(line))
        except ValueError as error:
            raise ValueError(f"key {number} {error}: `printf whsec_; openssl rand -base64 32` writes one") from None
    return tuple(found)


def _headers(text: str) -> tuple[tuple[str, str], ...]:
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        matched = _HEADER.fullmatch(line)
        if matched is None:
            raise ValueError(f"line {number} is no header: write Name: value")
        name, value = matched.groups()
        if name.lower() in _OURS or name.lower().startswith("webhook-"):
            raise ValueError(f"line {number}: {name} is the controller's to say: remove it")
        found.append((name, value))
    return tuple(found)


def _ca(text: str) -> str:
    try:
        ssl.create_default_context(cadata=text)
    except (ssl.SSLError, ValueError):
        raise ValueError("has no certificates: write CAs as PEM") from None
    return text
