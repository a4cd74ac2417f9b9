"""Rules of Istio's VirtualService (networking.istio.io): its HTTP routes, read as rules of the Gateway API's shape.

Each rule, and each of its references, keeps the route that it was read from: what a release does not change of it is
written as it was. Four things differ from the Gateway API. The first rule that matches decides. A destination without a
weight gets everything where it is the only one, else nothing. A host without a dot is a Service of the VirtualService's
namespace, and NAME.NAMESPACE.svc.DOMAIN any Service; all others are no Services. Names of headers are lower-case, and
lists of conditions are objects, without an order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rollout_lws.traffic.split import Object

#: The member of a rule or reference that has the route or destination that it was read from.
_READ_FROM = "istio"
#: Istio's words for how a text is compared, and the Gateway API's.
_HOW = {"exact": "Exact", "prefix": "PathPrefix", "regex": "RegularExpression"}
_WORDS = {how: word for word, how in _HOW.items()}
#: A value that is compared with nothing: it only has to be there.
_PRESENT = "Present"
_ANY_PATH: Object = {"type": "PathPrefix", "value": "/"}
_MODIFIER, _REWRITE = "RequestHeaderModifier", "URLRewrite"


def rules(live: Object) -> list[Object]:
    """The HTTP routes of a VirtualService."""
    return [_rule(route) for route in live["spec"].get("http") or ()]


def with_rules(live: Object, rules: list[Object]) -> Object:
    """The VirtualService with these rules as its HTTP routes; routes for TCP and TLS stay."""
    spec = {member: value for member, value in live["spec"].items() if member != "http"}
    if rules or "http" in live["spec"]:
        spec["http"] = [_route(rule) for rule in rules]
    return {**live, "spec": spec}


def place(host: str) -> tuple[str, str]:
    """Name and namespace of the Service that a host is: the namespace is "" for that of the object that names it, and
    the name is "" for a host that is no Service.
    """
    name, *rest = host.split(".")
    if not rest:
        return name, ""
    return (name, rest[0]) if len(rest) > 2 and rest[1] == "svc" else ("", "")


def with_service(host: str, service: str) -> str:
    """The host of another Service, in the same namespace and domain."""
    _, dot, domain = host.partition(".")
    return service + dot + domain


def subset(reference: Object) -> str:
    """The subset that a reference of a rule names; "" for none."""
    return str(reference[_READ_FROM]["destination"].get("subset") or "")


def normal(rule: Object) -> Object:
    """The rule as it is read once it has been written."""
    return _rule(_route(rule))


def _rule(route: Object) -> Object:
    made: dict[str, Any] = {_READ_FROM: route}
    if route.get("name"):
        made["name"] = route["name"]
    if route.get("match"):
        made["matches"] = [_match(each) for each in route["match"]]
    filters = _filters(route)
    if filters:
        made["filters"] = filters
    if route.get("route"):
        made["backendRefs"] = [_reference(each, alone=len(route["route"]) == 1) for each in route["route"]]
    return made


def _route(rule: Object) -> Object:
    before: Object = rule.get(_READ_FROM) or {}
    if rule == _rule(before):
        return before
    known = _rule(before)
    made = {member: value for member, value in before.items() if member not in ("name", "match", "headers", "route")}
    if rule.get("name"):
        made["name"] = rule["name"]
    if rule.get("matches") == known.get("matches"):
        made |= {"match": before["match"]} if "match" in before else {}
    else:
        made["match"] = [_match_of(each) for each in rule.get("matches") or ()]
    made |= _headers(before, rule, known)
    if rule.get("backendRefs"):
        alone, was_alone = len(rule["backendRefs"]) == 1, len(before.get("route") or ()) == 1
        made["route"] = [_destination(each, alone=alone, was_alone=was_alone) for each in rule["backendRefs"]]
    return made


def _reference(destination: Object, *, alone: bool) -> Object:
    """``alone``: it is the only one of its route."""
    to = destination["destination"]
    made: dict[str, Any] = {_READ_FROM: destination, **_backend(to["host"])}
    port = (to.get("port") or {}).get("number")
    if port is not None:
        made["port"] = port
    if destination.get("weight") is not None or not alone:
        made["weight"] = destination.get("weight") or 0
    filters = _filters(destination)
    return made | ({"filters": filters} if filters else {})


def _destination(reference: Object, *, alone: bool, was_alone: bool) -> Object:
    before: Object = reference.get(_READ_FROM) or _new(reference)
    known = _reference(before, alone=was_alone)
    if reference == known and alone == was_alone:
        return before
    to = before["destination"]
    if reference["name"] != known["name"]:
        to = {**to, "host": with_service(to["host"], reference["name"])}
    made = {member: value for member, value in before.items() if member not in ("destination", "headers", "weight")}
    made["destination"] = to
    if not alone or reference.get("weight") is not None:
        made["weight"] = 1 if reference.get("weight") is None else reference["weight"]
    return made | _headers(before, reference, known)


def _new(reference: Object) -> Object:
    port = {"port": {"number": reference["port"]}} if reference.get("port") is not None else {}
    return {"destination": {"host": reference["name"], **port}}


def _backend(host: str) -> Object:
    """The Service that a host is, or the host as an object of its own kind."""
    name, namespace = place(host)
    if not name:
        return {"group": "networking.istio.io", "kind": "Host", "name": host}
    return {"group": "", "kind": "Service", "name": name} | ({"namespace": namespace} if namespace else {})


def _match(match: Object) -> Object:
    """The match with path, headers and query parameters as the Gateway API has them; the rest stays."""
    made = {member: value for member, value in match.items() if member not in ("uri", "headers", "queryParams")}
    if match.get("uri"):
        made["path"] = _compared(match["uri"])
    for member in ("headers", "queryParams"):
        conditions = match.get(member) or {}
        if conditions:
            made[member] = [{**_compared(conditions[name] or {}), "name": name} for name in sorted(conditions)]
    return made


def _match_of(match: Object) -> Object:
    made = {member: value for member, value in match.items() if member not in ("path", "headers", "queryParams")}
    if match.get("path", _ANY_PATH) != _ANY_PATH:
        made["uri"] = _comparing(match["path"])
    if match.get("headers"):
        made["headers"] = {each["name"].lower(): _comparing(each) for each in match["headers"]}
    if match.get("queryParams"):
        made["queryParams"] = {each["name"]: _comparing(each) for each in match["queryParams"]}
    return made


def _compared(condition: Mapping[str, str]) -> dict[str, str]:
    word = next((each for each in _HOW if each in condition), None)
    return {"type": _PRESENT, "value": ""} if word is None else {"type": _HOW[word], "value": condition[word]}


def _comparing(condition: Mapping[str, str]) -> dict[str, str]:
    how = condition["type"]
    return {} if how == _PRESENT else {_WORDS[how]: condition["value"]}


def _filters(holder: Object) -> list[Object]:
    """What a route or destination does with requests, as far as rules made from it have to know."""
    request = (holder.get("headers") or {}).get("request") or {}
    changes: dict[str, Any] = {
        member: [{"name": name, "value": request[member][name]} for name in sorted(request[member])]
        for member in ("set", "add")
        if request.get(member)
    }
    if request.get("remove"):
        changes["remove"] = list(request["remove"])
    found: list[Object] = [{"type": _MODIFIER, "requestHeaderModifier": changes}] if changes else []
    # Behind a prefix, a rewrite replaces just that.
    if (holder.get("rewrite") or {}).get("uri"):
        found.append({"type": _REWRITE, "urlRewrite": {"path": {"type": "ReplacePrefixMatch"}}})
    return found


def _headers(before: Object, changed: Object, known: Object) -> dict[str, Any]:
    """The member ``headers`` of a route or destination; {} for none."""
    if _modifier(changed) == _modifier(known):
        return {"headers": before["headers"]} if "headers" in before else {}
    request: dict[str, Any] = {}
    for member, items in _modifier(changed).items():
        request[member] = list(items) if member == "remove" else {each["name"]: each["value"] for each in items}
    others = {member: value for member, value in (before.get("headers") or {}).items() if member != "request"}
    made = others | ({"request": request} if request else {})
    return {"headers": made} if made else {}


def _modifier(holder: Object) -> Object:
    filters: Iterable[Object] = holder.get("filters") or ()
    return next((each["requestHeaderModifier"] for each in filters if each["type"] == _MODIFIER), {})
