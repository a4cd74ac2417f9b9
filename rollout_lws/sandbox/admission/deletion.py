"""Deletion of objects: preconditions, a pod's grace period, and finalizers."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from rollout_lws.objects.resources import CUSTOM_RESOURCE_DEFINITIONS, NAMESPACES, PODS, Resource
from rollout_lws.sandbox.admission.metadata import timestamp
from rollout_lws.sandbox.api_resources import Served
from rollout_lws.sandbox.wire.api_errors import invalid_options, not_meant

Object = dict[str, Any]

FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"
#: Kinds whose objects stay until their contents are deleted.
HOLDERS = (NAMESPACES, CUSTOM_RESOURCE_DEFINITIONS)
_FINALIZER = {"Background": "", "Foreground": FOREGROUND, "Orphan": ORPHAN}


def check_preconditions(
    resource: Resource, obj: Mapping[str, Any], uid: str | None, resource_version: str | None
) -> None:
    """ApiError 409 when the uid or resourceVersion differs from the precondition."""
    meta = obj["metadata"]
    if uid is not None and uid != meta["uid"]:
        why = f"the UID in the precondition ({uid}) does not match the UID in record ({meta['uid']})"
        text = f"{why}. The object might have been deleted and then recreated"
        raise not_meant(resource, meta["name"], text)
    if resource_version is not None and resource_version != meta["resourceVersion"]:
        why = (
            f"the ResourceVersion in the precondition ({resource_version}) does not match the ResourceVersion in "
            f"record ({meta['resourceVersion']}). The object might have been modified"
        )
        raise not_meant(resource, meta["name"], why)


def mark(served: Served, obj: Object, propagation: str, grace_seconds: int | None, now: float) -> Object | None:
    """The object after a delete: None if it is removed at once, ``obj`` itself if nothing changes.

    With an empty ``propagation`` existing finalizers decide about the dependants. ``grace_seconds`` None means the
    pod's own grace period; other kinds have none. A running grace period can only be shortened.
    """
    if propagation and propagation not in _FINALIZER:
        supported = '"Foreground", "Background", "Orphan", "nil"'
        why = f'propagationPolicy: Unsupported value: "{propagation}": supported values: {supported}'
        raise invalid_options("DeleteOptions", why)
    meta = obj["metadata"]
    grace = _grace(obj, grace_seconds) if served.resource == PODS else 0
    running = meta.get("deletionGracePeriodSeconds", 0)
    if running and grace >= running:
        return obj
    finalizers = list(meta.get("finalizers") or ())
    if propagation and served.resource not in HOLDERS:
        kept = [entry for entry in finalizers if entry not in (FOREGROUND, ORPHAN)]
        finalizers = [*kept, *filter(None, [_FINALIZER[propagation]])]
    if grace == 0 and not finalizers and served.resource not in HOLDERS:
        return None
    marked = {**meta, "deletionGracePeriodSeconds": grace, "finalizers": finalizers}
    if "deletionTimestamp" in meta:
        asked = datetime.fromisoformat(meta["deletionTimestamp"]).timestamp() - running
    else:
        asked = now
        if "generation" in meta:
            marked["generation"] = meta["generation"] + 1
    marked["deletionTimestamp"] = timestamp(asked + grace)
    if not finalizers:
        del marked["finalizers"]
    return obj if marked == meta else {**obj, "metadata": marked}


def last(obj: Object) -> Object:
    """``obj`` as the DELETED event shows it: with a grace period of 0."""
    if "deletionGracePeriodSeconds" not in obj["metadata"]:
        return obj
    return {**obj, "metadata": {**obj["metadata"], "deletionGracePeriodSeconds": 0}}


def finished(obj: Mapping[str, Any], resource: Resource) -> bool:
    """Whether an object that is being deleted can be removed; a pod with grace left waits for its kubelet."""
    meta = obj["metadata"]
    if meta.get("finalizers") or resource in HOLDERS:
        return False
    return not meta.get("deletionGracePeriodSeconds")


def _grace(pod: Mapping[str, Any], asked: int | None) -> int:
    """The grace period in seconds; 0 for a pod that never ran or has terminated."""
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    if not spec.get("nodeName") or status.get("phase") in ("Succeeded", "Failed"):
        return 0
    return int(spec.get("terminationGracePeriodSeconds", 30) if asked is None else max(asked, 0))
