"""The plan of a pair with companions: their groups and accelerators, when a version of all of them is released, and
what its user may not expect. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from rollout_lws.api import Phase
from rollout_lws.cli.changes import changed
from rollout_lws.cli.durations import short
from rollout_lws.cli.plan.model import Amounts, Beginning, Beside, LoadTimes, Plan, groups_of, parked_first, times
from rollout_lws.cli.plan.startups import startups
from rollout_lws.forecast import model
from rollout_lws.forecast.cautions import claims_that_stay, kueue_ends_first
from rollout_lws.forecast.model import Forecast, Row, order_of
from rollout_lws.rollout import companions
from rollout_lws.rollout.companions import SETTLED_SECONDS, await_complete, release_id_of_all
from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.groups.health import deadline_seconds
from rollout_lws.rollout.lifecycle.pair import companion_missing
from rollout_lws.rollout.observation import Companion, Observation
from rollout_lws.targets.version import Version
from rollout_lws.workload.facts import Facts


def at_rest(o: Observation) -> Observation:
    """``o`` as companions stand when a release begins: those that their owner scales, and that have no groups yet, with
    as many as the ones on the other side.
    """
    if o.rollout.spec.scales_sides:
        return o
    return replace(o, companions=tuple(map(_scaled_up, o.companions)))


def _scaled_up(companion: Companion) -> Companion:
    one, other = companion.stable, companion.canary
    if one is None or other is None or other.workload.replicas:
        return companion
    return replace(companion, canary=replace(other, workload=other.workload.with_replicas(one.workload.replicas)))


def before_applied(o: Observation, before: Observation) -> Observation:
    """``o`` with the workloads that exist in ``before`` as they are there, each in the role that it has in ``o``."""
    known = {each.name: each for each in before.workloads}

    def was(facts: Facts | None) -> Facts | None:
        return known.get(facts.name, facts) if facts is not None else None

    each_was = (replace(each, stable=was(each.stable), canary=was(each.canary)) for each in o.companions)
    return replace(o, stable=was(o.stable), canary=was(o.canary), companions=tuple(each_was))


def beside(
    d: Draft, after: Observation, before: Observation, load_seconds: float | None, *, releases: bool
) -> tuple[Beside, ...]:
    """The companions of ``d``, which ``releases`` a version or has none yet; they stand as in ``after``, and ``before``
    shows what runs. ``load_seconds`` is a group's startup time, None: as measured now.
    """
    was = before_applied(after, before).companions
    pairs = zip(d.o.companions, after.companions, was, strict=True)
    found = (_beside(d, each, now, known, load_seconds) for each, now, known in pairs)
    return tuple(each if releases else replace(each, change="") for each in found)


def _beside(d: Draft, asked: Companion, now: Companion, was: Companion, load_seconds: float | None) -> Beside:
    old, new = (each.workload.version if each is not None else None for each in (was.stable, asked.canary))
    version = new or old
    replicas, standing = d.companion_replicas(asked), _replicas(now.stable)
    if d.scales_sides:
        # A release takes none away, and at rest they have as many as go with the others.
        standing = max(replicas, standing) if d.status.phase == Phase.PROGRESSING else replicas
    return Beside(
        active=asked.name,
        active_groups=standing,
        inactive=asked.other_name,
        inactive_groups=_replicas(now.canary),
        replicas=replicas,
        size=version.size if version is not None else 0,
        change=changed(old.meaning, new.meaning) if old is not None and new is not None else "",
        loads=LoadTimes((load_seconds,), "as given") if load_seconds is not None else _measured(was),
        old=_accelerators(old or new),
        new=_accelerators(version),
        order=order_of(asked.canary.workload) if asked.canary is not None else None,
    )


def _replicas(facts: Facts | None) -> int:
    return facts.workload.replicas if facts is not None else 0


def _accelerators(version: Version | None) -> Amounts:
    return version.accelerators_by_name if version is not None else {}


def _measured(companion: Companion) -> LoadTimes:
    most = max((each.workload.version.progress_deadline_seconds for each in companion.both), default=0.0)
    return startups(companion.both, most)


def given(beside: tuple[Beside, ...], typical: float) -> tuple[model.Companion, ...]:
    """The forecast's input. A companion whose startup time is not known takes as long as the others, ``typical``; and
    without that no time is known.
    """
    return tuple(
        model.Companion(each.replicas, (each.loads.typical or typical) if typical else 0.0, each.order)
        for each in beside
    )


def taken(d: Draft, beside: tuple[Beside, ...], row: Row) -> Iterator[Amounts]:
    """Accelerators of companions in this row of the forecast."""
    for each, there in zip(beside, row.companions, strict=True):
        yield times(each.old, each.active_groups)
        yield times(each.new, there.new if d.scales_sides else max(there.new, each.replicas))


def left(d: Draft, beside: tuple[Beside, ...]) -> Iterator[Amounts]:
    """Accelerators of companions when the release is over."""
    for each in beside:
        yield times(each.new, each.replicas)
        yield times(each.old, 0 if d.scales_sides else each.active_groups)


def beginning(d: Draft, *, releases: bool) -> Beginning | None:
    """When the release of ``d`` begins, which ``releases`` a version or has none yet; None for one that has begun, and
    without companions.
    """
    if not d.o.companions or d.status.phase == Phase.PROGRESSING:
        return None
    side = " and ".join((d.other_name, *(each.other_name for each in d.o.companions)))
    if not releases:
        return Beginning(
            f"when {side} have the same new rollout-id, or {SETTLED_SECONDS} s after each of them has another version;"
            f" or by {d.command('start')}",
            None,
        )
    judged, wait = await_complete(d)
    if wait is not None and wait.until is None:
        return Beginning("not by itself, since the version is incomplete", None)
    if wait is not None and wait.until is not None:
        seconds = (wait.until - d.now).total_seconds()
        return Beginning(f"in {short(seconds)} if {side}, which have no new rollout-id, do not change again", seconds)
    given = release_id_of_all(d)
    if judged.status.start_requested or given is None:
        return Beginning("at once", 0.0)
    return Beginning(f"at once, since {side} have the same rollout-id, {given}", 0.0)


def refusals(d: Draft) -> Iterator[str]:
    """Why nothing is released while a side lacks companions."""
    of_active, of_inactive = companions.missing_from_active(d), companions.missing_from_inactive(d)
    verdict = companion_missing(d, of_active).verdict if of_active else None
    if verdict is not None:
        yield verdict.message
    if of_inactive and d.o.canary is not None:
        named = " and ".join(of_inactive)
        yield f"{d.kind} {named} does not exist: create {named} to release a version on the side of {d.other_name}"


def cautions(d: Draft, found: Forecast, plan: Plan, before: Observation) -> Iterator[str]:
    """Warnings, a sentence each."""
    if plan.sides is None:
        return
    yield from _incomplete(d)
    yield from _without_accelerators(d)
    old = {each.name: each.workload.version for each in before.workloads}
    for each, there in zip(d.o.companions, plan.sides.companions, strict=True):
        if d.scales_sides:
            yield from _numbers(d, each, there, plan, before)
            yield from _claims(each, there, old, found)
        else:
            yield from _owners(d, there)
        yield from _slow(d, there)
        late = kueue_ends_first(each.edited.workload, deadline_seconds(d)) if each.edited is not None else None
        yield from (late,) if late is not None else ()


def _incomplete(d: Draft) -> Iterator[str]:
    """What the version lacks that is to be released."""
    if not d.pending or d.status.phase == Phase.PROGRESSING or companions.missing_from_inactive(d):
        return
    _, wait = await_complete(d)
    if wait is not None and wait.until is None:
        yield wait.message


def _without_accelerators(d: Draft) -> Iterator[str]:
    """Workloads whose groups count for none while others state what they need."""
    of = {each.name: each.workload.version.accelerators for each in d.o.workloads}
    lacks = [name for name, amount in of.items() if not amount]
    if lacks and len(lacks) < len(of):
        states, their = ("states", "its") if len(lacks) == 1 else ("state", "their")
        yield (
            f"{' and '.join(lacks)} {states} no accelerators in the limits of {their} containers: {their} groups count"
            " for none here; state them if they need some"
        )


def _numbers(d: Draft, companion: Companion, there: Beside, plan: Plan, before: Observation) -> Iterator[str]:
    """Groups that come or go before a release begins."""
    if d.status.phase == Phase.PROGRESSING:
        return
    live = next((each.workload.replicas for each in before.workloads if each.name == there.active), there.replicas)
    if live != there.replicas and companion.stable is not None and d.stable.workload.replicas:
        does = "gets" if live < there.replicas else "is scaled down to"
        yield (
            f"{companion.stable.called} has {groups_of(live)}, and {does} {groups_of(there.replicas)} before any"
            " release, as spec.companions says"
        )
    if there.inactive_groups and companion.canary is not None and not plan.refusals:
        yield parked_first(companion.canary.called, there.inactive_groups)


def _claims(companion: Companion, there: Beside, old: dict[str, Version], found: Forecast) -> Iterator[str]:
    if companion.stable is not None:
        workload = companion.stable.workload
        version = old.get(companion.name, workload.version)
        stay = claims_that_stay(workload, version, found.strategy, there.active_groups)
        yield from (stay,) if stay is not None else ()


def _owners(d: Draft, there: Beside) -> Iterator[str]:
    """What the owner of a companion has to do."""
    if not there.inactive_groups:
        yield (
            f"{d.kind} {there.inactive} has 0 groups: no step ends before its owner has scaled it up, and this plan is"
            f" for as many as {there.active} has, {there.replicas}"
        )
    elif there.inactive_groups < there.active_groups:
        yield (
            f"after the release {groups_of(there.inactive_groups)} of {there.inactive} do what"
            f" {groups_of(there.active_groups)} of {there.active} do now: scale {there.inactive} to"
            f" {there.active_groups} before the last step"
        )


def _slow(d: Draft, there: Beside) -> Iterator[str]:
    limit = deadline_seconds(d)
    if there.loads.typical > limit and there.loads.source != "as given":
        yield (
            f"a group of {there.inactive} loads for {short(there.loads.typical)}, longer than progressDeadlineSeconds"
            f" ({limit:.0f} s): each step would be reported as failed; raise it"
        )
