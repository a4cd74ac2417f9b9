"""The garbage collector: deletes objects without living owners and carries out foreground and orphan deletion.

Its view must contain every kind: an owner that it cannot see counts as deleted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from rollout_lws.objects.resources import Resource
from rollout_lws.objects.writes import Delete, Patch, Write
from rollout_lws.sandbox.admission.deletion import FOREGROUND, ORPHAN
from rollout_lws.sandbox.behaviours.base import NOTHING, Change, Key, Object, Outcome, View, terminating


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One object, its existing owners by uid, and its dependants."""

    resource: Resource
    object: Object
    owners: Mapping[str, Object]
    dependants: tuple[tuple[Resource, Object], ...]


class GarbageCollector:
    """Reconciles objects by uid; triggered by their deletion and by changes of their owners and dependants."""

    name = "garbage-collector"

    def wakes(self, change: Change, view: View) -> Iterable[Key]:
        metadata = change.object["metadata"]
        owners = metadata.get("ownerReferences") or ()
        if change.deleted:
            waiting = [(owner["uid"],) for owner in owners]
            return [*((item["metadata"]["uid"],) for _, item in view.dependants(metadata["uid"])), *waiting]
        if change.previous is None:
            return ((metadata["uid"],),) if owners else ()
        before = change.previous["metadata"]
        if owners and owners != before.get("ownerReferences"):
            return ((metadata["uid"],), *((owner["uid"],) for owner in before.get("ownerReferences") or ()))
        if metadata.get("finalizers") and terminating(change.object):
            return ((metadata["uid"],), *((item["metadata"]["uid"],) for _, item in view.dependants(metadata["uid"])))
        return ()

    def decide(self, key: Key, view: View, now: float) -> Outcome:  # noqa: ARG002 (it does not depend on time)
        found = view.find(key[0])
        if found is None:
            return NOTHING
        resource, obj = found
        owners: dict[str, Object] = {}
        for reference in obj["metadata"].get("ownerReferences") or ():
            owner = view.find(reference["uid"])
            if owner is not None:
                owners[reference["uid"]] = owner[1]
        return decide(Snapshot(resource, obj, owners, tuple(view.dependants(key[0]))))


def decide(seen: Snapshot) -> Outcome:
    metadata = seen.object["metadata"]
    finalizers = metadata.get("finalizers") or ()
    if terminating(seen.object):
        if ORPHAN in finalizers:
            released = [_without_owners(*item, {metadata["uid"]}) for item in seen.dependants]
            return Outcome((*released, _without_finalizer(seen, ORPHAN)))
        if FOREGROUND in finalizers:
            return Outcome(_foreground(seen))
        return NOTHING
    references = metadata.get("ownerReferences") or ()
    if not references:
        return NOTHING
    solid = [owner for owner in seen.owners.values() if not _deletes_in_foreground(owner)]
    lost = {reference["uid"] for reference in references if reference["uid"] not in seen.owners}
    leaving = {uid for uid, owner in seen.owners.items() if _deletes_in_foreground(owner)}
    if solid:
        return Outcome((_without_owners(seen.resource, seen.object, lost | leaving),)) if lost | leaving else NOTHING
    if not lost and not any(_blocks(seen.object, uid) for uid in leaving):
        return NOTHING  # background deletion once the owner is gone
    return Outcome((_delete(seen, "Foreground" if leaving and seen.dependants else _propagation(finalizers)),))


def _foreground(seen: Snapshot) -> tuple[Write, ...]:
    """Remove the finalizer once no dependant blocks it; the deletionTimestamp has already triggered the dependants."""
    uid = seen.object["metadata"]["uid"]
    if any(_blocks(item, uid) for _, item in seen.dependants):
        return ()
    return (_without_finalizer(seen, FOREGROUND),)


def _deletes_in_foreground(owner: Object) -> bool:
    return terminating(owner) and FOREGROUND in (owner["metadata"].get("finalizers") or ())


def _blocks(obj: Object, owner: str) -> bool:
    references = obj["metadata"].get("ownerReferences") or ()
    return any(reference["uid"] == owner and reference.get("blockOwnerDeletion") for reference in references)


def _propagation(finalizers: Iterable[str]) -> str:
    present = set(finalizers)
    return "Orphan" if ORPHAN in present else "Foreground" if FOREGROUND in present else "Background"


def _delete(seen: Snapshot, propagation: str) -> Delete:
    metadata = seen.object["metadata"]
    return Delete(
        seen.resource,
        metadata.get("namespace", ""),
        metadata["name"],
        metadata["uid"],
        "its owners are gone or going",
        propagation=propagation,
    )


def _without_finalizer(seen: Snapshot, finalizer: str) -> Patch:
    kept = [entry for entry in seen.object["metadata"]["finalizers"] if entry != finalizer]
    return _patch(seen.resource, seen.object, {"finalizers": kept}, f"{finalizer} is done")


def _without_owners(resource: Resource, obj: Object, gone: set[str]) -> Patch:
    kept = [dict(entry) for entry in obj["metadata"].get("ownerReferences") or () if entry["uid"] not in gone]
    return _patch(resource, obj, {"ownerReferences": kept}, "no longer owned")


def _patch(resource: Resource, obj: Object, metadata: Mapping[str, Any], reason: str) -> Patch:
    own = obj["metadata"]
    version = own.get("resourceVersion")
    return Patch(resource, own.get("namespace", ""), own["name"], {"metadata": metadata}, reason, version)
