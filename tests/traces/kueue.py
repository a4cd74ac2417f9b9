"""Recordings of the real Kueue, replayed as what the controller knows at each moment."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from rollout_lws.objects.kueue import Workload
from rollout_lws.objects.workloads import Pod, StatefulSet
from rollout_lws.targets.leader_worker_set import LeaderWorkerSet
from rollout_lws.workload.facts import Facts, Listing
from rollout_lws.workload.groups import groups
from rollout_lws.workload.trouble import Trouble, troubles

DIRECTORY = Path(__file__).parent / "kueue-0.19.2"
_KINDS = {"Pod": Pod, "StatefulSet": StatefulSet, "LeaderWorkerSet": LeaderWorkerSet, "Workload": Workload}
_T = TypeVar("_T")


@dataclass(frozen=True)
class Moment:
    """What was known ``at`` seconds after the start of a recording, by kind and name."""

    at: float
    now: datetime
    objects: dict[tuple[str, str], Any]

    def every(self, kind: type[_T]) -> list[_T]:
        return [each for _, each in sorted(self.objects.items()) if isinstance(each, kind)]

    def facts(self, name: str) -> Facts | None:
        """The LWS of that name with what belongs to it; None where there is none."""
        lws = self.objects.get(("LeaderWorkerSet", name))
        if lws is None:
            return None
        pods = [each for each in self.every(Pod) if each.workload == name]
        leaders = tuple(each for each in pods if each.is_leader)
        owners = {lws.metadata.uid, *(each.metadata.uid for each in leaders)}
        return Facts(
            workload=lws,
            leaders=leaders,
            worker_sets=tuple(each for each in self.every(StatefulSet) if _owned_by(each, owners)),
            pods=tuple(pods),
            queued=tuple(each for each in self.every(Workload) if _owned_by(each, owners)),
            listing=Listing.DONE,
        )

    def troubles(self, name: str, **parts: Any) -> list[Trouble]:
        """What is wrong with the groups of that LWS, whatever their revision, by index."""
        facts = self.facts(name)
        if facts is None:
            return []
        revisions = {each.revision for each in groups(facts)}
        found = [each for revision in revisions for each in troubles(facts, revision, self.now, **parts)]
        return sorted({each for each in found if each.group}, key=lambda each: each.group)


def _owned_by(each: StatefulSet | Workload, owners: set[str]) -> bool:
    return any(owner.uid in owners for owner in each.metadata.owner_references)


def moments(recording: str) -> Iterator[Moment]:
    """What was known after each change, in order."""
    objects: dict[tuple[str, str], Any] = {}
    text = gzip.decompress((DIRECTORY / f"{recording}.jsonl.gz").read_bytes())
    rows = [json.loads(line) for line in text.splitlines()]
    began = datetime.fromisoformat(rows[0][2])
    for at, kind, name, *left in rows[1:]:
        if kind == "note":
            continue
        objects.pop((kind, name), None)
        if left:
            objects[kind, name] = msgspec.convert(left[0], _KINDS[kind])
        yield Moment(at, began + timedelta(seconds=at), dict(objects))
