"""What behaviours outside the API server see of it: watches into one index, and each change told as in the sandbox.

A watch lags behind the client's own writes, and inside the sandbox nothing does. So the answer to each write is taken
into the caches before the next decision, as the controller does; an older version never replaces a newer one there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec

from rollout_lws.kube.client import Client
from rollout_lws.kube.informer import Informer
from rollout_lws.objects.meta import Meta, Struct
from rollout_lws.objects.resources import Resource
from rollout_lws.sandbox.behaviours.base import Change, Object
from rollout_lws.sandbox.index import Index, key_of


@dataclass(frozen=True, slots=True)
class Whole:
    """An object as behaviours look at it, with the part that the caches look at."""

    metadata: Meta
    object: Object


class _Head(Struct, frozen=True):
    metadata: Meta


_heads = msgspec.json.Decoder(_Head)


def whole(resource: Resource, body: bytes) -> Whole:
    """One object's JSON. The items of a list do not say what they are, so it is said here."""
    named = {"apiVersion": resource.api_version, "kind": resource.kind}
    read: dict[str, Any] = msgspec.json.decode(body)
    return Whole(_heads.decode(body).metadata, {**read, **named})


class Completion:
    """Whether every kind is known: its first list is in, or the server does not serve it and so has none of it."""

    def __init__(self, informers: Mapping[Resource, Informer[Whole]]) -> None:
        self._informers = informers
        self._complete = asyncio.Event()
        for informer in informers.values():
            informer.on_news(self._look)

    async def wait(self, patience: float) -> None:
        """Until it is so; TimeoutError, with the reasons, after ``patience`` seconds."""
        try:
            async with asyncio.timeout(patience):
                await self._complete.wait()
        except TimeoutError:
            missing = [
                each.trouble or f"no list of {kind} yet" for kind, each in self._informers.items() if not _known(each)
            ]
            raise TimeoutError(f"not everything is listed after {patience:g} s: {'; '.join(missing)}") from None

    def _look(self) -> None:
        if all(map(_known, self._informers.values())):
            self._complete.set()


class Following:
    """Follows ``resources`` in all namespaces; ``tell`` is called with each change, which ``view`` has by then.

    A kind that the server does not serve is one of which there are no objects, until it does.
    """

    def __init__(self, client: Client, resources: Iterable[Resource], tell: Callable[[Change], None]) -> None:
        self.view = Index()
        self._tell = tell
        self._informers = {resource: Informer(client, resource, partial(whole, resource)) for resource in resources}
        for resource, informer in self._informers.items():
            informer.on_change(partial(self._changed, resource))
        self._completion = Completion(self._informers)

    def start(self) -> list[asyncio.Task[None]]:
        """The tasks that follow, one for each kind; to be cancelled in the end."""
        return [
            asyncio.create_task(informer.run(), name=f"watch of {resource}")
            for resource, informer in self._informers.items()
        ]

    async def complete(self, patience: float) -> None:
        """Wait for the first list of every kind; TimeoutError, with the reasons, after ``patience`` seconds."""
        await self._completion.wait(patience)

    def absorb(self, resource: Resource, answer: bytes) -> None:
        """Take in what the server answered to a write of ours."""
        if resource in self._informers:
            self._informers[resource].absorb(answer)

    def _changed(self, resource: Resource, before: Whole | None, after: Whole | None) -> None:
        if before is not None and (after is None or after.metadata.uid != before.metadata.uid):
            # An object that took another's name within one glance is a stranger all the same.
            self._pass_on(Change(resource, before.object, before.object, deleted=True))
            before = None
        if after is not None:
            self._pass_on(Change(resource, after.object, before.object if before is not None else None))

    def _pass_on(self, change: Change) -> None:
        if change.deleted:
            self.view.remove(*key_of(change.resource, change.object))
        else:
            self.view.put(change.resource, change.object)
        self._tell(change)


def _known(informer: Informer[Whole]) -> bool:
    return informer.is_synced or informer.unserved
