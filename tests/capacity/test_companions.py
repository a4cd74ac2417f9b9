"""How many groups of a companion go with those of the workload that plans speak of."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollout_lws.capacity.replica_math import accompanied, in_proportion


@pytest.mark.parametrize(
    ("groups", "replicas", "own", "found"),
    [(0, 4, 2, 0), (1, 4, 2, 1), (2, 4, 2, 1), (4, 4, 2, 2), (1, 4, 8, 2), (3, 4, 3, 3), (1, 0, 0, 0), (2, 4, 0, 0)],
)
def test_companions_are_made_in_proportion_rounded_up(groups: int, replicas: int, own: int, found: int) -> None:
    assert in_proportion(groups, replicas, own) == found


@pytest.mark.parametrize(
    ("groups", "replicas", "own", "found"),
    [(0, 4, 2, 0), (1, 4, 2, 2), (2, 4, 2, 4), (1, 4, 8, 0), (2, 4, 8, 1), (2, 4, 3, 2), (0, 4, 0, 4)],
)
def test_groups_serve_as_far_as_companions_go_with_them(groups: int, replicas: int, own: int, found: int) -> None:
    assert accompanied(groups, replicas, own) == found


@given(st.integers(1, 50), st.integers(1, 50), st.data())
def test_what_is_made_is_enough_and_no_group_too_many(replicas: int, own: int, data: st.DataObject) -> None:
    groups = data.draw(st.integers(1, replicas))
    made = in_proportion(groups, replicas, own)
    assert accompanied(made, replicas, own) >= groups > accompanied(made - 1, replicas, own)
