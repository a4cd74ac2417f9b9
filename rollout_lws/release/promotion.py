"""Renewing the stable LeaderWorkerSet's own groups through windows, and taking renewed ones back.

The LWS is held at all times. A window lowers the partition for a portion of groups and is closed as soon as their
leaders exist with the new revision; what loads goes on loading under the hold. The next portion waits until these are
ready, so no more groups are down at once than the portion has, and a template edited meanwhile restarts nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from rollout_lws.api.resources import Keys
from rollout_lws.objects.resources import LEADER_WORKER_SETS, PODS, STATEFUL_SETS
from rollout_lws.objects.writes import Confirm, Delete, Patch, Write
from rollout_lws.release.batches import portion_beside
from rollout_lws.release.turn import Turn
from rollout_lws.workload.facts import Facts
from rollout_lws.workload.groups import Group, groups, moment_ready
from rollout_lws.workload.hold import HOLD, hold, is_held, resolved_unavailable, users_strategy, window
from rollout_lws.workload.revisions import current_revision, lws_revision, observed, target_revision


@dataclass(frozen=True, slots=True)
class Renewal:
    """The stable LWS's regular groups seen against the version they are to carry.

    ``canary_ready`` groups of a second LWS serve beside them; ``minimum`` is minReadySeconds. ``emptied`` says that
    these have all the requests, so that the stable LWS's own groups may be renewed all at once.
    """

    facts: Facts
    keys: Keys
    uid: str
    now: datetime
    canary_ready: int
    minimum: float = 0
    emptied: bool = False

    @property
    def replicas(self) -> int:
        return self.facts.lws.spec.replicas

    @property
    def regular(self) -> tuple[Group, ...]:
        """Groups with ordinals in [0, R)."""
        return tuple(group for group in groups(self.facts) if 0 <= group.ordinal < self.replicas)

    def ready(self, members: Sequence[Group]) -> int:
        return sum(group.ready(self.now, self.minimum) for group in members)

    @property
    def at_once(self) -> int:
        """Groups that may be down at once: all where no request reaches them and the canary has as many (R may have
        grown meanwhile), else the user's maxUnavailable, at most the ready canary groups and R - 1, at least 1.
        """
        if self.emptied and self.canary_ready >= self.replicas:
            return self.replicas
        return portion_beside(self._allowed, self.canary_ready, self.replicas)

    @property
    def _allowed(self) -> int:
        """The user's maxUnavailable in groups."""
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

    def close(self, reason: str) -> tuple[Write, ...]:
        body = hold(self.facts.lws, self.keys, self.uid)
        return (self._patch(body, reason),) if body else ()

    def _patch(self, body: dict[str, object], reason: str) -> Patch:
        meta = self.facts.lws.metadata
        return Patch(
            LEADER_WORKER_SETS, meta.namespace, meta.name, body, reason, resource_version=meta.resource_version
        )

    def _delete(self, chosen: Sequence[Group], reason: str) -> tuple[Write, ...]:
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

    def promote(self, revision: str, *, may_open: bool = True) -> Turn:
        """Renew [0, R) to ``revision``; done when all are new and ready, a recreated one would be too, and the hold
        stands.
        """
        if self.facts.lws.spec.rollout_strategy.rolling_update_configuration.partition < HOLD:
            return self._in_window(revision)
        regular = self.regular
        old = [group for group in regular if group.revision != revision]
        fresh = [group for group in regular if group.revision == revision]
        if self.all_are(revision):
            if current_revision(self.facts) != revision:
                return Turn(message="waiting for the StatefulSet controller to record the new revision")
            return Turn(done=True) if is_held(self.facts.lws) else Turn(writes=self.close("all groups are new"))
        loading = [group for group in fresh if not group.ready(self.now, self.minimum)]
        missing = self.replicas - len(regular)
        if loading or (missing and not old):
            waited = f"group {_named(loading)}" if loading else f"{missing} recreated groups"
            return Turn(message=f"waiting for {waited} of {self.facts.lws.metadata.name}", wake_at=self.wake_at())
        if not may_open:
            return Turn(message="paused: no further group is renewed")
        if not observed(self.facts) or target_revision(self.facts) != revision:
            return Turn(message="waiting for the LeaderWorkerSet controller to act on the last change")
        return self._open(old, missing)

    def _open(self, old: Sequence[Group], missing: int) -> Turn:
        down = missing + sum(not group.ready(self.now) for group in old)
        budget = self.at_once - down
        downwards = sorted(old, key=lambda group: group.ordinal, reverse=True)
        if budget < 1 and downwards[0].ready(self.now) and self.canary_ready + max(1, self._allowed) > down:
            # A broken group further down must not stop the promotion that mends it: R - maxUnavailable still serve.
            budget = 1
        chosen: list[Group] = []
        for group in downwards:
            # What is down already costs nothing.
            if group.ready(self.now):
                if budget < 1:
                    break
                budget -= 1
            chosen.append(group)
        left = self.ready(self.regular) - self.ready(chosen) + self.canary_ready
        if not chosen or left < 1:
            broken = _named([group for group in old if not group.ready(self.now)]) or "all"
            return Turn(message=f"group {broken} is not ready: no further group may go down", wake_at=self.wake_at())
        partition = min(group.ordinal for group in chosen)
        # LWS counts broken groups below the partition against maxUnavailable and would open nothing.
        going = down + sum(group.ready(self.now) for group in chosen)
        body = window(self.facts.lws, self.keys, self.uid, partition, going)
        chosen.reverse()
        named = _named(chosen)
        writes = (self._patch(body, f"renew group {named}"),) if body else ()
        opened = tuple(group.ordinal for group in chosen)
        return Turn(writes=writes, message=f"renewing group {named}", opened=opened)

    def _in_window(self, revision: str) -> Turn:
        partition = self.facts.lws.spec.rollout_strategy.rolling_update_configuration.partition
        portion = {group.ordinal: group for group in self.regular if group.ordinal >= partition}
        waiting = [
            ordinal
            for ordinal in range(partition, self.replicas)
            if ordinal not in portion or portion[ordinal].revision != revision or portion[ordinal].terminating
        ]
        if not waiting:
            return Turn(
                writes=self.close("the portion's leaders exist at the new revision"), message="closing the window"
            )
        leader_set = self.facts.leader_set
        opened = leader_set is not None and leader_set.spec.update_strategy.rolling_update.partition <= partition
        stale = [
            portion[ordinal] for ordinal in waiting if ordinal in portion and portion[ordinal].revision != revision
        ]
        standing = [group for group in stale if not group.terminating]
        going, ready = self.ready(standing), self.ready(self.regular)
        if going and (going > self.at_once or ready - going + self.canary_ready < 1):
            # Those that were to serve meanwhile are lost: whatever still stands has to.
            return Turn(writes=self.close("too few groups would serve"), message="closing the window")
        # StatefulSets without the maxUnavailable feature renew one pod at a time and would keep the window open for a
        # load.
        more = [group for group in standing if group.ordinal != max(g.ordinal for g in stale)] if opened else []
        return Turn(
            writes=self._delete(more, "the portion is renewed at once"),
            message=f"waiting for the leader of group {_listed(waiting)} at the new revision",
        )

    def go_back(self, stable: str) -> Turn:
        """Take [0, R) back to revision ``stable``; ``stuck`` is "PointOfNoReturn" when that has become impossible.

        Leaders deleted under the hold come back at the leader StatefulSet's currentRevision, so this works for as long
        as that is stable's and LWS still keeps its own record of it.
        """
        leader_set = self.facts.leader_set
        if not is_held(self.facts.lws):
            return Turn(writes=self.close("going back"), message="closing the window")
        if leader_set is None or leader_set.spec.update_strategy.rolling_update.partition < HOLD:
            return Turn(message="waiting for the leader StatefulSet to have the hold")
        regular = self.regular
        other = [group for group in regular if group.revision != stable]
        if not other:
            if self.all_are(stable):
                return Turn(done=True)
            return Turn(message=f"waiting for groups that came back to revision {stable}", wake_at=self.wake_at())
        if current_revision(self.facts) != stable or lws_revision(self.facts, stable) is None:
            return Turn(stuck="PointOfNoReturn")
        standing = [group for group in other if not group.terminating]
        serving = self.ready(regular) + self.canary_ready
        if len(other) == 1 and standing and self.ready(other) and serving == 1:
            return Turn(stuck="PointOfNoReturn")
        budget = (self.replicas if self.emptied else max(1, self._allowed)) - (self.replicas - self.ready(regular))
        chosen = [group for group in standing if not group.ready(self.now)]
        for group in (each for each in standing if each.ready(self.now)):
            if budget > 0 and serving > 1:
                chosen.append(group)
                budget, serving = budget - 1, serving - 1
        return Turn(
            writes=self._delete(chosen, "back to the stable version"),
            message=f"group {_named(other)} goes back to revision {stable}",
        )


def _named(members: Sequence[Group]) -> str:
    return _listed([group.index for group in members])


def _listed(names: Sequence[object]) -> str:
    """At most ten of them: a status has room for a sentence, not for a thousand groups."""
    text = ", ".join(str(name) for name in names[:10])
    return f"{text} and {len(names) - 10} more" if len(names) > 10 else text
