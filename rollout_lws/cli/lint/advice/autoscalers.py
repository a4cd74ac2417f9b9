"""Replicas that both a manifest and an autoscaler set."""

from __future__ import annotations

from collections.abc import Iterator

from rollout_lws.cli.lint.file_snapshot import FileSnapshot
from rollout_lws.cli.lint.findings import Finding
from rollout_lws.objects.resources import HORIZONTAL_POD_AUTOSCALERS, LEADER_WORKER_SETS
from rollout_lws.rollout.autoscaling.hpa_bounds import scaled_workload


def advice(files: FileSnapshot) -> Iterator[Finding]:
    for each in files.of_kind(HORIZONTAL_POD_AUTOSCALERS.kind):
        name = scaled_workload(each.body)
        lws = files.find(LEADER_WORKER_SETS.kind, name) if files.is_released(name) else None
        if lws is not None and lws.manifest.body["spec"].get("replicas") is not None:
            yield lws.manifest.found(
                "LWS314",
                ("spec", "replicas"),
                f"{each.manifest.what_and_place} sets the number of groups, and every apply of this"
                " manifest sets it back, also in the middle of a release: remove replicas from the manifest",
            )
