"""The sandbox's object store, in place of etcd: versioned, indexed, with a history for watches.

Objects are plain JSON values and never change in place: each write stores a new dict, and each read returns the stored
dict itself. Reads therefore cost nothing, and thousands of writes a second share their unchanged parts.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from rollout_lws.errors import ApiError
from rollout_lws.objects.resources import LWS_NAME, Resource

Object: TypeAlias = dict[str, Any]
Key: TypeAlias = tuple[Resource, str, str]
EventType: TypeAlias = Literal["ADDED", "MODIFIED", "DELETED"]
Subscriber: TypeAlias = Callable[["Event"], None]

#: Labels with an index, so that a lookup by value does not scan.
INDEXED_LABELS = (LWS_NAME,)


@dataclass(frozen=True, slots=True)
class Event:
    """One change of one object; ``previous`` is the object before it, None for ADDED."""

    type: EventType
    resource: Resource
    object: Object
    previous: Object | None
    version: int


def key_of(resource: Resource, obj: Mapping[str, Any]) -> Key:
    metadata = obj["metadata"]
    return resource, metadata.get("namespace", ""), metadata["name"]


class Store:
    """All objects of one sandbox. ``history`` is how many past changes of each resource a watch can replay."""

    def __init__(self, history: int = 5000) -> None:
        self.version = 1
        self._history = history
        self._objects: dict[Resource, dict[str, dict[str, Object]]] = {}
        self._by_owner: dict[str, dict[Key, None]] = {}
        self._by_label: dict[tuple[Resource, str, str], dict[Key, None]] = {}
        self._log: dict[Resource, deque[Event]] = {}
        self._compacted: dict[Resource, int] = {}
        self._floor = 0
        self._subscribers: list[Subscriber] = []
        self._undelivered: deque[Event] = deque()
        self._delivering = False

    def get(self, resource: Resource, namespace: str, name: str) -> Object | None:
        return self._objects.get(resource, {}).get(namespace, {}).get(name)

    def list(self, resource: Resource, namespace: str = "") -> Iterator[Object]:
        """Objects ordered by namespace, then name; an empty namespace selects all namespaces."""
        spaces = self._objects.get(resource, {})
        for space in [namespace] if namespace else sorted(spaces):
            objects = spaces.get(space, {})
            for name in sorted(objects):
                yield objects[name]

    def labelled(self, resource: Resource, namespace: str, label: str, value: str) -> Iterator[Object]:
        """Objects whose ``label`` (one of INDEXED_LABELS) has ``value``, in the order of ``list``."""
        for _, space, name in sorted(self._by_label.get((resource, label, value), ()), key=lambda key: key[1:]):
            if not namespace or space == namespace:
                yield self._objects[resource][space][name]

    def dependants(self, uid: str) -> Sequence[tuple[Resource, Object]]:
        """Objects with an ownerReference to ``uid``, oldest reference first."""
        return [(key[0], self._objects[key[0]][key[1]][key[2]]) for key in self._by_owner.get(uid, ())]

    def contents(self, namespace: str) -> Sequence[tuple[Resource, Object]]:
        """All objects in a namespace."""
        return [
            (resource, obj)
            for resource, spaces in self._objects.items()
            if namespace in spaces
            for obj in spaces[namespace].values()
        ]

    def put(self, resource: Resource, obj: Object) -> Object:
        """Store ``obj`` under its name with the next resourceVersion, and notify the subscribers."""
        self.version += 1
        stored = {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(self.version)}}
        key = key_of(resource, stored)
        objects = self._objects.setdefault(resource, {}).setdefault(key[1], {})
        previous = objects.get(key[2])
        if previous is not None:
            self._unindex(key, previous)
        objects[key[2]] = stored
        self._index(key, stored)
        self._publish(Event("ADDED" if previous is None else "MODIFIED", resource, stored, previous, self.version))
        return stored

    def remove(self, resource: Resource, namespace: str, name: str, last: Object | None = None) -> Object:
        """Remove an object. The result and the event are ``last`` (by default the object as stored) with the
        resourceVersion of the removal.
        """
        spaces = self._objects[resource]
        previous = spaces[namespace].pop(name)
        if not spaces[namespace]:
            del spaces[namespace]
        self._unindex((resource, namespace, name), previous)
        self.version += 1
        last = last or previous
        last = {**last, "metadata": {**last["metadata"], "resourceVersion": str(self.version)}}
        self._publish(Event("DELETED", resource, last, previous, self.version))
        return last

    def subscribe(self, callback: Subscriber) -> Callable[[], None]:
        """Call ``callback`` with every later change, in order; the returned function unsubscribes.

        A write made inside a callback is stored at once and delivered after all subscribers saw the current change.
        """
        self._subscribers.append(callback)
        return lambda: self._subscribers.remove(callback)

    def since(self, resource: Resource, version: int) -> Sequence[Event]:
        """Changes of a resource after ``version``, oldest first; ApiError 410 Expired when some are no longer kept."""
        horizon = max(self._compacted.get(resource, 0), self._floor)
        if version < horizon:
            raise ApiError(410, "Expired", f"too old resource version: {version} ({horizon})")
        found: deque[Event] = deque()
        for event in reversed(self._log.get(resource, ())):
            if event.version <= version:
                break
            found.appendleft(event)
        return found

    def begin(self, resource: Resource) -> None:
        """Start the history of a resource now: a watch cannot replay earlier changes."""
        self._compacted[resource] = self.version

    def compact(self) -> None:
        """Drop the history: a watch from any earlier resourceVersion gets 410."""
        self._log.clear()
        self._floor = self.version

    def _publish(self, event: Event) -> None:
        log = self._log.get(event.resource)
        if log is None:
            log = self._log[event.resource] = deque(maxlen=self._history)
        if len(log) == self._history:
            self._compacted[event.resource] = log[0].version
        log.append(event)
        self._undelivered.append(event)
        if self._delivering:
            return
        self._delivering = True
        try:
            while self._undelivered:
                current = self._undelivered.popleft()
                for subscriber in tuple(self._subscribers):
                    subscriber(current)
        finally:
            self._delivering = False

    def _index(self, key: Key, obj: Object) -> None:
        metadata = obj["metadata"]
        for owner in metadata.get("ownerReferences", ()):
            self._by_owner.setdefault(owner["uid"], {})[key] = None
        labels = metadata.get("labels")
        if labels:
            for label in INDEXED_LABELS:
                if label in labels:
                    self._by_label.setdefault((key[0], label, labels[label]), {})[key] = None

    def _unindex(self, key: Key, obj: Object) -> None:
        metadata = obj["metadata"]
        for owner in metadata.get("ownerReferences", ()):
            keys = self._by_owner.get(owner["uid"])
            if keys is not None:
                keys.pop(key, None)
                if not keys:
                    del self._by_owner[owner["uid"]]
        labels = metadata.get("labels")
        if labels:
            for label in INDEXED_LABELS:
                entry = (key[0], label, labels.get(label, ""))
                keys = self._by_label.get(entry)
                if keys is not None:
                    keys.pop(key, None)
                    if not keys:
                        del self._by_label[entry]
