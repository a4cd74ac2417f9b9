"""The Events of a release, kept current, and what the page shows of them."""

from __future__ import annotations

from functools import partial
from typing import Any

from rollout_lws.cli.access.transport import Transport
from rollout_lws.cli.events.event_log import Happening, Scope, stamp
from rollout_lws.cli.events.scope import in_scope
from rollout_lws.cli.watch.cache import Signal, WatchCache
from rollout_lws.objects.resources import CORE_EVENTS

Object = dict[str, Any]
#: Kinds of which a release has so many that only their warnings are shown.
_MANY = ("Pod", "StatefulSet")


def _is_shown(happening: Happening) -> bool:
    """Whether the page shows it."""
    return happening.is_warning or happening.about.partition("/")[0] not in _MANY


def event_view(happening: Happening) -> Object:
    """One line of the log, by ``uid``; an Event that is repeated keeps it, and its ``count`` grows."""
    return {
        "uid": happening.uid,
        "first": stamp(happening.first),
        "last": stamp(happening.last),
        "type": happening.type,
        "reason": happening.reason,
        "about": happening.about,
        "message": happening.message,
        "count": happening.count,
    }


class EventLog:
    """The Events of a release: of its pods and StatefulSets only warnings, since each that starts well has several."""

    def __init__(self, transport: Transport, scope: Scope, changed: Signal) -> None:
        self.scope = scope
        path, told = CORE_EVENTS.path(transport.namespace), partial(_told, scope)
        self._cache: WatchCache[Happening] = WatchCache(transport, path, {}, told, changed, persists=True)

    def close(self) -> None:
        self._cache.stop()
        self._cache.join()

    @property
    def trouble(self) -> str:
        return self._cache.trouble

    @property
    def is_refused(self) -> bool:
        """Whether the trouble is that the user may not see Events."""
        return self._cache.refused

    def happenings(self) -> list[Happening] | None:
        """None before the first list."""
        return self._cache.objects()


def _told(scope: Scope, obj: Object) -> Happening | None:
    found = in_scope(scope, obj)
    return found if found is not None and _is_shown(found) else None
