"""The promises of every style, judged while they can still be broken.

A judge is told of each write of the controller just before it is carried out, when the world still shows what the
write will do to it, and of every change of the store. It knows nothing of how the controller comes to its decisions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from rollout_lws.objects.resources import CONTROLLER_REVISIONS, PODS, STATEFUL_SETS
from rollout_lws.objects.writes import Create, Delete, Patch, Write
from rollout_lws.sandbox.store import Event
from tests.scenarios.borders import assert_within
from tests.scenarios.count import CANARY, HOLD, Count, partition, set_partition
from tests.scenarios.resets import Resets
from tests.scenarios.styles import CANARY_STYLE, Style
from tests.scenarios.windows import Windows
from tests.scenarios.world import KEYS, NAME, NAMESPACE, ROLLOUTS, World

__all__ = ["CANARY", "HOLD", "Judge"]

#: More writes than this in one second, or other than of status between two acts of a person, are a quarrel with itself.
MOST_WRITES_A_SECOND, MOST_WRITES_AN_ACT = 100, 120


class Judge(Count):
    """``unavailable`` is the user's maxUnavailable. With ``exact`` the controller sees each change at once, so that it
    answers for what it does to groups that have just failed.
    """

    def __init__(
        self, world: World, unavailable: int | str, style: Style = CANARY_STYLE, *, exact: bool = True
    ) -> None:
        super().__init__(world)
        self._style, self._exact = style, exact
        self._windows = Windows(world, unavailable, style, exact=exact)
        self._user_acts = False
        self._loosened, self._resets = False, Resets()
        self._second, self._writes_in_second, self._writes_since_act = -1, 0, 0
        self._store.subscribe(self._see)

    @contextmanager
    def user(self) -> Iterator[None]:
        """What happens inside is a person's doing."""
        self._user_acts, self._writes_since_act = True, 0
        try:
            yield
        finally:
            self._user_acts = False

    def allow(self, unavailable: int | str) -> None:
        """The user's maxUnavailable is another one from now on."""
        self._windows.unavailable = unavailable

    # The controller's writes

    def judge(self, write: Write) -> None:
        """AssertionError when this write, done now, breaks a promise."""
        if self._refused(write):
            return
        self._count(write)
        if self._exact:
            assert_within(self._store, write, NAME, NAMESPACE)
        if write.resource == self._kind.resource:
            if isinstance(write, Create):
                self._canary_made(write)
            elif write.name == NAME:
                assert isinstance(write, Patch), f"the user's LWS is {write.reason}"
                self._windows.judge(write)
            elif write.name == CANARY:
                self._canary_written(write)
        elif write.resource == PODS and isinstance(write, Delete):
            self._pod_deleted(write)
        elif write.resource == CONTROLLER_REVISIONS and isinstance(write, Delete):
            self._record_deleted(write)

    def _refused(self, write: Write) -> bool:
        """Whether the server will not carry it out, because the world has moved on."""
        if isinstance(write, Create):
            meta = write.body["metadata"]
            return self._store.get(write.resource, NAMESPACE, meta["name"]) is not None
        live = self._store.get(write.resource, NAMESPACE, write.name)
        if live is None:
            return True
        meta = live["metadata"]
        version, uid = getattr(write, "resource_version", None), getattr(write, "uid", None)
        generation = getattr(write, "generation", None)
        return any(
            wanted not in (None, meta.get(member))
            for member, wanted in (("resourceVersion", version), ("uid", uid), ("generation", generation))
        )

    def _count(self, write: Write) -> None:
        second = int(self._world.server.clock())
        if second != self._second:
            self._second, self._writes_in_second = second, 0
        self._writes_in_second += 1
        assert self._writes_in_second <= MOST_WRITES_A_SECOND, f"never comes to rest: {write}"
        if write.resource != PODS and getattr(write, "subresource", "") != "status":
            self._writes_since_act += 1
        assert self._writes_since_act <= MOST_WRITES_AN_ACT, f"writes on and on: {write}"
        if self._exact and isinstance(write, Patch):
            live = self._world.server.get(write.resource, NAMESPACE, write.name)
            after = self._world.server.patch(
                write.resource, NAMESPACE, write.name, dict(write.body), subresource=write.subresource, dry_run=True
            )
            assert after is live or _content(after) != _content(live), f"a write that changes nothing: {write}"

    def _canary_made(self, write: Create) -> None:
        meta, spec = write.body["metadata"], write.body["spec"]
        assert meta["name"] == CANARY, meta["name"]
        assert self._style.apart, f"a second LWS where one is promised: {write}"
        self._grown(int(spec["replicas"]), write)

    def _grown(self, replicas: int, write: Write) -> None:
        """Invariant 5: extra groups never exceed what the plan announced; paused, there are no more of them."""
        if not self._exact:
            return
        planned, total = self.planned(), int(self.live(NAME)["spec"]["replicas"])
        assert replicas <= self._style.most_extra(planned, total), f"{replicas} groups, {planned} planned: {write}"
        assert not self.rollout()["spec"]["strategy"].get("paused"), f"paused, and yet: {write}"

    def _canary_written(self, write: Write) -> None:
        canary = self.live(CANARY)
        before = int(canary["spec"]["replicas"])
        if isinstance(write, Delete):
            after = 0
        elif isinstance(write, Patch) and "spec" in write.body:
            assert set(write.body["spec"]) == {"replicas"}, write
            after = int(write.body["spec"]["replicas"])
        else:
            return
        if after > before:
            self._grown(after, write)
        if after == 0 and self._exact:
            self._serves_without({}, canary=False, write=write)

    def _pod_deleted(self, write: Delete) -> None:
        pod = self._store.get(PODS, NAMESPACE, write.name)
        assert pod is not None
        assert write.uid == pod["metadata"]["uid"], f"without a uid: {write}"
        if self._kind.owns(pod, CANARY) and not self.live(CANARY)["spec"]["replicas"]:
            # One that its controller would wait for.
            assert not self._is_ready(pod), f"it would go by itself: {write}"
            return
        leads = self._kind.owns(pod, NAME) and self._kind.leads(pod)
        assert leads, f"no leader of the stable workload: {write}"
        ending, task = self.task()
        lws, revision = self.live(NAME), self._kind.revision(pod)
        ordinal = self._kind.index(pod) - self._kind.first(lws)
        in_step = not self._style.apart and self.in_step()
        if task == "Promote" or (in_step and partition(lws) < HOLD):
            assert not self._exact or partition(lws) <= ordinal, f"outside of the window: {write}"
            assert revision != self.target(), f"it is new already: {write}"
        else:
            stable = self.stable(self.rollout())
            back = task in ("RollBackPromotion", "RollBackSteps") or in_step
            assert back and stable, f"a group is restarted at {(ending, task)}: {write}"
            assert revision != stable["revision"], f"it is stable's already: {write}"
        if self._exact:
            self._serves_without({ordinal}, canary=True, write=write)

    def _is_ready(self, pod: Mapping[str, Any]) -> bool:
        conditions = {each["type"]: each["status"] for each in (pod.get("status") or {}).get("conditions") or ()}
        return conditions.get("Ready") == "True"

    def _record_deleted(self, write: Delete) -> None:
        """LWS makes workers from the newest record of their leader's revision: that one is never taken from it."""
        records = list(self._store.list(CONTROLLER_REVISIONS, NAMESPACE))
        gone = next(each for each in records if each["metadata"]["name"] == write.name)
        if not self._kind.owns(gone, NAME):
            return
        assert write.uid == gone["metadata"]["uid"], f"without a uid: {write}"
        revision, owners = self._kind.revision_of_record(gone), gone["metadata"]["ownerReferences"]
        newer = (
            each
            for each in records
            if self._kind.revision_of_record(each) == revision
            and each["metadata"].get("ownerReferences") == owners
            and each["revision"] > gone["revision"]
        )
        if next(newer, None) is not None:
            return
        # Workers whose leader is gone are on their way out: nothing is made for them again.
        carried = {group.revision for group in self.groups()}
        leaders = self._store.get(STATEFUL_SETS, NAMESPACE, NAME) or {}
        back = self._store.get(
            CONTROLLER_REVISIONS, NAMESPACE, (leaders.get("status") or {}).get("currentRevision", "")
        )
        needed = carried | {self._kind.revision_of_record(each) for each in (leaders, back) if each}
        assert revision not in needed, f"groups need it: {write}"

    def _serves_without(self, ordinals: set[int] | dict[int, str], *, canary: bool, write: Write) -> None:
        """Invariant 2: the last version that serves is never deleted, shrunk or restarted."""
        lws = self._store.get(self._kind.resource, NAMESPACE, NAME)
        if lws is None or "deletionTimestamp" in lws["metadata"] or not lws["spec"]["replicas"]:
            return
        stable = self.groups()
        serving = sum(group.ready for group in stable) + self.ready(CANARY)
        left = sum(group.ready for group in stable if group.ordinal not in ordinals)
        left += self.ready(CANARY) if canary else 0
        assert left or not serving, f"the last that serves would go: {write}"

    # Every change

    def _see(self, event: Event) -> None:
        try:
            self._check(event)
        except AssertionError as error:
            self._world.errors.append(error)

    def _check(self, event: Event) -> None:
        if self._resets.is_away and not self._world.running:
            self._loosened = True
        if event.resource == self._kind.resource:
            named = [obj["metadata"]["name"] for obj in self._store.list(self._kind.resource, NAMESPACE)]
            assert {name for name in named if name.startswith(NAME)} <= {NAME, CANARY}, named
            if event.object["metadata"]["name"] == NAME:
                self._lws_changed(event)
        if event.resource == STATEFUL_SETS and event.object["metadata"]["name"] == NAME:
            self._loosened = self._loosened and (event.type == "DELETED" or not self._tight(event.object))
        elif event.resource == PODS and event.type == "ADDED":
            self._pod_made(event.object)
        elif event.resource == ROLLOUTS and event.type == "MODIFIED" and event.previous is not None:
            self._stable_recorded(event.previous, event.object)

    def _lws_changed(self, event: Event) -> None:
        live = event.object
        self._resets.changed(live, self._world.server.clock())
        by_hand = (live["metadata"].get("annotations") or {}).get(KEYS.release_hold) == "true"
        # A controller that sees each change at once has no excuse for longer than a moment.
        by_hand = by_hand or (self._user_acts and not (self._exact and self._world.running))
        if event.type != "MODIFIED" or not live["spec"]["replicas"] or (by_hand and partition(live) < HOLD):
            self._loosened = True

    def _tight(self, leaders: dict[str, Any]) -> bool:
        """Whether the hold has reached the StatefulSet, which still recreates groups at the stable version."""
        rollout = self._store.get(ROLLOUTS, NAMESPACE, NAME)
        stable = self.stable(rollout) if rollout else None
        held = partition(self.live(NAME)) >= HOLD and set_partition(leaders) >= HOLD
        return bool(held and stable and self._restarts_with(stable["revision"]))

    def _restarts_with(self, revision: str) -> bool:
        """Whether the leader StatefulSet recreates groups at this revision under the hold."""
        leaders = self._store.get(STATEFUL_SETS, NAMESPACE, NAME) or {}
        current = (leaders.get("status") or {}).get("currentRevision", "")
        record = self._store.get(CONTROLLER_REVISIONS, NAMESPACE, current)
        return bool(record and self._kind.revision_of_record(record) == revision)

    def _pod_made(self, pod: dict[str, Any]) -> None:
        """The main promise: under the hold, whoever restarts a group, it comes back at the stable version."""
        if not (self._kind.owns(pod, NAME) and self._kind.leads(pod)):
            return
        revision = self._kind.revision(pod)
        rollout = self._store.get(ROLLOUTS, NAMESPACE, NAME)
        stable = self.stable(rollout) if rollout else None
        if not stable or stable["revision"] == revision or self.task()[1] == "Promote":
            return
        lws, leaders = self.live(NAME), self._store.get(STATEFUL_SETS, NAMESPACE, NAME)
        assert leaders is not None
        ordinal = self._kind.index(pod) - self._kind.first(lws)
        open_from = min(partition(lws), set_partition(leaders))
        closing = open_from < HOLD and self.task()[1] in ("RollBackPromotion", "RollBackSteps")
        in_step = not self._style.apart and ordinal >= open_from
        lately = self._resets.excuse(self._world.server.clock())
        assert self._loosened or closing or in_step or lately, (
            f"group {ordinal} comes up at {revision}, stable is {stable['revision']};"
            f" partition {partition(lws)}, {self.task()}"
        )

    def _stable_recorded(self, before: dict[str, Any], after: dict[str, Any]) -> None:
        """status.stable changes only when every group carries the new version and is ready; or, where another version
        waits or the Rollout leaves, when groups restart with it anyway.
        """
        was, now = self.stable(before), self.stable(after)
        if not was or not now or (was["workloadUID"], was["revision"]) == (now["workloadUID"], now["revision"]):
            return
        lws = self._store.get(self._kind.resource, NAMESPACE, NAME)
        if lws is None or was["workloadUID"] != now["workloadUID"] or not lws["spec"]["replicas"]:
            return
        if not self._exact:
            return
        replicas = int(lws["spec"]["replicas"])
        fresh = {g.ordinal for g in self.groups() if g.ready and g.revision == now["revision"] and g.ordinal < replicas}
        whole = fresh == set(range(replicas))
        leaving = "deletionTimestamp" in after["metadata"] or after["spec"].get("disabled")
        overtaken = leaving or now["revision"] != self.target()
        assert whole or (overtaken and self._restarts_with(now["revision"])), f"{now} is stable with {self.groups()}"
        self._loosened = False


def _content(obj: dict[str, Any]) -> dict[str, Any]:
    meta = {key: value for key, value in obj["metadata"].items() if key not in ("managedFields", "resourceVersion")}
    return {**obj, "metadata": meta}
