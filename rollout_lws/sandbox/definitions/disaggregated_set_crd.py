"""The DisaggregatedSet CustomResourceDefinition of LeaderWorkerSet 0.10, whose roles have a LeaderWorkerSet's spec.

Roles that an autoscaler scales (``scaling.mode: External``) and ``placementPolicy`` are not served: the first are
refused, and the second is an unknown field.
"""

from __future__ import annotations

from typing import Any

from rollout_lws.objects.resources import DISAGGREGATED_SETS
from rollout_lws.sandbox.definitions import lws_crd

_NUMBER = {"type": "integer", "format": "int32"}
_TEXTS = {"type": "object", "additionalProperties": {"type": "string"}}
_ROLE_NAME = {"type": "string", "minLength": 1, "maxLength": 63, "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"}
_PARTITION = (
    "!has(self.rolloutStrategy) || !has(self.rolloutStrategy.rollingUpdateConfiguration)"
    " || !has(self.rolloutStrategy.rollingUpdateConfiguration.partition)"
    " || self.rolloutStrategy.rollingUpdateConfiguration.partition == 0"
)


def manifest() -> dict[str, Any]:
    """The definition."""
    of_lws = lws_crd.manifest()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    spec = of_lws["spec"] | {
        "x-kubernetes-validations": [
            {"rule": _PARTITION, "message": "partition is not supported: the roles are rolled together"}
        ]
    }
    role = {
        "type": "object",
        "required": ["name"],
        "properties": {
            "name": _ROLE_NAME,
            "scaling": {"type": "object", "properties": {"mode": {"type": "string", "enum": ["Static"]}}},
            "metadata": {"type": "object", "properties": {"labels": _TEXTS, "annotations": _TEXTS}},
            "spec": spec,
        },
    }
    roles = {
        "type": "array",
        "minItems": 2,
        "maxItems": 10,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
        "items": role,
    }
    counts = dict.fromkeys(("replicas", "readyReplicas", "updatedReplicas"), _NUMBER)
    status = {
        "type": "object",
        "properties": {
            "observedGeneration": {"type": "integer", "format": "int64"},
            "roleStatuses": {
                "type": "array",
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name"],
                "items": {
                    "type": "object",
                    "required": ["name"],
                    "properties": {"name": {"type": "string"}, **counts},
                },
            },
        },
    }
    properties = {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": {"type": "object"},
        "spec": {
            "type": "object",
            "required": ["roles"],
            "properties": {"roles": roles, "slices": {**_NUMBER, "default": 1, "minimum": 1, "maximum": 100}},
        },
        "status": status,
    }
    kind = DISAGGREGATED_SETS
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.plural}.{kind.group}"},
        "spec": {
            "group": kind.group,
            "scope": "Namespaced",
            "names": {
                "kind": kind.kind,
                "listKind": f"{kind.kind}List",
                "plural": kind.plural,
                "singular": kind.kind.lower(),
            },
            "versions": [
                {
                    "name": kind.version,
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "schema": {
                        "openAPIV3Schema": {
                            "description": "LeaderWorkerSets of several roles, such as prefill and decode.",
                            "type": "object",
                            "properties": properties,
                        }
                    },
                }
            ],
        },
    }
