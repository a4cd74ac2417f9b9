"""Groups whose restarts are limited by ``maxGroupRestarts``: LWS counts the restarts of each group and version, ends a
group that has used them up, and keeps its pods as they ended until a user asks to have it made again.

As in the source of LWS's main branch of September 2026; no released version of it was run.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from rollout_lws.objects.released import RECOVER, RESTART_COUNTS, RESTARTS_EXHAUSTED
from rollout_lws.objects.resources import (
    LEADER_WORKER_SETS,
    LWS_GROUP_INDEX,
    LWS_NAME,
    LWS_PREFIX,
    LWS_REVISION,
    LWS_WORKER_INDEX,
    PODS,
    STATEFUL_SETS,
)
from rollout_lws.objects.writes import Delete, Patch, Write
from rollout_lws.sandbox.behaviours.base import (
    NOTHING,
    Change,
    Key,
    Object,
    Outcome,
    View,
    annotations_of,
    key_of,
    labels_of,
    terminating,
)
from rollout_lws.sandbox.behaviours.events import event

#: Keeps the pods of a group that has used its restarts up.
CLEANUP = LWS_PREFIX + "group-restart-budget-cleanup"


def exhausted(leader: Object) -> bool:
    return annotations_of(leader).get(RESTARTS_EXHAUSTED) == "true"


def keeps(pod: Object) -> bool:
    """Whether LWS's finalizer keeps the pod."""
    return CLEANUP in (pod["metadata"].get("finalizers") or ())


def spent(lws: Object, leader: Object) -> bool:
    """Whether the leader's group may not be made again once more."""
    limit = lws["spec"]["leaderWorkerTemplate"].get("maxGroupRestarts")
    return exhausted(leader) or (limit is not None and counts(lws).get(_key(leader), 0) >= int(limit))


def counted(lws: Object, leader: Object) -> tuple[Write, ...]:
    """Counts one restart of the leader's group where they are limited."""
    if lws["spec"]["leaderWorkerTemplate"].get("maxGroupRestarts") is None:
        return ()
    known = counts(lws)
    return (_recorded(lws, {**known, _key(leader): known.get(_key(leader), 0) + 1}, "one restart more"),)


def ended(lws: Object, leader: Object, workers: Iterable[Object], now: float) -> tuple[Write, ...]:
    """Ends a group whose restarts are used up; ``workers`` are those of its pods that do not terminate yet."""
    writes: list[Write] = []
    if not (exhausted(leader) and keeps(leader)):
        marks: dict[str, str | None] = {RESTARTS_EXHAUSTED: "true"}
        if not exhausted(leader):
            marks[RECOVER] = None  # it has to be asked for after the end
        finalizers = [*(leader["metadata"].get("finalizers") or ()), CLEANUP]
        metadata = {"annotations": marks, "finalizers": finalizers}
        writes.append(Patch(PODS, *key_of(leader), {"metadata": metadata}, "its restarts are used up"))
    for pod in workers:
        if not keeps(pod):
            finalizers = [*(pod["metadata"].get("finalizers") or ()), CLEANUP]
            writes.append(Patch(PODS, *key_of(pod), {"metadata": {"finalizers": finalizers}}, "kept to be looked at"))
    uid = leader["metadata"]["uid"]
    writes.append(Delete(PODS, *key_of(leader), uid, "its restarts are used up", propagation="Foreground"))
    index = labels_of(leader).get(LWS_GROUP_INDEX, "")
    note = f"Restart budget exhausted; terminated group {index} and stopped automatic recovery"
    writes.append(
        event(
            LEADER_WORKER_SETS,
            lws,
            now,
            "ReplicaRestartBudgetExceeded",
            note,
            reporter="leaderworkerset",
            action="Delete",
            warning=True,
        )
    )
    return tuple(writes)


def counts(lws: Object) -> dict[str, int]:
    found: dict[str, int] = json.loads(annotations_of(lws).get(RESTART_COUNTS) or "{}")
    return found


def outdated(lws: Object, revision: str) -> tuple[Write, ...]:
    """Forgets restarts of other versions than ``revision``, and of groups that were scaled away."""
    known, replicas = counts(lws), int(lws["spec"]["replicas"])
    kept = {key: count for key, count in known.items() if _is_of(key, revision, replicas)}
    return (_recorded(lws, kept, "restarts of groups that are gone"),) if kept != known else ()


def _is_of(key: str, revision: str, replicas: int) -> bool:
    version, _, index = key.rpartition("/")
    return version == revision and int(index) < replicas


def _key(leader: Object) -> str:
    labels = labels_of(leader)
    return f"{labels.get(LWS_REVISION, '')}/{labels.get(LWS_GROUP_INDEX, '')}"


def _recorded(lws: Object, known: Mapping[str, int], reason: str) -> Patch:
    text = json.dumps(known, separators=(",", ":"), sort_keys=True) if known else None
    version = lws["metadata"].get("resourceVersion")
    return Patch(
        LEADER_WORKER_SETS, *key_of(lws), {"metadata": {"annotations": {RESTART_COUNTS: text}}}, reason, version
    )


class KeptPods:
    """Lets the pods of ended groups go: when a user asks for it, when their group is scaled away or gets another
    version, or when their LWS goes.
    """

    name = "leaderworkerset-kept-pods"

    def __init__(self) -> None:
        #: LWSs that have such pods; others are not searched for them.
        self._keeping: set[Key] = set()

    def wakes(self, change: Change, view: View) -> Iterable[Key]:
        if change.resource == PODS:
            if change.deleted or not keeps(change.object):
                return ()
            key = key_of(change.object)
            self._keeping.add((key[0], labels_of(change.object).get(LWS_NAME, "")))
            return (key,)
        if change.resource not in (LEADER_WORKER_SETS, STATEFUL_SETS):
            return ()
        namespace, name = key_of(change.object)
        if (namespace, name) not in self._keeping:
            return ()
        return [key_of(pod) for pod in view.select(PODS, namespace, {LWS_NAME: name}) if keeps(pod)]

    def decide(self, key: Key, view: View, now: float) -> Outcome:  # noqa: ARG002 (it does not depend on time)
        pod = view.get(PODS, *key)
        if pod is None or not keeps(pod):
            return NOTHING
        leads = labels_of(pod).get(LWS_WORKER_INDEX) == "0"
        lws = view.get(LEADER_WORKER_SETS, key[0], labels_of(pod).get(LWS_NAME, ""))
        if lws is None or terminating(lws):
            return Outcome(_released(_group(view, pod) if leads else (pod,)))
        if not (leads and exhausted(pod)):
            return NOTHING
        if _leaves(view, lws, pod):
            return Outcome(_released(_group(view, pod)))
        if terminating(pod) and annotations_of(pod).get(RECOVER) == "true":
            known = counts(lws)
            kept = {each: count for each, count in known.items() if each != _key(pod)}
            cleared = (_recorded(lws, kept, "the group is made again"),) if kept != known else ()
            return Outcome((*cleared, *_released(_group(view, pod))))
        return NOTHING


def _leaves(view: View, lws: Object, leader: Object) -> bool:
    """Whether the group was scaled away, or its place gets another version now."""
    leaders = view.get(STATEFUL_SETS, *key_of(lws))
    if leaders is None:
        return False
    index = int(labels_of(leader)[LWS_GROUP_INDEX])
    if index >= int(leaders["spec"]["replicas"]):
        return True
    rolling = (leaders["spec"].get("updateStrategy") or {}).get("rollingUpdate") or {}
    another = labels_of(leaders).get(LWS_REVISION) != labels_of(leader).get(LWS_REVISION)
    return another and index >= int(rolling.get("partition", 0))


def _group(view: View, leader: Object) -> list[Object]:
    """The pods of the leader's group, the leader as the last."""
    labels = labels_of(leader)
    same = {key: labels.get(key, "") for key in (LWS_NAME, LWS_GROUP_INDEX, LWS_REVISION)}
    pods = view.select(PODS, leader["metadata"]["namespace"], same)
    return sorted(pods, key=lambda pod: labels_of(pod).get(LWS_WORKER_INDEX) == "0")


def _released(pods: Iterable[Object]) -> tuple[Write, ...]:
    return tuple(_release(pod) for pod in pods if keeps(pod))


def _release(pod: Object) -> Patch:
    finalizers = [each for each in pod["metadata"]["finalizers"] if each != CLEANUP]
    metadata = {"finalizers": finalizers, "annotations": {RESTARTS_EXHAUSTED: None, RECOVER: None}}
    return Patch(PODS, *key_of(pod), {"metadata": metadata}, "the group may go")
