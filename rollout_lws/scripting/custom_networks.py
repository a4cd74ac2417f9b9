"""What decisions know of objects of custom kinds and of the scripts for them: one place for all of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeAlias

import msgspec

from rollout_lws.kube.client import Client
from rollout_lws.kube.informer import Informer
from rollout_lws.objects.meta import Meta, Struct
from rollout_lws.objects.resources import CONFIG_MAPS, Resource
from rollout_lws.rollout.decision import Wanted
from rollout_lws.scripting.evaluations import Evaluations, Runs
from rollout_lws.scripting.lookups import Lookups
from rollout_lws.tasks import end
from rollout_lws.traffic.custom.scripts import Scripts

#: Namespace and name of a Rollout.
Key: TypeAlias = tuple[str, str]
_Start: TypeAlias = Callable[[Coroutine[Any, Any, None], str], asyncio.Task[None]]


class ConfigMap(Struct, frozen=True):
    """The cached part of the ConfigMap with scripts."""

    metadata: Meta
    data: dict[str, str] = msgspec.field(default_factory=dict)


class CustomNetworks:
    """``source`` is the ConfigMap with scripts, by namespace and name, None where none are run. It is watched once a
    decision wants scripts. ``start`` runs a task under a name, ``wake`` has a key decided again.
    """

    def __init__(
        self,
        client: Client,
        source: tuple[str, str] | None,
        runner: Runs,
        start: _Start,
        wake: Callable[[Key], None],
    ) -> None:
        self._client = client
        self._source = source
        self._start = start
        self._wake = wake
        self._lookups = Lookups(client, start, wake)
        self._evaluations = Evaluations(runner, start, wake)
        self._wanting: set[Key] = set()
        self._watch: tuple[Informer[ConfigMap], asyncio.Task[None]] | None = None

    @property
    def informers(self) -> tuple[Informer[ConfigMap], ...]:
        """The running watch, if there is one."""
        return (self._watch[0],) if self._watch is not None else ()

    def custom_kind(self, api_version: str, kind: str) -> Resource | None:
        """The kind as the cluster serves it; None where it does not, or that is not known."""
        return self._lookups.resource(api_version, kind)

    def unknown_custom_kind(self, api_version: str, kind: str) -> str | None:
        """Why that is not known: "" before the first answer, None once it is."""
        return self._lookups.unknown(api_version, kind)

    def scripts(self, key: Key) -> Scripts:
        """What is known of the scripts, and of those that the key wanted run."""
        if self._source is None:
            return Scripts()
        source = "/".join(self._source)
        if self._watch is None:
            return Scripts(source, waits="")
        informer, _ = self._watch
        if not informer.is_synced or informer.denied:
            return Scripts(source, waits=informer.trouble)
        found = informer.get(*self._source)
        return Scripts(source, found.data if found is not None else {}, outcomes=self._evaluations.outcomes(key))

    async def want(self, key: Key, wanted: Wanted) -> None:
        """Set what the key wants to know, replacing what it wanted."""
        await self._lookups.want(key, wanted.custom_kinds)
        await self._evaluations.want(key, wanted.evaluations)
        if not wanted.scripts or self._source is None:
            self._wanting.discard(key)
            return
        self._wanting.add(key)
        if self._watch is None:
            namespace, name = self._source
            decode = msgspec.json.Decoder(ConfigMap).decode
            informer: Informer[ConfigMap] = Informer(
                self._client, CONFIG_MAPS, decode, namespace=namespace, field_selector=f"metadata.name={name}"
            )
            informer.on_news(self._tell)
            informer.on_change(lambda _before, _after: self._tell())
            self._watch = informer, self._start(informer.run(), f"scripts {namespace}/{name}")

    async def close(self) -> None:
        """End everything."""
        self._wanting.clear()
        watch, self._watch = self._watch, None
        await end([watch[1]] if watch is not None else [])
        await self._lookups.close()
        await self._evaluations.close()

    def _tell(self) -> None:
        for key in tuple(self._wanting):
            self._wake(key)
