"""Numbers of groups that manifests and autoscalers set at the same time."""

from __future__ import annotations

from collections.abc import Iterator

from rollout_lws.api import rollouts
from rollout_lws.cli.lint.file_snapshot import FileSnapshot, Shaped, scales_two
from rollout_lws.cli.lint.findings import Finding
from rollout_lws.objects.resources import HORIZONTAL_POD_AUTOSCALERS, Resource
from rollout_lws.rollout.autoscaling.hpa_bounds import scaled_rollout, scaled_workload
from rollout_lws.targets.table import TARGETS, released_type

_CODE = "LWS314"


def advice(files: FileSnapshot) -> Iterator[Finding]:
    for each in files.of_kind(HORIZONTAL_POD_AUTOSCALERS.kind):
        yield from _of_workload(files, each)
        yield from _of_rollout(files, each)
    for rollout in files.of_kind(rollouts().kind):
        yield from _of_manifests(files, rollout)


def _of_workload(files: FileSnapshot, autoscaler: Shaped) -> Iterator[Finding]:
    name, kind = scaled_workload(autoscaler.body), autoscaler.body["spec"]["scaleTargetRef"].get("kind")
    resource = next((each.resource for each in TARGETS if name and each.resource.kind == kind), None)
    if resource is None or not files.rollouts_of(resource, name) or files.scaling(resource, name) is not None:
        # An autoscaler of a workload that the Rollout scales, and replicas in its manifest, are refused.
        return
    scaled = files.find(resource.kind, name)
    if scaled is not None and scaled.manifest.body["spec"].get("replicas") is not None:
        yield scaled.manifest.found(
            _CODE,
            ("spec", "replicas"),
            f"{autoscaler.manifest.what_and_place} sets the number of groups, and every apply of this"
            " manifest sets it back, also in the middle of a release: remove replicas from the manifest",
        )
    for rollout in files.of_kind(rollouts().kind):
        if _workload(rollout) == (resource, name) and _asked(rollout) is not None:
            yield autoscaler.manifest.found(
                _CODE,
                ("spec", "scaleTargetRef"),
                f"{rollout.manifest.what_and_place} sets the number of groups of {resource.kind} {name}, and"
                f" puts back what this autoscaler writes: let it scale the {rollout.manifest.what}",
            )


def _of_rollout(files: FileSnapshot, autoscaler: Shaped) -> Iterator[Finding]:
    rollout = files.find(rollouts().kind, scaled_rollout(autoscaler.body, files.group))
    if rollout is not None and rollout.manifest.body["spec"].get("replicas") is not None:
        yield rollout.manifest.found(
            _CODE,
            ("spec", "replicas"),
            f"{autoscaler.manifest.what_and_place} sets the number of groups, and every apply of this"
            " manifest sets it back: leave replicas out of the manifest, and set the first number by kubectl scale",
        )


def _of_manifests(files: FileSnapshot, rollout: Shaped) -> Iterator[Finding]:
    resource, name = _workload(rollout)
    asked, scaled = _asked(rollout), files.find(resource.kind, name)
    written = scaled.manifest.body["spec"].get("replicas") if scaled is not None else None
    if scaled is not None and None not in (asked, written) and asked != written:
        yield scaled.manifest.found(
            _CODE,
            ("spec", "replicas"),
            f"{rollout.manifest.what_and_place} asks for {asked} groups, and puts back what every apply of this"
            f" manifest sets: write {asked} here too, and change both together",
        )


def _asked(rollout: Shaped) -> int | None:
    """The number of groups that it writes; None without one, and where manifests of its workloads may state none."""
    spec = rollout.body["spec"]
    return None if spec.get("counterpartRef") or scales_two(spec) else spec.get("replicas")


def _workload(rollout: Shaped) -> tuple[Resource, str]:
    ref = rollout.body["spec"].get("workloadRef") or {}
    return released_type(ref).resource, str(ref.get("name", ""))
