"""What a script has changed in an object, and how that is undone without losing what others have changed there.

A change is a member with its value before and after. It is undone where it still is as written. In a list, in which
users and scripts add items side by side, each item is looked at by itself: those that the script has added go, those
that it has taken out come back, and all others stay.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import UNSET

from rollout_lws.objects.meta import Struct
from rollout_lws.traffic.custom.lists import paired

#: The members of an object that scripts see and change, as plain JSON: ``spec``, ``labels`` and ``annotations``.
Data = Mapping[str, Any]


class Change(Struct, frozen=True):
    """One member at ``path``, with its value before and after; unset: it was, or is, not there."""

    path: tuple[str, ...]
    before: Any = UNSET
    after: Any = UNSET


def changes(before: Data, after: Data) -> tuple[Change, ...]:
    """What has to be changed in ``before`` to have ``after``, by path; () if they are equal."""
    return tuple(_changes(before, after, ()))


def _changes(before: Data, after: Data, path: tuple[str, ...]) -> Iterator[Change]:
    for key in sorted({*before, *after}):
        was, becomes = before.get(key, UNSET), after.get(key, UNSET)
        if isinstance(was, dict) and isinstance(becomes, dict):
            yield from _changes(was, becomes, (*path, key))
        elif was != becomes or type(was) is not type(becomes):
            yield Change(path=(*path, key), before=was, after=becomes)


def undone(live: Data, done: Iterable[Change], *, again: bool = False) -> dict[str, Any]:
    """``live`` without these changes. A member that is not as written stays as it is, unless the change is to be made
    ``again``: then it is as before, so that what it was changed to does not count as its original.
    """
    found = dict(live)
    for each in done:
        found = _with(found, each.path, _undone(value_at(found, each.path), each.before, each.after, again=again))
    return found


def stands(live: Data, done: Iterable[Change]) -> bool:
    """Whether all of these changes are still in ``live``, whatever else was changed there."""
    return all(_stands(value_at(live, each.path), each.before, each.after) for each in done)


def mentions(value: Any, name: str) -> bool:
    """Whether any text in the value is this name of a Service, or a host that begins with it."""
    if isinstance(value, Mapping):
        return any(mentions(each, name) for each in value.values())
    if isinstance(value, list | tuple):
        return any(mentions(each, name) for each in value)
    return isinstance(value, str) and bool(name) and (value == name or value.startswith((f"{name}.", f"{name}:")))


def aligned(before: Any, after: Any) -> Any:
    """What a script has returned, with the values of its input where it could not tell them apart: an empty list and an
    empty object, a member that is null, and numbers that Lua has no exact value for.
    """
    if isinstance(after, dict) and isinstance(before, Mapping):
        found = {key: aligned(before.get(key, UNSET), member) for key, member in after.items()}
        found |= {key: member for key, member in before.items() if member is None and key not in found}
        return {key: member for key, member in found.items() if member is not UNSET}
    if isinstance(after, list):
        beside = before if isinstance(before, list) else []
        items = [aligned(beside[at] if at < len(beside) else UNSET, each) for at, each in enumerate(after)]
        return [each for each in items if each is not UNSET]
    if after is None:
        return before if before in ({}, [], None) else UNSET
    number = isinstance(before, int | float) and not isinstance(before, bool)
    return before if number and isinstance(after, int | float) and float(before) == float(after) else after


def _undone(live: Any, before: Any, after: Any, *, again: bool) -> Any:
    if live == after:
        return before
    if isinstance(after, list) and isinstance(live, list) and (before is UNSET or isinstance(before, list)):
        items = _list(live, [] if before is UNSET else before, after, again=again)
        return items if items or before is not UNSET else UNSET
    if isinstance(after, dict) and isinstance(live, dict):
        # What a script has added goes with all that others, or the server's defaults, have put into it.
        return undone(live, changes(before, after), again=again) if isinstance(before, dict) else before
    return before if again else live


def _list(live: Sequence[Any], before: Sequence[Any], after: Sequence[Any], *, again: bool) -> list[Any]:
    origin, written = paired(after, before), paired(live, after)
    out = [at for at in range(len(before)) if at not in origin.values()]
    kept: list[tuple[int | None, Any]] = []
    for index, item in enumerate(live):
        made = written.get(index)
        if made is None:
            # One that the script took out may be back already.
            at = next((at for at in out if before[at] == item), None)
            out = [each for each in out if each != at]
            kept.append((at, item))
        elif made in origin:
            kept.append((origin[made], _undone(item, before[origin[made]], after[made], again=again)))
    for at in out:
        # Back behind the item that it stood behind.
        behind = [index for index, (of, _) in enumerate(kept) if of is not None and of < at]
        kept.insert(behind[-1] + 1 if behind else 0, (at, before[at]))
    return [item for _, item in kept]


def _stands(live: Any, before: Any, after: Any) -> bool:
    if live == after:
        return True
    if isinstance(after, list) and isinstance(live, list):
        was = before if isinstance(before, list) else []
        origin, written = paired(after, was), paired(live, after)
        there = {made: at for at, made in written.items()}
        for made, item in enumerate(after):
            # One that a user has removed is the user's; one that the script has added is not.
            original = was[origin[made]] if made in origin else UNSET
            if made not in there and original is UNSET:
                return False
            if made in there and original != item and not _stands(live[there[made]], original, item):
                return False
        gone = (item for at, item in enumerate(was) if at not in origin.values())
        return not any(live.count(item) > after.count(item) for item in gone)
    if isinstance(after, dict) and isinstance(live, dict):
        return stands(live, changes(before if isinstance(before, dict) else {}, after))
    return False


def value_at(data: Any, path: Sequence[str]) -> Any:
    """The value at a path; unset where there is none."""
    for member in path:
        data = data.get(member, UNSET) if isinstance(data, Mapping) else UNSET
    return data


def _with(data: Data, path: Sequence[str], value: Any) -> dict[str, Any]:
    """``data`` with this value at the path, unset for none; as it is where nothing leads there any more."""
    first, rest = path[0], path[1:]
    if rest:
        inside = data.get(first, UNSET)
        value = _with(inside, rest, value) if isinstance(inside, Mapping) else inside
    found = {key: member for key, member in data.items() if key != first}
    return found if value is UNSET else {**data, first: value}
