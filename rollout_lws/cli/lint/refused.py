"""Findings from the controller's own refusals of a Rollout, at the field that the user would change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from rollout_lws.api.validation import problems
from rollout_lws.cli.lint.advice import pairs
from rollout_lws.cli.lint.file_snapshot import FileSnapshot, Shaped
from rollout_lws.cli.lint.findings import CODE_OF, Finding
from rollout_lws.cli.lint.manifests import Manifest, workloads_of
from rollout_lws.cli.lint.paths import Path, located
from rollout_lws.objects.resources import Resource
from rollout_lws.rollout.companions import inactive_workloads
from rollout_lws.rollout.decision import FieldRef, Refusal
from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.lifecycle import pair
from rollout_lws.rollout.preflight import all_refusals
from rollout_lws.rollout.reasons import Reason
from rollout_lws.traffic.registry import CUSTOM, field_of, named_in

#: The field of a refusal that is not of a single one.
_WHOLE_SPEC = FieldRef("spec")


def refused(rollout: Shaped, files: FileSnapshot, broken: Sequence[Manifest]) -> Iterator[Finding]:
    """Refusals of a Rollout that passed its schema. ``broken`` are manifests that failed theirs and are not in
    ``files``.
    """
    made = rollout.manifest
    d = Draft.of(files.observed(made.name))
    for problem in problems(d.o.rollout.spec):
        path = located(rollout.body, problem.path)
        yield made.found(CODE_OF[Reason.INVALID_SPEC], path, problem.message)
    refusals = tuple(each for each in _refusals(d) if not _is_of_unknown_number(each, d, files))
    stated = [*_stating_replicas(made, d, files)]
    for refusal in refusals:
        # Problems of the spec alone were reported above, field by field, and the refusal has none.
        if refusal.reason is not Reason.INVALID_SPEC or refusal.field != _WHOLE_SPEC:
            finding = _told(made, files, broken, refusal)
            if not any((each.code, each.about) == (finding.code, finding.about) for each in stated):
                yield finding
    yield from stated
    for kind, name in workloads_of(rollout.body):
        if files.snapshot.workload(kind, name) is None:
            yield _missing(made, broken, kind.kind, name)
    if not any(refusal.reason is Reason.ROUTE_PROBLEM for refusal in refusals):
        yield from _undecided(made, d, files)


def _refusals(d: Draft) -> Iterator[Refusal]:
    """All refusals, one for each autoscaler, of which the controller names the first alone."""
    yield from (each for each in all_refusals(d) if each.reason is not Reason.AUTOSCALER_PROBLEM)
    for live in d.o.autoscalers.objects:
        alone = Draft.of(replace(d.o, autoscalers=replace(d.o.autoscalers, objects=(live,))))
        yield from (each for each in all_refusals(alone) if each.reason is Reason.AUTOSCALER_PROBLEM)


def _is_of_unknown_number(refusal: Refusal, d: Draft, files: FileSnapshot) -> bool:
    """Whether a refusal is of a number of groups that no file says: that of a pair which its Rollout scales may be an
    autoscaler's.
    """
    if refusal.reason is not Reason.TOO_FEW_GROUPS or not d.scales_sides or d.o.rollout.spec.replicas is not None:
        return False
    lws = files.find(d.kind, d.name)
    return lws is not None and lws.manifest.body["spec"].get("replicas") is None


def _stating_replicas(rollout: Manifest, d: Draft, files: FileSnapshot) -> Iterator[Finding]:
    """Manifests that set a number of groups which is the Rollout's. Of an object that a server has returned kubectl's
    annotation tells, which the controller reads.
    """
    for facts in d.o.workloads if d.scales_sides else ():
        lws = files.find(d.kind, facts.name)
        if lws is None or lws.manifest.is_stored or lws.manifest.body["spec"].get("replicas") is None:
            continue
        made = lws.manifest
        place = "" if made.namespace == "default" else f" -n {made.namespace}"
        yield made.found(
            CODE_OF[Reason.REPLICAS_APPLIED],
            ("spec", "replicas"),
            f"{rollout.what_and_place} scales {made.what}, and is refused once a manifest that states replicas is"
            " applied: each apply would start groups without requests, or take those that serve. Remove replicas here;"
            " the Rollout has the number. If this manifest was applied already, remove them by kubectl apply"
            f" edit-last-applied {made.resource.kind.lower()} {made.name}{place} first, else the next apply sets 1;"
            " docs/pairs.md says how with other tools",
        )


def _undecided(made: Manifest, d: Draft, files: FileSnapshot) -> Iterator[Finding]:
    """A pair of which nothing among the files says which side is active; a route that no file has may say it. Of two
    workloads that both have groups the Rollout has to say it, since those of the other one go.
    """
    stable, other = d.o.stable, d.o.canary
    standing = any(each.workload.replicas for each in inactive_workloads(d)) if d.scales_sides else False
    if not d.paired or stable is None or other is None or not (d.o.undecided or standing):
        return
    verdict, route = pair.adopt(d).verdict, pairs.route_of(d, files)
    if verdict is None or verdict.reason is not Reason.ACTIVE_SIDE_UNKNOWN:
        return
    if not d.o.undecided:
        yield made.found(
            "LWS328",
            ("spec", "counterpartRef"),
            f"{d.name} and {d.other_name} both have groups as the files have them (1 where replicas is not stated), and"
            " the Rollout waits to be told which of them serves: name that one in spec.activeSide, and the groups of"
            " the other one go",
        )
    elif route is not None:
        yield route.found("LWS215", verdict.message)


def _told(made: Manifest, files: FileSnapshot, broken: Sequence[Manifest], refusal: Refusal) -> Finding:
    place, code = refusal.field, CODE_OF[refusal.reason]
    if refusal.reason is Reason.SECOND_ROLLOUT:
        (kind, name), rival = _shared(made, files)
        return made.found(code, _naming(made, kind.kind, name), _second(kind, name, rival))
    if not place.kind:
        return made.found(code, located(made.body, place.path), refusal.message)
    about = files.find(place.kind, place.name)
    if about is None:
        return _missing(made, broken, place.kind, place.name)
    return about.manifest.found(code, located(about.manifest.body, place.path), refusal.message)


def _second(kind: Resource, workload: str, rival: Manifest) -> str:
    """Only a cluster knows which of the two Rollouts is older."""
    return (
        f"{kind.kind} {workload} is released by {rival.what_and_place} as well: delete one of the two; the"
        " one that is older in the cluster would go on alone"
    )


def _shared(made: Manifest, files: FileSnapshot) -> tuple[tuple[Resource, str], Manifest]:
    """A workload that another Rollout names too, and that Rollout."""
    others = [each.manifest for each in files.of_kind(made.resource.kind) if each.manifest is not made]
    named = workloads_of(made.body)
    return next((workload, each) for workload in named for each in others if workload in workloads_of(each.body))


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
    if kind in [each.kind for each, _ in workloads_of(made.body)]:
        counterpart = (made.body["spec"].get("counterpartRef") or {}).get("name")
        for index, each in enumerate(made.body["spec"].get("companions") or ()):
            for member in ("name", "counterpart"):
                if each.get(member) == name:
                    return ("spec", "companions", index, member)
        return ("spec", "counterpartRef" if name == counterpart else "workloadRef", "name")
    style = "canary" if made.body["spec"]["strategy"].get("canary") else "blueGreen"
    routing: Path = ("spec", "strategy", style, "trafficRoutings", 0)
    said = made.body["spec"]["strategy"][style]["trafficRoutings"][0]
    field = field_of(named_in(said), kind, name)
    if field == CUSTOM.field:
        at = [(each["kind"], each["name"]) for each in said[CUSTOM.field[0]]].index((kind, name))
        return (*routing, *field, at, "name")
    return (*routing, *field)
