"""How Istio's proxies route a request by a VirtualService: the first rule in the list whose match fits.

A destination without a weight gets all requests where it is the only one, else none. Hosts, gateways, delegates and
mirrors are not evaluated; a regular expression has to fit the whole text. A host without a dot is a Service of the
VirtualService's namespace; a subset without labels in a DestinationRule of its host is not known.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

from rollout_lws.objects.resources import DESTINATION_RULES, VIRTUAL_SERVICES
from rollout_lws.sandbox.meter.client import Client
from rollout_lws.sandbox.meter.gateway_route import holds
from rollout_lws.sandbox.meter.seen import Seen


@dataclass(frozen=True, slots=True)
class Destination:
    """The Service that a host is, and of a ``subset`` the labels of its pods; ``labels`` is None without a subset."""

    namespace: str
    service: str
    port: int | None = None
    subset: str = ""
    labels: Mapping[str, str] | None = None


#: A share of requests and where it goes, or an error text.
Part: TypeAlias = tuple[Fraction, Destination | str]


def parts(seen: Seen, client: Client) -> list[Part] | str:
    """The destinations of the request, with their shares; an error text if there are none."""
    what = f"VirtualService {client.virtual_service}"
    live = seen.get(VIRTUAL_SERVICES, client.namespace, client.virtual_service)
    if live is None:
        return f"{what} not found"
    rules = live["spec"].get("http") or ()
    rule = next((each for each in rules if any(_fits(one, client) for one in each.get("match") or [{}])), None)
    if rule is None:
        return f"no rule of {what} matches {client.path}"
    routes = rule.get("route") or ()
    if len(routes) == 1:
        weights = [1]
    else:
        weights = [each.get("weight") or 0 for each in routes]
    if not sum(weights):
        return f"no destination of {what} has weight"
    # A destination that is not known fails the requests that go there, no others.
    return [
        (Fraction(weight, sum(weights)), _destination(seen, client.namespace, each["destination"]))
        for each, weight in zip(routes, weights, strict=True)
        if weight
    ]


def _destination(seen: Seen, home: str, said: Mapping[str, Any]) -> Destination | str:
    place = _place(said["host"], home)
    if place is None:
        return f"host {said['host']} is no Service"
    (service, namespace), subset = place, said.get("subset") or ""
    port = (said.get("port") or {}).get("number")
    if not subset:
        return Destination(namespace, service, port)
    for _, rule in seen.list(DESTINATION_RULES, home):
        if _place(rule["spec"]["host"], home) == place:
            for each in rule["spec"].get("subsets") or ():
                if each["name"] == subset:
                    return Destination(namespace, service, port, subset, each.get("labels") or {})
    return f"no DestinationRule says what subset {subset} of {said['host']} is"


def _place(host: str, home: str) -> tuple[str, str] | None:
    name, *rest = host.split(".")
    if not rest:
        return name, home
    return (name, rest[0]) if rest[1:2] == ["svc"] and len(rest) > 2 else None


def _fits(match: Mapping[str, Any], client: Client) -> bool:
    return (
        _says(match.get("uri"), client.path)
        and _says(match.get("method"), client.method)
        and all(_says(each, client.header(name)) for name, each in (match.get("headers") or {}).items())
        and all(_says(each, client.query.get(name)) for name, each in (match.get("queryParams") or {}).items())
        and not any(_says(each, client.header(name)) for name, each in (match.get("withoutHeaders") or {}).items())
    )


def _says(wanted: Mapping[str, str] | None, value: str | None) -> bool:
    """Whether the value is as wanted; one that is wanted without more has to be there."""
    if wanted is None:
        return True
    if value is None:
        return False
    if "exact" in wanted:
        return value == wanted["exact"]
    if "prefix" in wanted:
        return value.startswith(wanted["prefix"])
    return holds(re.fullmatch, wanted["regex"], value) if "regex" in wanted else True
