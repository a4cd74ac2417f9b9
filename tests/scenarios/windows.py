"""The promises about windows: when the hold may be opened, for how many groups, and who serves meanwhile."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from rollout_lws.objects import scaling
from rollout_lws.objects.resources import HORIZONTAL_POD_AUTOSCALERS
from rollout_lws.objects.writes import Patch
from tests.scenarios.count import CANARY, HOLD, Count, Standing, partition
from tests.scenarios.kinds import parameters
from tests.scenarios.routed import emptied
from tests.scenarios.styles import Style
from tests.scenarios.world import KEYS, NAME, NAMESPACE, ROLLOUTS, World


class Windows(Count):
    """Judges the controller's writes to the user's LWS; ``unavailable`` is the user's maxUnavailable."""

    def __init__(self, world: World, unavailable: int | str, style: Style, *, exact: bool) -> None:
        super().__init__(world)
        self.unavailable, self._style, self._exact = unavailable, style, exact

    def judge(self, write: Patch) -> None:
        """AssertionError when this write, done now, breaks a promise."""
        lws, spec = self.live(NAME), write.body.get("spec") or {}
        if "replicas" in spec:
            self._scaled(lws, write)
            return
        strategy, rolling = self._kind.strategy
        assert set(spec) <= {strategy}, f"only the strategy is ever borrowed: {write}"
        assert set(write.body.get("metadata") or {}) <= {"annotations", "resourceVersion"}, write
        changes = (spec.get(strategy) or {}).get(rolling) or {}
        rollout, (ending, task) = self.rollout(), self.task()
        by_hand = (lws["metadata"].get("annotations") or {}).get(KEYS.release_hold) == "true"
        leaving = bool(rollout["spec"].get("disabled")) or "deletionTimestamp" in rollout["metadata"]
        if not by_hand and not leaving:
            self._surged(lws, changes, write)
        before, after = partition(lws), int(changes.get("partition", partition(lws)))
        if after >= min(before, HOLD):
            return
        in_step = not self._style.apart and self.in_step()
        if not by_hand and (in_step or (ending, task) == ("Success", "Promote")):
            assert before >= HOLD, f"a second window is opened inside the first: {write}"
            if self._exact:
                self._window(lws, after, write)
            return
        assert leaving or by_hand, f"the hold is opened at {(ending, task)}: {write}"
        if leaving and not by_hand:
            waits = [group for group in self.groups() if self.stable(rollout) and group.revision != self.target()]
            assert not waits, f"leaving starts what was held: {write} with {self.groups()}"

    def _scaled(self, lws: dict[str, Any], write: Patch) -> None:
        """A number of groups is only written for a Rollout that asks for one, and starts and takes nothing away that a
        release has to judge.
        """
        rollout = self.rollout()
        asked, before = rollout["spec"].get("replicas"), int(lws["spec"]["replicas"])
        after = int(write.body["spec"]["replicas"])
        assert set(write.body) == {"spec"} and set(write.body["spec"]) == {"replicas"}, write
        assert asked is not None and not rollout["spec"].get("disabled"), f"no number is asked for: {write}"
        assert "deletionTimestamp" not in rollout["metadata"], f"leaving writes no number: {write}"
        everyone, stable = self.groups(), self.stable(rollout)
        pending = stable is not None and stable["revision"] != self.target()
        assert after or not pending, f"without groups a version takes effect by itself: {write}"
        assert before or everyone or not pending, f"starts what waits: {write}"
        ready = [group.ordinal for group in everyone if group.ready]
        assert not (0 < after < before and ready) or min(ready) < after, f"all that serve would go: {write}"
        autoscalers = self._store.list(HORIZONTAL_POD_AUTOSCALERS, NAMESPACE)
        scaled = {each["spec"]["scaleTargetRef"]["kind"] for each in autoscalers}
        releasing = self._world.status_of(NAME).get("phase") == "Progressing"
        assert not (releasing and ROLLOUTS.kind in scaled) or after >= before, f"an autoscaler takes groups: {write}"

    def _surged(self, lws: dict[str, Any], changes: dict[str, Any], write: Patch) -> None:
        """Invariant 5, of groups beyond R in the LWS itself: none but a surge's, and no more than were announced."""
        surge = changes.get("maxSurge", 0)
        if not surge or surge == parameters(lws).get("maxSurge"):
            return
        total = int(lws["spec"]["replicas"])
        assert not self._style.apart and int(surge) <= self._style.most_extra(self.planned(), total), f"surges: {write}"

    def _window(self, lws: dict[str, Any], opened: int, write: Patch) -> None:
        rollout, replicas, target = self.rollout(), int(lws["spec"]["replicas"]), self.target()
        self._goes_on(rollout, write)
        everyone = self.groups()
        standing = {group.ordinal: group for group in everyone if group.ordinal < replicas}
        chosen = {o for o, group in standing.items() if o >= opened and group.revision != target}
        renewed = {o for o, group in standing.items() if group.revision == target}
        down = {o for o in range(replicas) if o not in standing or not standing[o].ready}
        if self.in_step():
            most = min(self.planned(), replicas - 1)
            assert len(chosen | renewed) <= most, f"{most} groups are planned: {write} with {everyone}"
        beside = self._beside(everyone, replicas, target)
        if self._style.whole_first:
            assert renewed or beside >= replicas, f"{beside} of {replicas} are new, and yet: {write}"
        allowed = self._allowed(replicas, beside, replicas - len(down))
        told = f"{write.reason}: {sorted(everyone, key=lambda g: g.ordinal)}, beside {beside}, at most {allowed}"
        # What is down already costs nothing; one more than the allowance may go only where R - maxUnavailable still
        # serve, those beside included.
        taken, left = chosen - down, beside + replicas - len(down | chosen)
        spare = self._users(replicas) if self._style.spared else max(1, self._users(replicas))
        enough = left >= replicas - spare
        assert not taken or len(down | chosen) <= allowed or (len(taken) == 1 and enough), told
        assert left >= 1 or not taken, f"nobody would serve after {told}"

    def _goes_on(self, rollout: dict[str, Any], write: Patch) -> None:
        """Invariant 11: paused, or aborted in time, no window is opened."""
        assert not rollout["spec"]["strategy"].get("paused"), f"paused, and yet: {write}"
        asked, ending = rollout["status"].get("lastAction") or {}, rollout["status"].get("finalising")
        if ending and (asked.get("type"), asked.get("outcome")) == ("Abort", "Done"):
            since = datetime.fromisoformat(ending["since"])
            assert datetime.fromisoformat(asked["finishedAt"]) <= since, f"aborted, and yet: {write}"

    def _beside(self, everyone: list[Standing], replicas: int, target: str) -> int:
        """Ready groups of the new version that stand beside [0, R): a canary's, or those that were surged."""
        surged = sum(each.ready for each in everyone if each.ordinal >= replicas and each.revision == target)
        return self.ready(CANARY) + (0 if self._style.apart else surged)

    def _users(self, replicas: int) -> int:
        return scaling.scaled(self.unavailable, replicas, up=False)

    def _allowed(self, replicas: int, beside: int, ready: int) -> int:
        """Groups that may be down at once."""
        if self._style.spared:
            return beside
        if not self._style.apart:
            return max(1, min(self._users(replicas), replicas - 1))
        if emptied(self._world) and beside >= ready:
            return replicas
        return max(1, min(self._users(replicas), beside, replicas - 1))
