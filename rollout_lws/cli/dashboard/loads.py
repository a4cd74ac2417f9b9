"""How many groups have loaded a model for a release, and how many are yet to. Pure."""

from __future__ import annotations

from typing import Any

from rollout_lws.cli.get.plan import PlannedStep, accompanying, strategy_of
from rollout_lws.cli.releases import Release
from rollout_lws.cli.rollouts import releasing
from rollout_lws.cli.sides import goes_back, has_promoted, have_turned, roles_of
from rollout_lws.workload.facts import Facts
from rollout_lws.workload.groups import groups

Object = dict[str, Any]


def loads(shown: Release, steps: tuple[PlannedStep, ...]) -> dict[str, int]:
    """``done`` groups of the new version are ready now, ``toCome`` ones load if the release goes on as planned; on a
    way back those of the old one that it needs again. Nothing is told once the new version serves everywhere, but of
    those that take the other ones' room.
    """
    rollout, strategy = shown.rollout, strategy_of(shown.rollout)
    ending = (rollout.get("status") or {}).get("finalising") or {}
    if not releasing(rollout) or not strategy.makes_groups or shown.edited is None or shown.stable is None:
        return {"done": 0, "toCome": 0}
    if have_turned(rollout):
        ready = _ready(shown.stable)
        return {"done": sum(map(_ready, shown.of_active)), "toCome": max(0, shown.full_size - ready)}
    if has_promoted(rollout):
        return {"done": 0, "toCome": 0}
    full, (own, beside) = shown.full_size, _ready_new(shown, shown.stable)
    of_companions = sum(_ready(other) for _, other in shown.companions if other is not None)
    if goes_back(rollout):
        to_come = full - _ready(shown.stable, shown.stable_revision)
    elif strategy.swaps:
        to_come = full - beside + sum(accompanying(rollout, full, full)) - of_companions
    else:
        # What steps make beside the own groups, which the promotion then renews.
        most = full if strategy.full_set else max((step.groups for step in steps), default=0)
        adds = strategy.full_set or not ending
        to_come = full - own + (max(0, strategy.extra(most) - beside) if adds else 0)
    is_over = ending.get("task") == "CleanUp"
    return {"done": own + beside + of_companions, "toCome": 0 if is_over else max(0, to_come)}


def _ready_new(shown: Release, stable: Facts) -> tuple[int, int]:
    """Ready groups of the new version: in places of the workload's own, and beside them."""
    old, beside = shown.stable_revision, _ready(shown.canary) if shown.canary is not None else 0
    if roles_of(shown.rollout) is not None or not old:
        return 0, beside
    new = [each for each in groups(stable) if each.revision != old and each.ready_since is not None]
    own = sum(each.ordinal < stable.workload.replicas for each in new)
    return own, beside + len(new) - own


def _ready(facts: Facts, revision: str = "") -> int:
    """Groups that are ready, only those of this revision unless it is ""."""
    found = groups(facts)
    return sum(each.ready_since is not None and (not revision or each.revision == revision) for each in found)
