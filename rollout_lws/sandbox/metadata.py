"""What the API server itself writes into metadata, and what it lets nobody change."""

from __future__ import annotations

import random
import re
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from rollout_lws.objects.resources import SERVICES, Resource
from rollout_lws.sandbox.refusals import bad_request, conflict, forbidden

Object = dict[str, Any]

_SUFFIX = "bcdfghjklmnpqrstvwxz2456789"
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LABEL_1035 = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_LABEL_VALUE = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")
_SHAPE: dict[str, type] = {
    **dict.fromkeys(("name", "generateName", "namespace", "uid", "resourceVersion"), str),
    **dict.fromkeys(("labels", "annotations"), Mapping),
    **dict.fromkeys(("finalizers", "ownerReferences"), list),
}
_OWNER = ("apiVersion", "kind", "name", "uid")
_SET_BY_SERVER = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation")

_SUBDOMAIN_TEXT = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_LABEL_1035_TEXT = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
    "'[a-z]([-a-z0-9]*[a-z0-9])?')"
)
_LABEL_VALUE_TEXT = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)


def timestamp(epoch: float) -> str:
    """Epoch seconds as metav1.Time: UTC, whole seconds."""
    return datetime.fromtimestamp(int(epoch), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class Names:
    """Names and uids from one source of chance, so that a seed makes a whole run repeatable."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance

    def uid(self) -> str:
        return str(uuid.UUID(int=self._chance.getrandbits(128), version=4))

    def generated(self, prefix: str) -> str:
        """A generateName: at most 63 characters, five of them random."""
        return prefix[:58] + "".join(self._chance.choices(_SUFFIX, k=5))


def require_shape(body: Mapping[str, Any]) -> None:
    """ApiError 400 for metadata of types that no typed client could send."""
    given = body.get("metadata") or {}
    if not isinstance(given, Mapping):
        raise bad_request("metadata is not an object")
    for key, kind in _SHAPE.items():
        if given.get(key) is not None and not isinstance(given[key], kind):
            raise bad_request(f"metadata.{key} cannot be {given[key]!r}")


def violations(resource: Resource, metadata: Mapping[str, Any]) -> list[str]:
    """What kube-apiserver would refuse in name, labels, annotations and owners."""
    found: list[str] = []
    name = metadata.get("name", "")
    pattern, limit, text = _SUBDOMAIN, 253, _SUBDOMAIN_TEXT
    if resource == SERVICES:
        pattern, limit, text = _LABEL_1035, 63, _LABEL_1035_TEXT
    if len(name) > limit:
        found.append(f'metadata.name: Invalid value: "{name}": must be no more than {limit} characters')
    elif not pattern.fullmatch(name):
        found.append(f'metadata.name: Invalid value: "{name}": {text}')
    for key, value in (metadata.get("labels") or {}).items():
        if not isinstance(value, str):
            raise bad_request(f'metadata.labels["{key}"] must be a string, not {value!r}: put it in quotes')
        if len(value) > 63:
            found.append(f'metadata.labels: Invalid value: "{value}": must be no more than 63 characters')
        elif not _LABEL_VALUE.fullmatch(value):
            found.append(f'metadata.labels: Invalid value: "{value}": {_LABEL_VALUE_TEXT}')
    for key, value in (metadata.get("annotations") or {}).items():
        if not isinstance(value, str):
            raise bad_request(f'metadata.annotations["{key}"] must be a string, not {value!r}: put it in quotes')
    for owner in metadata.get("ownerReferences") or ():
        empty = [key for key in _OWNER if not isinstance(owner, Mapping) or not owner.get(key)]
        found += [f'metadata.ownerReferences.{key}: Invalid value: "": {key} must not be empty' for key in empty]
    return found


def tidy(metadata: Mapping[str, Any]) -> Object:
    """metadata without empty members, as the server stores it."""
    return {key: value for key, value in metadata.items() if value not in (None, "", {}, [])}


def born(metadata: Mapping[str, Any], *, uid: str, created: str, generation: bool) -> Object:
    """metadata of a new object: what only the server may set is set by it."""
    fresh = {key: value for key, value in tidy(metadata).items() if key not in _SET_BY_SERVER}
    fresh.pop("resourceVersion", None)
    fresh.pop("selfLink", None)
    fresh |= {"uid": uid, "creationTimestamp": created}
    if generation:
        fresh["generation"] = 1
    return fresh


def carried(resource: Resource, given: Mapping[str, Any], old: Mapping[str, Any]) -> Object:
    """metadata of an update: the client's, with the server's own fields as they were.

    Raises 409 for another uid, and 403 for new finalizers on an object that is being deleted.
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
    if "namespace" in old:
        carried_over["namespace"] = old["namespace"]
    carried_over |= {"name": name, "resourceVersion": old["resourceVersion"]}
    if "deletionTimestamp" in old:
        added = [entry for entry in given.get("finalizers") or () if entry not in (old.get("finalizers") or ())]
        if added:
            raise forbidden(
                resource, name, f"no new finalizers can be added if the object is being deleted, found new: {added}"
            )
    return carried_over
