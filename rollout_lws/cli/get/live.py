"""One release kept current: a watch cache for each kind of its objects, combined into a Release."""

from __future__ import annotations

import time
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
from rollout_lws.targets.version import Version

#: Seconds until a failed request for the previous version is retried.
_ASK_AGAIN = 30.0


class Live:
    """The release of ``rollout``, with all pods or leaders only. ``changed`` is set on every change."""

    def __init__(
        self, transport: Transport, rollouts: Resource, rollout: Object, changed: Signal, *, pods: bool = False
    ) -> None:
        self._changed = changed
        self._transport, self._rollouts = transport, rollouts
        self._name, self._namespace = rollout["metadata"]["name"], rollout["metadata"]["namespace"]
        self._caches: list[WatchCache[Any]] = []
        names, kind = workload_names(rollout), target_of(rollout)
        self._rollout = self._cache(rollouts, {"fieldSelector": f"metadata.name={self._name}"}, dict)
        self._workloads = [
            self._cache(kind.resource, {"fieldSelector": f"metadata.name={each}"}, kind) for each in names
        ]
        made, members = sets_of(kind, names), pods_of(kind, names, leaders=not pods)
        self._sets = [] if made is None else [self._cache(STATEFUL_SETS, {"labelSelector": made}, StatefulSet)]
        self._members = self._cache(PODS, {"labelSelector": members}, Pod)
        self._before: tuple[object, Version | None] = (None, None)
        self._ask_again = 0.0

    def __enter__(self) -> Live:
        return self

    def __exit__(self, *_: object) -> None:
        for cache in self._caches:
            cache.stop()
        for cache in self._caches:
            cache.join()

    @property
    def trouble(self) -> str:
        """Why the release may be stale, "" while it is current."""
        return next((cache.trouble for cache in self._caches if cache.trouble), "")

    def look(self) -> Release | None:
        """The release as it is known now; None until all of its kinds have been listed.

        UsageError when the Rollout was deleted; a permanent error from the server is raised unchanged.
        """
        for cache in self._caches:
            if cache.failure is not None:
                raise cache.failure
        found = self._rollout.objects()
        if found is not None and not found:
            raise UsageError(f"rollout/{self._name} was deleted")
        workloads, sets, members = (
            [each.objects() for each in caches] for caches in (self._workloads, self._sets, [self._members])
        )
        if not found or None in (*workloads, *sets, *members):
            return None
        release = gathered(found[0], *(chain.from_iterable(filter(None, each)) for each in (workloads, sets, members)))
        return replace(release, before=self._version_before(found[0]))

    def _cache(self, resource: Resource, query: dict[str, str], kind: type[Any]) -> WatchCache[Any]:
        def decode(obj: Object) -> Any:
            return obj if kind is dict else typed(obj, kind)

        path = resource.path(self._namespace)
        self._caches.append(WatchCache(self._transport, path, query, decode, self._changed))
        return self._caches[-1]

    def _version_before(self, rollout: Object) -> Version | None:
        """The previous version, fetched once per release, since it cannot change; retried with a delay on error."""
        key = releasing(rollout) and ((rollout.get("status") or {}).get("stable") or {}).get("templateHash")
        if key != self._before[0] and time.monotonic() >= self._ask_again:
            try:
                self._before = key, fetch_before(self._transport, self._rollouts, rollout)
            except (ApiError, Unreachable) as error:
                if not passes(error):
                    raise
                self._ask_again = time.monotonic() + _ASK_AGAIN
        return self._before[1] if key == self._before[0] else None
