"""Records of the meter: shares of requests over time, failed requests, cut streams."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from rollout_lws.sandbox.meter.fleet import Cause, Pod
from rollout_lws.sandbox.meter.split import Split, Target

#: The name for the share of requests that no pod receives.
NOWHERE = ""


@dataclass(frozen=True, slots=True)
class Failure:
    """``share`` of a client's requests failed from ``start`` to ``end`` (epoch seconds).

    ``lws``, ``group``, ``revision`` and ``pod`` name the pod that should have answered; they are empty if there is
    none. ``cause`` is why its group could not answer, None if no group ended.
    """

    client: str
    start: float
    end: float
    share: float
    reason: str
    pod: str = ""
    lws: str = ""
    group: str = ""
    revision: str = ""
    cause: Cause | None = None


@dataclass(frozen=True, slots=True)
class Cut:
    """``share`` of a client's open streams, all on ``pod``, was cut at ``time`` (epoch seconds)."""

    client: str
    time: float
    share: float
    pod: str
    lws: str
    group: str
    revision: str
    cause: Cause


@dataclass(frozen=True, slots=True)
class _Stretch:
    start: float
    end: float
    spread: Split


class Book:
    """One client's record, with contiguous intervals of constant shares."""

    def __init__(self, client: str) -> None:
        self.client = client
        self.failures: list[Failure] = []
        self.cuts: list[Cut] = []
        self._stretches: list[_Stretch] = []
        self._lasting: dict[Failure, int] = {}

    def sent(self, start: float, end: float, spread: Split) -> None:
        last = self._stretches[-1] if self._stretches else None
        if last is not None and last.spread is spread:
            self._stretches[-1] = _Stretch(last.start, end, spread)
        elif end > start:
            self._stretches.append(_Stretch(start, end, spread))

    def failed(self, start: float, end: float, share: float, reason: str, pod: Pod | None, cause: Cause | None) -> None:
        made = Failure(self.client, start, end, share, reason, cause=cause)
        if pod is not None:
            made = replace(made, pod=pod.name, lws=pod.lws, group=pod.group, revision=pod.revision)
        # Contiguous intervals belong to one failure.
        same = replace(made, start=0.0, end=0.0)
        at = self._lasting.get(same)
        if at is not None and self.failures[at].end == start:
            self.failures[at] = replace(self.failures[at], end=end)
            return
        self._lasting[same] = len(self.failures)
        self.failures.append(made)

    def cut(self, time: float, share: float, pod: Pod, cause: Cause) -> None:
        self.cuts.append(Cut(self.client, time, share, pod.name, pod.lws, pod.group, pod.revision, cause))

    def between(self, since: float, until: float) -> Iterator[tuple[float, Split]]:
        """Seconds and shares of each interval within a period, the latest first."""
        for stretch in reversed(self._stretches):
            if stretch.end <= since:
                return
            seconds = min(stretch.end, until) - max(stretch.start, since)
            if seconds > 0:
                yield seconds, stretch.spread

    def sent_to(self, target: Target, since: float, until: float) -> float:
        """The mean share of requests to a target over a period."""
        return self.seconds_of(target, since, until) / (until - since)

    def seconds_of(self, target: Target, since: float, until: float) -> float:
        """Seconds of the client's requests that a target got in a period: of half of them during 10 s, 5."""
        return sum(seconds * float(spread.get(target, 0)) for seconds, spread in self.between(since, until))
