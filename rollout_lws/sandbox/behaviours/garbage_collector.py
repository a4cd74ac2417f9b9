"""The garbage collector: deletes objects without living owners and carries out foreground and orphan deletion.

Its view must contain every kind: an owner that it cannot see counts as deleted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rollout_lws.objects.resources import Resource
from rollout_lws.objects.writes import Delete, Patch
from rollout_lws.sandbox.admission.deletion import FOREGROUND, ORPHAN
from rollout_lws.sandbox.behaviours.base import NOTHING, Change, Key, Object, Outcome, View, key_of, terminating


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
        metadata, dependants = obj["metadata"], view.dependants(key[0])
        finalizers = metadata.get("finalizers") or ()
        if terminating(obj):
            if ORPHAN in finalizers:
                released = [_without_owners(*item, {metadata["uid"]}) for item in dependants]
                return Outcome((*released, _without_finalizer(resource, obj, ORPHAN)))
            # The deletionTimestamp has already triggered the dependants.
            if FOREGROUND in finalizers and not any(_blocks(item, key[0]) for _, item in dependants):
                return Outcome((_without_finalizer(resource, obj, FOREGROUND),))
            return NOTHING
        uids = [reference["uid"] for reference in metadata.get("ownerReferences") or ()]
        owners = {uid: owner[1] for uid in uids if (owner := view.find(uid)) is not None}
        leaving = {uid for uid, owner in owners.items() if _deletes_in_foreground(owner)}
        lost = set(uids) - owners.keys()
        if len(leaving) < len(owners):
            return Outcome((_without_owners(resource, obj, lost | leaving),)) if lost | leaving else NOTHING
        if not lost and not any(_blocks(obj, uid) for uid in leaving):
            return NOTHING  # background deletion once the owner is gone
        propagation = "Foreground" if leaving and dependants else _propagation(finalizers)
        why = "its owners are gone or going"
        return Outcome((Delete(resource, *key_of(obj), metadata["uid"], why, propagation=propagation),))


def _deletes_in_foreground(owner: Object) -> bool:
    return terminating(owner) and FOREGROUND in (owner["metadata"].get("finalizers") or ())


def _blocks(obj: Object, owner: str) -> bool:
    references = obj["metadata"].get("ownerReferences") or ()
    return any(reference["uid"] == owner and reference.get("blockOwnerDeletion") for reference in references)


def _propagation(finalizers: Iterable[str]) -> str:
    present = set(finalizers)
    return "Orphan" if ORPHAN in present else "Foreground" if FOREGROUND in present else "Background"


def _without_finalizer(resource: Resource, obj: Object, finalizer: str) -> Patch:
    kept = [entry for entry in obj["metadata"]["finalizers"] if entry != finalizer]
    return _patch(resource, obj, {"finalizers": kept}, f"{finalizer} is done")


def _without_owners(resource: Resource, obj: Object, gone: set[str]) -> Patch:
    kept = [dict(entry) for entry in obj["metadata"].get("ownerReferences") or () if entry["uid"] not in gone]
    return _patch(resource, obj, {"ownerReferences": kept}, "no longer owned")


def _patch(resource: Resource, obj: Object, metadata: Mapping[str, Any], reason: str) -> Patch:
    version = obj["metadata"].get("resourceVersion")
    return Patch(resource, *key_of(obj), {"metadata": metadata}, reason, version)
