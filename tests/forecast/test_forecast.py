"""What a release will take, in tables; tests/scenarios/test_forecast.py measures releases and compares."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollout_lws.api import StyleStrategy
from rollout_lws.capacity.batches import wanted_groups
from rollout_lws.forecast.forecast import forecast, much_extra
from rollout_lws.forecast.model import Forecast, Given, Row
from tests.capacity.plans import plan

LOAD = 600
#: Weighted steps of a quarter, a half and the promotion.
STEPS = (("25%", "25%"), ("50%", "50%"), "100%")
FULL = (*STEPS[:2], ("100%", "100%"))


def of(style: str, *steps: Any, replicas: int = 4, routed: bool = True, unavailable: int = 1, **more: Any) -> Forecast:
    made = plan(style, *steps, routed=routed)
    return forecast(made, Given(replicas, unavailable, LOAD, **more))


def table(found: Forecast, tell: Callable[[Row], Any]) -> list[Any]:
    """What each row tells, the promotion last."""
    return [tell(row) for row in found.rows]


def groups(row: Row) -> tuple[int, int, int]:
    return row.new, row.extra, row.ready


def loading(row: Row) -> tuple[int, int, int]:
    return row.windows, row.rounds, row.loads


def carried(row: Row) -> tuple[float | None, ...]:
    told = (row.share, row.load_new, row.load_stable, row.peak_load)
    return tuple(None if each is None else round(each, 3) for each in told)


def back(row: Row) -> tuple[int, float]:
    return row.back_loads, row.back_seconds / LOAD


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        # New groups, groups beyond R, fewest ready groups that have requests.
        (of("InPlace", *STEPS), [(1, 0, 3), (2, 0, 3), (2, 0, 4), (2, 0, 3)]),
        (of("InPlace", *STEPS, unavailable=2), [(1, 0, 3), (2, 0, 3), (2, 0, 4), (2, 0, 2)]),
        (of("InPlace", "100%", unavailable=9), [(3, 0, 1), (3, 0, 1)]),
        (of("InPlace", ("100%", "100%"), unavailable=2), [(3, 0, 2), (3, 0, 3)]),
        # Renewed groups without requests are of no use.
        (of("InPlace", (2, "0%")), [(2, 0, 2), (2, 0, 2)]),
        (of("InPlace", 1, replicas=2), [(1, 0, 1), (1, 0, 1)]),
        (of("Surge", *STEPS), [(1, 1, 4), (2, 2, 5), (2, 2, 6), (2, 2, 4)]),
        (of("Surge", 1, replicas=1), [(1, 1, 1), (1, 1, 1)]),
        (of("ExtraWorkload", *STEPS), [(1, 1, 4), (2, 2, 5), (2, 2, 6), (2, 2, 4)]),
        (of("ExtraWorkload", *FULL), [(1, 1, 4), (2, 2, 5), (4, 4, 4), (4, 4, 4)]),
        (of("ExtraWorkload", 1, replicas=1, routed=False), [(1, 1, 1), (1, 1, 1)]),
        (of("BlueGreen", *FULL), [(1, 1, 4), (2, 2, 5), (4, 4, 4), (4, 4, 4)]),
        # Green grows to R before anything is promoted.
        (of("BlueGreen", 1), [(1, 1, 4), (4, 4, 4)]),
        (of("ExtraWorkload", "33%", "66%", replicas=7), [(3, 3, 7), (5, 5, 7), (5, 5, 7)]),
    ],
)
def test_groups_of_each_phase(found: Forecast, expected: list[Any]) -> None:
    assert table(found, groups) == expected


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        # Windows, loads one after the other, loads.
        (of("InPlace", *STEPS), [(1, 1, 1), (1, 1, 1), (0, 0, 0), (2, 2, 2)]),
        (of("InPlace", *STEPS, unavailable=2), [(1, 1, 1), (1, 1, 1), (0, 0, 0), (1, 1, 2)]),
        (of("InPlace", 3, replicas=8, unavailable=2), [(2, 2, 3), (3, 3, 5)]),
        (of("InPlace", ("100%", "100%"), replicas=8, unavailable=3), [(3, 3, 7), (1, 1, 1)]),
        (of("Surge", *STEPS), [(1, 1, 1), (1, 1, 1), (0, 0, 0), (2, 2, 4)]),
        (of("Surge", 3, replicas=8, unavailable=1), [(1, 1, 3), (3, 3, 8)]),
        (of("Surge", ("100%", "100%"), replicas=8), [(1, 1, 8), (1, 1, 8)]),
        (of("ExtraWorkload", *STEPS), [(0, 1, 1), (0, 1, 1), (0, 0, 0), (4, 4, 4)]),
        (of("ExtraWorkload", *STEPS, unavailable=3), [(0, 1, 1), (0, 1, 1), (0, 0, 0), (2, 2, 4)]),
        # As many ready groups as the LWS has and routed requests: its own are renewed all at once.
        (of("ExtraWorkload", *FULL), [(0, 1, 1), (0, 1, 1), (0, 1, 2), (1, 1, 4)]),
        (of("ExtraWorkload", *FULL, unlisted=True), [(0, 1, 1), (0, 1, 1), (0, 1, 2), (4, 4, 4)]),
        (of("ExtraWorkload", 4, routed=False), [(0, 1, 4), (4, 4, 4)]),
        (of("BlueGreen", *FULL), [(0, 1, 1), (0, 1, 1), (0, 1, 2), (1, 1, 4)]),
        (of("BlueGreen", 4, routed=False, unavailable=2), [(0, 1, 4), (2, 2, 4)]),
        (of("BlueGreen", 1), [(0, 1, 1), (1, 2, 7)]),
        (of("BlueGreen", 4, 4), [(0, 1, 4), (0, 0, 0), (1, 1, 4)]),
    ],
)
def test_model_loads_of_each_phase(found: Forecast, expected: list[Any]) -> None:
    assert table(found, loading) == expected


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        # Groups that are deleted while they get requests: on the way, and on the way back.
        (of("InPlace", *STEPS), [(1, 0), (1, 0), (0, 0), (2, 4)]),
        (of("InPlace", (1, "0%"), (2, "50%")), [(1, 0), (1, 0), (2, 4)]),
        # One of four is not enough for all requests: the first groups go back while they still get some.
        (of("InPlace", (3, "60%")), [(3, 1), (1, 4)]),
        (of("InPlace", *STEPS, unlisted=True), [(1, 1), (1, 2), (0, 2), (2, 4)]),
        (of("InPlace", 2, routed=False), [(2, 2), (2, 4)]),
        (of("Surge", *STEPS), [(0, 0), (0, 0), (0, 0), (6, 6)]),
        (of("Surge", *STEPS, unlisted=True), [(0, 1), (0, 2), (0, 2), (6, 6)]),
        (of("Surge", 2, routed=False), [(0, 2), (6, 6)]),
        (of("ExtraWorkload", *STEPS), [(0, 0), (0, 0), (0, 0), (4, 4)]),
        (of("ExtraWorkload", *FULL), [(0, 0), (0, 0), (0, 0), (0, 0)]),
        (of("ExtraWorkload", *FULL, unlisted=True), [(0, 0), (0, 0), (0, 0), (4, 4)]),
        # The Services of the LWS lead to its canary as well, or by LWS's own label only to itself.
        (of("ExtraWorkload", 2, routed=False), [(0, 2), (6, 6)]),
        (of("ExtraWorkload", 2, routed=False, reached=False), [(0, 0), (4, 4)]),
        (of("BlueGreen", *FULL), [(0, 0), (0, 0), (0, 0), (0, 0)]),
    ],
)
def test_groups_that_are_deleted_while_they_get_requests(found: Forecast, expected: list[Any]) -> None:
    assert table(found, lambda row: (row.disrupted, row.back_disrupted)) == expected


@pytest.mark.parametrize(
    ("found", "cuts"),
    [
        # Each window that renews groups, and the end of those beyond R.
        (of("InPlace", *STEPS), 4),
        (of("InPlace", *STEPS, unavailable=2), 3),
        # Windows of its steps only add groups.
        (of("Surge", *STEPS), 2 + 1),
        (of("ExtraWorkload", *STEPS), 4 + 1),
        (of("ExtraWorkload", *FULL), 1 + 1),
        (of("BlueGreen", *FULL), 1 + 1),
    ],
)
def test_how_often_a_connection_past_the_route_is_cut(found: Forecast, cuts: int) -> None:
    assert found.cuts == cuts


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        # Share of the new version, load of a group of either side, highest load of any.
        (
            of("InPlace", (1, "10%"), (2, "60%")),
            [(0.1, 0.4, 1.2, 1.333), (0.6, 1.2, 0.8, 1.34), (0.667, 1.333, 1.333, 1.333)],
        ),
        (of("InPlace", ("100%", "100%"), replicas=3), [(0.67, 1.005, 0.99, 1.5), (1.0, 1.5, None, 1.5)]),
        (of("InPlace", 2, routed=False), [(0.5, 1.0, 1.0, 1.333), (0.667, 1.333, 1.333, 1.333)]),
        (of("Surge", (1, "40%"), (2, "40%")), [(0.4, 1.6, 0.6, 1.6), (0.4, 0.8, 0.6, 1.6), (0.5, 1.0, 1.0, 1.0)]),
        # A canary that is to carry less than its due while stable groups are away gets its due.
        (of("ExtraWorkload", (1, "5%")), [(0.05, 0.2, 0.95, 1.0), (0.25, 1.0, 1.0, 1.0)]),
        (of("ExtraWorkload", (1, "40%")), [(0.4, 1.6, 0.6, 1.6), (0.4, 1.6, 0.8, 1.6)]),
        (of("ExtraWorkload", 1), [(0.0, 0.0, 1.0, 1.0), (0.25, 1.0, 1.0, 1.0)]),
        (of("ExtraWorkload", 2, routed=False), [(0.333, 0.667, 0.667, 1.0), (0.4, 0.8, 0.8, 1.0)]),
        (of("ExtraWorkload", 1, replicas=1, routed=False), [(0.5, 0.5, 0.5, 1.0), (1.0, 1.0, None, 1.0)]),
        # Services that select by LWS's name lead nobody to a second LWS; in one LWS there is only one name.
        (of("ExtraWorkload", 2, routed=False, reached=False), [(0.0, 0.0, 1.0, 1.0), (0.0, 0.0, 1.333, 1.333)]),
        (of("Surge", 2, routed=False, reached=False), [(0.333, 0.667, 0.667, 1.0), (0.5, 1.0, 1.0, 1.0)]),
        (
            of("BlueGreen", ("50%", "0%"), ("100%", "100%")),
            [(0.0, 0.0, 1.0, 1.0), (1.0, 1.0, 0.0, 1.0), (1.0, 1.0, None, 1.0)],
        ),
        (of("BlueGreen", (4, "100%"), unlisted=True), [(1.0, 1.0, 0.0, 1.0), (1.0, 1.0, 0.0, 1.0)]),
    ],
)
def test_share_and_loads_of_each_phase(found: Forecast, expected: list[Any]) -> None:
    assert table(found, carried) == expected


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        # Groups that load again, and for how many loads one after the other; in the promotion at most. In place they go
        # all at once, with 33 s for routers and requests, where the others can do without them.
        (of("InPlace", *STEPS), [(1, 1.055), (2, 1.055), (2, 1.055), (4, 4)]),
        (of("InPlace", 1, 3, unavailable=2, routed=False), [(1, 1), (3, 2), (4, 2)]),
        (of("InPlace", 1, replicas=2, unavailable=2), [(1, 1), (2, 2)]),
        (of("Surge", *STEPS), [(0, 0), (0, 0), (0, 0), (4, 4)]),
        (of("ExtraWorkload", *STEPS, unavailable=2), [(0, 0), (0, 0), (0, 0), (4, 2)]),
        (of("ExtraWorkload", *FULL), [(0, 0), (0, 0), (0, 0), (4, 1)]),
        (of("BlueGreen", *FULL), [(0, 0), (0, 0), (0, 0), (4, 1)]),
        (of("BlueGreen", *FULL, unlisted=True), [(0, 0), (0, 0), (0, 0), (4, 4)]),
    ],
)
def test_the_way_back_from_each_phase(found: Forecast, expected: list[Any]) -> None:
    assert table(found, back) == expected


@pytest.mark.parametrize(
    ("found", "seconds"),
    [
        # Routers hear of the first group before they hear of its share; running requests end before groups go.
        (of("ExtraWorkload", *STEPS), [LOAD + 3, LOAD, 0, 4 * LOAD + 33]),
        (of("ExtraWorkload", *STEPS[1:]), [LOAD + 3, 0, 4 * LOAD + 33]),
        (of("ExtraWorkload", 1), [LOAD, 3 + 4 * LOAD + 33]),
        (of("ExtraWorkload", *STEPS, routed=False), [LOAD, LOAD, 0, 4 * LOAD]),
        (of("ExtraWorkload", *STEPS, min_ready_seconds=1), [LOAD + 3, LOAD + 1, 0, 4 * LOAD + 4 + 33]),
        (of("ExtraWorkload", *STEPS, min_ready_seconds=60), [LOAD + 60, LOAD + 60, 0, 4 * LOAD + 240 + 33]),
        (of("BlueGreen", *FULL), [LOAD + 3, LOAD, LOAD, 33 + LOAD + 3 + 33]),
        (of("BlueGreen", *FULL, min_ready_seconds=60), [LOAD + 60] * 3 + [33 + LOAD + 60 + 33]),
        (of("BlueGreen", *FULL, unlisted=True), [LOAD + 3, LOAD, LOAD, 33 + 4 * LOAD + 33]),
        (of("BlueGreen", ("50%", "0%")), [LOAD, LOAD + 33 + LOAD + 3 + 33]),
        (of("BlueGreen", 2, routed=False), [LOAD, LOAD + 4 * LOAD]),
        (of("InPlace", *STEPS), [LOAD + 3, LOAD, 0, 3 + 2 * LOAD]),
        (of("InPlace", (3, "75%"), replicas=8), [3 * LOAD + 3, 3 + 5 * LOAD]),
        (of("Surge", *STEPS), [LOAD + 3, LOAD, 0, 3 + 2 * LOAD]),
        # Where no step gives a share there is none to end.
        (of("InPlace", 1), [LOAD, 3 * LOAD]),
        (of("Surge", {"replicas": 1, "matches": [{"path": {"value": "/new"}}]}), [LOAD, 3 + 4 * LOAD]),
        (of("Surge", *STEPS, routed=False), [LOAD, LOAD, 0, 2 * LOAD]),
    ],
)
def test_seconds_of_each_phase(found: Forecast, seconds: list[float]) -> None:
    assert table(found, lambda row: row.seconds) == seconds
    assert found.seconds == sum(seconds)


def test_a_pause_counts_where_it_has_a_duration_and_an_approval_is_named() -> None:
    steps = [
        {"replicas": 1, "traffic": "0%", "pause": {"duration": 1}},
        {"replicas": 1, "traffic": "10%", "pause": {"duration": 3600}},
        {"replicas": 2, "traffic": "20%", "pause": {"approvalTimeoutSeconds": 60}},
        {"replicas": "100%", "traffic": "100%", "pause": {"duration": 7}},
    ]
    canary = of("ExtraWorkload", *steps)
    # The share waits for what of the grace is left after the first pause; the last step of 100% waits for nobody.
    assert table(canary, lambda row: row.seconds)[:4] == [LOAD + 1, 2 + 3600, LOAD, LOAD]
    assert canary.approvals == (3,)
    green = of("BlueGreen", *steps)
    assert (green.rows[3].seconds, green.approvals) == (LOAD + 7, (3,))
    assert of("BlueGreen", *FULL).approvals == (1, 2, 3)


def test_totals_are_those_of_the_whole_release() -> None:
    def totals(found: Forecast) -> tuple[float, ...]:
        return (found.extra, found.ready, found.loads, found.rounds, found.windows)

    assert totals(of("InPlace", *STEPS)) == (0, 3, 4, 4, 4)
    assert totals(of("Surge", *STEPS)) == (2, 4, 6, 4, 4)
    assert totals(of("ExtraWorkload", *STEPS)) == (2, 4, 6, 6, 4)
    assert totals(of("BlueGreen", *FULL)) == (4, 4, 8, 4, 1)


@pytest.mark.parametrize(
    ("style", "replicas", "told"),
    [("InPlace", 1, "needs at least 2 groups"), ("InPlace", 0, "0 groups"), ("BlueGreen", 0, "0 groups")],
)
def test_what_cannot_be_done_in_steps_is_said_with_what_to_do(style: str, replicas: int, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        of(style, 1, replicas=replicas)


@pytest.mark.parametrize(
    ("style", "replicas", "steps", "step"),
    [
        ("ExtraWorkload", 4, (1, 2, "100%"), None),
        ("ExtraWorkload", 4, (1, 3), 2),
        ("ExtraWorkload", 4, (1, ("100%", "100%")), 2),
        ("ExtraWorkload", 5, ("50%",), 1),
        ("Surge", 4, (2,), None),
        ("Surge", 4, (3,), 1),
        ("Surge", 1, (1,), None),
        ("InPlace", 4, (3,), None),
        ("BlueGreen", 4, (4,), None),
        ("ExtraWorkload", 0, (1,), None),
    ],
)
def test_a_step_that_takes_more_than_half_again_is_warned_of(
    style: str, replicas: int, steps: Any, step: int | None
) -> None:
    told = much_extra(plan(style, *steps, routed=True), replicas)
    assert told.startswith(f"step {step} takes ") if step else told == ""


def test_the_warning_names_the_numbers_and_the_way_out() -> None:
    assert much_extra(plan("Surge", "75%"), 4) == (
        "step 1 takes 3 groups beside the workload's 4, more than half as many again: lower its replicas, or use"
        " capacity InPlace, which takes none"
    )


# Of any plan

_STYLES = st.sampled_from(["InPlace", "Surge", "ExtraWorkload", "BlueGreen"])
_REPLICAS = st.integers(1, 20) | st.integers(1, 100).map(lambda percent: f"{percent}%")
_TRAFFIC = st.none() | st.just("auto") | st.integers(0, 100).map(lambda percent: f"{percent}%")
_PAUSES = st.sampled_from([{}, {"duration": 0}, {"duration": 60}])


@st.composite
def _any_plan(draw: st.DrawFn) -> tuple[StyleStrategy, Given]:
    style, routed = draw(_STYLES), draw(st.booleans())
    steps = []
    for _ in range(draw(st.integers(1, 5))):
        step = {"replicas": draw(_REPLICAS), "pause": draw(_PAUSES)}
        traffic = draw(_TRAFFIC) if routed else None
        steps.append(step | ({"traffic": traffic} if traffic else {}))
    least = 2 if style == "InPlace" else 1
    told = Given(draw(st.integers(least, 20)), draw(st.integers(0, 25)), LOAD, 0, draw(st.booleans()))
    return plan(style, *steps, routed=routed), told


@given(_any_plan())
def test_a_release_of_any_plan(drawn: tuple[StyleStrategy, Given]) -> None:
    made, told = drawn
    found, replicas = forecast(made, told), told.replicas
    wanted = [wanted_groups(made, index, replicas) for index in range(1, len(made.steps) + 1)]
    assert [row.step for row in found.rows] == [*range(1, len(wanted) + 1), None]
    assert [row.new for row in found.rows[:-1]] == wanted
    for row in found.rows:
        assert min(row.windows, row.rounds, row.loads, row.back_loads) >= 0
        assert 0 <= row.back_disrupted <= replicas + row.extra
        assert row.seconds >= row.rounds * LOAD
        assert row.loads >= row.rounds >= (1 if row.loads else 0)
        assert 0 <= row.share <= 1
    in_place = found.strategy.name == "InPlace"
    # What each style announces.
    most = replicas if found.strategy.name == "BlueGreen" else 0 if in_place else wanted[-1]
    assert found.extra == most
    assert found.loads == replicas + most
    assert [row.back_loads for row in found.rows[:-1]] == [new if in_place else 0 for new in wanted]
    assert found.rows[-1].back_loads == replicas


@given(_any_plan())
def test_all_requests_are_carried_by_whoever_has_a_share(drawn: tuple[StyleStrategy, Given]) -> None:
    made, told = drawn
    found, replicas = forecast(made, told), told.replicas
    for row in found.rows[:-1]:
        stable = replicas - (row.new if found.strategy.name == "InPlace" else 0)
        carried = row.new * (row.load_new or 0) + stable * (row.load_stable or 0)
        assert carried == pytest.approx(replicas)
        assert row.peak_load >= max(row.load_new or 0, row.load_stable or 0)


@given(_any_plan())
def test_no_more_groups_are_away_than_may_be(drawn: tuple[StyleStrategy, Given]) -> None:
    made, told = drawn
    found, replicas = forecast(made, told), told.replicas
    away = min(max(1, told.unavailable), replicas - 1) if found.strategy.name == "InPlace" else 0
    for row, before in zip(found.rows, (None, *found.rows), strict=False):
        lasting = [each for each in (row, before) if each is not None and each.step is not None]
        sharing = [each.share for each in lasting]
        if found.strategy.name == "InPlace" and any(share in (0, 1) for share in sharing) and made.traffic_routings:
            # The plan itself gives one side nothing.
            assert row.ready >= 1
        elif 1 in sharing:
            assert row.ready >= min(each.new for each in lasting)
        else:
            assert row.ready >= replicas - away
