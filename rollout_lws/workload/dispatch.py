"""Where MultiKueue dispatches the groups of a LeaderWorkerSet, read from their Workloads, and which pods run here."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass

from rollout_lws.objects.workloads import Pod
from rollout_lws.workload.facts import Facts
from rollout_lws.workload.revisions import target_revision


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
