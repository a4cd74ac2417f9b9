"""URLs as messages and logs may show them (userinfo, paths and queries may hold secrets), and what may be sent."""

from __future__ import annotations

import re
from collections.abc import Container
from urllib.parse import urlsplit

#: URLs of other programs' messages, to the next sign that no URL has: what else may end one may be part of a password
#: or a path as well.
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*://[^\s\"<>]*")
#: RFC 9110, 5.5: of what Latin-1 has, no control characters but tabs.
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
#: At the end of a URL these are the sentence's.
_CLOSING = ".,:;!?'()[]"


def shown(url: str) -> str:
    """Scheme, host and port of ``url``; without the host where a password that is not quoted may have cut it."""
    scheme, separator, rest = url.partition("://") if "://" in url else ("", "", url)
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    host = authority.rpartition("@")[2] if "@" not in rest[len(authority) :] else "..."
    return f"{scheme}{separator}{host}"


def scrubbed(text: str, *known: str) -> str:
    """``text`` with every URL in it as ``shown`` writes it; those that are ``known`` may have any signs in them."""
    for url in sorted(known, key=len, reverse=True):
        text = text.replace(url, shown(url))
    return _URL.sub(_shown_in_text, text)


def _shown_in_text(found: re.Match[str]) -> str:
    url = found[0].rstrip(_CLOSING)
    return shown(url) + found[0][len(url) :]


def is_address(url: str, schemes: Container[str]) -> bool:
    """Whether ``url`` has one of ``schemes``, a host, and a port that is one, if any."""
    try:
        parts = urlsplit(url)
        # A port that is no number is an error of its own only when it is asked for.
        return parts.scheme in schemes and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def is_header_value(text: str) -> bool:
    """Whether ``text`` may be the value of a header. HTTP libraries refuse any other one, and some of them quote it."""
    return _HEADER_VALUE.fullmatch(text) is not None
