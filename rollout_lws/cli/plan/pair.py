"""The plan of a pair's release: what it is for, what it writes, and what its user may not expect. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from rollout_lws.api import CompleteVersion, Phase, RolloutStatus, StableRecord
from rollout_lws.api.words import DrainUntil
from rollout_lws.cli.plan import companions, shifted_sides
from rollout_lws.cli.plan.model import Beside, Sides, groups_of, parked_first, when_drained
from rollout_lws.forecast.model import Forecast
from rollout_lws.objects.resources import SERVICES
from rollout_lws.rollout.companions import edited_names, release_id_of_all
from rollout_lws.rollout.decision import Verdict
from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.lifecycle import adoption, pair
from rollout_lws.rollout.observation import Observation
from rollout_lws.rollout.reasons import Reason
from rollout_lws.rollout.routing.unmanaged_backends import unlisted
from rollout_lws.rollout.routing.weights import settings
from rollout_lws.workload.facts import Facts
from rollout_lws.workload.revisions import current_revision

#: Load of a group, relative to normal, above which it is worth a warning.
_MUCH = 1.005


def is_pair(o: Observation) -> bool:
    """Whether the Rollout names two workloads."""
    return o.rollout.spec.counterpart_ref is not None


def named(o: Observation, name: str) -> Facts | None:
    """The workload of this name, whichever side it is."""
    return next((each for each in o.workloads if each.name == name), None)


def at_rest(o: Observation, before: Observation) -> Observation:
    """``o`` as if the Rollout already managed the pair, with the versions on both sides that are in ``before``. An
    inactive side without groups has as many as the active one: a release begins only when its owner has made some, or
    makes them itself.
    """
    active, other = o.stable, o.canary
    if active is None:
        return o
    o = companions.at_rest(o)
    if other is not None and other.workload.replicas == 0:
        o = replace(o, canary=replace(other, workload=other.workload.with_replicas(active.workload.replicas)))
    if Draft.of(o).adopted:
        return o
    was = Draft.of(companions.before_applied(o, before))
    adopted = RolloutStatus(
        phase=Phase.HEALTHY,
        stable=StableRecord(
            template_hash=was.own_version.template_hash,
            revision=current_revision(active),
            workload_uid=active.workload.metadata.uid,
        ),
        active=active.name,
        inactive_hash=was.version.template_hash if other is not None else "",
        complete=CompleteVersion(template_hash=was.version.template_hash, release_id=release_id_of_all(was)),
    )
    return replace(o, rollout=o.rollout.model_copy(update={"status": adopted}))


def releases(d: Draft) -> bool:
    """Whether the inactive side's version is being released, or will be by itself."""
    return d.pending or (d.status.phase == Phase.PROGRESSING and not d.asks_for_stable)


def hindrance(d: Draft) -> Verdict | None:
    """The verdict of adopting the pair as it is; None when it can be, or is already, adopted."""
    if d.adopted and not d.o.undecided:
        return None
    made = pair.adopt(d)
    if not made.writes:
        return made.verdict
    # What adoption writes into the route keeps nothing waiting.
    return adoption.running_together(d)[0].verdict if d.scales_sides else None


def sides(d: Draft, after: Observation, beside: tuple[Beside, ...]) -> Sides | None:
    """The two sides, the inactive one as it stands, with their companions; None unless both workloads exist."""
    other = after.canary
    if not d.paired or other is None:
        return None
    return Sides(d.name, d.own_size, other.name, other.workload.replicas, beside)


def edited_while_active(d: Draft, before: Observation, after: Observation) -> Iterator[str]:
    """That another template for the active side is no release."""
    if d.scales_sides:
        yield from _held(d) if d.paired else ()
        return
    pairs = [(after.stable, after.canary)] if is_pair(after) else []
    for active, other in [*pairs, *((each.stable, each.canary) for each in after.companions)]:
        known = named(before, active.name) if active is not None else None
        if active is not None and known is not None:
            yield from _renewed(active, known, other)


def _renewed(active: Facts, known: Facts, other: Facts | None) -> Iterator[str]:
    if known.workload.version.template_hash == active.workload.version.template_hash:
        return
    place = f" to {other.called}" if other is not None else " to the other workload"
    yield (
        f"{active.called} is the active side, and gets another template: its own controller renews its groups while"
        f" they get requests, and no step of this plan applies to that; to release a version in steps, apply it{place}"
    )


def _held(d: Draft) -> Iterator[str]:
    if d.own_pending and d.stable.workload.replicas:
        name, other = edited_names(d)
        side = "the active side" if name == d.name else "of the active side"
        yield (
            f"another template for {d.kind} {name}, {side}, starts nothing: it is held, and the Rollout is Stalled with"
            f" reason {Reason.ACTIVE_SIDE_EDITED.value} until that template is restored; to release the version, apply"
            f" it to {d.kind} {other}"
        )


def cautions(d: Draft, found: Forecast, there: Sides) -> Iterator[str]:
    """Warnings about the release itself, a sentence each."""
    if d.scales_sides:
        yield from _not_by_itself(d)
        yield from shifted_sides.cautions(d, found, there) if d.capacity.shifts else _retired(d, there)
        return
    yield from _groups(d, there)
    yield from _not_by_itself(d)
    yield from _fewer(there)
    yield from _steps(d, found, there)
    asked = settings(d)
    if asked is not None and asked.draining.until is DrainUntil.TIME:
        seconds = asked.grace_period_seconds + asked.drain_seconds
        yield (
            f"the roles change {seconds} s after {there.active} has lost its last requests (gracePeriodSeconds and"
            f" drainSeconds): what runs there for longer ends when its owner scales {there.active} down"
        )


def unasked(d: Draft, there: Sides) -> Iterator[str]:
    """That groups of the inactive side go which no release has made."""
    if there.inactive_groups and d.status.phase != Phase.PROGRESSING:
        yield parked_first(d.edited.called, there.inactive_groups)


def _retired(d: Draft, there: Sides) -> Iterator[str]:
    """What the end does to the side that has lost its requests, and what the way back costs from then on."""
    asked = settings(d)
    if asked is None:
        return
    when = when_drained(asked, "its last requests")
    also = "".join(f", together with {each.active}" for each in there.companions)
    loads = d.replicas + sum(each.replicas for each in there.companions)
    yield (
        f"{there.active} is scaled to 0 {when}{also}: what runs there for longer ends as its preStop and"
        f" terminationGracePeriodSeconds allow, and a way back after that ({d.command('start')}) loads"
        f" {groups_of(loads)} again"
    )


def _groups(d: Draft, there: Sides) -> Iterator[str]:
    if not there.inactive_groups:
        yield (
            f"{d.edited.called} has 0 groups: the release of its version begins when its owner scales it up, and this"
            f" plan is for as many as {there.active} has, {d.replicas}"
        )


def _not_by_itself(d: Draft) -> Iterator[str]:
    if not releases(d) and not d.asks_for_stable:
        names = " and ".join((d.edited.called, *(each.other_name for each in d.o.companions)))
        yield (
            f"the version of {names} was there at adoption or has been released, so that it is not released by"
            f" itself: apply another one, or start it with {d.command('start')}"
        )


def _fewer(there: Sides) -> Iterator[str]:
    if there.inactive_groups and there.inactive_groups < there.active_groups:
        factor = there.active_groups / there.inactive_groups
        yield (
            f"after the release {groups_of(there.inactive_groups)} of {there.inactive} get all requests, which"
            f" {groups_of(there.active_groups)} of {there.active} get now: {factor:.2f} times as many each; scale"
            f" {there.inactive} to {there.active_groups} before its last step"
        )


def _steps(d: Draft, found: Forecast, there: Sides) -> Iterator[str]:
    standing = d.replicas
    for row in found.rows[:-1]:
        if row.new > standing:
            standing = row.new
            yield (
                f"step {row.step} waits for {row.new} ready groups, and {there.inactive} has {d.replicas}: it goes on"
                " when its owner has scaled it up"
            )
        fewest = row.share * found.given.serving / row.new
        if row.new < standing and fewest > _MUCH:
            yield (
                f"step {row.step} sends {row.share:.0%} of requests to {there.inactive} when {row.new} of its"
                f" {standing} groups {'is' if row.new == 1 else 'are'} ready: each may get up to {fewest:.2f} times"
                " what a group gets at rest; raise the step's replicas, or lower its traffic"
            )


def others(d: Draft) -> Iterator[str]:
    """Services and pools that lead to the active side past the route."""
    facts = d.o.routing
    if facts is None:
        return
    leaders = [leader.metadata.labels for leader in d.stable.leaders]
    for resource, name in unlisted(facts, leaders):
        kind = "Service" if resource == SERVICES else resource.kind
        end = (
            f"lose a group with what runs there each time that {d.name} is scaled down, until it has none"
            if d.capacity.shifts
            else f"have no group when {d.name} is scaled to 0"
            if d.scales_sides
            else "stay there when the roles have changed"
        )
        yield f"{kind} {name} leads to groups of {d.stable.name} too: its clients get no share of a step, and {end}"
