"""A LeaderWorkerSet's status as LWS v0.10 writes it, quirks included, because clients have to handle them.

A pass changes one condition; a condition that turns False keeps its old reason and message; a new generation rewrites
the True condition with a new time. Since 1.0 there is a condition Degraded besides: True while a group has used up its
restarts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any, NamedTuple

from rollout_lws.objects.resources import LWS_NAME, LWS_WORKER_INDEX
from rollout_lws.sandbox.admission.metadata import timestamp
from rollout_lws.sandbox.behaviours.base import Object
from rollout_lws.sandbox.behaviours.lws.objects import since_1_0
from rollout_lws.sandbox.behaviours.lws.partition import GroupState

_AVAILABLE = {"type": "Available", "reason": "AllGroupsReady", "message": "All replicas are ready"}
_PROGRESSING = {"type": "Progressing", "reason": "GroupsProgressing", "message": "Replicas are progressing"}
#: What is told when nothing goes on but for groups that have used up their restarts.
_STOPPED = (
    {"type": "Available", "status": "False", "message": "Not all replicas are ready"},
    {"type": "Progressing", "status": "False", "message": "Automatic recovery is stopped for one or more replicas"},
    {"type": "UpdateInProgress", "status": "False", "message": "No rolling update is in progress"},
)
_EXCEEDED = "ReplicaRestartBudgetExceeded"
_DEGRADED = {
    "type": "Degraded",
    "reason": _EXCEEDED,
    "message": "One or more replicas have exhausted their restart budget",
}
_AS_EXPECTED = {
    "type": "Degraded",
    "status": "False",
    "reason": "AsExpected",
    "message": "No replica has exhausted its restart budget",
}
_UPDATING = {"type": "UpdateInProgress", "reason": "GroupsUpdating", "message": "Rolling Upgrade is in progress"}


class Event(NamedTuple):
    """The content of an Event of the LWS controller."""

    reason: str
    note: str
    action: str


def status(
    lws: Object,
    present: Mapping[int, GroupState],
    spent: Set[int],
    leader_set_replicas: int,
    partition: int,
    now: float,
) -> dict[str, Any]:
    """The whole new status.

    ``present`` maps ordinals, surge included, to groups whose leader (and worker StatefulSet, if there should be one)
    exists; ``spent`` are those of groups that have used up their restarts; ``partition`` is the one in the LWS's spec.
    """
    before = lws.get("status") or {}
    wanted = _told(lws, present, spent, partition)
    return {
        "replicas": leader_set_replicas,
        "readyReplicas": sum(group.ready for group in present.values()),
        "updatedReplicas": sum(group.updated for group in present.values()),
        "hpaPodSelector": before.get("hpaPodSelector") or f"{LWS_NAME}={lws['metadata']['name']},{LWS_WORKER_INDEX}=0",
        "observedGeneration": lws["metadata"]["generation"],
        "conditions": _conditions(lws, before.get("conditions") or (), wanted, now),
    }


def status_of_counts(lws: Object, counts: Mapping[str, int], now: float) -> dict[str, Any]:
    """The whole new status of an LWS whose leaders a Deployment makes and counts."""
    before, wanted = lws.get("status") or {}, int(lws["spec"]["replicas"])
    told: tuple[Mapping[str, str], ...] = (_PROGRESSING,)
    if counts["updatedReplicas"] < counts["replicas"]:
        told = (_UPDATING, _PROGRESSING)
    elif set(counts.values()) == {wanted}:
        told = (_AVAILABLE,)
    return {
        **counts,
        "hpaPodSelector": before.get("hpaPodSelector") or f"{LWS_NAME}={lws['metadata']['name']},{LWS_WORKER_INDEX}=0",
        "observedGeneration": lws["metadata"]["generation"],
        "conditions": _conditions(lws, before.get("conditions") or (), (*told, _AS_EXPECTED), now),
    }


def news(
    lws: Object, present: Mapping[int, GroupState], spent: Set[int], partition: int, wanted: Mapping[str, Any]
) -> Event | None:
    """The event for a status that becomes ``wanted``; None unless a condition changes."""
    if wanted["conditions"] == ((lws.get("status") or {}).get("conditions") or []):
        return None
    now = _DEGRADED if spent else _true_now(lws, present, partition)[0]
    ready, replicas = wanted["readyReplicas"], lws["spec"]["replicas"]
    return Event(now["reason"], f"{now['message']}, with {ready} groups ready of total {replicas} groups", "Update")


def _true_now(lws: Object, present: Mapping[int, GroupState], partition: int) -> tuple[dict[str, str], ...]:
    replicas = int(lws["spec"]["replicas"])
    in_scope = [group for ordinal, group in present.items() if partition <= ordinal < replicas]
    if not all(group.updated for group in in_scope):
        return (_UPDATING, _PROGRESSING)
    ready = sum(group.ready for ordinal, group in present.items() if ordinal < replicas)
    if ready == replicas and sum(group.done for group in in_scope) == max(0, replicas - partition):
        return (_AVAILABLE,)
    return (_PROGRESSING,)


def _told(
    lws: Object, present: Mapping[int, GroupState], spent: Set[int], partition: int
) -> tuple[Mapping[str, str], ...]:
    """The conditions in their order; one without a status is True."""
    true_now = _true_now(lws, present, partition)
    if not since_1_0(lws):
        return true_now
    if not spent:
        return (*true_now, _AS_EXPECTED)
    if true_now != (_PROGRESSING,):
        return (*true_now, _DEGRADED)
    goes_on = any(not group.ready for ordinal, group in present.items() if ordinal not in spent)
    stopped = [{"reason": _EXCEEDED, **each} for each in _STOPPED]
    return (stopped[0], _PROGRESSING if goes_on else stopped[1], stopped[2], _DEGRADED)


def _conditions(
    lws: Object, before: Sequence[Mapping[str, Any]], told: Sequence[Mapping[str, str]], now: float
) -> list[dict[str, Any]]:
    generation = lws["metadata"]["generation"]
    for wanted in told:
        condition = {
            "status": "True",
            **wanted,
            "observedGeneration": generation,
            "lastTransitionTime": timestamp(now),
        }
        after = _with(before, condition)
        if after != list(before):
            return after
    return [dict(condition) for condition in before]


def _with(before: Sequence[Mapping[str, Any]], wanted: Mapping[str, Any]) -> list[dict[str, Any]]:
    after: list[dict[str, Any]] = []
    found = False
    for current in before:
        if current["type"] == wanted["type"]:
            found = True
            known = current["status"], current.get("observedGeneration")
            after.append(dict(current if known == (wanted["status"], wanted["observedGeneration"]) else wanted))
        elif (
            wanted["status"] == current["status"] == "True"
            and "Degraded" not in (current["type"], wanted["type"])
            and "Available" in (current["type"], wanted["type"])
        ):
            after.append({**current, "status": "False"})
        else:
            after.append(dict(current))
    return after if found else [*after, dict(wanted)]
