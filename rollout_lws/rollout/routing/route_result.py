"""Result of a routing rule: whether routers accepted the wanted weights, and what it waits for."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from rollout_lws.rollout.decision import FieldRef


@dataclass(frozen=True, slots=True)
class Routed:
    """``done`` once routers have accepted what is wanted; ``message`` names what it waits for, "" for nothing."""

    done: bool
    message: str = ""
    contested: bool = False
    """Write conflict: another manager overwrites our fields, and the user has to stop that."""
    refused: bool = False
    """A first write must not happen until the user corrects something; what is written stays."""
    timed: bool = False
    """Only time is missing: running requests are draining."""
    needs_person: bool = False
    """It does not resolve by itself; the message says what the user does."""
    emptied: bool = False
    """No request reaches groups of the stable version any more."""
    field: FieldRef | None = None
    """The field for the user to look at; None if there is none in particular."""

    until: datetime | None = None
    """When the result may change by time alone; None if it never does."""

    @property
    def is_all_there_is(self) -> bool:
        """True if it cannot progress any further unless the user acts."""
        return self.done or self.contested or self.refused


DONE = Routed(True)
