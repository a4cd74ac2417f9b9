"""How controllers route a request through an Ingress and its canary Ingress: header before cookie before weight.

A canary Ingress needs the class, host and path of the main one; of several the first by name wins. What a canary is for
besides is a matter of the controller (``Canary``). To ingress-nginx it is for its own paths alone, and requests to one
without endpoints fail.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, TypeAlias

from rollout_lws.objects.resources import INGRESSES
from rollout_lws.sandbox.meter.client import Client
from rollout_lws.sandbox.meter.gateway_route import holds, under
from rollout_lws.sandbox.meter.seen import Object, Seen

_PREFIX = "nginx.ingress.kubernetes.io/"
#: Host, path and path type, which a canary shares with the main Ingress.
Place: TypeAlias = tuple[str, str, str]
#: A share of requests and the Service that receives it.
Part: TypeAlias = tuple[Fraction, str]
#: The Service to which a canary Ingress sends its share of the requests for a place, and for the Service that the main
#: Ingress sends them to; "" if it is not for these.
Canary: TypeAlias = Callable[[Seen, Client, Object, Place, str], str]


def of_the_place(seen: Seen, client: Client, canary: Object, place: Place, service: str) -> str:  # noqa: ARG001 - a Canary
    """To ingress-nginx."""
    return services(canary).get(place, "")


def of_no_place(seen: Seen, client: Client, canary: Object, place: Place, service: str) -> str:  # noqa: ARG001 - a Canary
    """To a controller of which nothing is known."""
    return ""


def parts(seen: Seen, client: Client, canary_of: Canary = of_the_place) -> list[Part] | str:
    """The Services that receive the request, with their shares; an error text if there are none."""
    main = seen.get(INGRESSES, client.namespace, client.ingress)
    if main is None:
        return f'Ingress "{client.ingress}" not found'
    found = _best(main, client)
    if found is None:
        default = (main["spec"].get("defaultBackend") or {}).get("service")
        return (
            [(Fraction(1), default["name"])] if default else f"no path of Ingress {client.ingress} fits {client.path}"
        )
    place, service = found
    for name, other in seen.list(INGRESSES, client.namespace):
        same_class = other["spec"].get("ingressClassName") == main["spec"].get("ingressClassName")
        if name != client.ingress and same_class and is_canary(other):
            canary = canary_of(seen, client, other, place, service)
            if canary:
                share = _canary_share(other, client)
                return [(each, to) for each, to in ((1 - share, service), (share, canary)) if each]
    return [(Fraction(1), service)]


def is_canary(ingress: Object) -> bool:
    return _option(ingress, "canary") == "true"


def _option(ingress: Object, name: str) -> str:
    return str(ingress["annotations"].get(_PREFIX + name, ""))


def _canary_share(ingress: Object, client: Client) -> Fraction:
    if header := _option(ingress, "canary-by-header"):
        value = client.header(header)
        exact, pattern = _option(ingress, "canary-by-header-value"), _option(ingress, "canary-by-header-pattern")
        if value is not None and exact and value == exact:
            return Fraction(1)
        if value is not None and pattern and not exact and holds(re.search, pattern, value):
            return Fraction(1)
        if not exact and not pattern and value in ("always", "never"):
            return Fraction(value == "always")
    if cookie := _option(ingress, "canary-by-cookie"):
        value = client.cookies.get(cookie)
        if value in ("always", "never"):
            return Fraction(value == "always")
    total = _number(ingress, "canary-weight-total") or 100
    return Fraction(min(_number(ingress, "canary-weight"), total), total)


def _number(ingress: Object, name: str) -> int:
    """A numeric annotation; 0 for an invalid number, which ingress-nginx ignores as well."""
    text = _option(ingress, name)
    return int(text) if text.isdecimal() else 0


def _best(ingress: Object, client: Client) -> tuple[Place, str] | None:
    """The best matching path of the Ingress: an exact one, else the longest."""
    fitting = [(place, service) for place, service in services(ingress).items() if _fits(place, client)]
    return max(fitting, key=lambda each: (bool(each[0][0]), each[0][2] == "Exact", len(each[0][1])), default=None)


def services(ingress: Object) -> dict[Place, str]:
    """The Service of each place of an Ingress."""
    found: dict[Place, str] = {}
    for rule in ingress["spec"].get("rules") or ():
        for path in (rule.get("http") or {}).get("paths") or ():
            service: Mapping[str, Any] | None = path["backend"].get("service")
            if service:
                place = rule.get("host") or "", path.get("path") or "/", path["pathType"]
                found[place] = service["name"]
    return found


def _fits(place: Place, client: Client) -> bool:
    host, path, kind = place
    if host and host != client.host:
        return False
    return client.path == path if kind == "Exact" else under(path, client.path)
