"""How an object goes: preconditions, a pod's grace, and finalizers that keep it until somebody took them off."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rollout_lws.objects.resources import CUSTOM_RESOURCE_DEFINITIONS, NAMESPACES, PODS, Resource
from rollout_lws.sandbox.catalogue import Served
from rollout_lws.sandbox.metadata import timestamp
from rollout_lws.sandbox.refusals import bad_request, conflict

Object = dict[str, Any]

FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"
#: Kinds whose objects go only after what they hold.
HOLDERS = (NAMESPACES, CUSTOM_RESOURCE_DEFINITIONS)
_FINALIZER = {"Background": "", "Foreground": FOREGROUND, "Orphan": ORPHAN}


def check_preconditions(
    resource: Resource, obj: Mapping[str, Any], uid: str | None, resource_version: str | None
) -> None:
    """ApiError 409 when the object is not, or is no longer, the one that was meant."""
    meta = obj["metadata"]
    if uid is not None and uid != meta["uid"]:
        why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {meta['uid']}"
        raise conflict(resource, meta["name"], why)
    if resource_version is not None and resource_version != meta["resourceVersion"]:
        why = (
            f"Precondition failed: ResourceVersion in precondition: {resource_version}, "
            f"ResourceVersion in object meta: {meta['resourceVersion']}"
        )
        raise conflict(resource, meta["name"], why)


def mark(served: Served, obj: Object, propagation: str, grace_seconds: int | None, now: float) -> Object | None:
    """What a delete leaves of ``obj``: None when it is gone at once, ``obj`` itself when nothing changes.

    ``grace_seconds`` None is the pod's own grace; kinds other than pods have none.
    """
    if propagation not in _FINALIZER:
        raise bad_request(f'unknown propagation policy "{propagation}": use Background, Foreground or Orphan')
    meta = obj["metadata"]
    finalizers = [entry for entry in meta.get("finalizers") or () if entry not in (FOREGROUND, ORPHAN)]
    if "deletionTimestamp" in meta:
        finalizers = list(meta.get("finalizers") or ())
    elif _FINALIZER[propagation] and served.resource not in HOLDERS:
        finalizers.append(_FINALIZER[propagation])
    grace = _grace(obj, grace_seconds) if served.resource == PODS else 0
    if grace == 0 and not finalizers and served.resource not in HOLDERS:
        return None
    if "deletionTimestamp" in meta and grace >= meta.get("deletionGracePeriodSeconds", 0):
        return obj
    marked = {**meta, "deletionTimestamp": timestamp(now + grace), "deletionGracePeriodSeconds": grace}
    if "generation" in meta and "deletionTimestamp" not in meta:
        marked["generation"] = meta["generation"] + 1
    if finalizers:
        marked["finalizers"] = finalizers
    else:
        marked.pop("finalizers", None)
    return {**obj, "metadata": marked}


def finished(obj: Mapping[str, Any], resource: Resource) -> bool:
    """Whether nothing keeps an object that is being deleted; a pod waits for its kubelet as long as it has grace."""
    meta = obj["metadata"]
    if meta.get("finalizers") or resource in HOLDERS:
        return False
    return not meta.get("deletionGracePeriodSeconds")


def _grace(pod: Mapping[str, Any], asked: int | None) -> int:
    """Seconds; a pod that never ran, or has ended, has nothing to wind down."""
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    if not spec.get("nodeName") or status.get("phase") in ("Succeeded", "Failed"):
        return 0
    return int(spec.get("terminationGracePeriodSeconds", 30) if asked is None else max(asked, 0))
