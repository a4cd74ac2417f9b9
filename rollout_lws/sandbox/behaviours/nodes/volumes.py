"""The volume controller: binds every PersistentVolumeClaim at once, like a StorageClass with immediate provisioning.

The sandbox has no disks and stores nothing; pods do not wait for their claims.
"""

from __future__ import annotations

from collections.abc import Iterable

from rollout_lws.objects.resources import PERSISTENT_VOLUME_CLAIMS
from rollout_lws.objects.writes import Patch
from rollout_lws.sandbox.behaviours.base import NOTHING, Change, Key, Outcome, View, key_of, terminating


class VolumeBinder:
    """Reconciles PersistentVolumeClaims."""

    name = "volume binder"

    def wakes(self, change: Change, view: View) -> Iterable[Key]:  # noqa: ARG002 (the change is enough)
        return (key_of(change.object),) if change.resource == PERSISTENT_VOLUME_CLAIMS and not change.deleted else ()

    def decide(self, key: Key, view: View, now: float) -> Outcome:  # noqa: ARG002 (nothing takes time)
        claim = view.get(PERSISTENT_VOLUME_CLAIMS, *key)
        if claim is None or terminating(claim) or (claim.get("status") or {}).get("phase") == "Bound":
            return NOTHING
        namespace, name = key_of(claim)
        spec = claim["spec"]
        writes = []
        if not spec.get("volumeName"):
            volume = {"spec": {"volumeName": f"pvc-{claim['metadata']['uid']}"}}
            writes.append(Patch(PERSISTENT_VOLUME_CLAIMS, namespace, name, volume, "a volume was provisioned"))
        capacity = (spec.get("resources") or {}).get("requests") or {}
        status = {"phase": "Bound", "accessModes": spec.get("accessModes") or [], "capacity": capacity}
        bound = Patch(PERSISTENT_VOLUME_CLAIMS, namespace, name, {"status": status}, "bound", subresource="status")
        return Outcome((*writes, bound))
