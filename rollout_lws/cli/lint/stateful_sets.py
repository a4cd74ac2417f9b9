"""StatefulSets (apps/v1) as an API server checks them: the schema of their spec, and what no schema can say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from rollout_lws.sandbox.definitions import lws_crd
from rollout_lws.targets.target import ON_DELETE, ROLLING_UPDATE

Schema = dict[str, Any]

_TEXT: Schema = {"type": "string"}
_COUNT: Schema = {"type": "integer", "minimum": 0}


def _object(properties: Schema, *required: str) -> Schema:
    return {"type": "object", "properties": properties, "required": list(required)}


def _among(*values: str) -> Schema:
    return {**_TEXT, "enum": list(values)}


@cache
def schema(version: str) -> Schema:
    """The schema of the spec. LeaderWorkerSet's own, of this version, has the same templates of pods and claims."""
    definition = lws_crd.manifest(version)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    shared = definition["properties"]["leaderWorkerTemplate"]["properties"]
    expression = _object({"key": _TEXT, "operator": _TEXT, "values": {"type": "array", "items": _TEXT}})
    return _object(
        {
            "replicas": _COUNT,
            "selector": _object(
                {
                    "matchLabels": {"type": "object", "additionalProperties": _TEXT},
                    "matchExpressions": {"type": "array", "items": expression},
                }
            ),
            "template": shared["workerTemplate"],
            "serviceName": _TEXT,
            "podManagementPolicy": _among("OrderedReady", "Parallel"),
            "updateStrategy": _object(
                {
                    "type": _among(ROLLING_UPDATE, ON_DELETE),
                    "rollingUpdate": _object(
                        {"partition": _COUNT, "maxUnavailable": {"x-kubernetes-int-or-string": True}}
                    ),
                }
            ),
            "minReadySeconds": _COUNT,
            "revisionHistoryLimit": _COUNT,
            "ordinals": _object({"start": _COUNT}),
            "volumeClaimTemplates": shared["volumeClaimTemplates"],
            "persistentVolumeClaimRetentionPolicy": _object(
                dict.fromkeys(("whenDeleted", "whenScaled"), _among("Retain", "Delete"))
            ),
        },
        "selector",
        "template",
    )


def violations(stateful_set: Mapping[str, Any]) -> Iterator[str]:
    """What an API server refuses of one that fits the schema, in its words: the path, and why."""
    spec = stateful_set["spec"]
    selector, template = spec.get("selector") or {}, spec.get("template") or {}
    labels = (template.get("metadata") or {}).get("labels") or {}
    wanted = selector.get("matchLabels") or {}
    if not wanted and not selector.get("matchExpressions"):
        yield "spec.selector: Invalid value: empty selector is invalid for statefulset"
    if not wanted.items() <= labels.items():
        yield "spec.template.metadata.labels: Invalid value: `selector` does not match template `labels`"
    restarts = (template.get("spec") or {}).get("restartPolicy") or "Always"
    if restarts != "Always":
        yield f'spec.template.spec.restartPolicy: Unsupported value: "{restarts}": supported values: "Always"'
    strategy = spec.get("updateStrategy") or {}
    if strategy.get("type") == ON_DELETE and strategy.get("rollingUpdate") is not None:
        yield (f"spec.updateStrategy.rollingUpdate: Invalid value: only allowed for updateStrategy '{ROLLING_UPDATE}'")
