"""Pod watches on demand: worker pods outnumber leaders, so they are watched only where a group is in trouble."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from rollout_lws.controller.informers import OF_LWS, place
from rollout_lws.controller.tasks import end
from rollout_lws.kube.informer import Informer
from rollout_lws.objects.workloads import Pod

Key: TypeAlias = tuple[str, str]
#: Namespace and name of an LWS.
Lws: TypeAlias = tuple[str, str]
#: Starts a task of this name.
Start: TypeAlias = Callable[[Coroutine[Any, Any, None], str], asyncio.Task[None]]


@dataclass(slots=True)
class _Watch:
    informer: Informer[Pod]
    task: asyncio.Task[None]
    wanted_by: set[Key] = field(default_factory=set)


class PodWatches:
    """One watch for each LWS that some key wants the pods of; ``make`` builds its informer, which ``start`` runs."""

    def __init__(self, make: Callable[[str, str], Informer[Pod]], start: Start) -> None:
        self._make = make
        self._start = start
        self._watches: dict[Lws, _Watch] = {}
        self._wanted: dict[Key, frozenset[Lws]] = {}

    def pods(self, namespace: str, lws: str) -> Iterable[Pod]:
        """What is known now; empty while nobody watches, or the first list is on its way."""
        watch = self._watches.get((namespace, lws))
        return () if watch is None else watch.informer.by_index(OF_LWS, place(namespace, lws))

    async def want(self, key: Key, names: tuple[str, ...]) -> None:
        """From now on ``key`` wants the pods of these LWSs of its namespace, and of no others."""
        wanted = frozenset((key[0], name) for name in names)
        before = self._wanted.pop(key, frozenset())
        if wanted:
            self._wanted[key] = wanted
        for lws in wanted - before:
            if lws not in self._watches:
                informer = self._make(*lws)
                self._watches[lws] = _Watch(informer, self._start(informer.run(), f"pods of {lws[0]}/{lws[1]}"))
            self._watches[lws].wanted_by.add(key)
        for lws in before - wanted:
            self._watches[lws].wanted_by.discard(key)
            if not self._watches[lws].wanted_by:
                await end([self._watches.pop(lws).task])

    def absorb(self, answer: bytes) -> None:
        """What the server answered to the write of a pod; a watch that does not select the pod leaves it alone."""
        for watch in self._watches.values():
            watch.informer.absorb(answer)

    async def close(self) -> None:
        """End every watch."""
        watches, self._watches = [*self._watches.values()], {}
        self._wanted.clear()
        await end([watch.task for watch in watches])
