"""Steps and deadlines whose effect differs from what they seem to say."""

from __future__ import annotations

from collections.abc import Iterator

from rollout_lws.api.words import DrainUntil, FigureSource
from rollout_lws.capacity.batches import is_last_full, wanted_groups
from rollout_lws.capacity.table import strategy_of_plan
from rollout_lws.cli.lint.advice.releases import Release, releases
from rollout_lws.cli.lint.file_snapshot import FileSnapshot
from rollout_lws.cli.lint.findings import Finding
from rollout_lws.cli.lint.paths import Path
from rollout_lws.forecast.cautions import claims_that_stay, kueue_ends_first
from rollout_lws.forecast.forecast import much_extra, step_of_much_extra
from rollout_lws.rollout.metrics_endpoints import metrics_port
from rollout_lws.targets.target import Target, called, takers
from rollout_lws.workload.claims import kept, policy_that_deletes
from rollout_lws.workload.hold import resolved_unavailable


def advice(files: FileSnapshot) -> Iterator[Finding]:
    for release in releases(files):
        yield from _pauses(release)
        if release.lws is not None:
            yield from _groups(release)
            yield from _claims(files, release, release.lws)
        for lws in (*release.members, *release.companions):
            yield from _claims_of_side(files, lws)
            yield from _ordered(files, release, lws)
            yield from _deadline(release, lws)
        for lws in release.members:
            yield from _drain(release, lws)


def _pauses(release: Release) -> Iterator[Finding]:
    steps, last = release.plan.steps, len(release.plan.steps)
    promotes = is_last_full(release.plan, last)
    at = (*release.style, "steps")
    if promotes and "pause" in steps[-1].model_fields_set:
        yield release.manifest.found(
            "LWS310",
            (*at, last - 1, "pause"),
            f"step {last}, the last one of 100%, is the promotion itself and waits for no approval: remove its pause,"
            " or put it into a step before",
        )
    waiting = steps[:-1] if promotes else steps
    if all(step.pause.duration == 0 for step in waiting):
        yield release.manifest.found(
            "LWS311",
            at,
            "no step waits for an approval or a time, so a version that is ready and answers badly reaches all groups:"
            " give a step `pause: {}` for an approval, or `pause: {duration: SECONDS}`",
        )


def _groups(release: Release) -> Iterator[Finding]:
    replicas, at = release.replicas, (*release.style, "steps")
    told = much_extra(release.plan, replicas)
    if told:
        greedy = step_of_much_extra(release.plan, replicas)
        yield release.manifest.found("LWS309", (*at, greedy - 1, "replicas"), told)


def _claims(files: FileSnapshot, release: Release, lws: Target) -> Iterator[Finding]:
    capacity, steps = strategy_of_plan(release.plan), range(1, len(release.plan.steps) + 1)
    if capacity.swaps:
        # Those that stay are of the workload itself, which is scaled to 0.
        return
    most = max((wanted_groups(release.plan, index, release.replicas) for index in steps), default=0)
    found = files.find(lws.resource.kind, lws.metadata.name)
    told = claims_that_stay(lws.with_replicas(release.replicas), lws.version, capacity, capacity.extra(max(1, most)))
    if told and found is not None:
        yield found.manifest.found("LWS320", _claims_path(lws), told)


def _claims_path(lws: Target) -> Path:
    holder = (lws.format.holder,) if lws.format.holder else ()
    return ("spec", *holder, "volumeClaimTemplates")


def _claims_of_side(files: FileSnapshot, lws: Target) -> Iterator[Finding]:
    """A workload that its Rollout scales to 0 at the end of a release, and wakes for a later version."""
    name = lws.metadata.name
    found = files.find(lws.resource.kind, name) if files.scaling(lws.resource, name) is not None else None
    stay = kept(lws, lws.version, by_scaling=True)
    if found is not None and stay:
        yield found.manifest.found(
            "LWS320",
            _claims_path(lws),
            f"PersistentVolumeClaims of {name} stay when it is scaled to 0 at the end of a release, such as"
            f" {next(stay.of(name, [0]))}, and groups of the next version there get what is in them:"
            f" {policy_that_deletes(by_scaling=True)} in the {lws.version.format.holder or 'spec'}, or delete them"
            " after the release",
        )


def _ordered(files: FileSnapshot, release: Release, lws: Target) -> Iterator[Finding]:
    capacity, found = strategy_of_plan(release.plan), files.find(lws.resource.kind, lws.metadata.name)
    one_by_one = (
        capacity.takes_places and capacity.one_workload and resolved_unavailable(lws.strategy, lws.replicas) < 2
    )
    if lws.ordered and found is not None and not one_by_one:
        yield found.manifest.found(
            "LWS334",
            ("spec", "podManagementPolicy"),
            "podManagementPolicy is OrderedReady, which is the default: the groups of a release load one after the"
            " other, each when the one before is ready, so that ten take ten times as long as one. Parallel has them"
            f" load together; it cannot be changed later, so make the {lws.resource.kind} anew with it, before it is"
            " released: kubectl delete --cascade=orphan keeps its pods",
        )


def _drain(release: Release, lws: Target) -> Iterator[Finding]:
    routing = release.routing
    if routing is None or routing.draining.until is not DrainUntil.IDLE:
        return
    source = release.rollout.spec.strategy.source
    port = source.pods.port
    if source.from_ is FigureSource.PODS and not metrics_port(lws.version.leader_template, port):
        lack = "declares no port" if port is None else f"declares no port {port}"
        yield release.manifest.found(
            "LWS324",
            (*release.style, "trafficRoutings", 0, "drain", "until"),
            f"the {takers(lws)}' template of {lws.metadata.name} {lack}, so what runs on groups is not known: they get"
            f" {routing.drain_seconds} s, as drainSeconds says. Declare the port of its metrics",
        )


def _deadline(release: Release, lws: Target) -> Iterator[Finding]:
    seconds, budget = release.rollout.spec.strategy.progress_deadline_seconds, lws.version.start_up_seconds
    if seconds is not None and seconds < budget:
        yield release.manifest.found(
            "LWS308",
            ("spec", "strategy", "progressDeadlineSeconds"),
            f"the start-up probes of {called(lws)} give a group {budget:g} s, and a step would be"
            f" called failed after {seconds} s: use more than {budget:g}, or remove the field",
        )
    told = kueue_ends_first(lws, seconds) if seconds is not None else None
    if told:
        yield release.manifest.found("LWS323", ("spec", "strategy", "progressDeadlineSeconds"), told)
