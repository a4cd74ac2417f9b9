"""The promises of a canary in a second LeaderWorkerSet, judged while they can still be broken.

A judge is told of each write of the controller just before it is carried out, when the world still shows what the
write will do to it, and of every change of the store. It counts groups itself, from leader pods and worker
StatefulSets, and knows nothing of how the controller comes to its decisions.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from rollout_lws.api import scaling
from rollout_lws.errors import ApiError
from rollout_lws.objects.resources import (
    CONTROLLER_REVISIONS,
    LEADER_WORKER_SETS,
    LWS_GROUP_INDEX,
    LWS_NAME,
    LWS_REVISION,
    LWS_WORKER_INDEX,
    PODS,
    STATEFUL_SETS,
)
from rollout_lws.objects.writes import Create, Delete, Patch, Write
from rollout_lws.sandbox.store import Event
from tests.scenarios.routed import emptied
from tests.scenarios.world import KEYS, NAME, NAMESPACE, ROLLOUTS, World

CANARY = f"{NAME}-canary"
#: A partition that no group is at or above.
HOLD = 1_000_000
#: More writes than this in one second, or other than of status between two acts of a person, are a quarrel with itself.
MOST_WRITES_A_SECOND, MOST_WRITES_AN_ACT = 100, 120


@dataclass(frozen=True, slots=True)
class Standing:
    """One group as it stands."""

    ordinal: int
    revision: str
    ready: bool


class Judge:
    """``unavailable`` is the user's maxUnavailable. With ``exact`` the controller sees each change at once, so that it
    answers for what it does to groups that have just failed.
    """

    def __init__(self, world: World, unavailable: int | str, *, exact: bool = True) -> None:
        self._world, self._store = world, world.server.store
        self._unavailable, self._exact = unavailable, exact
        self._user_acts = False
        self._loosened = False
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

    # The controller's writes

    def judge(self, write: Write) -> None:
        """AssertionError when this write, done now, breaks a promise."""
        if self._refused(write):
            return
        self._count(write)
        if write.resource == LEADER_WORKER_SETS:
            if isinstance(write, Create):
                self._canary_made(write)
            elif write.name == NAME:
                assert isinstance(write, Patch), f"the user's LWS is {write.reason}"
                self._stable_written(write)
            else:
                self._canary_written(write)
        elif write.resource == PODS and isinstance(write, Delete):
            self._pod_deleted(write)

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
        return version not in (None, meta["resourceVersion"]) or uid not in (None, meta["uid"])

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

    def _stable_written(self, write: Patch) -> None:
        lws, spec = self._live(NAME), write.body.get("spec") or {}
        assert set(spec) <= {"rolloutStrategy"}, f"only the strategy is ever borrowed: {write}"
        assert set(write.body.get("metadata") or {}) <= {"annotations", "resourceVersion"}, write
        changes = (spec.get("rolloutStrategy") or {}).get("rollingUpdateConfiguration") or {}
        before, after = _partition(lws), int(changes.get("partition", _partition(lws)))
        if after >= min(before, HOLD):
            return
        task = self._task()
        by_hand = (lws["metadata"].get("annotations") or {}).get(KEYS.release_hold) == "true"
        if task == ("Success", "Promote") and not by_hand:
            assert before >= HOLD, f"a second window is opened inside the first: {write}"
            self._window(lws, after, write)
            return
        rollout = self._rollout()
        leaving = bool(rollout["spec"].get("disabled")) or "deletionTimestamp" in rollout["metadata"]
        assert leaving or by_hand, f"the hold is opened at {task}: {write}"
        if leaving and not by_hand:
            stable = self._stable(rollout)
            waits = [group for group in self.groups() if stable and group.revision != self._target()]
            assert not waits, f"leaving starts what was held: {write} with {self.groups()}"

    def _window(self, lws: dict[str, Any], partition: int, write: Patch) -> None:
        if not self._exact:
            return
        rollout = self._rollout()
        assert not rollout["spec"]["strategy"].get("paused"), f"paused, and yet: {write}"
        asked = rollout["status"].get("lastAction") or {}
        if (asked.get("type"), asked.get("outcome")) == ("Abort", "Done"):
            since = datetime.fromisoformat(rollout["status"]["finalising"]["since"])
            assert datetime.fromisoformat(asked["finishedAt"]) <= since, f"aborted, and yet: {write}"
        replicas = int(lws["spec"]["replicas"])
        standing = {group.ordinal: group for group in self.groups() if group.ordinal < replicas}
        target = self._target()
        chosen = {o for o, group in standing.items() if o >= partition and group.revision != target}
        down = {o for o in range(replicas) if o not in standing or not standing[o].ready}
        canary = sum(group.ready for group in self.groups(CANARY))
        users = scaling.scaled(self._unavailable, replicas, up=False)
        ready = replicas - len(down)
        most = replicas if emptied(self._world) and canary >= ready else max(1, min(users, canary, replicas - 1))
        told = f"{write.reason}: {sorted(standing.values(), key=lambda g: g.ordinal)}, canary {canary}, at most {most}"
        # What is down already costs nothing; one more than the allowance may go only where R - maxUnavailable still
        # serve, canary included.
        taken = chosen - down
        enough = canary + replicas - len(down | chosen) >= replicas - max(1, users)
        assert not taken or len(down | chosen) <= most or (len(taken) == 1 and enough), told
        assert canary + replicas - len(down | chosen) >= 1, f"nobody would serve after {told}"

    def _canary_made(self, write: Create) -> None:
        meta, spec = write.body["metadata"], write.body["spec"]
        assert meta["name"] == CANARY, meta["name"]
        self._grown(int(spec["replicas"]), write)

    def _grown(self, replicas: int, write: Write) -> None:
        """Invariant 5: extra groups never exceed what the plan announced; paused, there are no more of them."""
        rollout = self._rollout()
        if not self._exact:
            return
        total = int(self._live(NAME)["spec"]["replicas"])
        steps = rollout["spec"]["strategy"]["canary"]["steps"]
        planned = max(min(total, scaling.scaled(step["replicas"], total)) for step in steps)
        assert replicas <= max(1, planned), f"{replicas} groups, {planned} planned: {write}"
        assert not rollout["spec"]["strategy"].get("paused"), f"paused, and yet: {write}"

    def _canary_written(self, write: Write) -> None:
        canary = self._live(CANARY)
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
        labels = pod["metadata"]["labels"]
        assert write.uid == pod["metadata"]["uid"], f"without a uid: {write}"
        assert (labels[LWS_NAME], labels[LWS_WORKER_INDEX]) == (NAME, "0"), f"no leader of the stable LWS: {write}"
        ending, task = self._task()
        lws, ordinal = self._live(NAME), int(labels[LWS_GROUP_INDEX])
        if task == "Promote":
            assert not self._exact or _partition(lws) <= ordinal, f"outside of the window: {write}"
            assert labels[LWS_REVISION] != self._target(), f"it is new already: {write}"
        else:
            stable = self._stable(self._rollout())
            assert task == "GoBack" and stable, f"a group is restarted at {(ending, task)}: {write}"
            assert labels[LWS_REVISION] != stable["revision"], f"it is stable's already: {write}"
        if self._exact:
            self._serves_without({ordinal}, canary=True, write=write)

    def _serves_without(self, ordinals: set[int] | dict[int, str], *, canary: bool, write: Write) -> None:
        """Invariant 2: the last version that serves is never deleted, shrunk or restarted."""
        lws = self._store.get(LEADER_WORKER_SETS, NAMESPACE, NAME)
        if lws is None or "deletionTimestamp" in lws["metadata"] or not lws["spec"]["replicas"]:
            return
        stable = self.groups()
        serving = sum(group.ready for group in stable) + sum(group.ready for group in self.groups(CANARY))
        left = sum(group.ready for group in stable if group.ordinal not in ordinals)
        left += sum(group.ready for group in self.groups(CANARY)) if canary else 0
        assert left or not serving, f"the last that serves would go: {write}"

    # Every change

    def _see(self, event: Event) -> None:
        try:
            self._check(event)
        except AssertionError as error:
            self._world.errors.append(error)

    def _check(self, event: Event) -> None:
        if event.resource == LEADER_WORKER_SETS:
            named = [obj["metadata"]["name"] for obj in self._store.list(LEADER_WORKER_SETS, NAMESPACE)]
            assert set(named) <= {NAME, CANARY}, named
            if event.object["metadata"]["name"] == NAME:
                self._lws_changed(event)
        elif event.resource == STATEFUL_SETS and event.object["metadata"]["name"] == NAME:
            self._loosened = self._loosened and not self._tight(event.object)
        elif event.resource == PODS and event.type == "ADDED":
            self._pod_made(event.object)
        elif event.resource == ROLLOUTS and event.type == "MODIFIED" and event.previous is not None:
            self._stable_recorded(event.previous, event.object)

    def _lws_changed(self, event: Event) -> None:
        live = event.object
        by_hand = self._user_acts or (live["metadata"].get("annotations") or {}).get(KEYS.release_hold) == "true"
        if event.type != "MODIFIED" or not live["spec"]["replicas"] or (by_hand and _partition(live) < HOLD):
            self._loosened = True

    def _tight(self, leaders: dict[str, Any]) -> bool:
        """Whether the hold has reached the StatefulSet, which still recreates groups at the stable version."""
        rollout = self._store.get(ROLLOUTS, NAMESPACE, NAME)
        stable = self._stable(rollout) if rollout else None
        current = (leaders.get("status") or {}).get("currentRevision", "")
        record = self._store.get(CONTROLLER_REVISIONS, NAMESPACE, current)
        held = _partition(self._live(NAME)) >= HOLD and _set_partition(leaders) >= HOLD
        return bool(held and stable and record and record["metadata"]["labels"][LWS_REVISION] == stable["revision"])

    def _pod_made(self, pod: dict[str, Any]) -> None:
        """The main promise: under the hold, whoever restarts a group, it comes back at the stable version."""
        labels = pod["metadata"].get("labels") or {}
        if (labels.get(LWS_NAME), labels.get(LWS_WORKER_INDEX)) != (NAME, "0"):
            return
        rollout = self._store.get(ROLLOUTS, NAMESPACE, NAME)
        stable = self._stable(rollout) if rollout else None
        if not stable or stable["revision"] == labels[LWS_REVISION] or self._task()[1] == "Promote":
            return
        lws, leaders = self._live(NAME), self._store.get(STATEFUL_SETS, NAMESPACE, NAME)
        assert leaders is not None
        closing = _set_partition(leaders) < HOLD and self._task()[1] == "GoBack"
        assert self._loosened or closing, (
            f"group {labels[LWS_GROUP_INDEX]} comes up at {labels[LWS_REVISION]}, stable is {stable['revision']};"
            f" partition {_partition(lws)}, {self._task()}"
        )

    def _stable_recorded(self, before: dict[str, Any], after: dict[str, Any]) -> None:
        """status.stable changes only when every group carries the new version and is ready."""
        was, now = self._stable(before), self._stable(after)
        if not was or not now or (was["workloadUID"], was["revision"]) == (now["workloadUID"], now["revision"]):
            return
        lws = self._store.get(LEADER_WORKER_SETS, NAMESPACE, NAME)
        if lws is None or was["workloadUID"] != now["workloadUID"] or not lws["spec"]["replicas"]:
            return
        if not self._exact:
            return
        replicas = int(lws["spec"]["replicas"])
        fresh = {g.ordinal for g in self.groups() if g.ready and g.revision == now["revision"] and g.ordinal < replicas}
        assert fresh == set(range(replicas)), f"{now} became stable with {self.groups()}"
        self._loosened = False

    # What is there

    def groups(self, name: str = NAME) -> list[Standing]:
        """Groups whose leader exists; one whose leader terminates is not ready."""
        found = []
        for pod in self._store.labelled(PODS, NAMESPACE, LWS_NAME, name):
            meta = pod["metadata"]
            if meta["labels"].get(LWS_WORKER_INDEX) != "0":
                continue
            conditions = {each["type"]: each["status"] for each in (pod.get("status") or {}).get("conditions") or ()}
            ready = conditions.get("Ready") == "True" and "deletionTimestamp" not in meta
            size = int(meta["annotations"]["leaderworkerset.sigs.k8s.io/size"])
            ready = ready and (size == 1 or self._workers(meta) == size - 1)
            found.append(Standing(int(meta["labels"][LWS_GROUP_INDEX]), meta["labels"][LWS_REVISION], ready))
        return found

    def _workers(self, leader: dict[str, Any]) -> int:
        workers = self._store.get(STATEFUL_SETS, NAMESPACE, leader["name"])
        if workers is None or workers["metadata"]["ownerReferences"][0]["uid"] != leader["uid"]:
            return 0
        gone = "deletionTimestamp" in workers["metadata"]
        return 0 if gone else int((workers.get("status") or {}).get("availableReplicas", 0))

    def _live(self, name: str) -> dict[str, Any]:
        return self._world.server.get(LEADER_WORKER_SETS, NAMESPACE, name)

    def _rollout(self) -> dict[str, Any]:
        return self._world.server.get(ROLLOUTS, NAMESPACE, NAME)

    def _stable(self, rollout: dict[str, Any]) -> dict[str, Any] | None:
        lws = self._store.get(LEADER_WORKER_SETS, NAMESPACE, NAME)
        stable = (rollout.get("status") or {}).get("stable")
        return stable if lws and stable and stable["workloadUID"] == lws["metadata"]["uid"] else None

    def _task(self) -> tuple[str, str]:
        try:
            ending = (self._rollout().get("status") or {}).get("finalising") or {}
        except ApiError:
            ending = {}
        return str(ending.get("reason", "")), str(ending.get("task", ""))

    def _target(self) -> str:
        """The revision that LWS gives the template as it stands."""
        leaders = self._store.get(STATEFUL_SETS, NAMESPACE, NAME)
        return str(leaders["metadata"]["labels"][LWS_REVISION]) if leaders else ""


def _partition(lws: dict[str, Any]) -> int:
    return int(lws["spec"]["rolloutStrategy"]["rollingUpdateConfiguration"]["partition"])


def _set_partition(leaders: dict[str, Any]) -> int:
    rolling = (leaders["spec"].get("updateStrategy") or {}).get("rollingUpdate") or {}
    return int(rolling.get("partition", 0))


def _content(obj: dict[str, Any]) -> dict[str, Any]:
    meta = {key: value for key, value in obj["metadata"].items() if key not in ("managedFields", "resourceVersion")}
    return {**obj, "metadata": meta}
