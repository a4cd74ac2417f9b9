"""What the release of a swap will take, in tables; tests/scenarios/test_forecast.py and tests/cli/plan/test_swap.py
measure releases and compare.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollout_lws.capacity import known
from rollout_lws.forecast.forecast import forecast, much_extra
from rollout_lws.forecast.model import Forecast, Given, Row
from tests.capacity.plans import plan

#: Grace period and drain time of the plans, and how long a group loads.
GRACE, DRAIN, LOAD = 3, 30, 600
#: Seconds until the roles have changed, and the route is back at the user's Service.
OVER = GRACE + DRAIN + GRACE
HALVES = (("50%", "0%"), ("100%", "50%"))


def of(*steps: Any, replicas: int = 4, routed: bool = True, style: str = "BlueGreen", **more: Any) -> Forecast:
    promotion = {"promotion": "Swap"} if style == "BlueGreen" else {}
    made = plan(style, *steps, routed=routed, **promotion)
    return forecast(made, Given(replicas, load_seconds=LOAD, **more))


def groups(row: Row) -> tuple[int, int, int, int]:
    return row.new, row.extra, row.loads, row.ready


def pausing(replicas: Any, traffic: str | None, **pause: Any) -> dict[str, Any]:
    return {"replicas": replicas, "pause": pause} | ({"traffic": traffic} if traffic else {})


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        # Groups of the new version, those beyond R, those that load, and fewest ready groups that have requests.
        (HALVES, [(2, 2, 2, 4), (4, 4, 2, 4), (4, 4, 0, 4)]),
        (((1, "20%"),), [(1, 1, 1, 4), (4, 4, 3, 4)]),
        ((("100%", "100%"),), [(4, 4, 4, 4), (4, 4, 0, 4)]),
    ],
)
def test_a_release_loads_what_each_phase_adds(steps: Any, expected: list[Any], swapped: bool) -> None:
    found = of(*steps, swapped=swapped)
    assert [groups(row) for row in found.rows] == expected
    assert found.strategy is (known.SWAP_BACK if swapped else known.SWAP)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (of(*HALVES), [LOAD, LOAD, OVER]),
        (of((1, "20%")), [LOAD + GRACE, LOAD + OVER]),
        # Routers hear of the first group while others load; later ones need not be heard of.
        (of(1), [LOAD, LOAD + OVER]),
        (of(pausing(1, None, duration=2), (2, "10%")), [LOAD + 2, LOAD, LOAD + OVER]),
        (of(pausing("100%", None, duration=1)), [LOAD + 1, GRACE - 1 + OVER]),
        # Requests that have moved before drain when the user's Service follows.
        (of(pausing("100%", "100%", duration=600)), [LOAD + GRACE + 600, OVER]),
        # A share that a step withdraws is waited for no second time.
        (of((2, "10%"), ("100%", "0%")), [LOAD + GRACE, LOAD, OVER]),
        (of(*HALVES, min_ready_seconds=50), [LOAD + 50, LOAD + 50, OVER]),
        (of(1, routed=False), [LOAD, LOAD]),
    ],
)
def test_time(found: Forecast, expected: list[float]) -> None:
    assert [row.seconds for row in found.rows] == expected


def test_without_a_route_requests_follow_the_groups_and_those_that_go_have_some() -> None:
    found = of("50%", "100%", routed=False)
    assert [round(row.share, 3) for row in found.rows] == [0.333, 0.5, 1]
    assert [row.disrupted for row in found.rows] == [0, 0, 4]
    assert [row.back_disrupted for row in found.rows] == [2, 4, 4]
    assert (found.disrupted_load, found.cuts, found.peak_load) == (1, 1, 1)


def test_clients_past_the_route_lose_the_groups_that_go() -> None:
    assert [row.disrupted for row in of(*HALVES, unlisted=True).rows] == [0, 0, 4]


@pytest.mark.parametrize("style", ["ExtraWorkload", "InPlace", "Surge"])
def test_another_plan_brings_the_requests_home_in_the_same_way(style: str) -> None:
    found = of((1, "20%"), ("100%", "50%"), style=style, swapped=True)
    assert (found.strategy, found.loads, found.extra, found.windows) == (known.SWAP_BACK, 4, 4, 0)
    # Its last step of 100% waits for no approval.
    assert found.approvals == (1,)
    assert found.rows[-1].seconds == (LOAD if style == "InPlace" else 0) + OVER


def test_one_group_is_brought_home_by_a_plan_in_place() -> None:
    assert of((1, "50%"), replicas=1, style="InPlace", swapped=True).loads == 1
    with pytest.raises(ValueError, match="needs at least 2 groups"):
        of((1, "50%"), replicas=1, style="InPlace")


@pytest.mark.parametrize("swapped", [False, True])
def test_without_groups_a_version_takes_effect_by_itself(swapped: bool) -> None:
    with pytest.raises(ValueError, match="the workload has 0 groups, and a version takes effect there by itself"):
        of(*HALVES, replicas=0, swapped=swapped)


@given(data=st.data())
def test_a_release_loads_r_groups_beside_r_and_the_way_back_none(data: st.DataObject) -> None:
    replicas = st.integers(1, 20) | st.integers(1, 100).map(lambda percent: f"{percent}%")
    traffic = st.none() | st.just("auto") | st.integers(0, 100).map(lambda percent: f"{percent}%")
    pauses = st.sampled_from([{}, {"duration": 0}, {"duration": 60}])
    routed, swapped = data.draw(st.booleans()), data.draw(st.booleans())
    count, asked = data.draw(st.integers(1, 20)), data.draw(st.integers(1, 5))
    steps = [
        pausing(data.draw(replicas), data.draw(traffic) if routed else None, **data.draw(pauses)) for _ in range(asked)
    ]
    made = plan("BlueGreen", *steps, routed=routed, promotion="Swap")
    found = forecast(made, Given(count, load_seconds=LOAD, swapped=swapped))
    assert (found.loads, found.extra, found.windows, found.cuts) == (count, count, 0, 1)
    assert found.disrupted == (0 if routed else count)
    assert much_extra(made, count) == ""
    standing = 0
    for row in found.rows:
        standing += row.loads
        assert (row.new, row.extra, row.back_loads, row.back_seconds) == (standing, standing, 0, 0)
        assert (row.load_new or 0) * standing + (row.load_stable or 0) * count == pytest.approx(count)
        assert row.peak_load >= max(row.load_new or 0, row.load_stable or 0) - 1e-9
        assert row.seconds >= 0
    assert (standing, found.rows[-1].share) == (count, 1)
