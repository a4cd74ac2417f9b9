"""Partition updates: groups of the new version in the stable LeaderWorkerSet itself, and their rollback.

The LWS is held at all times. A partition window lowers the partition for a batch of groups and closes as soon as their
leaders exist at the new revision; groups continue to start up under the hold. The next batch waits until these are
ready. So no more groups are down than the batch has, and a template edited meanwhile restarts nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rollout_lws.capacity.result import CapacityResult
from rollout_lws.capacity.stable_groups import StableGroups, lacking, listed, named
from rollout_lws.workload.groups import Group, groups
from rollout_lws.workload.hold import HOLD, foreign_members, is_held, window
from rollout_lws.workload.pod_words import command_to_recover
from rollout_lws.workload.revisions import current_revision, lws_revision, observed, target_revision

#: ``blocked`` of a rollback that has become impossible: the StatefulSet now starts the new version by itself.
POINT_OF_NO_RETURN = "PointOfNoReturn"
#: The reason for deleting leaders of an open window's batch.
AT_ONCE = "the batch is updated at once"
#: ``blocked`` of a rollback whose next group is the only one that serves.
LAST_SERVING = "LastServing"


@dataclass(frozen=True, slots=True)
class PartitionUpdate(StableGroups):
    """Updates of the stable LWS's groups, and their rollback."""

    @property
    def _unacted(self) -> str:
        return f"waiting for the {self.facts.workload.resource.kind} controller to act on the last change"

    # Forward

    def promote(self, revision: str, *, may_open: bool = True) -> CapacityResult:
        """Updates [0, R) to ``revision``; done when all are updated and ready, a recreated group would be too, and the
        hold is in place without surge groups.
        """
        if self.surge and not self.strategy.surges:
            return CapacityResult(writes=self.close("the surge groups go", surge=0), message="the surge groups go")
        if self.is_open:
            return self.in_window(revision)
        if self.all_are(revision):
            if current_revision(self.facts) != revision:
                return CapacityResult(message="waiting for the StatefulSet controller to record the new revision")
            if is_held(self.facts.workload):
                gone = self.drop_extra()
                if gone.done and self.strategy.surges and not observed(self.facts):
                    return CapacityResult(message=self._unacted)
                return gone
            return CapacityResult(writes=self.close("all groups are new", surge=0), message="the surge groups go")
        # With a surge, the groups that serve instead of a batch come first; otherwise LWS would update nothing below
        # either. Scaling may have turned surge groups into regular ones.
        surge = max(1, self.surge) if self.strategy.surges else 0
        if self._wrong_extra(revision, surge):
            return self.extend(revision, surge, may_open=may_open)
        return self._next_batch(revision, 0, may_open=may_open)

    def renew(self, revision: str, wanted: int, *, may_open: bool = True) -> CapacityResult:
        """Updates regular groups from the top until ``wanted`` of them are new, at any ordinals; done when they exist
        and the hold is in place.
        """
        if self.is_open:
            return self.in_window(revision)
        new = {group.ordinal for group in self.regular if group.revision == revision and not group.terminating}
        # The highest partition with at most so many other groups below it: those that may stay as they are.
        lowest = self.replicas - min(wanted, self.replicas)
        for ordinal in sorted(new):
            if ordinal > lowest:
                break
            lowest += 1
        lowest = min(lowest, self.replicas)
        if sum(ordinal >= lowest for ordinal in new) == self.replicas - lowest:
            return CapacityResult(done=True)
        return self._next_batch(revision, lowest, may_open=may_open)

    def extend(self, revision: str, surge: int, *, may_open: bool = True) -> CapacityResult:
        """Keeps ``surge`` groups of ``revision`` beyond the regular ones; done when exactly these exist and the hold is
        in place. Surplus ones go at once: their requests have to be elsewhere by then.
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
            return CapacityResult(message=self._unacted)
        body = window(self.facts.workload, self.keys, self.uid, self.replicas, 0, surge)
        writes = (self.patch(body, f"surge group {listed(wrong)}"),) if body else ()
        return CapacityResult(writes=writes, message=f"making surge group {listed(wrong)}", opened=tuple(wrong))

    def _wrong_extra(self, revision: str, surge: int) -> list[int]:
        """Ordinals of surge groups that do not exist at ``revision``."""
        there = {group.ordinal for group in self.extra if group.revision == revision}
        return lacking(range(self.replicas, self._end(revision, surge)), there)

    def _end(self, revision: str, surge: int) -> int:
        """The first unused ordinal: LWS keeps no more surge groups than regular ones are old or not ready."""
        renewed = sum(group.revision == revision and group.ready(self.now) for group in self.regular)
        return self.replicas + min(surge, self.replicas - renewed)

    def _acted_on(self, revision: str) -> bool:
        return observed(self.facts) and target_revision(self.facts) == revision

    def _next_batch(self, revision: str, lowest: int, *, may_open: bool) -> CapacityResult:
        """Opens a window for the next groups at or above ordinal ``lowest``, once those before are ready."""
        regular = self.regular
        old = [group for group in regular if group.revision != revision and group.ordinal >= lowest]
        # Without a surge, groups beyond the regular ones were scaled away and terminate.
        extra = self.extra if self.strategy.surges else ()
        new = (each for each in (*regular, *extra) if each.revision == revision)
        loading = [group for group in new if not group.ready(self.now, self.minimum)]
        there = {group.ordinal for group in regular}
        # Groups above every old one were updated before, and are being recreated now.
        lost = lacking(range(old[-1].ordinal + 1 if old else 0, self.replicas), there)
        if loading:
            # The message with which their windows were opened: the state is the same.
            renewed = [group for group in loading if group.ordinal < self.replicas]
            doing = f"renewing group {named(renewed)}" if renewed else f"making surge group {named(loading)}"
            return CapacityResult(message=doing, wake_at=self.wake_at())
        if lost:
            waited = f"group {listed(lost)}, which is made again, of {self.facts.name}"
            return CapacityResult(message=f"waiting for {waited}", wake_at=self.wake_at())
        if not may_open:
            return CapacityResult(message="paused: no further group is renewed")
        if not self._acted_on(revision):
            return CapacityResult(message=self._unacted)
        return self._open(old, self.replicas - len(there))

    def _open(self, old: Sequence[Group], missing: int) -> CapacityResult:
        down = missing + sum(not group.ready(self.now) for group in self.regular)
        budget = self.at_once - down
        downwards = sorted(old, key=lambda group: group.ordinal, reverse=True)
        least = self.unavailable if self.strategy.surges else self.allowed
        if budget < 1 and downwards[0].ready(self.now) and self.beside + least > down:
            # A broken group further down must not block the promotion that fixes it: R - maxUnavailable still serve.
            budget = 1
        chosen: list[Group] = []
        for group in downwards:
            # Groups that are down already cost nothing.
            if group.ready(self.now):
                if budget < 1:
                    break
                budget -= 1
            chosen.append(group)
        left = self.ready(self.regular) - self.ready(chosen) + self.beside
        # In place no other group can be added: if none serves, only the groups of a step can fix that.
        mends = self.strategy.takes_places and not any(group.ready(self.now) for group in chosen)
        if not chosen or (left < 1 and not mends):
            down_now = [group for group in self.regular if not group.ready(self.now)]
            waited = f"group {named(down_now) or 'all'} is not ready: no further group may go down"
            if spent := next((group for group in down_now if group.exhausted), None):
                waited += f"; group {spent.index} has used up its restarts: {command_to_recover(spent)}"
            return CapacityResult(message=waited, wake_at=self.wake_at())
        partition = min(group.ordinal for group in chosen)
        # LWS counts broken groups below the partition against maxUnavailable, and would open nothing.
        going = down + sum(group.ready(self.now) for group in chosen)
        body = window(self.facts.workload, self.keys, self.uid, partition, max(0, going - self.surge), self.surge)
        chosen.reverse()
        batch = named(chosen)
        writes = (self.patch(body, f"renew group {batch}"),) if body else ()
        opened = tuple(group.ordinal for group in chosen)
        return CapacityResult(writes=writes, message=f"renewing group {batch}", opened=opened)

    def in_window(self, revision: str) -> CapacityResult:
        """Drives an open window; closes it when the leaders of its batch exist at ``revision``."""
        partition = self.partition
        of_extra = partition >= self.replicas
        end = self._end(revision, self.surge) if of_extra else self.replicas
        batch = {group.ordinal: group for group in groups(self.facts) if partition <= group.ordinal < end}
        made = {ordinal for ordinal, group in batch.items() if group.revision == revision and not group.terminating}
        waiting = lacking(range(partition, end), made)
        # The message with which it was opened, and with which its groups start up after it is closed.
        serving = {ordinal for ordinal in made if batch[ordinal].ready(self.now, self.minimum)}
        awaited = listed(lacking(range(partition, end), serving))
        doing = f"making surge group {awaited}" if of_extra else f"renewing group {awaited}"
        if not waiting:
            writes = self.close("the batch's leaders exist at the new revision")
            return CapacityResult(writes=writes, message=doing if awaited else "closing the window")
        if of_extra and foreign_members(self.facts.workload, self.keys):
            # Without our surge LWS would never create them.
            again = window(self.facts.workload, self.keys, self.uid, partition, 0, self.surge)
            writes = (self.patch(again, "the strategy was edited in the window"),) if again else ()
            return CapacityResult(writes=writes, message=doing)
        leader_set = self.facts.leader_set
        opened = leader_set is not None and leader_set.spec.update_strategy.rolling_update.partition <= partition
        stale = [batch[ordinal] for ordinal in waiting if ordinal in batch and batch[ordinal].revision != revision]
        standing = [group for group in stale if not group.terminating]
        going, ready = self.ready(standing), self.ready(self.regular)
        if going and not of_extra and (going > self.at_once or ready - going + self.beside < 1):
            # The groups that were to serve meanwhile are lost: all that are left have to.
            return CapacityResult(writes=self.close("too few groups would serve"), message="closing the window")
        # StatefulSets without the maxUnavailable feature update one pod at a time and would keep the window open for a
        # startup; some of those with it never update a broken pod.
        highest = max((group.ordinal for group in stale), default=-1)
        more = [group for group in standing if group.ordinal != highest or not group.ready(self.now)] if opened else []
        return CapacityResult(writes=self.delete(more, AT_ONCE), message=doing)

    # Back

    def go_back(self, stable: str, *, from_steps: bool = False, patient: bool = True) -> CapacityResult:
        """Rolls [0, R) back to revision ``stable``, surge groups last; ``blocked`` says why if that is impossible.

        Rolling back from the steps, surge groups go as soon as any stable group serves: they have no requests by then.
        Without ``patient`` it is done when every group is at the revision, ready or not; a surge group stays if only it
        serves. Leaders deleted under the hold come back at the leader StatefulSet's currentRevision, so this works
        while that is stable's and LWS still keeps its own record of it.
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
        """Rolls all but ``keep`` of the regular groups that are not at revision ``stable`` back to it, from the lowest;
        done when their leaders are back.
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
            waited = "waiting for the StatefulSet controller to report the revision that groups restart with"
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
        budget = self.may_go_back(stable)
        chosen = [group for group in standing if not group.ready(self.now)]
        for group in (each for each in standing if each.ready(self.now)):
            if budget > 0 and serving > 1:
                chosen.append(group)
                budget, serving = budget - 1, serving - 1
        return CapacityResult(
            writes=self.delete(chosen, "back to the stable version"),
            message=f"group {named(other)} goes back to revision {stable}",
        )

    def may_go_back(self, stable: str) -> int:
        """How many ready groups may be rolled back to revision ``stable`` now, beside those that are down; 0 or less if
        none may.
        """
        regular = self.regular
        # An exhausted group of the stable version does not come back by itself: to wait for it is of no use.
        lasting = sum(group.exhausted and group.revision == stable for group in regular)
        down = self.replicas - self.ready(regular) - lasting
        return (self.replicas if self.emptied else self.allowed) - down

    def drop_extra(self) -> CapacityResult:
        """Removes the surge groups; done when the last is gone and the hold is in place without them."""
        if not is_held(self.facts.workload):
            return CapacityResult(writes=self.close("the surge groups go", surge=0), message="the surge groups go")
        extra = self.extra if self.strategy.surges else ()
        if extra:
            return CapacityResult(message=f"waiting for surge group {named(extra)} to go")
        return CapacityResult(done=True)
