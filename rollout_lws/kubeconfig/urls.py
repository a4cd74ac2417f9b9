"""URLs for messages and logs, without secrets (userinfo, paths and queries may hold some), and valid header values."""

from __future__ import annotations

import re
from collections.abc import Container
from urllib.parse import urlsplit

#: A URL in another program's message, up to the next character that no URL has: any other one may be part of a password
#: or a path.
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*://[^\s\"<>]*")
#: RFC 9110, 5.5: Latin-1 without control characters, except tabs.
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
#: At the end of a URL these belong to the sentence.
_CLOSING = ".,:;!?'()[]"


def shown(url: str) -> str:
    """Scheme, host and port of ``url``; without the host if an unquoted password may have cut it."""
    scheme, separator, rest = url.partition("://") if "://" in url else ("", "", url)
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    host = authority.rpartition("@")[2] if "@" not in rest[len(authority) :] else "..."
    return f"{scheme}{separator}{host}"


def scrubbed(text: str, *known: str) -> str:
    """``text`` with every URL in it as ``shown`` writes it; ``known`` ones may contain any characters."""
    for url in sorted(known, key=len, reverse=True):
        text = text.replace(url, shown(url))
    return _URL.sub(_shown_in_text, text)


def _shown_in_text(found: re.Match[str]) -> str:
    url = found[0].rstrip(_CLOSING)
    return shown(url) + found[0][len(url) :]


def is_address(url: str, schemes: Container[str]) -> bool:
    """Whether ``url`` has one of ``schemes``, a host, and a valid port, if any."""
    try:
        parts = urlsplit(url)
        # An invalid port raises only when it is accessed.
        return parts.scheme in schemes and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def is_header_value(text: str) -> bool:
    """Whether ``text`` is a valid header value. HTTP libraries reject any other one, and some of them quote it."""
    return _HEADER_VALUE.fullmatch(text) is not None
