"""Numbers of groups of a pair that shifts: what is promised in every state, and that both sides reach theirs.

The workloads here are as small as they can be: groups that are created, load, fail and terminate, in any order.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rollout_lws.capacity import known
from rollout_lws.capacity.batches import wanted_groups
from rollout_lws.capacity.shifted_pair import Margin, Shift, Side, shift
from rollout_lws.capacity.table import strategy_of_plan
from tests.capacity.plans import plan


@pytest.mark.parametrize(
    ("extra", "unavailable", "replicas", "margin"),
    [
        (1, 0, 4, Margin(1, 0)),
        (2, 1, 4, Margin(2, 1)),
        (0, 1, 4, Margin(0, 1)),
        # Extra groups are rounded up, unavailable ones down.
        ("25%", "25%", 10, Margin(3, 2)),
        ("1%", "1%", 8, Margin(1, 0)),
        ("50%", "50%", 3, Margin(2, 1)),
        ("100%", "0%", 4, Margin(4, 0)),
        # Percentages that come to nothing together: without one group no other could go.
        (0, "10%", 4, Margin(0, 1)),
        ("0%", "24%", 4, Margin(0, 1)),
        # One group stays ready, whatever is asked for.
        (0, 4, 4, Margin(0, 3)),
        (0, "100%", 4, Margin(0, 3)),
        (1, 9, 4, Margin(1, 3)),
        (1, "100%", 1, Margin(1, 0)),
        (0, 1, 1, Margin(0, 0)),
        (1, 0, 1, Margin(1, 0)),
        (1_000_000, 0, 4, Margin(1_000_000, 0)),
        # A Rollout that is scaled to 0.
        (1, 1, 0, Margin(1, 0)),
        ("50%", "50%", 0, Margin(0, 0)),
    ],
)
def test_margins_are_counts_of_the_number_of_groups(
    extra: int | str, unavailable: int | str, replicas: int, margin: Margin
) -> None:
    assert Margin.of(extra, unavailable, replicas) == margin


def side(text: str, asked: int | None = None) -> Side:
    """A character for each ordinal from 0: "r" is ready, "l" is not, "-" is not there; as many are asked for, unless
    ``asked`` says otherwise.
    """
    groups = tuple((ordinal, each == "r") for ordinal, each in enumerate(text) if each != "-")
    return Side(len(text) if asked is None else asked, groups)


def lowered(told: Side, number: int) -> Side:
    """The side after another client has scaled it down from ``number``."""
    return replace(told, lowered_from=number)


@pytest.mark.parametrize(
    ("text", "asked", "standing", "ready"),
    [
        ("", 0, 0, 0),
        ("rrrr", 4, 4, 4),
        ("rlr", 3, 3, 2),
        # Asked for, and not made yet.
        ("r", 3, 3, 1),
        # They terminate, and have their accelerators until then.
        ("rrll", 2, 4, 2),
        ("--l", 0, 1, 0),
        # The scale-down is not acted on yet: what is above goes, ready or not.
        ("rrrr", 2, 4, 2),
    ],
)
def test_a_side_stands_with_what_is_asked_for_and_what_terminates(
    text: str, asked: int, standing: int, ready: int
) -> None:
    told = side(text, asked)
    assert (told.standing, told.ready(told.asked)) == (standing, ready)


@pytest.mark.parametrize(
    ("margin", "stable", "new", "to", "found"),
    [
        # Forward: one comes, then one goes.
        (Margin(1, 0), side("rrrr"), side(""), (3, 1), (4, 1)),
        (Margin(1, 0), side("rrrr"), side("l"), (3, 1), (4, 1)),
        (Margin(1, 0), side("rrrr"), side("r"), (3, 1), (3, 1)),
        (Margin(1, 0), side("rrr"), side("r"), (1, 3), (3, 2)),
        (Margin(1, 0), side("rrrl", 3), side("r"), (1, 3), (3, 1)),
        (Margin(1, 0), side("r"), side("rrr"), (1, 4), (1, 4)),
        # No accelerator is free: one goes, then one comes.
        (Margin(0, 1), side("rrrr"), side(""), (3, 1), (3, 0)),
        (Margin(0, 1), side("rrrl", 3), side(""), (3, 1), (3, 0)),
        (Margin(0, 1), side("rrr"), side(""), (3, 1), (3, 1)),
        (Margin(0, 1), side("r"), side("rrr"), (1, 4), (1, 3)),
        # Both at the same time.
        (Margin(2, 1), side("rrrr"), side(""), (1, 3), (3, 2)),
        # A group that is not ready gets time, unless its place is what a new one waits for.
        (Margin(1, 0), side("rrrl"), side(""), (1, 3), (4, 1)),
        (Margin(1, 0), side("rrrl"), side("l"), (1, 3), (3, 1)),
        (Margin(1, 0), side("rrrl"), side("l"), (1, 1), (4, 1)),
        (Margin(1, 0), side("lrrr"), side("l"), (1, 3), (4, 1)),
        # Another client has scaled the side down: it gets those back that are needed.
        (Margin(1, 0), lowered(side("rlll", 1), 4), side(""), (3, 1), (4, 1)),
        (Margin(1, 0), lowered(side("rlll", 1), 4), side("r"), (3, 1), (3, 1)),
        (Margin(0, 1), lowered(side("rlll", 1), 4), side("r"), (3, 1), (2, 1)),
        (Margin(1, 0), lowered(side("llll", 0), 4), side("rrr"), (1, 3), (1, 3)),
        (Margin(1, 0), lowered(side("llll", 0), 4), side("rrr"), (4, 0), (1, 3)),
        # There is room for one group, on one of the sides.
        (Margin(0, 1), lowered(side("ll-l", 0), 4), side(""), (3, 1), (2, 1)),
        # Of the new side, too: a version that does not come up keeps what serves.
        (Margin(1, 0), side("rrr"), side("lr"), (1, 3), (3, 2)),
        # Back: what stands on the new side goes as the old one grows.
        (Margin(1, 0), side("r"), side("rrr"), (4, 0), (2, 3)),
        (Margin(1, 0), side("rl"), side("rrr"), (4, 0), (2, 3)),
        (Margin(1, 0), side("rr"), side("rrr"), (4, 0), (2, 2)),
        (Margin(1, 0), side("rrr"), side("ll"), (4, 0), (3, 0)),
        (Margin(0, 1), side("r"), side("rrr"), (4, 0), (1, 2)),
        # The other workload does not exist.
        (Margin(1, 0), side("rr"), Side(0), (4, 0), (4, 0)),
        # Others have scaled both sides up: what is too much goes.
        (Margin(1, 0), side("rrrr"), side("rrrr"), (2, 2), (2, 2)),
        (Margin(1, 0), side("rrrr"), side("llll"), (2, 2), (4, 2)),
    ],
    ids=str,
)
def test_a_side_gets_as_many_as_there_is_room_for_and_gives_up_what_is_not_needed(
    margin: Margin, stable: Side, new: Side, to: tuple[int, int], found: tuple[int, int]
) -> None:
    assert shift(margin, 4, stable, new, stable_to=to[0], new_to=to[1]) == Shift(*found)


# In every state


#: Terminating groups: those that a release has scaled away, and those that another client has.
ENDING = ("ending", "lowered")


@dataclass
class Workload:
    """One side, by what it is asked for, and what its controllers and nodes have made of that: states by ordinal."""

    asked: int
    groups: dict[int, str] = field(default_factory=dict)

    @classmethod
    def serving(cls, number: int) -> Workload:
        return cls(number, dict.fromkeys(range(number), "ready"))

    @property
    def side(self) -> Side:
        found = tuple((ordinal, self.groups[ordinal] == "ready") for ordinal in sorted(self.groups))
        beyond = (ordinal + 1 for ordinal, state in self.groups.items() if ordinal >= self.asked and state == "lowered")
        return Side(self.asked, found, max(beyond, default=0))

    @property
    def ready(self) -> int:
        return sum(state == "ready" for state in self.groups.values())

    def scale(self, number: int, state: str = "ending") -> None:
        self.asked = number
        going = (each for each in self.groups if each >= number and self.groups[each] not in ENDING)
        self.groups |= dict.fromkeys(going, state)

    def lower(self, number: int) -> None:
        """Another client scales it down, whatever runs there."""
        self.scale(min(self.asked, number), "lowered")

    def create(self) -> None:
        missing = (ordinal for ordinal in range(self.asked) if ordinal not in self.groups)
        self.groups |= dict.fromkeys(missing, "loading")

    def load(self) -> None:
        self._turn("loading", "ready", self.groups)

    def fail(self, ordinal: int) -> None:
        self._turn("ready", "loading", (ordinal,))

    def recover(self, ordinal: int) -> None:
        self._turn("loading", "ready", (ordinal,))

    def end(self) -> None:
        self.groups = {ordinal: state for ordinal, state in self.groups.items() if state not in ENDING}

    def _turn(self, before: str, after: str, ordinals: Any) -> None:
        self.groups |= {each: after for each in ordinals if self.groups.get(each) == before}


@dataclass
class Pair:
    margin: Margin
    replicas: int
    stable: Workload
    new: Workload

    @property
    def ready(self) -> int:
        return self.stable.ready + self.new.ready

    @property
    def standing(self) -> int:
        return self.stable.side.standing + self.new.side.standing

    def shift(self, stable_to: int, new_to: int, undrained: int = 0) -> None:
        """One pass of the controller, with what is promised of it. ``undrained`` groups of a side that shrinks have
        requests still, so that they stay.
        """
        ready, standing = self.ready, self.standing
        sides = self.stable.side, self.new.side
        numbers = shift(self.margin, self.replicas, *sides, stable_to=stable_to, new_to=new_to)
        for workload, number, to in ((self.stable, numbers.stable, stable_to), (self.new, numbers.new, new_to)):
            assert min(workload.asked, to) <= number <= max(workload.asked, to, workload.side.lowered_from)
            workload.scale(min(workload.asked, number + undrained) if number < workload.asked else number)
        assert self.ready >= min(ready, max(1, self.replicas - self.margin.unavailable))
        assert self.standing <= max(standing, self.replicas + self.margin.extra)

    def settle(self) -> None:
        """What ends is gone, and what is asked for is ready."""
        for workload in (self.stable, self.new):
            workload.end()
            workload.create()
            workload.load()

    def passes(self, stable_to: int, new_to: int, most: int) -> int:
        """How many passes it takes until the sides have these numbers, each with everything settled before it."""
        for number in range(most + 1):
            self.settle()
            if (self.stable.asked, self.new.asked) == (stable_to, new_to):
                return number
            self.shift(stable_to, new_to)
        raise AssertionError(f"{self} has not reached {stable_to} and {new_to} after {most} passes")

    def to(self, wanted: int) -> tuple[int, int]:
        """What the sides have when the new one is to have ``wanted`` groups: the last old one stays, and without an
        extra group there is no room for the last new one until that has gone.
        """
        stable = max(1, self.replicas - wanted)
        return stable, min(wanted, self.replicas + self.margin.extra - stable)


MARGINS = st.tuples(st.integers(0, 8), st.integers(0, 8)).filter(any)


@st.composite
def pairs(draw: st.DrawFn) -> Pair:
    """A pair in any state, also in one in which no release has put it: a side that others have scaled."""
    replicas = draw(st.integers(1, 8))
    margin = Margin.of(*draw(MARGINS), replicas)

    def workload() -> Workload:
        asked = draw(st.integers(0, replicas + 2))
        states = st.sampled_from(("ready", "loading", *ENDING))
        found = draw(st.dictionaries(st.integers(0, replicas + 3), states))
        kept = {each: state for each, state in found.items() if each < asked}
        return Workload(asked, {**dict.fromkeys(found, draw(st.sampled_from(ENDING))), **kept})

    return Pair(margin, replicas, workload(), workload())


ACTS = st.sampled_from(("forward", "back", "create", "load", "fail", "recover", "end", "lower"))


@given(pairs(), st.lists(st.tuples(ACTS, st.booleans(), st.integers(0, 9)), max_size=30))
def test_no_pass_takes_ready_groups_that_are_needed_or_makes_more_than_there_may_be(
    pair: Pair, acts: list[tuple[str, bool, int]]
) -> None:
    for act, on_new, number in acts:
        workload = pair.new if on_new else pair.stable
        match act:
            case "forward":
                pair.shift(*pair.to(1 + number % pair.replicas), undrained=number % 3)
            case "back":
                pair.shift(pair.replicas, 0, undrained=number % 3)
            case "fail" | "recover" | "lower":
                getattr(workload, act)(number)
            case _:
                getattr(workload, act)()


def _moves(pair: Pair) -> bool:
    """Of a single group without room for another one nothing can move: the preflight refuses it."""
    return bool(pair.margin.extra or pair.margin.unavailable)


@given(pairs(), st.integers(1, 8))
@example(Pair(Margin(0, 1), 2, Workload(0), Workload(0)), 2)
def test_every_state_leads_to_what_is_asked_for(pair: Pair, wanted: int) -> None:
    if not _moves(pair):
        return
    most = 4 * pair.replicas + 4
    pair.passes(*pair.to(min(wanted, pair.replicas)), most)
    pair.passes(pair.replicas, 0, most)


@pytest.mark.parametrize("replicas", range(1, 9))
def test_a_release_and_its_way_back_take_a_few_passes(replicas: int) -> None:
    for extra in range(replicas + 1):
        for unavailable in range(replicas + 1):
            margin = Margin.of(extra, unavailable, replicas)
            for wanted in range(1, replicas + 1):
                pair = Pair(margin, replicas, Workload.serving(replicas), Workload(0))
                if not (extra or unavailable) or not _moves(pair):
                    continue
                # Each pair of passes moves as many groups as may differ, and what is left over takes one more.
                most = 2 * -(-replicas // (margin.extra + margin.unavailable)) + 1
                pair.passes(*pair.to(wanted), most)
                pair.passes(replicas, 0, most)


def test_a_single_group_without_room_stays() -> None:
    pair = Pair(Margin.of(0, 1, 1), 1, Workload.serving(1), Workload(0))
    for _ in range(3):
        pair.shift(1, 1)
        pair.settle()
    assert (pair.stable.asked, pair.new.asked) == (1, 0)


# The capacity


def test_only_a_pair_that_shifts_gives_up_groups_in_its_steps() -> None:
    shifting = plan("Pair", 1, "100%", shift={})
    assert strategy_of_plan(shifting) is known.SHIFTED_PAIR
    assert strategy_of_plan(plan("Pair", 1)) is not known.SHIFTED_PAIR
    assert (shifting.takes_places, plan("Pair", 1).takes_places) == (True, False)


@pytest.mark.parametrize(("steps", "wanted"), [((1, "50%", "100%"), [1, 2, 2]), ((3, 4), [3, 3])])
def test_no_step_asks_for_the_last_group(steps: tuple[Any, ...], wanted: list[int]) -> None:
    asked = plan("Pair", *steps, shift={}, routed=True)
    assert [wanted_groups(asked, index, 4) for index in range(1, len(steps) + 1)] == wanted


@pytest.mark.parametrize(("replicas", "shared"), [(0, 1), (1, 1), (4, 4)])
def test_requests_are_shared_by_all_groups_together(replicas: int, shared: int) -> None:
    assert known.SHIFTED_PAIR.sharing(3, replicas) == shared
    assert known.SHIFTED_PAIR.extra(3) == 0
