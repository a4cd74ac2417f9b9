"""The objects that the LeaderWorkerSet controllers create: StatefulSets, headless Services and ControllerRevisions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rollout_lws.objects.resources import (
    LEADER_WORKER_SETS,
    LWS_GROUP_INDEX,
    LWS_NAME,
    LWS_PREFIX,
    LWS_REVISION,
    LWS_WORKER_INDEX,
    PODS,
    SERVICES,
    STATEFUL_SETS,
)
from rollout_lws.objects.spelling import in_full, plain
from rollout_lws.sandbox.behaviours.base import Object, annotations_of, labels_of, owner_reference, within
from rollout_lws.sandbox.behaviours.lws import hash_identity
from rollout_lws.sandbox.behaviours.lws.partition import Strategy
from rollout_lws.sandbox.behaviours.revisions import controller_revision, short_hash

SIZE = LWS_PREFIX + "size"
REPLICAS = LWS_PREFIX + "replicas"
LEADER_NAME = LWS_PREFIX + "leader-name"
GROUP_KEY = LWS_PREFIX + "group-key"
EXCLUSIVE_TOPOLOGY = LWS_PREFIX + "exclusive-topology"
SUBGROUP_EXCLUSIVE_TOPOLOGY = LWS_PREFIX + "subgroup-exclusive-topology"
SUBGROUP_POLICY_TYPE = LWS_PREFIX + "subgroup-policy-type"
SUBGROUP_SIZE = LWS_PREFIX + "subgroup-size"
SUBDOMAIN_POLICY = LWS_PREFIX + "subdomainPolicy"

_CLAIM_FIELDS = ("accessModes", "storageClassName", "volumeMode", "resources")

#: Specs and their full forms, by identity: a stored object never changes in place, and each decision needs them.
_FULL: dict[int, tuple[Mapping[str, Any], dict[str, Any]]] = {}
_MOST_FULL = 32


def _in_full(spec: dict[str, Any]) -> dict[str, Any]:
    known = _FULL.get(id(spec))
    if known is None or known[0] is not spec:
        if len(_FULL) >= _MOST_FULL:
            _FULL.clear()
        known = _FULL[id(spec)] = spec, in_full(spec)
    return known[1]


def revision_data(spec: dict[str, Any]) -> dict[str, Any]:
    """The data of a revision: the template but for the limit of restarts, and the network config; nothing that names
    the LWS.
    """
    template = {**_in_full(spec)["leaderWorkerTemplate"], "$patch": "replace"}
    template.pop("maxGroupRestarts", None)
    return {
        "spec": {
            "networkConfig": {**(spec.get("networkConfig") or {}), "$patch": "replace"},
            "leaderWorkerTemplate": template,
        }
    }


def revision_key(data: Mapping[str, Any]) -> str:
    """The template-revision-hash of a version, independent of how its values are written."""
    return short_hash({"spec": plain(data["spec"])})


def revision(lws: Object, key: str, data: Mapping[str, Any], number: int) -> dict[str, Any]:
    name = lws["metadata"]["name"]
    labels = {LWS_NAME: name, LWS_REVISION: key}
    return controller_revision(lws, LEADER_WORKER_SETS, f"{name[:220]}-{key}-{number}", labels, data, number)


def leader_set(lws: Object, key: str, partition: int, replicas: int, strategy: Strategy) -> dict[str, Any]:
    """The fields of the leader StatefulSet that the LWS controller owns."""
    spec = _in_full(lws["spec"])
    groups = spec["leaderWorkerTemplate"]
    name = lws["metadata"]["name"]
    shared = _group_annotations(lws, groups)
    if spec["networkConfig"]["subdomainPolicy"] == "UniquePerReplica":
        shared[SUBDOMAIN_POLICY] = "UniquePerReplica"
    labels = {LWS_NAME: name, LWS_WORKER_INDEX: "0", LWS_REVISION: key}
    template = _template(groups.get("leaderTemplate") or groups["workerTemplate"], labels, shared)
    allowed_down = max(1, strategy.max_unavailable + strategy.max_surge)
    body = _stateful_set(lws, name, {LWS_NAME: name, LWS_REVISION: key}, {REPLICAS: str(strategy.replicas)})
    body["metadata"]["ownerReferences"] = [owner_reference(LEADER_WORKER_SETS, lws)]
    body["spec"] = {
        "replicas": replicas,
        "serviceName": name,
        "podManagementPolicy": "Parallel",
        "selector": {"matchLabels": {LWS_NAME: name, LWS_WORKER_INDEX: "0"}},
        "template": template,
        "updateStrategy": {
            "type": "RollingUpdate",
            "rollingUpdate": {"partition": partition, "maxUnavailable": allowed_down},
        },
        **_storage(groups),
    }
    return body


def leader_deployment(lws: Object, key: str) -> dict[str, Any]:
    """The Deployment of the leaders of an LWS whose groups have no numbers."""
    spec = _in_full(lws["spec"])
    groups, name = spec["leaderWorkerTemplate"], lws["metadata"]["name"]
    shared = _group_annotations(lws, groups)
    if spec["networkConfig"]["subdomainPolicy"] == "UniquePerReplica":
        shared[SUBDOMAIN_POLICY] = "UniquePerReplica"
    labels = {LWS_NAME: name, LWS_WORKER_INDEX: "0", LWS_REVISION: key}
    template = _template(groups.get("leaderTemplate") or groups["workerTemplate"], labels, shared)
    marks = {REPLICAS: str(spec["replicas"])}
    return hash_identity.leader_deployment(lws, {LWS_NAME: name, LWS_REVISION: key}, marks, template)


def since_1_0(lws: Object) -> bool:
    """Whether LWS 1.0 or newer is played, by the definition that is installed: its schema fills groupIdentity in."""
    return "groupIdentity" in lws["spec"]


def worker_set(lws: Object, leader: Object, of_revision: Mapping[str, Any]) -> dict[str, Any]:
    """The worker StatefulSet of one group, whose leader has a revision with the members ``of_revision``.

    Up to v0.10 LWS takes only the pod template from the leader's revision. Size, subgroups, network and claims come
    from the live spec, so changes to them that are still held reach groups of the old version when these restart.
    Since then all of it comes from the revision.
    """
    recorded = of_revision["leaderWorkerTemplate"]
    whole = of_revision if since_1_0(lws) else _in_full(lws["spec"])
    live = whole["leaderWorkerTemplate"]
    unique = whole["networkConfig"]["subdomainPolicy"] == "UniquePerReplica"
    labels, name = labels_of(leader), leader["metadata"]["name"]
    selector = {
        LWS_NAME: lws["metadata"]["name"],
        LWS_GROUP_INDEX: labels[LWS_GROUP_INDEX],
        GROUP_KEY: labels[GROUP_KEY],
    }
    all_labels = {**selector, LWS_REVISION: labels[LWS_REVISION]}
    annotations = {**_group_annotations(lws, live), LEADER_NAME: name}
    if hash_identity.is_hash(lws):
        address = f"{leader['spec']['hostname']}.{leader['spec']['subdomain']}.{leader['metadata']['namespace']}"
        annotations |= {hash_identity.IDENTITY: "Hash", hash_identity.LEADER_ADDRESS: address}
    body = _stateful_set(lws, name, all_labels, {})
    body["metadata"]["ownerReferences"] = [owner_reference(PODS, leader)]
    body["spec"] = {
        "replicas": int(live["size"]) - 1,
        "ordinals": {"start": 1},
        "serviceName": leader["spec"].get("subdomain", "") if unique else lws["metadata"]["name"],
        "podManagementPolicy": "Parallel",
        "selector": {"matchLabels": selector},
        "template": _template(recorded["workerTemplate"], all_labels, annotations),
        **_storage(live),
    }
    return body


def shared_service(lws: Object) -> dict[str, Any]:
    name = lws["metadata"]["name"]
    return _headless(lws, name, {LWS_NAME: name}, owner_reference(LEADER_WORKER_SETS, lws))


def group_service(lws: Object, leader: Object) -> dict[str, Any]:
    selector = {LWS_NAME: lws["metadata"]["name"], LWS_GROUP_INDEX: labels_of(leader)[LWS_GROUP_INDEX]}
    return _headless(lws, leader["spec"].get("subdomain", ""), selector, owner_reference(PODS, leader))


def already_applied(desired: Mapping[str, Any], live: Object) -> bool:
    """Whether a write would change nothing; fields that an API server adds by default do not matter."""
    meta, template = live["metadata"], live["spec"]["template"].get("metadata") or {}
    return (
        desired["metadata"]["labels"] == (meta.get("labels") or {})
        and desired["metadata"]["annotations"] == (meta.get("annotations") or {})
        and desired["metadata"]["ownerReferences"] == meta.get("ownerReferences")
        and all(desired["spec"]["template"]["metadata"][key] == template.get(key) for key in ("labels", "annotations"))
        and within(desired["spec"], live["spec"])
    )


def applied(desired: Mapping[str, Any], live: Object) -> dict[str, Any]:
    """``live`` with every owned field as desired."""
    return {
        **live,
        "metadata": {**live["metadata"], **desired["metadata"]},
        "spec": {**live["spec"], **desired["spec"]},
    }


def _stateful_set(lws: Object, name: str, labels: Mapping[str, str], annotations: Mapping[str, str]) -> dict[str, Any]:
    """A StatefulSet without spec and owner; it inherits the LWS's labels and annotations, ours win."""
    return {
        "apiVersion": STATEFUL_SETS.api_version,
        "kind": STATEFUL_SETS.kind,
        "metadata": {
            "name": name,
            "namespace": lws["metadata"]["namespace"],
            "labels": {**labels_of(lws), **labels},
            "annotations": {**annotations_of(lws), **annotations},
        },
    }


def _template(template: Mapping[str, Any], labels: Mapping[str, str], annotations: Mapping[str, str]) -> dict[str, Any]:
    metadata = template.get("metadata") or {}
    return {
        **template,
        "metadata": {
            **metadata,
            "labels": {**(metadata.get("labels") or {}), **labels},
            "annotations": {**(metadata.get("annotations") or {}), **annotations},
        },
    }


def _group_annotations(lws: Object, groups: Mapping[str, Any]) -> dict[str, str]:
    own = annotations_of(lws)
    found = {SIZE: str(groups["size"])}
    if topology := _placed(groups) or own.get(EXCLUSIVE_TOPOLOGY):
        found[EXCLUSIVE_TOPOLOGY] = topology
    subgroups = groups.get("subGroupPolicy")
    if subgroups:
        found[SUBGROUP_POLICY_TYPE] = subgroups.get("subGroupPolicyType") or "LeaderWorker"
        found[SUBGROUP_SIZE] = str(subgroups["subGroupSize"])
        if topology := _placed(subgroups) or own.get(SUBGROUP_EXCLUSIVE_TOPOLOGY):
            found[SUBGROUP_EXCLUSIVE_TOPOLOGY] = topology
    return found


def _placed(holder: Mapping[str, Any]) -> str:
    """The label of the topology domains that groups, or subgroups, have for themselves by their placementPolicy."""
    return str((holder.get("placementPolicy") or {}).get("topology") or "")


def _storage(groups: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if groups.get("volumeClaimTemplates"):
        found["volumeClaimTemplates"] = [
            {
                "metadata": {"name": claim["metadata"]["name"]},
                "spec": {key: value for key, value in claim["spec"].items() if key in _CLAIM_FIELDS},
            }
            for claim in groups["volumeClaimTemplates"]
        ]
    if groups.get("persistentVolumeClaimRetentionPolicy"):
        found["persistentVolumeClaimRetentionPolicy"] = groups["persistentVolumeClaimRetentionPolicy"]
    return found


def _headless(lws: Object, name: str, selector: Mapping[str, str], owner: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": SERVICES.api_version,
        "kind": SERVICES.kind,
        "metadata": {
            "name": name,
            "namespace": lws["metadata"]["namespace"],
            "labels": {LWS_NAME: lws["metadata"]["name"]},
            "ownerReferences": [owner],
        },
        "spec": {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": dict(selector)},
    }
