"""Where MultiKueue sends the groups of a LeaderWorkerSet, as their Workloads tell, and which of its pods run here."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass

from rollout_lws.objects.workloads import Pod
from rollout_lws.workload.facts import Facts
from rollout_lws.workload.revisions import target_revision


@dataclass(frozen=True, slots=True)
class Dispatch:
    """``clusters`` are those that MultiKueue has chosen, by name; () before it has chosen one. ``checks`` are the
    admission checks by which it does, as far as they are known.
    """

    clusters: tuple[str, ...]
    checks: tuple[str, ...]

    @property
    def where(self) -> str:
        """The clusters in words."""
        if not self.clusters:
            return "another cluster"
        return f"cluster{'s' if len(self.clusters) > 1 else ''} {', '.join(self.clusters)}"


def dispatch(facts: Facts, dispatching: Set[str]) -> Dispatch | None:
    """Where the groups go; None for an LWS that MultiKueue has nothing to do with, as far as its Workloads are known.
    ``dispatching`` are the admission checks that are MultiKueue's. A check says so also where no cluster is chosen:
    when one is lost, Kueue clears its name, and dispatches the group again.
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
    """Whether these pods are leaders of another version than the template asks for: Kueue takes such leaders for those
    of a rolling update that goes on, and removes their gates. Their workers stay gated.
    """
    return all(pod.is_leader and pod.revision != target_revision(facts) for pod in here)
