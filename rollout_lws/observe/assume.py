"""Assumed objects for commands without a cluster: as they would be once created, accepted and at rest."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from rollout_lws.objects.resources import (
    HORIZONTAL_POD_AUTOSCALERS,
    HTTP_ROUTES,
    INFERENCE_POOLS,
    LEADER_WORKER_SETS,
    LWS_GROUP_INDEX,
    LWS_NAME,
    LWS_REVISION,
    LWS_WORKER_INDEX,
    PODS,
    SERVICES,
    STATEFUL_SETS,
    Resource,
)
from rollout_lws.observe.snapshot import Object, Snapshot
from rollout_lws.traffic.names import Names, of_sides
from rollout_lws.traffic.registry import SPECS, named_in, resources_of
from rollout_lws.traffic.services import backends

#: Revision of the version that is assumed to run.
ASSUMED = "assumed"


def created(resource: Resource, manifest: Object, namespace: str) -> Object:
    """The object that an API server makes of a manifest."""
    meta = {**manifest["metadata"], "namespace": namespace}
    fresh = {"uid": f"{resource.kind}-{meta['name']}", "generation": 1, "resourceVersion": "0"}
    return {**copy.deepcopy(manifest), "metadata": {**fresh, **meta}}


def pod_labels(lws: Object, group: int = 0, worker: int = 0) -> dict[str, str]:
    """The labels of an LWS's pod: those of its template, and those that LWS and its webhook add."""
    place = {LWS_GROUP_INDEX: str(group), LWS_WORKER_INDEX: str(worker)}
    own = {LWS_NAME: lws["metadata"]["name"], LWS_REVISION: ASSUMED, **place}
    return {**_template_labels(lws, worker), **own}


def _template_labels(lws: Object | None, worker: int = 0) -> dict[str, str]:
    """Those that the pod has by its template; none of an LWS that does not exist."""
    templates = lws["spec"]["leaderWorkerTemplate"] if lws is not None else {}
    template = (templates.get("leaderTemplate") if worker == 0 else None) or templates.get("workerTemplate") or {}
    return (template.get("metadata") or {}).get("labels") or {}


def leader(lws: Object, group: int = 0) -> Object:
    """The leader of a group of an LWS, metadata only."""
    meta, name = lws["metadata"], f"{lws['metadata']['name']}-{group}"
    made = {"name": name, "namespace": meta.get("namespace", ""), "uid": f"{PODS.kind}-{name}", "generation": 1}
    return {"metadata": {**made, "labels": pod_labels(lws, group)}}


def running(found: Snapshot, workload: str) -> Snapshot:
    """``found`` with the LWS ``workload`` running according to its manifest, if nothing of it runs."""
    lws = found.find(LEADER_WORKER_SETS, workload)
    if lws is None or found.find(STATEFUL_SETS, workload) is not None:
        return found
    objects = {resource: list(known) for resource, known in found.objects.items()}
    meta, replicas = lws["metadata"], lws["spec"].get("replicas", 1)
    owner = {"apiVersion": LEADER_WORKER_SETS.api_version, "kind": LEADER_WORKER_SETS.kind, "name": workload}
    leader_set = {
        "metadata": {
            "namespace": meta["namespace"],
            "generation": 1,
            "name": workload,
            "uid": f"{STATEFUL_SETS.kind}-{workload}",
            "labels": {LWS_NAME: workload, LWS_REVISION: ASSUMED},
            "ownerReferences": [{**owner, "uid": meta["uid"], "controller": True}],
        },
        "spec": {"replicas": replicas},
        "status": {"observedGeneration": 1, "currentRevision": ASSUMED, "updateRevision": ASSUMED},
    }
    objects.setdefault(STATEFUL_SETS, []).append(leader_set)
    objects.setdefault(PODS, []).extend(leader(lws, group) for group in range(replicas))
    workloads = [each for each in objects[LEADER_WORKER_SETS] if each is not lws]
    objects[LEADER_WORKER_SETS] = [*workloads, {**lws, "status": {"observedGeneration": meta.get("generation", 1)}}]
    return replace(found, objects=objects)


def routed(
    found: Snapshot, asked: Mapping[str, Any], workload: str, counterpart: str = "", active: str = ""
) -> tuple[Snapshot, list[str]]:
    """``found`` with valid versions of the objects that ``asked``, a Rollout's trafficRouting, names and no file
    contains; and these objects, as "Kind name". Routes without a status yet are assumed to be accepted.

    Of a pair, ``counterpart`` is the second workload, and ``active`` the one that a made-up route sends all requests to
    ("": ``workload``).
    """
    names = named_in(asked)
    lws = found.find(LEADER_WORKER_SETS, workload) or found.find(LEADER_WORKER_SETS, counterpart)
    namespace = lws["metadata"]["namespace"] if lws is not None else "default"
    if counterpart:
        names = of_sides(names, workload, workload)
    told = []
    objects = {resource: list(known) for resource, known in found.objects.items()}
    sides = (workload, counterpart) if counterpart else (workload, workload)
    labels = {each: _template_labels(found.find(LEADER_WORKER_SETS, each)) for each in sides}
    examples = _examples(names, sides, active, labels)
    for resource, name in resources_of(names):
        if name and found.find(resource, name) is None:
            head = {"apiVersion": resource.api_version, "kind": resource.kind}
            example = examples.get((resource, name)) or examples[resource, ""]
            made = created(resource, {**head, "metadata": {"name": name}, "spec": example}, namespace)
            objects.setdefault(resource, []).append(made)
            told.append(f"{resource.kind} {name}")
    for spec in SPECS:
        known = objects.get(spec.resource, ())
        objects[spec.resource] = [spec.in_use(each) for each in known]
    return replace(found, objects=objects), told


def _examples(
    names: Names, sides: tuple[str, str], active: str, labels: Mapping[str, Mapping[str, str]]
) -> dict[tuple[Resource, str], Mapping[str, Any]]:
    """The spec of each object that may be made up, by kind and name; "" stands for all others of the kind. ``sides``
    are the workloads whose groups the two versions have, which are selected by these ``labels`` besides.
    """
    both = backends(names)
    references = [
        {"name": each.name} | ({"group": each.group, "kind": each.kind} if each.group else {"port": 80})
        for each in (both.stable, both.canary)
    ]
    examples = {(spec.resource, ""): spec.example(names.service, references[0]) for spec in SPECS}
    if names.is_pair:
        weights = (0, 100) if active == sides[1] else (100, 0)
        weighted = [{**each, "weight": weight} for each, weight in zip(references, weights, strict=True)]
        route = examples[HTTP_ROUTES, ""]
        examples[HTTP_ROUTES, ""] = {**route, "rules": [{"backendRefs": weighted}]}
    for workload, service, pool in zip(
        sides, (names.service, names.canary_service), (names.stable_pool, names.canary_pool), strict=True
    ):
        # Of a pair single groups have to be selectable, for a release that shifts; of one workload those of another one
        # that takes its place.
        own = {LWS_NAME: workload} if names.is_pair or not labels[workload] else {}
        selector = {**labels[workload], **own, LWS_WORKER_INDEX: "0"}
        if service:
            examples[SERVICES, service] = {"selector": selector, "ports": [{"port": 80}]}
        if pool:
            examples[INFERENCE_POOLS, pool] = {"selector": {"matchLabels": selector}}
    return examples


def autoscaler(scaled: Object) -> Object:
    """The HorizontalPodAutoscaler that KEDA creates from a ScaledObject."""
    spec, metadata = scaled["spec"], scaled["metadata"]
    owner = {"apiVersion": scaled["apiVersion"], "kind": scaled["kind"], "name": metadata["name"], "controller": True}
    return {
        "apiVersion": HORIZONTAL_POD_AUTOSCALERS.api_version,
        "kind": HORIZONTAL_POD_AUTOSCALERS.kind,
        "metadata": {**metadata, "name": f"keda-hpa-{metadata['name']}", "ownerReferences": [owner]},
        "spec": {
            "scaleTargetRef": spec["scaleTargetRef"],
            "minReplicas": spec.get("minReplicaCount") or 1,
            "maxReplicas": spec.get("maxReplicaCount") or 100,
        },
    }
