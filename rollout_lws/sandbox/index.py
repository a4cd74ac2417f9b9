"""Objects by name, uid, owner and label, so that no lookup scans the whole cluster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias, TypeVar

from rollout_lws.objects.resources import Resource

Object: TypeAlias = dict[str, Any]
Key: TypeAlias = tuple[Resource, str, str]

_Label: TypeAlias = tuple[Resource, str, str, str]
_Outer = TypeVar("_Outer")
_Inner = TypeVar("_Inner")


def key_of(resource: Resource, obj: Mapping[str, Any]) -> Key:
    metadata = obj["metadata"]
    return resource, metadata.get("namespace", ""), metadata["name"]


class Index:
    """All lists are in the order in which their entries were added."""

    def __init__(self) -> None:
        self._objects: dict[Resource, dict[str, dict[str, Object]]] = {}
        self._uids: dict[str, Key] = {}
        self._owned: dict[str, dict[Key, None]] = {}
        self._labelled: dict[_Label, dict[Key, None]] = {}

    def put(self, resource: Resource, obj: Object) -> Object | None:
        """Add or replace an object; returns the one that it replaces."""
        key = key_of(resource, obj)
        objects = self._objects.setdefault(resource, {}).setdefault(key[1], {})
        before = objects.get(key[2])
        objects[key[2]] = obj
        self._uids[obj["metadata"]["uid"]] = key
        self._relate(key, before["metadata"] if before else {}, obj["metadata"])
        return before

    def remove(self, resource: Resource, namespace: str, name: str) -> Object | None:
        """Remove an object and return it; None if there is none."""
        spaces = self._objects.get(resource, {})
        before = spaces.get(namespace, {}).pop(name, None)
        if before is not None:
            del self._uids[before["metadata"]["uid"]]
            self._relate((resource, namespace, name), before["metadata"], {})
            if not spaces[namespace]:
                del spaces[namespace]
        return before

    def _relate(self, key: Key, before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
        old, new = before.get("ownerReferences") or (), after.get("ownerReferences") or ()
        if old != new:
            for owner in old:
                _discard(self._owned, owner["uid"], key)
            for owner in new:
                self._owned.setdefault(owner["uid"], {})[key] = None
        had, has = before.get("labels") or {}, after.get("labels") or {}
        if had != has:
            for label in had.items():
                _discard(self._labelled, (*key[:2], *label), key)
            for label in has.items():
                self._labelled.setdefault((*key[:2], *label), {})[key] = None

    def get(self, resource: Resource, namespace: str, name: str) -> Object | None:
        return self._objects.get(resource, {}).get(namespace, {}).get(name)

    def owned(self, uid: str, resource: Resource) -> list[Object]:
        """Objects of ``resource`` with an ownerReference to ``uid``."""
        return [self._at(key) for key in self._owned.get(uid, ()) if key[0] == resource]

    def dependants(self, uid: str) -> list[tuple[Resource, Object]]:
        """Objects of any kind with an ownerReference to ``uid``."""
        return [(key[0], self._at(key)) for key in self._owned.get(uid, ())]

    def select(self, resource: Resource, namespace: str, labels: Mapping[str, str]) -> list[Object]:
        """Objects in a namespace with all of ``labels`` (at least one)."""
        candidates = [self._labelled.get((resource, namespace, *label), {}) for label in labels.items()]
        smallest = min(candidates, key=len)
        return [self._at(key) for key in smallest if all(key in found for found in candidates)]

    def find(self, uid: str) -> tuple[Resource, Object] | None:
        """The object with ``uid``."""
        key = self._uids.get(uid)
        return None if key is None else (key[0], self._at(key))

    def namespaces(self, resource: Resource) -> list[str]:
        """The namespaces with objects of a resource, by name."""
        return sorted(self._objects.get(resource, {}))

    def contents(self, namespace: str) -> list[tuple[Resource, Object]]:
        """All objects in a namespace."""
        return [
            (resource, obj) for resource, spaces in self._objects.items() for obj in spaces.get(namespace, {}).values()
        ]

    def list(self, resource: Resource, namespace: str = "") -> list[Object]:
        """All objects of a resource in a namespace, which is "" for cluster-scoped kinds."""
        return list(self._objects.get(resource, {}).get(namespace, {}).values())

    def _at(self, key: Key) -> Object:
        return self._objects[key[0]][key[1]][key[2]]


def _discard(index: dict[_Outer, dict[_Inner, None]], key: _Outer, value: _Inner) -> None:
    values = index.get(key)
    if values is not None:
        values.pop(value, None)
        if not values:
            del index[key]
