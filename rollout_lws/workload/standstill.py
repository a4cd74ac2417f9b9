"""What a person has to do for a workload that rolls by its own strategy to go on."""

from __future__ import annotations

from datetime import datetime

from rollout_lws.targets.target import ON_DELETE
from rollout_lws.workload.facts import Facts
from rollout_lws.workload.groups import groups
from rollout_lws.workload.revisions import target_revision


def to_delete(facts: Facts, now: datetime) -> str:
    """Which pods to delete, as the end of a message about the roll; "" where it goes on by itself.

    With a strategy of type OnDelete they are those of an earlier version. A controller that replaces one pod after the
    other waits for a pod that is not ready before it replaces any, that pod itself included, though it is of an earlier
    version.
    """
    target = target_revision(facts)
    known = sorted(groups(facts), key=lambda group: group.ordinal)
    if facts.workload.strategy.type == ON_DELETE:
        old = next((each for each in known if each.revision != target), None)
        told = f"delete pod {old.leader.metadata.name} and others of an old one" if old is not None else ""
        return told and f"; updateStrategy is {ON_DELETE}: {told}"
    stuck = next((each for each in known if not (each.ready(now) or each.terminating)), None)
    if not facts.workload.ordered or stuck is None or stuck.revision == target:
        return ""
    name = stuck.leader.metadata.name
    return (
        f"; its controller waits for pod {name}, of an earlier version, to be ready: if it never will be, delete pod"
        f" {name}, and it comes back at the new one"
    )
