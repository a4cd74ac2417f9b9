"""The plan of a release after which the user's workload and the one that releases make have changed roles: what its
user may not expect. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator

from rollout_lws.capacity.table import strategy_of_plan
from rollout_lws.cli.durations import short
from rollout_lws.cli.plan import shifted_sides
from rollout_lws.cli.plan.model import Sides, groups_of, when_drained
from rollout_lws.forecast.model import Forecast
from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.routing.weights import settings


def sides(d: Draft) -> Sides:
    """The workload that serves, and the one that a release makes or scales from 0."""
    groups = d.o.canary.workload.replicas if d.o.canary is not None else 0
    made = d.name if d.swapped else d.other_name
    plan = d.o.rollout.spec
    style = None if plan.swaps else plan.strategy.style
    then = strategy_of_plan(style).title if style is not None else ""
    return Sides(d.name, d.own_size, d.other_name, groups, made=made, then=then)


def cautions(d: Draft, found: Forecast, there: Sides) -> Iterator[str]:
    """Warnings about the release, a sentence each."""
    if found.given.kept:
        yield (
            f"{groups_of(found.given.kept)} of {there.inactive} run this version still, and get all requests at once:"
            " there are no steps, and no gate but those of the release"
        )
    elif there.inactive_groups and not there.is_back:
        yield (
            f"{d.kind} {there.inactive} has {groups_of(there.inactive_groups)} and no requests: it is deleted before"
            " anything is released"
        )
    yield from shifted_sides.cautions(d, found, there) if found.strategy.shifts else _goes(d, there)
    if not there.is_back:
        yield (
            f"after the release {there.inactive} serves in place of {there.active}, which has no groups and keeps the"
            f" template that you edit: scale the Rollout instead of the {d.kind}"
        )


def _goes(d: Draft, there: Sides) -> Iterator[str]:
    """What becomes of the one that has the requests."""
    asked, name, stays = settings(d), there.active, d.strategy.keeps_seconds
    if stays:
        yield (
            f"the groups of {name} stay {short(stays)} after the release, without requests, and hold their"
            f" accelerators: as long as they do, {d.command('undo')} moves all requests back at once"
        )
        return
    when = when_drained(asked, "its last requests") if asked is not None else "when the other one is ready"
    goes = "deleted" if there.is_back else "scaled to 0"
    yield (
        f"{name} is {goes} {when}: what runs there {'for longer ' if asked is not None else ''}ends as its preStop and"
        f" terminationGracePeriodSeconds allow, and a way back after that is another release, which loads"
        f" {groups_of(d.replicas)} again"
    )
