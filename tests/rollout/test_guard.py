"""The hold: repaired once, given up when somebody insists, and tried again when that is safe."""

from __future__ import annotations

from datetime import timedelta

import pytest

from rollout_lws.api import HoldFight
from rollout_lws.objects.writes import Patch
from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.guard import CONTEST_SECONDS, TRUCE_SECONDS, keep_hold
from rollout_lws.workload.hold import HOLD
from tests.rollout.build import at_rest, draft, held, in_step, rollout
from tests.workload.build import KEYS, NOW


def fights(*ages: float) -> tuple[HoldFight, ...]:
    return tuple(HoldFight(at=NOW - timedelta(seconds=age), manager="argocd") for age in ages)


def kept(status: dict[str, object], partition: int = 0, **metadata: object) -> Draft:
    d = draft(rollout(status=status), stable=held(partition=partition, **metadata))
    keep_hold(d)
    return d


def partitions(d: Draft) -> list[int]:
    """What the written patches set the partition to."""
    bodies = [write.body for write in d.writes if isinstance(write, Patch)]
    return [body["spec"]["rolloutStrategy"]["rollingUpdateConfiguration"]["partition"] for body in bodies]


def test_a_hold_that_stands_is_left_alone() -> None:
    d = kept(at_rest(), HOLD)
    assert (d.writes, d.contested, d.notices) == ([], False, [])


def test_the_first_reset_is_undone() -> None:
    d = kept(at_rest())
    assert (partitions(d), d.contested) == ([HOLD], False)
    assert len(d.status.hold_fights) == 1


def test_a_second_reset_within_a_minute_is_a_contest_and_writes_nothing() -> None:
    d = kept(at_rest(hold_fights=fights(CONTEST_SECONDS - 1)))
    assert (d.writes, d.contested) == ([], True)
    assert [notice.reason for notice in d.notices] == ["HoldContested"]


def test_a_second_reset_after_a_minute_is_a_first_one() -> None:
    d = kept(at_rest(hold_fights=fights(CONTEST_SECONDS)))
    assert (partitions(d), d.contested) == ([HOLD], False)


def test_a_contest_at_rest_ends_after_its_truce_at_the_exact_moment() -> None:
    before = kept(at_rest(hold_fights=fights(TRUCE_SECONDS + 20, TRUCE_SECONDS - 7)))
    assert (before.writes, before.contested, before.wake_at) == ([], True, NOW + timedelta(seconds=7))
    after = kept(at_rest(hold_fights=fights(TRUCE_SECONDS + 20, TRUCE_SECONDS)))
    assert (partitions(after), after.contested, len(after.status.hold_fights)) == ([HOLD], False, 1)


def test_a_contest_with_a_version_pending_has_no_truce() -> None:
    d = kept(in_step(hold_fights=fights(9_000, 8_999)))
    assert (d.writes, d.contested, d.wake_at) == ([], True, None)


def test_a_hold_that_somebody_brought_back_ends_the_contest() -> None:
    assert kept(at_rest(hold_fights=fights(20, 10)), HOLD).status.hold_fights == ()


@pytest.mark.parametrize("status", [at_rest(), in_step(), at_rest(hold_fights=fights(20, 10))])
def test_a_broken_glass_is_never_fought(status: dict[str, object]) -> None:
    d = kept(status, HOLD, annotations={KEYS.release_hold: "true"})
    assert d.contested
    assert partitions(d) == [0]
