"""What Kueue says of one group: whether it waits for quota, for how long that can last, and what it waits for.

Kueue admits a LeaderWorkerSet group by group, each through a Workload of its own. The first state of the table that
applies is told, with the words of Kueue's own condition, which name the resource that is missing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import msgspec

from rollout_lws.objects.kueue import GROUP_INDEX, QUEUE_NAME, Workload
from rollout_lws.objects.workloads import LeaderWorkerSet
from rollout_lws.workload.facts import Facts
from rollout_lws.workload.groups import Group

#: Reasons of QuotaReserved that no waiting mends.
_BLOCKED = frozenset({"ExceedsMaxQuota", "NoMatchingFlavor", "Misconfigured", "Inadmissible"})
#: Reasons of QuotaReserved that say who holds it back, or that it fits nowhere as a whole.
_HELD = frozenset({"Suspended", "AdmissionGated", "OnHold", "TopologyPlacementFailed"})
#: Kueue makes the Workload of a new group, and says what it waits for, within so much time where it has the means to.
SETTLES_IN = timedelta(seconds=5)


def queue_of(lws: LeaderWorkerSet) -> str:
    """Name of the LocalQueue by which Kueue admits the groups of an LWS, "" where none is asked for."""
    named = lws.metadata.labels.get(QUEUE_NAME)
    if named is not None:
        return named
    template = bytes(lws.spec.leader_worker_template)
    # Most templates do not name a queue, and reading one as a whole takes long.
    if QUEUE_NAME.encode() not in template:
        return ""
    labels = _template_labels(msgspec.json.decode(template))
    return next((each[QUEUE_NAME] for each in labels if QUEUE_NAME in each), "")


def _template_labels(template: dict[str, Any]) -> Iterator[dict[str, str]]:
    for role in ("leaderTemplate", "workerTemplate"):
        yield ((template.get(role) or {}).get("metadata") or {}).get("labels") or {}


@dataclass(frozen=True, slots=True)
class Queueing:
    """``reason`` is one of the words of the class below it; ``message`` goes on from "group 3 ", ``is_wait`` is False
    where somebody has to act before the group can come.
    """

    reason: str
    message: str
    is_wait: bool = True


def workload_of(facts: Facts, group: Group) -> Workload | None:
    """The Workload of a group: by the index that Kueue notes on it, else by its owner reference to the leader."""
    for each in facts.queued:
        index = each.metadata.annotations.get(GROUP_INDEX)
        if index == group.index if index is not None else _is_owned(each, group.uid):
            return each
    return None


def _is_owned(workload: Workload, uid: str) -> bool:
    return any(owner.uid == uid for owner in workload.metadata.owner_references)


def queueing(workload: Workload | None) -> Queueing | None:
    """What the group of ``workload`` waits for in Kueue; None when that has let it in."""
    if workload is None:
        return Queueing(
            "WaitingForWorkload",
            "has no Workload of Kueue yet; if that lasts, is Kueue running? kubectl get pods -n kueue-system",
        )
    name = f"Workload {workload.metadata.name}"
    return _ended(workload, name) or _evicted(workload, name) or _waiting(workload, name)


def _ended(workload: Workload, name: str) -> Queueing | None:
    if workload.is_true("Finished"):
        return Queueing("GroupLost", f"was given up by Kueue: {name} is Finished{_why(workload, 'Finished')}", False)
    evicted = workload.condition("Evicted")
    if workload.spec.active is False or (evicted is not None and evicted.reason.startswith("Deactivated")):
        message = f"is deactivated in Kueue{_why(workload, 'Evicted')}: set spec.active of {name} to true"
        return Queueing("Deactivated", message, False)
    return None


def _evicted(workload: Workload, name: str) -> Queueing | None:
    if workload.is_true("Evicted"):
        again = workload.status.requeue_state.requeue_at if workload.status.requeue_state else None
        when = f"; it is queued again at {again:%H:%M:%S} UTC" if again else ""
        return Queueing("EvictedByKueue", f"was evicted by Kueue{_why(workload, 'Evicted')} ({name}){when}")
    rejected = next((each for each in workload.checks if each.state == "Rejected"), None)
    if rejected is not None:
        why = f": {rejected.message}" if rejected.message else ""
        return Queueing("Rejected", f"is rejected by Kueue's admission check {rejected.name} ({name}){why}", False)
    return None


def _waiting(workload: Workload, name: str) -> Queueing | None:
    reserved = workload.condition("QuotaReserved")
    if reserved is None or reserved.status != "True":
        reason = reserved.reason if reserved is not None else ""
        why = f"{name}{_why(workload, 'QuotaReserved')}"
        if reason in _BLOCKED:
            return Queueing("Blocked", f"cannot be admitted by Kueue as it is, and waiting will not mend that: {why}")
        if reason in _HELD:
            return Queueing("Held", f"is held back by Kueue: {why}")
        return Queueing("WaitingForQuota", f"waits in Kueue: {why}")
    if not workload.is_true("Admitted"):
        open_checks = [each for each in workload.checks if each.state != "Ready"]
        named = ", ".join(f"{each.name} is {each.state}" for each in open_checks) or "none is named"
        said = next((f": {each.message}" for each in open_checks if each.message), "")
        message = f"has its quota and waits for admission checks of Kueue ({name}): {named}{said}"
        return Queueing("WaitingForAdmissionChecks", message)
    return None


def _why(workload: Workload, kind: str) -> str:
    """Reason and words of a condition, as they follow on what they explain."""
    found = workload.condition(kind)
    if found is None:
        return ""
    words = found.message.rstrip(". ")
    return f", {found.reason}" + (f": {words}" if words else "") if found.reason else f": {words}" if words else ""
