"""What every check answers with when a Rollout must not act."""

from __future__ import annotations

from dataclasses import dataclass

from rollout_lws.rollout.reasons import Reason


@dataclass(frozen=True, slots=True)
class Refusal:
    """``message`` says what is in the way and what to do."""

    reason: Reason
    message: str
