"""The object that a script changes: what of it the script sees, and a Rollout's annotation entry on it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any

import msgspec

from rollout_lws.api.resources import Keys
from rollout_lws.objects.meta import Struct
from rollout_lws.objects.resources import ObjectRef
from rollout_lws.traffic import marks
from rollout_lws.traffic.custom.changes import Change, Data, aligned, changes, mentions, stands, undone, value_at
from rollout_lws.traffic.split import Object
from rollout_lws.workload.applied import LAST_APPLIED

#: Members of metadata that scripts see.
_METADATA = ("labels", "annotations")


class CustomMark(Struct, frozen=True):
    """``changes`` are those of the script, made for the split of ``weight`` percent and so many ``matches``;
    ``evaluation`` is the digest of script and input that they came of, "" for none. ``canary_service`` is the new
    version's Service. ``listed_at`` is since when the object names that without requests, None once it has given some.
    ``carried``: it has given the new version requests in this release.
    """

    canary_service: str
    weight: int = 0
    matches: int = 0
    evaluation: str = ""
    changes: tuple[Change, ...] = ()
    listed_at: Annotated[datetime, msgspec.Meta(tz=True)] | None = None
    carried: bool = False

    @property
    def withdrawn(self) -> bool:
        """Whether the release itself has taken back what it had written."""
        return self.listed_at is None and not (self.weight or self.matches)


def read(live: Object, by: str, keys: Keys) -> CustomMark | None:
    """The entry of the Rollout with UID ``by``; None without one of this form."""
    mark = marks.read(live, by, keys)
    # Entries of other kinds of routers have other members.
    return marks.read_as(CustomMark, live, by, keys) if mark is not None and "canaryService" in mark else None


def scripted(live: Object, by: str, keys: Keys) -> bool:
    """Whether a script has changed the object for another Rollout than the one with UID ``by``."""
    return any(read(live, uid, keys) is not None for uid in marks.others(live, by, keys))


def changed_by_script(ref: ObjectRef) -> str:
    """Why a release may not write an object that another Rollout's release has changed, where either is by a script."""
    return (
        f"{ref} is changed by the release of another Rollout, and what a script writes cannot be told apart from other"
        " changes: wait until that is over"
    )


def data_of(live: Object, keys: Keys) -> dict[str, Any]:
    """What a script sees: the spec, labels and annotations, without our annotation and kubectl's copy of the object."""
    metadata = live.get("metadata") or {}
    hidden = {keys.original, LAST_APPLIED}
    found: dict[str, Any] = {"spec": live.get("spec") or {}}
    for member in _METADATA:
        found[member] = {key: value for key, value in (metadata.get(member) or {}).items() if key not in hidden}
    return found


def with_data(live: Object, data: Data, keys: Keys) -> Object:
    """The object with this data."""
    before = live.get("metadata") or {}
    metadata = {key: value for key, value in before.items() if key not in _METADATA}
    hidden = {
        key: value for key, value in (before.get("annotations") or {}).items() if key in {keys.original, LAST_APPLIED}
    }
    for member in _METADATA:
        values = {**data.get(member, {}), **(hidden if member == "annotations" else {})}
        if values or before.get(member) == {}:
            metadata[member] = values
    found = {**live, "metadata": metadata}
    if data["spec"] or "spec" in live:
        found["spec"] = data["spec"]
    return found


def own(live: Object, by: str, keys: Keys, *, again: bool = False) -> dict[str, Any]:
    """The data of the user's own object: without what the Rollout has changed. With ``again``, what another writer has
    changed of that counts for nothing, since it is about to be written anew.
    """
    data, mark = data_of(live, keys), read(live, by, keys)
    if mark is None:
        return data
    found = undone(data, mark.changes, again=again)
    for each in mark.changes:
        # An edit of what the release has added keeps no requests at a Service that goes with the release.
        left = value_at(found, each.path)
        if mentions(left, mark.canary_service) and not mentions(each.before, mark.canary_service):
            found = undone(found, (msgspec.structs.replace(each, after=left),))
    return found


def restored(live: Object, by: str, keys: Keys) -> Object:
    """The user's own object, without the entry."""
    return marks.without(with_data(live, own(live, by, keys), keys), by, keys)


def drifted(live: Object, by: str, keys: Keys) -> bool:
    """Whether another writer has changed or removed what the Rollout has written."""
    mark = read(live, by, keys)
    return mark is not None and not stands(data_of(live, keys), mark.changes)


def written(live: Object, by: str, keys: Keys, before: Data, after: Data, mark: CustomMark) -> Object:
    """The object with data ``after``, and with an entry of what that changes in the user's own, ``before``."""
    made = msgspec.structs.replace(mark, changes=changes(before, after))
    return marks.put(with_data(live, after, keys), by, keys, made)


def returned(before: Data, body: bytes) -> dict[str, Any] | str:
    """The data that a script has returned for ``before``, as the object has it; a sentence that says what is wrong
    where it is no such data. Labels and annotations that it leaves out stay as they are.
    """
    found = msgspec.json.decode(body)
    if not isinstance(found, dict):
        return "it returns no table: let it end with return obj.data"
    result: dict[str, Any] = {**before}
    for member in ("spec", *_METADATA):
        if member not in found:
            continue
        given = {} if found[member] is None else found[member]
        if not isinstance(given, dict):
            return f"it returns {member} that is no object"
        result[member] = aligned(before[member], given)
    if before["spec"] and not ("spec" in found and result["spec"]):
        return "it returns no spec, which would empty the object: let it end with return obj.data"
    for member in _METADATA:
        wrong = next((key for key, value in result[member].items() if not isinstance(value, str)), None)
        if wrong is not None:
            return f"it returns {member}[{wrong!r}] that is no text: use tostring"
    return result


def input_of(data: Data, said: Mapping[str, Any]) -> bytes:
    """The input of a script, as JSON: always the same text for the same data and split."""
    return msgspec.json.encode({"data": {key: value for key, value in data.items() if value}, **said}, order="sorted")
