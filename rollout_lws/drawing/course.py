"""The course of a release, as a picture shows it: groups of either version, requests and accelerators over time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from rollout_lws.forecast.model import Groups


class Kind(Enum):
    """What a release waits for."""

    PAUSE = "pause"
    GATE = "gate"
    APPROVAL = "approval"


@dataclass(frozen=True, slots=True)
class Wait:
    """A release waits between two seconds; ``name`` is that of a gate, "" of others."""

    kind: Kind
    begins: float
    ends: float
    name: str = ""


@dataclass(frozen=True, slots=True)
class Moment:
    """What is so from the second ``at`` on: groups of the old and the new version by their state, the new version's
    share of requests, 0 to 1, and accelerators of all groups, in the order of ``Course.resources``.
    """

    at: float
    old: Groups
    new: Groups
    share: float
    accelerators: tuple[int, ...] = ()

    @property
    def count(self) -> int:
        return self.old.count + self.new.count


@dataclass(frozen=True, slots=True)
class Stretch:
    """A step, the promotion or a way back, with what is so in it. The first of its ``moments`` is at its begin.

    ``approval``: it ends when a person approves it, at a time that is not known. One that was waited for is a ``Wait``.
    """

    name: str
    begins: float
    ends: float
    moments: tuple[Moment, ...]
    waits: tuple[Wait, ...] = ()
    approval: bool = False


@dataclass(frozen=True, slots=True)
class Course:
    """A release from its begin, the second 0, to its end. ``rest`` is what stood before it.

    ``title`` and ``facts`` are what the picture is called and says in a line. ``replicas`` are the groups that serve at
    rest. ``resources`` are the names of accelerators, () where groups have none. What comes after ``now`` is a
    forecast; None: all of it.
    """

    title: str
    facts: str
    replicas: int
    rest: Moment
    stretches: tuple[Stretch, ...]
    resources: tuple[str, ...] = ()
    now: float | None = None

    @property
    def seconds(self) -> float:
        """How long it takes, with groups that load when it is over."""
        return max(0.0, *(each.ends for each in self.stretches), *(each.at for each in self.moments))

    @property
    def moments(self) -> Iterator[Moment]:
        yield self.rest
        for each in self.stretches:
            yield from each.moments

    @property
    def waits(self) -> Iterator[Wait]:
        return (wait for each in self.stretches for wait in each.waits)
