"""Draining: pods of a version that is being removed, for as long as an unpinned selector would send them requests.

For capacity, groups are gone when their leaders terminate. Their workers stay ready, and do not terminate, until the
leader object is gone, possibly ten minutes later. An EndpointSlice drops a pod when it terminates; an endpoint picker
may send requests to any ready pod.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta

from rollout_lws.objects.workloads import Pod
from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.reasons import Ending
from rollout_lws.rollout.routing.route_result import DONE, Routed
from rollout_lws.rollout.routing.versions import new_stays
from rollout_lws.rollout.state import ending_of
from rollout_lws.traffic import pinned_selectors
from rollout_lws.traffic.facts import RoutingFacts
from rollout_lws.traffic.pinned_selectors import Selector

#: A pod that still exists so many seconds after its grace period does not terminate by itself.
OVERDUE_SECONDS = 60


def watched(d: Draft) -> tuple[str, ...]:
    """LWSs whose pods to watch while traffic is routed or something is pinned, whatever the status says, and while a
    release exchanges groups, for which there is room when the last pod is gone: the one with the version that is being
    removed, and those for which a deleted Rollout left some pinned.
    """
    facts = d.o.routing
    shares = d.shifts or d.status.traffic is not None or (facts is not None and bool(_pinned(facts)))
    own = (_home(d),) if shares and d.o.stable is not None else ()
    return (*own, *d.o.marked.workloads)


def reached(d: Draft, facts: RoutingFacts) -> Routed:
    """Done if restoring this release's pins would reach no pod of the version that is being removed.

    ``needs_person`` if that waits for a pod that does not terminate by itself.
    """
    pinned = _pinned(facts)
    # Without pins there is no pod to wait for, and perhaps no other rule watches the pods of a deleted canary.
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
    """Names of the first three."""
    return ", ".join(pod.metadata.name for pod in pods[:3]) + (", ..." if len(pods) > 3 else "")


def waits_for(d: Draft, message: str, pods: Iterable[Pod]) -> Routed:
    """Not done, with ``message`` and the first of the ``pods`` that does not terminate by itself."""
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
    """True if a version is being removed: if one LWS runs both, promoted groups stay, and so do groups left as they
    are.
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
    """Name of the LWS that has, or had, the groups of the version that is being removed."""
    return d.new_name


def _leaving(d: Draft) -> tuple[Pod, ...]:
    if d.swapped and d.o.canary is not None:
        return (*d.o.canary.leaders, *d.o.canary.pods)
    if not d.capacity.one_workload:
        # Another LWS has that name by now, and the pods are its own.
        taken = any(each.kind == d.kind for each in d.o.remains)
        return () if taken else d.o.pods_left
    known = {pod.metadata.uid: pod for pod in (*d.stable.leaders, *d.stable.pods)}
    return tuple(pod for pod in known.values() if pod.revision == d.sub.new_revision)
