"""Capacity Pair with ``shift``: groups of the side that has the requests go as those of the other side come.

Both sides together have at most R + ``extra`` groups, terminating ones among them, and at least R - ``unavailable``
ready ones.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from rollout_lws.capacity.pair import ScaledPair
from rollout_lws.objects.scaling import scaled


class ShiftedPair(ScaledPair):
    """Releases scale both workloads, one up as the other one goes down. The last group of the side that has the
    requests stays until the other side has all of them.
    """

    takes_places = True
    full_set = False
    shifts = True

    def extra(self, new: int) -> int:
        return 0

    def sharing(self, new: int, replicas: int) -> int:
        return max(1, replicas)


@dataclass(frozen=True, slots=True)
class Margin:
    """Groups beyond R that both sides may have together, and ready ones that may lack in R."""

    extra: int
    unavailable: int

    @classmethod
    def of(cls, extra: int | str, unavailable: int | str, replicas: int) -> Margin:
        """Counts or "N%" of ``replicas``: extra groups are rounded up, unavailable ones down. One group stays ready;
        where percentages leave neither, one may lack.
        """
        more = scaled(extra, replicas)
        fewer = scaled(unavailable, replicas, up=False)
        return cls(more, min(fewer or (0 if more else 1), max(0, replicas - 1)))


@dataclass(frozen=True, slots=True)
class Side:
    """One workload of the pair: ``asked`` groups, and of each that exists its ordinal and whether it is ready."""

    asked: int
    groups: tuple[tuple[int, bool], ...] = ()
    lowered_from: int = 0
    """The number from which another client has lowered ``asked``, as far as groups beyond still terminate; else 0."""

    @property
    def standing(self) -> int:
        """Groups that have accelerators, or will: those that are asked for, and those beyond that still terminate."""
        return self.asked + sum(ordinal >= self.asked for ordinal, _ in self.groups)

    def ready(self, number: int) -> int:
        """Ready groups that are left if it is scaled down to ``number``: the highest ones go."""
        return sum(ready for ordinal, ready in self.groups if ordinal < min(number, self.asked))

    def fewer(self, least: int, needed: int, *, free: bool = False) -> int:
        """The smallest number, not below ``least``, with which as many groups as ``needed`` stay ready; with ``free``,
        if there are fewer, those go that are not ready.
        """
        number = self.asked
        enough = min(needed, self.ready(self.asked)) if free else needed
        while number > least and self.ready(number - 1) >= enough:
            number -= 1
        return number


@dataclass(frozen=True, slots=True)
class Shift:
    """The numbers of groups that the two sides may have next."""

    stable: int
    new: int


def shift(margin: Margin, replicas: int, stable: Side, new: Side, *, stable_to: int, new_to: int) -> Shift:
    """What the sides may have next on the way to ``stable_to`` and ``new_to``. A side that grows gets as many groups as
    there is room for, the new one first; of one that shrinks those go without which enough stay ready.
    """
    room = max(0, replicas + margin.extra - stable.standing - new.standing)
    needed = max(1, replicas - margin.unavailable)
    new_next = min(new_to, new.asked + room)
    if new_to < new.asked:
        new_next = new.fewer(new_to, needed - stable.ready(stable.asked), free=True)
    lacking, left = needed - new.ready(new_next), room - max(0, new_next - new.asked)
    # The places of groups that another client has scaled away are taken until they are gone.
    asked = max(stable.asked, min(stable.lowered_from, lacking))
    while replace(stable, asked=asked).standing > stable.standing + left:
        asked -= 1
    left -= replace(stable, asked=asked).standing - stable.standing
    stable_next = min(stable_to, asked + max(0, left))
    if stable_to < asked:
        # Groups that are not ready go for those of the new version that have no room.
        stable_next = replace(stable, asked=asked).fewer(stable_to, lacking, free=not room and new_to > new.asked)
    return Shift(max(stable_next, min(asked, stable_to)), new_next)
