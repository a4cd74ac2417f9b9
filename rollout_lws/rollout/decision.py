"""What a decision is: values that say what shall be written, told and waited for. Nobody has done anything yet."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from rollout_lws.api import SummaryState
from rollout_lws.objects.resources import Resource
from rollout_lws.objects.writes import Write
from rollout_lws.rollout.reasons import FOR_A_PERSON, Reason
from rollout_lws.rollout.refusal import FieldRef


@dataclass(frozen=True, slots=True)
class Notice:
    """An Event to record. ``about`` is "Rollout" or "LeaderWorkerSet" (the stable one); ``type`` Normal or Warning."""

    reason: str
    note: str
    type: str = "Normal"
    about: str = "Rollout"


@dataclass(frozen=True, slots=True)
class Chore:
    """A write whose failure stops nothing; ``notice`` is recorded once it was carried out, None for nothing to tell."""

    write: Write
    notice: Notice | None = None


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the next observation shall know besides: the pods of these LWSs, the endpoints of these Services, and all
    objects of these kinds in the namespace.
    """

    pods: tuple[str, ...] = ()
    endpoints: tuple[str, ...] = ()
    kinds: tuple[Resource, ...] = ()


@dataclass(frozen=True, slots=True)
class Verdict:
    """The last word of a decision: which of Ready, Reconciling and Stalled is true, why, and the summary's state."""

    condition: str
    reason: Reason
    state: SummaryState
    message: str = ""
    field: FieldRef | None = None
    """What a person would change; None where nothing in particular is to be changed."""
    goes_on: bool = False
    """Though it is worth a person's eye, the controller goes on by itself."""
    by_spec: bool = False
    """The spec of the Rollout asks for it, which no command of ours edits."""

    @property
    def needs_person(self) -> bool:
        """Whether it lasts until a person acts."""
        return self.reason in FOR_A_PERSON and not self.goes_on

    @property
    def verbs(self) -> tuple[str, ...]:
        """Verbs of the command line by which a person ends it, or ends what it waits for; the usual one first. None of
        what goes on by itself, or is asked for by the spec.
        """
        return () if self.goes_on or self.by_spec else FOR_A_PERSON.get(self.reason, ())


@dataclass(frozen=True, slots=True)
class Decision:
    """Writes in the order in which they must be carried out; the first that fails ends the reconcile, which is tried
    again.

    Status writes of Rollout and BatchRelease are among them, at most one an object, each conditional on the
    resourceVersion that was observed. ``chores`` come after all of them and are of no consequence for the release:
    labels of leader pods, deletions of what LWS need not keep, what is given back for others. So a failure of one (the
    pod is gone) is no failure of the reconcile; after a Confirm that fails the rest is left. ``notices`` are recorded
    as soon as the
    first ``told_after`` writes were carried out (None: all of them), the status among them: once it is written, no
    later decision has anything new to tell. ``wake_at`` is the moment to look again if nothing changes before; None:
    only a change matters. ``wanted`` says what is to be watched besides what always is. ``only_tells`` marks a decision
    that does no more than put a refused write into the status: the write itself is still to be tried. ``verdict`` is
    the last word, None when there is nothing to say.
    """

    writes: tuple[Write, ...] = ()
    chores: tuple[Chore, ...] = ()
    notices: tuple[Notice, ...] = ()
    told_after: int | None = None
    wake_at: datetime | None = None
    wanted: Wanted = Wanted()
    only_tells: bool = False
    verdict: Verdict | None = None
