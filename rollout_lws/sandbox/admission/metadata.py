"""Server-owned metadata: the fields that the API server sets and clients cannot change."""

from __future__ import annotations

import random
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from rollout_lws.objects.resources import Resource
from rollout_lws.sandbox.wire.api_errors import bad_request, conflict, invalid

Object = dict[str, Any]

_SUFFIX = "bcdfghjklmnpqrstvwxz2456789"
_SHAPE: dict[str, type] = {
    **dict.fromkeys(("name", "generateName", "namespace", "uid", "resourceVersion"), str),
    **dict.fromkeys(("labels", "annotations"), Mapping),
    **dict.fromkeys(("finalizers", "ownerReferences", "managedFields"), list),
}
_RECORD = {"manager", "operation", "apiVersion", "time", "fieldsV1"}
_SET_BY_SERVER = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation")


def timestamp(epoch: float) -> str:
    """Epoch seconds as metav1.Time: UTC, whole seconds."""
    return _written(int(epoch))


@lru_cache(maxsize=16)
def _written(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class Names:
    """Generates names and uids from one random source, so that a seed makes a run repeatable."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance

    def uid(self) -> str:
        return str(uuid.UUID(int=self._chance.getrandbits(128), version=4))

    def generated(self, prefix: str) -> str:
        """A name from generateName: at most 63 characters, five of them random."""
        return prefix[:58] + "".join(self._chance.choices(_SUFFIX, k=5))


def require_shape(body: Mapping[str, Any]) -> None:
    """ApiError 400 for metadata with types that no typed client can send."""
    given = body.get("metadata") or {}
    if not isinstance(given, Mapping):
        raise bad_request("metadata is not an object")
    for key, kind in _SHAPE.items():
        if given.get(key) is not None and not isinstance(given[key], kind):
            raise bad_request(f"metadata.{key} cannot be {given[key]!r}")


def tidy(metadata: Mapping[str, Any]) -> Object:
    """metadata without empty members, as the server stores it."""
    return {key: value for key, value in metadata.items() if value not in (None, "", {}, [])}


def born(metadata: Mapping[str, Any], *, uid: str, created: str, generation: bool) -> Object:
    """metadata of a new object, with the server-owned fields set."""
    fresh = {key: value for key, value in tidy(metadata).items() if key not in _SET_BY_SERVER}
    fresh.pop("resourceVersion", None)
    fresh.pop("selfLink", None)
    fresh |= {"uid": uid, "creationTimestamp": created}
    if generation:
        fresh["generation"] = 1
    return fresh


def carried(resource: Resource, given: Mapping[str, Any], old: Mapping[str, Any]) -> Object:
    """metadata of an update: the client's, with the server-owned fields unchanged.

    Raises 409 for another uid, and 422 for new finalizers on an object that is being deleted.
    """
    name = old["name"]
    uid = given.get("uid")
    if uid and uid != old["uid"]:
        raise conflict(
            resource, name, f"Precondition failed: UID in precondition: {uid}, UID in object meta: {old['uid']}"
        )
    if given.get("name", name) != name:
        raise bad_request(f"the name of the object ({given['name']}) does not match the name on the URL ({name})")
    carried_over = tidy(given)
    for key in _SET_BY_SERVER:
        if key in old:
            carried_over[key] = old[key]
        else:
            carried_over.pop(key, None)
    if "managedFields" in old:
        carried_over.setdefault("managedFields", old["managedFields"])
    # Invalid records, above all an empty one, reset managedFields.
    if not all(isinstance(each, Mapping) and each.keys() >= _RECORD for each in carried_over.get("managedFields", ())):
        del carried_over["managedFields"]
    if "namespace" in old:
        carried_over["namespace"] = old["namespace"]
    carried_over |= {"name": name, "resourceVersion": old["resourceVersion"]}
    if "deletionTimestamp" in old:
        added = [entry for entry in given.get("finalizers") or () if entry not in (old.get("finalizers") or ())]
        if added:
            listed = ", ".join(f'"{entry}"' for entry in sorted(added))
            why = "no new finalizers can be added if the object is being deleted, found new finalizers"
            raise invalid(resource, name, [f"metadata.finalizers: Forbidden: {why} []string{{{listed}}}"])
    return carried_over
