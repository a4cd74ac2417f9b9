"""Capacity strategies: how groups of a new version are created, and which groups serve meanwhile.

Everything that differs between capacities is a member of ``CapacityStrategy``. No other code compares capacities, so a
new one is a class, its name in the API and its lines in ``known`` and ``table``.

R is the LeaderWorkerSet's number of regular groups, those with ordinals in [0, R). The stable LeaderWorkerSet is the
one that the Rollout names; a canary LeaderWorkerSet is a second one, which exists only during its release.
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
    """``wanted`` groups of the new version, and what exists: ``own`` are the stable LeaderWorkerSet's groups, ``new``
    the new version's in either LeaderWorkerSet, ``remains`` leftovers with the name of a deleted canary.

    Revisions are those of the stable LeaderWorkerSet. With ``may_open`` false no further group of it is updated;
    ``waits`` says why, if that is temporary. ``owner`` is the owner reference of a canary, and ``metadata_patch`` goes
    into its template. ``empty``: no group is left of a canary without replicas, so that its next ones are of the
    version in its template. ``hold`` is the merge patch that holds the canary, None if it is held.
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
    empty: bool = False
    hold: Mapping[str, Any] | None = None


class CapacityStrategy(Protocol):
    """One way of creating groups, without state. ``new`` always refers to groups of the new version."""

    name: str
    """Name in plans and in ``status.capacity``."""
    title: str
    """Name in messages about a plan, such as "capacity InPlace"."""
    flag: str
    """Value of ``init --strategy``."""
    help: str
    """One sentence: where new groups are created, and what happens to the old ones; "{kind}" stands for the kind."""
    manifest: tuple[str, ...]
    """Manifest lines that select it, within ``spec.strategy``, indented by two spaces per level."""
    rolling_style: str
    """OpenKruise's name for it in a BatchRelease."""

    one_workload: bool
    """The stable LeaderWorkerSet runs both versions, told apart by revision. Otherwise each version has its own
    LeaderWorkerSet, and the canary can take all requests while the stable one is updated.
    """
    paired: bool
    """The user owns a workload for each version, and both stay: nothing of a release creates or deletes one, and their
    roles change at its end.
    """
    swaps: bool
    """The roles of two workloads change at the end of a release, instead of a promotion that updates one of them."""
    steps_open_windows: bool
    """Steps change groups of the stable LeaderWorkerSet through partition windows, and so does their rollback."""
    surges: bool
    """Steps create groups beyond [0, R) in the stable LeaderWorkerSet."""
    takes_places: bool
    """New groups of a step take the places of old ones; the last of these is left to the promotion. Requests of groups
    that go have to go to other groups, so the new version's weight follows the groups.
    """
    makes_groups: bool
    """A release makes the new version's groups, so that no step asks for more than R. Where their owner does, a number
    is meant as it stands.
    """
    shifts: bool
    """Steps scale the stable workload down as they scale the other one up, so that both together keep R groups."""
    full_set: bool
    """A full second set of groups exists before the promotion updates the first one: that is its purpose. With any
    other capacity a last step of 100 % is the promotion itself: it has no pause, and without traffic it creates no
    groups.
    """

    least_replicas: int
    """The smallest R, above 0, that can be released."""
    fits_kueue: bool
    """Kueue keeps its groups until the promotion is over."""
    pins_replicas: bool
    """Autoscalers keep exactly R groups during a release; otherwise at least R."""

    def of_new(self, stable: _T, canary: _T) -> _T:
        """Whichever of the two belongs to the LeaderWorkerSet that runs the new version's groups."""

    def in_promotion(self, *, queued: bool) -> CapacityStrategy:
        """The strategy by which the promotion creates groups; ``queued``: Kueue admits them."""

    def extra(self, new: int) -> int:
        """Groups beyond R with ``new`` groups of the new version."""

    def sharing(self, new: int, replicas: int) -> int:
        """Groups of both versions that share the requests if a weight is "auto"; at least 1."""

    def batch_size(self, allowed: int, beside: int, replicas: int) -> int:
        """The batch size: groups of [0, R) that a promotion, or a step that updates them, takes down together; at least
        1 if any may go. ``allowed`` is the user's maxUnavailable in groups; ``beside`` canary or surge groups serve.
        """

    def beside(self, new: Sequence[Group], replicas: int) -> Sequence[Group]:
        """Those of the groups ``new`` that are canary or surge groups, not in [0, R)."""

    def standing(self, new: Sequence[Group], canary: Facts | None) -> int:
        """Groups of the new version that are requested or exist; at least 1."""

    def leaving(self, new: Sequence[Group], wanted: int, replicas: int, canary: Facts | None) -> tuple[Group, ...]:
        """Those of the groups ``new`` that go if there are to be ``wanted``."""

    def place(self, ordinal: int, replicas: int, *, in_canary: bool) -> int | None:
        """How many groups of the new version steps create before this one; None if only the promotion creates it."""

    def scale(self, asked: Scaling) -> CapacityResult:
        """Scales the new version to the wanted groups; done when they are requested or exist."""
