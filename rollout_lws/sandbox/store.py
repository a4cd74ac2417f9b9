"""The sandbox's object store, in place of etcd: versioned, with a history for watches.

Objects are plain JSON values and never change in place: each write stores a new dict, and each read returns the stored
dict itself. Reads therefore cost nothing, and thousands of writes a second share their unchanged parts.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from rollout_lws.errors import ApiError
from rollout_lws.objects.resources import Resource
from rollout_lws.sandbox.index import Index, Object

EventType: TypeAlias = Literal["ADDED", "MODIFIED", "DELETED"]
Subscriber: TypeAlias = Callable[["Event"], None]


@dataclass(frozen=True, slots=True)
class Event:
    """One change of one object; ``previous`` is the object before it, None for ADDED."""

    type: EventType
    resource: Resource
    object: Object
    previous: Object | None
    version: int


class Store:
    """All objects of one sandbox, which ``index`` finds by name, owner and label; only the store changes it.

    ``history`` is how many past changes of each resource a watch can replay.
    """

    def __init__(self, history: int = 5000) -> None:
        self.version = 1
        self._history = history
        self.index = Index()
        self._log: dict[Resource, deque[Event]] = {}
        self._compacted: dict[Resource, int] = {}
        self._floor = 0
        self._subscribers: list[Subscriber] = []
        self._undelivered: deque[Event] = deque()
        self._delivering = False

    def get(self, resource: Resource, namespace: str, name: str) -> Object | None:
        return self.index.get(resource, namespace, name)

    def list(
        self, resource: Resource, namespace: str = "", labels: Mapping[str, str] | None = None
    ) -> Iterator[Object]:
        """Objects with all of ``labels``, ordered by namespace, then name; "" selects all namespaces."""
        for space in [namespace] if namespace else self.index.namespaces(resource):
            found = self.index.select(resource, space, labels) if labels else self.index.list(resource, space)
            yield from sorted(found, key=_name)

    def put(self, resource: Resource, obj: Object) -> Object:
        """Store ``obj`` under its name with the next resourceVersion, and notify the subscribers."""
        self.version += 1
        stored = {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(self.version)}}
        previous = self.index.put(resource, stored)
        self._publish(Event("ADDED" if previous is None else "MODIFIED", resource, stored, previous, self.version))
        return stored

    def remove(self, resource: Resource, namespace: str, name: str, last: Object | None = None) -> Object:
        """Remove an object. The result and the event are ``last`` (by default the object as stored) with the
        resourceVersion of the removal.
        """
        previous = self.index.remove(resource, namespace, name)
        if previous is None:
            raise KeyError((resource, namespace, name))
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


def _name(obj: Object) -> str:
    return str(obj["metadata"]["name"])
