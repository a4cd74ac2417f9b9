"""The answer of every rule on traffic: whether routers have what is asked of them, and what is waited for."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from rollout_lws.rollout.refusal import FieldRef


@dataclass(frozen=True, slots=True)
class Routed:
    """Whether routers have accepted what is wanted; ``message`` says what is waited for, "" when nothing is."""

    done: bool
    message: str = ""
    contested: bool = False
    """Somebody else writes over what we have written, and a person has to stop that."""
    refused: bool = False
    """What would be written for the first time must not be, and a person has to correct it; what was written stays."""
    timed: bool = False
    """Nothing but time is missing: requests that run get theirs to end."""
    needs_person: bool = False
    """It does not go on by itself; the message says what a person does."""
    emptied: bool = False
    """No request reaches groups of the stable version any more."""
    field: FieldRef | None = None
    """What a person has to look at; None where it is nothing in particular."""

    until: datetime | None = None
    """When the answer may be another one though nothing but time has passed; None when it never will by that alone."""

    @property
    def is_all_there_is(self) -> bool:
        """Whether nothing more is to be had before a person acts."""
        return self.done or self.contested or self.refused


DONE = Routed(True)
