"""What a namespace would be like once manifests were applied to it, and what runs where no cluster tells."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from rollout_lws.api.resources import Keys, rollouts
from rollout_lws.cli.plan.defaults import filled
from rollout_lws.cli.snapshot import Snapshot
from rollout_lws.objects.resources import (
    HORIZONTAL_POD_AUTOSCALERS,
    INFERENCE_POOLS,
    LEADER_WORKER_SETS,
    LWS_GROUP_INDEX,
    LWS_NAME,
    LWS_REVISION,
    LWS_WORKER_INDEX,
    POD_DISRUPTION_BUDGETS,
    PODS,
    RESOURCE_QUOTAS,
    SERVICES,
    STATEFUL_SETS,
    Resource,
)
from rollout_lws.traffic.registry import ROUTING_KINDS, SPECS, named_in, resources_of
from rollout_lws.traffic.services import backends

Object = dict[str, Any]
#: Kinds of which manifests count; of others nothing is asked.
_KINDS = (
    LEADER_WORKER_SETS,
    SERVICES,
    *ROUTING_KINDS,
    POD_DISRUPTION_BUDGETS,
    HORIZONTAL_POD_AUTOSCALERS,
    RESOURCE_QUOTAS,
)
#: What LWS would call the version that is assumed to run.
ASSUMED = "assumed"


def resource_of(manifest: Object, keys: Keys) -> Resource | None:
    """The kind that a release has to do with, None for any other."""
    known = (rollouts(keys.group), *_KINDS)
    return next((each for each in known if (each.api_version, each.kind) == _named(manifest)), None)


def _named(manifest: Object) -> tuple[str, str]:
    return manifest["apiVersion"], manifest["kind"]


def overlaid(found: Snapshot, manifests: Iterable[Object], namespace: str) -> Snapshot:
    """``found`` once the manifests of ``namespace`` were applied; those without a namespace belong to it."""
    objects = {resource: list(known) for resource, known in found.objects.items()}
    for each in manifests:
        resource = resource_of(each, found.keys)
        if resource is None or (each["metadata"].get("namespace") or namespace) != namespace:
            continue
        kept = objects.setdefault(resource, [])
        name = each["metadata"]["name"]
        live = next((one for one in kept if one["metadata"]["name"] == name), None)
        if live is not None:
            kept.remove(live)
        made = _applied(resource, live, each, namespace)
        if resource is LEADER_WORKER_SETS:
            made = filled(made, found.workload_schema or _schema())
        kept.append(made)
    return replace(found, objects=objects)


def _schema() -> Mapping[str, Any]:
    """Of the LeaderWorkerSet that most clusters have, where none can be asked."""
    from rollout_lws.sandbox import lws_crd

    schema: Mapping[str, Any] = lws_crd.manifest()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return schema


def _applied(resource: Resource, live: Object | None, manifest: Object, namespace: str) -> Object:
    meta = {**manifest["metadata"], "namespace": namespace}
    if live is None:
        uid = f"{resource.kind}-{meta['name']}"
        fresh = {"uid": uid, "generation": 1, "resourceVersion": "0"}
        return {**copy.deepcopy(manifest), "metadata": {**fresh, **meta}}
    before = live["metadata"]
    kept = {kind: {**(before.get(kind) or {}), **(meta.get(kind) or {})} for kind in ("labels", "annotations")}
    spec = copy.deepcopy(manifest.get("spec") or {})
    if resource is LEADER_WORKER_SETS:
        spec = _workload(live["spec"], spec)
    return {**live, "metadata": {**before, **kept}, "spec": spec}


def _workload(live: Object, stated: Object) -> Object:
    """The strategy stays as a Rollout holds it, whatever is stated. Numbers and words that are not stated stay, too:
    an autoscaler may keep them, or a default; templates that are not stated are gone.
    """
    template = stated.get("leaderWorkerTemplate")
    kept = {
        name: value
        for name, value in (live.get("leaderWorkerTemplate") or {}).items()
        if template is None or not isinstance(value, dict | list)
    }
    spec = {**live, **stated, "leaderWorkerTemplate": {**kept, **(template or {})}}
    spec["rolloutStrategy"] = live.get("rolloutStrategy") or stated.get("rolloutStrategy") or {}
    return spec


def states_partition(manifest: Object) -> bool:
    """Whether a manifest of an LWS states the partition by which a Rollout holds it."""
    strategy = (manifest.get("spec") or {}).get("rolloutStrategy") or {}
    return "partition" in (strategy.get("rollingUpdateConfiguration") or {})


def running(found: Snapshot, workload: str) -> Snapshot:
    """``found`` with the LWS ``workload`` running as its manifest says, where nothing of it runs."""
    lws = found.find(LEADER_WORKER_SETS, workload)
    if lws is None or found.find(STATEFUL_SETS, workload) is not None:
        return found
    objects = {resource: list(known) for resource, known in found.objects.items()}
    meta, spec = lws["metadata"], lws["spec"]
    shared = {"namespace": meta["namespace"], "generation": 1}
    marks = {LWS_NAME: workload, LWS_REVISION: ASSUMED}
    owner = {"apiVersion": LEADER_WORKER_SETS.api_version, "kind": LEADER_WORKER_SETS.kind, "name": workload}
    leader_set = {
        "metadata": {
            **shared,
            "name": workload,
            "uid": f"{STATEFUL_SETS.kind}-{workload}",
            "labels": marks,
            "ownerReferences": [{**owner, "uid": meta["uid"], "controller": True}],
        },
        "spec": {"replicas": spec.get("replicas", 1)},
        "status": {"observedGeneration": 1, "currentRevision": ASSUMED, "updateRevision": ASSUMED},
    }
    objects.setdefault(STATEFUL_SETS, []).append(leader_set)
    template = spec["leaderWorkerTemplate"]
    leader = template.get("leaderTemplate") or template.get("workerTemplate") or {}
    labels = (leader.get("metadata") or {}).get("labels") or {}
    for index in range(spec.get("replicas", 1)):
        place = {LWS_GROUP_INDEX: str(index), LWS_WORKER_INDEX: "0"}
        name = f"{workload}-{index}"
        pod = {**shared, "name": name, "uid": f"{PODS.kind}-{name}", "labels": {**labels, **marks, **place}}
        objects.setdefault(PODS, []).append({"metadata": pod})
    workloads = [each for each in objects[LEADER_WORKER_SETS] if each is not lws]
    objects[LEADER_WORKER_SETS] = [*workloads, {**lws, "status": {"observedGeneration": meta.get("generation", 1)}}]
    return replace(found, objects=objects)


def assumed(found: Snapshot, asked: Mapping[str, Any], workload: str) -> tuple[Snapshot, list[str]]:
    """``found`` with what ``asked``, a Rollout's words on traffic, names and no file has, as it would have to be; and
    what that is. Routes that no Gateway could speak of yet are taken for accepted.
    """
    names = named_in(asked)
    lws = found.find(LEADER_WORKER_SETS, workload)
    namespace = lws["metadata"]["namespace"] if lws is not None else "default"
    selector = {LWS_NAME: workload, LWS_WORKER_INDEX: "0"}
    stable = backends(names).stable
    reference = {"name": stable.name} | ({"group": stable.group, "kind": stable.kind} if stable.group else {"port": 80})
    examples = {spec.resource: spec.example(names.service, reference) for spec in SPECS}
    pool: Object = {"selector": {"matchLabels": selector}}
    examples |= {SERVICES: {"selector": selector, "ports": [{"port": 80}]}, INFERENCE_POOLS: pool}
    told = []
    objects = {resource: list(known) for resource, known in found.objects.items()}
    for resource, name in resources_of(names):
        if name and found.find(resource, name) is None:
            head = {"apiVersion": resource.api_version, "kind": resource.kind}
            made = {**head, "metadata": {"name": name}, "spec": examples[resource]}
            objects.setdefault(resource, []).append(_applied(resource, None, made, namespace))
            told.append(f"{resource.kind} {name}")
    for spec in SPECS:
        known = objects.get(spec.resource, ())
        objects[spec.resource] = [spec.in_use(each) for each in known]
    return replace(found, objects=objects), told
