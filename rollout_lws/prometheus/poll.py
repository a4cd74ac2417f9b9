"""Verdicts of a user's own query: a value, and how many samples it is a share of, if the user tells.

With samples the value is a share, judged by its interval at the same looks as signals are. Without, it is judged once,
when the window is over.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import isfinite

from rollout_lws.analysis import looks
from rollout_lws.analysis.criterion import Verdict
from rollout_lws.analysis.ledger import Unread
from rollout_lws.analysis.shares import normal, wilson
from rollout_lws.prometheus.scrapes import Prometheus

#: Bad samples come one by one: without half a one less, the bound that fails a small share is wrong too often.
_STEP = 0.5


@dataclass(frozen=True, slots=True)
class Query:
    """``value`` and ``samples`` are PromQL with placeholders, samples "" for none. ``limit`` is the most, or with
    ``at_least`` the least. ``window`` in seconds; ``confidence`` and ``min_samples`` count with samples only.
    ``watched`` is judged one window after the other, until it fails.
    """

    prometheus: Prometheus
    value: str
    limit: float
    at_least: bool = False
    samples: str = ""
    window: float = 300.0
    confidence: float = 0.95
    min_samples: int = 100
    watched: bool = False

    @property
    def needed(self) -> int:
        """Samples that the last look waits for."""
        limit = 1 - self.limit if self.at_least else self.limit
        return max(self.min_samples, looks.planned(min(max(limit, 1e-5), 0.99), self.confidence))


@dataclass(frozen=True, slots=True)
class Polled:
    """One answer; ``samples`` is None where they were not asked for. ``text`` is the query as it was sent."""

    value: float
    samples: float | None = None
    text: str = ""


@dataclass(frozen=True, slots=True)
class Poll:
    """A query's answers so far. ``began`` and ``last`` in epoch seconds; ``answer`` is the last one, ``trouble`` why
    there was none in the last round, and ``unread`` since when there has been none. ``windows`` are those that are
    over, of what is watched.
    """

    query: Query
    began: float
    last: float
    answer: Polled | None = None
    trouble: str = ""
    unread: Unread | None = None
    looked: int = 0
    verdict: Verdict | None = None
    windows: int = 0

    @classmethod
    def at(cls, query: Query, since: float, now: float) -> Poll:
        """One that has begun ``since`` then; looks that a controller took which has been restarted since are not taken
        again.
        """
        elapsed = max(0.0, now - since) / query.window
        windows = int(elapsed) if query.watched else 0
        began = since + windows * query.window
        return cls(query, began, began, looked=looks.taken(elapsed - windows), windows=windows)

    def after(self, now: float, answer: Polled | str) -> Poll:
        """With one answer, or the reason why there is none."""
        if self.verdict is not None:
            return self
        trouble = answer if isinstance(answer, str) else self._wrong(answer)
        if trouble:
            unread = (self.unread or Unread(now, trouble, now)).after(now, trouble)
            return replace(self, last=now, trouble=trouble, unread=unread)._begun_anew()
        assert isinstance(answer, Polled)
        return replace(self, last=now, answer=answer, trouble="", unread=None)._looked()._watched()

    def ended(self) -> Poll:
        """Without further answers."""
        return self if self.verdict is not None else replace(self, verdict=Verdict.INCONCLUSIVE)

    def _watched(self) -> Poll:
        """What is watched goes on with another window unless it has failed."""
        if not self.query.watched or self.verdict in (None, Verdict.FAILED):
            return self
        return replace(self, began=self.last, looked=0, verdict=None, windows=self.windows + 1)

    def _begun_anew(self) -> Poll:
        """A window that is watched does not wait for an answer when its time is over: pods come and go meanwhile."""
        over = self.query.watched and self.last - self.began >= self.query.window
        return replace(self, began=self.last, looked=0) if over else self

    @property
    def _asked(self) -> Query:
        """What this window is asked: of many, each has its part of the error."""
        if not self.query.watched:
            return self.query
        return replace(self.query, confidence=looks.of_window(self.query.confidence, self.windows))

    @property
    def lasting(self) -> str:
        """Why there has been no answer for a while, in words that stay; "" if there was one. Of what is watched, for a
        window: in the first minutes of each a query may have none.
        """
        if self.unread is None or (self.query.watched and self.last - self.unread.since < self.query.window):
            return ""
        return self.unread.lasting

    def _wrong(self, answer: Polled) -> str:
        if not isfinite(answer.value):
            return f"its value is {answer.value}"
        if answer.samples is None:
            return ""
        if not isfinite(answer.samples) or answer.samples < 0:
            return f"its samples are {answer.samples}"
        return "" if 0 <= answer.value <= 1 else f"its value {answer.value:g} is no share of its samples"

    def _looked(self) -> Poll:
        if self.answer is None:
            return self
        fraction = (self.last - self.began) / self.query.window
        if self.answer.samples is None:
            return replace(self, verdict=self._plain(self.answer.value)) if fraction >= 1 else self
        return self._by_samples(self.answer.value, self.answer.samples, fraction)

    def _plain(self, value: float) -> Verdict:
        within = value >= self.query.limit if self.query.at_least else value <= self.query.limit
        return Verdict.PASSED if within else Verdict.FAILED

    def _by_samples(self, value: float, samples: float, fraction: float) -> Poll:
        asked = self._asked
        if samples < asked.min_samples or not looks.due(self.looked, samples, asked.needed, fraction):
            return self
        bad, allowed = (1 - value, 1 - asked.limit) if asked.at_least else (value, asked.limit)
        low, _ = wilson(max(0.0, bad - _STEP / samples), samples, normal(1 - looks.to_fail(asked.confidence)))
        _, high = wilson(bad, samples, normal(1 - looks.to_pass(asked.confidence)))
        if low > allowed:
            return replace(self, verdict=Verdict.FAILED)
        if not looks.is_last(self.looked):
            return replace(self, looked=self.looked + 1)
        return replace(self, looked=looks.LOOKS, verdict=Verdict.PASSED if high < allowed else Verdict.INCONCLUSIVE)
