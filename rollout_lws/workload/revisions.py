"""Revisions of an LWS: which it runs, wants and stores, and the version history that a Rollout stores itself.

A revision is LWS's ``template-revision-hash``, read from labels, never computed. LWS stores each as a
ControllerRevision and deletes old ones once a rolling update completes, so a Rollout stores each version of a release
in its own. On a held LWS no rolling update completes, so the controller deletes LWS's unneeded ones.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import msgspec

from rollout_lws.api.resources import Keys
from rollout_lws.objects.resources import CONTROLLER_REVISIONS
from rollout_lws.objects.workloads import ControllerRevision
from rollout_lws.targets.table import stored_version
from rollout_lws.targets.version import Version
from rollout_lws.workload.facts import Facts

#: Stored versions per Rollout, always including the stable one.
HISTORY_LIMIT = 10
#: LWS's records that are kept although unneeded, to avoid a race for a version that has just gone.
SPARE_RECORDS = 5
#: First byte of zlib-compressed data; no JSON begins with it.
_COMPRESSED = b"x"
#: Records that one decision deletes; later decisions delete the rest.
RECORDS_AT_ONCE = 10


def observed(facts: Facts) -> bool:
    """Whether LWS has observed the spec that we see, and the StatefulSet controller what LWS derived from it."""
    if not facts.workload.can_be_held:
        acted = facts.workload.observed_generation >= facts.workload.metadata.generation
        return acted and _newest_record(facts) is not None
    leader_set = facts.leader_set
    return (
        (facts.workload.observed_generation) >= facts.workload.metadata.generation
        and leader_set is not None
        and leader_set.status.observed_generation >= leader_set.metadata.generation
    )


def target_revision(facts: Facts) -> str:
    """The revision of the live spec; meaningful once ``observed``."""
    if not facts.workload.can_be_held:
        newest = _newest_record(facts)
        return newest.revision_hash if newest is not None else ""
    return facts.leader_set.revision if facts.leader_set else ""


def current_revision(facts: Facts) -> str:
    """The revision that a recreated group below the partition gets; "" when it is unknown."""
    if not facts.workload.can_be_held:
        return target_revision(facts)
    return _revision_of(facts, facts.leader_set.status.current_revision) if facts.leader_set else ""


def comes_back_at(facts: Facts, ordinal: int) -> str:
    """The revision that the group at this place gets if its leader is recreated now; "" when it is unknown."""
    if facts.leader_set is None:
        return "" if facts.workload.can_be_held else target_revision(facts)
    held = ordinal < facts.leader_set.spec.update_strategy.rolling_update.partition
    return current_revision(facts) if held else target_revision(facts)


def set_is_settled(facts: Facts) -> bool:
    """Whether the leader StatefulSet has only one version: it recreates pods with the version it would update to."""
    if not facts.workload.can_be_held:
        return True
    status = facts.leader_set.status if facts.leader_set else None
    return status is not None and bool(status.current_revision) and status.current_revision == status.update_revision


def is_empty(facts: Facts) -> bool:
    """Whether an LWS with 0 replicas has no groups left, and would start its template's version when scaled up.

    While its last pod terminates, a StatefulSet still has the old version, and starts that one when scaled up.
    """
    return observed(facts) and not facts.leaders and set_is_settled(facts)


def _newest_record(facts: Facts) -> ControllerRevision | None:
    """LWS's record of the version in the spec where no StatefulSet tells it: LWS stores one, with the highest number,
    before it says that it has observed the spec.
    """
    found = (each for each in facts.revisions if not each.metadata.terminating)
    return max(found, key=lambda each: each.revision, default=None)


def _revision_of(facts: Facts, name: str) -> str:
    for revision in facts.set_revisions:
        if revision.metadata.name == name:
            return revision.revision_hash
    for leader in facts.leaders:
        if leader.metadata.labels.get("controller-revision-hash") == name:
            return leader.revision
    return target_revision(facts) if set_is_settled(facts) else ""


def leaders_revisions(facts: Facts) -> frozenset[str]:
    """The revisions that exist as groups, including terminating leaders."""
    return frozenset(leader.revision for leader in facts.leaders)


def lws_revision(facts: Facts, revision: str) -> ControllerRevision | None:
    """LWS's own record of a revision, None when LWS has deleted it."""
    found = [each for each in facts.revisions if each.revision_hash == revision and not each.metadata.terminating]
    return max(found, key=lambda each: each.revision, default=None)


def needless_records(facts: Facts, stable: str) -> list[ControllerRevision]:
    """LWS's own records that are not needed any more, the oldest first, at most ``RECORDS_AT_ONCE``.

    LWS creates a group's workers, whenever its leader is created or changes, from the newest record of the leader's
    revision. So that record stays for each revision that a group carries, that a leader could come back with, or that
    the LWS or the release (``stable``) means to run; older records of these revisions only cause errors in LWS's log.
    Of other revisions the newest ``SPARE_RECORDS`` records stay. While any of this is unknown, all are needed.
    """
    if facts.workload.leader_set is not None or not facts.workload.can_be_held:
        # The StatefulSet controller keeps as many as the user wants, and what is never held completes its updates.
        return []
    current = current_revision(facts)
    if not observed(facts) or not (lws_revision(facts, current) and lws_revision(facts, target_revision(facts))):
        return []
    worker_sets = (each.revision for each in facts.worker_sets)
    needed = {stable, current, target_revision(facts), *leaders_revisions(facts), *worker_sets}
    by_age = sorted((each for each in facts.revisions if not each.metadata.terminating), key=lambda each: each.revision)
    latest: dict[str | None, int] = {}
    for each in reversed(by_age):
        latest.setdefault(each.revision_hash, id(each))
    newest = {latest.get(revision) for revision in needed}
    others = [each for each in by_age if id(each) not in newest]
    again = [each for each in others if each.revision_hash in needed]
    past = [each for each in others if each.revision_hash not in needed]
    return [*again, *past[: max(0, len(past) - SPARE_RECORDS)]][:RECORDS_AT_ONCE]


def recorded_version(record: ControllerRevision) -> Version | None:
    """The version inside a ControllerRevision of LWS or of ours; None when its data has another shape."""
    return _recorded(bytes(record.data))


def compressed(record: ControllerRevision) -> ControllerRevision:
    """The same record with compressed data, for caches of thousands of records."""
    return msgspec.structs.replace(record, data=msgspec.Raw(zlib.compress(record.data, 1)))


# A release asks for the same two or three on every reconcile; each takes 15 kB.
@lru_cache(maxsize=256)
def _recorded(document: bytes) -> Version | None:
    data = _data(document)
    spec = data.get("spec") if isinstance(data, dict) else None
    return stored_version(spec) if isinstance(spec, dict) else None


def _data(document: bytes) -> Any:
    document = zlib.decompress(document) if document.startswith(_COMPRESSED) else document
    return msgspec.json.decode(document) if document else None


def history_name(rollout: str, template_hash: str) -> str:
    return f"{rollout}-{template_hash}"


def history_body(
    version: Version,
    keys: Keys,
    *,
    rollout: str,
    namespace: str,
    owner: Mapping[str, Any],
    number: int,
    revision: str,
    name: str = "",
) -> dict[str, Any]:
    """A version as an apps/v1 ControllerRevision of the history; ``number`` grows with each release. ``name`` is set
    when the usual one is taken.
    """
    return _history(
        name or history_name(rollout, version.template_hash),
        namespace,
        labels={keys.history: rollout},
        annotations={keys.template_hash: version.template_hash, keys.revision: revision},
        owner=owner,
        data={"spec": version.members},
        number=number,
    )


def history_again(
    stored: ControllerRevision, *, name: str, owner: Mapping[str, Any], annotations: Mapping[str, str], number: int
) -> dict[str, Any]:
    """A stored version to be created again under ``name``, with these annotations and this ``number``."""
    return _history(
        name,
        stored.metadata.namespace,
        labels=stored.metadata.labels,
        annotations=annotations,
        owner=owner,
        data=_data(bytes(stored.data)),
        number=number,
    )


def _history(
    name: str,
    namespace: str,
    *,
    labels: Mapping[str, str],
    annotations: Mapping[str, str],
    owner: Mapping[str, Any],
    data: Any,
    number: int,
) -> dict[str, Any]:
    return {
        "apiVersion": CONTROLLER_REVISIONS.api_version,
        "kind": CONTROLLER_REVISIONS.kind,
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": dict(labels),
            "annotations": dict(annotations),
            "ownerReferences": [dict(owner)],
        },
        "data": data,
        "revision": number,
    }


def surplus_history(
    history: tuple[ControllerRevision, ...], kept: ControllerRevision | None
) -> list[ControllerRevision]:
    """Stored versions beyond the limit, the newest release first; never ``kept``. Returns at most ``RECORDS_AT_ONCE``,
    the oldest, for one decision to delete.
    """
    by_age = sorted(history, key=lambda each: each.revision, reverse=True)
    return [each for each in by_age[HISTORY_LIMIT:] if each is not kept][-RECORDS_AT_ONCE:]
