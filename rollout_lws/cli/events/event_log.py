"""Events of one release as a log: filters those that belong to it, merges repeats and sorts by time. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import msgspec

from rollout_lws.cli.durations import short
from rollout_lws.cli.view import plain
from rollout_lws.objects.meta import Struct
from rollout_lws.objects.workloads import CoreEvent, Series

Object = Mapping[str, Any]
#: Kinds whose objects LWS and StatefulSets name after the LWS: the group's ordinal, then the worker's index.
_OF_GROUPS = {"StatefulSet": re.compile(r"(-\d+)?"), "Pod": re.compile(r"-\d+(-\d+)?")}
_HEADER = ("TYPE", "REASON", "OBJECT", "MESSAGE")
#: Fixed column widths of a followed log, whose earlier lines cannot be widened.
_WIDTHS = (24, 7, 18, 28)
_YELLOW, _PLAIN = "\x1b[33m", "\x1b[0m"


class _Source(Struct, frozen=True):
    component: str = ""


class _Series(Series, frozen=True):
    count: int = 0


class Told(CoreEvent, frozen=True):
    """A core/v1 Event of any client; the API server stores events.k8s.io Events in the same form."""

    type: str = "Normal"
    count: int | None = None
    first_timestamp: datetime | None = None
    source: _Source | None = None
    reporting_component: str = ""
    series: _Series | None = None


# Makes the type known before there are threads that convert to it, in which its first use may crash the process.
msgspec.json.Decoder(Told)


@dataclass(frozen=True, slots=True)
class Happening:
    """``count`` equal Events from ``first`` to ``last``; ``uid`` is that of one of them, ``about`` is ``Kind/name`` and
    ``by`` the reporting component.
    """

    first: datetime
    last: datetime
    type: str
    reason: str
    about: str
    message: str
    count: int = 1
    by: str = ""
    uid: str = ""

    @property
    def is_warning(self) -> bool:
        return self.type == "Warning"


@dataclass(frozen=True, slots=True)
class Scope:
    """What belongs to a release: ``objects`` by kind and name, and all groups of the LWSs ``workloads``."""

    objects: frozenset[tuple[str, str]]
    workloads: tuple[str, ...]

    def has(self, kind: str, name: str) -> bool:
        if (kind, name) in self.objects:
            return True
        pattern = _OF_GROUPS.get(kind)
        return pattern is not None and any(
            name.startswith(each) and pattern.fullmatch(name, len(each)) for each in self.workloads
        )


def happening(event: Object) -> Happening:
    """Convert one Event."""
    told = msgspec.convert(event, Told, strict=False)
    last = told.moment
    series = told.series.count if told.series is not None else 0
    return Happening(
        first=min(told.first_timestamp or told.event_time or told.metadata.creation_timestamp or last, last),
        last=last,
        type=told.type or "Normal",
        reason=told.reason,
        about=f"{told.involved_object.kind}/{told.involved_object.name}",
        message=" ".join(plain(told.message).split()),
        count=max(series, told.count or 1),
        by=told.reporting_component or (told.source.component if told.source else ""),
        uid=told.metadata.uid,
    )


def merged(found: Iterable[Happening]) -> list[Happening]:
    """Merge equal Events, sorted by time: a recorder that restarts begins a new Event with count 1."""
    known: dict[tuple[str, ...], Happening] = {}
    for each in found:
        key = (each.about, each.type, each.reason, each.message, each.by)
        before = known.get(key)
        known[key] = each if before is None else _both(before, each)
    return sorted(known.values(), key=lambda each: (each.last, each.first, each.about, each.reason))


def _both(one: Happening, other: Happening) -> Happening:
    first, last = min(one.first, other.first), max(one.last, other.last)
    return replace(one, first=first, last=last, count=one.count + other.count)


def row(told: Happening, now: datetime | None) -> tuple[str, ...]:
    """Time, type, reason, object and message; ages at ``now``, or RFC 3339 times when that is None."""
    when = stamp(told.last) if now is None else short((now - told.last).total_seconds())
    times = f" (x{told.count} over {short((told.last - told.first).total_seconds())})" if told.count > 1 else ""
    return when, told.type, told.reason, told.about, told.message + times


def lines(told: Sequence[Happening], now: datetime | None, *, following: bool, coloured: bool) -> list[str]:
    """One line per Event, with a header unless ``following``; times as in ``row``."""
    rows = [row(each, now) for each in told]
    header = ("TIME" if now is None else "AGE", *_HEADER)
    least = [*_WIDTHS] if following else [len(cell) for cell in header[:-1]]
    widths = [max(column) for column in zip(least, *(map(len, each[:-1]) for each in rows), strict=True)]
    printed = [_line(cells, widths) for cells in rows]
    if coloured:
        printed = [f"{_YELLOW}{line}{_PLAIN}" if told[at].is_warning else line for at, line in enumerate(printed)]
    return printed if following else [_line(header, widths), *printed]


def _line(cells: tuple[str, ...], widths: Iterable[int]) -> str:
    *columns, message = cells
    return "   ".join([*(cell.ljust(width) for cell, width in zip(columns, widths, strict=True)), message]).rstrip()


def document(told: Happening) -> dict[str, Any]:
    """An Event as JSON; its members are under the versioning promise."""
    return {
        "time": stamp(told.last),
        "firstTime": stamp(told.first),
        "type": told.type,
        "reason": told.reason,
        "object": told.about,
        "message": told.message,
        "count": told.count,
        "from": told.by,
    }


def stamp(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
