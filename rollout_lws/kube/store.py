"""The informer's cache: objects of one kind with indexes; an older version never replaces a newer one.

Bookkeeping without I/O: takes listed and watched objects and answers to our writes, returns real changes.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

Key = tuple[str, str]

#: Deletions remembered, so that a late answer to an earlier write brings nothing back.
_TOMBSTONES = 4096


class Metadata(Protocol):
    @property
    def namespace(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def resource_version(self) -> str: ...
    @property
    def uid(self) -> str: ...
    @property
    def labels(self) -> Mapping[str, str]: ...


class Cached(Protocol):
    @property
    def metadata(self) -> Metadata: ...


T = TypeVar("T", bound=Cached)
Change = tuple[T | None, T | None]


def age(version: str) -> int | None:
    """A resourceVersion as a comparable number; None when it is not a number."""
    return int(version) if version.isdigit() else None


@dataclass(frozen=True, slots=True)
class _Tombstone:
    """Up to which version a key is known to hold nothing; ``uid`` is one that certainly never returns.

    A watch with a selector also reports an object as deleted that only left the selector. That object may come back
    with the same uid, so then only the version counts.
    """

    version: int | None
    uid: str = ""


class Store(Generic[T]):
    """Objects by (namespace, name), and by the values of the index functions."""

    def __init__(self, indexes: Mapping[str, Callable[[T], Iterable[str]]]) -> None:
        self._indexers = dict(indexes)
        self._objects: dict[Key, T] = {}
        self._indexes: dict[str, dict[str, dict[Key, T]]] = {name: {} for name in indexes}
        self._deleted: OrderedDict[Key, _Tombstone] = OrderedDict()

    def get(self, namespace: str, name: str) -> T | None:
        return self._objects.get((namespace, name))

    def all(self, namespace: str = "") -> list[T]:
        """All objects, or those of one namespace."""
        return [each for (where, _), each in self._objects.items() if not namespace or where == namespace]

    def by_index(self, index: str, value: str) -> list[T]:
        return list(self._indexes[index].get(value, {}).values())

    def put(self, obj: T) -> Change[T] | None:
        """Add a version of an object; None when it is not newer than the known one."""
        key = (obj.metadata.namespace, obj.metadata.name)
        known = self._objects.get(key)
        if known is not None and not _newer(obj, known.metadata.resource_version):
            return None
        buried = self._deleted.get(key)
        if buried is not None:
            mine = age(obj.metadata.resource_version)
            if buried.uid and obj.metadata.uid == buried.uid:
                return None
            if buried.version is not None and mine is not None and mine <= buried.version:
                return None
            del self._deleted[key]
        entries = list(self._entries(obj))
        if known is not None and entries != (before := list(self._entries(known))):
            self._unindex(key, before)
        self._objects[key] = obj
        for name, value in entries:
            self._indexes[name].setdefault(value, {})[key] = obj
        return known, obj

    def remove(self, obj: T) -> Change[T] | None:
        """Apply a deletion; None when the object is unknown, or known in a version newer than the deletion."""
        key = (obj.metadata.namespace, obj.metadata.name)
        version, known = age(obj.metadata.resource_version), self._objects.get(key)
        if known is not None:
            mine = age(known.metadata.resource_version)
            if version is not None and mine is not None and mine > version:
                return None
        return self._drop(key, _Tombstone(version))

    def remove_uid(self, uid: str) -> Change[T] | None:
        """Apply the final deletion of the object with ``uid``; None when it is not known."""
        for key, known in self._objects.items():
            if known.metadata.uid == uid:
                return self._drop(key, _Tombstone(age(known.metadata.resource_version), uid))
        return None

    def replace(self, listed: Iterable[T], version: str) -> list[Change[T]]:
        """Apply a whole list of ``version``; objects missing from it are deleted, unless newer than the list."""
        changes: list[Change[T]] = []
        seen: set[Key] = set()
        for obj in listed:
            key = (obj.metadata.namespace, obj.metadata.name)
            seen.add(key)
            known = self._objects.get(key)
            if (
                known is not None
                and known.metadata.uid != obj.metadata.uid
                and _newer(obj, known.metadata.resource_version)
            ):
                # The tombstone must not extend to the list's version, since the successor is older than that.
                gone = _Tombstone(age(known.metadata.resource_version), known.metadata.uid)
                changes += [change for change in (self._drop(key, gone),) if change]
            changes += [change for change in (self.put(obj),) if change]
        limit = age(version)
        for key, known in list(self._objects.items()):
            mine = age(known.metadata.resource_version)
            if key not in seen and (limit is None or mine is None or mine <= limit):
                changes += [change for change in (self._drop(key, _Tombstone(limit)),) if change]
        return changes

    def _drop(self, key: Key, tombstone: _Tombstone) -> Change[T] | None:
        self._bury(key, tombstone)
        known = self._objects.pop(key, None)
        if known is None:
            return None
        self._unindex(key, self._entries(known))
        return known, None

    def _bury(self, key: Key, tombstone: _Tombstone) -> None:
        earlier = self._deleted.get(key)
        if earlier is not None:
            versions = [each for each in (earlier.version, tombstone.version) if each is not None]
            tombstone = _Tombstone(max(versions, default=None), tombstone.uid or earlier.uid)
        self._deleted[key] = tombstone
        self._deleted.move_to_end(key)
        while len(self._deleted) > _TOMBSTONES:
            self._deleted.popitem(last=False)

    def _entries(self, obj: T) -> Iterable[tuple[str, str]]:
        return ((name, value) for name, indexer in self._indexers.items() for value in indexer(obj))

    def _unindex(self, key: Key, entries: Iterable[tuple[str, str]]) -> None:
        for name, value in entries:
            bucket = self._indexes[name].get(value)
            if bucket is not None:
                bucket.pop(key, None)
                if not bucket:
                    del self._indexes[name][value]


def _newer(obj: Cached, version: str) -> bool:
    mine, other = age(obj.metadata.resource_version), age(version)
    return mine is None or other is None or mine > other
