"""What a capacity decides: how groups of a new version are made, what serves beside them, and what is told of it.

Everything that one capacity does differently from another is a member of its ``CapacityStrategy``. No other code
compares capacities, so a new one is a class, its value in the API and its line in ``table``.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Protocol


class CapacityStrategy(Protocol):
    """One way of making groups; a value without state.

    R is the number of the LeaderWorkerSet's own groups, those with ordinals in [0, R); ``new`` groups of the new
    version exist by the steps.
    """

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
    """One LeaderWorkerSet has the groups of both versions, told apart by revision; else the new version's groups are
    those of a second LeaderWorkerSet.
    """
    surges: bool
    """Steps make groups beyond [0, R) in the LeaderWorkerSet itself."""
    updates_regular: bool
    """Steps update groups of [0, R), and leave the last one to the promotion."""
    full_set: bool
    """A whole second set of groups is there before the promotion updates the first one: that is what it is for."""

    least_replicas: int
    """The smallest R, above 0, that can be released."""

    def extra(self, new: int) -> int:
        """Groups beyond R with ``new`` groups of the new version."""

    def exact_weight(self, new: int, replicas: int) -> Fraction:
        """The new version's part of all requests, in percent, when its weight is "auto"."""

    def portion(self, allowed: int, beside: int, replicas: int) -> int:
        """Groups of [0, R) that a promotion, or a step that updates them, takes down at once, at least 1 where any may
        go: ``allowed`` is the user's maxUnavailable in groups, and ``beside`` new groups serve besides [0, R).
        """
