"""What users have seen of a release, from the notes of ``tests.nodes.load``: losses and shares, by phase.

A phase begins at a moment and lasts until the next begins. An answered request belongs to the phase in which it
started, since that is when the gateway chose a version for it, and a lost one to the phase in which it failed. So each
request is in exactly one phase. Moments are seconds since the epoch.
"""

from __future__ import annotations

import json
import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from itertools import pairwise

FRESH, KEPT, STREAM = "fresh", "kept", "stream"
#: A failure that is none of the server's: sent on a kept connection that was closed meanwhile, and never read. HTTP
#: clients send such a request again by themselves (RFC 9110, 9.2.2), so it is counted, but apart.
RESET = "reset on a kept connection"
#: The phase of what is older than the first one.
BEFORE = "before"
#: The quantile of the normal distribution that leaves 2.5 % on each side.
_Z = 1.959964

Phase = tuple[float, str]


@dataclass(frozen=True, slots=True)
class Request:
    """``version`` and ``pod`` are those that answered, of a failed one as far as they are known."""

    kind: str
    started: float
    ended: float
    version: str | None = None
    pod: str | None = None
    failure: str | None = None

    @property
    def short(self) -> bool:
        return self.kind != STREAM

    @property
    def moment(self) -> float:
        """By which it belongs to a phase."""
        return self.started if self.failure is None else self.ended

    @property
    def lost(self) -> bool:
        return self.failure is not None and self.failure != RESET


@dataclass(frozen=True, slots=True)
class Log:
    """All requests of a client; ``whole`` is false when it was killed before it had written all."""

    requests: tuple[Request, ...]
    whole: bool


@dataclass(frozen=True, slots=True)
class Tally:
    """Requests by kind: ``short`` and ``streams`` are all of them, of which ``lost`` and ``lost_streams`` failed, and
    ``reset`` is the number of those that were never read.
    """

    short: int = 0
    streams: int = 0
    lost: int = 0
    lost_streams: int = 0
    reset: int = 0


@dataclass(frozen=True, slots=True)
class Share:
    """Of ``of`` answered requests ``seen`` came from one version."""

    seen: int
    of: int

    @property
    def fraction(self) -> float:
        """NaN of nothing."""
        return self.seen / self.of if self.of else math.nan

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the fraction (Wilson's), were each request sent by chance; (0, 1) of nothing."""
        if not self.of:
            return 0.0, 1.0
        n, p, z2 = self.of, self.fraction, _Z * _Z
        middle = (p + z2 / (2 * n)) / (1 + z2 / n)
        half = _Z / (1 + z2 / n) * math.sqrt(p * (1 - p) / n + z2 / (4 * n * n))
        return max(0.0, middle - half), min(1.0, middle + half)

    def agrees(self, said: float) -> bool:
        """A gateway that gives the fraction ``said`` may well show this."""
        low, high = self.interval
        return low <= said <= high


@dataclass(frozen=True, slots=True)
class PhaseCounts:
    """One phase; ``began`` is None for what was before the first. ``versions`` has the answered requests by kind, then
    by version, and ``failed`` the failed ones in the order in which they failed, those that were never read too.
    """

    name: str
    began: float | None
    tally: Tally
    versions: Mapping[str, Mapping[str, int]]
    failed: tuple[Request, ...]

    def share(self, version: str, kinds: Iterable[str] = (FRESH, KEPT)) -> Share:
        """Among short requests. Of streams those that began before a phase still end in it."""
        by_version: Counter[str] = Counter()
        for kind in kinds:
            by_version.update(self.versions.get(kind, {}))
        return Share(by_version[version], by_version.total())


@dataclass(frozen=True, slots=True)
class Said:
    """The share of the new version that a status tells, from 0 to 1, and what was seen."""

    said: float
    seen: Share


@dataclass(frozen=True, slots=True)
class Row:
    """One release by one ``way`` (HTTPRoute or Service), on pods of one sort (drain, die). ``most`` short requests and
    ``most_streams`` streams are what `plan` has announced to be lost at most.
    """

    release: str
    pods: str
    way: str
    tally: Tally
    shares: tuple[Said, ...] = ()
    most: int = 0
    most_streams: int = 0


def read(lines: Iterable[str]) -> Log:
    """What a client has noted. ValueError for a line that is none of its own, unless it is the last of a killed one."""
    requests: list[Request] = []
    broken = ""
    for line in lines:
        if broken:
            raise ValueError(f"no note of a request: {broken!r}")
        try:
            noted = json.loads(line)
            if noted == {"end": True}:
                return Log(tuple(requests), whole=True)
            kind, started, ended, version, failure, pod = noted
        except ValueError:
            broken = line
            continue
        requests.append(Request(kind, started, ended, version, pod, failure))
    return Log(tuple(requests), whole=False)


def tally(requests: Iterable[Request]) -> Tally:
    requests = list(requests)
    return Tally(
        short=sum(each.short for each in requests),
        streams=sum(not each.short for each in requests),
        lost=sum(each.short and each.lost for each in requests),
        lost_streams=sum(not each.short and each.lost for each in requests),
        reset=sum(each.failure == RESET for each in requests),
    )


def total(phases: Iterable[PhaseCounts]) -> Tally:
    """Of all these phases."""
    tallies = [each.tally for each in phases]
    return Tally(*(sum(getattr(each, field.name) for each in tallies) for field in fields(Tally)))


def by_phase(requests: Iterable[Request], phases: Sequence[Phase], settle: float = 0.0) -> tuple[PhaseCounts, ...]:
    """Each of ``phases``, in their order; what was before the first stands before it, when there was anything.

    A share is written before the gateway has it: answers to what started within ``settle`` seconds of a phase are left
    out of ``versions``, and so of its shares. ValueError when the phases are not in order.
    """
    began = [moment for moment, _ in phases]
    if any(one > other for one, other in pairwise(began)):
        raise ValueError("phases are not in the order of their moments")
    found: list[list[Request]] = [[] for _ in range(len(phases) + 1)]
    for each in requests:
        found[bisect_right(began, each.moment)].append(each)
    counts = tuple(
        _counts(name, moment, inside, settle) for (moment, name), inside in zip(phases, found[1:], strict=True)
    )
    return (_counts(BEFORE, None, found[0], 0.0), *counts) if found[0] else counts


def _counts(name: str, began: float | None, requests: list[Request], settle: float) -> PhaseCounts:
    versions: dict[str, Counter[str]] = {}
    for each in requests:
        if each.failure is None and each.version is not None and (began is None or each.started >= began + settle):
            versions.setdefault(each.kind, Counter())[each.version] += 1
    failed = sorted((each for each in requests if each.failure is not None), key=lambda each: each.ended)
    return PhaseCounts(name, began, tally(requests), versions, tuple(failed))


def failures(phases: Iterable[PhaseCounts], most: int = 5) -> list[str]:
    """The first ``most`` lost requests of each phase as a line each, and how many more there were."""
    lines = []
    for phase in phases:
        lost = [each for each in phase.failed if each.lost]
        lines += [f"{_time(each.ended)} {phase.name}: {_told(each)}" for each in lost[:most]]
        if len(lost) > most:
            lines.append(f"{phase.name}: {len(lost) - most} more")
    return lines


def _told(request: Request) -> str:
    from_whom = f" of {request.version} {request.pod}" if request.version else ""
    return f"{request.kind}{from_whom} failed after {request.ended - request.started:.3f} s: {request.failure}"


def _time(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).strftime("%H:%M:%S.%f")[:-3]


def windows(requests: Iterable[Request], moments: Iterable[float], seconds: float) -> tuple[Tally, ...]:
    """For each of ``moments`` what was asked, or lost, from then on for so many ``seconds``: one of an edit that is
    made again and again, say. Windows may overlap.
    """
    requests = list(requests)
    return tuple(tally(each for each in requests if begin <= each.moment < begin + seconds) for begin in moments)


_HEAD = ("release", "pods", "way", "short requests", "streams", "lost requests", "lost streams", "shares said / seen")


def table(rows: Iterable[Row]) -> str:
    """Markdown, a line for each of ``rows``; resets stand with the lost requests, when there are any."""
    lines: list[tuple[str, ...]] = [_HEAD, ("---", "---", "---", "---:", "---:", "---:", "---:", "---")]
    lines += [_cells(row) for row in rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _cells(row: Row) -> tuple[str, ...]:
    count = row.tally
    lost = _of_most(count.lost, row.most) + (f" (and {count.reset:,} reset)" if count.reset else "")
    shares = ", ".join(_share(each) for each in row.shares) or "–"
    return (
        row.release,
        row.pods,
        row.way,
        f"{count.short:,}",
        f"{count.streams:,}",
        lost,
        _of_most(count.lost_streams, row.most_streams),
        shares,
    )


def _of_most(lost: int, most: int) -> str:
    return f"{lost:,} of at most {most:,}" if most else f"{lost:,}"


def _share(share: Said) -> str:
    seen = share.seen
    if not seen.of:
        return f"{_percent(share.said)} / none"
    low, high = seen.interval
    return f"{_percent(share.said)} / {100 * seen.fraction:.1f} % ({100 * low:.1f} to {100 * high:.1f})"


def _percent(fraction: float) -> str:
    return f"{100 * fraction:.3g} %"
