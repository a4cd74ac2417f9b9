"""The LeaderWorkerSet CustomResourceDefinition, built from LWS's published fields, so that no network is needed.

Version 0.10 is the default; 0.8 lacks status.observedGeneration, 1.0 adds groupIdentity and groupReplacementPolicy.
"""

from __future__ import annotations

from typing import Any

from rollout_lws.objects.resources import LEADER_WORKER_SETS
from rollout_lws.sandbox.definitions.pod_schema import claim_schema, template_schema

Schema = dict[str, Any]

VERSIONS = ("0.8", "0.10", "1.0")

_NUMBER: Schema = {"type": "integer", "format": "int32"}
_STRING: Schema = {"type": "string"}


def _choice(*values: str, default: str | None = None) -> Schema:
    schema: Schema = {"type": "string", "enum": list(values)}
    return schema if default is None else {**schema, "default": default}


def _number_or_percent(default: int, description: str) -> Schema:
    return {
        "description": description,
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "x-kubernetes-int-or-string": True,
        "default": default,
    }


def _group_template() -> Schema:
    return {
        "description": "The pods of one group: a leader and size - 1 workers.",
        "type": "object",
        "required": ["workerTemplate"],
        "properties": {
            "leaderTemplate": template_schema("Template of the leader; absent, the leader is made like a worker."),
            "workerTemplate": template_schema("Template of the workers."),
            "size": {**_NUMBER, "default": 1, "description": "Pods of a group, its leader included."},
            "restartPolicy": _choice(
                *("Default", "RecreateGroupOnPodRestart", "RecreateGroupAfterStart", "None"),
                default="RecreateGroupOnPodRestart",
            ),
            "subGroupPolicy": {
                "type": "object",
                "properties": {
                    "subGroupPolicyType": _choice("LeaderWorker", "LeaderExcluded", default="LeaderWorker"),
                    "subGroupSize": {**_NUMBER, "description": "Pods of a subgroup."},
                },
            },
            "volumeClaimTemplates": {"type": "array", "items": claim_schema()},
            "persistentVolumeClaimRetentionPolicy": {
                "type": "object",
                "properties": {"whenDeleted": _STRING, "whenScaled": _STRING},
            },
        },
    }


def _rollout_strategy() -> Schema:
    return {
        "description": "How groups are replaced when the template changes.",
        "type": "object",
        "required": ["type"],
        "properties": {
            "type": _choice("RollingUpdate", default="RollingUpdate"),
            "rollingUpdateConfiguration": {
                "type": "object",
                "properties": {
                    "partition": {**_NUMBER, "default": 0, "description": "Groups with a lower index are kept."},
                    "maxUnavailable": _number_or_percent(1, "Groups, or percent of replicas rounded down."),
                    "maxSurge": _number_or_percent(0, "Groups, or percent of replicas rounded up."),
                },
            },
        },
    }


def _spec(version: str) -> Schema:
    properties: Schema = {
        "replicas": {
            **_NUMBER,
            "default": 1,
            "minimum": 0,
            "maximum": 1_000_000,
            "description": "Number of groups.",
        },
        "leaderWorkerTemplate": _group_template(),
        "rolloutStrategy": _rollout_strategy(),
        "startupPolicy": _choice("LeaderCreated", "LeaderReady", default="LeaderCreated"),
        "networkConfig": {
            "type": "object",
            "required": ["subdomainPolicy"],
            "properties": {"subdomainPolicy": _choice("Shared", "UniquePerReplica")},
        },
    }
    if version == "1.0":
        properties["groupIdentity"] = _choice("Ordinal", "Hash", default="Ordinal") | {
            "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "groupIdentity is immutable"}]
        }
        properties["groupReplacementPolicy"] = _choice("PostTermination", "Immediate")
    return {"type": "object", "required": ["leaderWorkerTemplate"], "properties": properties}


def _status(version: str) -> Schema:
    condition = {
        "type": "object",
        "required": ["lastTransitionTime", "message", "reason", "status", "type"],
        "properties": {
            "type": {**_STRING, "maxLength": 316},
            "status": _choice("True", "False", "Unknown"),
            "reason": {**_STRING, "minLength": 1, "maxLength": 1024},
            "message": {**_STRING, "maxLength": 32768},
            "lastTransitionTime": {"type": "string", "format": "date-time"},
            "observedGeneration": {"type": "integer", "format": "int64", "minimum": 0},
        },
    }
    properties: Schema = {
        "conditions": {
            "type": "array",
            "items": condition,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["type"],
        },
        "hpaPodSelector": _STRING,
        "readyReplicas": _NUMBER,
        "replicas": _NUMBER,
        "updatedReplicas": _NUMBER,
    }
    if version != "0.8":
        properties["observedGeneration"] = {"type": "integer", "format": "int64"}
    return {"type": "object", "properties": properties}


def manifest(version: str = "0.10") -> dict[str, Any]:
    """The definition of LWS ``version``, one of VERSIONS."""
    if version not in VERSIONS:
        raise ValueError(f"no LeaderWorkerSet definition of version {version}: there are {', '.join(VERSIONS)}")
    kind = LEADER_WORKER_SETS
    columns = (
        ("Ready", "integer", ".status.readyReplicas"),
        ("Desired", "integer", ".spec.replicas"),
        ("Up-to-date", "integer", ".status.updatedReplicas"),
        ("Age", "date", ".metadata.creationTimestamp"),
    )
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
                "singular": "leaderworkerset",
                "shortNames": ["lws"],
            },
            "versions": [
                {
                    "name": kind.version,
                    "served": True,
                    "storage": True,
                    "additionalPrinterColumns": [
                        {"name": name, "type": of, "jsonPath": path} for name, of, path in columns
                    ],
                    "subresources": {
                        "status": {},
                        "scale": {
                            "specReplicasPath": ".spec.replicas",
                            "statusReplicasPath": ".status.replicas",
                            "labelSelectorPath": ".status.hpaPodSelector",
                        },
                    },
                    "schema": {
                        "openAPIV3Schema": {
                            "description": "Groups of pods that serve or train together, each with a leader.",
                            "type": "object",
                            "properties": {
                                "apiVersion": _STRING,
                                "kind": _STRING,
                                "metadata": {"type": "object"},
                                "spec": _spec(version),
                                "status": _status(version),
                            },
                        }
                    },
                }
            ],
        },
    }
