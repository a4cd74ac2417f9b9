"""Structural schemas for lint: our CRDs', and for other kinds the fields that lint and releases read.

An unknown field of another kind may be newer than this program, so it is no error.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from rollout_lws.api import RolloutSpec, rollouts
from rollout_lws.api.structural import structural
from rollout_lws.cli.lint import stateful_sets
from rollout_lws.cli.lint.manifests import NETWORK_POLICIES, POD_MONITORS, SCALED_OBJECTS
from rollout_lws.objects.resources import (
    HORIZONTAL_POD_AUTOSCALERS,
    LEADER_WORKER_SETS,
    POD_DISRUPTION_BUDGETS,
    SERVICES,
    STATEFUL_SETS,
)
from rollout_lws.sandbox.definitions import gateway_api, istio, lws_crd
from rollout_lws.sandbox.schemas.schema import Node
from rollout_lws.traffic.registry import SPECS

Schema = dict[str, Any]

_TEXT: Schema = {"type": "string"}
_COUNT: Schema = {"type": "integer"}
_TEXTS: Schema = {"type": "object", "additionalProperties": _TEXT}
_TRUTH: Schema = {"type": "boolean"}
_TIME: Schema = {"type": "string", "format": "date-time"}


def _open(properties: Schema, *required: str) -> Schema:
    schema: Schema = {"type": "object", "properties": properties, "x-kubernetes-preserve-unknown-fields": True}
    return schema | ({"required": list(required)} if required else {})


def _list(item: Schema) -> Schema:
    return {"type": "array", "items": item}


_OWNER = _open(
    {
        **dict.fromkeys(("apiVersion", "kind", "name", "uid"), _TEXT),
        **dict.fromkeys(("controller", "blockOwnerDeletion"), _TRUTH),
    }
)
#: Object metadata, as users write it and as servers fill it in.
METADATA = Node(
    _open(
        {
            **dict.fromkeys(("name", "generateName", "namespace", "uid", "resourceVersion", "selfLink"), _TEXT),
            **dict.fromkeys(("creationTimestamp", "deletionTimestamp"), _TIME),
            **dict.fromkeys(("generation", "deletionGracePeriodSeconds"), _COUNT),
            **dict.fromkeys(("labels", "annotations"), _TEXTS),
            "finalizers": _list(_TEXT),
            "ownerReferences": _list(_OWNER),
            "managedFields": _list(_open({})),
        }
    )
)
#: The spec of a kind of which nothing is known.
ANY = Node(_open({}))
_TARGET = _open({"apiVersion": _TEXT, "kind": _TEXT, "name": _TEXT}, "name")
_REQUIREMENT = _open({"key": _TEXT, "operator": _TEXT, "values": _list(_TEXT)}, "key", "operator")
_SELECTOR = _open({"matchLabels": _TEXTS, "matchExpressions": _list(_REQUIREMENT)})
_PEERS = _list(_open({"podSelector": _SELECTOR}))
#: The fields that are read, for kinds without a CRD at hand.
_BUILT_IN: Mapping[str, Schema] = {
    SERVICES.kind: _open(
        {
            "type": _TEXT,
            "clusterIP": _TEXT,
            "externalName": _TEXT,
            "selector": _TEXTS,
            "publishNotReadyAddresses": _TRUTH,
            "ports": _list(_open({"port": _COUNT, "name": _TEXT}, "port")),
        }
    ),
    **{spec.resource.kind: dict(spec.schema) for spec in SPECS if spec.schema is not None},
    HORIZONTAL_POD_AUTOSCALERS.kind: _open(
        {"scaleTargetRef": _TARGET, "minReplicas": _COUNT, "maxReplicas": _COUNT}, "scaleTargetRef", "maxReplicas"
    ),
    SCALED_OBJECTS.kind: _open({"scaleTargetRef": _TARGET}, "scaleTargetRef"),
    POD_DISRUPTION_BUDGETS.kind: _open({"selector": _SELECTOR}),
    NETWORK_POLICIES.kind: _open(
        {
            "podSelector": _SELECTOR,
            "ingress": _list(_open({"from": _PEERS})),
            "egress": _list(_open({"to": _PEERS})),
        }
    ),
    POD_MONITORS.kind: _open({"selector": _SELECTOR}),
}
#: The newest LeaderWorkerSet: a manifest does not tell the cluster's version.
_LWS_VERSION = lws_crd.VERSIONS[-1]


@cache
def spec_schema(kind: str) -> Node:
    """The schema of ``spec`` of any kind that lint checks."""
    if kind == rollouts().kind:
        # Rendering the whole CRD, with all of status, would take longer than everything else.
        return Node(structural(RolloutSpec))
    if kind in _BUILT_IN:
        return Node(_BUILT_IN[kind])
    if kind == STATEFUL_SETS.kind:
        return Node(stateful_sets.schema(_LWS_VERSION))
    return Node(_of_definition(_definition(kind)))


def _definition(kind: str) -> Schema:
    if kind == LEADER_WORKER_SETS.kind:
        return lws_crd.manifest(_LWS_VERSION)
    every = (*gateway_api.manifests(), *istio.manifests())
    return next(each for each in every if each["spec"]["names"]["kind"] == kind)


def _of_definition(definition: Schema) -> Schema:
    schema: Schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    return schema
