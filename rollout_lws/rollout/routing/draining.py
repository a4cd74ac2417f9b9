"""Pods of a version that leaves, for as long as a selector without pins would send them requests.

The groups of a version are gone for capacity when their leaders terminate. Workers are not: they stay ready, and do not
terminate, until the object of their leader is gone, be that ten minutes later. An EndpointSlice drops a pod when it
terminates; an endpoint picker may send requests to any pod that is ready.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta

from rollout_lws.objects.resources import LEADER_WORKER_SETS
from rollout_lws.objects.workloads import Pod
from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.reasons import Ending
from rollout_lws.rollout.routing.route_result import DONE, Routed
from rollout_lws.rollout.routing.versions import new_stays
from rollout_lws.rollout.state import ending_of
from rollout_lws.traffic import pinned_selectors
from rollout_lws.traffic.facts import RoutingFacts
from rollout_lws.traffic.pinned_selectors import Selector
from rollout_lws.workload.canary import canary_name

#: A pod that is still there so many seconds after its grace period is over will not end by itself.
OVERDUE_SECONDS = 60


def watched(d: Draft) -> tuple[str, ...]:
    """LWSs of which all pods are wanted while requests are shared, or something is pinned, whatever the status says of
    it: the one that has the version that leaves. Besides those of which a Rollout that is gone has left some pinned.
    """
    facts = d.o.routing
    shares = d.status.traffic is not None or (facts is not None and bool(_pinned(facts)))
    own = (_home(d),) if shares and d.o.stable is not None else ()
    return (*own, *d.o.marked.workloads)


def reached(d: Draft, facts: RoutingFacts) -> Routed:
    """Whether what this release has pinned may be given back: done when that would lead to no pod that leaves.

    ``needs_person`` when that waits for a pod that does not end by itself.
    """
    pinned = _pinned(facts)
    # Where nothing is pinned no pod is waited for, and nothing else may want the pods of a canary that is gone.
    if d.o.stable is None or not pinned or not leaves(d):
        return DONE
    unknown = d.o.unknown_pods.get(_home(d))
    if unknown is not None:
        return Routed(False, unknown or f"pods of {_home(d)} are being listed")
    pods = _leaving(d)
    for each in pinned:
        found = [pod for pod in pods if each.sends_to_unpinned(pod)]
        if found:
            message = f"{each.ref} stays pinned until pod {named(found)} of the version that leaves is gone"
            return waits_for(d, message, pods)
    return DONE


def named(pods: Sequence[Pod]) -> str:
    """The first few by name."""
    return ", ".join(pod.metadata.name for pod in pods[:3]) + (", ..." if len(pods) > 3 else "")


def waits_for(d: Draft, message: str, pods: Iterable[Pod]) -> Routed:
    """That ``message`` says what is waited for, with the first of the ``pods`` that does not end by itself."""
    ending = [(pod.metadata, ends) for pod in pods if (ends := pod.metadata.deletion_timestamp) is not None]
    patience = timedelta(seconds=OVERDUE_SECONDS)
    for meta, ends in ending:
        if ends + patience <= d.now:
            return Routed(
                False,
                f"{message}; pod {meta.name} should have ended at {ends:%H:%M:%S} UTC: if its node is lost, kubectl"
                f" delete pod {meta.name} -n {meta.namespace} --force --grace-period=0",
                needs_person=True,
            )
    return Routed(False, message, until=min((ends + patience for _, ends in ending), default=None))


def leaves(d: Draft) -> bool:
    """Whether a version leaves at all: where one LWS holds both, the groups of one that is promoted stay, and so do
    those that are left as they are.
    """
    if not d.capacity.one_workload:
        return True
    if new_stays(d):
        return False
    stable, stays = d.status.stable, ending_of(d.state) in (None, Ending.SUCCESS, Ending.ROLLED_OUT_NATIVELY)
    return not stays and stable is not None and stable.revision != d.sub.new_revision


def _pinned(facts: RoutingFacts) -> tuple[Selector, ...]:
    return tuple(each for each in (*pinned_selectors.of_stable(facts), *pinned_selectors.of_new(facts)) if each.given)


def _home(d: Draft) -> str:
    """The LWS that has, or had, the groups of the version that leaves."""
    lws = d.stable.lws
    return d.capacity.of_new(lws.metadata.name, canary_name(lws))


def _leaving(d: Draft) -> tuple[Pod, ...]:
    if not d.capacity.one_workload:
        # An LWS of that name is somebody else's by now, and so are its pods.
        taken = any(each.kind == LEADER_WORKER_SETS.kind for each in d.o.remains)
        return () if taken else d.o.pods_left
    known = {pod.metadata.uid: pod for pod in (*d.stable.leaders, *d.stable.pods)}
    return tuple(pod for pod in known.values() if pod.revision == d.sub.new_revision)
