"""LWS's pod webhook: sets a pod's group labels, affinity and the environment with its leader's address.

It also refuses pods whose annotations ask for a failure at creation, with the message of a ResourceQuota.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from rollout_lws.objects.resources import LWS_GROUP_INDEX, LWS_NAME, LWS_PREFIX, LWS_WORKER_INDEX, PODS
from rollout_lws.sandbox.apiserver import Operation
from rollout_lws.sandbox.behaviours.base import Object
from rollout_lws.sandbox.behaviours.faults import refused_at_creation
from rollout_lws.sandbox.behaviours.lws import objects
from rollout_lws.sandbox.behaviours.statefulset_pods import ordinal_of
from rollout_lws.sandbox.wire import api_errors

_SUBGROUP_INDEX = LWS_PREFIX + "subgroup-index"
_SUBGROUP_KEY = LWS_PREFIX + "subgroup-key"


def admit(operation: Operation) -> dict[str, Any]:
    """The operation's pod after the webhook; pods without an LWS and other kinds pass unchanged."""
    pod = operation.object
    if operation.resource != PODS or operation.verb != "create":
        return pod
    if LWS_NAME not in (pod["metadata"].get("labels") or {}):
        return pod
    made = mutated(pod)
    if refused_at_creation(made):
        raise api_errors.exceeded_quota(made["metadata"]["name"])
    return made


def mutated(pod: Object) -> dict[str, Any]:
    """A new pod with group labels, subdomain, affinities and environment."""
    metadata, spec = pod["metadata"], dict(pod["spec"])
    labels, annotations = dict(metadata.get("labels") or {}), dict(metadata.get("annotations") or {})
    ordinal, name = ordinal_of(pod), metadata["name"]
    leader = labels.get(LWS_WORKER_INDEX) == "0"
    if leader:
        labels.setdefault(LWS_GROUP_INDEX, str(ordinal))
        labels.setdefault(objects.GROUP_KEY, _sha1(f"{metadata.get('namespace', '')}/{name}"))
        if annotations.get(objects.SUBDOMAIN_POLICY) == "UniquePerReplica":
            spec["subdomain"] = name
    else:
        labels[LWS_WORKER_INDEX] = str(ordinal)
    leader_name = name if leader else annotations.get(objects.LEADER_NAME, "")
    _subgroup(labels, annotations, leader_name, leader, ordinal)
    for topology, key in (
        (annotations.get(objects.EXCLUSIVE_TOPOLOGY), objects.GROUP_KEY),
        (annotations.get(objects.SUBGROUP_EXCLUSIVE_TOPOLOGY), _SUBGROUP_KEY),
    ):
        if topology and key in labels:
            spec["affinity"] = _exclusive(spec.get("affinity") or {}, topology, key, labels[key])
    _environment(spec, labels, annotations, metadata.get("namespace", ""))
    return {**pod, "metadata": {**metadata, "labels": labels, "annotations": annotations}, "spec": spec}


def _subgroup(
    labels: dict[str, str], annotations: Mapping[str, str], leader_name: str, leader: bool, ordinal: int
) -> None:
    if objects.SUBGROUP_SIZE not in annotations:
        return
    size, group = int(annotations[objects.SIZE]), int(annotations[objects.SUBGROUP_SIZE])
    if leader:
        if annotations.get(objects.SUBGROUP_POLICY_TYPE) == "LeaderExcluded":
            return
        index = 0
    else:
        leader_is_extra = (size - 1) % group == 0 and size % group != 0
        index = (ordinal - 1) // group if leader_is_extra else ordinal // group
    labels[_SUBGROUP_INDEX] = str(index)
    labels[_SUBGROUP_KEY] = _sha1(f"{leader_name}/{index}")


def _exclusive(affinity: Mapping[str, Any], topology: str, key: str, value: str) -> dict[str, Any]:
    """Exclusive placement: one topology domain for all pods with this key, and no other pods with such a key."""
    own = [{"key": key, "operator": "In", "values": [value]}]
    others: list[dict[str, Any]] = [
        {"key": key, "operator": "Exists"},
        {"key": key, "operator": "NotIn", "values": [value]},
    ]
    return {
        **affinity,
        "podAffinity": _with_term(affinity.get("podAffinity") or {}, topology, own),
        "podAntiAffinity": _with_term(affinity.get("podAntiAffinity") or {}, topology, others),
    }


def _with_term(affinity: Mapping[str, Any], topology: str, expressions: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    term = {"labelSelector": {"matchExpressions": list(expressions)}, "topologyKey": topology}
    return {**affinity, required: [*(affinity.get(required) or ()), term]}


def _environment(
    spec: dict[str, Any], labels: Mapping[str, str], annotations: Mapping[str, str], namespace: str
) -> None:
    address = f"{labels[LWS_NAME]}-{labels.get(LWS_GROUP_INDEX, '')}.{spec.get('subdomain', '')}.{namespace}"
    variables = {
        "LWS_LEADER_ADDRESS": address,
        "LWS_GROUP_SIZE": annotations.get(objects.SIZE, ""),
        "LWS_WORKER_INDEX": labels[LWS_WORKER_INDEX],
    }
    for kind in ("initContainers", "containers"):
        if spec.get(kind):
            spec[kind] = [_with_variables(container, variables) for container in spec[kind]]


def _with_variables(container: Mapping[str, Any], variables: Mapping[str, str]) -> dict[str, Any]:
    first = [{"name": name, "value": value} for name, value in variables.items()]
    own = [item for item in container.get("env") or () if item["name"] not in variables]
    return {**container, "env": [*first, *own]}


def _sha1(text: str) -> str:
    return hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()
