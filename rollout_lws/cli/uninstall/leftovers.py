"""What is left of us on objects of others, each with the command that takes it away: pure.

A Rollout that went in order leaves nothing of the kind; see ``removing.tidy`` for labels and copies that do nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rollout_lws.api.resources import Keys
from rollout_lws.cli.releases import typed
from rollout_lws.objects.resources import (
    CONTROLLER_REVISIONS,
    HORIZONTAL_POD_AUTOSCALERS,
    LEADER_WORKER_SETS,
    LEASES,
    PODS,
    SERVICES,
    STATEFUL_SETS,
    Resource,
)
from rollout_lws.objects.workloads import LeaderWorkerSet
from rollout_lws.traffic.registry import ROUTING_KINDS
from rollout_lws.workload.hold import HOLD

Object = dict[str, Any]
#: Kinds that a release writes.
KINDS = (
    LEADER_WORKER_SETS,
    SERVICES,
    *ROUTING_KINDS,
    HORIZONTAL_POD_AUTOSCALERS,
    CONTROLLER_REVISIONS,
    PODS,
    STATEFUL_SETS,
)


def leftovers(objects: Mapping[Resource, Iterable[Object]], own: Keys) -> Iterator[str]:
    """A line for each, in the order of KINDS."""
    for resource in KINDS:
        for each in objects.get(resource, ()):
            yield from _of(resource, each, own)


def _of(resource: Resource, obj: Object, own: Keys) -> Iterator[str]:
    meta = obj["metadata"]
    labels, annotations = meta.get("labels") or {}, meta.get("annotations") or {}
    at = f"{resource} {meta['name']} -n {meta.get('namespace', '')}"
    if own.canary_leader_worker_set in labels:
        yield f"canary of leaderworkerset/{labels[own.canary_leader_worker_set]}: kubectl delete {at}"
        yield from _finalizers(meta, at, own)
        return
    if resource == CONTROLLER_REVISIONS and own.history in labels:
        yield f"stored version of rollout/{labels[own.history]}: kubectl delete {at}"
        return
    for key in _ours(labels, resource, own):
        yield f"label {key}: kubectl label {at} {key}-"
    for key in _ours(annotations, resource, own):
        first = ""
        if key == own.original and resource != LEADER_WORKER_SETS:
            first = ", which says what stood there before: put that back, then"
        yield f"annotation {key}{first}: kubectl annotate {at} {key}-"
    yield from _finalizers(meta, at, own)
    if resource == LEADER_WORKER_SETS and _closed(obj):
        patch = '{"spec":{"rolloutStrategy":{"rollingUpdateConfiguration":{"partition":0}}}}'
        yield f"partition {HOLD}; whatever version waits rolls by this: kubectl patch {at} --type=merge -p '{patch}'"


def still_held(lease: Object) -> str:
    """The line of a Lease that is there after an uninstallation: somebody has made it anew."""
    meta = lease["metadata"]
    holder = (lease.get("spec") or {}).get("holderIdentity")
    first = f", held by {holder}: end that controller, then" if holder else ""
    return f"lease of controllers{first}: kubectl delete {LEASES} {meta['name']} -n {meta['namespace']}"


def handed_down(resource: Resource, obj: Object, own: Keys) -> Object:
    """Merge patch of the metadata of an object of LWS's without copies of our marks; {} where it has none."""
    meta = obj["metadata"]
    copies = {place: _ours(meta.get(place) or {}, resource, own) for place in ("labels", "annotations")}
    return {place: dict.fromkeys(found) for place, found in copies.items() if found}


def _ours(marks: Iterable[str], resource: Resource, own: Keys) -> list[str]:
    """The id of a release is for people to write on an LWS, which hands it down; so it is theirs, but on pods."""
    theirs = own.rollout_id if resource in (LEADER_WORKER_SETS, STATEFUL_SETS, CONTROLLER_REVISIONS) else ""
    return [key for key in marks if own.owns(key) and key != theirs]


def _finalizers(meta: Object, at: str, own: Keys) -> Iterator[str]:
    held = meta.get("finalizers") or ()
    ours = {own.rollout_finalizer, own.batch_release_finalizer, own.canary_finalizer}
    others = [each for each in held if each not in ours]
    if len(others) != len(held):
        patch = json.dumps({"metadata": {"finalizers": others or None}}, separators=(",", ":"))
        yield f"finalizer {', '.join(sorted(ours & set(held)))}: kubectl patch {at} --type=merge -p '{patch}'"


def _closed(lws: Object) -> bool:
    return typed(lws, LeaderWorkerSet).spec.rollout_strategy.rolling_update_configuration.partition >= HOLD
