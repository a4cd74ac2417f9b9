"""The plan: what changes it, where its steps lead, and where an edited one goes on."""

from __future__ import annotations

from typing import Any

import pytest

from rollout_lws.api import CanaryStrategy, Step, Strategy
from rollout_lws.rollout.step_plan import next_index, plan_hash, resumed_index


def strategy(*steps: dict[str, Any], **members: Any) -> Strategy:
    return Strategy.model_validate({"canary": {"steps": list(steps), **members.pop("canary", {})}, **members})


def steps(*replicas: int | str) -> tuple[Step, ...]:
    return tuple(Step(replicas=each) for each in replicas)


def plan(*replicas: int | str) -> CanaryStrategy:
    return CanaryStrategy(steps=steps(*replicas))


@pytest.mark.parametrize(
    "edited",
    [
        strategy({"replicas": 1, "pause": {"duration": 5}}, {"replicas": 2}),
        strategy({"replicas": 1}, {"replicas": 2}, canary={"failureThreshold": 1}),
        strategy({"replicas": 1}, {"replicas": 2}, paused=True, progressDeadlineSeconds=7),
    ],
    ids=["pause", "failure threshold", "deadlines"],
)
def test_pauses_thresholds_and_deadlines_make_no_new_plan(edited: Strategy) -> None:
    assert plan_hash(edited) == plan_hash(strategy({"replicas": 1}, {"replicas": 2}))


@pytest.mark.parametrize(
    "edited",
    [
        strategy({"replicas": 1}, {"replicas": 3}),
        strategy({"replicas": 1}),
        strategy({"replicas": 1}, {"replicas": 2, "traffic": "20%"}),
        strategy({"replicas": 1}, {"replicas": 2}, canary={"capacity": "ExtraWorkload"}),
    ],
    ids=["groups", "fewer steps", "traffic", "capacity"],
)
def test_capacity_and_traffic_make_a_new_plan(edited: Strategy) -> None:
    assert plan_hash(edited) != plan_hash(strategy({"replicas": 1}, {"replicas": 2}))


def test_after_the_last_step_there_is_no_next_one() -> None:
    assert [next_index(steps(1, 2, 3), index) for index in (1, 2, 3)] == [2, 3, -1]


@pytest.mark.parametrize(
    ("asked", "index", "standing", "expected"),
    [
        (plan(1, 2, 4), 2, 2, 2),
        (plan(1, 1, 4), 2, 1, 2),
        (plan(1, 2, 4), 1, 2, 2),
        (plan(1, 3, 4), 3, 2, 3),
        (plan(2, 4), 3, 2, 1),
        (plan(1, 2), 2, 4, 2),
        (plan("25%", "50%", "100%"), 1, 2, 2),
    ],
    ids=["same step", "current first", "first that has room", "never fewer", "fewer steps", "too few", "percent"],
)
def test_an_edited_plan_goes_on_at_the_first_step_that_asks_for_what_stands(
    asked: CanaryStrategy, index: int, standing: int, expected: int
) -> None:
    assert resumed_index(asked, index, standing, replicas=4) == expected
