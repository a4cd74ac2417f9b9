"""Kueue's state of a group that is not ready: waiting and for what, starting up, or failed; and where MultiKueue
dispatches the groups, by their Workloads, and which pods run here.

Kueue admits a LeaderWorkerSet group by group, each through its own Workload. The first state that applies is reported,
with the message of Kueue's own condition, which names the missing resource. A new group counts as starting up: Kueue
needs seconds to create its Workload, decide on it and remove the gates of its pods.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum

from rollout_lws.objects.kueue import GROUP_INDEX, MANAGED, PODS_READY_TIMEOUT, PREFIX, QUEUE_NAME, Workload
from rollout_lws.objects.meta import Condition
from rollout_lws.objects.workloads import Pod
from rollout_lws.targets.target import Target
from rollout_lws.workload.facts import Facts, Listing
from rollout_lws.workload.groups import Group, groups
from rollout_lws.workload.pod_words import pods_of
from rollout_lws.workload.revisions import target_revision

#: Reasons of QuotaReserved that waiting does not fix.
_BLOCKED = frozenset({"ExceedsMaxQuota", "NoMatchingFlavor", "Misconfigured"})
#: Reasons of QuotaReserved for a Workload that is held back, or that as a whole fits nowhere.
_HELD = frozenset({"Suspended", "AdmissionGated", "OnHold", "TopologyPlacementFailed"})
#: Parts of messages of QuotaReserved with the same meaning. By default Kueue gives all of these the reason Pending or
#: Inadmissible; no other message of Kueue is parsed.
_BLOCKED_WORDS = ("> maximum capacity", "doesn't exist")
_HELD_WORDS = ("is inactive", "is stopped")
#: Time within which a working Kueue creates a new group's Workload and reports what it waits for.
SETTLES_IN = timedelta(seconds=5)


def queue_of(workload: Target) -> str:
    """Name of the LocalQueue through which Kueue admits the groups of a workload, "" when it names none."""
    named = workload.metadata.labels.get(QUEUE_NAME)
    if named is not None:
        return named
    version = workload.version
    # Most templates do not name a queue, and decoding a whole template is slow.
    if QUEUE_NAME.encode() not in version.document:
        return ""
    labels = ((each.get("metadata") or {}).get("labels") or {} for _, each in version.templates)
    return next((each[QUEUE_NAME] for each in labels if QUEUE_NAME in each), "")


#: Kueue's own timeout (waitForPodsReady) by default, after which it evicts a group that is not ready.
TIMEOUT_SECONDS = 1800
#: Reason of a group that Kueue has evicted because it was not ready in time.
GIVEN_UP = "GivenUpByKueue"


class Kind(Enum):
    """What a state means to a release: it waits without a deadline, the group is starting up, or it has failed."""

    WAITS = "Waits"
    LOADS = "Loads"
    FAILED = "Failed"


@dataclass(frozen=True, slots=True)
class Queueing:
    """``reason`` is one word for the state, ``message`` a sentence that names the group."""

    kind: Kind
    reason: str
    message: str


def workload_of(facts: Facts, group: Group) -> Workload | None:
    """The Workload of a group: by Kueue's group index annotation, else by its owner reference to the leader."""
    for each in facts.queued:
        index = each.metadata.annotations.get(GROUP_INDEX)
        if index == group.index if index is not None else _is_owned(each, group.uid):
            return each
    return None


def _is_owned(workload: Workload, uid: str) -> bool:
    return any(owner.uid == uid for owner in workload.metadata.owner_references)


def is_gated(pod: Pod) -> bool:
    """Whether Kueue keeps the pod from being scheduled."""
    return any(gate.name.startswith(PREFIX) for gate in pod.spec.scheduling_gates)


def judged_at(facts: Facts, now: datetime) -> datetime | None:
    """When the next group stops counting as new, while Kueue gates a pod of the LWS; None when there is none."""
    if not any(is_gated(pod) for pod in (*facts.leaders, *facts.pods)):
        return None
    made = (each.metadata.creation_timestamp for each in facts.leaders)
    return min((each + SETTLES_IN for each in made if each is not None and each + SETTLES_IN > now), default=None)


def left_out(facts: Facts) -> tuple[Group, ...]:
    """Groups that Kueue has ungated without adding them to the pod group that it admits.

    While a version waits in the template, Kueue removes the gates of leaders of the old one, whatever the quota. It
    counts such a group as never ready, and evicts it after its own timeout.
    """
    if facts.listing is not Listing.DONE or not facts.queued or not queue_of(facts.workload):
        return ()
    return tuple(each for each in groups(facts) if not each.terminating and _is_let_go(each.leader))


def _is_let_go(leader: Pod) -> bool:
    return not is_gated(leader) and MANAGED not in leader.metadata.labels


def queueing(facts: Facts, group: Group, now: datetime, before: Mapping[str, int]) -> Queueing | None:
    """Kueue's state of a group that is not ready; None when its pods are ungated, or its Workload cannot be known.
    ``before``: how often Kueue had evicted the group before it got its revision, by the Workload's UID.
    """
    called = f"group {group.index} of {facts.name}"
    workload, gated = workload_of(facts, group), any(is_gated(pod) for pod in pods_of(facts, group))
    if workload is not None:
        ended = _ended(workload, called) if gated else None
        ended = ended or given_up(workload, called, before)
        if ended is not None:
            return ended
    made = group.leader.metadata.creation_timestamp
    is_new = made is not None and now < made + SETTLES_IN
    if not gated or (facts.listing in (Listing.UNAVAILABLE, Listing.REFUSED) and not is_new):
        return None
    if facts.listing is not Listing.DONE or (workload is None and is_new):
        return _on_its_way(called)
    if workload is None:
        message = f"{called} has no Workload of Kueue yet; if that lasts, is Kueue running?"
        return Queueing(Kind.WAITS, "WaitingForWorkload", f"{message} kubectl get pods -n kueue-system")
    return _evicted(workload, called) or _waiting(workload, called, is_new=is_new)


def _on_its_way(called: str) -> Queueing:
    return Queueing(Kind.LOADS, "NotReady", f"{called} is not ready: Kueue has not judged it yet")


def _ended(workload: Workload, called: str) -> Queueing | None:
    if workload.is_true("Finished"):
        why = f"{_name(workload)} is Finished{_why(workload, 'Finished')}"
        return Queueing(Kind.FAILED, "GroupLost", f"{called} was given up by Kueue: {why}")
    if workload.spec.active is False:
        message = f"{called} is deactivated in Kueue{_why(workload, 'Evicted')}"
        return Queueing(Kind.FAILED, "Deactivated", f"{message}: set spec.active of {_name(workload)} to true")
    return None


def given_up(workload: Workload, called: str, before: Mapping[str, int]) -> Queueing | None:
    """The state of a group that Kueue has evicted because it was not ready in time, more often than ``before`` by the
    Workload's UID; None otherwise. ``called``: the group's name in the message.
    """
    count = workload.evictions(PODS_READY_TIMEOUT) - before.get(workload.metadata.uid, 0)
    if count <= 0:
        return None
    times = f"{count} time{'s' if count > 1 else ''}"
    message = f"Kueue gave {called} up {times}: it was not ready within Kueue's own timeout (waitForPodsReady)"
    return Queueing(Kind.FAILED, GIVEN_UP, message)


def _evicted(workload: Workload, called: str) -> Queueing | None:
    name = _name(workload)
    if workload.is_true("Evicted"):
        again = workload.status.requeue_state.requeue_at if workload.status.requeue_state else None
        when = f"; it is queued again at {again:%H:%M:%S} UTC" if again else ""
        message = f"{called} was evicted by Kueue{_why(workload, 'Evicted')} ({name}){when}"
        return Queueing(Kind.WAITS, "EvictedByKueue", message)
    rejected = next((each for each in workload.checks if each.state == "Rejected"), None)
    if rejected is not None:
        why = f": {rejected.message}" if rejected.message else ""
        message = f"{called} is rejected by Kueue's admission check {rejected.name} ({name}){why}"
        return Queueing(Kind.FAILED, "Rejected", message)
    return None


def _waiting(workload: Workload, called: str, *, is_new: bool) -> Queueing:
    reserved = workload.condition("QuotaReserved")
    if reserved is None or reserved.status != "True":
        return _on_its_way(called) if reserved is None and is_new else _without_quota(workload, reserved, called)
    open_checks = [each for each in workload.checks if each.state != "Ready"]
    if workload.is_true("Admitted") or (is_new and not open_checks):
        message = f"{called} is not ready: it has its quota, and Kueue is about to let its pods go"
        return Queueing(Kind.LOADS, "NotReady", message)
    named = ", ".join(f"{each.name} is {each.state}" for each in open_checks) or "none is named"
    said = next((f": {each.message}" for each in open_checks if each.message), "")
    message = f"{called} has its quota and waits for admission checks of Kueue ({_name(workload)}): {named}{said}"
    return Queueing(Kind.WAITS, "WaitingForAdmissionChecks", message)


def _without_quota(workload: Workload, reserved: Condition | None, called: str) -> Queueing:
    reason, said = (reserved.reason, reserved.message) if reserved is not None else ("", "")
    why = f"{_name(workload)}{_why(workload, 'QuotaReserved')}"
    if reason in _BLOCKED or any(words in said for words in _BLOCKED_WORDS):
        message = f"{called} cannot be admitted by Kueue as it is, and waiting will not fix that: {why}"
        return Queueing(Kind.WAITS, "Blocked", message)
    if reason in _HELD or any(words in said for words in _HELD_WORDS):
        return Queueing(Kind.WAITS, "Held", f"{called} is held back by Kueue: {why}")
    return Queueing(Kind.WAITS, "WaitingForQuota", f"{called} waits in Kueue: {why}")


def _name(workload: Workload) -> str:
    return f"Workload {workload.metadata.name}"


def _why(workload: Workload, kind: str) -> str:
    """Reason and message of a condition, as a suffix for a message."""
    found = workload.condition(kind)
    if found is None:
        return ""
    words = found.message.rstrip(". ")
    return f", {found.reason}" + (f": {words}" if words else "") if found.reason else f": {words}" if words else ""


@dataclass(frozen=True, slots=True)
class Dispatch:
    """``clusters`` are the names of those that MultiKueue has chosen; () before it has chosen one. ``checks`` are its
    known admission checks.
    """

    clusters: tuple[str, ...]
    checks: tuple[str, ...]

    @property
    def where(self) -> str:
        """The clusters as text for messages."""
        if not self.clusters:
            return "another cluster"
        return f"cluster{'s' if len(self.clusters) > 1 else ''} {', '.join(self.clusters)}"


def dispatch(facts: Facts, dispatching: Set[str]) -> Dispatch | None:
    """Where the groups go; None for an LWS that MultiKueue does not manage, as far as its Workloads are known.
    ``dispatching`` are the names of MultiKueue's admission checks. A check counts even without a chosen cluster: when a
    cluster is lost, Kueue clears its name and dispatches the group again.
    """
    checks = {check.name for each in facts.queued for check in each.checks if check.name in dispatching}
    clusters = {each.status.cluster_name for each in facts.queued if each.status.cluster_name}
    if not (checks or clusters or any(each.status.nominated_cluster_names for each in facts.queued)):
        return None
    return Dispatch(tuple(sorted(clusters)), tuple(sorted(checks)))


def local_pods(facts: Facts) -> tuple[Pod, ...]:
    """Pods of the LWS that have a node of this cluster, by name."""
    known = {pod.metadata.name: pod for pod in (*facts.leaders, *facts.pods)}
    return tuple(pod for _, pod in sorted(known.items()) if pod.spec.node_name and not pod.metadata.terminating)


def let_go(facts: Facts, here: tuple[Pod, ...]) -> bool:
    """Whether all of these pods are leaders of a version other than the template's: Kueue treats them as part of an
    ongoing rolling update and removes their gates. Their workers stay gated.
    """
    return all(pod.is_leader and pod.revision != target_revision(facts) for pod in here)
