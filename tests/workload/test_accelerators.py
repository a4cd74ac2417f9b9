"""What a group holds: of its leader and of each worker that has a node, or will be given one at once."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from rollout_lws.objects.meta import Condition
from rollout_lws.objects.workloads import PodSpec, SchedulingGate
from rollout_lws.workload.accelerators import held
from rollout_lws.workload.groups import groups
from tests.workload.build import facts, lws, pod, worker_set

GPU = "nvidia.com/gpu"


def asking(each: int) -> dict[str, Any]:
    return {"spec": {"containers": [{"name": "server", "resources": {"limits": {GPU: str(each)}}}]}}


LWS = lws(1, template={"size": 3, "leaderTemplate": asking(2), "workerTemplate": asking(8)})
FIRST = replace(LWS, spec=replace(LWS.spec, startup_policy="LeaderReady"))
LEADER = pod(0, since=None, size=3)
PENDING = pod(0, since=None, size=3, conditions=(Condition(type="PodScheduled", status="False"),))
GATED = replace(LEADER, spec=PodSpec(scheduling_gates=(SchedulingGate("kueue.x-k8s.io/admission"),)))
LOST = pod(0, 1, since=None, phase="Failed")
NOWHERE = pod(0, 1, since=None, conditions=(Condition(type="PodScheduled", status="False"),))


@pytest.mark.parametrize(
    ("workload", "leader", "others", "taken"),
    [
        (LWS, LEADER, (), 18),
        (LWS, LEADER, (pod(0, 1), pod(0, 2)), 18),
        (LWS, LEADER, (NOWHERE, pod(0, 2)), 10),
        (LWS, LEADER, (LOST, pod(0, 2)), 10),
        (LWS, PENDING, (), 0),
        (LWS, PENDING, (NOWHERE, pod(0, 2)), 8),
        (LWS, GATED, (), 0),
        (FIRST, LEADER, (), 2),
    ],
    ids=["loads", "known", "one Pending", "one failed", "leader Pending", "in parts", "gated", "leader first"],
)
def test_what_a_group_holds(workload: Any, leader: Any, others: Any, taken: int) -> None:
    side = facts(workload, leader, pods=(leader, *others))
    (group,) = groups(side)
    assert held(side, group, workload.version) == ({GPU: taken} if taken else {})


def test_workers_that_nobody_watches_are_as_their_leader() -> None:
    side = facts(LWS, LEADER, worker_sets=(worker_set(LEADER, replicas=2),))
    assert held(side, groups(side)[0], LWS.version) == {GPU: 18}
