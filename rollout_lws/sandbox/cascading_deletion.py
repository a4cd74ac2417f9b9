"""Cascading deletion: a namespace with its objects, a CustomResourceDefinition with its custom resources.

Both stay terminating until the last of their contents is gone; finalizers can delay that.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from rollout_lws.objects.resources import NAMESPACES, Resource
from rollout_lws.sandbox.definitions import crds
from rollout_lws.sandbox.store import Event, Store

Object = dict[str, Any]


class Server(Protocol):
    """The part of the API server used here."""

    @property
    def store(self) -> Store: ...
    def delete(
        self, resource: Resource, namespace: str, name: str, *, propagation: str = "", grace_seconds: int | None = None
    ) -> Object: ...


class Teardown:
    """The terminating namespaces and CustomResourceDefinitions of one server."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._definitions: dict[Resource, str] = {}

    def namespace(self, old: Object, marked: Object) -> Object:
        """Delete a namespace; ``marked`` is ``old`` with a deletionTimestamp. Returns the object that remains."""
        store, name = self._server.store, old["metadata"]["name"]
        if not store.index.contents(name):
            return store.remove(NAMESPACES, "", name)
        if "deletionTimestamp" not in old["metadata"]:
            marked = store.put(NAMESPACES, {**marked, "status": {"phase": "Terminating"}})
            self._delete(store.index.contents(name))
        return store.get(NAMESPACES, "", name) or marked

    def definition(self, old: Object, marked: Object) -> Object:
        """Delete a CustomResourceDefinition and its objects. Returns the object that remains."""
        store, name = self._server.store, old["metadata"]["name"]
        storage = crds.storage_of(old)
        objects = tuple(store.list(storage))
        if not objects:
            return store.remove(crds.RESOURCE, "", name)
        if "deletionTimestamp" not in old["metadata"]:
            self._definitions[storage] = name
            marked = store.put(crds.RESOURCE, marked)
            self._delete((storage, obj) for obj in objects)
        return store.get(crds.RESOURCE, "", name) or marked

    def release(self, event: Event) -> None:
        """Remove the terminating namespace and definition that waited only for this deleted object."""
        store = self._server.store
        namespace = event.object["metadata"].get("namespace", "")
        home = store.get(NAMESPACES, "", namespace) if namespace else None
        if home is not None and "deletionTimestamp" in home["metadata"] and not store.index.contents(namespace):
            store.remove(NAMESPACES, "", namespace)
        if event.resource in self._definitions and next(store.list(event.resource), None) is None:
            name = self._definitions.pop(event.resource)
            if store.get(crds.RESOURCE, "", name) is not None:
                store.remove(crds.RESOURCE, "", name)

    def _delete(self, doomed: Iterable[tuple[Resource, Object]]) -> None:
        """Background deletion, pods without a grace period."""
        for resource, obj in tuple(doomed):
            meta = obj["metadata"]
            namespace, name = meta.get("namespace", ""), meta["name"]
            if self._server.store.get(resource, namespace, name) is not None:
                self._server.delete(resource, namespace, name, propagation="Background", grace_seconds=0)
