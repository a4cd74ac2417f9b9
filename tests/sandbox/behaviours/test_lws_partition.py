"""Each pass of a rolling update, against vectors taken from LeaderWorkerSet's own integration scenarios."""

from __future__ import annotations

import pytest

from rollout_lws.sandbox.behaviours.lws.partition import GroupState, Leaders, Strategy, partition_and_replicas, resolve

STATES = {
    "o": GroupState(ready=True, updated=False),
    "O": GroupState(ready=True, updated=True),
    "x": GroupState(ready=False, updated=False),
    "X": GroupState(ready=False, updated=True),
}


def groups(text: str) -> list[GroupState]:
    """One letter a group from ordinal 0: o ready, x not; capital letters are updated."""
    return [STATES[letter] for letter in text]


def one_pass(
    strategy: tuple[int, int, int, int], leaders: tuple[int, int, int] | None, row: str, changed: bool = False
) -> tuple[int, int]:
    """strategy is (replicas, maxUnavailable, maxSurge, partition); leaders is (replicas, partition, scaled for)."""
    replicas, down, surge, partition = strategy
    return partition_and_replicas(
        Strategy(replicas, partition, down, min(surge, replicas)),
        None if leaders is None else Leaders(*leaders),
        groups(row),
        changed,
    )


@pytest.mark.parametrize(
    ("strategy", "leaders", "row", "changed", "wanted"),
    [
        pytest.param((4, 1, 0, 0), None, "xxxx", False, (0, 4), id="a first deployment is not staged"),
        pytest.param((4, 1, 0, 9), None, "xxxx", False, (9, 4), id="it is born with the partition in the spec"),
        pytest.param((4, 1, 0, 0), (4, 0, 4), "oooo", True, (4, 4), id="4,1,0 a new template closes the partition"),
        pytest.param((4, 1, 0, 0), (4, 4, 4), "oooo", False, (3, 4), id="4,1,0 then one group"),
        pytest.param((4, 1, 0, 0), (4, 3, 4), "oooX", False, (3, 4), id="4,1,0 waits until it is ready"),
        pytest.param((4, 1, 0, 0), (4, 3, 4), "oooO", False, (2, 4), id="4,1,0 then the next"),
        pytest.param((4, 1, 0, 0), (4, 1, 4), "oOXO", False, (1, 4), id="4,1,0 a relapse never raises it"),
        pytest.param((4, 1, 0, 0), (4, 1, 4), "oOOO", False, (0, 4), id="4,1,0 the last"),
        pytest.param((4, 1, 0, 0), (4, 0, 4), "xxxx", False, (0, 4), id="at rest nothing is computed"),
        pytest.param((4, 2, 0, 0), (4, 4, 4), "oooo", False, (2, 4), id="4,2,0 two groups"),
        pytest.param((4, 2, 0, 0), (4, 2, 4), "ooXO", False, (1, 4), id="4,2,0 one of two done"),
        pytest.param((4, 2, 0, 0), (4, 4, 4), "oxoo", False, (3, 4), id="4,2,0 one of the others is broken"),
        pytest.param((4, 10, 0, 0), (4, 4, 4), "oooo", False, (0, 4), id="4,10,0 all at once"),
        pytest.param((6, 1, 0, 0), (4, 0, 4), "oooo", True, (4, 6), id="4 to 6 with a new template"),
        pytest.param((6, 1, 0, 0), (4, 2, 4), "ooOO", False, (2, 6), id="4 to 6 in the middle keeps the partition"),
        pytest.param((3, 1, 0, 0), (6, 4, 6), "ooooOO", False, (3, 3), id="6 to 3 in the middle is capped"),
        pytest.param((4, 0, 1, 0), (4, 0, 4), "oooo", True, (4, 5), id="4,0,1 one more group first"),
        pytest.param((4, 0, 1, 0), (5, 4, 4), "ooooO", False, (3, 5), id="4,0,1 surge ready"),
        pytest.param((4, 0, 1, 0), (5, 4, 4), "ooooX", False, (4, 5), id="4,0,1 surge not ready"),
        pytest.param((4, 0, 1, 0), (5, 0, 4), "OOOOO", False, (0, 4), id="4,0,1 surge goes at the end"),
        pytest.param((4, 1, 1, 0), (5, 4, 4), "oooox", False, (3, 5), id="4,1,1 surge and one group together"),
        pytest.param((4, 1, 1, 0), (5, 1, 4), "oOOOO", False, (0, 4), id="4,1,1 the last needs no surge"),
        pytest.param((4, 2, 2, 0), (4, 0, 4), "oooo", True, (4, 6), id="4,2,2 begins with two more"),
        pytest.param((4, 2, 2, 0), (6, 4, 4), "ooooxx", False, (2, 6), id="4,2,2 and two groups"),
        pytest.param((4, 2, 2, 0), (6, 2, 4), "ooOOOO", False, (0, 4), id="4,2,2 ends without them"),
        pytest.param((2, 1, 4, 0), (2, 0, 2), "oo", True, (2, 3), id="2,1,4 surge is capped"),
        pytest.param((2, 1, 4, 0), (3, 2, 2), "oox", False, (1, 3), id="2,1,4 and one group"),
        pytest.param((4, 1, 2, 0), (6, 4, 4), "ooooxx", False, (3, 6), id="4,1,2"),
        pytest.param((2, 1, 0, 0), (2, 2, 2), "xx", False, (1, 2), id="2,1,0 nothing is ready"),
        pytest.param((6, 1, 0, 4), (6, 6, 6), "oooooo", False, (5, 6), id="partition 4 of 6"),
        pytest.param((6, 1, 0, 4), (6, 4, 6), "ooooOO", False, (4, 6), id="partition 4 of 6 holds"),
        pytest.param((6, 1, 0, 2), (6, 4, 6), "ooooOO", False, (3, 6), id="and goes on when it is lowered"),
        pytest.param((3, 1, 1, 2), (4, 2, 3), "ooOO", False, (2, 4), id="a held surge group stays"),
        pytest.param((3, 1, 1, 0), (4, 0, 3), "OOOO", False, (0, 3), id="and goes with the partition"),
        pytest.param((4, 1, 4, 0), (4, 0, 4), "oooo", True, (4, 7), id="4,1,4 surge less what may be down"),
        pytest.param((4, 1, 0, 10**6), (4, 0, 4), "oooo", True, (10**6, 4), id="a standing hold outweighs everything"),
    ],
)
def test_a_pass_gives_the_partition_and_replicas_of_the_real_controller(
    strategy: tuple[int, int, int, int],
    leaders: tuple[int, int, int] | None,
    row: str,
    changed: bool,
    wanted: tuple[int, int],
) -> None:
    assert one_pass(strategy, leaders, row, changed) == wanted


@pytest.mark.parametrize(
    ("value", "replicas", "up", "wanted"),
    [(3, 2, True, 3), ("30%", 3, False, 0), ("30%", 3, True, 1), ("100%", 4, False, 4), ("50%", 5, True, 3)],
)
def test_percentages_round_up_for_surge_and_down_for_unavailable(
    value: int | str, replicas: int, up: bool, wanted: int
) -> None:
    assert resolve(value, replicas, up=up) == wanted
