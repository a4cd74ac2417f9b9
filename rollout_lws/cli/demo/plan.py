"""What a demo plays: its manifests, the user's change, and how the release goes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from rollout_lws.cli.demo import manifests
from rollout_lws.cli.demo.checks import Object


class Course(StrEnum):
    """How a release goes."""

    PROMOTED = "each step that waits for approval is approved"
    ABORTED = "the user aborts it"
    GATE_FAILED = "a gate fails, and it is aborted by itself"


@dataclass(frozen=True, slots=True)
class Companion:
    """A further workload of each side of a pair, ``name`` of the one that serves at first. ``counterpart`` gets
    ``template`` after the workload that it goes with, and both get ``release_id``.
    """

    name: str
    counterpart: str
    template: Object
    release_id: str


@dataclass(frozen=True, slots=True)
class Plan:
    """One demo. ``load``, ``hesitation`` and ``ending`` are seconds: a pod's startup, the user's hesitation, and a
    deleted pod's termination, as of servers that finish their requests. Data planes lag by less.
    """

    workload: Object
    rollout: Object
    others: tuple[Object, ...]
    """The user's other manifests, such as Services, claims and secrets; applied first."""
    template: Object
    """The new leaderWorkerTemplate."""
    change: str
    """The user's change of the template, in words."""
    course: Course
    load: float
    hesitation: float
    ending: float
    counterpart: str = ""
    """The LWS that gets the new template where that is not ``workload`` itself: the parked side of a pair."""
    companion: Companion | None = None

    @property
    def aborted(self) -> bool:
        """Whether the old version is what serves in the end."""
        return self.course is not Course.PROMOTED

    @property
    def namespace(self) -> str:
        return str(self.workload["metadata"].get("namespace") or manifests.NAMESPACE)

    @property
    def name(self) -> str:
        return str(self.rollout["metadata"]["name"])

    @property
    def workload_name(self) -> str:
        return str(self.workload["metadata"]["name"])

    @property
    def edited(self) -> str:
        """The name of the LWS that gets the new template."""
        return self.counterpart or self.workload_name

    @property
    def serving(self) -> tuple[str, ...]:
        """Names of all LWSs that serve at first."""
        return (self.workload_name, self.companion.name) if self.companion is not None else (self.workload_name,)

    @property
    def renewed(self) -> tuple[str, ...]:
        """Names of all LWSs that get the new version."""
        return (self.edited, self.companion.counterpart) if self.companion is not None else (self.edited,)
