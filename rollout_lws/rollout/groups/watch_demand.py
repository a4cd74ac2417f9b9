"""Which kinds have to be looked at to say why groups do not come: none, until a pod is missing, or Kueue admits groups
of a release.
"""

from __future__ import annotations

from rollout_lws.api import Phase
from rollout_lws.objects.resources import CORE_EVENTS, KUEUE_CHECKS, KUEUE_WORKLOADS, Resource
from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.reasons import Reason
from rollout_lws.workload.facts import Facts, Listing
from rollout_lws.workload.queueing import is_gated, queue_of


def explaining_kinds(d: Draft) -> tuple[Resource, ...]:
    """Events while a StatefulSet of a release lacks pods; Kueue's Workloads as ``needs_workloads`` says, and its checks
    while one of those names any.
    """
    sides = [facts for facts in (d.o.stable, d.o.canary) if facts is not None]
    kinds: list[Resource] = []
    if d.status.phase == Phase.PROGRESSING and any(_lacks_pods(facts) for facts in sides):
        kinds.append(CORE_EVENTS)
    if needs_workloads(d):
        # The newer version stays wanted where it is not served: that is how it is known.
        kinds += dict.fromkeys((KUEUE_WORKLOADS, d.o.queues.served))
        if names_checks(d):
            kinds.append(KUEUE_CHECKS)
    return tuple(kinds)


def _lacks_pods(facts: Facts) -> bool:
    if facts.lws.metadata.terminating or len(facts.leaders) < facts.lws.spec.replicas:
        return not facts.lws.metadata.terminating
    return any(each.status.replicas < each.spec.replicas for each in facts.worker_sets if not each.metadata.terminating)


def needs_workloads(d: Draft) -> bool:
    """Whether Kueue's Workloads decide something: it holds a pod, was found to send the groups elsewhere, or queues an
    LWS that is being released, or that a release or an adoption is about to touch.
    """
    gated = any(_gated_by_kueue(facts) for facts in (d.o.stable, d.o.canary) if facts is not None)
    return was_dispatched(d) or gated or (d.o.stable is not None and bool(queue_of(d.stable.lws)) and _is_touched(d))


def names_checks(d: Draft) -> bool:
    """Whether a Workload of the release's own LWSs names an admission check. Only then the checks are listed, so only
    then they may be waited for: those of other Workloads of the namespace are no matter of this release.
    """
    return any(each.checks for facts in (d.o.stable, d.o.canary) if facts is not None for each in facts.queued)


def workloads_pending(d: Draft) -> bool:
    """Whether the list of Kueue's Workloads, or of the admission checks that they name, is on its way."""
    queues = d.o.queues
    return queues.listing is Listing.PENDING or (queues.checks_pending and names_checks(d))


def was_dispatched(d: Draft) -> bool:
    """Whether the LWS was found to run in another cluster when that was judged last."""
    return d.said(Reason.MULTIKUEUE)


def _is_touched(d: Draft) -> bool:
    """Whether a release is on, or one, or an adoption, would begin if nothing stood in its way."""
    if d.status.phase == Phase.PROGRESSING:
        return True
    stable = d.status.stable
    if d.o.rollout.spec.disabled or d.o.rollout.metadata.deletion_timestamp is not None:
        return False
    adopted = stable is not None and stable.workload_uid == d.stable.lws.metadata.uid
    return not adopted or stable is None or stable.template_hash != d.version.template_hash


def _gated_by_kueue(facts: Facts) -> bool:
    """Whether Kueue keeps a pod of the LWS from being scheduled."""
    return any(is_gated(pod) for pod in (*facts.leaders, *facts.pods))
