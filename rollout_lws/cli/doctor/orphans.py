"""Pods and StatefulSets whose owner is gone, and which stand where their successor has to be.

The garbage collector deletes them at once, mostly. One that has lost an owner's deletion (after its API server was
killed) notices only when its process starts anew: until then a StatefulSet that was made again under the same name
cannot make its pod, and the group never gets ready.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from rollout_lws.objects.meta import Meta
from rollout_lws.objects.resources import PODS, STATEFUL_SETS, Resource
from rollout_lws.objects.workloads import Pod, StatefulSet

#: Seconds in which a garbage collector that sees an owner's deletion has acted on it.
COLLECTED_SECONDS = 30


@dataclass(frozen=True, slots=True)
class Orphan:
    """``owner`` is the name of who owned it, ``since`` when the successor was made that cannot take its place."""

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
    """Those of one LWS, by name: pods of StatefulSets that are no more, StatefulSets of leaders that are no more."""
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
        # Where nobody has taken the owner's name nothing is in the way of anybody.
        return None
    return Orphan(resource, meta.name, owner.name, owner.uid, now.creation_timestamp)
