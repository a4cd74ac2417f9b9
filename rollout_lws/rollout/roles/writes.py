"""Writes of the roles of workloads that serve in turn: their label, and the number of groups of the one without
requests.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rollout_lws.objects.writes import Patch
from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.routing.route_result import DONE, Routed
from rollout_lws.rollout.routing.sides import PARKED
from rollout_lws.workload.facts import Facts


def patch(facts: Facts, body: Mapping[str, object], reason: str) -> Patch:
    """A write to a workload as it was judged."""
    workload, meta = facts.workload, facts.workload.metadata
    return Patch(workload.resource, meta.namespace, meta.name, body, reason, meta.resource_version)


def label(d: Draft, workloads: Iterable[Facts], role: str) -> tuple[Draft, Routed]:
    """Labels workloads with their role; done when they have it."""
    other = [each for each in workloads if each.workload.metadata.labels.get(d.keys.side) != role]
    body = {"metadata": {"labels": {d.keys.side: role}}}
    d = d.write(patch(each, body, f"it is the {role} side") for each in other)
    return d, DONE if not other else Routed(False)


def scaled_to_zero(d: Draft, standing: Iterable[Facts], told: str) -> tuple[Draft, Routed]:
    """Scales workloads to 0, and labels them as parked."""
    for facts in standing:
        metadata: dict[str, object] = {"labels": {d.keys.side: PARKED}}
        if d.keys.replicas in facts.workload.metadata.annotations:
            metadata["annotations"] = {d.keys.replicas: None}
        d = d.write((patch(facts, {"metadata": metadata, "spec": {"replicas": 0}}, told),))
    return d, Routed(False, told)


def forget_number(d: Draft) -> Draft:
    """Removes the note of the number that the active side had before a release took groups, once it has that again."""
    workload = d.stable.workload
    if d.keys.replicas not in workload.metadata.annotations or workload.replicas < d.replicas:
        return d
    body = {"metadata": {"annotations": {d.keys.replicas: None}}}
    return d.write((patch(d.stable, body, "it has all of its groups again"),))
