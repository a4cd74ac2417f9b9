"""Which figures the gates of the current step need, of which pods."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rollout_lws.api import PodMetrics
from rollout_lws.objects.scaling import whole_number
from rollout_lws.rollout.decision import Endpoint, Measurement
from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.gates.analysis import planned, question, records
from rollout_lws.rollout.history import stable_version
from rollout_lws.rollout.state import InSteps
from rollout_lws.targets.version import Version
from rollout_lws.workload.groups import Group, groups

#: Names of ports that are for metrics, in the order in which they are looked for.
_PORT_NAMES = ("metrics", "http-metrics")


def wanted(d: Draft) -> tuple[Measurement, ...]:
    """Those of gates without a result, while a release is in a step with traffic, paused or not."""
    step = d.status.step
    if not isinstance(d.state, InSteps) or step is None or step.routed_at is None or not d.status.gates:
        return ()
    if d.o.stable is None or d.o.rollout.spec.strategy.style is None:
        return ()
    plan = {gate.name: gate for gate in planned(d)}
    running = [each for each in records(d) if each.result is None and each in d.status.gates]
    if not running:
        return ()
    asked = d.o.rollout.spec.strategy.source.pods
    new = _endpoints(d.new_groups, d.version, asked)
    stable = _endpoints(
        (each for each in groups(d.stable) if each.revision == d.stable_revision), stable_version(d), asked
    )
    questions = (question(d, plan[each.name], each) for each in running)
    return tuple(Measurement(each, new, stable if each.criterion.compared else ()) for each in questions)


def _endpoints(found: Iterable[Group], version: Version | None, asked: PodMetrics) -> tuple[Endpoint, ...]:
    """Of the leaders of groups that are ready as a whole: the others get no requests, or should not."""
    port = metrics_port(version.leader_template, asked.port) if version is not None else 0
    pods = (group.leader for group in found if group.ready_since is not None)
    return tuple(
        Endpoint(pod.metadata.uid, pod.metadata.name, pod.status.pod_ip, port, asked.path)
        for pod in sorted(pods, key=lambda pod: pod.metadata.name)
    )


def metrics_port(template: dict[str, Any], asked: str | None) -> int:
    """The number of the container port that is asked for by name or number, else of the one that is named for metrics,
    else of the first; 0 if no container declares it.
    """
    containers = (template.get("spec") or {}).get("containers") or ()
    ports = [port for container in containers for port in container.get("ports") or ()]
    declared = [int(port["containerPort"]) for port in ports]
    named = {port["name"]: int(port["containerPort"]) for port in ports if port.get("name")}
    if asked is not None:
        number = whole_number(asked)
        return named.get(asked, 0) if number is None else number if number in declared else 0
    for name in _PORT_NAMES:
        if name in named:
            return named[name]
    return declared[0] if declared else 0
