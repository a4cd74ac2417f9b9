"""Builds and reads the canary Ingress that receives the new version's requests, by the annotations of ingress-nginx.

The user's Ingress is never changed: its controller (see ``ingress_classes``) merges the canary Ingress into it by
annotations until it is deleted. ingress-nginx is retired: what the Gateway API does better is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from rollout_lws.api.resources import Keys
from rollout_lws.objects.resources import INGRESSES
from rollout_lws.objects.scaling import whole_number
from rollout_lws.traffic.copies import copied
from rollout_lws.traffic.copies.ingress_classes import NGINX, IngressClass, class_problem, undeclared
from rollout_lws.traffic.registry import INGRESS
from rollout_lws.traffic.split import Object, Split

_PREFIX = "nginx.ingress.kubernetes.io/"
_CANARY = INGRESS.annotations
_CLASS = "kubernetes.io/ingress.class"
#: A match on a header of this name matches the cookie that its value names, as in OpenKruise Rollouts.
_COOKIE = "canary-by-cookie"
#: Annotations that make other controllers request certificates or DNS names for the copy, and foreign canary weights.
_NOT_COPIED = re.compile(
    rf"^({re.escape(_PREFIX)}canary|(acme\.)?cert-manager\.io/|external-dns\.alpha\.kubernetes\.io/)"
)


def canary_ingress(
    main: Object,
    keys: Keys,
    *,
    name: str,
    service: str,
    canary_service: str,
    split: Split,
    owner: Mapping[str, Any],
) -> Object | None:
    """The manifest of the Ingress that sends the split's requests for ``service`` to ``canary_service``: only the
    user's paths to that Service, with class, TLS and annotations. None when the split sends no requests to the new
    version, or no path leads to the Service.
    """
    if not split.reaches_new or no_path(main, service):
        return None
    spec, head = main["spec"], copied.metadata(main, keys, name=name, owner=owner)
    annotations = {key: value for key, value in head["annotations"].items() if not _NOT_COPIED.match(key)}
    made: dict[str, Any] = {member: spec[member] for member in ("ingressClassName", "tls") if spec.get(member)}
    made["rules"] = [
        {
            **rule,
            "http": {**rule["http"], "paths": [_to(path, canary_service) for path in _paths(rule, service)]},
        }
        for rule in spec.get("rules") or ()
        if _paths(rule, service)
    ]
    return {
        "apiVersion": INGRESSES.api_version,
        "kind": INGRESSES.kind,
        "metadata": {**head, "annotations": annotations | _canary_annotations(split)},
        "spec": made,
    }


def annotated(made: Object, by: str, keys: Keys) -> Object:
    """The manifest with our annotation."""
    return copied.annotated(made, by, keys, _written(made))


def updated(live: Object, made: Object) -> Object:
    """The live canary Ingress with the content of ``made``; other metadata stays."""
    return {
        **live,
        "metadata": copied.updated(live, made, dropped=_CANARY),
        # Admission may set a class; TLS secrets that the user has removed are dropped.
        "spec": {**{member: value for member, value in live["spec"].items() if member != "tls"}, **made["spec"]},
    }


def drifted(live: Object, by: str, keys: Keys) -> bool:
    """Whether another writer has changed the routing of the canary Ingress."""
    return copied.drifted(live, by, keys, _written(live))


def reaches_new(live: Object) -> bool:
    """Whether the canary Ingress takes any request."""
    return weight(live) > 0 or any(f"{_CANARY}-by-{how}" in _annotations(live) for how in ("header", "cookie"))


def weight(live: Object) -> int:
    """Percentage of requests that the canary Ingress takes, 0 to 100; 0 when its annotation is unreadable."""
    return min(whole_number(str(_annotations(live).get(f"{_CANARY}-weight", ""))) or 0, 100)


def _written(ingress: Object) -> tuple[object, object]:
    """Paths and weights only: other writers may default or add classes and labels without harm."""
    said = {key: value for key, value in _annotations(ingress).items() if key.startswith(_CANARY)}
    return said, ingress["spec"].get("rules")


def _annotations(ingress: Object) -> dict[str, str]:
    return ingress["metadata"].get("annotations") or {}


def rival(main: Object, service: str, others: Iterable[Object], served: IngressClass) -> Object | None:
    """Another canary for the same requests, or None: a controller uses only one for a path of this Ingress or, if it
    goes ``by_service``, for all paths of the namespace to ``service``.
    """
    every = tuple(others)
    sharing = [each for each in every if served.by_service and not _is_canary(each)]
    ours = {place for each in (main, *sharing) for place in _places(each, service)}
    return next((each for each in every if _is_canary(each) and ours & _places(each)), None)


def _is_canary(ingress: Object) -> bool:
    return _annotations(ingress).get(_CANARY) == "true"


def _places(ingress: Object, service: str = "") -> set[tuple[str, str]]:
    rules = (ingress.get("spec") or {}).get("rules") or ()
    return {
        (rule.get("host") or "", path.get("path") or "/")
        for rule in rules
        for path in (_paths(rule, service) if service else (rule.get("http") or {}).get("paths") or ())
    }


def ingress_problem(main: Object, service: str, class_type: str) -> str:
    """Why this Ingress cannot split requests for ``service``, as a sentence that says what to do; "" when it can.

    ``class_type`` is trafficRoutings' classType: it declares what serves the class, whatever its name is; "" takes the
    class from the Ingress, where none means nginx.
    """
    unusable = class_problem(class_type)
    if unusable:
        return unusable
    what = f"Ingress {main['metadata']['name']}"
    annotations = main["metadata"].get("annotations") or {}
    named = str((main.get("spec") or {}).get("ingressClassName") or annotations.get(_CLASS) or "")
    if not class_type and named not in ("", NGINX):
        return f"{what} is of class {named}: {undeclared()}"
    if _is_canary(main):
        return f"{what} is itself a canary of another Ingress; name that one in trafficRoutings"
    return no_path(main, service)


def no_path(main: Object, service: str) -> str:
    """Why no request for ``service`` uses this Ingress, as a sentence that says what to do; "" when some do."""
    if any(_paths(rule, service) for rule in (main.get("spec") or {}).get("rules") or ()):
        return ""
    return (
        f"Ingress {main['metadata']['name']} has no path with the backend Service {service}; add one, or name the"
        " Service that it refers to"
    )


def split_problem(split: Split, served: IngressClass) -> str:
    """Why the controller cannot express this split, as a sentence that says what to do; "" when it can."""
    why = _inexpressible(split)
    return f"{served.controller} cannot express this step: {why}" if why else ""


def _inexpressible(split: Split) -> str:
    modifier = split.header_modifier
    if modifier is not None and (modifier.set or modifier.add or modifier.remove):
        return "it changes no headers of requests to one version; remove requestHeaderModifier, or use the Gateway API"
    if len(split.matches) > 1:
        return "it takes one match, not several; keep one, or use the Gateway API"
    for match in split.matches:
        if match.path is not None or match.query_params:
            return "it matches one header or cookie, no path or query parameter; match a header, or use the Gateway API"
        if len(match.headers) != 1:
            return "it matches exactly one header or cookie; name one, or use the Gateway API"
        header = match.headers[0]
        if header.name == _COOKIE and header.type != "Exact":
            return f"the value of {_COOKIE} is the name of a cookie and no regular expression; use type Exact"
    return ""


def _canary_annotations(split: Split) -> dict[str, str]:
    said = {"canary": "true", "canary-weight": str(split.weight)}
    for match in split.matches:
        for header in match.headers:
            if header.name == _COOKIE:
                said[_COOKIE] = header.value
            else:
                said["canary-by-header"] = header.name
                how = "pattern" if header.type == "RegularExpression" else "value"
                said[f"canary-by-header-{how}"] = header.value
    return {_PREFIX + key: value for key, value in said.items()}


def _paths(rule: Object, service: str) -> list[Object]:
    paths = (rule.get("http") or {}).get("paths") or ()
    return [path for path in paths if ((path.get("backend") or {}).get("service") or {}).get("name") == service]


def _to(path: Object, service: str) -> Object:
    backend = path["backend"]
    return {**path, "backend": {**backend, "service": {**backend["service"], "name": service}}}
