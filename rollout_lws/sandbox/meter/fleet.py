"""The actual state of pods and groups, independent of data planes: which pods can answer, and why groups ended."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from rollout_lws.objects.meta import selects
from rollout_lws.objects.released import RELEASED, labels_among
from rollout_lws.objects.resources import DEPLOYMENTS, LWS_PREFIX, LWS_REVISION, PODS, STATEFUL_SETS, Resource
from rollout_lws.sandbox.behaviours.base import Object, annotations_of, labels_of, running_and_ready, terminating
from rollout_lws.sandbox.store import Event, Store

#: Why a group ended. ``scaled down``: its workload has fewer replicas; ``surge dropped``: it was only ever a surge
#: replica; ``workload deleted``: its workload is deleted; ``renewed``: its controller updated it to the new version;
#: ``crashed``: a container ended on its own; ``deleted``: a client deleted one of its pods.
Cause: TypeAlias = Literal["scaled down", "surge dropped", "workload deleted", "renewed", "crashed", "deleted"]

_Group: TypeAlias = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Pod:
    """``lws`` is the name of its workload; for a pod without one its own, and ``group`` is empty. ``size`` is the size
    of its group.
    """

    uid: str
    namespace: str
    name: str
    lws: str
    group: str
    revision: str
    size: int
    ready: bool
    running: bool
    restarts: int
    terminating: bool

    @property
    def key(self) -> _Group:
        return self.namespace, self.lws, self.group


@dataclass(slots=True)
class _State:
    """One group: ``whole`` if all its pods run, ``unready_since`` the epoch second since which not all are ready.

    ``regular``: it has been one of its LWS's replicas, not only surge. ``marked`` is the uid of the pod with which its
    end began, and ``ended_by`` the cause.
    """

    pods: dict[str, Pod] = field(default_factory=dict)
    whole: bool = False
    regular: bool = False
    unready_since: float | None = None
    ended_by: Cause | None = None
    marked: str = ""


@dataclass(frozen=True, slots=True)
class Unfit:
    """Since when, and why, a pod does not answer."""

    since: float
    reason: str
    cause: Cause | None


class Fleet:
    """Tracks pods and LWSs; ``ours`` returns whether the controller under test deleted the pod with this uid.

    Without ``ours`` a leader that it deleted where LWS would have updated it anyway would count as ``renewed``.
    """

    def __init__(self, store: Store, ours: Callable[[str], bool]) -> None:
        self._store, self._ours = store, ours
        self._groups: dict[_Group, _State] = {}
        self._pods: dict[str, Pod] = {}
        self._gone: dict[str, Unfit] = {}
        self._unready: dict[str, float] = {}

    def pod(self, uid: str) -> Pod | None:
        """The pod with ``uid``, also after its deletion."""
        return self._pods.get(uid)

    def gone(self, uid: str) -> bool:
        return uid in self._gone

    def unfit(self, uid: str) -> Unfit | None:
        """Why a pod does not answer; None if it does."""
        if uid in self._gone:
            return self._gone[uid]
        pod = self._pods.get(uid)
        if pod is None:
            return Unfit(0.0, "there is no such pod", None)
        state = self._groups[pod.key]
        if not pod.ready:
            return Unfit(self._unready[uid], "the pod is not ready", self._cause_of(state))
        if state.unready_since is not None:
            return Unfit(state.unready_since, "its group is not ready", self._cause_of(state))
        return None

    def take(self, event: Event, now: float) -> list[tuple[Pod, Cause]]:
        """Process one change; returns the pods of a group that is no longer whole, each with the cause."""
        if event.resource in RELEASED:
            if is_released(event.resource, event.object):
                self._count(event.object)
            return []
        if event.resource != PODS:
            return []
        pod = _pod(event.object)
        state = self._groups.setdefault(pod.key, _State())
        before = state.pods.get(pod.name)
        crashed = before is not None and before.uid == pod.uid and _crashed(before, pod)
        self._remember(state, pod, event.type == "DELETED", now)
        if state.ended_by is None and (crashed or pod.terminating or event.type == "DELETED"):
            state.ended_by, state.marked = ("crashed" if crashed else self._cause(pod, state)), pod.uid
        return self._judge(state, [before or pod, *state.pods.values()], crashed, now)

    def _remember(self, state: _State, pod: Pod, deleted: bool, now: float) -> None:
        self._pods[pod.uid] = pod
        if not pod.ready:
            self._unready.setdefault(pod.uid, now)
        else:
            self._unready.pop(pod.uid, None)
        if not deleted:
            state.pods[pod.name] = pod
            state.regular = state.regular or self._is_regular(pod)
        elif state.pods.get(pod.name, pod).uid == pod.uid:
            state.pods.pop(pod.name, None)

    def _judge(self, state: _State, members: list[Pod], crashed: bool, now: float) -> list[tuple[Pod, Cause]]:
        complete = [each for each in state.pods.values() if each.running]
        size = max(pod.size for pod in members)
        whole = len(complete) >= size and len(complete) == len(state.pods)
        ready = whole and all(each.ready for each in complete)
        ended = state.whole and (crashed or not whole)
        state.whole = whole
        if ready:
            state.unready_since = None
            if not any(each.terminating for each in complete):
                state.ended_by, state.marked = None, ""
        elif state.unready_since is None:
            state.unready_since = now
        cause = self._cause_of(state) or "deleted"
        for pod in members:
            if pod.name not in state.pods or state.pods[pod.name].uid != pod.uid:
                self._gone.setdefault(pod.uid, Unfit(now, "the pod is gone", cause))
        return [(pod, cause) for pod in {each.uid: each for each in members}.values()] if ended else []

    def _cause_of(self, state: _State) -> Cause | None:
        return "deleted" if state.marked and self._ours(state.marked) else state.ended_by

    def _count(self, lws: Object) -> None:
        """Mark groups below spec.replicas as regular, not surge, from now on."""
        metadata = lws["metadata"]
        for (namespace, name, group), state in self._groups.items():
            if (namespace, name) == (metadata["namespace"], metadata["name"]) and group:
                state.regular = state.regular or not _is_beyond(group, lws)

    def _workload(self, pod: Pod) -> Object | None:
        found = ((kind, self._store.get(kind, pod.namespace, pod.lws)) for kind in RELEASED)
        return next((each for kind, each in found if each is not None and is_released(kind, each)), None)

    def _is_regular(self, pod: Pod) -> bool:
        lws = self._workload(pod) if pod.group else None
        return lws is None or not _is_beyond(pod.group, lws)

    def _cause(self, pod: Pod, state: _State) -> Cause:
        """Why a pod of a group is being deleted."""
        if not pod.group:
            return "deleted"
        lws = self._workload(pod)
        if lws is None or terminating(lws):
            return "workload deleted"
        if _is_beyond(pod.group, lws):
            return "scaled down" if state.regular else "surge dropped"
        deployed = self._store.get(DEPLOYMENTS, pod.namespace, pod.lws)
        if deployed is not None and not pod.group.isdigit():
            return "deleted" if labels_of(deployed).get(LWS_REVISION) == pod.revision else "renewed"
        leaders = self._store.get(STATEFUL_SETS, pod.namespace, pod.lws)
        if leaders is not None and _newest(leaders) != pod.revision:
            rolling: dict[str, Any] = leaders["spec"]["updateStrategy"].get("rollingUpdate") or {}
            if int(rolling.get("partition") or 0) <= int(pod.group) - _start(leaders):
                return "renewed"
        return "deleted"


def is_released(resource: Resource, obj: Object) -> bool:
    """Whether the object is a workload that a Rollout can release, and not one that such a workload has made."""
    return selects(RELEASED[resource].workloads, labels_of(obj))


def _is_beyond(group: str, workload: Object) -> bool:
    """Whether a group of this index is not among those that the workload is to have; of groups without numbers it is
    known only where there are to be none.
    """
    end = _end(workload)
    return int(group) >= end if group.isdigit() else end == 0


def _start(workload: Object) -> int:
    return int((workload["spec"].get("ordinals") or {}).get("start", 0))


def _end(workload: Object) -> int:
    """The index after that of the last group."""
    return _start(workload) + int(workload["spec"]["replicas"])


def _newest(leaders: Object) -> str:
    """The newest revision of the StatefulSet that makes a workload's leaders."""
    own = labels_of(leaders).get(LWS_REVISION)
    return str(own or (leaders.get("status") or {}).get("updateRevision") or "")


def _crashed(before: Pod, after: Pod) -> bool:
    """Whether a pod's containers ended without a deletion of the pod."""
    return not after.terminating and before.running and (not after.running or after.restarts > before.restarts)


def _pod(obj: Object) -> Pod:
    metadata, labels, status = obj["metadata"], labels_of(obj), obj.get("status") or {}
    names = labels_among(labels)
    containers = status.get("containerStatuses") or ()
    waiting = any("running" not in (container.get("state") or {"running": {}}) for container in containers)
    return Pod(
        uid=metadata["uid"],
        namespace=metadata["namespace"],
        name=metadata["name"],
        lws=names.workload_of(labels) if names is not None else metadata["name"],
        group=labels.get(names.index, "") if names is not None else "",
        revision=labels.get(names.revision, "") if names is not None else "",
        size=int(annotations_of(obj).get(f"{LWS_PREFIX}size", "1")),
        ready=running_and_ready(obj),
        running=status.get("phase") == "Running" and not waiting,
        restarts=sum(int(container.get("restartCount", 0)) for container in containers),
        terminating=terminating(obj),
    )
