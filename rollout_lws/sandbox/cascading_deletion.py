"""Objects that take others with them: a namespace its content, a definition its custom resources.

Both wait, marked as terminating, until the last of what they hold is gone; finalizers may make that long.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from rollout_lws.objects.resources import NAMESPACES, Resource
from rollout_lws.sandbox.definitions import crds
from rollout_lws.sandbox.store import Event, Store

Object = dict[str, Any]


class Server(Protocol):
    """What is asked of the API server."""

    @property
    def store(self) -> Store: ...
    def delete(
        self, resource: Resource, namespace: str, name: str, *, propagation: str = "", grace_seconds: int | None = None
    ) -> Object: ...


class Teardown:
    """The namespaces and definitions of one server that are on their way out."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._definitions: dict[Resource, str] = {}

    def namespace(self, old: Object, marked: Object) -> Object:
        """Delete a namespace, ``marked`` being ``old`` with its deletionTimestamp; the answer is what is left of it."""
        store, name = self._server.store, old["metadata"]["name"]
        if not store.contents(name):
            return store.remove(NAMESPACES, "", name)
        if "deletionTimestamp" not in old["metadata"]:
            marked = store.put(NAMESPACES, {**marked, "status": {"phase": "Terminating"}})
            self._delete(store.contents(name))
        return store.get(NAMESPACES, "", name) or marked

    def definition(self, old: Object, marked: Object) -> Object:
        """Delete a CustomResourceDefinition and its objects; the answer is what is left of it."""
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
        """Let go what waited for the object that is now gone."""
        store = self._server.store
        namespace = event.object["metadata"].get("namespace", "")
        home = store.get(NAMESPACES, "", namespace) if namespace else None
        if home is not None and "deletionTimestamp" in home["metadata"] and not store.contents(namespace):
            store.remove(NAMESPACES, "", namespace)
        if event.resource in self._definitions and next(store.list(event.resource), None) is None:
            name = self._definitions.pop(event.resource)
            if store.get(crds.RESOURCE, "", name) is not None:
                store.remove(crds.RESOURCE, "", name)

    def _delete(self, doomed: Iterable[tuple[Resource, Object]]) -> None:
        """Background deletion, pods without grace."""
        for resource, obj in tuple(doomed):
            meta = obj["metadata"]
            namespace, name = meta.get("namespace", ""), meta["name"]
            if self._server.store.get(resource, namespace, name) is not None:
                self._server.delete(resource, namespace, name, propagation="Background", grace_seconds=0)
