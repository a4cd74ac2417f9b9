"""What is said of groups while the real Kueue admits, evicts and gives them up, by its recordings."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rollout_lws.workload.queueing import GIVEN_UP, left_out
from rollout_lws.workload.trouble import CAPACITY_REASONS, QUOTA_REASONS, Trouble
from tests.traces.kueue import Moment, moments

WAITS = QUOTA_REASONS | CAPACITY_REASONS


def told(recording: str, lws: str) -> Iterator[tuple[Moment, list[Trouble]]]:
    return ((moment, moment.troubles(lws)) for moment in moments(recording))


def reasons(recording: str, lws: str, group: str) -> list[str]:
    """What was said of a group in turn, as far as it is worth a word."""
    said = (each.reason for _, found in told(recording, lws) for each in found if each.group == group)
    kept = [reason for reason in said if reason not in ("NotReady", "WorkersNotReady", "Terminating")]
    return [reason for number, reason in enumerate(kept) if number == 0 or kept[number - 1] != reason]


@pytest.mark.parametrize("recording", ["rollout-thief_inplace", "rollout-bluegreen-room3"])
def test_groups_that_have_their_quota_never_wait_for_it(recording: str) -> None:
    found = [
        (moment.at, each) for lws in ("llm", "llm-canary") for moment, all_of in told(recording, lws) for each in all_of
    ]
    assert found
    assert [each for each in found if each[1].reason in WAITS] == []


def test_a_canary_without_quota_waits_in_kueues_words() -> None:
    assert reasons("rollout-ExtraWorkload-room0", "llm-canary", "0") == ["WaitingForQuota"]
    words = {
        each.message
        for _, found in told("rollout-ExtraWorkload-room0", "llm-canary")
        for each in found
        if each.reason in WAITS
    }
    assert all("insufficient unused quota for nvidia.com/gpu in flavor gpus" in each for each in words)


def test_a_group_that_never_gets_ready_has_failed_from_the_first_eviction_on() -> None:
    found = [(moment.at, each) for moment, all_of in told("rollout-never", "llm-canary") for each in all_of]
    first = next(at for at, each in found if each.reason == GIVEN_UP)
    assert 20 < first < 22
    assert {each.reason for at, each in found if at < first} == {"NotReady"}
    assert {each.reason for at, each in found if at >= first} == {GIVEN_UP}
    assert found[-1][1].message == (
        "Kueue gave group 0 of llm-canary up 5 times: it was not ready within Kueue's own timeout (waitForPodsReady)"
    )


def test_evictions_before_the_release_are_not_its_fault() -> None:
    for moment in moments("rollout-never"):
        canary = moment.facts("llm-canary")
        known = {each.metadata.uid: 4 for each in canary.queued} if canary is not None else {}
        early = [each for each in moment.troubles("llm-canary", evicted=known) if each.reason == GIVEN_UP]
        assert not early or moment.at > 100


def test_preempted_groups_are_told_and_come_back() -> None:
    assert reasons("rollout-evict", "llm-canary", "0") == ["EvictedByKueue"]
    assert reasons("rollout-evict", "llm", "1") == ["EvictedByKueue"]
    *_, last = moments("rollout-evict")
    assert last.troubles("llm") == last.troubles("llm-canary") == []


def test_what_no_waiting_mends_is_known_by_default_too() -> None:
    assert reasons("kueue-canary", "big", "0") == ["Blocked"]
    assert reasons("kueue-canary", "lost", "0") == ["Blocked"]


def test_a_stopped_queue_holds_groups_back_and_a_deactivated_one_has_failed_only_while_it_is() -> None:
    assert reasons("kueue-stop", "llm", "3") == ["Held", "EvictedByKueue"]
    assert reasons("kueue-stop", "llm", "0") == ["EvictedByKueue", "Deactivated", "EvictedByKueue"]


def test_what_kueue_says_of_a_group_blames_none_of_its_containers() -> None:
    told = [each for moment in moments("kueue-stop") for each in moment.troubles("llm")]
    held = [each for each in told if each.reason in ("Held", "EvictedByKueue", "Deactivated")]
    assert held
    assert {each.container for each in held if "; pod" not in each.message} == {""}


@pytest.mark.parametrize(("recording", "expected"), [("rollout-evictpods", {"1"}), ("rollout-scaleup", {"1", "3"})])
def test_leaders_that_kueue_lets_go_while_a_version_waits_are_left_out(recording: str, expected: set[str]) -> None:
    found: dict[str, set[str]] = {}
    for moment in moments(recording):
        stable, canary = moment.facts("llm"), moment.facts("llm-canary")
        for each in left_out(stable) if stable is not None else ():
            found.setdefault(each.index, set()).add(each.uid)
        assert canary is None or left_out(canary) == ()
    assert found.keys() == expected


def test_no_leader_is_left_out_where_no_version_waits() -> None:
    for moment in moments("kueue-stop"):
        facts = moment.facts("llm")
        assert facts is None or left_out(facts) == ()
