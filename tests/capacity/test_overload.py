"""Steps whose share falls on too few groups."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollout_lws.capacity.weights import overload
from rollout_lws.forecast.forecast import forecast
from rollout_lws.forecast.model import Given
from tests.capacity.plans import plan


@pytest.mark.parametrize(
    ("style", "replicas", "steps", "found"),
    [
        ("InPlace", 4, [(1, "25%")], None),
        # One group of four may carry half of all requests, no more.
        ("InPlace", 4, [(1, "50%")], None),
        ("InPlace", 4, [(1, "51%")], (1, "new", 2.04)),
        ("Surge", 4, [(1, "50%")], None),
        ("Surge", 4, [(1, "51%")], (1, "new", 2.04)),
        ("Surge", 10, [(1, "10%"), (2, "80%")], (2, "new", 4.0)),
        # In place the old groups become fewer, in Surge all of them stay.
        ("InPlace", 4, [(2, "0%")], None),
        ("InPlace", 4, [(3, "50%")], None),
        ("InPlace", 4, [(3, "49%")], (1, "stable", 2.04)),
        ("InPlace", 4, [3], (1, "stable", 4.0)),
        ("InPlace", 4, [{"replicas": 3, "matches": [{"path": {}}]}], (1, "stable", 4.0)),
        ("Surge", 4, [3], None),
        ("Surge", 4, [("100%", "0%")], None),
        ("InPlace", 2, [(1, "0%")], None),
        ("InPlace", 2, [(1, "99%")], None),
        ("InPlace", 4, [("100%", "100%")], None),
        ("InPlace", 4, [("100%", "auto")], None),
        ("InPlace", 5, [(1, "10%"), (2, "30%"), (4, "30%"), "100%"], (3, "stable", 3.5)),
        # A single percent is more than one group's due where there are hundreds.
        ("InPlace", 1000, [(1, "auto")], (1, "new", 10.0)),
        ("Surge", 150, [(1, "auto")], None),
        ("Surge", 1, [(1, "100%")], None),
        # A second LWS has its own check, and what nobody routes follows the groups.
        ("ExtraWorkload", 4, [(1, "90%")], None),
        ("BlueGreen", 4, [(1, "90%")], None),
        # Refused or waited for elsewhere.
        ("InPlace", 1, [(1, "50%")], None),
        ("InPlace", 0, [(1, "50%")], None),
        ("Surge", 0, [(1, "50%")], None),
    ],
)
def test_more_than_twice_the_requests_of_a_group_at_rest_are_too_many(
    style: str, replicas: int, steps: list[Any], found: tuple[int, str, float] | None
) -> None:
    over = overload(plan(style, *steps, routed=True), replicas)
    assert (over and (over.step, over.side, round(over.factor, 6))) == found


def test_what_nobody_routes_follows_the_groups() -> None:
    assert overload(plan("InPlace", 3), 4) is None


@pytest.mark.parametrize(
    ("style", "replicas", "steps", "message"),
    [
        (
            "Surge",
            4,
            [(1, "60%")],
            "step 1 sends 60% of requests to 1 group of the new version, 2.4 times what a group has at rest and more"
            " than the 2 times that it may have: raise its replicas, or lower its traffic to at most 50%",
        ),
        (
            "InPlace",
            5,
            [(1, "20%"), (3, "10%")],
            "step 2 sends 90% of requests to 2 groups of the stable version, 2.25 times what a group has at rest and"
            " more than the 2 times that it may have: lower its replicas, or raise its traffic to at least 20%",
        ),
    ],
)
def test_the_message_says_which_share_would_do(style: str, replicas: int, steps: list[Any], message: str) -> None:
    over = overload(plan(style, *steps, routed=True), replicas)
    assert over is not None and over.message == message


_SHARE = st.integers(0, 100).map(lambda percent: f"{percent}%")


@given(st.sampled_from(["InPlace", "Surge"]), st.integers(2, 60), st.integers(1, 60), _SHARE)
def test_the_advice_is_the_nearest_share_that_passes(style: str, replicas: int, groups: int, share: str) -> None:
    over = overload(plan(style, (groups, share), routed=True), replicas)
    if over is None:
        return
    advised = int(over.way_out.split()[-1].rstrip("%"))
    assert overload(plan(style, (groups, f"{advised}%"), routed=True), replicas) is None
    beyond = advised + (1 if over.side == "new" else -1)
    assert overload(plan(style, (groups, f"{beyond}%"), routed=True), replicas) is not None


@given(st.sampled_from(["InPlace", "Surge"]), st.integers(2, 60), st.lists(st.integers(1, 60), max_size=4), _SHARE)
def test_what_passes_rests_at_no_more_than_twice_the_load(
    style: str, replicas: int, before: list[int], share: str
) -> None:
    made = plan(style, *((groups, "auto") for groups in sorted(before)), (60, share), routed=True)
    rows = forecast(made, Given(replicas)).rows[:-1]
    highest = max(max(row.load_new or 0, row.load_stable or 0) for row in rows)
    assert (overload(made, replicas) is None) == (highest <= 2)
