"""A namespace as it would be after manifests are applied to it."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import msgspec

from rollout_lws.api.resources import Keys, rollouts
from rollout_lws.cli.lint.manifests import SCALED_OBJECTS
from rollout_lws.cli.plan.merging import merged
from rollout_lws.cli.rollouts import style
from rollout_lws.objects.released import RELEASED
from rollout_lws.objects.resources import (
    HORIZONTAL_POD_AUTOSCALERS,
    LEADER_WORKER_SETS,
    POD_DISRUPTION_BUDGETS,
    RESOURCE_QUOTAS,
    SERVICES,
    Resource,
)
from rollout_lws.observe.assume import autoscaler, created
from rollout_lws.observe.snapshot import Object, Snapshot
from rollout_lws.sandbox.admission import defaults
from rollout_lws.sandbox.schemas.schema import Schema
from rollout_lws.targets.table import TARGETS
from rollout_lws.targets.target import Target
from rollout_lws.traffic.registry import ROUTING_KINDS, named_in
from rollout_lws.workload.applied import LAST_APPLIED

#: Kinds whose manifests matter; others are ignored.
_KINDS = (
    *RELEASED,
    SERVICES,
    *ROUTING_KINDS,
    POD_DISRUPTION_BUDGETS,
    HORIZONTAL_POD_AUTOSCALERS,
    RESOURCE_QUOTAS,
)


def resource_of(manifest: Object, keys: Keys) -> Resource | None:
    """The manifest's kind if it concerns releases, else None."""
    known = (rollouts(keys.group), *_KINDS)
    return next((each for each in known if (each.api_version, each.kind) == _named(manifest)), None)


def _custom_kinds(found: Snapshot, manifests: Iterable[Object]) -> Mapping[tuple[str, str], Resource]:
    """The kinds of objects that scripts change, as far as the cluster serves them, by apiVersion and kind."""
    releasing = rollouts(found.keys.group)
    every = (*found.plain(releasing), *(each for each in manifests if _named(each) == _name_of(releasing)))
    routings = (routing for each in every for routing in (style(each).get("trafficRoutings") or ())[:1])
    kinds = {ref.custom_kind for each in routings for ref in named_in(each).custom}
    known = {kind: found.custom_kind(*kind) for kind in kinds}
    return {kind: resource for kind, resource in known.items() if resource is not None}


def _name_of(resource: Resource) -> tuple[str, str]:
    return resource.api_version, resource.kind


def _named(manifest: Object) -> tuple[str, str]:
    return manifest["apiVersion"], manifest["kind"]


def overlaid(found: Snapshot, manifests: Iterable[Object], namespace: str) -> Snapshot:
    """``found`` after applying the manifests of ``namespace``, including those without a namespace. A ScaledObject is
    there as the autoscaler that KEDA creates from it.
    """
    objects = {resource: list(known) for resource, known in found.objects.items()}
    given = tuple(manifests)
    custom = _custom_kinds(found, given)
    for manifest in given:
        is_scaled = _named(manifest) == (SCALED_OBJECTS.api_version, SCALED_OBJECTS.kind)
        each = autoscaler(manifest) if is_scaled else manifest
        resource = resource_of(each, found.keys) or custom.get(_named(each))
        if resource is None or (each["metadata"].get("namespace") or namespace) != namespace:
            continue
        kept = objects.setdefault(resource, [])
        name = each["metadata"]["name"]
        live = next((one for one in kept if one["metadata"]["name"] == name), None)
        if live is not None:
            kept.remove(live)
        made = created(resource, each, namespace) if live is None else _applied(resource, live, each)
        if resource in RELEASED:
            made = _defaulted(found, resource, _with_copy(made, each))
        kept.append(made)
    return replace(found, objects=objects)


def _defaulted(found: Snapshot, resource: Resource, workload: Object) -> Object:
    """With what an API server fills in."""
    if resource == LEADER_WORKER_SETS:
        made: Object = Schema(found.workload_schema or _schema()).prepared(workload, None)
        return made
    return defaults.fill(resource, workload)


def _schema() -> Mapping[str, Any]:
    """Schema of the most common LeaderWorkerSet version, for use without a cluster."""
    from rollout_lws.sandbox.definitions import lws_crd

    schema: Mapping[str, Any] = lws_crd.manifest()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return schema


def _with_copy(made: Object, manifest: Object) -> Object:
    """With kubectl's copy of a manifest that states replicas, which sets them again each time that it is applied."""
    if (manifest.get("spec") or {}).get("replicas") is None:
        return made
    meta = made["metadata"]
    copied = {LAST_APPLIED: msgspec.json.encode(manifest).decode()}
    return {**made, "metadata": {**meta, "annotations": {**(meta.get("annotations") or {}), **copied}}}


def _applied(resource: Resource, live: Object, manifest: Object) -> Object:
    meta = manifest["metadata"]
    before = live["metadata"]
    kept = {kind: {**(before.get(kind) or {}), **(meta.get(kind) or {})} for kind in ("labels", "annotations")}
    spec = copy.deepcopy(manifest.get("spec") or {})
    kind = next((each for each in TARGETS if each.resource == resource), None)
    if kind is not None:
        spec = _workload(kind, live["spec"], spec)
    return {**live, "metadata": {**before, **kept}, "spec": spec}


def _workload(kind: type[Target], live: Object, stated: Object) -> Object:
    """The Rollout's hold overrides the stated strategy. Unstated scalars keep their live values, which an autoscaler or
    a default may have set; unstated templates are removed.
    """
    spec, holder = {**live, **stated}, kind.format.holder
    if holder:
        template = stated.get(holder)
        kept = {
            name: value
            for name, value in (live.get(holder) or {}).items()
            if template is None or not isinstance(value, dict | list)
        }
        spec[holder] = {**kept, **(template or {})}
    else:
        # The API server fills in more of a template that is a built-in type's.
        for _, (member,) in kind.format.paths:
            spec[member] = merged(stated.get(member, live.get(member)), live.get(member))
    _, strategy, _ = kind.strategy_path
    spec[strategy] = live.get(strategy) or stated.get(strategy) or {}
    return spec


def states_partition(kind: type[Target], manifest: Object) -> bool:
    """Whether a workload's manifest sets the partition, which the Rollout uses for its hold."""
    found: Any = manifest
    for member in kind.strategy_path:
        found = (found or {}).get(member)
    return "partition" in (found or {})
