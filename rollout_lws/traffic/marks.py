"""The original-state annotation on a Service, pool or route: what each Rollout changed there, for restoring it.

Several Rollouts may share one route, so the annotation is a JSON object with one entry per Rollout UID. It is written
with the first edit, removed with the last restored member, and outlives the controller and the Rollout.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias, TypeVar

import msgspec

from rollout_lws.api.resources import Keys, rollouts
from rollout_lws.objects.meta import Struct
from rollout_lws.traffic.split import Object

#: One Rollout's entry as plain JSON: the original values, the written ones, and whatever else restoring needs.
Mark: TypeAlias = Mapping[str, Any]

_Form = TypeVar("_Form")
#: Member of the entry on an object that a release created: the object's name, so that a copy of it does not count.
_MADE = "made"


def read(live: Object, by: str, keys: Keys) -> Mark | None:
    """The entry of the Rollout with UID ``by``; None without one, or when it is unreadable."""
    return _all(live, keys).get(by)


def read_as(form: type[_Form], live: Object, by: str, keys: Keys) -> _Form | None:
    """The decoded entry; None also when it does not have that form."""
    mark = read(live, by, keys)
    try:
        return None if mark is None else msgspec.convert(mark, form)
    except msgspec.ValidationError:
        return None


def put(live: Object, by: str, keys: Keys, mark: Mark | Struct) -> Object:
    """The object with this entry; other Rollouts' entries stay. The same entries always give the same text."""
    return _with(live, keys, {**_all(live, keys), by: mark})


def without(live: Object, by: str, keys: Keys) -> Object:
    """The object without this entry; the annotation goes with its last entry, an emptied map with it."""
    if keys.original not in _annotations(live):
        return live
    return _with(live, keys, {uid: mark for uid, mark in _all(live, keys).items() if uid != by})


def others(live: Object, by: str, keys: Keys) -> tuple[str, ...]:
    """UIDs of other Rollouts that have an entry on the object, sorted."""
    return tuple(sorted(uid for uid in _all(live, keys) if uid != by))


def put_made(manifest: Object, by: str, keys: Keys, mark: Mark | None = None) -> Object:
    """The manifest of an object that a release creates, with an entry that says so and the content of ``mark``."""
    return put(manifest, by, keys, {**(mark or {}), _MADE: manifest["metadata"]["name"]})


def says_made(live: Object, by: str, keys: Keys) -> bool:
    """Whether the entry says that a release of the Rollout with UID ``by`` created exactly this object."""
    name: str = live["metadata"]["name"]
    return name == (read(live, by, keys) or {}).get(_MADE)


def controlled_by(live: Object, by: str, keys: Keys) -> bool:
    """Whether the Rollout with UID ``by`` is the object's controller. That alone does not prove that the Rollout
    created it: users may set a Rollout as owner of their objects, so that these are deleted with it.
    """
    kind = rollouts(keys.group)
    owners = live["metadata"].get("ownerReferences") or ()
    return any(
        each.get("controller") is True
        and each.get("uid") == by
        and each.get("kind") == kind.kind
        and str(each.get("apiVersion")).startswith(f"{kind.group}/")
        for each in owners
    )


def _annotations(live: Object) -> Mapping[str, str]:
    return (live.get("metadata") or {}).get("annotations") or {}


def _all(live: Object, keys: Keys) -> dict[str, Mark]:
    text = _annotations(live).get(keys.original)
    if not text:
        return {}
    try:
        marks = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, TypeError):
        return {}
    return {uid: mark for uid, mark in marks.items() if isinstance(mark, dict)} if isinstance(marks, dict) else {}


def _with(live: Object, keys: Keys, marks: Mapping[str, Mark | Struct]) -> Object:
    annotations = {key: value for key, value in _annotations(live).items() if key != keys.original}
    if marks:
        annotations[keys.original] = msgspec.json.encode(marks, order="sorted").decode()
    metadata = {key: value for key, value in (live.get("metadata") or {}).items() if key != "annotations"}
    if annotations:
        metadata["annotations"] = annotations
    return {**live, "metadata": metadata}
