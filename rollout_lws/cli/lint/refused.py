"""Findings from the controller's own refusals of a Rollout, at the field that the user would change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rollout_lws.api.validation import problems
from rollout_lws.cli.lint.file_snapshot import FileSnapshot, Shaped
from rollout_lws.cli.lint.findings import CODE_OF, Finding
from rollout_lws.cli.lint.manifests import Manifest
from rollout_lws.cli.lint.paths import Path, located
from rollout_lws.objects.resources import LEADER_WORKER_SETS
from rollout_lws.rollout.decision import Refusal
from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.preflight import all_refusals
from rollout_lws.rollout.reasons import Reason
from rollout_lws.traffic.registry import field_of, named_in


def refused(rollout: Shaped, files: FileSnapshot, broken: Sequence[Manifest]) -> Iterator[Finding]:
    """Refusals of a Rollout that passed its schema. ``broken`` are manifests that failed theirs and are not in
    ``files``.
    """
    made = rollout.manifest
    d = Draft.of(files.observed(made.name))
    for problem in problems(d.o.rollout.spec):
        path = located(rollout.body, problem.path)
        yield made.found(CODE_OF[Reason.INVALID_SPEC], path, problem.message)
    for refusal in all_refusals(d):
        # Problems of the spec were reported above, field by field.
        if refusal.reason is not Reason.INVALID_SPEC:
            yield _told(made, files, broken, refusal)
    ref = d.o.rollout.spec.workload_ref
    if d.o.stable is None and (ref.kind, ref.api_version) == (LEADER_WORKER_SETS.kind, LEADER_WORKER_SETS.api_version):
        yield _missing(made, broken, LEADER_WORKER_SETS.kind, ref.name)


def _told(made: Manifest, files: FileSnapshot, broken: Sequence[Manifest], refusal: Refusal) -> Finding:
    place, code = refusal.field, CODE_OF[refusal.reason]
    if not place.kind:
        message = _second(made, files) if refusal.reason is Reason.SECOND_ROLLOUT else refusal.message
        return made.found(code, located(made.body, place.path), message)
    about = files.find(place.kind, place.name)
    if about is None:
        return _missing(made, broken, place.kind, place.name)
    return about.manifest.found(code, located(about.manifest.body, place.path), refusal.message)


def _second(made: Manifest, files: FileSnapshot) -> str:
    """Only a cluster knows which of the two Rollouts is older."""
    workload = made.body["spec"]["workloadRef"]["name"]
    others = [each.manifest for each in files.of_kind(made.resource.kind) if each.manifest is not made]
    rival = next(each for each in others if each.body["spec"]["workloadRef"]["name"] == workload)
    return (
        f"LeaderWorkerSet {workload} is released by {rival.what_and_place} as well: delete one of the two; the"
        " one that is older in the cluster would go on alone"
    )


def _missing(made: Manifest, broken: Sequence[Manifest], kind: str, name: str) -> Finding:
    path = _naming(made, kind, name)
    for each in broken:
        if (each.resource.kind, each.name, each.namespace) == (kind, name, made.namespace):
            message = f"{kind} {name} has errors ({each.place}): what depends on it was not checked"
            return made.found("LWS404", path, message)
    message = f"{kind} {name} is not among the files (namespace {made.namespace}): what depends on it was not checked"
    return made.found("LWS401", path, message)


def _naming(made: Manifest, kind: str, name: str) -> Path:
    """The field of the Rollout that names an object."""
    if kind == LEADER_WORKER_SETS.kind:
        return ("spec", "workloadRef", "name")
    style = "canary" if made.body["spec"]["strategy"].get("canary") else "blueGreen"
    routing: Path = ("spec", "strategy", style, "trafficRoutings", 0)
    said = made.body["spec"]["strategy"][style]["trafficRoutings"][0]
    return (*routing, *field_of(named_in(said), kind, name))
