"""The hold: put back whenever somebody resets it, left alone where a tool insists, tried again when that is safe."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from rollout_lws.api import HoldConflict, StableRecord
from rollout_lws.objects.meta import ManagedField
from rollout_lws.objects.writes import Confirm, Patch
from rollout_lws.rollout.draft import Draft, HoldState, Persist
from rollout_lws.rollout.lifecycle.hold_enforcement import keep_hold
from rollout_lws.rollout.lifecycle.native_rollout import is_rolling
from rollout_lws.rollout.write_conflicts import (
    ANSWER_SECONDS,
    COOL_DOWN_SECONDS,
    FIRST_WAIT_SECONDS,
    MOST_ANSWERS,
    MOST_CONFLICTS,
    answers,
    wait_seconds,
)
from rollout_lws.workload.facts import Facts
from rollout_lws.workload.hold import HOLD
from tests.rollout.build import HASH, OTHER_HASH, at_rest, draft, held, in_step, rollout
from tests.workload.build import KEYS, NEW, NOW, OLD, UID, facts, leader_set, lws, pod, raw

#: Moments of resets, in seconds before now, of a tool that resets the hold two seconds after each repair.
TOOL = tuple(2.0 * number for number in range(MOST_ANSWERS, 0, -1))


def conflicts(*ages: float, left: float | None = None, template_hash: str = HASH) -> tuple[HoldConflict, ...]:
    """Resets so many seconds ago, each repaired at once; ``left``: the last one, which was not, with its version."""
    moments = [NOW - timedelta(seconds=age) for age in ages]
    found = tuple(
        HoldConflict(at=moment, manager="argocd", put_back_at=moment, template_hash=HASH) for moment in moments
    )
    if left is None:
        return found
    return (*found, HoldConflict(at=NOW - timedelta(seconds=left), manager="argocd", template_hash=template_hash))


def ago(seconds: float) -> tuple[float, ...]:
    """TOOL's resets, the last of which was so long ago."""
    return tuple(age + seconds - TOOL[-1] for age in TOOL)


def kept(
    status: dict[str, object], partition: int = 0, groups: tuple[str, ...] = (OLD,) * 4, **metadata: object
) -> Draft:
    stable = held(partition=partition, **metadata)
    leaders = tuple(pod(index, revision=revision) for index, revision in enumerate(groups))
    d = draft(rollout(status=status), stable=replace(stable, leaders=leaders))
    return keep_hold(d)


def rolling(groups: tuple[str, ...], version: str, partition: int) -> Facts:
    """An LWS of 4 that is not held, its leader StatefulSet at ``version`` and ``partition``."""
    leaders = (pod(index, revision=revision) for index, revision in enumerate(groups))
    return facts(lws(4, partition=0), *leaders, leader_set=leader_set(version, partition=partition))


def partitions(d: Draft) -> list[int]:
    """What the written patches set the partition to."""
    bodies = [write.body for write in d.writes if isinstance(write, Patch)]
    return [body["spec"]["rolloutStrategy"]["rollingUpdateConfiguration"]["partition"] for body in bodies]


def test_a_hold_that_stands_is_left_alone() -> None:
    d = kept(at_rest(), HOLD)
    assert (d.writes, d.hold, d.events) == ((), HoldState.KEPT, ())


def test_the_first_reset_is_undone() -> None:
    d = kept(at_rest())
    assert (partitions(d), d.hold) == ([HOLD], HoldState.RESTORED)
    assert len(d.status.hold_conflicts) == 1


@pytest.mark.parametrize(
    "ages",
    [
        (59,),
        (39,),
        (1,),
        # A pipeline of several tools.
        (6, 4, 2),
        # A job that is repeated every twenty seconds, all day long.
        tuple(20.0 * number for number in range(MOST_CONFLICTS, 0, -1)),
        # A tool that takes its time once.
        (*ago(TOOL[-1] + ANSWER_SECONDS)[:-1], ANSWER_SECONDS + 1),
        # One that has given up for long.
        ago(COOL_DOWN_SECONDS),
    ],
    ids=str,
)
def test_a_reset_by_people_and_their_jobs_is_undone_each_time(ages: tuple[float, ...]) -> None:
    for status in (at_rest(hold_conflicts=conflicts(*ages)), in_step(hold_conflicts=conflicts(*ages))):
        d = kept(status)
        assert (partitions(d), d.hold) == ([HOLD], HoldState.RESTORED)
        assert [event.reason for event in d.events] == ["HoldReset"]
        assert len(d.status.hold_conflicts) <= MOST_CONFLICTS
        last = d.status.hold_conflicts[-1]
        assert (last.at, last.put_back_at) == (NOW, NOW)


def test_each_version_is_worth_a_try_of_its_own() -> None:
    known = tuple(each.model_copy(update={"template_hash": "another"}) for each in conflicts(*TOOL))
    assert partitions(kept(in_step(hold_conflicts=known))) == [HOLD]


def test_a_tool_that_answers_each_repair_within_seconds_is_left_alone() -> None:
    d = kept(in_step(hold_conflicts=conflicts(*TOOL)))
    assert (d.writes, d.hold) == ((), HoldState.RELEASED)
    assert [event.reason for event in d.events] == ["HoldConflict"]
    assert (d.status.hold_conflicts[-1].put_back_at, d.status.hold_conflicts[-1].template_hash) == (None, HASH)


def test_a_hold_that_is_left_with_nothing_pending_comes_back_at_the_exact_moment_and_later_each_time() -> None:
    before = kept(at_rest(hold_conflicts=conflicts(*ago(62), left=FIRST_WAIT_SECONDS - 7)))
    assert (before.writes, before.hold, before.wake_at) == ((), HoldState.RELEASED, NOW + timedelta(seconds=7))
    after = kept(at_rest(hold_conflicts=conflicts(*ago(62), left=FIRST_WAIT_SECONDS)))
    assert (partitions(after), after.hold) == ([HOLD], HoldState.RESTORED)
    again = after.status.hold_conflicts
    assert again[-1].put_back_at == NOW
    # Its next answer is the one in a row that it is: nothing is begun anew.
    answered = NOW + timedelta(seconds=2)
    assert answers(again, answered, HASH) == MOST_ANSWERS + 1
    assert wait_seconds((*again, HoldConflict(at=answered, template_hash=HASH))) == 2 * FIRST_WAIT_SECONDS


def test_a_hold_that_is_left_comes_back_at_once_for_another_version() -> None:
    d = kept(in_step(hold_conflicts=conflicts(*ago(32), left=30, template_hash="yet-another")))
    assert (partitions(d), d.hold) == ([HOLD], HoldState.RESTORED)
    assert answers(d.status.hold_conflicts, NOW, HASH) == 1


def test_a_hold_that_is_left_does_not_come_back_in_the_middle_of_a_roll() -> None:
    for status in (
        in_step(hold_conflicts=conflicts(*ago(9_000), left=8_998)),
        in_step(hold_released_at=NOW - timedelta(seconds=9_000)),
    ):
        d = kept(status, groups=(OLD, OLD, OLD, NEW))
        assert (d.writes, d.hold) == ((), HoldState.RELEASED)


def test_a_hold_that_somebody_brought_back_ends_the_contest() -> None:
    assert kept(at_rest(hold_conflicts=conflicts(20, left=10)), HOLD).status.hold_conflicts == ()


def test_a_hold_that_stands_for_long_makes_the_next_reset_the_first() -> None:
    assert kept(at_rest(hold_conflicts=conflicts(COOL_DOWN_SECONDS)), HOLD).status.hold_conflicts == ()
    assert len(kept(at_rest(hold_conflicts=conflicts(COOL_DOWN_SECONDS - 1)), HOLD).status.hold_conflicts) == 1


def test_a_hold_that_was_released_comes_back_when_no_roll_has_begun() -> None:
    d = kept(in_step(hold_released_at=NOW - timedelta(seconds=1)))
    assert (partitions(d), d.hold, d.status.hold_released_at) == ([HOLD], HoldState.RESTORED, None)
    assert [type(each) for each in d.confirms] == [Confirm]


@pytest.mark.parametrize(
    ("template_hash", "groups", "version", "partition", "rolls"),
    [
        (HASH, (OLD,) * 4, OLD, 0, False),
        (HASH, (OLD,) * 3, OLD, 0, False),
        (OTHER_HASH, (OLD,) * 4, OLD, 0, False),
        (OTHER_HASH, (OLD,) * 4, NEW, HOLD, False),
        (OTHER_HASH, (OLD,) * 4, NEW, 3, True),
        (OTHER_HASH, (OLD,) * 3, OLD, 0, True),
        (OTHER_HASH, (OLD, OLD, OLD, NEW), NEW, 3, True),
        (OTHER_HASH, (NEW,) * 4, NEW, 0, True),
        (HASH, (OLD, OLD, OLD, NEW), OLD, 3, True),
    ],
)
def test_a_roll_has_begun_as_soon_as_a_group_may_be_gone(
    template_hash: str, groups: tuple[str, ...], version: str, partition: int, rolls: bool
) -> None:
    """``template_hash`` is stable's; the LWS asks for HASH."""
    stable = StableRecord(template_hash=template_hash, revision=OLD, workload_uid=UID)
    d = draft(rollout(status=at_rest(stable=stable)), stable=rolling(groups, version, partition))
    assert is_rolling(d) is rolls


def test_the_tool_is_named_whenever_we_wrote_in_the_same_second() -> None:
    fields = raw({"f:spec": {"f:rolloutStrategy": {"f:rollingUpdateConfiguration": {"f:partition": {}}}}})
    entries = tuple(ManagedField(manager=name, time=NOW, fields=fields) for name in ("rollout-lws", "argocd"))
    d = kept(at_rest(), managed_fields=entries)
    assert d.status.hold_conflicts[-1].manager == "argocd"


@pytest.mark.parametrize("status", [at_rest(), in_step(), at_rest(hold_conflicts=conflicts(20, 10))])
def test_a_broken_glass_is_never_fought_and_on_record_before_it_is_acted_on(status: dict[str, object]) -> None:
    d = kept(status, HOLD, annotations={KEYS.release_hold: "true"})
    assert (d.hold, partitions(d)) == (HoldState.RELEASED, [0])
    assert (d.status.hold_released_at, d.persist) == (NOW, Persist.BEFORE_WRITES)
