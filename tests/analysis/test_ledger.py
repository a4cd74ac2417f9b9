"""What pods counted since a moment, whatever happens to their counters in between."""

from __future__ import annotations

import pytest

from rollout_lws.analysis.ledger import MOST_SLICES, Ledger
from rollout_lws.analysis.readings import (
    Counts,
    Histogram,
    Level,
    Nothing,
    Read,
    Sample,
    Trouble,
    Work,
    histogram_of,
)


def told(*rounds: dict[str, Read], every: float = 15.0) -> Ledger:
    found = Ledger()
    for number, each in enumerate(rounds):
        found = found.after(number * every, each)
    return found


def counted(found: Ledger) -> list[tuple[str, object]]:
    return [(each.pod, each.more) for each in found.slices]


TROUBLE = Trouble("timeout")
OTHER = Histogram((2.0,), (1, 1))
ONE, TWO = Histogram((1.0,), (5, 1)), Histogram((1.0,), (7, 2))


@pytest.mark.parametrize(
    ("rounds", "expected"),
    [
        # The first reading is where a pod begins: what it had counted before is not the version's.
        ([{"a": Counts(5, 50)}], []),
        ([{"a": Counts(5, 50)}, {"a": Counts(6, 60)}], [("a", Counts(1, 10))]),
        ([{"a": ONE}, {"a": TWO}], [("a", Histogram((1.0,), (2, 1)))]),
        # A counter that went back, or other buckets: the process is another one, and what it did first is not known.
        ([{"a": Counts(5, 50)}, {"a": Counts(0, 7)}, {"a": Counts(1, 9)}], [("a", Counts(1, 2))]),
        ([{"a": TWO}, {"a": ONE}], []),
        ([{"a": ONE}, {"a": OTHER}, {"a": OTHER}], [("a", Histogram((2.0,), (0, 0)))]),
        # A pod that was replaced begins anew; what the one before has served stays.
        (
            [{"a": Counts(0, 0)}, {"a": Counts(1, 10)}, {"b": Counts(4, 40)}, {"b": Counts(4, 50)}],
            [("a", Counts(1, 10)), ("b", Counts(0, 10))],
        ),
        # A round that is missing takes nothing away, and is no slice of its own.
        ([{"a": Counts(0, 0)}, {"a": TROUBLE}, {"a": Counts(1, 10)}], [("a", Counts(1, 10))]),
        ([{"a": TROUBLE}, {"a": Counts(1, 10)}], []),
        # Counters that appear with the first request were 0 before.
        ([{"a": Nothing()}, {"a": Counts(1, 10)}], [("a", Counts(1, 10))]),
        ([{"a": Nothing()}, {"a": Nothing()}], []),
        # Each reading of a gauge counts.
        ([{"a": Level(3)}, {"a": Level(5)}], [("a", Level(3)), ("a", Level(5))]),
        ([{"a": Work(2, 100)}, {"a": Work(3, 100)}], [("a", Work(2, 0))]),
    ],
)
def test_what_is_counted(rounds: list[dict[str, Read]], expected: list[tuple[str, object]]) -> None:
    assert counted(told(*rounds)) == expected


def test_slices_keep_their_edges_once() -> None:
    """Of a window of 256 slices they would be two thirds, for each gate."""
    rounds: list[dict[str, Read]] = [
        {
            pod: histogram_of(
                Sample({"le": edge}, float(at * 10**number)) for at, edge in enumerate(("0.5", "1", "+Inf"))
            )
            for pod in "ab"
        }
        for number in range(4)
    ]
    edges = [each.more.edges for each in told(*rounds).slices if isinstance(each.more, Histogram)]
    assert edges == [(0.5, 1.0)] * 6
    assert len({id(each) for each in edges}) == 1


def test_a_pod_that_cannot_be_read_is_named() -> None:
    found = told({"a": Counts(0, 0), "b": Counts(0, 0)}, {"a": TROUBLE, "b": Counts(0, 3)})
    assert found.troubles() == {"a": "timeout"}
    assert found.after(30.0, {"a": Counts(0, 9), "b": Counts(0, 9)}).troubles() == {}


def test_silence_is_not_trouble() -> None:
    assert told({"a": Nothing()}).silent()
    assert not told({"a": Nothing()}).troubles()
    assert not told({"a": Counts(0, 0)}).silent()


def test_many_slices_become_fewer_and_count_the_same() -> None:
    rounds = [{"a": Counts(n, 3 * n), "b": Counts(0, n)} for n in range(4 * MOST_SLICES)]
    found = told(*rounds)
    assert len(found.slices) <= MOST_SLICES
    for pod, bad, total in (("a", 1, 3), ("b", 0, 1)):
        own = [each for each in found.slices if each.pod == pod]
        last = len(rounds) - 1
        assert sum(each.more.bad for each in own) == bad * last  # type: ignore[union-attr]
        assert sum(each.more.total for each in own) == total * last  # type: ignore[union-attr]


def test_more_pods_than_slices_keep_one_each() -> None:
    pods = {f"pod-{number}": Counts(0, 0) for number in range(MOST_SLICES + 10)}
    after = {pod: Counts(1, 2) for pod in pods}
    found = told(pods, after, {pod: Counts(2, 4) for pod in pods})
    assert len(found.slices) == len(pods)
    assert found.samples == 4 * len(pods)


def test_histograms_with_other_edges_are_added_on_those_that_both_have() -> None:
    first, second = Histogram((1.0, 2.0, 4.0), (1, 2, 3, 4)), Histogram((1.0, 3.0, 4.0), (5, 6, 7, 8))
    assert first.plus(second) == Histogram((1.0, 4.0), (6, 18, 12))
    assert first.plus(Histogram((9.0,), (1, 0))) == Histogram((), (11,))


@pytest.mark.parametrize(
    ("limit", "inside", "expected", "around"),
    [
        (1.0, 0.0, 9, (1.0, 1.0)),
        (1.0, 1.0, 9, (1.0, 1.0)),
        (1.5, 0.0, 7, (1.0, 2.0)),
        (1.5, 1.0, 9, (1.0, 2.0)),
        (1.5, 0.5, 8, (1.0, 2.0)),
        (0.5, 0.0, 9, (None, 1.0)),
        (0.5, 1.0, 10, (None, 1.0)),
        (8.0, 0.0, 0, (4.0, None)),
        (8.0, 1.0, 4, (4.0, None)),
    ],
)
def test_above_a_limit(limit: float, inside: float, expected: float, around: tuple[float | None, float | None]) -> None:
    found = Histogram((1.0, 2.0, 4.0), (1, 2, 3, 4))
    assert found.above(limit, inside) == expected
    assert found.around(limit) == around


def test_buckets_that_were_read_at_different_moments_are_no_other_life() -> None:
    """A request was in the second bucket and not yet in the third, so that the third seemed to have lost one."""
    first, second = Histogram((1.0, 2.0), (5, 1, 1)), Histogram((1.0, 2.0), (8, 2, 0))
    assert second.since(first) == Histogram((1.0, 2.0), (3, 1, 0))
    assert first.since(second) is None
