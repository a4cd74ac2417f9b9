"""What a capacity decides: how groups of a new version are made, what serves beside them, and what is told of it.

Everything that one capacity does differently from another is a member of its ``CapacityStrategy``. No other code
compares capacities, so a new one is a class, its word in the API and its lines in ``known`` and ``table``.

R is the number of the LeaderWorkerSet's own groups, those with ordinals in [0, R). The stable LeaderWorkerSet is the
one that the Rollout names; a canary LeaderWorkerSet is a second one, which lives as long as its release.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from rollout_lws.capacity.partition_update import PartitionUpdate
    from rollout_lws.capacity.result import CapacityResult
    from rollout_lws.workload.facts import Facts, NamedObject
    from rollout_lws.workload.groups import Group

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Scaling:
    """``wanted`` groups of the new version, and what there is: ``own`` are the stable LeaderWorkerSet's groups, ``new``
    those of the new version wherever they stand, ``remains`` what bears the name of a canary that is no more.

    Revisions are those of the stable LeaderWorkerSet. With ``may_open`` false no further group of it is updated;
    ``waits`` says why, where that is for a moment. ``owner`` is the owner reference of a canary, and
    ``metadata_patch`` goes into its template.
    """

    wanted: int
    own: PartitionUpdate
    new: Sequence[Group]
    stable_revision: str | None
    new_revision: str
    may_open: bool
    waits: str
    canary: Facts | None
    remains: Sequence[NamedObject]
    owner: Mapping[str, Any]
    metadata_patch: Mapping[str, Mapping[str, str]] | None


class CapacityStrategy(Protocol):
    """One way of making groups; a value without state. ``new`` is always about groups of the new version."""

    name: str
    """In plans and in ``status.capacity``."""
    title: str
    """In a sentence on a plan, such as "capacity InPlace"."""
    flag: str
    """For ``init --strategy``."""
    help: str
    """One sentence: where new groups come from, and what becomes of the old ones."""
    manifest: tuple[str, ...]
    """Lines of a manifest that ask for it, within ``spec.strategy``, two spaces a level."""
    rolling_style: str
    """OpenKruise's word for it in a BatchRelease."""

    one_workload: bool
    """The stable LeaderWorkerSet has the groups of both versions, told apart by revision; else each version has a
    LeaderWorkerSet of its own, and the canary can take all requests while the stable one is updated.
    """
    steps_open_windows: bool
    """Steps change groups of the stable LeaderWorkerSet through windows, so the way back out of them does, too."""
    surges: bool
    """Steps make groups beyond [0, R) in the stable LeaderWorkerSet."""
    updates_regular: bool
    """Steps update groups of [0, R), of which the last one is left to the promotion. What these served has to go to
    others, so the new version's weight follows the groups.
    """
    full_set: bool
    """A whole second set of groups is there before the promotion updates the first one: that is what it is for.
    With any other capacity a last step of 100 % is the promotion itself: it is not paused, and without traffic makes no
    groups.
    """

    least_replicas: int
    """The smallest R, above 0, that can be released."""
    fits_kueue: bool
    """Kueue leaves its groups alone until the promotion is over."""
    pins_replicas: bool
    """Autoscalers keep exactly R groups while a release is on; else at least R."""

    def of_new(self, stable: _T, canary: _T) -> _T:
        """What belongs to the LeaderWorkerSet that has the new version's groups."""

    def in_promotion(self, *, queued: bool) -> CapacityStrategy:
        """How the promotion makes groups; ``queued``: Kueue admits them."""

    def extra(self, new: int) -> int:
        """Groups beyond R with ``new`` groups of the new version."""

    def sharing(self, new: int, replicas: int) -> int:
        """Groups that requests are shared among when a weight is "auto", those of both versions; at least 1."""

    def portion(self, allowed: int, beside: int, replicas: int) -> int:
        """Groups of [0, R) that a promotion, or a step that updates them, takes down at once, at least 1 where any may
        go: ``allowed`` is the user's maxUnavailable in groups, and ``beside`` new groups serve besides [0, R).
        """

    def beside(self, new: Sequence[Group], replicas: int) -> Sequence[Group]:
        """Those of the groups ``new`` that are not in [0, R)."""

    def standing(self, new: Sequence[Group], canary: Facts | None) -> int:
        """Groups of the new version that are asked for already, or exist; at least 1."""

    def leaving(self, new: Sequence[Group], wanted: int, replicas: int, canary: Facts | None) -> tuple[Group, ...]:
        """Those of the groups ``new`` that go when there are to be ``wanted``."""

    def place(self, ordinal: int, replicas: int, *, in_canary: bool) -> int | None:
        """How many groups of the new version steps make before this one; None for one that only the promotion makes."""

    def scale(self, asked: Scaling) -> CapacityResult:
        """Have as many groups of the new version as asked for; done when they are asked for, or exist."""
