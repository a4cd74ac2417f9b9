"""Refuses LeaderWorkerSets that MultiKueue dispatches to another cluster.

The manager cluster knows of each group whether it has quota, and where, but not whether its pods are ready, nor its
version. MultiKueue copies an LWS once: the copy follows neither template nor partition, and a new version reaches all
groups at once when the copy is recreated. In a worker cluster the copy is not the user's: the next dispatch deletes it,
with everything released on it.
"""

from __future__ import annotations

from rollout_lws.objects.kueue import MULTIKUEUE, ORIGIN
from rollout_lws.objects.workloads import Pod
from rollout_lws.rollout.backoff import Wait
from rollout_lws.rollout.decision import FieldRef, Refusal
from rollout_lws.rollout.draft import Draft, Persist
from rollout_lws.rollout.groups.watch_demand import needs_workloads, was_dispatched, workloads_pending
from rollout_lws.rollout.reasons import EventReason, Reason
from rollout_lws.workload.facts import Facts, Listing
from rollout_lws.workload.queueing import SETTLES_IN, dispatch, let_go, local_pods

#: The page on running an LWS in several clusters.
_PAGE = "docs/multikueue.md"


def copied_from_another_cluster(d: Draft) -> Refusal | None:
    """Refuses an LWS that is MultiKueue's copy of one in another cluster."""
    origin = d.o.stable.workload.metadata.labels.get(ORIGIN) if d.o.stable else None
    if origin is None:
        return None
    return Refusal(
        Reason.MULTIKUEUE,
        f"{d.stable.called} is a copy that MultiKueue ({origin}) has made: what is changed"
        " here is lost, with all groups, when it is recreated. Have it released in a queue without MultiKueue"
        f" ({_PAGE}), and delete this Rollout",
        FieldRef("metadata.labels", d.kind, d.stable.name),
    )


def dispatched_to_another_cluster(d: Draft) -> Refusal | None:
    """Refuses an LWS whose groups MultiKueue dispatches, or is about to dispatch, to another cluster."""
    found = dispatch(d.stable, d.o.queues.dispatching) if d.o.stable is not None else None
    if found is None:
        return _dispatched_before(d)
    name = d.stable.name
    plural = "s" if len(found.checks) > 1 else ""
    by = f"admission check{plural} {', '.join(found.checks)}" if found.checks else MULTIKUEUE
    here = local_pods(d.stable)
    message = (
        f". {len(here)} of its pods run{'s' if len(here) == 1 else ''} here: {_why_here(d.stable, here)}"
        if here
        else ""
    )
    return Refusal(
        Reason.MULTIKUEUE,
        f"{d.called} is {'' if found.clusters else 'about to be '}dispatched to {found.where} by MultiKueue"
        f" ({by}): its groups run there, from a copy that follows neither template nor partition. A version applied"
        " here comes to all groups at once when the copy is recreated, which a single lost group can cause. To release"
        f" in steps, have the {d.kind} in each cluster, in a queue without that check: {_PAGE}{message}",
        FieldRef("metadata.labels", d.kind, name),
    )


def _dispatched_before(d: Draft) -> Refusal | None:
    """Refuses an LWS that MultiKueue dispatched, as far as is known, while its Workloads cannot be listed."""
    if d.o.stable is None or d.stable.listing is not Listing.REFUSED or not was_dispatched(d):
        return None
    return Refusal(
        Reason.MULTIKUEUE,
        f"{d.called} was dispatched to another cluster by MultiKueue when Kueue's Workloads could be listed. They"
        f" cannot be listed now, so it is left alone: have the controller list {d.o.queues.served}"
        " (docs/missing-permissions.md)",
        FieldRef("metadata.labels", d.kind, d.stable.name),
    )


def _why_here(facts: Facts, here: tuple[Pod, ...]) -> str:
    if let_go(facts, here):
        return (
            "Kueue lets leaders of the old version go while a version waits; give this cluster no node that fits, or"
            " restore the template"
        )
    return "they began before MultiKueue dispatched it, or while another version waited"


def report_local_pods(d: Draft) -> Draft:
    """Reports once as an Event that pods of a dispatched LWS run in this cluster, and records their number."""
    facts = d.o.stable
    if d.persist is Persist.NOT or (facts is not None and facts.listing is Listing.PENDING and needs_workloads(d)):
        return d
    here: tuple[Pod, ...] = ()
    if facts is not None and dispatch(facts, d.o.queues.dispatching) is not None:
        here = local_pods(facts)
        if here and not d.status.local_pods:
            d = d.event(
                EventReason.PODS_ON_MANAGER_CLUSTER,
                f"pods of {facts.called} run here, too, which MultiKueue dispatches to another cluster:"
                f" {_why_here(facts, here)}",
                warning=True,
                about=d.kind,
            )
    if len(here) != (d.status.local_pods or 0):
        d = d.set(local_pods=len(here) or None)
    return d


def waits_for_workloads(d: Draft) -> Wait | None:
    """Why an LWS that Kueue queues must not be touched yet; None if it may. Only its Workloads tell whether MultiKueue
    dispatches it.
    """
    if not needs_workloads(d):
        return None
    lws = d.stable.workload
    if workloads_pending(d):
        return Wait(f"Kueue queues {d.called}: its Workloads are being listed")
    created = lws.metadata.creation_timestamp
    told = any(each.checks or each.is_true("Admitted") for each in d.stable.queued)
    # Kueue adds the admission checks to a Workload a moment after its creation.
    until = None if told or created is None else d.yet_to_come(created, SETTLES_IN.total_seconds())
    if until is None:
        return None
    return Wait(f"Kueue queues {d.called}, which is new: its Workloads are awaited", until)
