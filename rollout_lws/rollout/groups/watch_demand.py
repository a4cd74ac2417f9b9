"""Kinds to watch to explain why groups do not come: none, unless a pod is missing or Kueue admits groups."""

from __future__ import annotations

from rollout_lws.api import Phase
from rollout_lws.objects.resources import CORE_EVENTS, KUEUE_CHECKS, KUEUE_WORKLOADS, Resource
from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.reasons import Reason
from rollout_lws.workload.facts import Facts, Listing
from rollout_lws.workload.queueing import is_gated, queue_of


def explaining_kinds(d: Draft) -> tuple[Resource, ...]:
    """Events while a StatefulSet of a release lacks pods; Kueue's Workloads as ``needs_workloads`` says, and its
    AdmissionChecks if one of those names any.
    """
    sides = d.o.workloads
    kinds: list[Resource] = []
    if d.status.phase == Phase.PROGRESSING and any(_lacks_pods(facts) for facts in sides):
        kinds.append(CORE_EVENTS)
    if needs_workloads(d):
        # The newer version stays wanted even if it is not served: that is how the controller notices it.
        kinds += dict.fromkeys((KUEUE_WORKLOADS, d.o.queues.served))
        if names_checks(d):
            kinds.append(KUEUE_CHECKS)
    return tuple(kinds)


def _lacks_pods(facts: Facts) -> bool:
    if facts.workload.metadata.terminating or len(facts.leaders) < facts.workload.replicas:
        return not facts.workload.metadata.terminating
    return any(each.status.replicas < each.spec.replicas for each in facts.worker_sets if not each.metadata.terminating)


def needs_workloads(d: Draft) -> bool:
    """True if a decision depends on Kueue's Workloads: Kueue gates a pod, was found to dispatch the groups, or queues
    an LWS that is being released, or that a release or an adoption is about to touch.
    """
    gated = any(map(_gated_by_kueue, d.o.workloads))
    return (
        was_dispatched(d)
        or gated
        or (d.o.stable is not None and any(queue_of(each.workload) for each in d.o.workloads) and _is_touched(d))
    )


def names_checks(d: Draft) -> bool:
    """True if a Workload of the release's own LWSs names an AdmissionCheck. Only then are the checks listed and
    awaited: other Workloads of the namespace do not concern this release.
    """
    return any(each.checks for facts in d.o.workloads for each in facts.queued)


def workloads_pending(d: Draft) -> bool:
    """True while the list of Kueue's Workloads, or of the AdmissionChecks that they name, has not arrived."""
    queues = d.o.queues
    return queues.listing is Listing.PENDING or (queues.checks_pending and names_checks(d))


def was_dispatched(d: Draft) -> bool:
    """True if the last verdict was that the LWS runs in another cluster."""
    return d.said(Reason.MULTIKUEUE)


def _is_touched(d: Draft) -> bool:
    """True if a release is in progress, or a release or an adoption would start without obstacles."""
    if d.status.phase == Phase.PROGRESSING:
        return True
    if d.o.rollout.spec.disabled or d.o.rollout.metadata.deletion_timestamp is not None:
        return False
    return not d.adopted or d.pending


def _gated_by_kueue(facts: Facts) -> bool:
    """True if Kueue's scheduling gate is on a pod of the LWS."""
    return any(is_gated(pod) for pod in (*facts.leaders, *facts.pods))
