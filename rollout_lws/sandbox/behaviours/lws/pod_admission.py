"""LWS's pod webhook: sets a pod's group labels and the environment with its leader's address.

It leaves out the labels of subgroups, the affinity of an exclusive topology and the variables of libtpu. It also
refuses pods whose annotations ask for a failure at creation, with the message of a ResourceQuota.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from rollout_lws.objects.released import REPLACEMENT_GATE
from rollout_lws.objects.resources import LWS_GROUP_INDEX, LWS_NAME, LWS_WORKER_INDEX, PODS
from rollout_lws.sandbox.apiserver import Operation
from rollout_lws.sandbox.behaviours.base import Object
from rollout_lws.sandbox.behaviours.faults import refused_at_creation
from rollout_lws.sandbox.behaviours.lws import hash_identity, objects
from rollout_lws.sandbox.behaviours.statefulset_pods import ordinal_of
from rollout_lws.sandbox.wire import api_errors


def admit(operation: Operation) -> dict[str, Any]:
    """The operation's pod after the webhook and the quota; pods without an LWS and other kinds pass unchanged."""
    pod = operation.object
    if operation.resource != PODS or operation.verb != "create":
        return pod
    made = mutated(pod) if LWS_NAME in (pod["metadata"].get("labels") or {}) else pod
    if refused_at_creation(made):
        raise api_errors.exceeded_quota(made["metadata"]["name"])
    return made


def mutated(pod: Object) -> dict[str, Any]:
    """A new pod with group labels, subdomain and environment."""
    metadata, spec = pod["metadata"], dict(pod["spec"])
    labels, annotations = dict(metadata.get("labels") or {}), dict(metadata.get("annotations") or {})
    ordinal, name = ordinal_of(pod), metadata["name"]
    leader = labels.get(LWS_WORKER_INDEX) == "0"
    if leader and annotations.get(hash_identity.IDENTITY) == "Hash":
        # The real webhook takes the key from a random text, since the pod has no name yet.
        key = _sha1(f"{metadata.get('namespace', '')}/{name}")
        labels |= {LWS_GROUP_INDEX: key, objects.GROUP_KEY: key}
        spec["hostname"] = f"{labels[LWS_NAME]}-{key[:8]}"
        if annotations.get(objects.SUBDOMAIN_POLICY) == "UniquePerReplica":
            spec["subdomain"] = spec["hostname"]
        gates = spec.get("schedulingGates") or ()
        spec["schedulingGates"] = [*gates, {"name": REPLACEMENT_GATE}]
    elif leader:
        labels.setdefault(LWS_GROUP_INDEX, str(ordinal))
        labels.setdefault(objects.GROUP_KEY, _sha1(f"{metadata.get('namespace', '')}/{name}"))
        if annotations.get(objects.SUBDOMAIN_POLICY) == "UniquePerReplica":
            spec["subdomain"] = name
    else:
        labels[LWS_WORKER_INDEX] = str(ordinal)
    _environment(spec, labels, annotations, metadata.get("namespace", ""))
    return {**pod, "metadata": {**metadata, "labels": labels, "annotations": annotations}, "spec": spec}


def _environment(
    spec: dict[str, Any], labels: Mapping[str, str], annotations: Mapping[str, str], namespace: str
) -> None:
    numbered = f"{labels[LWS_NAME]}-{labels.get(LWS_GROUP_INDEX, '')}.{spec.get('subdomain', '')}.{namespace}"
    named = f"{spec.get('hostname', '')}.{spec.get('subdomain', '')}.{namespace}"
    hashed = annotations.get(hash_identity.IDENTITY) == "Hash"
    address = annotations.get(hash_identity.LEADER_ADDRESS) or (named if hashed else numbered)
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
