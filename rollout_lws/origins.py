"""Origins: what of a URL says which server is meant, and what of a server may be asked."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

from rollout_lws.errors import UsageError

_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Origin:
    """Scheme, host and port of a server; two of the same server are equal only if they are written alike."""

    scheme: str
    host: str
    port: int

    @classmethod
    def of(cls, url: str) -> Origin | None:
        """That of an http or https URL; None of any other text, and of a URL with a login."""
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError:
            return None
        if parts.scheme not in _PORTS or not parts.hostname or "@" in parts.netloc or parts.query or parts.fragment:
            return None
        return cls(parts.scheme, parts.hostname, port if port is not None else _PORTS[parts.scheme])

    @classmethod
    def parse(cls, url: str, flag: str) -> Origin:
        """UsageError, which names ``flag``, for what is no origin or URL."""
        found = cls.of(url)
        if found is None:
            raise UsageError(f"{flag} {url!r} is no address of a server: write http://host:port or https://host")
        return found


@dataclass(frozen=True, slots=True)
class Allowed:
    """URLs of one server, below ``path`` ("" for all): of several tenants a path may be what tells them apart."""

    origin: Origin
    path: str

    @classmethod
    def parse(cls, url: str, flag: str) -> Allowed:
        """UsageError, which names ``flag``, for what is no URL."""
        return cls(Origin.parse(url, flag), urlsplit(url).path.rstrip("/"))

    def covers(self, url: str) -> bool:
        """Whether a URL is among them; none is that may lead out of the path."""
        if Origin.of(url) != self.origin:
            return False
        path = urlsplit(url).path.rstrip("/")
        if {".", ".."} & {*path.split("/")} or set("%\\") & {*path}:
            return False
        return path == self.path or path.startswith(f"{self.path}/")
