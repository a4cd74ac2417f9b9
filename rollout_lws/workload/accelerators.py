"""Accelerators that groups occupy. A gated, unscheduled or missing pod occupies none."""

from __future__ import annotations

from collections.abc import Iterable

from rollout_lws.objects.workloads import Pod
from rollout_lws.targets.version import Version
from rollout_lws.workload.facts import Facts
from rollout_lws.workload.groups import Group, worker_pods


def held(facts: Facts, group: Group, version: Version) -> dict[str, int]:
    """By resource name, for a group of this version of the LWS. Workers that are not watched are assumed to be in their
    leader's state.
    """
    of_leader, of_worker = version.accelerators_of_pods
    if not of_leader and not of_worker:
        return {}
    known = worker_pods(facts).get(group.index, ())
    workers = sum(pod.holds_its_node for pod in known)
    leaders = int(group.leader.holds_its_node)
    if leaders and not (facts.workload.leaders_first and group.workers is None):
        # The workers that do not exist yet are about to be created.
        workers += version.size - 1 - len(known)
    names = sorted({*of_leader, *of_worker})
    found = {name: leaders * of_leader.get(name, 0) + workers * of_worker.get(name, 0) for name in names}
    return {name: amount for name, amount in found.items() if amount}


def held_to_the_end(indexes: Iterable[str], pods: Iterable[Pod], version: Version, *, known: bool) -> int:
    """Accelerators of all kinds that groups of this version still occupy after their LWS is gone, from their remaining
    ``pods``; unless all pods are ``known``, workers are assumed to be in the state of their leader, present or past.
    """
    leader, worker = (sum(amounts.values()) for amounts in version.accelerators_of_pods)
    standing = list(pods)
    total = 0
    for index in indexes:
        members = [pod for pod in standing if pod.group_index == index]
        leaders = [pod for pod in members if pod.is_leader]
        workers = [pod for pod in members if not pod.is_leader]
        total += leader * sum(pod.holds_its_node for pod in leaders)
        total += worker * sum(pod.holds_its_node for pod in workers)
        if not known and all(pod.holds_its_node for pod in leaders):
            total += worker * max(0, version.size - 1 - len(workers))
    return total
