"""The sandbox's CustomResourceDefinitions of Gateway, HTTPRoute and InferencePool, with the fields, defaults and limits
of Gateway API v1 and of the Inference Extension's v1, so that the sandbox refuses what they refuse.

Not covered: the contents of filters, timeouts, retry, session persistence and TLS (stored as sent), the rules between
filters and matches, and the limit of 128 matches a route. A definition that a user installs replaces these.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rollout_lws.objects.resources import HTTP_ROUTES, INFERENCE_POOLS, Resource
from rollout_lws.sandbox.api_resources import GATEWAYS, Served
from rollout_lws.sandbox.definitions import crds

Schema = dict[str, Any]

_DNS = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_DNS}(\.{_DNS})*"
_HOSTNAME = rf"^(\*\.)?{_SUBDOMAIN}$"
_KEPT: Schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_PORT: Schema = {"type": "integer", "format": "int32", "minimum": 1, "maximum": 65535}
_SECTION = {"type": "string", "minLength": 1, "maxLength": 253, "pattern": f"^{_SUBDOMAIN}$"}


def _text(least: int, most: int, **more: Any) -> Schema:
    return {"type": "string", "minLength": least, "maxLength": most, **more}


def _choice(*values: str, default: str | None = None) -> Schema:
    schema: Schema = {"type": "string", "enum": list(values)}
    return schema if default is None else {**schema, "default": default}


def _list(items: Schema, most: int, *, least: int = 0, keys: tuple[str, ...] = (), **more: Any) -> Schema:
    schema: Schema = {"type": "array", "items": items, "maxItems": most, **more}
    if least:
        schema["minItems"] = least
    if keys:
        return schema | {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys)}
    return schema | {"x-kubernetes-list-type": "atomic"}


def _object(properties: Schema, *required: str, **more: Any) -> Schema:
    schema: Schema = {"type": "object", "properties": properties, **more}
    return schema | ({"required": list(required)} if required else {})


def _rules(*rules: tuple[str, str]) -> Schema:
    return {"x-kubernetes-validations": [{"rule": rule, "message": message} for rule, message in rules]}


def _reference(group: str, kind: str) -> Schema:
    return {
        "group": {"type": "string", "maxLength": 253, "pattern": f"^$|^{_SUBDOMAIN}$", "default": group},
        "kind": _text(1, 63, pattern="^[a-zA-Z]([-a-zA-Z0-9]*[a-zA-Z0-9])?$", default=kind),
        "name": _text(1, 253),
    }


_NAMESPACE = _text(1, 63, pattern=f"^{_DNS}$")
_PARENT_REF = _object(
    {**_reference(GATEWAYS.group, GATEWAYS.kind), "namespace": _NAMESPACE, "sectionName": _SECTION, "port": _PORT},
    "name",
)
_CONDITION = _object(
    {
        "type": {"type": "string", "maxLength": 316},
        "status": _choice("True", "False", "Unknown"),
        "reason": _text(1, 1024, pattern="^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"),
        "message": {"type": "string", "maxLength": 32768},
        "lastTransitionTime": {"type": "string", "format": "date-time"},
        "observedGeneration": {"type": "integer", "format": "int64", "minimum": 0},
    },
    *("lastTransitionTime", "message", "reason", "status", "type"),
)
_CONDITIONS = _list(_CONDITION, 8, keys=("type",))
_PARENTS = _list(
    _object({"parentRef": _PARENT_REF, "controllerName": _text(1, 253), "conditions": _CONDITIONS}, "parentRef"), 32
)
_ANY_PATH: Schema = {"type": "PathPrefix", "value": "/"}


def _named_value(longest: int) -> Schema:
    """A header or query parameter to match, exactly or by regular expression."""
    return _object(
        {
            "type": _choice("Exact", "RegularExpression", default="Exact"),
            "name": _text(1, 256, pattern=r"^[A-Za-z0-9!#$%&'*+\-.^_\x60|~]+$"),
            "value": _text(1, longest),
        },
        *("name", "value"),
    )


def _match() -> Schema:
    path = _object(
        {
            "type": _choice("Exact", "PathPrefix", "RegularExpression", default="PathPrefix"),
            "value": {"type": "string", "maxLength": 1024, "default": "/"},
        },
        default=_ANY_PATH,
        **_rules(
            (
                "(self.type in ['Exact','PathPrefix']) ? self.value.startsWith('/') : true",
                "value must be an absolute path and start with '/' when type one of ['Exact', 'PathPrefix']",
            ),
        ),
    )
    return _object(
        {
            "path": path,
            "headers": _list(_named_value(4096), 16, keys=("name",)),
            "queryParams": _list(_named_value(1024), 16, keys=("name",)),
            "method": _choice("GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"),
        }
    )


def _route() -> Schema:
    backend = _object(
        {
            **_reference("", "Service"),
            "namespace": _NAMESPACE,
            "port": _PORT,
            "weight": {"type": "integer", "format": "int32", "minimum": 0, "maximum": 1_000_000, "default": 1},
            "filters": _list(_KEPT, 16),
        },
        "name",
        **_rules(
            (
                "(size(self.group) == 0 && self.kind == 'Service') ? has(self.port) : true",
                "Must have port for Service reference",
            ),
        ),
    )
    rule = _object(
        {
            "name": _SECTION,
            "matches": _list(_match(), 64, default=[{"path": _ANY_PATH}]),
            "filters": _list(_KEPT, 16),
            "backendRefs": _list(backend, 16),
            **dict.fromkeys(("timeouts", "retry", "sessionPersistence"), _KEPT),
        }
    )
    return _object(
        {
            "parentRefs": _list(_PARENT_REF, 32),
            "hostnames": _list(_text(1, 253, pattern=_HOSTNAME), 16),
            "rules": _list(rule, 16, least=1, default=[{"matches": [{"path": _ANY_PATH}]}]),
        }
    )


def _gateway() -> Schema:
    allowed = _object(
        {
            "namespaces": _object(
                {"from": _choice("All", "Selector", "Same", default="Same"), "selector": _KEPT},
                default={"from": "Same"},
            ),
            "kinds": _list(_object({"group": {"type": "string", "default": GATEWAYS.group}, "kind": _text(1, 63)}), 8),
        },
        default={"namespaces": {"from": "Same"}},
    )
    listener = _object(
        {
            "name": _SECTION,
            "hostname": _text(1, 253, pattern=_HOSTNAME),
            "port": _PORT,
            "protocol": _text(1, 255),
            "tls": _KEPT,
            "allowedRoutes": allowed,
        },
        *("name", "port", "protocol"),
    )
    return _object(
        {
            "gatewayClassName": _text(1, 253),
            "listeners": _list(listener, 64, least=1, keys=("name",)),
            "addresses": _list(_KEPT, 16),
            **dict.fromkeys(("infrastructure", "allowedListeners", "tls"), _KEPT),
        },
        *("gatewayClassName", "listeners"),
    )


def _pool() -> Schema:
    picker = _object(
        {
            **_reference("", "Service"),
            "port": _object({"number": _PORT}, "number"),
            "failureMode": _choice("FailOpen", "FailClose", default="FailClose"),
        },
        "name",
        **_rules(
            (
                "self.kind != 'Service' || has(self.port)",
                "port is required when kind is 'Service' or unspecified (defaults to 'Service')",
            ),
        ),
    )
    labels = {"type": "object", "additionalProperties": _text(0, 63), "minProperties": 1, "maxProperties": 64}
    return _object(
        {
            "selector": _object({"matchLabels": labels}, "matchLabels"),
            "targetPorts": _list(_object({"number": _PORT}, "number"), 8, least=1),
            "appProtocol": _choice("http", "kubernetes.io/h2c", default="http"),
            "endpointPickerRef": picker,
        },
        *("selector", "targetPorts"),
    )


def _waiting(kind: str) -> Schema:
    """A Gateway's condition before any controller has seen it."""
    return {
        "type": kind,
        "status": "Unknown",
        "reason": "Pending",
        "message": "Waiting for controller",
        "lastTransitionTime": "1970-01-01T00:00:00Z",
    }


def _definition(
    resource: Resource, spec: Schema, status: Schema, columns: tuple[tuple[str, str], ...] = (), **names: Any
) -> dict[str, Any]:
    texts = [{"name": name, "type": "string", "jsonPath": path} for name, path in columns]
    age = {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}
    version = {
        "name": resource.version,
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "additionalPrinterColumns": [*texts, age],
        "schema": {"openAPIV3Schema": _object({"spec": spec, "status": status}, "spec")},
    }
    identity = {"kind": resource.kind, "plural": resource.plural, **names}
    return {"spec": {"group": resource.group, "scope": "Namespaced", "names": identity, "versions": [version]}}


_DEFINITIONS = (
    _definition(
        GATEWAYS,
        _gateway(),
        _object(
            {"conditions": _CONDITIONS, "addresses": _list(_KEPT, 16), "listeners": _list(_KEPT, 64)},
            default={"conditions": [_waiting("Accepted"), _waiting("Programmed")]},
        ),
        (
            ("Class", ".spec.gatewayClassName"),
            ("Address", ".status.addresses[*].value"),
            ("Programmed", '.status.conditions[?(@.type=="Programmed")].status'),
        ),
        shortNames=["gtw"],
        categories=["gateway-api"],
    ),
    _definition(
        HTTP_ROUTES,
        _route(),
        _object({"parents": _PARENTS}, "parents"),
        (("Hostnames", ".spec.hostnames"),),
        categories=["gateway-api"],
    ),
    _definition(INFERENCE_POOLS, _pool(), _object({"parents": _PARENTS}), shortNames=["infpool"]),
)

#: These kinds as a server serves them without installed definitions.
SERVED: tuple[Served, ...] = tuple(served for definition in _DEFINITIONS for served in crds.served_by(definition))


def manifests() -> list[dict[str, Any]]:
    """CustomResourceDefinitions of these kinds, for an API server that lacks them."""
    return [_manifest(definition["spec"]) for definition in _DEFINITIONS]


def _manifest(spec: Mapping[str, Any]) -> dict[str, Any]:
    name = f"{spec['names']['plural']}.{spec['group']}"
    # The API server requires this annotation on definitions in k8s.io groups; they are unapproved because they are not
    # the upstream project's own.
    annotations = {"api-approved.kubernetes.io": "unapproved, the sandbox's reading of a published API"}
    return {
        "apiVersion": crds.RESOURCE.api_version,
        "kind": crds.RESOURCE.kind,
        "metadata": {"name": name, "annotations": annotations},
        "spec": spec,
    }
