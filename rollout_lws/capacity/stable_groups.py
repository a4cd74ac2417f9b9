"""The stable LeaderWorkerSet's groups during a release: which exist, how many may be down, and the writes of the hold,
of partition windows and of leader deletions.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from typing import Protocol

from rollout_lws.api.resources import Keys
from rollout_lws.objects.resources import PODS, STATEFUL_SETS
from rollout_lws.objects.writes import Confirm, Delete, Patch, Write
from rollout_lws.workload.facts import Facts
from rollout_lws.workload.groups import Group, ask_again, groups, moment_ready
from rollout_lws.workload.hold import HOLD, hold, resolved_unavailable, standing_surge, users_strategy

#: Limit of groups checked one by one, as many as a status can record. A user can set any number of replicas, and
#: 2,000,000,000 of them must not exhaust the memory of a controller that other users share.
MOST_GROUPS = 10_000


class Manner(Protocol):
    """What an update needs to know of its release's capacity."""

    @property
    def surges(self) -> bool: ...

    @property
    def takes_places(self) -> bool: ...

    def batch_size(self, allowed: int, beside: int, replicas: int) -> int: ...


@dataclass(frozen=True, slots=True)
class StableGroups:
    """The regular groups, with ordinals in [0, R), and the surge groups beyond, as one pass observes them.

    ``beside`` canary or surge groups of the new version are ready and serve besides [0, R); ``minimum`` is
    minReadySeconds. ``emptied`` says that no request reaches the groups that are about to go, so that they may go
    together.
    """

    facts: Facts
    keys: Keys
    uid: str
    now: datetime
    beside: int
    strategy: Manner
    minimum: float = 0
    emptied: bool = False

    @property
    def replicas(self) -> int:
        return self.facts.workload.replicas

    @property
    def surge(self) -> int:
        """Groups that this release keeps beyond the regular ones."""
        return standing_surge(self.facts.workload, self.keys)

    @property
    def partition(self) -> int:
        return self.facts.workload.strategy.partition

    @property
    def is_open(self) -> bool:
        """True if a partition window is open."""
        return self.partition < HOLD

    @property
    def regular(self) -> tuple[Group, ...]:
        """Groups with ordinals in [0, R)."""
        return tuple(group for group in groups(self.facts) if 0 <= group.ordinal < self.replicas)

    @property
    def extra(self) -> tuple[Group, ...]:
        """Surge groups, including terminating ones."""
        return tuple(group for group in groups(self.facts) if group.ordinal >= self.replicas)

    def ready(self, members: Sequence[Group]) -> int:
        return sum(group.ready(self.now, self.minimum) for group in members)

    @property
    def at_once(self) -> int:
        """The batch size, groups that may be down together: all if no request reaches them and the canary has as many
        (R may have grown meanwhile); in place the user's maxUnavailable, at most R - 1, at least 1; with a surge as
        many as serve instead; with a canary LWS the smallest of all these, at least 1.
        """
        if self.emptied and self.beside >= self.replicas:
            return self.replicas
        return self.strategy.batch_size(self.allowed, self.beside, self.replicas)

    @property
    def allowed(self) -> int:
        """The user's maxUnavailable in groups; at least 1, because an update in place needs one.

        It is 1 where groups are made one after the other: more would be down for longer, and no sooner back.
        """
        return 1 if self.facts.workload.ordered else max(1, self.unavailable)

    @property
    def unavailable(self) -> int:
        return resolved_unavailable(users_strategy(self.facts.workload, self.keys), self.replicas)

    def all_are(self, revision: str) -> bool:
        """True if every group of [0, R) is at ``revision`` and ready."""
        regular = self.regular
        return (
            len(regular) == self.replicas
            and all(group.revision == revision for group in regular)
            and self.ready(regular) == self.replicas
        )

    def wake_at(self) -> datetime | None:
        moments = [moment for group in self.regular if (moment := moment_ready(group, self.minimum, self.now))]
        return min(moments, default=None)

    def close(self, reason: str, surge: int | None = None) -> tuple[Write, ...]:
        """Writes the hold, with the current surge groups or ``surge`` of them."""
        body = hold(self.facts.workload, self.keys, self.uid, self.surge if surge is None else surge)
        return (self.patch(body, reason),) if body else ()

    def patch(self, body: dict[str, object], reason: str) -> Patch:
        meta = self.facts.workload.metadata
        patch = Patch(self.facts.workload.resource, meta.namespace, meta.name, body, reason)
        if not meta.annotations:
            return replace(patch, resource_version=meta.resource_version)
        # LWS often writes its status when windows open and close, so a resourceVersion precondition would fail.
        return replace(patch, uid=meta.uid, generation=meta.generation)

    def delete(self, chosen: Sequence[Group], reason: str) -> tuple[Write, ...]:
        """Deletes leaders, after a precondition on the leader StatefulSet that recreates them. Those of exhausted
        groups are deleted already, and have to be let go.
        """
        leader_set = self.facts.leader_set
        if leader_set is None or not chosen:
            return ()
        meta = leader_set.metadata
        confirm = Confirm(STATEFUL_SETS, meta.namespace, meta.name, meta.uid, meta.generation, reason)
        return (confirm, *(_goes(group, reason) for group in chosen))


def _goes(group: Group, reason: str) -> Write:
    if group.exhausted:
        return ask_again(group, reason)
    return Delete(PODS, group.leader.metadata.namespace, group.leader.metadata.name, group.uid, reason)


def lacking(ordinals: range, there: Set[int]) -> list[int]:
    """Those of ``ordinals`` that are not in ``there``, from the lowest; at most MOST_GROUPS."""
    return list(islice((each for each in ordinals if each not in there), MOST_GROUPS))


def named(members: Sequence[Group]) -> str:
    """The groups' indexes for a message, at most ten."""
    return listed([group.index for group in members])


def listed(names: Sequence[object]) -> str:
    """At most ten of the names: a status has room for a sentence, not for a thousand groups."""
    text = ", ".join(str(name) for name in names[:10])
    return f"{text} and {len(names) - 10} more" if len(names) > 10 else text
