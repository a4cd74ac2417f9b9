"""The result of a check that keeps a Rollout from acting."""

from __future__ import annotations

from dataclasses import dataclass

from rollout_lws.api import FieldReference
from rollout_lws.rollout.reasons import Reason


@dataclass(frozen=True, slots=True)
class FieldRef:
    """The field that the user would change: ``path`` in the object of this ``kind`` and ``name``, "" for the object
    itself. Without a kind it is the Rollout.
    """

    path: str
    kind: str = ""
    name: str = ""

    @classmethod
    def of(cls, record: FieldReference) -> FieldRef:
        """Reads a status's field reference."""
        return cls(record.path or "", record.kind or "", record.name or "")

    @property
    def record(self) -> FieldReference:
        """The field reference for a status."""
        return FieldReference(kind=self.kind or None, name=self.name or None, path=self.path or None)


@dataclass(frozen=True, slots=True)
class Refusal:
    """``message`` names the obstacle and the fix, ``field`` its place; if that is an object, it may be missing."""

    reason: Reason
    message: str
    field: FieldRef = FieldRef("spec")
