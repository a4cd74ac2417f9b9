"""What a release takes whose workload makes each group only when the ones before are ready."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from rollout_lws.forecast.forecast import forecast
from rollout_lws.forecast.model import Companion, Forecast, Given, Order, order_of
from rollout_lws.targets.leader_worker_set import LeaderWorkerSet
from rollout_lws.targets.stateful_set import StatefulSetTarget
from rollout_lws.targets.target import Target
from tests.capacity.plans import plan
from tests.forecast.test_forecast import LOAD, loading, of, table


def ordered(style: str, *steps: Any, seconds: float = 0, **more: Any) -> Forecast:
    return of(style, *steps, order=Order(seconds), **more)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        # Windows, startups one after the other, loads.
        (ordered("ExtraWorkload", (3, "50%"), "100%"), [(0, 3, 3), (0, 0, 0), (4, 4, 4)]),
        (ordered("ExtraWorkload", (3, "50%"), "100%", unavailable=2), [(0, 3, 3), (0, 0, 0), (4, 4, 4)]),
        (ordered("ExtraWorkload", ("100%", "100%")), [(0, 4, 4), (1, 4, 4)]),
        (ordered("BlueGreen", ("50%", "0%"), ("100%", "100%")), [(0, 2, 2), (0, 2, 2), (1, 4, 4)]),
        (ordered("BlueGreen", (1, "0%")), [(0, 1, 1), (1, 7, 7)]),
        (ordered("InPlace", (3, "60%")), [(3, 3, 3), (1, 1, 1)]),
        (ordered("InPlace", (3, "60%"), unavailable=2), [(3, 3, 3), (1, 1, 1)]),
    ],
    ids=lambda value: str(value) if isinstance(value, list) else value.strategy.name,
)
def test_loads_come_one_after_the_other(found: Forecast, expected: list[tuple[int, int, int]]) -> None:
    assert table(found, loading) == expected


def test_each_waits_until_the_one_before_has_been_ready_for_long_enough() -> None:
    (step, promotion) = ordered("BlueGreen", ("100%", "0%"), seconds=20, min_ready_seconds=30).rows
    assert step.seconds == 4 * LOAD + 3 * 20 + 30
    assert promotion.back_seconds == step.seconds


def test_the_way_back_is_as_slow() -> None:
    parallel, one_by_one = (of("InPlace", (3, "0%"), unavailable=3, order=each).rows[0] for each in (None, Order()))
    assert (parallel.back_seconds, one_by_one.back_seconds) == (LOAD, 3 * LOAD)
    assert parallel.back_loads == one_by_one.back_loads == 3


def test_in_a_pair_the_slowest_workload_is_waited_for() -> None:
    style = plan("Pair", ("100%", "0%"), routed=True)
    companions = (Companion(2, 100.0, Order()), Companion(3, 500.0))
    both = Given(4, load_seconds=LOAD, active=4, scales_sides=True, companions=companions, order=Order(10))
    (step, _) = forecast(style, both).rows
    assert (step.rounds, step.loads, step.seconds) == (4, 9, 4 * LOAD + 30)
    alone = Given(1, load_seconds=LOAD, active=1, scales_sides=True, companions=(Companion(9, 100.0, Order()),))
    (step, _) = forecast(style, alone).rows
    assert (step.rounds, step.loads, step.seconds) == (9, 10, 900)


@pytest.mark.parametrize(("extra", "order", "rounds"), [(1, Order(), 2), (3, None, 1), (3, Order(), 2)])
def test_a_shift_makes_its_groups_in_their_order(extra: int, order: Order | None, rounds: int) -> None:
    style = plan("Pair", (2, "auto"), routed=True, shift={"maxExtraGroups": extra})
    given = Given(4, load_seconds=LOAD, active=4, scales_sides=True, order=order)
    found = forecast(style, given)
    assert found.rows[0].rounds == rounds
    assert found.loads == 4
    assert found.seconds >= forecast(style, Given(4, load_seconds=LOAD, active=4, scales_sides=True)).seconds


def test_the_order_is_the_workloads() -> None:
    def made(kind: type[Target], **spec: Any) -> Target:
        return msgspec.json.decode(msgspec.json.encode({"metadata": {"name": "a"}, "spec": spec}), type=kind)

    assert order_of(made(StatefulSetTarget, minReadySeconds=7)) == Order(7)
    assert order_of(made(StatefulSetTarget, podManagementPolicy="Parallel")) is None
    assert order_of(made(LeaderWorkerSet)) is None
