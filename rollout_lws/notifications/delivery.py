"""What becomes of a notification that was tried: decided from what the receiver answered."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import TypeAlias

#: Seconds for one try.
TIMEOUT = 10.0
#: Seconds between tries: the first, and the longest.
FIRST, LONGEST = 1.0, 120.0
#: Seconds for which a receiver that is not there is waited for: what is older is history, and the status has it.
LIFETIME = 4 * 3600.0
#: Tries at a receiver that is there and fails: it fails by this notification, maybe, and others wait behind it.
TRIES = 10
#: Answers of what stands before a receiver that is not there, or not ready.
_NOT_THERE = frozenset({408, 429, 502, 503, 504})


@dataclass(frozen=True, slots=True)
class Answered:
    """``retry_after`` are the seconds of its Retry-After, None without one; ``word`` says why, "" if nothing does."""

    status: int
    retry_after: float | None = None
    word: str = ""


@dataclass(frozen=True, slots=True)
class Unanswered:
    """``why`` has no secret in it."""

    why: str


Reply: TypeAlias = Answered | Unanswered


@dataclass(frozen=True, slots=True)
class Delivered:
    """It is there."""


@dataclass(frozen=True, slots=True)
class Again:
    """It is tried again after so many seconds; ``why`` it was not delivered."""

    seconds: float
    why: str


@dataclass(frozen=True, slots=True)
class GivenUp:
    """It is not tried again; ``why`` it was not delivered."""

    why: str


Outcome: TypeAlias = Delivered | Again | GivenUp


@dataclass(frozen=True, slots=True)
class Tries:
    """How often a notification was tried, and how often the receiver itself failed; ``age`` are its seconds."""

    total: int = 0
    failed: int = 0
    age: float = 0.0

    def plus(self, reply: Reply) -> Tries:
        """With another one, of the same age."""
        own = isinstance(reply, Answered) and _retried(reply.status) and reply.status not in _NOT_THERE
        return Tries(self.total + 1, self.failed + own, self.age)


def outcome(reply: Reply, tries: Tries, spread: float) -> Outcome:
    """What follows from a reply, which ``tries`` have in them; ``spread`` is a random number from 0 to 1."""
    match reply:
        case Answered(status=status) if 200 <= status < 300:
            return Delivered()
        case Answered(status=status, word=word) if not _retried(status):
            moved = ": a redirect is not followed" if 300 <= status < 400 else ""
            return GivenUp(f"answered {status}{moved}{f': {word}' if word else ''}")
        case Answered(status=status, retry_after=asked):
            why = f"answered {status}"
        case Unanswered(why=why):
            asked = None
    if tries.failed >= TRIES:
        return GivenUp(f"{why}, {tries.failed} times")
    # Half as much again at most, so that replicas of many clusters do not come at the same time.
    backed_off = min(FIRST * 2.0 ** min(tries.total - 1, 16), LONGEST) * (1 + spread / 2)
    seconds = max(backed_off, (asked or 0.0) * (1 + spread / 10))
    if tries.age + seconds > LIFETIME:
        return GivenUp(f"{why}, for {tries.age / 3600:.1f} h")
    return Again(seconds, why)


def retry_after(text: str, now: datetime) -> float | None:
    """Seconds of a Retry-After header, which has a number or a date; None of what is neither, or is over."""
    if text.isascii() and text.isdigit():
        # Longer than any notification lives is as good as for ever.
        return min(float(text[:12]), 2 * LIFETIME)
    try:
        moment = parsedate_to_datetime(text)
        seconds = (moment - now).total_seconds()
    except (TypeError, ValueError):
        return None
    return min(seconds, 2 * LIFETIME) if seconds > 0 else None


def _retried(status: int) -> bool:
    """Whether another try may help: of the errors of the sender none does but the two about time."""
    return status >= 500 or status in _NOT_THERE
