"""Orphaned pods and StatefulSets: their owner is gone, and their names block the successor.

The garbage collector usually deletes them at once. One that missed an owner's deletion (after its API server was
killed) notices only when it restarts; until then a recreated StatefulSet of the same name cannot create its pod, and
the group never becomes ready.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from rollout_lws.objects.meta import Meta
from rollout_lws.objects.resources import PODS, STATEFUL_SETS, Resource
from rollout_lws.objects.workloads import Pod, StatefulSet

#: Seconds within which a garbage collector that sees an owner's deletion acts on it.
COLLECTED_SECONDS = 30


@dataclass(frozen=True, slots=True)
class Orphan:
    """``owner`` is the former owner's name, ``since`` the creation time of the successor that the orphan blocks."""

    resource: Resource
    name: str
    owner: str
    owner_uid: str
    since: datetime | None

    @property
    def kind(self) -> str:
        return self.resource.kind

    def is_missed(self, now: datetime) -> bool:
        return self.since is None or (now - self.since).total_seconds() >= COLLECTED_SECONDS


def orphans(pods: Iterable[Pod], leaders: Iterable[Pod], sets: Iterable[StatefulSet]) -> tuple[Orphan, ...]:
    """Orphans of one LWS, by name: pods of StatefulSets that are gone, StatefulSets of leaders that are gone."""
    by_name = {each.metadata.name: each.metadata for each in sets}
    leading = {each.metadata.name: each.metadata for each in leaders}
    found = [_orphan(PODS, each.metadata, STATEFUL_SETS.kind, by_name) for each in pods]
    found += [_orphan(STATEFUL_SETS, each.metadata, PODS.kind, leading) for each in sets]
    return tuple(sorted((each for each in found if each is not None), key=lambda each: each.name))


def _orphan(resource: Resource, meta: Meta, kind: str, owners: dict[str, Meta]) -> Orphan | None:
    owner = meta.controller
    if owner is None or owner.kind != kind or meta.terminating:
        return None
    now = owners.get(owner.name)
    if now is None or now.uid == owner.uid:
        # Without a new object of the owner's name, the orphan blocks nothing.
        return None
    return Orphan(resource, meta.name, owner.name, owner.uid, now.creation_timestamp)
