"""What the release of a pair will take, in tables; tests/cli/plan/test_pair.py and test_pair_scaled.py measure releases
and compare.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollout_lws.capacity.batches import wanted_groups
from rollout_lws.forecast.forecast import forecast, much_extra
from rollout_lws.forecast.model import Companion, Forecast, Given, Row
from tests.capacity.plans import plan

#: Grace period and drain time of the plans, and how long a group loads.
GRACE, DRAIN, LOAD = 3, 30, 600
HALVES = (("25%", "20%"), ("100%", "50%"))


def of(*steps: Any, active: int = 4, inactive: int = 4, **more: Any) -> Forecast:
    return forecast(plan("Pair", *steps, routed=True), Given(inactive, load_seconds=LOAD, active=active, **more))


def scaled(*steps: Any, replicas: int = 4, load_seconds: float = LOAD, **more: Any) -> Forecast:
    """Of a pair whose releases scale both sides."""
    told = Given(replicas, load_seconds=load_seconds, active=replicas, scales_sides=True, **more)
    return forecast(plan("Pair", *steps, routed=True), told)


def groups(row: Row) -> tuple[int, int]:
    return row.new, row.ready


def carried(row: Row) -> tuple[float | None, ...]:
    return tuple(each and round(each, 3) for each in (row.share, row.load_new, row.load_stable, row.peak_load))


def pausing(replicas: Any, traffic: str | None, **pause: Any) -> dict[str, Any]:
    return {"replicas": replicas, "pause": pause} | ({"traffic": traffic} if traffic else {})


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        # Groups that are waited for, fewest ready groups that have requests.
        (of(*HALVES), [(1, 4), (4, 5), (4, 4)]),
        (of(*HALVES, inactive=2), [(1, 4), (2, 5), (2, 2)]),
        (of(*HALVES, active=2), [(1, 2), (4, 3), (4, 4)]),
        # The owner scales it up.
        (of((9, "10%"), inactive=3), [(9, 4), (9, 9)]),
        (of(1), [(1, 4), (4, 4)]),
    ],
)
def test_groups_of_each_phase(found: Forecast, expected: list[Any]) -> None:
    assert [groups(row) for row in found.rows] == expected


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        # Share, load of a group of the new and of the old version, the most that any group carries.
        (of(*HALVES), [(0.2, 0.2, 0.8, 1), (0.5, 0.5, 0.5, 0.8), (1, 1, 0, 1)]),
        (of(*HALVES, inactive=2), [(0.2, 0.4, 0.8, 1), (0.5, 1, 0.5, 1), (1, 2, 0, 2)]),
        # As few as are waited for may be ready.
        (of((1, "60%")), [(0.6, 0.6, 0.4, 2.4), (1, 1, 0, 2.4)]),
        (of(1, active=8), [(0, 0, 1, 1), (1, 2, 0, 2)]),
        (of((2, "auto"), active=2), [(0.5, 0.25, 0.5, 1), (1, 0.5, 0, 0.5)]),
    ],
)
def test_requests_of_each_phase(found: Forecast, expected: list[Any]) -> None:
    assert [carried(row) for row in found.rows] == expected


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        # Routers hear of the first group before they hear of its first share, whichever row gives it.
        (HALVES, [GRACE, 0, GRACE + DRAIN]),
        ((1, 2), [0, 0, GRACE + GRACE + DRAIN]),
        (({"replicas": 1, "matches": [{"headers": [{"name": "a", "value": "b"}]}]},), [GRACE, GRACE + DRAIN]),
        ((pausing(1, "10%", duration=60), pausing(2, None, duration=7)), [GRACE + 60, 7, GRACE + DRAIN]),
        ((pausing(1, None, duration=2), (2, "10%")), [2, GRACE - 2, GRACE + DRAIN]),
        # Requests drain while the last step pauses.
        ((pausing("100%", "100%", duration=20),), [GRACE + 20, GRACE + DRAIN - 20]),
        ((pausing("100%", "100%", duration=600),), [GRACE + 600, 0]),
    ],
)
def test_time_begins_when_the_groups_are_ready(steps: Any, expected: list[float]) -> None:
    found = of(*steps)
    assert [row.seconds for row in found.rows] == expected
    assert found.seconds == sum(expected)


def test_steps_that_are_approved() -> None:
    assert of(*HALVES).approvals == (1, 2)
    assert of(pausing(1, "10%", duration=0), HALVES[1]).approvals == (2,)


def test_without_groups_there_is_nothing_to_release_to() -> None:
    with pytest.raises(ValueError, match="no workload of the pair has groups: scale one of them up"):
        of(*HALVES, inactive=0)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        # Groups of the new version, that beyond R, that load, and fewest ready groups that have requests.
        (scaled(*HALVES), [(1, 1, 1, 4), (4, 4, 3, 5), (4, 4, 0, 4)]),
        (scaled((1, "10%"), (2, "10%")), [(1, 1, 1, 4), (2, 2, 1, 5), (4, 4, 2, 4)]),
        # No step makes more than R, nor fewer than one before it.
        (scaled((9, "10%"), (1, "20%"), replicas=3), [(3, 3, 3, 3), (3, 3, 0, 6), (3, 3, 0, 3)]),
        (scaled(1, replicas=1), [(1, 1, 1, 1), (1, 1, 0, 1)]),
    ],
)
def test_a_release_that_scales_both_sides_loads_what_each_phase_adds(found: Forecast, expected: list[Any]) -> None:
    assert [(row.new, row.extra, row.loads, row.ready) for row in found.rows] == expected
    assert [row.rounds for row in found.rows] == [min(row.loads, 1) for row in found.rows]


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (scaled(*HALVES), [(0.2, 0.8, 0.8, 1), (0.5, 0.5, 0.5, 0.8), (1, 1, 0, 1)]),
        # Until its other groups have loaded.
        (scaled((1, "60%"), (2, "60%")), [(0.6, 2.4, 0.4, 2.4), (0.6, 1.2, 0.4, 2.4), (1, 1, 0, 1.2)]),
        (scaled((1, "auto"), (9, "auto")), [(0.2, 0.8, 0.8, 1), (0.5, 0.5, 0.5, 0.8), (1, 1, 0, 1)]),
        (scaled(2), [(0, 0, 1, 1), (1, 1, 0, 1)]),
    ],
)
def test_requests_while_both_sides_are_scaled(found: Forecast, expected: list[Any]) -> None:
    assert [carried(row) for row in found.rows] == expected


MATCHES = {"replicas": 1, "matches": [{"headers": [{"name": "a", "value": "b"}]}], "pause": {}}


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (scaled(*HALVES), [LOAD + GRACE, LOAD, GRACE + DRAIN]),
        (scaled(HALVES[0]), [LOAD + GRACE, LOAD + GRACE + DRAIN]),
        # Routers hear of the first group while others load, in whichever row it gets its share.
        (scaled(1, HALVES[1]), [LOAD, LOAD, GRACE + DRAIN]),
        (scaled("100%"), [LOAD, GRACE + GRACE + DRAIN]),
        (scaled(pausing(1, None, duration=2), (1, "10%")), [LOAD + 2, GRACE - 2, LOAD + GRACE + DRAIN]),
        (scaled(MATCHES, (1, "10%")), [LOAD + GRACE, 0, LOAD + GRACE + DRAIN]),
        # And that the last one was created.
        (scaled(pausing(1, None, duration=9), (2, "10%"), load_seconds=1), [10, 1 + GRACE - 1, 1 + GRACE + DRAIN]),
        # Each group has to be ready for a while.
        (scaled(*HALVES, min_ready_seconds=2), [LOAD + 2 + GRACE - 2, LOAD + 2, GRACE + DRAIN]),
        (scaled(*HALVES, min_ready_seconds=50), [LOAD + 50, LOAD + 50, GRACE + DRAIN]),
        # Requests drain while the last step pauses, and wait for no further group.
        (scaled(pausing("100%", "100%", duration=20)), [LOAD + GRACE + 20, GRACE + DRAIN - 20]),
        (scaled(pausing(2, "100%", duration=20)), [LOAD + GRACE + 20, GRACE + DRAIN - 20]),
        # Those that match move anew.
        (scaled({**MATCHES, **pausing("100%", "100%", duration=20)}), [LOAD + GRACE + 20, GRACE + DRAIN]),
    ],
)
def test_time_with_loads(found: Forecast, expected: list[float]) -> None:
    assert [row.seconds for row in found.rows] == expected


def test_without_groups_the_edited_side_becomes_the_active_one() -> None:
    with pytest.raises(ValueError, match="the pair has 0 groups, and the side that gets another version becomes"):
        scaled(*HALVES, replicas=0)


@st.composite
def _any_pair(draw: st.DrawFn, *, scales_sides: bool = False) -> Forecast:
    replicas = st.integers(1, 20) | st.integers(1, 100).map(lambda percent: f"{percent}%")
    traffic = st.none() | st.just("auto") | st.integers(0, 100).map(lambda percent: f"{percent}%")
    pauses = st.sampled_from([{}, {"duration": 0}, {"duration": 60}])
    steps = [pausing(draw(replicas), draw(traffic), **draw(pauses)) for _ in range(draw(st.integers(1, 5)))]
    groups = draw(st.integers(1, 20))
    active = groups if scales_sides else draw(st.integers(0, 20))
    load, waits = (draw(st.sampled_from([0, 2, 600])) for _ in range(2))
    told = Given(groups, load_seconds=load, min_ready_seconds=waits, active=active, scales_sides=scales_sides)
    made = plan("Pair", *steps, routed=True)
    found = forecast(made, told)
    assert [row.new for row in found.rows[:-1]] == [
        wanted_groups(made, index, told.replicas, bounded=scales_sides) for index in range(1, len(made.steps) + 1)
    ]
    assert much_extra(made, told.replicas) == ""
    return found


@given(_any_pair())
def test_a_release_loads_and_takes_down_nothing(found: Forecast) -> None:
    told = found.given
    assert (found.loads, found.windows, found.rounds, found.extra, found.disrupted, found.cuts) == (0, 0, 0, 0, 0, 0)
    standing = told.replicas
    for row in found.rows:
        standing = max(standing, row.new)
        assert (row.back_loads, row.back_seconds, row.back_disrupted) == (0, 0, 0)
        all_of_new, all_of_old = (row.load_new or 0) * standing, (row.load_stable or 0) * told.serving
        assert all_of_new + all_of_old == pytest.approx(told.serving)
        assert row.peak_load >= max(row.load_new or 0, row.load_stable or 0) - 1e-9
        assert row.seconds >= 0
    assert found.rows[-1].share == 1


@given(_any_pair(scales_sides=True))
def test_a_release_that_scales_both_sides_loads_r_groups_beside_r(found: Forecast) -> None:
    replicas = found.given.replicas
    assert (found.loads, found.extra, found.disrupted, found.windows) == (replicas, replicas, 0, 0)
    # Connections that are kept to the old side past the route are cut when it goes.
    assert found.cuts == 1
    if all(row.share < 1 for row in found.rows[:-1]):
        assert found.ready == replicas
    made = 0
    for row in found.rows:
        made += row.loads
        assert (row.new, row.extra, row.rounds) == (made, made, min(row.loads, 1))
        assert (row.back_loads, row.back_seconds, row.back_disrupted) == (0, 0, 0)
        assert (row.load_new or 0) * made + (row.load_stable or 0) * replicas == pytest.approx(replicas)
        assert row.peak_load >= max(row.load_new or 0, row.load_stable or 0) - 1e-9
        assert row.seconds >= 0
    assert (made, found.rows[-1].share) == (replicas, 1)


def beside(found: Forecast) -> list[tuple[tuple[int, int], ...]]:
    """Groups that are waited for and that load, of each companion in each row."""
    return [tuple((each.new, each.loads) for each in row.companions) for row in found.rows]


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (scaled(*HALVES, companions=(Companion(2),)), [((1, 1),), ((2, 1),), ((2, 0),)]),
        # As many as go with the others, rounded up, whichever has more.
        (
            scaled(1, 2, 3, companions=(Companion(2), Companion(6))),
            [
                ((1, 1), (2, 2)),
                ((1, 0), (3, 1)),
                ((2, 1), (5, 2)),
                ((2, 0), (6, 1)),
            ],
        ),
        (scaled(1, replicas=1, companions=(Companion(3),)), [((3, 3),), ((3, 0),)]),
        # Their owner has made them, and scales up those of a side together.
        (of(1, 2, companions=(Companion(2),)), [((1, 0),), ((1, 0),), ((2, 0),)]),
        (of((9, "10%"), inactive=3, companions=(Companion(2),)), [((2, 0),), ((2, 0),)]),
    ],
)
def test_groups_of_companions(found: Forecast, expected: list[Any]) -> None:
    assert beside(found) == expected


def test_loads_and_groups_beyond_those_at_rest_are_those_of_all_workloads() -> None:
    found = scaled(*HALVES, companions=(Companion(2), Companion(1)))
    assert [(row.new, row.loads, row.extra) for row in found.rows] == [(1, 3, 3), (4, 4, 7), (4, 0, 7)]
    assert (found.loads, found.extra, found.rounds, found.ready) == (7, 7, 2, 4)
    assert [carried(row) for row in found.rows] == [carried(row) for row in scaled(*HALVES).rows]


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        # Each row waits for the slowest group that it makes.
        (scaled(*HALVES, companions=(Companion(2, 900),)), [900 + GRACE, 900, GRACE + DRAIN]),
        (scaled(1, 2, 4, companions=(Companion(2, 900),)), [900, LOAD, 900, GRACE + DRAIN]),
        (scaled(*HALVES, companions=(Companion(1, 900),)), [900 + GRACE, LOAD, GRACE + DRAIN]),
        (scaled(*HALVES, companions=(Companion(2, 5),)), [LOAD + GRACE, LOAD, GRACE + DRAIN]),
        # Only a companion adds some.
        (scaled((1, "10%"), (1, "20%"), replicas=2, companions=(Companion(3, 9),)), [LOAD + GRACE, 0, LOAD + 33]),
        # Routers hear of the slowest one's first group before they hear of the first share.
        (
            scaled(pausing(1, None, duration=2), (1, "10%"), load_seconds=1, companions=(Companion(1, 50),)),
            [52, GRACE - 2, 1 + GRACE + DRAIN],
        ),
        (scaled(*HALVES, min_ready_seconds=2, companions=(Companion(2, 900),)), [905 - 2, 902, GRACE + DRAIN]),
        (of(*HALVES, companions=(Companion(2, 900),)), [GRACE, 0, GRACE + DRAIN]),
    ],
)
def test_time_with_companions(found: Forecast, expected: list[float]) -> None:
    assert [row.seconds for row in found.rows] == expected
