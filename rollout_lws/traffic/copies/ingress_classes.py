"""The controllers whose Ingresses a release can use, as data: those that heed ingress-nginx's canary annotations.

To any other controller the canary Ingress is one more Ingress with the same paths, by which all requests could reach
the new version. So a controller other than ingress-nginx is never inferred from the name of a class: the user declares
it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class IngressClass:
    """What serves the Ingresses of a class: ``controller`` is its name, ``declared`` what advice calls it."""

    controller: str
    declared: str
    by_service: bool = False
    """Whether a canary Ingress counts for each path of its namespace that leads to the same Service as the path that
    it has in common with another Ingress, and not for that path alone.
    """


NGINX = "nginx"
#: By classType. The annotations mean the same to all of them.
CLASSES: Mapping[str, IngressClass] = {
    NGINX: IngressClass("ingress-nginx", "ingress-nginx"),
    # Its other Ingress provider does not heed the annotations, nor did this one before v3.7
    # (https://github.com/traefik/traefik/pull/12739). It keeps one canary a Service and port, not one a path
    # (https://github.com/traefik/traefik/issues/12906, and so up to v3.7.9 at least).
    "traefik": IngressClass(
        "Traefik", "Traefik's ingress-nginx provider (kubernetesIngressNGINX) of v3.7 or newer", by_service=True
    ),
}
#: Why a controller that can share requests in a way of its own is not used, by the classType that would say so.
UNSAFE: Mapping[str, str] = {
    # https://github.com/haproxytech/kubernetes-ingress/blob/master/documentation/annotations.md#route-acl
    # and https://github.com/haproxytech/kubernetes-ingress/issues/588.
    "haproxy": (
        "HAProxy shares requests by route-acl alone, which goes before all longer paths of a host and could send"
        " requests for other Services to the new version"
    ),
}


def class_problem(class_type: str) -> str:
    """Why this classType cannot be used, as a sentence that says what to do; "" when it can, or is not given."""
    if not class_type or class_type in CLASSES:
        return ""
    why = UNSAFE.get(class_type) or f"only {' and '.join(CLASSES)} are"
    return f"classType {class_type} is not supported: {why}; use the Gateway API (gateway.httpRouteName)"


def served_by(class_type: str) -> IngressClass:
    """The class that a classType without a problem declares; "" is ingress-nginx."""
    return CLASSES[class_type or NGINX]


def undeclared() -> str:
    """What to do about an Ingress of a class whose controller the user has not declared."""
    ways = (f"{name} if {each.declared} serves the class" for name, each in CLASSES.items())
    return f"set classType to {', to '.join(ways)}; else use the Gateway API (gateway.httpRouteName)"
