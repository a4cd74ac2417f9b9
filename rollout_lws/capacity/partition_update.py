"""Groups of the new version in the stable LeaderWorkerSet itself, made through windows, and taken back.

The LWS is held at all times. A window lowers the partition for a portion of groups and is closed as soon as their
leaders exist with the new revision; what loads goes on loading under the hold. The next portion waits until these are
ready, so no more groups are down at once than the portion has, and a template edited meanwhile restarts nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rollout_lws.capacity.result import CapacityResult
from rollout_lws.capacity.stable_groups import StableGroups, lacking, listed, named
from rollout_lws.workload.groups import Group, groups
from rollout_lws.workload.hold import (
    HOLD,
    foreign_members,
    is_held,
    window,
)
from rollout_lws.workload.revisions import current_revision, lws_revision, observed, target_revision

#: What a way back says when it has become impossible: the StatefulSet starts the new version by itself now.
POINT_OF_NO_RETURN = "PointOfNoReturn"
_UNACTED = "waiting for the LeaderWorkerSet controller to act on the last change"
#: Why leaders of an open window's portion are deleted.
AT_ONCE = "the portion is renewed at once"
#: What it says when the one group that serves is the one to go back.
LAST_SERVING = "LastServing"


@dataclass(frozen=True, slots=True)
class PartitionUpdate(StableGroups):
    """The stable LWS's groups on their way to another version, and back."""

    # Forward

    def promote(self, revision: str, *, may_open: bool = True) -> CapacityResult:
        """Renew [0, R) to ``revision``; done when all are new and ready, a recreated one would be too, and the hold
        stands without surge groups.
        """
        if self.surge and not self.strategy.surges:
            return CapacityResult(writes=self.close("the surge groups go", surge=0), message="the surge groups go")
        if self.is_open:
            return self.in_window(revision)
        if self.all_are(revision):
            if current_revision(self.facts) != revision:
                return CapacityResult(message="waiting for the StatefulSet controller to record the new revision")
            if is_held(self.facts.lws):
                gone = self.drop_extra()
                if gone.done and self.strategy.surges and not observed(self.facts):
                    return CapacityResult(message=_UNACTED)
                return gone
            return CapacityResult(writes=self.close("all groups are new", surge=0), message="the surge groups go")
        # With a surge, what serves in the stead of a portion comes first; LWS would renew nothing below it either.
        # Groups that were surged may have become regular ones by scaling.
        surge = max(1, self.surge) if self.strategy.surges else 0
        if self._wrong_extra(revision, surge):
            return self.extend(revision, surge, may_open=may_open)
        return self._next_portion(revision, 0, may_open=may_open)

    def renew(self, revision: str, wanted: int, *, may_open: bool = True) -> CapacityResult:
        """Renew regular groups from the top until ``wanted`` of them are new, wherever these stand; done when they
        exist and the hold stands.
        """
        if self.is_open:
            return self.in_window(revision)
        new = {group.ordinal for group in self.regular if group.revision == revision and not group.terminating}
        # The highest partition with at most so many others below it: those that may stay as they are.
        lowest = self.replicas - min(wanted, self.replicas)
        for ordinal in sorted(new):
            if ordinal > lowest:
                break
            lowest += 1
        lowest = min(lowest, self.replicas)
        if sum(ordinal >= lowest for ordinal in new) == self.replicas - lowest:
            return CapacityResult(done=True)
        return self._next_portion(revision, lowest, may_open=may_open)

    def extend(self, revision: str, surge: int, *, may_open: bool = True) -> CapacityResult:
        """Have ``surge`` groups of ``revision`` beyond the regular ones; done when just these exist and the hold
        stands. Fewer than there are go at once: what they serve has to be elsewhere by then.
        """
        if self.is_open:
            return self.in_window(revision)
        if surge < self.surge:
            return CapacityResult(writes=self.close(f"{surge} surge groups", surge=surge), message="surge groups go")
        wrong = self._wrong_extra(revision, surge)
        if not wrong:
            return CapacityResult(done=True)
        if not may_open:
            return CapacityResult(message="paused: no further group is made")
        if not self._acted_on(revision):
            return CapacityResult(message=_UNACTED)
        body = window(self.facts.lws, self.keys, self.uid, self.replicas, 0, surge)
        writes = (self.patch(body, f"surge group {listed(wrong)}"),) if body else ()
        return CapacityResult(writes=writes, message=f"making surge group {listed(wrong)}", opened=tuple(wrong))

    def _wrong_extra(self, revision: str, surge: int) -> list[int]:
        """Ordinals of surge groups that do not exist with ``revision``."""
        there = {group.ordinal for group in self.extra if group.revision == revision}
        return lacking(range(self.replicas, self._end(revision, surge)), there)

    def _end(self, revision: str, surge: int) -> int:
        """The first ordinal that is not in use: LWS has no more surge groups than regular ones are old or not ready."""
        renewed = sum(group.revision == revision and group.ready(self.now) for group in self.regular)
        return self.replicas + min(surge, self.replicas - renewed)

    def _acted_on(self, revision: str) -> bool:
        return observed(self.facts) and target_revision(self.facts) == revision

    def _next_portion(self, revision: str, lowest: int, *, may_open: bool) -> CapacityResult:
        """Open a window for the next groups at or above ordinal ``lowest``, once those before are ready."""
        regular = self.regular
        old = [group for group in regular if group.revision != revision and group.ordinal >= lowest]
        # Without a surge what is beyond the regular groups was scaled away and ends.
        extra = self.extra if self.strategy.surges else ()
        new = (each for each in (*regular, *extra) if each.revision == revision)
        loading = [group for group in new if not group.ready(self.now, self.minimum)]
        there = {group.ordinal for group in regular}
        # What is above every old group was renewed before, and is made again at this moment.
        lost = lacking(range(old[-1].ordinal + 1 if old else 0, self.replicas), there)
        if loading:
            # The words by which their windows were opened: it is still the same.
            renewed = [group for group in loading if group.ordinal < self.replicas]
            doing = f"renewing group {named(renewed)}" if renewed else f"making surge group {named(loading)}"
            return CapacityResult(message=doing, wake_at=self.wake_at())
        if lost:
            waited = f"group {listed(lost)}, which is made again, of {self.facts.lws.metadata.name}"
            return CapacityResult(message=f"waiting for {waited}", wake_at=self.wake_at())
        if not may_open:
            return CapacityResult(message="paused: no further group is renewed")
        if not self._acted_on(revision):
            return CapacityResult(message=_UNACTED)
        return self._open(old, self.replicas - len(there))

    def _open(self, old: Sequence[Group], missing: int) -> CapacityResult:
        down = missing + sum(not group.ready(self.now) for group in self.regular)
        budget = self.at_once - down
        downwards = sorted(old, key=lambda group: group.ordinal, reverse=True)
        least = self.unavailable if self.strategy.surges else self.allowed
        if budget < 1 and downwards[0].ready(self.now) and self.beside + least > down:
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
        left = self.ready(self.regular) - self.ready(chosen) + self.beside
        # In place nothing can come up beside them: where no group serves, those of a step are all that can mend it.
        mends = self.strategy.updates_regular and not any(group.ready(self.now) for group in chosen)
        if not chosen or (left < 1 and not mends):
            broken = named([group for group in self.regular if not group.ready(self.now)]) or "all"
            waited = f"group {broken} is not ready: no further group may go down"
            return CapacityResult(message=waited, wake_at=self.wake_at())
        partition = min(group.ordinal for group in chosen)
        # LWS counts broken groups below the partition against maxUnavailable and would open nothing.
        going = down + sum(group.ready(self.now) for group in chosen)
        body = window(self.facts.lws, self.keys, self.uid, partition, max(0, going - self.surge), self.surge)
        chosen.reverse()
        portion = named(chosen)
        writes = (self.patch(body, f"renew group {portion}"),) if body else ()
        opened = tuple(group.ordinal for group in chosen)
        return CapacityResult(writes=writes, message=f"renewing group {portion}", opened=opened)

    def in_window(self, revision: str) -> CapacityResult:
        """What an open window waits for; it is closed when the leaders of its portion exist at ``revision``."""
        partition = self.partition
        of_extra = partition >= self.replicas
        end = self._end(revision, self.surge) if of_extra else self.replicas
        portion = {group.ordinal: group for group in groups(self.facts) if partition <= group.ordinal < end}
        made = {ordinal for ordinal, group in portion.items() if group.revision == revision and not group.terminating}
        waiting = lacking(range(partition, end), made)
        # The words by which it was opened, and by which its groups load when it is closed.
        serving = {ordinal for ordinal in made if portion[ordinal].ready(self.now, self.minimum)}
        awaited = listed(lacking(range(partition, end), serving))
        doing = f"making surge group {awaited}" if of_extra else f"renewing group {awaited}"
        if not waiting:
            writes = self.close("the portion's leaders exist at the new revision")
            return CapacityResult(writes=writes, message=doing if awaited else "closing the window")
        if of_extra and foreign_members(self.facts.lws, self.keys):
            # Without our surge LWS would never make them.
            again = window(self.facts.lws, self.keys, self.uid, partition, 0, self.surge)
            writes = (self.patch(again, "the strategy was edited in the window"),) if again else ()
            return CapacityResult(writes=writes, message=doing)
        leader_set = self.facts.leader_set
        opened = leader_set is not None and leader_set.spec.update_strategy.rolling_update.partition <= partition
        stale = [
            portion[ordinal] for ordinal in waiting if ordinal in portion and portion[ordinal].revision != revision
        ]
        standing = [group for group in stale if not group.terminating]
        going, ready = self.ready(standing), self.ready(self.regular)
        if going and not of_extra and (going > self.at_once or ready - going + self.beside < 1):
            # Those that were to serve meanwhile are lost: whatever still stands has to.
            return CapacityResult(writes=self.close("too few groups would serve"), message="closing the window")
        # StatefulSets without the maxUnavailable feature renew one pod at a time and would keep the window open for a
        # load; some of those with it never renew a pod that is broken.
        highest = max((group.ordinal for group in stale), default=-1)
        more = [group for group in standing if group.ordinal != highest or not group.ready(self.now)] if opened else []
        return CapacityResult(writes=self.delete(more, AT_ONCE), message=doing)

    # Back

    def go_back(self, stable: str, *, from_steps: bool = False, patient: bool = True) -> CapacityResult:
        """Take [0, R) back to revision ``stable``, surge groups last; ``blocked`` says why when that is impossible.
        From the steps surge groups go as soon as anything of stable serves, for they have no requests by then. Not
        ``patient``, it is done when every group carries the revision, ready or not; a surge group that alone serves
        stays all the same.

        Leaders deleted under the hold come back at the leader StatefulSet's currentRevision, so this works for as long
        as that is stable's and LWS still keeps its own record of it.
        """
        result = self.take_back(stable)
        if not result.done:
            return result
        if self.strategy.surges and (from_steps or not patient):
            if self.beside and not self.ready(self.regular):
                stays = f"surge group {named(self.extra)} stays"
                return CapacityResult(message=f"no group of revision {stable} is ready: {stays}")
        elif patient and not self.all_are(stable):
            waited = f"waiting for groups that came back to revision {stable}"
            return CapacityResult(message=waited, wake_at=self.wake_at())
        return self.drop_extra()

    def take_back(self, stable: str, keep: int = 0) -> CapacityResult:
        """Have all but ``keep`` of the regular groups that are not at revision ``stable`` come back at it, from the
        lowest; done when their leaders have.
        """
        leader_set = self.facts.leader_set
        if self.is_open:
            return CapacityResult(writes=self.close("going back"), message="closing the window")
        if leader_set is None or leader_set.spec.update_strategy.rolling_update.partition < HOLD:
            return CapacityResult(message="waiting for the leader StatefulSet to have the hold")
        regular = self.regular
        other = [group for group in regular if group.revision != stable]
        other = other[: max(0, len(other) - keep)]
        if not other:
            return CapacityResult(done=True)
        current = current_revision(self.facts)
        if not current:
            waited = "waiting for the StatefulSet controller to tell the revision that groups restart with"
            return CapacityResult(message=waited)
        if current != stable or lws_revision(self.facts, stable) is None:
            return CapacityResult(blocked=POINT_OF_NO_RETURN)
        standing = [group for group in other if not group.terminating]
        serving = self.ready(regular) + self.beside
        if len(other) == 1 and standing and self.ready(other) and serving == 1:
            name = other[0].leader.metadata.name
            return CapacityResult(
                blocked=LAST_SERVING,
                message=f"group {other[0].index} is the only one that serves and goes back when another is ready. To do"
                f" without it now: kubectl delete pod {name} -n {other[0].leader.metadata.namespace}",
            )
        budget = (self.replicas if self.emptied else self.allowed) - (self.replicas - self.ready(regular))
        chosen = [group for group in standing if not group.ready(self.now)]
        for group in (each for each in standing if each.ready(self.now)):
            if budget > 0 and serving > 1:
                chosen.append(group)
                budget, serving = budget - 1, serving - 1
        return CapacityResult(
            writes=self.delete(chosen, "back to the stable version"),
            message=f"group {named(other)} goes back to revision {stable}",
        )

    def drop_extra(self) -> CapacityResult:
        """Have the surge groups go; done when the last is gone and the hold stands without them."""
        if not is_held(self.facts.lws):
            return CapacityResult(writes=self.close("the surge groups go", surge=0), message="the surge groups go")
        extra = self.extra if self.strategy.surges else ()
        if extra:
            return CapacityResult(message=f"waiting for surge group {named(extra)} to go")
        return CapacityResult(done=True)
