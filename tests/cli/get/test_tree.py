"""How groups of two versions look in one LeaderWorkerSet: which are new, and how many of the regular ones are ready."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

from rollout_lws.cli.demo import manifests
from rollout_lws.cli.get.picture import release
from rollout_lws.cli.releases import assemble
from rollout_lws.objects.resources import LWS_NAME, LWS_REVISION, LWS_WORKER_INDEX

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
GROUP_INDEX = "leaderworkerset.sigs.k8s.io/group-index"
BEGAN = "2026-01-01T11:00:00Z"


def leader(group: int, revision: str, *, ready: bool = True) -> dict[str, Any]:
    labels = {LWS_NAME: "llama", LWS_WORKER_INDEX: "0", GROUP_INDEX: str(group), LWS_REVISION: revision}
    condition = {"type": "Ready", "status": str(ready), "lastTransitionTime": BEGAN}
    metadata = {"name": f"llama-{group}", "namespace": "default", "uid": str(group), "labels": labels}
    return {
        "metadata": metadata | {"creationTimestamp": BEGAN},
        "spec": {"containers": []},
        "status": {"phase": "Running", "conditions": [condition]},
    }


def shown(*leaders: dict[str, Any], stable: str = "old") -> list[list[str]]:
    lws = manifests.workload()
    lws["metadata"] |= {"uid": "lws", "creationTimestamp": BEGAN}
    lws["spec"]["leaderWorkerTemplate"]["size"] = 1
    rollout = manifests.rollout("rollouts.kruise.io/v1beta1", lws["metadata"])
    rollout["status"] = {"phase": "Progressing", "stable": {"revision": stable}, "summary": {"state": "Loading"}}
    lines = release(assemble(rollout, [lws], [], leaders), NOW)
    begin = next(index for index, line in enumerate(lines) if line.startswith("NAME"))
    table = lines[begin : lines.index("", begin)]
    columns = [table[0].index(word) for word in ("NAME", "ROLE", "REV", "READY", "TRAFFIC")]
    return [[line[start:end].strip() for start, end in pairwise(columns)] for line in table[1:]]


def test_groups_that_are_renewed_in_place_are_told_from_those_that_are_not() -> None:
    old = [leader(group, "old") for group in (0, 1, 2)]
    assert shown(*old, leader(3, "new", ready=False)) == [
        ["llama", "stable", "old", "3/3"],
        ["groups 0-2", "old", "old", "3/3"],
        ["llama", "new", "new", "0/1"],
        ["group 3", "new", "new", "0/1"],
    ]


def test_surge_groups_are_not_counted_with_the_regular_ones() -> None:
    old = [leader(group, "old") for group in range(4)]
    assert shown(*old, leader(4, "new"), leader(5, "new")) == [
        ["llama", "stable", "old", "4/4"],
        ["groups 0-3", "old", "old", "4/4"],
        ["llama", "new", "new", "2/2"],
        ["groups 4-5", "new", "new", "2/2"],
    ]


def test_without_a_known_stable_revision_no_group_is_called_new() -> None:
    assert {row[1] for row in shown(leader(0, "old"), leader(1, "new"), stable="")} == {"stable", ""}
