"""An indexed View that is updated with each change, so that no decision scans the whole cluster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias, TypeVar

from rollout_lws.objects.resources import Resource
from rollout_lws.sandbox.behaviours.base import Change, Object, labels_of

_Name: TypeAlias = tuple[str, str]
_Label: TypeAlias = tuple[Resource, str, str, str]
_Outer = TypeVar("_Outer")
_Inner = TypeVar("_Inner")


class Index:
    """Objects by name, uid, owner and label."""

    def __init__(self) -> None:
        self._objects: dict[tuple[Resource, str], dict[str, Object]] = {}
        self._uids: dict[str, tuple[Resource, _Name]] = {}
        self._owned: dict[str, dict[tuple[Resource, _Name], None]] = {}
        self._labelled: dict[_Label, dict[_Name, None]] = {}

    def apply(self, change: Change) -> None:
        metadata = change.object["metadata"]
        name = (metadata.get("namespace", ""), metadata["name"])
        objects = self._objects.setdefault((change.resource, name[0]), {})
        before = objects.pop(name[1], None) if change.deleted else objects.get(name[1])
        if change.deleted:
            if before is not None:
                self._uids.pop(before["metadata"]["uid"], None)
                self._relate(change.resource, name, before, None)
            return
        objects[name[1]] = change.object
        self._uids[metadata["uid"]] = (change.resource, name)
        self._relate(change.resource, name, before, change.object)

    def _relate(self, resource: Resource, name: _Name, before: Object | None, after: Object | None) -> None:
        old_owners = before["metadata"].get("ownerReferences") if before else None
        new_owners = after["metadata"].get("ownerReferences") if after else None
        if old_owners != new_owners:
            for owner in old_owners or ():
                _discard(self._owned, owner["uid"], (resource, name))
            for owner in new_owners or ():
                self._owned.setdefault(owner["uid"], {})[(resource, name)] = None
        old_labels = labels_of(before) if before else {}
        new_labels = labels_of(after) if after else {}
        if old_labels != new_labels:
            for key, value in old_labels.items():
                _discard(self._labelled, (resource, name[0], key, value), name)
            for key, value in new_labels.items():
                self._labelled.setdefault((resource, name[0], key, value), {})[name] = None

    def get(self, resource: Resource, namespace: str, name: str) -> Object | None:
        return self._objects.get((resource, namespace), {}).get(name)

    def owned(self, uid: str, resource: Resource) -> list[Object]:
        return [self._at(kind, name) for kind, name in self._owned.get(uid, ()) if kind == resource]

    def dependants(self, uid: str) -> list[tuple[Resource, Object]]:
        return [(kind, self._at(kind, name)) for kind, name in self._owned.get(uid, ())]

    def select(self, resource: Resource, namespace: str, labels: Mapping[str, str]) -> list[Object]:
        candidates = [self._labelled.get((resource, namespace, key, value), {}) for key, value in labels.items()]
        smallest = min(candidates, key=len)
        return [self._at(resource, name) for name in smallest if all(name in found for found in candidates)]

    def list(self, resource: Resource, namespace: str = "") -> list[Object]:
        return list(self._objects.get((resource, namespace), {}).values())

    def find(self, uid: str) -> tuple[Resource, Object] | None:
        place = self._uids.get(uid)
        return None if place is None else (place[0], self._at(*place))

    def _at(self, resource: Resource, name: _Name) -> Object:
        return self._objects[resource, name[0]][name[1]]


def _discard(index: dict[_Outer, dict[_Inner, None]], key: _Outer, value: _Inner) -> None:
    values = index.get(key)
    if values is not None:
        values.pop(value, None)
        if not values:
            del index[key]
