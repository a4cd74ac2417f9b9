"""Where figures come from, and where pods are asked: the leaders of both versions, pods of groups that leave, and
endpoint pickers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any, TypeVar, assert_never

from rollout_lws.analysis.criterion import Criterion
from rollout_lws.analysis.idling import Idle
from rollout_lws.api import Analysis, FigureSource, PodMetrics
from rollout_lws.api.gate_rules import prometheus
from rollout_lws.objects.scaling import whole_number
from rollout_lws.objects.workloads import Pod
from rollout_lws.rollout.decision import Endpoint, Stored
from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.history import stable_version
from rollout_lws.rollout.state import Promoting
from rollout_lws.targets.version import Version
from rollout_lws.traffic.names import Names
from rollout_lws.workload.facts import Facts
from rollout_lws.workload.groups import Group, groups
from rollout_lws.workload.revisions import lws_revision, recorded_version, target_revision

#: Names of ports that are for metrics, and for requests, in the order in which they are looked for.
_METRICS = ("metrics", "http-metrics")
_REQUESTS = ("http",)


_Figures = TypeVar("_Figures", Criterion, Idle)


def from_source(source: Analysis, asks: _Figures) -> _Figures | Stored:
    """What is asked of figures, of those that ``spec.strategy.analysis`` says."""
    match source.from_:
        case FigureSource.PODS:
            return asks
        case FigureSource.PROMETHEUS:
            return Stored(asks, prometheus(source))
        case unknown:
            assert_never(unknown)


def metrics_of_new(d: Draft) -> tuple[Endpoint, ...]:
    """Of the new version's metrics."""
    asked = d.o.rollout.spec.strategy.source.pods
    return _endpoints(_new_groups(d), metrics_port(d.version.leader_template, asked.port), asked.path)


def _new_groups(d: Draft) -> tuple[Group, ...]:
    """In a promotion also those that the stable LWS has by then."""
    if d.capacity.one_workload or d.capacity.swaps or d.o.stable is None or not isinstance(d.state, Promoting):
        return d.new_groups
    return (*d.new_groups, *(each for each in groups(d.stable) if each.revision == d.sub.new_revision))


def metrics_of_stable(d: Draft) -> tuple[Endpoint, ...]:
    """Of the stable version's metrics."""
    asked = d.o.rollout.spec.strategy.source.pods
    return _endpoints(_stable_groups(d), _port(stable_version(d), asked, leader=True), asked.path)


def requests_to_new(d: Draft, port: str | None, path: str) -> tuple[Endpoint, ...]:
    """Of requests to the new version, at a container port by name or number."""
    return _endpoints(d.new_groups, requests_port(d.version.leader_template, port), path)


def requests_to_stable(d: Draft, port: str | None, path: str) -> tuple[Endpoint, ...]:
    """Of requests to the stable version, at a container port by name or number."""
    version = stable_version(d)
    found = _declared(version.leader_template, port, _REQUESTS) if version is not None else 0
    return _endpoints(_stable_groups(d), found, path)


def pickers_of_new(d: Draft, since: datetime) -> tuple[Endpoint, ...]:
    """Pods of the endpoint picker of the new version's pool, whose figures count from ``since`` on."""
    return _pickers(d, lambda names: names.canary_pool, since)


def pickers_of_stable(d: Draft, since: datetime) -> tuple[Endpoint, ...]:
    """The same of the stable version's pool."""
    return _pickers(d, lambda names: names.stable_pool, since)


def _pickers(d: Draft, pool: Callable[[Names], str | None], since: datetime) -> tuple[Endpoint, ...]:
    """Known by their names: one that comes again under its name begins to count anew. None, if one of them serves both
    pools: its figures are of both versions.
    """
    facts = d.o.routing
    if facts is None:
        return ()
    either = (facts.pickers.get(each or "", {}) for each in (facts.names.stable_pool, facts.names.canary_pool))
    if set.intersection(*map(set, either)):
        return ()
    known = facts.pickers.get(pool(facts.names) or "", {})
    return tuple(Endpoint(name, name, address, 0, "", since) for name, address in sorted(known.items()))


def pickers_are_known(d: Draft) -> bool:
    """Whether the ready pods of both pools' endpoint pickers are listed: after a restart, for example, they are not."""
    facts = d.o.routing
    return facts is None or facts.pickers.keys() >= {*filter(None, (facts.names.stable_pool, facts.names.canary_pool))}


def _stable_groups(d: Draft) -> Iterable[Group]:
    return (each for each in groups(d.stable) if each.revision == d.stable_revision)


def metrics_of(d: Draft, facts: Facts, pods: Iterable[Pod]) -> tuple[Endpoint, ...]:
    """Those of pods of one LWS, at any revision and ready or not."""
    asked = d.o.rollout.spec.strategy.source.pods
    every = tuple(pods)
    versions = {revision: _version(d, facts, revision) for revision in {pod.revision for pod in every}}
    ports = {pod.metadata.name: _port(versions[pod.revision], asked, leader=pod.is_leader) for pod in every}
    return tuple(
        Endpoint(pod.metadata.uid, pod.metadata.name, pod.status.pod_ip, ports[pod.metadata.name], asked.path)
        for pod in sorted(every, key=lambda pod: pod.metadata.name)
    )


def _version(d: Draft, facts: Facts, revision: str) -> Version | None:
    record = lws_revision(facts, revision)
    if record is not None:
        return recorded_version(record)
    if facts is d.o.stable and revision == d.stable_revision:
        return stable_version(d)
    return facts.workload.version if revision == target_revision(facts) else None


def _port(version: Version | None, asked: PodMetrics, *, leader: bool) -> int:
    if version is None:
        return 0
    template = version.leader_template if leader else dict(version.templates)["worker"]
    return metrics_port(template, asked.port)


def metrics_port(template: dict[str, Any], asked: str | None) -> int:
    """The number of the container port that is asked for by name or number, else of the one that is named for metrics,
    else of the first; 0 if no container declares it.
    """
    return _declared(template, asked, _METRICS)


def requests_port(template: dict[str, Any], asked: str | None) -> int:
    """The same of the container port for requests."""
    return _declared(template, asked, _REQUESTS)


def _endpoints(found: Iterable[Group], port: int, path: str) -> tuple[Endpoint, ...]:
    """Of the leaders of groups that are ready as a whole: the others get no requests, or should not."""
    ready = ((group.leader, group.ready_since) for group in found if group.ready_since is not None)
    return tuple(
        Endpoint(pod.metadata.uid, pod.metadata.name, pod.status.pod_ip, port, path, since)
        for pod, since in sorted(ready, key=lambda each: each[0].metadata.name)
    )


def _declared(template: dict[str, Any], asked: str | None, names: Iterable[str]) -> int:
    containers = (template.get("spec") or {}).get("containers") or ()
    ports = [port for container in containers for port in container.get("ports") or ()]
    declared = [int(port["containerPort"]) for port in ports]
    named = {port["name"]: int(port["containerPort"]) for port in ports if port.get("name")}
    if asked is not None:
        number = whole_number(asked)
        return named.get(asked, 0) if number is None else number if number in declared else 0
    for name in names:
        if name in named:
            return named[name]
    return declared[0] if declared else 0
