"""The plan of a pair's release: what it is for, what it writes, and what its user may not expect. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from rollout_lws.api import Phase, RolloutStatus, StableRecord
from rollout_lws.api.words import DrainUntil
from rollout_lws.cli.plan import shifted_pair
from rollout_lws.cli.plan.model import Sides, groups_of, when_drained
from rollout_lws.forecast.model import Forecast
from rollout_lws.objects.resources import SERVICES
from rollout_lws.rollout.decision import Verdict
from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.lifecycle import adoption, pair
from rollout_lws.rollout.observation import Observation
from rollout_lws.rollout.reasons import Reason
from rollout_lws.rollout.routing.unmanaged_backends import unlisted
from rollout_lws.rollout.routing.weights import settings
from rollout_lws.targets.version import Version
from rollout_lws.workload.facts import Facts
from rollout_lws.workload.revisions import current_revision

#: Load of a group, relative to normal, above which it is worth a warning.
_MUCH = 1.005


def is_pair(o: Observation) -> bool:
    """Whether the Rollout names two workloads."""
    return o.rollout.spec.counterpart_ref is not None


def named(o: Observation, name: str) -> Facts | None:
    """The workload of this name, whichever side it is."""
    return next((each for each in (o.stable, o.canary) if each is not None and each.name == name), None)


def at_rest(o: Observation, before: Observation, running: Version) -> Observation:
    """``o`` as if the Rollout already managed the pair as it is in ``before``, with ``running`` on its active side. An
    inactive side without groups has as many as the active one: a release begins only when its owner has made some, or
    makes them itself.
    """
    status, active, other = o.rollout.status, o.stable, o.canary
    if active is None:
        return o
    if other is not None and other.workload.replicas == 0:
        o = replace(o, canary=replace(other, workload=other.workload.with_replicas(active.workload.replicas)))
    if status and status.stable and status.stable.workload_uid == active.workload.metadata.uid:
        return o
    inactive = (named(before, other.name) or other) if other is not None else None
    adopted = RolloutStatus(
        phase=Phase.HEALTHY,
        stable=StableRecord(
            template_hash=running.template_hash,
            revision=current_revision(active),
            workload_uid=active.workload.metadata.uid,
        ),
        active=active.name,
        inactive_hash=inactive.workload.version.template_hash if inactive is not None else "",
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
    return adoption.running_version(d)[0].verdict if d.scales_sides else None


def sides(d: Draft, after: Observation) -> Sides | None:
    """The two sides, the inactive one as it stands; None unless both workloads exist."""
    other = after.canary
    if not d.paired or other is None:
        return None
    return Sides(d.name, d.own_size, other.name, other.workload.replicas)


def edited_while_active(d: Draft, before: Observation, after: Observation) -> Iterator[str]:
    """That another template for the active side is no release."""
    active = after.stable
    if d.scales_sides:
        yield from _held(d)
        return
    known = named(before, active.name) if active is not None and is_pair(after) else None
    if active is None or known is None or known.workload.version.template_hash == active.workload.version.template_hash:
        return
    other = f" to {after.canary.called}" if after.canary is not None else " to the other workload"
    yield (
        f"{active.called} is the active side, and gets another template: its own controller renews its groups while"
        f" they get requests, and no step of this plan applies to that; to release a version in steps, apply it{other}"
    )


def _held(d: Draft) -> Iterator[str]:
    if d.own_pending and d.stable.workload.replicas:
        yield (
            f"another template for {d.called}, the active side, starts nothing: it is held, and the Rollout is Stalled"
            f" with reason {Reason.ACTIVE_SIDE_EDITED.value} until that template is restored; to release the version,"
            f" apply it to {d.kind} {d.other_name}"
        )


def cautions(d: Draft, found: Forecast, there: Sides) -> Iterator[str]:
    """Warnings about the release itself, a sentence each."""
    if d.scales_sides:
        yield from _not_by_itself(d)
        yield from shifted_pair.cautions(d, found, there) if d.capacity.shifts else _retired(d, there)
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
        yield (
            f"{d.edited.called} has {groups_of(there.inactive_groups)} and no requests: it is scaled to 0 before"
            " anything is released on it"
        )


def _retired(d: Draft, there: Sides) -> Iterator[str]:
    """What the end does to the side that has lost its requests, and what the way back costs from then on."""
    asked = settings(d)
    if asked is None:
        return
    when = when_drained(asked, "its last requests")
    yield (
        f"{there.active} is scaled to 0 {when}: what runs there for longer ends as its preStop and"
        f" terminationGracePeriodSeconds allow, and a way back after that ({d.command('start')}) loads"
        f" {groups_of(d.replicas)} again"
    )


def _groups(d: Draft, there: Sides) -> Iterator[str]:
    if not there.inactive_groups:
        yield (
            f"{d.edited.called} has 0 groups: the release of its version begins when its owner scales it up, and this"
            f" plan is for as many as {there.active} has, {d.replicas}"
        )


def _not_by_itself(d: Draft) -> Iterator[str]:
    if not releases(d) and not d.asks_for_stable:
        yield (
            f"the version of {d.edited.called} was there at adoption or has been released, so that it is not released"
            f" by itself: apply another one to it, or start it with {d.command('start')}"
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
