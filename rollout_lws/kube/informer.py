"""Informer: lists, then watches one kind of objects into a cache, and reports each change.

Lists are paged and decoded into partial structs. A silent watch is cut, one that ends is restarted with back-off, and
one that is too old (410) leads to a new list whose differences are reported as changes.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import random
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Generic

import msgspec

from rollout_lws.errors import ApiError, Unreachable
from rollout_lws.kube.backoff import BackOff
from rollout_lws.kube.client import Client
from rollout_lws.kube.status import deleted_uid, of_error_event
from rollout_lws.kube.store import Change, Store, T
from rollout_lws.objects.codec import nesting
from rollout_lws.objects.meta import selects
from rollout_lws.objects.permissions import allow, is_denied, named
from rollout_lws.objects.resources import Resource

log = logging.getLogger(__name__)

_PAGE = 500
#: timeoutSeconds of a watch, about, so that not all watches stay on one API server.
_WATCH_SECONDS = 300
#: Servers send a bookmark about every minute; a silence this long means a dead connection.
_SILENCE_SECONDS = 150.0
#: A starting server, whose own caches are empty, denies some requests: only a lasting denial counts.
_DENIED_SECONDS = 10.0


class _ListMeta(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(name="continue", default="")


class _Page(msgspec.Struct):
    metadata: _ListMeta
    items: list[msgspec.Raw] | None = None


class _Event(msgspec.Struct):
    type: str
    object: msgspec.Raw


class _Bookmark(msgspec.Struct):
    metadata: _ListMeta


class Informer(Generic[T]):
    """Follows the objects of ``resource`` in ``namespace`` ("" for all) that the selectors match.

    Label selectors are ``key`` (exists), ``!key`` or ``key=value``, joined by commas. ``decode`` makes the partial
    object from one object's JSON; ``indexes`` give the values under which ``by_index`` finds it. ``trouble`` says why
    the informer has no data at present and what to do, "" while all is well; ``unserved`` is True when the cause is
    that the kind, and so any object of it, does not exist. ``denied`` is True when the cause is that listing or
    watching is forbidden: the cache is then as old as the last list, which each attempt makes again.
    """

    def __init__(
        self,
        client: Client,
        resource: Resource,
        decode: Callable[[bytes], T],
        *,
        namespace: str = "",
        label_selector: str = "",
        field_selector: str = "",
        indexes: Mapping[str, Callable[[T], Iterable[str]]] | None = None,
        chance: random.Random | None = None,
    ) -> None:
        self.resource = resource
        self.last_traffic: float | None = None
        self.restarts = 0
        self.trouble = ""
        self.unserved = False
        self.denied = False
        self._denied_since: float | None = None
        #: Whether a watch was ever open.
        self._was_watching = False
        self._client = client
        self._decode = decode
        self._namespace = namespace
        self._selectors = {
            key: value for key, value in (("labelSelector", label_selector), ("fieldSelector", field_selector)) if value
        }
        self._store: Store[T] = Store(indexes or {})
        self._handlers: list[Callable[[T | None, T | None], None]] = []
        self._news: list[Callable[[], None]] = []
        self._synced = asyncio.Event()
        self._version = ""
        #: The loop's time when the watch began; None without a watch.
        self._watching: float | None = None
        self._chance = chance or random.Random()
        self._envelope = msgspec.json.Decoder(_Event)
        self._page = msgspec.json.Decoder(_Page)

    # Reading the cache

    def get(self, namespace: str, name: str) -> T | None:
        return self._store.get(namespace, name)

    def all(self, namespace: str = "") -> list[T]:
        return self._store.all(namespace)

    def by_index(self, index: str, value: str) -> list[T]:
        return self._store.by_index(index, value)

    async def synced(self) -> None:
        """Wait until the first list has arrived."""
        await self._synced.wait()

    @property
    def is_synced(self) -> bool:
        return self._synced.is_set()

    @property
    def silent_seconds(self) -> float:
        """Seconds since the server last sent anything, including bookmarks and the start of a watch; before that, since
        this informer started. 0 before it starts. Half a minute is usual, five are too many.
        """
        return 0.0 if self.last_traffic is None else asyncio.get_running_loop().time() - self.last_traffic

    def on_change(self, handler: Callable[[T | None, T | None], None]) -> None:
        """Call ``handler(old, new)`` for each change; None stands for "did not exist" and "was deleted"."""
        self._handlers.append(handler)

    def on_news(self, handler: Callable[[], None]) -> None:
        """Call ``handler()`` when the first list has arrived, and for each failure before it."""
        self._news.append(handler)

    def absorb(self, body: bytes) -> None:
        """Put the server's answer to one of our writes into the cache, before its watch event arrives.

        The answer to a deletion may be the terminating object, or a Status that says it is gone. An object that the
        selectors do not match is never added.
        """
        if gone := deleted_uid(body):
            self._tell(self._store.remove_uid(gone))
            return
        try:
            obj = nesting.read(self._decode, bytes(body))
        except (msgspec.DecodeError, UnicodeDecodeError):
            return
        meta = obj.metadata
        if not meta.name or not meta.resource_version:
            return
        if self._store.get(meta.namespace, meta.name) is not None or self._reaches(obj):
            self._tell(self._store.put(obj))

    def _reaches(self, obj: T) -> bool:
        if self._namespace not in ("", obj.metadata.namespace) or "fieldSelector" in self._selectors:
            return False
        return selects(self._selectors.get("labelSelector", ""), obj.metadata.labels)

    # List and watch

    async def run(self) -> None:
        """Follow the resource until cancelled; failures are retried, so this never returns."""
        back_off = BackOff(self._chance)
        self.last_traffic = asyncio.get_running_loop().time()
        while True:
            failure: Exception | None = None
            self._watching = None
            try:
                if not self._version:
                    await self._list()
                await self._watch()
            except (ApiError, Unreachable, msgspec.DecodeError, UnicodeDecodeError) as error:
                failure = error
                self._failed(error)
            self.restarts += 1
            await asyncio.sleep(back_off.after(failure, self._lived()))

    def _lived(self) -> float:
        """Seconds for which the last watch was open."""
        return 0.0 if self._watching is None else asyncio.get_running_loop().time() - self._watching

    def _failed(self, error: Exception) -> None:
        if isinstance(error, ApiError) and error.code == 410:
            log.info("watch is too old, listing again", extra={"fields": {"resource": str(self.resource)}})
            self._version = ""
            return
        self.trouble = f"{error}{_advice(self.resource, self._namespace, error)}"
        newly_denied = self._is_newly_denied(error)
        if isinstance(error, ApiError) and error.is_unserved:
            if self.unserved:
                # Not a new failure; the informer keeps trying, since the CRD may be installed later.
                return
            # The kind is gone, or never existed: a server that is still starting answers 503.
            self.unserved, self._version = True, ""
            for change in self._store.replace([], ""):
                self._tell(change)
        if not self.is_synced or self.unserved or newly_denied:
            self._announce()
        log.warning("watch failed", extra={"fields": {"resource": str(self.resource), "error": self.trouble}})

    def _is_newly_denied(self, error: Exception) -> bool:
        if not any(is_denied(error, verb) for verb in ("list", "watch")):
            # A starting server denies, is unreachable, and denies again: that is not one long denial.
            self._denied_since = None
            return False
        now = asyncio.get_running_loop().time()
        self._denied_since = now if self._denied_since is None else self._denied_since
        if self._was_watching and now - self._denied_since < _DENIED_SECONDS:
            return False
        # The watch misses all changes meanwhile.
        self._version = ""
        before, self.denied = self.denied, True
        return not before

    def _is_watching(self) -> None:
        self._denied_since, self._was_watching = None, True
        if self.denied:
            self.denied, self.trouble = False, ""
            self._announce()

    async def _list(self) -> None:
        """Page by page; the watch, which starts at the list's version, covers changes between pages."""
        listed: list[T] = []
        token, version = "", ""
        while True:
            params = {**self._selectors, "limit": str(_PAGE)} | ({"continue": token} if token else {})
            body = await self._client.list(self.resource, self._namespace, params)
            page, found = nesting.read(self._decode_page, body)
            listed += found
            version = version or page.resource_version
            token = page.continue_
            if not token:
                break
        self.last_traffic = asyncio.get_running_loop().time()
        for change in self._store.replace(listed, version):
            self._tell(change)
        self._version = version
        if not self.denied:
            self.trouble = ""
        first = not self.is_synced or self.unserved
        self.unserved = False
        self._synced.set()
        if first:
            self._announce()

    def _decode_page(self, body: bytes) -> tuple[_ListMeta, list[T]]:
        # The garbage collector would take two thirds of the time of creating objects in bulk, in vain.
        collecting = gc.isenabled()
        gc.disable()
        try:
            page = self._page.decode(body)
            # A Raw field points into the whole page and would keep it alive, so each object gets bytes of its own.
            return page.metadata, [self._decode(bytes(item)) for item in page.items or ()]
        finally:
            if collecting:
                gc.enable()

    async def _watch(self) -> None:
        seconds = int(_WATCH_SECONDS * self._chance.uniform(1.0, 2.0))
        params = {
            **self._selectors,
            "resourceVersion": self._version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(seconds),
        }
        async with self._client.watch(self.resource, self._namespace, params, _SILENCE_SECONDS) as lines:
            self._watching = self.last_traffic = asyncio.get_running_loop().time()
            self._is_watching()
            async for line in lines:
                if line:
                    self.last_traffic = asyncio.get_running_loop().time()
                    self.trouble = ""
                    self._take(line)

    def _take(self, line: bytes) -> None:
        kind, obj, version = nesting.read(self._decode_event, line)
        if obj is not None:
            self._tell(self._store.remove(obj) if kind == "DELETED" else self._store.put(obj))
        self._version = version

    def _decode_event(self, line: bytes) -> tuple[str, T | None, str]:
        """Its type, the object (None for a bookmark), and the version; ApiError for an ERROR event."""
        event = self._envelope.decode(line)
        if event.type == "ERROR":
            raise of_error_event(bytes(event.object))
        if event.type == "BOOKMARK":
            return event.type, None, msgspec.json.decode(event.object, type=_Bookmark).metadata.resource_version
        obj = self._decode(bytes(event.object))
        return event.type, obj, obj.metadata.resource_version

    def _announce(self) -> None:
        for handler in self._news:
            handler()

    def _tell(self, change: Change[Any] | None) -> None:
        if change is None:
            return
        for handler in self._handlers:
            handler(*change)


def _advice(resource: Resource, namespace: str, error: Exception) -> str:
    """What the user can do about a list or a watch that the server rejects, "" when only waiting helps."""
    if not isinstance(error, ApiError) or error.is_early:
        return ""
    if error.code in (401, 403):
        return f": {allow('list and watch', named(resource, namespace))}"
    if error.code == 404:
        return f": {resource} is not served by this cluster, install its CustomResourceDefinition"
    return ""
