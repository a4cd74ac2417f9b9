"""The Rollout's history: ControllerRevisions of released versions, by our hash; and LWS's own that can go."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from heapq import nlargest
from itertools import chain, combinations, count
from typing import Any

from rollout_lws.api import rollouts
from rollout_lws.capacity.batch_release import owner_reference
from rollout_lws.objects.resources import CONTROLLER_REVISIONS
from rollout_lws.objects.workloads import ControllerRevision
from rollout_lws.objects.writes import Create, Delete, Patch
from rollout_lws.rollout.decision import BestEffort
from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.reasons import Ending
from rollout_lws.targets.version import Version
from rollout_lws.workload.revisions import (
    HISTORY_LIMIT,
    history_again,
    history_body,
    history_name,
    lws_revision,
    needless_records,
    recorded_version,
    surplus_history,
)

#: Largest revision number of a ControllerRevision.
LAST_NUMBER = 2**63 - 1


def store_version(d: Draft, version: Version, revision: str) -> Draft:
    """Stores the version in the Rollout's history as its newest release."""
    meta = d.o.rollout.metadata
    newest = max((each.revision for each in d.o.history), default=0)
    following = min(newest + 1, LAST_NUMBER)
    stored = stored_as(d, version.template_hash)
    if stored is not None:
        # The history limit drops the version with the oldest last release, not the oldest first release.
        number = following if stored.revision < newest else None
        marks = {d.keys.rollback_reason: None} if d.keys.rollback_reason in stored.metadata.annotations else {}
        if number is not None or marks:
            d = _annotate(d, stored, "the version is released again", marks, number)
        return d
    body = history_body(
        version,
        d.keys,
        name=_free_name(d, version.template_hash),
        rollout=meta.name,
        namespace=meta.namespace,
        owner=_owner(d),
        number=following,
        revision=revision,
    )
    return d.write((Create(CONTROLLER_REVISIONS, body, "to be able to go back to it"),))


def record_stable(
    d: Draft, version: Version, revision: str, confirmed: str = "the revision that is recorded as stable"
) -> Draft:
    """Records the version as stable, and in the history, on condition that the leader StatefulSet is as observed;
    ``confirmed`` says what depends on that. Only for rules that run after the adoption.
    """
    d = d.confirm_leader_set(confirmed, d.stable)
    changes = {"template_hash": version.template_hash, "revision": revision}
    stable = d.status.stable
    d = d.set(stable=stable.model_copy(update=changes)) if stable is not None else d
    return store_version(d, version, revision)


def stable_version(d: Draft) -> Version | None:
    """The stable version from the Rollout's history, or else from LWS's revision; None if neither has it."""
    record = d.status.stable
    if record is None:
        return None
    # A terminating record still holds the version's content.
    going = (each for each in d.o.history if each.metadata.terminating and _annotated(d, each) == record.template_hash)
    known = (
        stored_as(d, record.template_hash)
        or lws_revision(d.stable, record.revision)
        or max(going, key=_age, default=None)
    )
    return recorded_version(known) if known else None


def drop_surplus(d: Draft) -> Draft:
    """Deletes the versions released longest ago; never the stable version."""
    kept = stored_as(d, d.status.stable.template_hash) if d.status.stable else None
    doubles = {each.metadata.name for each in _doubles(d)}
    surplus = surplus_history(tuple(each for each in _standing(d) if each.metadata.name not in doubles), kept)
    return d.write(_deletion(each, "more than ten versions") for each in surplus)


def drop_doubles(d: Draft) -> Draft:
    """Deletes records that were since stored again under another name. If the API server refuses, because of a policy
    for instance, both records stay and the later one counts.
    """
    return d.write_if_possible(BestEffort(_deletion(each, "it is stored anew")) for each in _doubles(d))


def _doubles(d: Draft) -> list[ControllerRevision]:
    """The older of two records of one version."""
    pairs = [pair for pair in combinations(_latest(d), 2) if _annotated(d, pair[0]) == _annotated(d, pair[1])]
    # Hashing takes time: only these records, and each once.
    candidates = {each.metadata.name: each for pair in pairs for each in pair}
    hashes = {name: _hash_of(each) for name, each in candidates.items()}
    found = {
        former.metadata.name: former
        for latter, former in pairs
        if hashes[former.metadata.name] == hashes[latter.metadata.name] != ""
    }
    return list(found.values())


def _standing(d: Draft) -> tuple[ControllerRevision, ...]:
    """The records that are not terminating; only finalizers keep the others."""
    return tuple(each for each in d.o.history if not each.metadata.terminating)


def _latest(d: Draft) -> list[ControllerRevision]:
    """The records of the latest releases, newest first: more than a Rollout keeps, but a bounded number, because any
    user who may create ControllerRevisions can name the Rollout as owner.
    """
    return nlargest(2 * HISTORY_LIMIT, _standing(d), key=_age)


def _age(stored: ControllerRevision) -> tuple[int, datetime, str]:
    """Sort key that orders records of one version by age."""
    meta = stored.metadata
    return stored.revision, meta.creation_timestamp or datetime.min.replace(tzinfo=UTC), meta.name


def drop_needless(d: Draft) -> Draft:
    """Deletes LWS's own revisions that nothing needs: a held LWS keeps all of them, and one without groups those of
    versions that were applied meanwhile. If the API server refuses, because of a policy for instance, they stay.
    """
    for facts in d.o.workloads:
        if facts is d.made or (d.paired and not d.scales_sides):
            continue
        found = needless_records(facts, d.stable_revision if facts is d.o.stable else "")
        seen = d.confirmed_leader_set("the revisions that groups may come back with", facts)
        if found and seen is not None:
            deletions = (BestEffort(_deletion(each, "no group needs it")) for each in found)
            d = d.write_if_possible((BestEffort(seen), *deletions))
    return d


def _deletion(record: ControllerRevision, reason: str) -> Delete:
    meta = record.metadata
    return Delete(CONTROLLER_REVISIONS, meta.namespace, meta.name, meta.uid, reason)


def record_outcome(d: Draft, ending: Ending) -> Draft:
    """Annotates a version whose release did not end with it, so that "the previous version" skips it."""
    stored = stored_as(d, d.status.observed_template_hash or "")
    if stored is not None and stored.metadata.annotations.get(d.keys.rollback_reason) != ending.value:
        d = _annotate(d, stored, "its release did not end with it", {d.keys.rollback_reason: ending.value})
    return d


def _hash_of(stored: ControllerRevision) -> str:
    """The current hash of a stored version; "" if the record is unreadable."""
    version = recorded_version(stored)
    return version.template_hash if version is not None else ""


def _annotated(d: Draft, stored: ControllerRevision) -> str:
    return stored.metadata.annotations.get(d.keys.template_hash, "")


def stored_as(d: Draft, template_hash: str) -> ControllerRevision | None:
    """The record of a version, by its hash annotation, else by its content; None if it is not stored or terminating."""
    told = [each for each in _standing(d) if _annotated(d, each) == template_hash]
    if told:
        return max(told, key=_age)
    return next((each for each in _latest(d) if _hash_of(each) == template_hash), None)


def _annotate(
    d: Draft, stored: ControllerRevision, reason: str, annotations: Mapping[str, str | None], number: int | None = None
) -> Draft:
    """Changes annotations (None removes one) and, if given, the number of a stored version.

    Kubernetes refuses every patch of a record whose data is not spelled as Go spells it. Such a record is stored again
    under another name before the old one goes, because a version must never be without a record.
    """
    meta = stored.metadata
    body: dict[str, Any] = {"metadata": {"annotations": dict(annotations)}} if annotations else {}
    if number is not None:
        body["revision"] = number
    kept = {**meta.annotations, **annotations}
    again = history_again(
        stored,
        name=_free_name(d, str(kept.get(d.keys.template_hash) or "")),
        owner=_owner(d),
        annotations={key: value for key, value in kept.items() if value is not None},
        number=stored.revision if number is None else number,
    )
    anew = Create(CONTROLLER_REVISIONS, again, reason)
    return d.write((Patch(CONTROLLER_REVISIONS, meta.namespace, meta.name, body, reason, if_invalid=anew),))


def _free_name(d: Draft, template_hash: str) -> str:
    """A free name for a record of a version: a terminating record may still have the usual name."""
    taken = {each.metadata.name for each in d.o.history}
    name = history_name(d.o.rollout.metadata.name, template_hash)
    numbered = (f"{name}-{number}" for number in count(2))
    return next(each for each in chain((name,), numbered) if each not in taken)


def _owner(d: Draft) -> dict[str, Any]:
    resource = rollouts(d.keys.group)
    return owner_reference(d.o.rollout, resource.kind, resource.api_version)
