"""Services and pools that send requests to a workload's groups: the pods they select, and their health checks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from rollout_lws.capacity.table import strategy_of_plan
from rollout_lws.cli.lint.advice.leaders import workers_answer
from rollout_lws.cli.lint.advice.releases import releases
from rollout_lws.cli.lint.file_snapshot import FileSnapshot, Shaped
from rollout_lws.cli.lint.findings import Finding
from rollout_lws.observe import assume
from rollout_lws.rollout.routing.unmanaged_backends import reached_by
from rollout_lws.targets.target import Target, called
from rollout_lws.traffic import pools, services
from rollout_lws.traffic.selectors import Selecting
from rollout_lws.workload.canary import canary_name

#: Annotations that set how a cloud's load balancer checks a Service's pods.
_HEALTH = re.compile(r"health[-_]?(?:check|probe)[-_](?:protocol|type)$")


def advice(files: FileSnapshot) -> Iterator[Finding]:
    routings = [each.routing for each in releases(files) if each.routing]
    whole = {each.service for each in routings if each.target == "AllPods"}
    named = {name for each in routings for name in (each.service, each.counterpart_service) if name}
    for selecting in (services.SELECTING, pools.SELECTING):
        for each in files.of_kind(selecting.resource.kind):
            name = each.manifest.name
            serves = name in named or any(
                selecting.selects(each.body, labels) for labels in files.leader_labels.values()
            )
            if not serves or (_is_headless(each) and name not in named):
                # Pods use headless Services to find each other.
                continue
            if name not in whole:
                yield from _workers(files, selecting, each)
            if selecting is services.SELECTING:
                yield from _health(each)
    for release in releases(files):
        capacity = strategy_of_plan(release.plan)
        has_canary = not (capacity.one_workload or capacity.swaps)
        if release.lws is not None and release.routing is None and has_canary:
            yield from _behind(files, release.lws)


def _behind(files: FileSnapshot, lws: Target) -> Iterator[Finding]:
    """Without a route, a canary gets requests only from a Service that selects its leaders too."""
    name, canary = lws.metadata.name, canary_name(lws)
    labels = files.leader_labels[lws.resource, name]
    every = {
        each.manifest.name: each for each in files.of_kind(services.SELECTING.resource.kind) if not _is_headless(each)
    }
    found = reached_by((each.body for each in every.values()), [labels], labels_beside(files, lws))
    if not found.new:
        ours = every[found.old[0]]
        by = " and ".join(telling(services.SELECTING.selector(ours.body), labels, labels_beside(files, lws)))
        yield ours.manifest.found(
            "LWS318",
            services.SELECTING.path,
            f"{ours.manifest.what} selects groups of {called(lws)} alone, and no route is named, so those"
            f" of {canary} get no requests and steps try nothing: remove {by} from the selector, or give the"
            " strategy trafficRoutings",
        )


def labels_beside(files: FileSnapshot, lws: Target) -> dict[str, str]:
    """The labels of the first pod that takes requests of another workload with the template of this one."""
    found = files.find(lws.resource.kind, lws.metadata.name)
    assert found is not None, "it was read from there"
    body = {**found.body, "metadata": {**found.body["metadata"], "name": canary_name(lws)}}
    return assume.pod_labels(found.kind, body)


def telling(selected: Mapping[str, str], own: Mapping[str, str], others: Mapping[str, str]) -> list[str]:
    """The labels of a selector that pods with ``own`` labels have, and those with ``others`` have not."""
    return sorted(key for key, value in selected.items() if own.get(key) == value and others.get(key) != value)


def _of_leaders(workload: Shaped) -> str:
    """What a selector of leaders alone has."""
    label = workload.kind.labels.leader
    return f'{label[0]}: "{label[1]}"' if label is not None else ""


def _is_headless(each: Shaped) -> bool:
    return bool(each.body["spec"].get("clusterIP") == "None")


def _workers(files: FileSnapshot, selecting: Selecting, each: Shaped) -> Iterator[Finding]:
    for (kind, name), labels in files.worker_labels.items():
        found = files.objects[kind.kind, name]
        if selecting.selects(each.body, labels) and not workers_answer(found):
            yield each.manifest.found(
                "LWS306",
                selecting.path,
                f"{each.manifest.what} selects workers of {kind.kind} {name} too, which are not probed as its"
                " leaders are, and in most model servers only leaders answer requests: add"
                f" {_of_leaders(found)} to its selector, or, if every pod answers, give the workers the"
                " leaders' readinessProbe",
            )


def _health(each: Shaped) -> Iterator[Finding]:
    annotations: dict[str, Any] = each.body["metadata"].get("annotations") or {}
    for key, value in annotations.items():
        if _HEALTH.search(key) and str(value).lower() == "tcp":
            yield each.manifest.found(
                "LWS303",
                ("metadata", "annotations", key),
                f"the load balancer of {each.manifest.what} sends requests to whatever has the port open, and model"
                " servers open it before the model is loaded: have it check by HTTP, on the path of the readinessProbe",
            )
    if each.body["spec"].get("publishNotReadyAddresses"):
        yield each.manifest.found(
            "LWS313",
            ("spec", "publishNotReadyAddresses"),
            f"{each.manifest.what} sends requests to groups that are not ready, which a release cannot see: remove"
            " publishNotReadyAddresses, or route by another Service",
        )
