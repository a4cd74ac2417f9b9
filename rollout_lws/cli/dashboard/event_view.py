"""What the page shows of an Event. Pure."""

from __future__ import annotations

from typing import Any

from rollout_lws.cli.events.event_log import Happening, stamp

#: Kinds of which a release has so many that only their warnings are shown.
_MANY = ("Pod", "StatefulSet")


def is_told(happening: Happening) -> bool:
    """Whether the page shows it."""
    return happening.is_warning or happening.about.partition("/")[0] not in _MANY


def event_view(happening: Happening) -> dict[str, Any]:
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
