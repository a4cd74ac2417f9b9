"""What every check answers with when a Rollout must not act."""

from __future__ import annotations

from dataclasses import dataclass

from rollout_lws.api import FieldReference
from rollout_lws.rollout.reasons import Reason


@dataclass(frozen=True, slots=True)
class FieldRef:
    """The member that a person would change: ``path`` in the object of this ``kind`` and ``name``, "" for the object
    itself. Without a kind it is the Rollout.
    """

    path: str
    kind: str = ""
    name: str = ""

    @classmethod
    def of(cls, record: FieldReference) -> FieldRef:
        """The one that a status has."""
        return cls(record.path or "", record.kind or "", record.name or "")

    @property
    def record(self) -> FieldReference:
        """The same as a status has it."""
        return FieldReference(kind=self.kind or None, name=self.name or None, path=self.path or None)


@dataclass(frozen=True, slots=True)
class Refusal:
    """``message`` says what is in the way and what to do, ``field`` where: an object there that does not exist is what
    is missing.
    """

    reason: Reason
    message: str
    field: FieldRef = FieldRef("spec")
