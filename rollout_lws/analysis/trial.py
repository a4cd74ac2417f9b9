"""A trial: one criterion, what both versions' pods have told so far, and the verdict once there is one.

It is folded over rounds of readings, so that looks are taken at the same moments however often the result is asked for.
A verdict stays. What is missing never is one: pods that cannot be read, or that have served nothing, leave it open.
What is watched has no other verdict than that it failed: the next window follows one without it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import assert_never

from rollout_lws.analysis import judge, looks
from rollout_lws.analysis.criterion import Criterion, Figures, Look, Verdict
from rollout_lws.analysis.kinds import Measure
from rollout_lws.analysis.ledger import Key, Ledger, Unread
from rollout_lws.analysis.readings import Read, Trouble


@dataclass(frozen=True, slots=True)
class Trial:
    """``began`` is when the first round was, ``last`` when the last one; ``looked`` counts the looks that were taken.
    ``figures`` are those of the last look, with the samples of now. ``lost`` is the pod that could first not be read
    for a while, None once all can be read. ``windows`` are those that are over, of what is watched.
    """

    criterion: Criterion
    began: float
    last: float
    new: Ledger = field(default_factory=Ledger)
    stable: Ledger = field(default_factory=Ledger)
    looked: int = 0
    verdict: Verdict | None = None
    figures: Figures = field(default_factory=Figures)
    lost: tuple[Key, Unread] | None = None
    windows: int = 0

    @classmethod
    def at(cls, now: float, criterion: Criterion) -> Trial:
        """One that begins now."""
        return cls(criterion, now, now)

    def after(
        self, now: float, new: Mapping[Key, Read], stable: Mapping[Key, Read], times: Mapping[Key, float] | None = None
    ) -> Trial:
        """With one round of readings of all pods that both versions have now, by uid; ``times`` are those of readings
        that are older than ``now``.
        """
        if self.verdict is not None:
            return self
        ours, theirs = self.new.after(now, new, times), self.stable.after(now, stable, times)
        counted = replace(self, last=now, new=ours, stable=theirs)
        return replace(counted, lost=counted._lost(now))._looked()._watched()

    def missed(self, now: float, why: str, new: Iterable[Key], stable: Iterable[Key]) -> Trial:
        """With a round that could not be read of any pod, and is read later."""
        if self.verdict is not None:
            return self
        ours, theirs = (
            ledger.after(now, {pod: Trouble(why) for pod in pods})
            for ledger, pods in ((self.new, new), (self.stable, stable))
        )
        counted = replace(self, new=ours, stable=theirs)
        return replace(counted, lost=counted._lost(now))

    def ended(self) -> Trial:
        """With the last look, at what has come in until the time was over. It passes nothing while pods cannot be read,
        nor before the window is over.
        """
        if self.verdict is not None:
            return self
        return self._settled(self._look())

    def _watched(self) -> Trial:
        """What is watched goes on with another window unless it has failed."""
        if not self.criterion.watched or self.verdict in (None, Verdict.FAILED):
            return self
        return replace(
            self,
            began=self.last,
            new=self.new.emptied(),
            stable=self.stable.emptied(),
            looked=0,
            verdict=None,
            figures=Figures(),
            windows=self.windows + 1,
        )

    @property
    def over(self) -> bool:
        """Whether the version has been watched for the whole window."""
        return self.last - self.began >= self.criterion.window

    @property
    def unread(self) -> dict[Key, str]:
        """Pods that the last round could not read, and why."""
        return {**(self.stable.troubles() if self.criterion.compared else {}), **self.new.troubles()}

    def _lost(self, now: float) -> tuple[Key, Unread] | None:
        """The one that is lost stays so until all can be read: which are, changes from round to round."""
        stable = self.stable.unread(now) if self.criterion.compared else {}
        unread = {**stable, **self.new.unread(now)}
        if not unread:
            return None
        before = self.lost
        if before is not None and before[0] in {*self.new.pods, *self.stable.pods}:
            return before[0], unread.get(*before)
        return min(unread.items(), key=lambda each: (each[1].since, str(each[0])))

    @property
    def _complete(self) -> bool:
        """Whether the version has pods now, and all that count could be read, up to the end of the window: a pod of
        which nothing newer is known has not been well until then.
        """
        sides = (self.new, self.stable) if self.criterion.compared else (self.new,)
        until = min(self.last, self.began + self.criterion.window)
        read = all(seen.read is not None and seen.at >= until for side in sides for seen in side.pods.values())
        return read and all(side.pods for side in sides) and not self.unread

    def _look(self) -> Look:
        asked = self.criterion
        if asked.watched:
            asked = replace(asked, confidence=looks.of_window(asked.confidence, self.windows))
        return judge.look(asked, self.new, self.stable)

    def _looked(self) -> Trial:
        match self.criterion.measure:
            case Measure.STALL:
                seen = self._look()
                if seen.failed:
                    return replace(self, verdict=Verdict.FAILED, figures=seen.figures)
                return self._passed_if_over(seen)
            case Measure.MEAN:
                return self._passed_if_over(self._look())
            case Measure.LATENCY | Measure.SHARE:
                return self._by_requests()
            case unknown:
                assert_never(unknown)

    def _passed_if_over(self, seen: Look) -> Trial:
        ends = self.over and (self.criterion.watched or (self._complete and (seen.passed or seen.failed)))
        return self._settled(seen) if ends else replace(self, figures=seen.figures)

    def _by_requests(self) -> Trial:
        counted = replace(
            self.figures,
            samples=self.new.samples,
            stable_samples=self.stable.samples if self.criterion.compared else None,
        )
        now = replace(self, figures=counted)
        # At most as many requests count as there were, which is known without a look.
        if counted.samples < self.criterion.min_samples or not now._is_due(counted.samples, counted.needed):
            return now
        if looks.is_last(self.looked) and not (self._complete or self.criterion.watched):
            # The last look waits until every pod can be read, since the others' figures do not speak for it: looking at
            # each scrape meanwhile would be many looks. A window that is watched waits for none: it would grow, and
            # hide what comes late in it.
            return now
        seen = self._look()
        # A version that changes within a window makes its requests unlike each other, and worth few: nothing that is
        # watched has to pass, so that a window which tells little ends, and the next one tells what the version is now.
        worth = counted.samples if self.criterion.watched else seen.effective
        if not now._is_due(worth, seen.figures.needed):
            return replace(now, figures=seen.figures)
        if seen.failed:
            return replace(now, looked=self.looked + 1, verdict=Verdict.FAILED, figures=seen.figures)
        if not looks.is_last(self.looked):
            return replace(now, looked=self.looked + 1, figures=seen.figures)
        return now._settled(seen)

    def _is_due(self, requests: float, needed: int | None) -> bool:
        planned = needed if needed is not None else self.criterion.min_samples
        window = self.criterion.window
        return looks.due(self.looked, requests, planned, (self.last - self.began) / window if window else 1.0)

    def _settled(self, seen: Look) -> Trial:
        told = self.over and self._complete
        if seen.failed and (told or self.criterion.measure is not Measure.MEAN):
            verdict = Verdict.FAILED
        elif seen.passed and told:
            verdict = Verdict.PASSED
        else:
            verdict = Verdict.INCONCLUSIVE
        return replace(self, looked=looks.LOOKS, verdict=verdict, figures=seen.figures)
