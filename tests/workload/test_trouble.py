"""Trouble: the worst thing that can be said of a group that is not ready, in the kubelet's or scheduler's own words."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from rollout_lws.objects.meta import Condition
from rollout_lws.objects.workloads import (
    ContainerState,
    ContainerStateTerminated,
    ContainerStateWaiting,
    ContainerStatus,
    Pod,
    PodSpec,
    SchedulingGate,
)
from rollout_lws.workload.trouble import TEXT_LIMIT, Trouble, troubles
from tests.workload.build import NEW, NOW, OLD, facts, leader_set, lws, pod, worker_set

GATED = PodSpec(scheduling_gates=(SchedulingGate("example.com/budget"),))


def waiting(reason: str, message: str = "", *, ended: str = "", code: int = 1, name: str = "server") -> ContainerStatus:
    last = (
        ContainerState(terminated=ContainerStateTerminated(reason=ended, exit_code=code)) if ended else ContainerState()
    )
    state = ContainerState(waiting=ContainerStateWaiting(reason=reason, message=message))
    return ContainerStatus(name=name, state=state, last_state=last)


def ended(code: int, reason: str = "", name: str = "server", message: str = "") -> ContainerStatus:
    last = ContainerStateTerminated(reason=reason, exit_code=code, message=message)
    return ContainerStatus(name=name, state=ContainerState(terminated=last))


def restarted(code: int, reason: str) -> ContainerStatus:
    """It runs again after this end."""
    last = ContainerState(terminated=ContainerStateTerminated(reason=reason, exit_code=code))
    return ContainerStatus(name="server", restart_count=1, last_state=last)


def unscheduled(reason: str, message: str = "") -> Condition:
    return Condition(type="PodScheduled", status="False", reason=reason, message=message)


def told(*pods: Pod, **parts: Any) -> Trouble:
    (found,) = troubles(facts(lws(1), pods[0], pods=pods, **parts), OLD, NOW)
    return found


def leader_first(*pods: Pod, **parts: Any) -> str:
    first = replace(lws(1), spec=replace(lws(1).spec, startup_policy="LeaderReady"))
    (found,) = troubles(facts(first, pods[0], pods=pods, **parts), OLD, NOW)
    return found.message


def test_a_leader_that_waits_for_workers_which_wait_for_it_is_told() -> None:
    """With startupPolicy LeaderReady LWS makes no worker before the leader is ready, which may never be."""
    deadlock = (
        "; startupPolicy is LeaderReady, so LWS makes this group's workers only when the leader is ready: 0 of 2"
        " workers exist, and a leader that needs them to be ready never is"
    )
    waits = pod(0, since=None, phase="Running", size=3)
    assert leader_first(waits) == f"pod llama-0 (leader) is not ready{deadlock}"
    assert leader_first(pod(0, since=None, containers=(restarted(137, "Error"),), size=3)).endswith(deadlock)
    assert told(waits).message == "pod llama-0 (leader) is not ready"
    # What is said by a container, or of workers that were made, needs no such word.
    assert "LeaderReady" not in leader_first(pod(0, since=None, size=3, containers=(waiting("ErrImagePull"),)))
    assert "LeaderReady" not in leader_first(pod(0, since=None, size=1))
    made = worker_set(waits, replicas=2, available=0)
    assert "LeaderReady" not in leader_first(
        waits, worker_sets=(replace(made, status=replace(made.status, replicas=2)),)
    )


_CASES: dict[str, tuple[Pod, tuple[int, str, str]]] = {
    "a crash loop, and how it ended last": (
        pod(0, since=None, containers=(waiting("CrashLoopBackOff", "back-off 5m0s", ended="OOMKilled", code=137),)),
        (
            4,
            "CrashLoopBackOff",
            "pod llama-0 (leader) container server: CrashLoopBackOff; it ended last with OOMKilled (exit 137):"
            " back-off 5m0s",
        ),
    ),
    "an image that cannot be pulled": (
        pod(0, since=None, containers=(waiting("ImagePullBackOff", 'Back-off pulling image "model:2"'),)),
        (
            4,
            "ImagePullBackOff",
            'pod llama-0 (leader) container server: ImagePullBackOff: Back-off pulling image "model:2"',
        ),
    ),
    "a configuration that does not exist, without a word": (
        pod(0, since=None, containers=(waiting("CreateContainerConfigError"),)),
        (4, "CreateContainerConfigError", "pod llama-0 (leader) container server: CreateContainerConfigError"),
    ),
    "an init container that failed": (
        pod(0, since=None, init_containers=(ended(2, "Error", "fetch"),), containers=(waiting("PodInitializing"),)),
        (4, "Error", "pod llama-0 (leader) container fetch: Error (exit 2)"),
    ),
    "a container that ended without a reason": (
        pod(0, since=None, containers=(ended(9),)),
        (4, "Error", "pod llama-0 (leader) container server: Error (exit 9)"),
    ),
    "an init container that is done is no trouble": (
        pod(0, since=None, init_containers=(ended(0, "Completed"),), containers=(waiting("PodInitializing"),)),
        (1, "NotReady", "pod llama-0 (leader) is not ready"),
    ),
    "the second container's trouble": (
        pod(0, since=None, containers=(waiting("ContainerCreating"), waiting("ErrImagePull", name="sidecar"))),
        (4, "ErrImagePull", "pod llama-0 (leader) container sidecar: ErrImagePull"),
    ),
    "no room": (
        pod(0, since=None, conditions=(unscheduled("Unschedulable", "0/8 nodes are available: 8 Insufficient gpu."),)),
        (2, "Unschedulable", "pod llama-0 (leader) is not scheduled: 0/8 nodes are available: 8 Insufficient gpu."),
    ),
    "a pod that has its node is not waiting for one": (
        pod(0, since=None, conditions=(Condition(type="PodScheduled", status="True", reason="Scheduled"),)),
        (1, "NotReady", "pod llama-0 (leader) is not ready"),
    ),
    "a gate": (
        replace(pod(0, since=None, conditions=(unscheduled("SchedulingGated"),)), spec=GATED),
        (2, "SchedulingGated", "pod llama-0 (leader) is held by scheduling gate example.com/budget"),
    ),
    "a gate that is gone, before the scheduler has looked at the pod": (
        pod(0, since=None, conditions=(unscheduled("SchedulingGated"),)),
        (1, "NotReady", "pod llama-0 (leader) is not ready"),
    ),
    "an eviction": (
        pod(0, since=None, phase="Failed", reason="Evicted", message="The node was low on resource: memory."),
        (4, "Evicted", "pod llama-0 (leader) failed: The node was low on resource: memory."),
    ),
    "a failure nobody explains": (
        pod(0, since=None, phase="Failed"),
        (4, "Failed", "pod llama-0 (leader) failed"),
    ),
    "on its way": (
        pod(0, since=None, containers=(waiting("ContainerCreating"),)),
        (1, "NotReady", "pod llama-0 (leader) is not ready"),
    ),
    "running, but not ready": (
        pod(0, since=None, phase="Running"),
        (1, "NotReady", "pod llama-0 (leader) is not ready"),
    ),
    "restarted in place": (
        pod(0, since=None, phase="Running", containers=(ContainerStatus(name="server", restart_count=3),)),
        (1, "NotReady", "pod llama-0 (leader) is not ready after 3 restarts"),
    ),
    "going": (
        pod(0, since=None, terminating=True, containers=(waiting("CrashLoopBackOff"),)),
        (1, "Terminating", "pod llama-0 (leader) is terminating; container server: CrashLoopBackOff"),
    ),
    "going, and its containers with it": (
        pod(0, since=None, terminating=True, containers=(ended(143, "Error"),)),
        (1, "Terminating", "pod llama-0 (leader) is terminating"),
    ),
    "restarted in place, for want of memory": (
        pod(0, since=None, phase="Running", containers=(restarted(137, "OOMKilled"),)),
        (
            2,
            "NotReady",
            "pod llama-0 (leader) is not ready after 1 restart; container server ended last with OOMKilled (exit 137)",
        ),
    ),
    "restarted after a good end": (
        pod(0, since=None, phase="Running", containers=(restarted(0, "Completed"),)),
        (1, "NotReady", "pod llama-0 (leader) is not ready after 1 restart"),
    ),
    "a message of its own at the end": (
        pod(0, since=None, containers=(ended(1, "Error", message="no such model\n"),)),
        (4, "Error", "pod llama-0 (leader) container server: Error (exit 1): no such model"),
    ),
}


@pytest.mark.parametrize(("leader", "expected"), _CASES.values(), ids=_CASES)
def test_a_leader_in_trouble_is_told(leader: Pod, expected: tuple[int, str, str]) -> None:
    found = told(leader)
    assert (found.workload, found.group) == ("llama", "0")
    assert (found.severity, found.reason, found.message) == expected


def test_a_workers_trouble_is_its_groups() -> None:
    worker = pod(0, 1, since=None, containers=(waiting("CrashLoopBackOff"),))
    leader = pod(0)
    found = told(leader, worker, worker_sets=(worker_set(leader, available=0),))
    assert found.message == "pod llama-0-1 (worker) container server: CrashLoopBackOff"
    assert (found.pod, found.container, found.previous) == ("llama-0-1", "server", False)


def test_a_workers_trouble_outweighs_a_leader_that_only_loads() -> None:
    worker = pod(0, 1, since=None, conditions=(unscheduled("Unschedulable", "no gpu"),))
    assert told(pod(0, since=None), worker).reason == "Unschedulable"


def test_another_groups_worker_is_not_this_groups_trouble() -> None:
    assert (
        told(pod(0, since=None), pod(1, 1, since=None, containers=(waiting("CrashLoopBackOff"),))).reason == "NotReady"
    )


def test_a_ready_leader_without_a_worker_set_is_told_as_such() -> None:
    found = told(pod(0), worker_sets=())
    assert (found.severity, found.reason, found.pod) == (3, "NoWorkers", "llama-0")
    assert found.message == "pod llama-0 (leader) is ready, but its worker StatefulSet does not exist"


def test_a_leader_that_carries_no_size_is_told_with_what_to_do() -> None:
    leader = pod(0, size="x")
    found = told(leader, worker_sets=(worker_set(leader),))
    assert (found.severity, found.reason, found.pod) == (3, "WrongSize", "llama-0")
    assert found.message == (
        'annotation leaderworkerset.sigs.k8s.io/size of pod llama-0 (leader) says "x", which is no number: delete the'
        " pod to have group 0 recreated"
    )


def test_workers_on_their_way_are_counted() -> None:
    leader = pod(0, size=4)
    found = told(leader, pod(0, 1, since=None), worker_sets=(worker_set(leader, replicas=3, available=2),))
    assert (found.severity, found.reason, found.message) == (1, "WorkersNotReady", "2 of 3 workers are ready")
    assert found.pod == "", "it is not one pod that is waited for"


@pytest.mark.parametrize("size", [1, 2])
def test_a_group_that_only_has_to_stay_ready_for_longer_is_told_as_warming_up(size: int) -> None:
    known = facts(lws(1), pod(0, size=size, since=NOW - timedelta(seconds=20)))
    (found,) = troubles(known, OLD, NOW, minimum=30)
    assert (found.severity, found.reason) == (0, "WarmingUp")
    assert found.message == "group 0 is ready since 11:59:40 UTC and counts after 30 s"


def test_ready_groups_and_groups_of_other_versions_are_in_no_trouble() -> None:
    known = facts(lws(3), pod(0), pod(1, since=None, revision=NEW))
    assert troubles(known, OLD, NOW) == ()


def test_the_worst_comes_first_and_then_the_lowest_group() -> None:
    crash = (waiting("CrashLoopBackOff"),)
    leaders = (
        pod(0, since=None),
        pod(2, since=None, containers=crash),
        pod(10, since=None, containers=crash),
        pod(3, since=None, conditions=(unscheduled("Unschedulable"),)),
    )
    assert [each.group for each in troubles(facts(lws(), *leaders), OLD, NOW)] == ["2", "10", "3", "0"]


def test_an_lws_that_its_controller_does_not_act_on_is_told() -> None:
    found = troubles(facts(lws(observed=2), pod(0)), OLD, NOW)
    assert [(each.group, each.reason) for each in found] == [("", "NotObserved")]
    assert troubles(facts(lws(), pod(0), leader_set=leader_set(observed=1)), OLD, NOW)[0].reason == "NotObserved"


def test_a_kubelet_that_talks_too_much_is_cut_short() -> None:
    found = told(pod(0, since=None, containers=(waiting("ErrImagePull", "x" * 9000),)))
    assert len(found.message) == TEXT_LIMIT
    assert found.message.endswith("x…")
