"""Groups that keep being rebuilt: which leaders are filed, and how many rebuilds in how long a time are too many."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from rollout_lws.api import RestartRecord
from rollout_lws.objects.meta import Condition
from rollout_lws.objects.workloads import ContainerState, ContainerStateTerminated, ContainerStatus, Pod
from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.groups.crash_loops import (
    CHURN_WINDOW_SECONDS,
    MOST_LEADERS,
    WORDS_LIMIT,
    await_quiet,
    churning,
    quiet_at,
    remember_leaders,
)
from tests.rollout.build import canary, draft, in_step, rollout
from tests.workload.build import NEW, NOW, OLD, pod

CANARY = "llama-canary"
LOST = Condition(type="DisruptionTarget", status="True", reason="DeletionByTaintManager")


def restarts(*ages: float, group: str = "0") -> tuple[RestartRecord, ...]:
    """Leaders of a group that were first seen so many seconds ago."""
    return tuple(
        RestartRecord(workload=CANARY, group=group, uid=f"{group}-{n}", at=NOW - timedelta(seconds=age))
        for n, age in enumerate(ages)
    )


def told(seen: tuple[RestartRecord, ...], longest: int | None = None) -> Draft:
    return draft(rollout(status=in_step(restarts=seen, longest_startup_seconds=longest)))


AGO = CHURN_WINDOW_SECONDS + 1


@pytest.mark.parametrize(
    ("seen", "longest", "named"),
    [
        (restarts(30, 20, 10), None, {}),
        (restarts(40, 30, 20, 10), None, {"0": "group 0 of llama-canary was rebuilt 3 times"}),
        (restarts(40, 30) + restarts(20, 10, 5, group="1"), None, {}),
        (restarts(AGO, AGO, AGO, AGO), None, {}),
        (restarts(AGO, AGO, AGO, AGO), 300, {"0": "group 0 of llama-canary was rebuilt 3 times"}),
        (restarts(9999, 30, 20, 10), None, {"0": "group 0 of llama-canary was rebuilt 3 times"}),
        (
            restarts(40, 30, 20, 10) + restarts(50, 40, 30, 20, 10, group="1"),
            None,
            {
                "1": "group 1 of llama-canary was rebuilt at least 4 times",
                "0": "group 0 of llama-canary was rebuilt 3 times",
            },
        ),
    ],
    ids=[
        "two rebuilds are few",
        "three are too many",
        "of one group",
        "long ago",
        "slow loads widen the window",
        "the first one stood for long",
        "two groups, the worse first",
    ],
)
def test_only_a_group_that_is_rebuilt_again_and_again_churns(
    seen: tuple[RestartRecord, ...], longest: int | None, named: dict[str, str]
) -> None:
    found = churning(told(seen, longest))
    of_canary = {(CANARY, index): message for index, message in named.items()}
    assert (found, list(found)) == (of_canary, list(of_canary))


def test_a_group_counts_as_whole_again_when_one_of_the_three_rebuilds_is_old_enough() -> None:
    d = told(restarts(400, 300, 200, 100))
    moment = NOW + timedelta(seconds=CHURN_WINDOW_SECONDS - 300)
    assert churning(d)
    d = await_quiet(d)
    assert (quiet_at(d), d.wake_at) == (moment, moment)


def leader(uid: str, index: int = 0, **given: Any) -> Pod:
    return pod(index, revision=given.pop("revision", NEW), workload=CANARY, uid=uid, **given)


def remembered(seen: tuple[RestartRecord, ...], *leaders: Pod, pods: tuple[Pod, ...] = (), wanted: int = 2) -> Draft:
    d = told(seen)
    return remember_leaders(d, canary(*leaders, pods=pods), NEW, wanted)


def uids(d: Draft) -> list[str]:
    return [record.uid for record in d.status.restarts]


def test_a_leader_is_filed_once_and_stays_on_file_after_its_end() -> None:
    d = remembered(restarts(20), leader("0-0"))
    assert uids(d) == ["0-0"]
    d = remembered(restarts(20), leader("new"))
    assert uids(d) == ["0-0", "new"]
    assert d.status.restarts[-1].at == NOW


def test_only_leaders_of_the_version_that_is_released_are_filed() -> None:
    assert uids(remembered((), leader("old", revision=OLD), leader("new", 1))) == ["new"]


def test_groups_that_the_release_takes_away_leave_the_file() -> None:
    assert uids(remembered(restarts(20, 10, group="1"), leader("a"), leader("b", 1), wanted=1)) == ["a"]


def test_of_those_that_came_long_ago_the_last_one_is_kept_as_what_was_replaced() -> None:
    assert uids(remembered(restarts(9999, 9000, 20), leader("new"))) == ["0-1", "0-2", "new"]


@pytest.mark.parametrize(
    "lost",
    [
        {"conditions": (LOST,)},
        {"conditions": (Condition(type="TerminationTarget", status="True", reason="WorkloadEvicted"),)},
        {"reason": "NodeLost"},
    ],
    ids=["tainted node", "evicted by Kueue", "node does not answer"],
)
def test_a_leader_that_is_lost_with_its_node_leaves_the_file_and_what_replaces_it_is_no_rebuild(
    lost: dict[str, Any],
) -> None:
    seen = restarts(40, 30, 20, 10)
    gone = remembered(seen, leader("0-3", terminating=True, **lost))
    assert uids(gone) == ["0-0", "0-1", "0-2"]
    back = remembered(gone.status.restarts, leader("new"))
    assert len(back.status.restarts) == 4
    # Of three rebuilds one was the node's, and of the next the file knows nothing.
    assert churning(remembered(restarts(30, 20, 10), leader("new", **lost))) == {}


def test_a_group_whose_worker_is_lost_with_its_node_is_lost_as_a_whole() -> None:
    worker = pod(0, 1, revision=NEW, workload=CANARY, conditions=(LOST,))
    assert uids(remembered(restarts(20), leader("0-0"), pods=(worker,))) == []


def crashed(reason: str, message: str = "") -> tuple[ContainerStatus, ...]:
    ended = ContainerStateTerminated(reason=reason, exit_code=137, message=message)
    return (ContainerStatus(name="vllm", restart_count=1, last_state=ContainerState(terminated=ended)),)


def test_what_the_kubelet_said_of_a_rebuilt_group_is_told_though_its_pods_are_gone() -> None:
    d = remembered(restarts(40, 30, 20), leader("0-2", since=None, terminating=True, containers=crashed("OOMKilled")))
    d = remembered(d.status.restarts, leader("new", since=None))
    assert churning(d) == {
        (
            CANARY,
            "0",
        ): "group 0 of llama-canary was rebuilt 3 times: pod llama-canary-0 (leader) container vllm ended last with"
        " OOMKilled (exit 137)"
    }


def test_long_words_are_filed_in_short() -> None:
    d = remembered((), leader("a", since=None, containers=crashed("Error", "x" * 4096)))
    assert len(d.status.restarts[0].message or "") == WORDS_LIMIT


def test_the_oldest_leaders_stay_when_there_are_too_many() -> None:
    many = tuple(leader(f"u{index}", index) for index in range(MOST_LEADERS + 5))
    assert uids(remembered((), *many, wanted=99)) == [f"u{index}" for index in range(MOST_LEADERS)]


def test_without_an_lws_nothing_changes() -> None:
    d = told(restarts(9999))
    d = remember_leaders(d, None, NEW, 2)
    assert len(d.status.restarts) == 1
