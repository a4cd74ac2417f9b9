"""Who may use the page: the browser that was given the token, and only from the page itself. Pure.

A page of a foreign site can have the browser send requests to loopback, with cookies where their policy allows it, and
by DNS rebinding even read the answers. So each request has to name this server as its host, to bear the cookie that the
token was traded for, and to come from the page where it is no navigation of a person.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie

#: Nothing is loaded from elsewhere, nothing inline runs, and no other page may frame this one.
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none';"
    " form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
#: By this name a dashboard is told from other servers, before it lets anyone in.
SERVER = "rollout-lws-dashboard"
#: Of every answer.
HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Server": SERVER,
}
#: The query parameter of the first address.
TOKEN = "token"
_JSON = "application/json"
_FOREIGN = "requests of other pages are not answered"


@dataclass(frozen=True, slots=True)
class Door:
    """What lets a request in: the ``hosts`` (``name:port``) that the server is reached by, the ``token`` of the first
    address, and the ``ticket`` that a browser gets for it, as the cookie of this name.

    ``once`` is a token that lets in one browser: that which the command opens. "" when it is spent.
    """

    hosts: frozenset[str]
    token: str
    ticket: str
    cookie: str
    once: str = ""


@dataclass(frozen=True, slots=True)
class Enter:
    """The browser gets its ticket, and is sent to the same address without the token, which is ``spent`` if it was the
    one for a single browser.
    """

    spent: bool


@dataclass(frozen=True, slots=True)
class Refused:
    """The answer to a request that is not let in: an HTTP code, and what to do."""

    code: int
    why: str


def judge(door: Door, method: str, headers: Mapping[str, str], token: str | None) -> Enter | Refused | None:
    """Whether a request is let in (None), gets a ticket, or is refused. ``headers`` by lower-case name; ``token`` is
    that of the address, None without one.
    """
    host = headers.get("host", "").lower()
    if host not in door.hosts:
        return Refused(
            421,
            "this server is not known by that name: open the address that rollout-lws dashboard printed, or start it"
            " with --host and the name",
        )
    writes = method not in ("GET", "HEAD")
    if _is_foreign(headers, host, writes=writes):
        return Refused(403, _FOREIGN)
    if token is not None and method == "GET":
        spent = _same(token, door.once)
        if spent or _same(token, door.token):
            return Enter(spent)
    if not _same(_ticket(headers.get("cookie", ""), door.cookie), door.ticket):
        return Refused(
            401, "this browser has not been let in: open the address with the token that rollout-lws dashboard printed"
        )
    if writes and headers.get("content-type", "").partition(";")[0].strip().lower() != _JSON:
        return Refused(415, f"send {_JSON}")
    return None


def _is_foreign(headers: Mapping[str, str], host: str, *, writes: bool) -> bool:
    """Whether a request comes from another site, rather than from the page or a person who followed a link."""
    origin, site, mode = headers.get("origin"), headers.get("sec-fetch-site"), headers.get("sec-fetch-mode")
    if (writes or origin is not None) and origin != f"http://{host}":
        return True
    navigates = mode == "navigate" and not writes
    return site is not None and site != "same-origin" and not (navigates or site == "none")


def _ticket(cookies: str, name: str) -> str:
    try:
        found = SimpleCookie(cookies).get(name)
    except CookieError:
        return ""
    return found.value if found is not None else ""


def _same(given: str, secret: str) -> bool:
    return bool(secret) and hmac.compare_digest(given.encode(errors="replace"), secret.encode())
