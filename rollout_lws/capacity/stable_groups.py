"""The stable LeaderWorkerSet's own groups during a release: which there are, how many may be down, how the hold and its
windows are written, and how leaders are deleted.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from typing import Protocol

from rollout_lws.api.resources import Keys
from rollout_lws.objects.resources import LEADER_WORKER_SETS, PODS, STATEFUL_SETS
from rollout_lws.objects.writes import Confirm, Delete, Patch, Write
from rollout_lws.workload.facts import Facts
from rollout_lws.workload.groups import Group, groups, moment_ready
from rollout_lws.workload.hold import HOLD, hold, resolved_unavailable, standing_surge, users_strategy

#: Groups that are looked at one by one, as many as a status can file. A number of replicas is typed in a moment, and
#: whoever types 2,000,000,000 must not take the memory of a controller that others need.
MOST_GROUPS = 10_000


class Manner(Protocol):
    """What an update asks of the capacity of its release."""

    @property
    def surges(self) -> bool: ...

    @property
    def updates_regular(self) -> bool: ...

    def portion(self, allowed: int, beside: int, replicas: int) -> int: ...


@dataclass(frozen=True, slots=True)
class StableGroups:
    """What a pass sees of them: regular ones, with ordinals in [0, R), and surge groups beyond.

    ``beside`` ready groups of the new version serve besides [0, R): those of a canary, or surge groups; ``minimum`` is
    minReadySeconds. ``emptied`` says that no request reaches the groups that are to go, so that they may go all at
    once.
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
        return self.facts.lws.spec.replicas

    @property
    def surge(self) -> int:
        """Groups that this release keeps beyond the regular ones."""
        return standing_surge(self.facts.lws, self.keys)

    @property
    def partition(self) -> int:
        return self.facts.lws.spec.rollout_strategy.rolling_update_configuration.partition

    @property
    def is_open(self) -> bool:
        """Whether a window stands open."""
        return self.partition < HOLD

    @property
    def regular(self) -> tuple[Group, ...]:
        """Groups with ordinals in [0, R)."""
        return tuple(group for group in groups(self.facts) if 0 <= group.ordinal < self.replicas)

    @property
    def extra(self) -> tuple[Group, ...]:
        """Surge groups, those on their way out included."""
        return tuple(group for group in groups(self.facts) if group.ordinal >= self.replicas)

    def ready(self, members: Sequence[Group]) -> int:
        return sum(group.ready(self.now, self.minimum) for group in members)

    @property
    def at_once(self) -> int:
        """Groups that may be down at once: all where no request reaches them and the canary has as many (R may have
        grown meanwhile); in place the user's maxUnavailable, at most R - 1, at least 1; with a surge as many as serve
        in their stead; with a second LWS the least of all these, at least 1.
        """
        if self.emptied and self.beside >= self.replicas:
            return self.replicas
        return self.strategy.portion(self.allowed, self.beside, self.replicas)

    @property
    def allowed(self) -> int:
        """The user's maxUnavailable in groups, at least 1: in place there is no other way."""
        return max(1, self.unavailable)

    @property
    def unavailable(self) -> int:
        return resolved_unavailable(users_strategy(self.facts.lws, self.keys), self.replicas)

    def all_are(self, revision: str) -> bool:
        """Whether every group of [0, R) carries ``revision`` and is ready."""
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
        """The hold, with the surge groups there are, or ``surge`` of them."""
        body = hold(self.facts.lws, self.keys, self.uid, self.surge if surge is None else surge)
        return (self.patch(body, reason),) if body else ()

    def patch(self, body: dict[str, object], reason: str) -> Patch:
        meta = self.facts.lws.metadata
        patch = Patch(LEADER_WORKER_SETS, meta.namespace, meta.name, body, reason)
        if not meta.annotations:
            return replace(patch, resource_version=meta.resource_version)
        # LWS writes its status at the very moments at which windows are opened and closed.
        return replace(patch, uid=meta.uid, generation=meta.generation)

    def delete(self, chosen: Sequence[Group], reason: str) -> tuple[Write, ...]:
        """Deletions of leaders, preceded by a read of the leader StatefulSet they rely on."""
        leader_set = self.facts.leader_set
        if leader_set is None or not chosen:
            return ()
        meta = leader_set.metadata
        confirm = Confirm(STATEFUL_SETS, meta.namespace, meta.name, meta.uid, meta.generation, reason)
        deletions = (
            Delete(PODS, group.leader.metadata.namespace, group.leader.metadata.name, group.uid, reason)
            for group in chosen
        )
        return (confirm, *deletions)


def lacking(ordinals: range, there: Set[int]) -> list[int]:
    """Those of ``ordinals`` that are not ``there``, from the lowest; MOST_GROUPS at most."""
    return list(islice((each for each in ordinals if each not in there), MOST_GROUPS))


def named(members: Sequence[Group]) -> str:
    """The indexes of groups, as a sentence has room for."""
    return listed([group.index for group in members])


def listed(names: Sequence[object]) -> str:
    """At most ten of them: a status has room for a sentence, not for a thousand groups."""
    text = ", ".join(str(name) for name in names[:10])
    return f"{text} and {len(names) - 10} more" if len(names) > 10 else text
