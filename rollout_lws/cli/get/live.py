"""One release kept current: a watch cache for each kind of its objects, combined into a Release."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import replace
from itertools import chain
from typing import Any

from rollout_lws.cli.access.transport import Object, Transport
from rollout_lws.cli.releases import Release, fetch_before, gathered, pods_of, sets_of, target_of, typed, workload_names
from rollout_lws.cli.rollouts import releasing
from rollout_lws.cli.watch.cache import Signal, WatchCache
from rollout_lws.cli.watch.stream import passes
from rollout_lws.errors import ApiError, Unreachable, UsageError
from rollout_lws.objects.resources import PODS, STATEFUL_SETS, Resource
from rollout_lws.objects.workloads import Pod, StatefulSet
from rollout_lws.targets.target import Target
from rollout_lws.targets.version import Version

#: Seconds until a failed request for the previous version is retried.
_ASK_AGAIN = 30.0
#: What has to be watched for a release: its workloads' names and their kind.
_Key = tuple[tuple[str, ...], type[Target]]


class Live:
    """The release of a Rollout, with all pods or leaders only. ``changed`` is set on every change. ``known`` is the
    Rollout, if it was read already. With ``persists`` a refusal hides what is refused and is told as trouble.
    """

    def __init__(
        self,
        transport: Transport,
        rollouts: Resource,
        name: str,
        changed: Signal,
        *,
        known: Object | None = None,
        pods: bool = False,
        persists: bool = False,
    ) -> None:
        self._changed, self._pods, self._persists = changed, pods, persists
        self._transport, self._rollouts, self._name = transport, rollouts, name
        self._rollout: WatchCache[Object] = self._cache(rollouts, {"fieldSelector": f"metadata.name={name}"}, dict)
        self._key: _Key | None = None
        self._workloads: list[WatchCache[Any]] = []
        self._sets: list[WatchCache[Any]] = []
        self._members: list[WatchCache[Any]] = []
        self._before: tuple[object, Version | None] = (None, None)
        self._ask_again = 0.0
        self._was_there = known is not None
        if known is not None:
            self._follow(known)

    def __enter__(self) -> Live:
        return self

    def __exit__(self, *_: object) -> None:
        _end(self._caches)

    @property
    def trouble(self) -> str:
        """Why the release may be stale, "" while it is current."""
        return next((cache.trouble for cache in self._caches if cache.trouble and not cache.refused), "")

    @property
    def refusals(self) -> tuple[str, ...]:
        """Why some kinds of its objects are not shown."""
        return tuple(dict.fromkeys(cache.trouble for cache in self._caches if cache.refused))

    def look(self) -> Release | None:
        """The release as it is known now; None until all of its kinds have been listed.

        UsageError when there is no such Rollout; a permanent error from the server is raised unchanged.
        """
        self._raise_failure()
        found = self._rollout.objects()
        if found is not None and not found:
            raise UsageError(f"rollout/{self._name} was deleted" if self._was_there else self._no_such())
        if not found:
            return None
        self._was_there = True
        self._follow(found[0])
        self._raise_failure()
        if any(each.objects() is None and not each.refused for each in self._caches):
            return None
        release = gathered(found[0], *(_all(each) for each in (self._workloads, self._sets, self._members)))
        return replace(release, before=self._version_before(found[0]))

    @property
    def _caches(self) -> list[WatchCache[Any]]:
        return [self._rollout, *self._workloads, *self._sets, *self._members]

    def _raise_failure(self) -> None:
        for cache in self._caches:
            if cache.failure is not None:
                raise cache.failure

    def _no_such(self) -> str:
        return f"there is no Rollout {self._name!r} in namespace {self._transport.namespace!r}"

    def _follow(self, rollout: Object) -> None:
        """Watch what belongs to the Rollout, whose spec may name other workloads than before."""
        names, kind = key = workload_names(rollout), target_of(rollout)
        if key == self._key:
            return
        _end([*self._workloads, *self._sets, *self._members])
        self._key = key
        self._workloads = [
            self._cache(kind.resource, {"fieldSelector": f"metadata.name={each}"}, kind) for each in names
        ]
        made, members = sets_of(kind, names), pods_of(kind, names, leaders=not self._pods)
        self._sets = [] if made is None else [self._cache(STATEFUL_SETS, {"labelSelector": made}, StatefulSet)]
        self._members = [self._cache(PODS, {"labelSelector": members}, Pod)]

    def _cache(self, resource: Resource, query: dict[str, str], kind: type[Any]) -> WatchCache[Any]:
        def decode(obj: Object) -> Any:
            return obj if kind is dict else typed(obj, kind)

        path = resource.path(self._transport.namespace)
        return WatchCache(self._transport, path, query, decode, self._changed, persists=self._persists)

    def _version_before(self, rollout: Object) -> Version | None:
        """The previous version, fetched once per release, since it cannot change; retried with a delay on error."""
        key = releasing(rollout) and ((rollout.get("status") or {}).get("stable") or {}).get("templateHash")
        if key != self._before[0] and time.monotonic() >= self._ask_again:
            try:
                self._before = key, fetch_before(self._transport, self._rollouts, rollout)
            except (ApiError, Unreachable) as error:
                if not (self._persists or passes(error)):
                    raise
                self._ask_again = time.monotonic() + _ASK_AGAIN
        return self._before[1] if key == self._before[0] else None


def _all(caches: Iterable[WatchCache[Any]]) -> list[Any]:
    """The objects that are known."""
    return list(chain.from_iterable(each.objects() or () for each in caches))


def _end(caches: Iterable[WatchCache[Any]]) -> None:
    listed = list(caches)
    for cache in listed:
        cache.stop()
    for cache in listed:
        cache.join()
