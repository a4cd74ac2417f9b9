"""What one version's pods have counted since a moment, in slices of a pod and a scrape interval.

A pod counts from its first reading here on: what it had counted before, in a warm-up or for the version that a pod of
its name was before, is not the version's. Slices keep what belongs together: requests of one pod and a few seconds
have the same luck, which ``shares`` measures by them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import NamedTuple, TypeAlias

from rollout_lws.analysis.readings import Counts, Histogram, Level, Nothing, Read, Reading, Same, Trouble, Work

#: Slices that are kept; beyond, neighbours of a pod become one. A window of two hours has 480 of one pod.
MOST_SLICES = 256

#: Seconds for which a pod is not read, or for the same reason, before that is worth telling: what comes and goes from
#: round to round would be told anew each time.
LASTING = 60.0


class Server(NamedTuple):
    """One of several servers of a pod, by the pod's uid and the server's address."""

    pod: str
    address: str


#: What counts for itself: a pod by its uid, or one of its servers.
Key: TypeAlias = str | Server


@dataclass(frozen=True, slots=True)
class Slice:
    """What came to a pod's counters between two readings."""

    pod: Key
    more: Reading


@dataclass(frozen=True, slots=True)
class Unread:
    """A pod has brought no reading ``since`` then: the last time for the reason ``why``, which is that ``why_since``
    then; ``lasting`` is the last reason that was the same for LASTING seconds, "" if none was.
    """

    since: float
    why: str
    why_since: float
    lasting: str = ""

    def after(self, now: float, why: str) -> Unread:
        """With one more attempt that failed."""
        since = self.why_since if why == self.why else now
        return Unread(self.since, why, since, why if now - since >= LASTING else self.lasting)


@dataclass(frozen=True, slots=True)
class Seen:
    """A pod: its last reading and when that was, for how many seconds it has stood still then, with requests and no
    token, and what the last attempts came to if they have brought no reading.
    """

    read: Reading | Nothing | None = None
    at: float = 0.0
    still: float = 0.0
    unread: Unread | None = None


@dataclass(frozen=True, slots=True)
class Ledger:
    """``pods`` are those that the version has now, by uid; ``slices`` also those of pods that have gone."""

    pods: Mapping[Key, Seen] = field(default_factory=dict)
    slices: tuple[Slice, ...] = ()

    def after(self, now: float, reads: Mapping[Key, Read], times: Mapping[Key, float] | None = None) -> Ledger:
        """With one round of readings, of all pods that the version has now; ``times`` are those of readings that are
        older than ``now``.
        """
        pods: dict[Key, Seen] = {}
        more, at = [], times or {}
        for pod, read in reads.items():
            before = self.pods.get(pod, Seen())
            if isinstance(read, Same):
                pods[pod] = before
                continue
            if isinstance(read, Trouble):
                unread = before.unread or Unread(now, read.why, now)
                pods[pod] = replace(before, unread=unread.after(now, read.why))
                continue
            came = _came(before.read, read)
            stands = isinstance(came, Work) and came.running > 0 and came.tokens == 0
            when = at.get(pod, now)
            pods[pod] = Seen(read, when, before.still + when - before.at if stands else 0.0)
            if came is not None:
                more.append(Slice(pod, came))
        return Ledger(pods, _fewer((*self.slices, *more)))

    def emptied(self) -> Ledger:
        """With nothing counted: what comes now counts from the last readings on."""
        return Ledger(self.pods)

    def troubles(self) -> dict[Key, str]:
        """Pods that the last round could not read, and why."""
        return {pod: seen.unread.why for pod, seen in self.pods.items() if seen.unread is not None}

    def unread(self, now: float) -> dict[Key, Unread]:
        """Pods that could not be read for LASTING seconds."""
        found = ((pod, seen.unread) for pod, seen in self.pods.items())
        return {pod: each for pod, each in found if each is not None and now - each.since >= LASTING}

    def silent(self) -> bool:
        """True if no pod has exposed the signal in the last round."""
        return not any(isinstance(seen.read, Histogram | Counts | Level | Work) for seen in self.pods.values())

    def reached(self) -> bool:
        """Whether requests have reached the version since the beginning."""
        return any(each.more.reached for each in self.slices)

    def histogram(self) -> Histogram | None:
        """All requests; None without any slice of a histogram."""
        found = [each.more for each in self.slices if isinstance(each.more, Histogram)]
        return reduce(Histogram.plus, found) if found else None

    @property
    def samples(self) -> float:
        """Completed requests; readings, of a gauge."""
        return sum(map(_samples, self.slices))


def _came(before: Reading | Nothing | None, read: Reading | Nothing) -> Reading | None:
    """What came to a pod's counters; None where that is unknown, or nothing that could be counted."""
    match before, read:
        case Histogram(), Histogram():
            return read.since(before)
        case Counts(), Counts():
            return read.since(before)
        case Work(), Work():
            return read.since(before)
        case _, Level():
            return read.since(before if isinstance(before, Level) else None)
        case Nothing(), Histogram() | Counts():
            # Counters that appear with the first request were 0 before.
            return read
        case _:
            return None


def _samples(each: Slice) -> float:
    match each.more:
        case Histogram() | Counts():
            return each.more.total
        case Level():
            return each.more.readings
        case Work():
            return 1


def _fewer(slices: tuple[Slice, ...]) -> tuple[Slice, ...]:
    """The same figures in at most MOST_SLICES, or in one of each pod."""
    pods = {each.pod for each in slices}
    while len(slices) > max(MOST_SLICES, len(pods)):
        slices = tuple(_halved(slices))
    return slices


def _halved(slices: Iterable[Slice]) -> Iterable[Slice]:
    by_pod: dict[Key, list[Slice]] = defaultdict(list)
    for each in slices:
        by_pod[each.pod] += [each]
    for of_pod in by_pod.values():
        for at in range(0, len(of_pod), 2):
            yield reduce(_joined, of_pod[at : at + 2])


def _joined(first: Slice, second: Slice) -> Slice:
    return Slice(first.pod, added(first.more, second.more))


def added(one: Reading, other: Reading) -> Reading:
    """The sum of two readings; the later one, where a pod has changed what it exposes."""
    match one, other:
        case Histogram(), Histogram():
            return one.plus(other)
        case Counts(), Counts():
            return one.plus(other)
        case Level(), Level():
            return one.plus(other)
        case Work(), Work():
            return one.plus(other)
        case _:
            return other
