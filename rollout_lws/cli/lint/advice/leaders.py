"""Whether a ready group can serve, and whether a terminating one finishes its requests.

Routers look at leaders only, so the leaders' readiness gates a release.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from rollout_lws.cli.lint.advice.releases import releases
from rollout_lws.cli.lint.file_snapshot import FileSnapshot, Shaped, workload
from rollout_lws.cli.lint.findings import Finding
from rollout_lws.cli.lint.paths import Path, value_at
from rollout_lws.forecast.cautions import leaders_first
from rollout_lws.targets.target import takers
from rollout_lws.targets.version import has_pre_stop
from rollout_lws.traffic import pools, services

#: Kubernetes' default terminationGracePeriodSeconds.
DEFAULT_GRACE_SECONDS = 30
_ASKING = ("httpGet", "grpc", "exec")


def advice(files: FileSnapshot) -> Iterator[Finding]:
    every = [*releases(files)]
    routed = {(each.kind, name) for each in every if each.routing for name in each.workloads}
    specs = [(each.kind, each.rollout.spec) for each in every]
    timed = {(kind, name) for kind, spec in specs if spec.strategy.min_ready_seconds for name in spec.workloads}
    renewed = {(each.kind, name) for each in every if each.routing and each.deletes_groups for name in each.workloads}
    for each in files.workloads:
        named = (each.manifest.resource, each.manifest.name)
        if files.rollouts_of(*named):
            yield from _readiness(each, timed=named in timed)
            yield from _leaders_first(files, each, routed=named in routed)
        yield from _grace(each)
        if named in renewed:
            yield from _shutdown(each)


def leaders_template(lws: Shaped) -> tuple[Path, dict[str, Any]]:
    """Path and content of the template of the pods that take requests."""
    paths = dict(lws.kind.format.paths)
    path: Path = ("spec", *paths.get("leader", ()))
    template = value_at(lws.body, path) if "leader" in paths else None
    if not template:
        path = ("spec", *paths["worker"])
        template = value_at(lws.body, path)
    return path, template or {}


def _containers(lws: Shaped) -> tuple[Path, list[dict[str, Any]]]:
    path, template = leaders_template(lws)
    return (*path, "spec", "containers"), (template.get("spec") or {}).get("containers") or []


def workers_answer(lws: Shaped) -> bool:
    """Whether workers have the leaders' probes, so that each worker is ready only when it serves requests itself."""
    workers_template = value_at(lws.body, ("spec", *dict(lws.kind.format.paths)["worker"])) or {}
    leaders, workers = (
        _probes((template.get("spec") or {}).get("containers") or ())
        for template in (leaders_template(lws)[1], workers_template)
    )
    return bool(leaders) and leaders == workers


def _probes(containers: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The containers' readiness probes over the network."""
    probes = (each.get("readinessProbe") or {} for each in containers)
    return [{how: probe[how]} for probe in probes for how in ("httpGet", "grpc") if how in probe]


def _readiness(lws: Shaped, *, timed: bool) -> Iterator[Finding]:
    path, containers = _containers(lws)
    probes = {at: each.get("readinessProbe") for at, each in enumerate(containers)}
    if any(probe and any(how in probe for how in _ASKING) for probe in probes.values()):
        return
    by_tcp = [at for at, probe in probes.items() if probe and "tcpSocket" in probe]
    if by_tcp:
        yield lws.manifest.found(
            "LWS301",
            (*path, by_tcp[0], "readinessProbe", "tcpSocket"),
            f"{takers(lws.kind)} are ready as soon as their port is open, and model servers open it before the model is"
            " loaded, so requests would be sent to groups that cannot answer: use httpGet on a path that fails until"
            " then, such as /health",
        )
    elif containers and not timed:
        yield lws.manifest.found(
            "LWS302",
            path,
            f"{takers(lws.kind)} have no readinessProbe, so a group counts as ready as soon as its containers run, long"
            " before the model is loaded, and steps go on: add a readinessProbe with httpGet on a path that fails until"
            " then, such as /health. A server without such a path: give the Rollout's strategy minReadySeconds, more"
            " than a load takes",
        )


def _leaders_first(files: FileSnapshot, lws: Shaped, *, routed: bool) -> Iterator[Finding]:
    own = workload(lws)
    told, labels = leaders_first(own, own.version), files.leader_labels[own.resource, own.metadata.name]
    if told and (
        routed
        or any(
            each.selects(live.body, labels)
            for each in (services.SELECTING, pools.SELECTING)
            for live in files.of_kind(each.resource.kind)
        )
    ):
        yield lws.manifest.found("LWS321", ("spec", "startupPolicy"), told)


def _sleep(container: dict[str, Any]) -> int:
    """Seconds that the container's preStop sleeps, where that is recognizable; 0 otherwise."""
    stop = (container.get("lifecycle") or {}).get("preStop") or {}
    if stop.get("sleep"):
        return int(stop["sleep"]["seconds"])
    told = re.search(r"\bsleep (\d+)", " ".join((stop.get("exec") or {}).get("command") or ()))
    return int(told[1]) if told else 0


def _grace(lws: Shaped) -> Iterator[Finding]:
    path, template = leaders_template(lws)
    spec = template.get("spec") or {}
    grace = spec.get("terminationGracePeriodSeconds")
    grace = DEFAULT_GRACE_SECONDS if grace is None else grace
    for index, container in enumerate(spec.get("containers") or ()):
        seconds = _sleep(container)
        if seconds >= grace:
            yield lws.manifest.found(
                "LWS317",
                (*path, "spec", "containers", index, "lifecycle", "preStop"),
                f"preStop sleeps for {seconds} s, and the pod is killed {grace} s after it was deleted, so the server"
                " never ends what it has begun: make terminationGracePeriodSeconds that and the longest request",
            )


def _shutdown(lws: Shaped) -> Iterator[Finding]:
    path, containers = _containers(lws)
    if containers and not has_pre_stop(containers):
        yield lws.manifest.found(
            "LWS312",
            path,
            f"{takers(lws.kind)} have no preStop, so one that is deleted stops while routers still send it requests:"
            " give its container a lifecycle.preStop that sleeps for some seconds, as examples/gateway does",
        )
