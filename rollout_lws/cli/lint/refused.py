"""Findings from the controller's own refusals of a Rollout, at the field that the user would change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rollout_lws.api.validation import problems
from rollout_lws.cli.lint.advice import pairs
from rollout_lws.cli.lint.file_snapshot import FileSnapshot, Shaped
from rollout_lws.cli.lint.findings import CODE_OF, Finding
from rollout_lws.cli.lint.manifests import Manifest
from rollout_lws.cli.lint.paths import Path, located
from rollout_lws.objects.resources import LEADER_WORKER_SETS
from rollout_lws.rollout.decision import Refusal
from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.lifecycle import pair
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
    refusals = (*all_refusals(d),)
    for refusal in refusals:
        # Problems of the spec were reported above, field by field.
        if refusal.reason is not Reason.INVALID_SPEC:
            yield _told(made, files, broken, refusal)
    spec = d.o.rollout.spec
    for ref in (spec.workload_ref, *((spec.counterpart_ref,) if spec.counterpart_ref is not None else ())):
        known = (ref.kind, ref.api_version) == (LEADER_WORKER_SETS.kind, LEADER_WORKER_SETS.api_version)
        if known and files.snapshot.workload(LEADER_WORKER_SETS, ref.name) is None:
            yield _missing(made, broken, LEADER_WORKER_SETS.kind, ref.name)
    if not any(refusal.reason is Reason.ROUTE_PROBLEM for refusal in refusals):
        yield from _undecided(d, files)


def _undecided(d: Draft, files: FileSnapshot) -> Iterator[Finding]:
    """A pair of which nothing among the files says which side is active; a route that no file has may say it."""
    verdict = pair.adopt(d).verdict if d.o.undecided and d.o.canary is not None and d.o.stable is not None else None
    route = pairs.route_of(d, files)
    if verdict is not None and verdict.reason is Reason.ACTIVE_SIDE_UNKNOWN and route is not None:
        yield route.found("LWS215", verdict.message)


def _told(made: Manifest, files: FileSnapshot, broken: Sequence[Manifest], refusal: Refusal) -> Finding:
    place, code = refusal.field, CODE_OF[refusal.reason]
    if refusal.reason is Reason.SECOND_ROLLOUT:
        return made.found(code, _naming(made, LEADER_WORKER_SETS.kind, _shared(made, files)[0]), _second(made, files))
    if not place.kind:
        return made.found(code, located(made.body, place.path), refusal.message)
    about = files.find(place.kind, place.name)
    if about is None:
        return _missing(made, broken, place.kind, place.name)
    return about.manifest.found(code, located(about.manifest.body, place.path), refusal.message)


def _second(made: Manifest, files: FileSnapshot) -> str:
    """Only a cluster knows which of the two Rollouts is older."""
    workload, rival = _shared(made, files)
    return (
        f"LeaderWorkerSet {workload} is released by {rival.what_and_place} as well: delete one of the two; the"
        " one that is older in the cluster would go on alone"
    )


def _shared(made: Manifest, files: FileSnapshot) -> tuple[str, Manifest]:
    """A workload that another Rollout names too, and that Rollout."""
    others = [each.manifest for each in files.of_kind(made.resource.kind) if each.manifest is not made]
    return next((name, each) for name in _named(made) for each in others if name in _named(each))


def _named(made: Manifest) -> list[str]:
    """Names of the workloads of a Rollout."""
    refs = (made.body["spec"].get(member) or {} for member in ("workloadRef", "counterpartRef"))
    return [ref["name"] for ref in refs if "name" in ref]


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
        counterpart = (made.body["spec"].get("counterpartRef") or {}).get("name")
        return ("spec", "counterpartRef" if name == counterpart else "workloadRef", "name")
    style = "canary" if made.body["spec"]["strategy"].get("canary") else "blueGreen"
    routing: Path = ("spec", "strategy", style, "trafficRoutings", 0)
    said = made.body["spec"]["strategy"][style]["trafficRoutings"][0]
    return (*routing, *field_of(named_in(said), kind, name))
