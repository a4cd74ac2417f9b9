"""Assumed objects for commands without a cluster: as they would be once created, accepted and at rest."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import msgspec

from rollout_lws.objects.released import POD_NAME
from rollout_lws.objects.resources import (
    HORIZONTAL_POD_AUTOSCALERS,
    INFERENCE_POOLS,
    PODS,
    SERVICES,
    STATEFUL_SETS,
    Resource,
)
from rollout_lws.observe.snapshot import Object, Snapshot
from rollout_lws.targets.target import Target
from rollout_lws.traffic.names import Names, of_sides
from rollout_lws.traffic.registry import SPECS, WRITTEN_SPECS, named_in, resources_of
from rollout_lws.traffic.services import backends

#: Revision of the version that is assumed to run.
ASSUMED = "assumed"


def created(resource: Resource, manifest: Object, namespace: str) -> Object:
    """The object that an API server makes of a manifest."""
    meta = {**manifest["metadata"], "namespace": namespace}
    fresh = {"uid": f"{resource.kind}-{meta['name']}", "generation": 1, "resourceVersion": "0"}
    return {**copy.deepcopy(manifest), "metadata": {**fresh, **meta}}


def typed(kind: type[Target], workload: Object) -> Target:
    """A workload in the controller's type."""
    return msgspec.json.decode(msgspec.json.encode(workload), type=kind)


def pod_labels(kind: type[Target], workload: Object, group: int = 0, worker: int = 0) -> dict[str, str]:
    """The labels of a workload's pod: those of its template, and those that controllers and their webhooks add.
    ``group`` is its place among the groups, from 0; ``worker`` is 0 for the pod that takes requests.
    """
    name, names = workload["metadata"]["name"], kind.labels
    index = typed(kind, workload).first_ordinal + group
    own = {names.workload: name} if names.workload is not None else {POD_NAME: f"{name}-{index}"}
    place = {names.index: str(index)} | ({names.leader[0]: str(worker)} if names.leader is not None else {})
    return {**_template_labels(kind, workload, worker), **own, names.revision: _revision(kind, name), **place}


def _revision(kind: type[Target], workload: str) -> str:
    """The revision of the version that is assumed to run: its own name, if it is that of a ControllerRevision."""
    return ASSUMED if kind.labels.record else f"{workload}-{ASSUMED}"


def _template_labels(kind: type[Target], workload: Object | None, worker: int = 0) -> dict[str, str]:
    """Those that the pod has by its template; none of a workload that does not exist."""
    templates = dict(kind.format.templates(workload["spec"])) if workload is not None else {}
    template = (templates.get("leader") if worker == 0 else None) or templates.get("worker") or {}
    return (template.get("metadata") or {}).get("labels") or {}


def leader(kind: type[Target], workload: Object, group: int = 0) -> Object:
    """The pod of a workload's group that takes requests, metadata only."""
    meta = workload["metadata"]
    labels = pod_labels(kind, workload, group)
    name = f"{meta['name']}-{labels[kind.labels.index]}"
    made = {"name": name, "namespace": meta.get("namespace", ""), "uid": f"{PODS.kind}-{name}", "generation": 1}
    return {"metadata": {**made, "labels": labels}}


def running(found: Snapshot, kind: type[Target], workload: str) -> Snapshot:
    """``found`` with the workload running according to its manifest, if nothing of it runs."""
    live, resource = found.find(kind.resource, workload), kind.resource
    if live is None or _runs(found, kind, live):
        return found
    objects = {each: list(known) for each, known in found.objects.items()}
    meta, replicas = live["metadata"], live["spec"].get("replicas", 1)
    revision = _revision(kind, workload)
    status: dict[str, Any] = {"observedGeneration": meta.get("generation", 1)}
    revisions = {"currentRevision": revision, "updateRevision": revision}
    if kind.labels.workload is None:
        # It makes its pods itself.
        status |= revisions
    else:
        owner = {"apiVersion": resource.api_version, "kind": resource.kind, "name": workload}
        leader_set = {
            "metadata": {
                "namespace": meta["namespace"],
                "generation": 1,
                "name": workload,
                "uid": f"{STATEFUL_SETS.kind}-{workload}",
                "labels": {kind.labels.workload: workload, kind.labels.revision: revision},
                "ownerReferences": [{**owner, "uid": meta["uid"], "controller": True}],
            },
            "spec": {"replicas": replicas},
            "status": {"observedGeneration": 1, **revisions},
        }
        objects.setdefault(STATEFUL_SETS, []).append(leader_set)
    objects.setdefault(PODS, []).extend(leader(kind, live, group) for group in range(replicas))
    workloads = [each for each in objects[resource] if each is not live]
    objects[resource] = [*workloads, {**live, "status": status}]
    return replace(found, objects=objects)


def _runs(found: Snapshot, kind: type[Target], workload: Object) -> bool:
    """Whether the StatefulSet that makes its pods, which it may be itself, is known to a controller."""
    if kind.labels.workload is not None:
        return found.find(STATEFUL_SETS, workload["metadata"]["name"]) is not None
    return bool((workload.get("status") or {}).get("updateRevision"))


def routed(
    found: Snapshot,
    asked: Mapping[str, Any],
    kind: type[Target],
    workload: str,
    counterpart: str = "",
    active: str = "",
) -> tuple[Snapshot, list[str]]:
    """``found`` with valid versions of the objects that ``asked``, a Rollout's trafficRouting, names and no file
    contains; and these objects, as "Kind name". Routes without a status yet are assumed to be accepted.

    Of a pair, ``counterpart`` is the second workload, and ``active`` the one that a made-up route sends all requests to
    ("": ``workload``).
    """
    names = named_in(asked)
    live = found.find(kind.resource, workload) or found.find(kind.resource, counterpart)
    namespace = live["metadata"]["namespace"] if live is not None else "default"
    if counterpart:
        names = of_sides(names, workload, workload)
    told = []
    objects = {resource: list(known) for resource, known in found.objects.items()}
    sides = (workload, counterpart) if counterpart else (workload, workload)
    examples = _examples(names, sides, active, _selecting(found, kind, sides, paired=names.is_pair))
    for resource, name in resources_of(names):
        if name and found.find(resource, name) is None:
            head = {"apiVersion": resource.api_version, "kind": resource.kind}
            example = examples.get((resource, name)) or examples[resource, ""]
            made = created(resource, {**head, "metadata": {"name": name}, "spec": example}, namespace)
            objects.setdefault(resource, []).append(made)
            told.append(f"{resource.kind} {name}")
    for ref in names.custom:
        kind_of_ref = found.custom_kind(*ref.custom_kind)
        if kind_of_ref is not None and found.find(kind_of_ref, ref.name) is None:
            head = {"apiVersion": ref.api_version, "kind": ref.kind}
            made = created(kind_of_ref, {**head, "metadata": {"name": ref.name}, "spec": {}}, namespace)
            objects.setdefault(kind_of_ref, []).append(made)
            told.append(str(ref))
    for spec in SPECS:
        known = objects.get(spec.resource, ())
        objects[spec.resource] = [spec.in_use(each) for each in known]
    return replace(found, objects=objects), told


def _examples(
    names: Names, sides: tuple[str, str], active: str, selectors: Mapping[str, Mapping[str, str]]
) -> dict[tuple[Resource, str], Mapping[str, Any]]:
    """The spec of each object that may be made up, by kind and name; "" stands for all others of the kind. ``sides``
    are the workloads whose groups the two versions have, and which ``selectors`` select.
    """
    both = backends(names)
    references = [
        {"name": each.name} | ({"group": each.group, "kind": each.kind} if each.group else {"port": 80})
        for each in (both.stable, both.canary)
    ]
    named = references[:1]
    if names.is_pair:
        weights = (0, 100) if active == sides[1] else (100, 0)
        named = [{**each, "weight": weight} for each, weight in zip(references, weights, strict=True)]
    examples = {(spec.resource, ""): spec.example(names.service, named) for spec in WRITTEN_SPECS}
    for workload, service, pool in zip(
        sides, (names.service, names.canary_service), (names.stable_pool, names.canary_pool), strict=True
    ):
        selector = selectors[workload]
        if service:
            examples[SERVICES, service] = {"selector": selector, "ports": [{"port": 80}]}
        if pool:
            examples[INFERENCE_POOLS, pool] = {"selector": {"matchLabels": selector}}
    return examples


def _selecting(
    found: Snapshot, kind: type[Target], sides: tuple[str, str], *, paired: bool
) -> dict[str, Mapping[str, str]]:
    """A selector for the pods of each workload that take requests. Of a pair single groups have to be selectable, for a
    release that shifts; of one workload those of another one that takes its place.
    """
    selectors: dict[str, Mapping[str, str]] = {}
    by_name, leader = kind.labels.workload, dict([kind.labels.leader] if kind.labels.leader is not None else ())
    for name in sides:
        labels = _template_labels(kind, found.find(kind.resource, name))
        own = {by_name: name} if by_name is not None and (paired or not labels) else {}
        selectors[name] = {**labels, **own, **leader}
    return selectors


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
