"""URLs as messages and logs may show them: userinfo, paths and queries may hold secrets."""

from __future__ import annotations

import re
from collections.abc import Container
from urllib.parse import urlsplit

#: To the next blank or closing sign, the URLs of other programs' messages.
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*://[^\s'\"<>()\[\],]*(?:\[[0-9A-Fa-f:.]*\][^\s'\"<>()\[\],]*)?")


def shown(url: str) -> str:
    """Scheme, host and port of ``url``; without the host where a password that is not quoted may have cut it."""
    scheme, separator, rest = url.partition("://") if "://" in url else ("", "", url)
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    host = authority.rpartition("@")[2] if "@" not in rest[len(authority) :] else "..."
    return f"{scheme}{separator}{host}"


def scrubbed(text: str) -> str:
    """``text`` with every URL in it as ``shown`` writes it."""
    return _URL.sub(lambda found: shown(found[0]), text)


def is_address(url: str, schemes: Container[str]) -> bool:
    """Whether ``url`` has one of ``schemes``, a host, and a port that is one, if any."""
    try:
        parts = urlsplit(url)
        # A port that is no number is an error of its own only when it is asked for.
        return parts.scheme in schemes and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
