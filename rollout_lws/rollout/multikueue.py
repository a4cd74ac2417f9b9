"""LeaderWorkerSets that MultiKueue dispatches to another cluster: recognised, and left alone.

In the cluster that manages them no pod ever runs, so nothing a release waits for would come; MultiKueue copies an LWS
once, and deletes the copy with all its groups when the number of groups changes. In a worker cluster the copy is not
the user's: it is gone with the next dispatch, and whatever was released with it.
"""

from __future__ import annotations

from rollout_lws.objects.kueue import MULTIKUEUE, ORIGIN
from rollout_lws.objects.resources import LEADER_WORKER_SETS
from rollout_lws.rollout.diagnosis import needs_workloads
from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.reasons import Reason
from rollout_lws.rollout.refusal import Place, Refusal
from rollout_lws.workload.queueing import SETTLES_IN


def copied_from_another_cluster(d: Draft) -> Refusal | None:
    """Whether the LWS is MultiKueue's copy of one in another cluster."""
    origin = d.o.stable.lws.metadata.labels.get(ORIGIN) if d.o.stable else None
    if origin is None:
        return None
    return Refusal(
        Reason.MULTIKUEUE,
        f"LeaderWorkerSet {d.stable.lws.metadata.name} is a copy that MultiKueue {origin} has made of one in another"
        " cluster, and deletes and makes anew as that one changes: change the version there, and delete this Rollout",
        Place("metadata.labels", LEADER_WORKER_SETS.kind, d.stable.lws.metadata.name),
    )


def dispatched_to_another_cluster(d: Draft) -> Refusal | None:
    """Whether MultiKueue sends, or is about to send, the groups of the LWS to another cluster."""
    if d.o.stable is None:
        return None
    name = d.stable.lws.metadata.name
    for each in d.stable.queued:
        checks = [check.name for check in each.checks if check.name in d.o.queues.dispatching]
        if not (each.status.cluster_name or each.status.nominated_cluster_names or checks):
            continue
        where = f"cluster {each.status.cluster_name}" if each.status.cluster_name else "another cluster"
        return Refusal(
            Reason.MULTIKUEUE,
            f"LeaderWorkerSet {name} is dispatched to {where} by MultiKueue ({MULTIKUEUE}, Workload"
            f" {each.metadata.name}): its pods never run here, so a release could not be watched, and any change of"
            " its groups would restart all of them. Queue it where no admission check of MultiKueue applies, or delete"
            " this Rollout",
            Place("metadata.labels", LEADER_WORKER_SETS.kind, name),
        )
    return None


def waits_for_workloads(d: Draft) -> str:
    """Why an LWS that Kueue queues is not touched yet, "" when it may be: only its Workloads tell whether MultiKueue
    dispatches it.
    """
    if not needs_workloads(d):
        return ""
    lws = d.stable.lws
    if not d.o.queues.known:
        return f"Kueue queues LeaderWorkerSet {lws.metadata.name}: its Workloads are being listed"
    created = lws.metadata.creation_timestamp
    told = any(each.checks or each.is_true("Admitted") for each in d.stable.queued)
    if told or created is None or d.wake_in(created, SETTLES_IN.total_seconds()):
        return ""
    # The admission checks of a Workload are noted a moment after it was made.
    return f"Kueue queues LeaderWorkerSet {lws.metadata.name}, which is new: its Workloads are awaited"
