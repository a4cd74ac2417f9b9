"""Which versions an LWS runs, wants and remembers; and the versions that a Rollout remembers itself.

Revision = LWS's ``template-revision-hash``, read from labels, never computed. LWS has a record (a ControllerRevision)
of each, and deletes the old ones once a roll is complete, so each version of a release is also stored as one that the
Rollout owns. To an LWS that is held no roll is ever complete: what it does not need any more we delete in its stead.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import msgspec

from rollout_lws.api.resources import Keys
from rollout_lws.objects.resources import CONTROLLER_REVISIONS, LWS_REVISION
from rollout_lws.objects.workloads import ControllerRevision
from rollout_lws.workload.facts import Facts
from rollout_lws.workload.template import Version, version_of_members

#: Stored versions a Rollout, the stable one always among them.
HISTORY_LIMIT = 10
#: Records of LWS that are kept although nothing needs them: nobody is to race for a version that has just gone.
SPARE_RECORDS = 5
#: How what zlib has compressed begins, and no JSON does.
_COMPRESSED = b"x"
#: Records that one decision lets go of; the rest of many is for those that follow it.
RECORDS_AT_ONCE = 10


def observed(facts: Facts) -> bool:
    """Whether LWS has acted on the spec that we see, and the StatefulSet controller on what LWS made of it."""
    leader_set = facts.leader_set
    return (
        (facts.lws.status.observed_generation or 0) >= facts.lws.metadata.generation
        and leader_set is not None
        and leader_set.status.observed_generation >= leader_set.metadata.generation
    )


def target_revision(facts: Facts) -> str:
    """The revision of the live spec; meaningful once ``observed``."""
    return facts.leader_set.revision if facts.leader_set else ""


def current_revision(facts: Facts) -> str:
    """The revision that a recreated group below the partition comes back with; "" when it cannot be told."""
    return _revision_of(facts, facts.leader_set.status.current_revision) if facts.leader_set else ""


def comes_back_at(facts: Facts, ordinal: int) -> str:
    """The revision that a group gets whose leader is made anew now; "" when it cannot be told."""
    if facts.leader_set is None:
        return ""
    held = ordinal < facts.leader_set.spec.update_strategy.rolling_update.partition
    return current_revision(facts) if held else target_revision(facts)


def set_is_settled(facts: Facts) -> bool:
    """Whether the leader StatefulSet holds one version only: what it recreates is what it would update to."""
    status = facts.leader_set.status if facts.leader_set else None
    return status is not None and bool(status.current_revision) and status.current_revision == status.update_revision


def is_empty(facts: Facts) -> bool:
    """Whether an LWS of 0 groups has none left, and would start the version of its template when scaled up.

    A StatefulSet whose last pod is going still remembers the old version: scaled up at that moment, it starts that one.
    """
    return observed(facts) and not facts.leaders and set_is_settled(facts)


def _revision_of(facts: Facts, name: str) -> str:
    for revision in facts.set_revisions:
        if revision.metadata.name == name:
            return revision.metadata.labels.get(LWS_REVISION, "")
    for leader in facts.leaders:
        if leader.metadata.labels.get("controller-revision-hash") == name:
            return leader.revision
    return target_revision(facts) if set_is_settled(facts) else ""


def leaders_revisions(facts: Facts) -> frozenset[str]:
    """The revisions that exist as groups, terminating leaders included."""
    return frozenset(leader.revision for leader in facts.leaders)


def lws_revision(facts: Facts, revision: str) -> ControllerRevision | None:
    """LWS's own record of a revision, None when it has deleted it."""
    found = [
        each
        for each in facts.revisions
        if each.metadata.labels.get(LWS_REVISION) == revision and not each.metadata.terminating
    ]
    return max(found, key=lambda each: each.revision, default=None)


def needless_records(facts: Facts, stable: str) -> list[ControllerRevision]:
    """LWS's own records that nothing can ask for any more, the oldest first, at most ``RECORDS_AT_ONCE``.

    LWS makes a group's workers, whenever its leader comes or changes, from the newest record of the leader's revision.
    So that one stays of each revision that a group carries, that a leader could come back with, or that the LWS or we
    (``stable``) mean to run; older ones of these revisions only make LWS complain in its log. Of the other revisions
    the newest ``SPARE_RECORDS`` records stay too. Nothing is needless while any of this is unknown.
    """
    current = current_revision(facts)
    if not observed(facts) or not (lws_revision(facts, current) and lws_revision(facts, target_revision(facts))):
        return []
    worker_sets = (each.metadata.labels.get(LWS_REVISION, "") for each in facts.worker_sets)
    needed = {stable, current, target_revision(facts), *leaders_revisions(facts), *worker_sets}
    by_age = sorted((each for each in facts.revisions if not each.metadata.terminating), key=lambda each: each.revision)
    latest: dict[str | None, int] = {}
    for each in reversed(by_age):
        latest.setdefault(each.metadata.labels.get(LWS_REVISION), id(each))
    newest = {latest.get(revision) for revision in needed}
    others = [each for each in by_age if id(each) not in newest]
    again = [each for each in others if each.metadata.labels.get(LWS_REVISION) in needed]
    past = [each for each in others if each.metadata.labels.get(LWS_REVISION) not in needed]
    return [*again, *past[: max(0, len(past) - SPARE_RECORDS)]][:RECORDS_AT_ONCE]


def recorded_version(record: ControllerRevision) -> Version | None:
    """The version inside a ControllerRevision of LWS or of ours; None when its data has another shape."""
    return _recorded(bytes(record.data))


def compressed(record: ControllerRevision) -> ControllerRevision:
    """The same record for somebody who keeps thousands of them."""
    return msgspec.structs.replace(record, data=msgspec.Raw(zlib.compress(record.data, 1)))


# A release asks for the same two or three each time that it is looked at; what it asks for takes 15 kB.
@lru_cache(maxsize=256)
def _recorded(document: bytes) -> Version | None:
    data = _data(document)
    spec = data.get("spec") if isinstance(data, dict) else None
    if not isinstance(spec, dict) or "leaderWorkerTemplate" not in spec:
        return None
    return version_of_members(spec)


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
    """A version to remember, as an apps/v1 ControllerRevision; ``number`` grows with each release. ``name`` is given
    where the usual one is taken.
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
    """A remembered version as it is created once more under ``name``, with these annotations and this ``number``."""
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
    """Stored versions beyond the limit, the newest release first; never ``kept``. Of many the oldest that one decision
    lets go of, ``RECORDS_AT_ONCE``.
    """
    by_age = sorted(history, key=lambda each: each.revision, reverse=True)
    return [each for each in by_age[HISTORY_LIMIT:] if each is not kept][-RECORDS_AT_ONCE:]
