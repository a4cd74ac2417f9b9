"""What a namespace of a real cluster looks like to stories: objects as watches tell them, read as a sandbox's are.

Watches of several kinds do not tell in the order in which the server made the changes, and what has to hold at every
change can only be judged in that order. So there are two views: the newest, for whoever waits, and one a moment later
in which the changes of all kinds stand in one row again, for checks.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from rollout_lws.errors import ApiError
from rollout_lws.kube.client import Client
from rollout_lws.kube.informer import Informer
from rollout_lws.objects.resources import EVENTS, Resource
from tests.e2e.following import Completion, Whole, whole
from tests.scenarios.names import NAMESPACE

Object = dict[str, Any]

#: Watches of one server differ by less, even on a busy machine, while they are open.
SETTLED_SECONDS = 0.3
_LATE_SECONDS = 0.05


class View:
    """Objects by kind and name, in the words in which the sandbox's server and its store are asked.

    Stories live in one namespace that they call by one name, whatever it is called in the cluster.
    """

    def __init__(self) -> None:
        self._objects: dict[Resource, dict[str, Object]] = {}

    @property
    def store(self) -> View:
        return self

    @staticmethod
    def clock() -> float:
        return time.time()

    def take(self, resource: Resource, name: str, obj: Object | None) -> None:
        known = self._objects.setdefault(resource, {})
        if obj is None:
            known.pop(name, None)
        else:
            known[name] = obj

    def find(self, resource: Resource, name: str) -> Object | None:
        return self._objects.get(resource, {}).get(name)

    def list(
        self, resource: Resource, namespace: str = NAMESPACE, label_selector: str | Mapping[str, str] = ""
    ) -> list[Object]:
        """All of a kind by name, or those with all of the labels: ``a=b,c=d`` to a server, a mapping to a store."""
        wanted = label_selector
        if isinstance(wanted, str):
            wanted = dict(pair.split("=", 1) for pair in wanted.split(",") if pair)
        return [
            obj
            for _, obj in sorted(self._objects.get(resource, {}).items())
            if wanted.items() <= (obj["metadata"].get("labels") or {}).items()
        ]


class Reading(View):
    """A view that answers as the API server does: what is not there is an error."""

    def get(self, resource: Resource, namespace: str, name: str) -> Object:
        found = self.find(resource, name)
        if found is None:
            raise ApiError(404, "NotFound", f'{resource} "{name}" not found')
        return found


class Stored(View):
    """A view that answers as the sandbox's store does."""

    def get(self, resource: Resource, namespace: str, name: str) -> Object | None:
        return self.find(resource, name)


class Settled(Reading):
    """The later view, with a store's answers where checks ask a store."""

    def __init__(self) -> None:
        super().__init__()
        self._stored = Stored()

    @property
    def store(self) -> View:
        return self._stored

    def take(self, resource: Resource, name: str, obj: Object | None) -> None:
        super().take(resource, name, obj)
        self._stored.take(resource, name, obj)


class Mirror:
    """Follows ``resources`` in ``namespace``: ``newest`` as they are told, ``settled`` in the server's order.

    ``changed`` is called after each change of the first, ``checked`` after each of the second.
    """

    def __init__(
        self,
        client: Client,
        namespace: str,
        resources: Iterable[Resource],
        changed: Callable[[], None],
        checked: Callable[[], None],
    ) -> None:
        self.newest, self.settled = Reading(), Settled()
        self._changed, self._checked = changed, checked
        self._versions: dict[tuple[Resource, str], int] = {}
        self._highest = 0
        self._row: list[tuple[int, int, Resource, str, Object | None]] = []
        self._numbers = itertools.count()
        self._informers = {
            resource: Informer(client, resource, partial(whole, resource), namespace=namespace)
            for resource in resources
        }
        for resource, informer in self._informers.items():
            informer.on_change(partial(self._take, resource))
        self._completion = Completion(self._informers)

    def start(self) -> list[asyncio.Task[None]]:
        """The tasks that follow; to be cancelled in the end."""
        return [asyncio.create_task(each.run(), name=f"mirror of {kind}") for kind, each in self._informers.items()]

    async def synced(self, patience: float = 60.0) -> None:
        """Until every kind is known; TimeoutError, which says what is missing and why, after so many seconds."""
        await self._completion.wait(patience)

    @property
    def is_current(self) -> bool:
        """Whether every kind is followed: after an outage each is heard of again in its own time.

        But for Events, which API servers keep out of their watch caches: a watch of them that was cut goes on where it
        was and tells nothing, no bookmark either, until there is another Event.
        """
        followed = (informer for kind, informer in self._informers.items() if kind != EVENTS)
        return not any(informer.trouble and not informer.unserved for informer in followed)

    def absorb(self, resource: Resource, answer: bytes) -> None:
        """Take in what the server has answered to a write, which the watch may tell later."""
        if resource in self._informers:
            self._informers[resource].absorb(answer)

    def _take(self, resource: Resource, before: Whole | None, after: Whole | None) -> None:
        told = after or before
        if told is None:
            return
        obj = dict(after.object) if after is not None else None
        # That an object has gone is told with its last version; the deletion came after all that was told before.
        version = int(told.metadata.resource_version)
        self._highest = max(self._highest, version)
        name = told.metadata.name
        self.newest.take(resource, name, obj)
        entry = (version if obj is not None else self._highest, next(self._numbers), resource, name, obj)
        heapq.heappush(self._row, entry)
        self._settle_later(entry[:2])
        self._changed()

    def _settle_later(self, until: tuple[int, int]) -> None:
        loop = asyncio.get_running_loop()
        loop.call_later(SETTLED_SECONDS, self._settle, until, loop.time() + SETTLED_SECONDS)

    def _settle(self, until: tuple[int, int], due: float) -> None:
        if asyncio.get_running_loop().time() - due > _LATE_SECONDS or not self.is_current:
            # Somebody has held the loop up, or the server was away: what has happened meanwhile is not read yet.
            self._settle_later(until)
            return
        while self._row and self._row[0][:2] <= until:
            _, _, resource, name, obj = heapq.heappop(self._row)
            self.settled.take(resource, name, obj)
            self._checked()
