"""Asks a cluster which kinds it serves by the names that Rollouts have for them, each once, while one wants to know."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import msgspec

from rollout_lws.api.validation import no_api_version
from rollout_lws.errors import ApiError, Unreachable
from rollout_lws.kube.backoff import BackOff
from rollout_lws.kube.client import Client
from rollout_lws.logs import fields
from rollout_lws.objects.resources import Resource
from rollout_lws.tasks import end
from rollout_lws.traffic.custom.kinds import ServedKinds, served_as

log = logging.getLogger(__name__)

#: Namespace and name of a Rollout.
Key: TypeAlias = tuple[str, str]
#: apiVersion and kind.
Kind: TypeAlias = tuple[str, str]
_Start: TypeAlias = Callable[[Coroutine[Any, Any, None], str], asyncio.Task[None]]


@dataclass(slots=True)
class _Lookup:
    task: asyncio.Task[None] | None = None
    resource: Resource | None = None
    unknown: str | None = ""
    wanted_by: set[Key] = field(default_factory=set)


class Lookups:
    """``start`` runs a task under a name, ``wake`` has a key decided again. A kind that the cluster does not serve is
    asked for again, ever more rarely, as it may be installed later; one that it serves is known until nothing wants it.
    """

    def __init__(self, client: Client, start: _Start, wake: Callable[[Key], None]) -> None:
        self._client = client
        self._start = start
        self._wake = wake
        self._of: dict[Kind, _Lookup] = {}

    def resource(self, api_version: str, kind: str) -> Resource | None:
        """The kind as the cluster serves it; None where it does not, or that is not known."""
        found = self._of.get((api_version, kind))
        return found.resource if found is not None else None

    def unknown(self, api_version: str, kind: str) -> str | None:
        """Why that is not known: "" before the first answer, None once it is."""
        found = self._of.get((api_version, kind))
        return found.unknown if found is not None else ""

    async def want(self, key: Key, kinds: tuple[Kind, ...]) -> None:
        """Set the kinds that ``key`` wants to know, replacing its earlier ones."""
        for kind in kinds:
            found = self._of.setdefault(kind, _Lookup())
            found.wanted_by.add(key)
            if found.task is None:
                found.task = self._start(self._ask(kind, found), f"kind {' '.join(kind)}")
        for kind, found in tuple(self._of.items()):
            if kind not in kinds:
                found.wanted_by.discard(key)
                if not found.wanted_by and self._of.get(kind) is found:
                    del self._of[kind]
                    await end([found.task] if found.task is not None else [])

    async def close(self) -> None:
        """End every question."""
        tasks = [each.task for each in self._of.values() if each.task is not None]
        self._of.clear()
        await end(tasks)

    async def _ask(self, kind: Kind, found: _Lookup) -> None:
        back_off, told = BackOff(random.Random()), None
        while found.resource is None:
            failure: Exception | None = None
            try:
                found.resource, found.unknown = await self._served(kind)
            except ApiError as error:
                failure, found.unknown = error, None if error.code == 404 else f"{' '.join(kind)}: {error}"
            except (Unreachable, msgspec.DecodeError) as error:
                failure, found.unknown = error, f"{' '.join(kind)}: {error}"
            news = found.resource, found.unknown
            if news != told:
                told = news
                log.info("kind looked up", extra=fields(kind=" ".join(kind), found=found.resource, error=found.unknown))
                for key in tuple(found.wanted_by):
                    self._wake(key)
            if found.resource is None:
                await asyncio.sleep(back_off.after(failure, 0.0))

    async def _served(self, kind: Kind) -> tuple[Resource | None, str | None]:
        wrong = no_api_version(kind[0])
        if wrong:
            return None, wrong
        group, _, version = kind[0].rpartition("/")
        return served_as(msgspec.json.decode(await self._client.discover(group, version), type=ServedKinds), *kind)
