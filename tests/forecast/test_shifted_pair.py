"""What the release of a pair that shifts will take, in tables; tests/cli/plan/test_pair_shift.py measures releases and
compares.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from rollout_lws.capacity import known
from rollout_lws.capacity.batches import wanted_groups
from rollout_lws.capacity.shifted_pair import Margin
from rollout_lws.capacity.weights import overload
from rollout_lws.forecast.forecast import forecast, much_extra
from rollout_lws.forecast.model import Forecast, Given, Row
from tests.capacity.plans import plan
from tests.forecast.test_pair import carried, pausing

#: Grace period and drain time of the plans, together, and how long a group loads.
GRACE, DRAIN, LOAD = 3, 30, 600
GOES = GRACE + DRAIN
QUARTERS = (("25%", "auto"), ("75%", "auto"))
MATCHES = {"replicas": 1, "matches": [{"headers": [{"name": "a", "value": "b"}]}], "pause": {}}


def of(*steps: Any, extra: int | str = 1, unavailable: int | str = 0, replicas: int = 4, **more: Any) -> Forecast:
    shift = {"maxExtraGroups": extra, "maxUnavailableGroups": unavailable}
    told = Given(replicas, active=replicas, scales_sides=True, **{"load_seconds": LOAD, **more})
    return forecast(plan("Pair", *steps, routed=True, shift=shift), told)


def lacking(*steps: Any, **more: Any) -> Forecast:
    return of(*steps, extra=0, unavailable=1, **more)


def made(row: Row) -> tuple[int, ...]:
    return row.new, row.extra, row.loads, row.rounds, row.ready


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        # Groups that are waited for, those beyond R, those that load, one after the other, and fewest ready ones that
        # have requests.
        (of(*QUARTERS), [(1, 1, 1, 1, 4), (3, 1, 2, 2, 4), (4, 1, 1, 1, 4)]),
        (of(*QUARTERS, extra=2), [(1, 1, 1, 1, 4), (3, 2, 2, 1, 4), (4, 2, 1, 1, 4)]),
        # The last group is created when the others have all requests, and nothing waits for it.
        (lacking(*QUARTERS), [(1, 0, 1, 1, 3), (3, 0, 2, 2, 3), (3, 0, 1, 0, 3)]),
        # Groups that are gone leave room for one more, while another one loads.
        (of((2, "auto"), extra=2, unavailable=1), [(2, 2, 2, 1, 3), (4, 2, 2, 1, 3)]),
        (of("100%", replicas=1), [(1, 1, 1, 1, 1), (1, 1, 0, 0, 1)]),
        (of((9, "auto"), replicas=3, extra="100%"), [(2, 2, 2, 1, 3), (3, 3, 1, 1, 3)]),
        # The bare promotion makes no groups.
        (of((1, "auto"), "100%", replicas=2), [(1, 1, 1, 1, 2), (1, 1, 0, 0, 3), (2, 1, 1, 1, 2)]),
        # Groups go that the new version has in their place, without requests.
        (of(2), [(2, 1, 2, 2, 2), (4, 1, 2, 2, 4)]),
    ],
)
def test_groups_come_as_there_is_room(found: Forecast, expected: list[Any]) -> None:
    assert found.strategy is known.SHIFTED_PAIR
    assert [made(row) for row in found.rows] == expected


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        # Share, load of a group of the new and of the old version, the most that any group carries.
        (of(*QUARTERS), [(0.25, 1, 1, 1), (0.75, 1, 1, 1), (1, 1, 0, 1)]),
        (lacking(*QUARTERS), [(0.25, 1, 1, 1.333), (0.75, 1, 1, 1.36), (1, 1.333, 0, 1.333)]),
        (of((1, "40%")), [(0.4, 1.6, 0.8, 1.6), (1, 1, 0, 1)]),
        (of((1, "10%"), (3, "60%")), [(0.1, 0.4, 1.2, 1.2), (0.6, 0.8, 1.6, 1.6), (1, 1, 0, 1)]),
        # A share that is changed in the same second does not count.
        (of(pausing(3, "60%", duration=0)), [(0.6, 0.8, 1.6, 1), (1, 1, 0, 1)]),
        (of(("100%", "60%")), [(0.6, 0.8, 1.6, 1), (1, 1, 0, 1)]),
        (of((1, "auto"), replicas=1), [(0.99, 0.99, 0.01, 1), (1, 1, 0, 1)]),
        (of(2), [(0, 0, 2, 2), (1, 1, 0, 1)]),
        (of(MATCHES), [(0, 0, 1.333, 1.333), (1, 1, 0, 1)]),
    ],
)
def test_requests_follow_the_groups(found: Forecast, expected: list[Any]) -> None:
    assert [carried(row) for row in found.rows] == expected


NEXT = GRACE + GOES + LOAD


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        # The next group comes when routers have acted on the weights, and one of the other side has drained.
        (of(*QUARTERS), [LOAD + GRACE, 2 * NEXT, NEXT + GOES]),
        (lacking(*QUARTERS), [GOES + LOAD + GRACE, 2 * NEXT, GOES]),
        (of(*QUARTERS, min_ready_seconds=50), [LOAD + 50, 2 * (NEXT + 50), NEXT + 50 + GOES]),
        (of(*QUARTERS, extra=3), [LOAD + GRACE, LOAD, LOAD + GOES]),
        # Groups drain while a step pauses.
        (of(pausing(1, "auto", duration=20), QUARTERS[1]), [LOAD + GRACE + 20, 2 * NEXT - 20, NEXT + GOES]),
        (of(pausing(3, "auto", duration=600)), [2 * NEXT + LOAD + GRACE + 600, LOAD + GOES]),
        # Requests that have all moved drain as well.
        (of(pausing(1, "100%", duration=20), replicas=1), [LOAD + GRACE + 20, GOES - 20]),
        (of({**MATCHES, **pausing(1, "100%", duration=20)}, replicas=1), [LOAD + GRACE + 20, GOES]),
        # The first share waits until routers know the groups, be it in the last row.
        (of(1), [LOAD, GOES + LOAD + 2 * NEXT + GOES]),
        (of(MATCHES, replicas=2), [LOAD + GRACE, NEXT + GOES]),
        # And that the last one was created, a second after the first one was ready.
        (of((2, "auto"), unavailable=1, replicas=3, load_seconds=32), [GOES + 32, 2 * GRACE + GOES + GOES]),
    ],
)
def test_time_with_loads_and_drains(found: Forecast, expected: list[float]) -> None:
    assert [row.seconds for row in found.rows] == expected


def test_without_the_time_of_a_load_the_waits_are_told() -> None:
    found = of(*QUARTERS, load_seconds=0)
    assert [(row.rounds, row.seconds) for row in found.rows] == [(1, GRACE), (2, 2 * (GRACE + GOES)), (1, 2 * GOES + 3)]
    # What comes after a drain, and not after a load, adds no load to the others.
    assert [row.rounds for row in of((2, "auto"), extra=2, unavailable=1, load_seconds=0).rows] == [1, 1]


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        # Half of the groups can carry all requests: what runs on the new ones drains while others load. One alone
        # cannot, and gets its second one when routers have acted on it and one of the new version has drained.
        (of(*QUARTERS), [(1, LOAD), (3, LOAD + GOES + LOAD), (3, GRACE + GOES + LOAD + GOES + LOAD)]),
        # A place is free when a group of the new version has gone.
        (lacking(*QUARTERS), [(1, GOES + LOAD), (3, GRACE + 2 * (GOES + LOAD)), (3, GRACE + 2 * (GOES + LOAD))]),
        # Groups that still drain when the roles are about to change stay.
        (of((2, "auto"), extra=2), [(2, LOAD), (2, GOES + LOAD)]),
        # Without requests there is nothing to wait for.
        (lacking(1), [(1, LOAD), (3, GRACE + 2 * (GOES + LOAD))]),
        (lacking(MATCHES), [(1, GOES + LOAD), (3, GRACE + 2 * (GOES + LOAD))]),
        (of((1, "auto"), replicas=1), [(0, 0), (0, 0)]),
        (of((1, "auto"), replicas=2), [(1, LOAD), (1, GOES + LOAD)]),
        # Groups of the old version have requests from when they are ready.
        (of((1, "auto"), replicas=2, min_ready_seconds=50), [(1, LOAD), (1, GOES + LOAD)]),
        # When the others can carry all requests, the new ones go together.
        (of((2, "auto"), replicas=3, extra=2, load_seconds=20), [(2, 20 + GOES), (2, 20 + GOES + 20)]),
        # With room for all of them requests move, and drain, when they are ready.
        (of((3, "auto"), extra=4), [(3, LOAD + GOES), (3, LOAD + GOES)]),
    ],
)
def test_the_way_back_loads_what_has_gone(found: Forecast, expected: list[Any]) -> None:
    assert [(row.back_loads, row.back_seconds) for row in found.rows] == expected
    assert {row.back_disrupted for row in found.rows} == {0}


def test_what_stands_at_the_same_time() -> None:
    assert [row.standing for row in of(*QUARTERS).rows] == [
        ((4, 0), (4, 1)),
        ((4, 1), (3, 2), (2, 3)),
        ((2, 3), (1, 4), (0, 4)),
    ]
    assert of(*QUARTERS).cuts == 4
    assert [row.standing for row in lacking((1, "auto"), replicas=2).rows] == [((2, 0), (1, 1)), ((1, 1), (0, 2))]


def test_gates_and_approvals() -> None:
    gate = {"name": "slow", "metric": {"signal": "TimeToFirstToken", "max": "2s"}, "deadlineSeconds": 900}
    asked = pausing(1, "auto", duration=10) | {"gates": [gate]}
    assert of(asked).rows[0].seconds == LOAD + GRACE + 300
    assert of(*QUARTERS, "100%").approvals == (1, 2)
    assert of(pausing(1, "auto", duration=0), ("100%", "auto")).approvals == ()


def test_one_group_needs_room_for_another_one() -> None:
    with pytest.raises(ValueError, match=r"the pair has 1 group, and with shift\.maxExtraGroups 0 it would go before"):
        lacking(*QUARTERS, replicas=1)
    with pytest.raises(ValueError, match="the pair has 0 groups, and the side that gets another version becomes"):
        of(*QUARTERS, replicas=0)


@st.composite
def _any_shift(draw: st.DrawFn, *, auto: bool = False) -> tuple[Forecast, Margin]:
    replicas = st.integers(1, 20) | st.integers(1, 100).map(lambda percent: f"{percent}%")
    traffic = st.none() | st.just("auto") | st.integers(0, 100).map(lambda percent: f"{percent}%")
    pauses = st.sampled_from([{}, {"duration": 0}, {"duration": 20}, {"duration": 600}])
    shares = st.just("auto") if auto else traffic
    steps = [pausing(draw(replicas), draw(shares), **draw(pauses)) for _ in range(draw(st.integers(1, 4)))]
    differ = st.integers(0, 4) | st.integers(0, 100).map(lambda percent: f"{percent}%")
    extra, unavailable = draw(differ), draw(differ)
    assume(not {extra, unavailable} <= {0, "0%"})
    groups, load, waits = draw(st.integers(1, 12)), *(draw(st.sampled_from([0, 2, 600])) for _ in range(2))
    shift = {"maxExtraGroups": extra, "maxUnavailableGroups": unavailable}
    asked, margin = plan("Pair", *steps, routed=True, shift=shift), Margin.of(extra, unavailable, groups)
    assume((groups > 1 or margin.extra) and overload(asked, groups) is None)
    told = Given(groups, load_seconds=load, min_ready_seconds=waits, active=groups, scales_sides=True)
    found = forecast(asked, told)
    assert [row.new for row in found.rows[:-1]] == [
        wanted_groups(asked, index, groups) for index in range(1, len(asked.steps) + 1)
    ]
    assert much_extra(asked, groups) == ""
    return found, margin


@given(_any_shift())
def test_a_release_loads_r_groups_in_the_room_that_there_is(drawn: tuple[Forecast, Margin]) -> None:
    found, margin = drawn
    told, replicas = found.given, found.given.replicas
    assert (found.loads, found.disrupted, found.windows) == (replicas, 0, 0)
    assert found.extra <= margin.extra
    assert 1 <= found.cuts <= replicas
    came = 0
    for row in found.rows:
        came += row.loads
        last = row.step is None
        # Without extra groups the last one comes when the hand-over is done.
        awaited = row.loads - (1 if last and not margin.extra else 0)
        assert (row.rounds > 0) == (awaited > 0) and row.rounds <= awaited
        assert row.seconds >= row.rounds * (told.load_seconds + told.min_ready_seconds)
        assert came == (replicas if last else row.new)
        assert row.extra == max(0, *(sum(each) - replicas for each in row.standing))
        assert all(old >= fewer and new <= more for (old, new), (fewer, more) in pairwise(row.standing))
        assert 0 <= row.back_loads <= replicas - 1
        assert (row.back_seconds >= told.load_seconds) if row.back_loads else row.back_seconds == 0
        assert row.ready >= 1
        old = 1 if last else max(1, replicas - row.new)
        assert (row.load_new or 0) * row.new + (row.load_stable or 0) * old == pytest.approx(replicas)
        if row.approval:
            assert row.peak_load >= max(row.load_new or 0, row.load_stable or 0) - 1e-9
    assert found.rows[-1].share == 1
    assert found.rows[0].standing[0] == (replicas, 0)
    assert found.rows[-1].standing[-1] == (0, replicas)


@given(_any_shift(auto=True))
def test_shares_in_proportion_leave_as_many_groups_as_are_asked_for(drawn: tuple[Forecast, Margin]) -> None:
    found, margin = drawn
    least = max(1, found.given.replicas - margin.unavailable)
    # Without extra groups the last one is yet to come when all requests have moved.
    assert found.ready >= min(least, found.given.replicas + margin.extra - 1)
    if 2 * margin.unavailable <= found.given.replicas:
        # Weights are whole percents.
        assert found.peak_load <= 2.1
