"""What the timeline of a release has: an entry for each change of step, state and weights, and no write of its own."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollout_lws.api import (
    CanaryStatus,
    FinalisingRecord,
    GroupCount,
    GroupCounts,
    KeptGroups,
    Phase,
    RolloutStatus,
    StepState,
    TimelineEntry,
    TrafficRecord,
    TrafficWeight,
)
from rollout_lws.api.structural import ITEMS_LIMIT
from rollout_lws.objects.writes import Patch
from rollout_lws.rollout.decide import decide
from rollout_lws.rollout.observation import Observation
from rollout_lws.rollout.reasons import Task
from rollout_lws.rollout.status.timeline import continued, merged
from tests.rollout.build import at_rest, canary, held, in_step, rollout
from tests.workload.build import KEYS, NAME, NEW, NOW, pod

START = NOW.replace(microsecond=0)
UPGRADE, ROUTING, PAUSED = StepState.STEP_UPGRADE, StepState.STEP_TRAFFIC_ROUTING, StepState.STEP_PAUSED


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def entry(
    seconds: float,
    step: int | None,
    state: str,
    desired: int | None = None,
    applied: int | None = None,
    new: int | None = 1,
    stable: int | None = 4,
) -> TimelineEntry:
    return TimelineEntry(
        at=at(seconds), step=step, state=state, desired=desired, applied=applied, new=new, stable=stable
    )


def weight(percent: int | None) -> TrafficWeight | None:
    return TrafficWeight(weight=percent) if percent is not None else None


def status(
    phase: Phase = Phase.PROGRESSING,
    *,
    step: int = 1,
    state: str = UPGRADE,
    task: str = "",
    reason: str = "Success",
    weights: tuple[int | None, int | None] | None = None,
    new: int | None = 1,
    version: str = "a",
    timeline: tuple[TimelineEntry, ...] = (),
    **members: Any,
) -> RolloutStatus:
    return RolloutStatus(
        phase=phase,
        canary_status=CanaryStatus(current_step_index=step, current_step_state=state),
        finalising=FinalisingRecord(reason=reason, task=task) if task else None,
        traffic=TrafficRecord(desired=weight(weights[0]), applied=weight(weights[1])) if weights else None,
        groups=GroupCounts(stable=GroupCount(ready=4, total=4), new=GroupCount(ready=new) if new is not None else None),
        observed_template_hash=version,
        timeline=timeline,
        **members,
    )


REST = status(Phase.HEALTHY, state=StepState.COMPLETED, new=None, version="0")
FIRST = entry(0, 1, UPGRADE)
ENDED = (FIRST, entry(1, None, "Promote"), entry(2, None, "Completed", new=None))


@pytest.mark.parametrize(
    ("before", "after", "timeline"),
    [
        pytest.param(RolloutStatus(), REST, (), id="no release yet"),
        pytest.param(REST, status(), (entry(9, 1, UPGRADE),), id="a release begins"),
        pytest.param(status(timeline=(FIRST,)), status(timeline=(FIRST,)), (FIRST,), id="nothing changes"),
        pytest.param(status(timeline=(FIRST,)), status(new=3), (FIRST,), id="groups become ready"),
        pytest.param(status(timeline=(FIRST,)), status(state=PAUSED), (FIRST, entry(9, 1, PAUSED)), id="another state"),
        pytest.param(status(timeline=(FIRST,)), status(step=2), (FIRST, entry(9, 2, UPGRADE)), id="another step"),
        pytest.param(
            status(timeline=(FIRST,)),
            status(weights=(20, None)),
            (FIRST, entry(9, 1, UPGRADE, 20)),
            id="a weight is asked for",
        ),
        pytest.param(
            status(weights=(20, None), timeline=(entry(0, 1, UPGRADE, 20),)),
            status(weights=(20, 20)),
            (entry(0, 1, UPGRADE, 20), entry(9, 1, UPGRADE, 20, 20)),
            id="a weight is accepted",
        ),
        pytest.param(
            status(timeline=(FIRST,)),
            status(state=StepState.COMPLETED, task="Promote", weights=(100, 40), new=4),
            (FIRST, entry(9, None, "Promote", 100, 40, new=4)),
            id="the promotion",
        ),
        pytest.param(
            status(timeline=(FIRST,)),
            status(task="RollBackSteps", reason="Aborted"),
            (FIRST, entry(9, None, "RollBackSteps")),
            id="the way back",
        ),
        pytest.param(
            status(task="CleanUp", timeline=(FIRST, entry(1, None, "CleanUp"))),
            status(Phase.HEALTHY, weights=(0, 0), new=None),
            (FIRST, entry(1, None, "CleanUp"), entry(9, None, "Completed", new=None)),
            id="the end, whatever weights stay on record",
        ),
        pytest.param(
            status(task="CleanUp", timeline=(FIRST, entry(1, None, "CleanUp"))),
            status(Phase.HEALTHY, task="CleanUp", new=None, kept=KeptGroups(template_hash="0", since=NOW)),
            (FIRST, entry(1, None, "CleanUp"), entry(9, None, "Completed", new=None)),
            id="the end, and groups are kept",
        ),
        pytest.param(
            status(task="CleanUp", timeline=(FIRST, entry(1, None, "CleanUp"))),
            status(Phase.TERMINATING, new=None),
            (FIRST, entry(1, None, "CleanUp"), entry(9, None, "Completed", new=None)),
            id="the end of a Rollout that leaves",
        ),
        pytest.param(
            status(Phase.HEALTHY, timeline=ENDED),
            status(Phase.ABORTED, version="b", weights=(0, 0), timeline=ENDED),
            ENDED,
            id="it stays at rest",
        ),
        pytest.param(status(Phase.HEALTHY, timeline=ENDED), status(), (entry(9, 1, UPGRADE),), id="the next release"),
        pytest.param(
            status(task="CleanUp", reason="Continuous", timeline=(FIRST, entry(1, None, "CleanUp"))),
            status(version="b"),
            (entry(9, 1, UPGRADE),),
            id="a newer version right after the way back",
        ),
        pytest.param(
            status(timeline=(FIRST,)),
            status(version="b"),
            (entry(9, 1, UPGRADE),),
            id="a newer version in one decision",
        ),
        pytest.param(
            status(timeline=ENDED), status(timeline=ENDED), (entry(9, 1, UPGRADE),), id="begun by an older controller"
        ),
        pytest.param(
            status(Phase.HEALTHY, task="CleanUp", kept=KeptGroups(template_hash="0", since=NOW), timeline=ENDED),
            status(task="Promote"),
            (entry(9, None, "Promote"),),
            id="kept groups get the requests back without steps",
        ),
        pytest.param(
            status(task="RollBackPromotion", timeline=(FIRST, entry(1, None, "RollBackPromotion"))),
            status(task="Promote"),
            (FIRST, entry(1, None, "RollBackPromotion"), entry(9, None, "Promote")),
            id="forward again",
        ),
        pytest.param(
            status(Phase.HEALTHY, timeline=ENDED),
            status(task="CleanUp", reason="Rollback"),
            (*ENDED, entry(9, None, "CleanUp")),
            id="what a release has left is cleaned up",
        ),
    ],
)
def test_an_entry_is_added_when_step_state_or_weights_change(
    before: RolloutStatus, after: RolloutStatus, timeline: tuple[TimelineEntry, ...]
) -> None:
    told = continued(before, after, at(9.7))
    assert told == timeline
    stored = after.model_copy(update={"timeline": told})
    assert continued(stored, stored, at(500)) == told, "the same facts tell nothing new"


@pytest.mark.parametrize(
    ("stored", "kept"),
    [
        pytest.param([{"at": "garbage", "step": 1, "state": UPGRADE}], [(9, 1, UPGRADE)], id="no moment"),
        pytest.param(
            [{"at": "9999-12-31T23:59:59Z", "step": 1, "state": PAUSED}],
            [(9, 1, PAUSED), (9, 1, UPGRADE)],
            id="a clock that was ahead",
        ),
        pytest.param(
            [{"at": at(5), "step": 1, "state": PAUSED}, {"at": at(4), "step": 1, "state": ROUTING}],
            [(5, 1, PAUSED), (9, 1, UPGRADE)],
            id="back in time",
        ),
        pytest.param([{"at": at(1), "step": 1, "state": "Danced"}], [(9, 1, UPGRADE)], id="no state"),
        pytest.param([{"at": at(1), "step": 1, "state": "Promote"}], [(9, 1, UPGRADE)], id="a task in a step"),
        pytest.param([{"at": at(1), "step": 0, "state": UPGRADE}], [(9, 1, UPGRADE)], id="step 0"),
        pytest.param([{"at": at(1), "step": -5, "state": UPGRADE}], [(9, 1, UPGRADE)], id="a step below 0"),
        pytest.param(
            [{"at": at(1), "step": 2**70, "state": UPGRADE}],
            [(1, 2**31 - 1, UPGRADE), (9, 1, UPGRADE)],
            id="a step that is none",
        ),
        pytest.param(
            [{"at": at(1), "step": 1, "state": PAUSED}, {"at": at(2), "step": 1, "state": PAUSED}],
            [(1, 1, PAUSED), (9, 1, UPGRADE)],
            id="twice the same",
        ),
    ],
)
def test_what_no_controller_wrote_is_dropped(stored: list[dict[str, Any]], kept: list[tuple[int, int, str]]) -> None:
    before = RolloutStatus.model_validate({**status().model_dump(), "timeline": stored})
    told = continued(before, before, at(9))
    assert [(each.at, each.step, each.state) for each in told] == [(at(since), *rest) for since, *rest in kept]


@pytest.mark.parametrize("forged", [{"step": 0}, {"step": -7}, {"state": "Danced"}, {"task": "Dance"}])
def test_a_status_in_words_of_others_adds_nothing(forged: dict[str, Any]) -> None:
    before = status(timeline=(FIRST,))
    assert continued(before, status(**forged), at(9)) == (FIRST,)


def steps_of(*told: tuple[int | None, str, int | None, int | None]) -> tuple[TimelineEntry, ...]:
    return tuple(entry(10 * number, *each) for number, each in enumerate(told))


BEGINS_1, RISES_1, WAITS_1 = (1, UPGRADE, 0, None), (1, UPGRADE, 10, None), (1, PAUSED, 10, None)
ACCEPTED_1, READY_1 = (1, PAUSED, 10, 10), (1, StepState.STEP_READY.value, 10, 10)
BEGINS_2, WAITS_2, ACCEPTED_2 = (2, UPGRADE, 10, 10), (2, PAUSED, 10, 10), (2, PAUSED, 20, 20)
FULL = (BEGINS_1, RISES_1, WAITS_1, ACCEPTED_1, READY_1, BEGINS_2, WAITS_2, ACCEPTED_2)


@pytest.mark.parametrize(
    ("most", "left"),
    [
        (8, FULL),
        (7, (BEGINS_1, RISES_1, ACCEPTED_1, READY_1, BEGINS_2, WAITS_2, ACCEPTED_2)),
        (6, (BEGINS_1, RISES_1, ACCEPTED_1, BEGINS_2, WAITS_2, ACCEPTED_2)),
        (5, (BEGINS_1, RISES_1, ACCEPTED_1, BEGINS_2, ACCEPTED_2)),
        (4, (BEGINS_1, ACCEPTED_1, BEGINS_2, ACCEPTED_2)),
        (3, (BEGINS_1, BEGINS_2, ACCEPTED_2)),
        (2, (BEGINS_1, ACCEPTED_2)),
    ],
)
def test_states_go_before_weights_and_weights_before_begins(
    most: int, left: tuple[tuple[int | None, str, int | None, int | None], ...]
) -> None:
    told = merged(steps_of(*FULL), most)
    assert [(each.step, each.state, each.desired, each.applied) for each in told] == list(left)
    assert {each.at for each in told} <= {each.at for each in steps_of(*FULL)}


def test_two_entries_that_become_neighbours_and_say_the_same_are_one() -> None:
    to_and_fro = steps_of((1, UPGRADE, None, None), (1, PAUSED, None, None), (1, UPGRADE, None, None))
    assert merged((*to_and_fro, entry(90, 2, UPGRADE)), 3) == (to_and_fro[0], entry(90, 2, UPGRADE))


_percents = st.none() | st.integers(0, 100)
_weights = st.tuples(_percents, _percents)
_within = st.builds(
    lambda step, state, weights: status(step=step, state=state, weights=weights),
    st.integers(1, 20),
    st.sampled_from([each.value for each in StepState]),
    _weights,
)
_ending = st.builds(
    lambda task, weights: status(task=task, weights=weights), st.sampled_from([each.value for each in Task]), _weights
)


def where(told: RolloutStatus) -> tuple[int | None, str]:
    """Step and state of a release that is on."""
    assert told.sub is not None
    if told.finalising is not None:
        return None, told.finalising.task
    return told.sub.current_step_index, told.sub.current_step_state


@given(
    st.lists(_within, min_size=1, max_size=150).map(lambda drawn: sorted(drawn, key=lambda each: where(each)[0] or 0)),
    st.lists(_ending, max_size=150),
    st.lists(st.integers(0, 90), min_size=1),
)
def test_a_long_release_stays_within_bounds_in_order_and_true(
    steps: list[RolloutStatus], ends: list[RolloutStatus], delays: list[int]
) -> None:
    known, now, begun = status(), START, dict[int | None, datetime]()
    for number, told in enumerate((*steps, *ends)):
        now += timedelta(seconds=delays[number % len(delays)])
        timeline = continued(known, told, now)
        known = told.model_copy(update={"timeline": timeline})
        assert 0 < len(timeline) <= ITEMS_LIMIT
        assert [each.at for each in timeline] == sorted(each.at for each in timeline)
        assert (timeline[-1].step, timeline[-1].state) == where(told)
        begun.setdefault(where(told)[0], now)
        assert {each.step: each.at for each in reversed(timeline)} == begun, "each step keeps its begin"


FORGED = [{"at": "9999-12-31T23:59:59Z", "step": 1, "state": "Danced"}] * 64


def observed(status: dict[str, Any], *, waits: bool) -> Observation:
    """A release that waits in its first step, or a Rollout at rest."""
    ready = canary(pod(0, revision=NEW, workload=f"{NAME}-canary"), replicas=1) if waits else None
    return Observation(NOW, KEYS, rollout(status=status), stable=held(), canary=ready)


def statuses(observation: Observation) -> list[dict[str, Any]]:
    found = (each for each in decide(observation).writes if isinstance(each, Patch) and each.subresource == "status")
    return [dict(each.body.get("status") or {}) for each in found]


@pytest.mark.parametrize("waits", [True, False], ids=["in a step", "at rest"])
@pytest.mark.parametrize("timeline", [[], FORGED], ids=["none", "forged"])
def test_a_timeline_is_no_reason_to_write(waits: bool, timeline: list[dict[str, Any]]) -> None:
    """Neither one that lacks entries, as after an upgrade in mid-release, nor one that another client has filled."""
    told: dict[str, Any] = in_step() if waits else at_rest()
    for _ in range(9):
        written = statuses(observed(told, waits=waits))
        if not written:
            break
        after = {**RolloutStatus.model_validate(told).to_json_dict(), **written[0]}
        told = {name: value for name, value in after.items() if value is not None}
    assert statuses(observed(told, waits=waits)) == []
    assert statuses(observed({**told, "timeline": timeline}, waits=waits)) == []


def test_moments_are_whole_seconds_as_they_are_read_back() -> None:
    now = datetime(2026, 1, 1, 12, 0, 0, 987654, tzinfo=UTC)
    (told,) = continued(REST, status(), now)
    assert told.to_json_dict()["at"] == "2026-01-01T12:00:00Z"
    assert TimelineEntry.model_validate(told.to_json_dict()) == told
