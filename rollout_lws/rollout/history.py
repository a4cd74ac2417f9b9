"""The versions that a Rollout remembers itself, each by our hash of it; and those that LWS need not remember."""

from __future__ import annotations

from collections.abc import Mapping, Set
from datetime import UTC, datetime
from typing import Any

from rollout_lws.api import rollouts
from rollout_lws.objects.resources import CONTROLLER_REVISIONS
from rollout_lws.objects.workloads import ControllerRevision
from rollout_lws.objects.writes import Create, Delete, Patch
from rollout_lws.release.record import owner_reference
from rollout_lws.rollout.decision import Chore
from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.reasons import Ending
from rollout_lws.workload.revisions import (
    history_again,
    history_body,
    history_name,
    lws_revision,
    needless_records,
    recorded_version,
    surplus_history,
)
from rollout_lws.workload.template import Version


def store_version(d: Draft, version: Version, revision: str) -> None:
    """Keep the version in the Rollout's own history, as the newest release of it."""
    meta = d.o.rollout.metadata
    newest = max((each.revision for each in d.o.history), default=0)
    stored = _stored(d, version.template_hash)
    if stored is not None:
        # The limit drops what was released longest ago, not what was first released longest ago.
        number = newest + 1 if stored.revision < newest else None
        marks = {d.keys.went_back: None} if d.keys.went_back in stored.metadata.annotations else {}
        if number is not None or marks:
            _note(d, stored, "the version is released again", marks, number)
        return
    body = history_body(
        version,
        d.keys,
        rollout=meta.name,
        namespace=meta.namespace,
        owner=_owner(d),
        number=newest + 1,
        revision=revision,
    )
    d.write((Create(CONTROLLER_REVISIONS, body, "to be able to go back to it"),))


def stable_version(d: Draft) -> Version | None:
    """The stable version as it was stored, or as LWS remembers it; None when neither does."""
    record = d.status.stable
    if record is None:
        return None
    known = _stored(d, record.template_hash) or lws_revision(d.stable, record.revision)
    return recorded_version(known) if known else None


def drop_surplus(d: Draft) -> None:
    """Forget what was released longest ago; never the stable version."""
    kept = _stored(d, d.status.stable.template_hash) if d.status.stable else None
    doubles = _doubles(d)
    surplus = surplus_history(tuple(each for each in d.o.history if each not in doubles), kept)
    d.write(_deletion(each, "more than ten versions") for each in surplus)


def drop_doubles(d: Draft) -> None:
    """Delete what has been stored anew under another name since, as soon as that is seen. Where that is refused, by a
    policy for instance, both stay, and the later one counts.
    """
    d.chores += [Chore(_deletion(each, "it is stored anew")) for each in _doubles(d)]


def _doubles(d: Draft) -> list[ControllerRevision]:
    """Of two records of one version the former one, unless its annotation is all that tells what the status means."""
    known = _known(d)
    return [
        each
        for each in d.o.history
        if any(_age(other) > _age(each) and _is_again(d, each, other, known) for other in d.o.history)
    ]


def _is_again(d: Draft, stored: ControllerRevision, other: ControllerRevision, known: Set[str]) -> bool:
    before, after = _annotated(d, stored), _annotated(d, other)
    # A version that gets another hash keeps its number. What both are is read last: that takes time.
    alike = before == after or (stored.revision == other.revision and before not in known)
    return alike and hash_of(stored) == hash_of(other) != ""


def _age(stored: ControllerRevision) -> tuple[int, datetime, str]:
    """By which the later of two records of one version is known."""
    meta = stored.metadata
    return stored.revision, meta.creation_timestamp or datetime.min.replace(tzinfo=UTC), meta.name


def drop_needless(d: Draft) -> None:
    """Delete LWS's own records of versions that nothing needs: it keeps all of them for as long as it is held. Where
    that is refused, by a policy for instance, they stay.
    """
    found = needless_records(d.stable, d.status.stable.revision if d.status.stable else "")
    seen = d.confirmed_leader_set("the revisions that groups may come back with")
    if found and seen is not None:
        d.chores += [Chore(seen), *(Chore(_deletion(each, "no group needs it")) for each in found)]


def _deletion(record: ControllerRevision, reason: str) -> Delete:
    meta = record.metadata
    return Delete(CONTROLLER_REVISIONS, meta.namespace, meta.name, meta.uid, reason)


def note_left(d: Draft, ending: Ending) -> None:
    """Mark the version whose release did not end with it: whoever wants "the version before" does not mean that one."""
    stored = _stored(d, d.status.observed_template_hash or "")
    if stored is not None and stored.metadata.annotations.get(d.keys.went_back) != ending.value:
        _note(d, stored, "its release did not end with it", {d.keys.went_back: ending.value})


def follow_hashes(d: Draft) -> None:
    """Call the versions on record by their hashes of today.

    Another release of this controller may know more that means the same, and so have hashed a version differently: it
    would be taken for one that nobody has seen, in the middle of its own release. The versions themselves are stored.
    Their annotations follow once the status is written: until then they are all that tells which version it means.
    """
    status = d.status
    if d.o.stable is None or status.stable is None or status.stable.workload_uid != d.stable.lws.metadata.uid:
        return
    known = _known(d)
    told = {_annotated(d, each) for each in d.o.history}
    if d.version.template_hash not in known:
        today = {_annotated(d, each): hash_of(each) for each in d.o.history if _annotated(d, each) in known}
        today = {before: after for before, after in today.items() if after}
        if any(before != after for before, after in today.items()):
            _rename(d, today)
    elif known - told:
        for each in d.o.history:
            if hash_of(each) in known - told:
                _note(d, each, "the version has another hash today", {d.keys.template_hash: hash_of(each)})


def _known(d: Draft) -> Set[str]:
    """The hashes that the status knows versions by."""
    known = {each.template_hash for each in (d.status.stable, d.status.aborted) if each}
    return known | ({d.status.observed_template_hash} if d.status.observed_template_hash else set())


def _rename(d: Draft, today: Mapping[str, str]) -> None:
    def renamed(record: Any) -> Any:
        if record is None or record.template_hash not in today:
            return record
        return record.model_copy(update={"template_hash": today[record.template_hash]})

    observed = d.status.observed_template_hash
    d.set(
        stable=renamed(d.status.stable),
        aborted=renamed(d.status.aborted),
        observed_template_hash=today.get(observed, observed) if observed else observed,
    )


def hash_of(stored: ControllerRevision) -> str:
    """Today's hash of a stored version; "" of one that nobody can read."""
    version = recorded_version(stored)
    return version.template_hash if version is not None else ""


def _annotated(d: Draft, stored: ControllerRevision) -> str:
    return stored.metadata.annotations.get(d.keys.template_hash, "")


def _stored(d: Draft, template_hash: str) -> ControllerRevision | None:
    told = [each for each in d.o.history if _annotated(d, each) == template_hash]
    return max(told or [each for each in d.o.history if hash_of(each) == template_hash], key=_age, default=None)


def _note(
    d: Draft, stored: ControllerRevision, reason: str, annotations: Mapping[str, str | None], number: int | None = None
) -> None:
    """Change annotations (None removes one) and, if given, the number of a stored version.

    Kubernetes refuses every patch of one whose data was stored in another spelling than Go's: that is stored anew,
    beside it, for a version must never be stored nowhere.
    """
    meta = stored.metadata
    body: dict[str, Any] = {"metadata": {"annotations": dict(annotations)}} if annotations else {}
    if number is not None:
        body["revision"] = number
    kept = {**meta.annotations, **annotations}
    again = history_again(
        stored,
        name=_another_name(d, stored, str(kept.get(d.keys.template_hash) or "")),
        owner=_owner(d),
        annotations={key: value for key, value in kept.items() if value is not None},
        number=stored.revision if number is None else number,
    )
    anew = Create(CONTROLLER_REVISIONS, again, reason)
    d.write((Patch(CONTROLLER_REVISIONS, meta.namespace, meta.name, body, reason, if_invalid=anew),))


def _another_name(d: Draft, stored: ControllerRevision, template_hash: str) -> str:
    name = history_name(d.o.rollout.metadata.name, template_hash)
    return name if name != stored.metadata.name else f"{name}-2"


def _owner(d: Draft) -> dict[str, Any]:
    resource = rollouts(d.keys.group)
    return owner_reference(d.o.rollout, resource.kind, resource.api_version)
