"""Scripts that say what a split looks like in objects of custom kinds: what a decision needs of them, and awaits."""

from __future__ import annotations

from collections.abc import Sequence

from rollout_lws.api import Phase
from rollout_lws.rollout.decision import Wanted
from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.routing.selector_pinning import watched
from rollout_lws.rollout.routing.weights import share_of_step
from rollout_lws.traffic.custom.scripts import Evaluation
from rollout_lws.traffic.facts import RoutingFacts
from rollout_lws.traffic.router import Router
from rollout_lws.traffic.routers.custom import evaluations
from rollout_lws.traffic.routers.of_rollout import routers
from rollout_lws.traffic.split import Split, listed


def wanted(d: Draft) -> Wanted:
    """What the next pass has to know of custom kinds and of scripts: results for what this pass wants to write, and, so
    that none is waited for later, for all that the rest of the plan may write.
    """
    facts = d.o.routing
    endpoints, kinds = watched(d)
    needs = facts is not None and bool(facts.names.custom and endpoints)
    return Wanted(
        custom_kinds=d.o.marked.custom.asked if endpoints or kinds else (),
        scripts=needs,
        evaluations=(*d.evaluations, *planned(d)) if needs else (),
    )


def planned(d: Draft) -> tuple[Evaluation, ...]:
    """What has to be evaluated for the steps that are to come, and for all requests, which a promotion may give."""
    facts = d.o.routing
    if facts is None or not (facts.names.custom and facts.synced) or d.o.stable is None:
        return ()
    if d.o.rollout.spec.strategy.style is None or not (d.pending or d.status.phase == Phase.PROGRESSING):
        return ()
    first = d.sub.current_step_index if d.status.phase == Phase.PROGRESSING and d.status.sub is not None else 1
    return of_steps(d, routers(facts), first)


def of_steps(d: Draft, every: Sequence[Router], first: int = 1) -> tuple[Evaluation, ...]:
    """What has to be evaluated for these routers, from step ``first`` of the plan (1-based) to its end."""
    steps = range(max(1, first), len(d.strategy.steps) + 1)
    splits = dict.fromkeys((listed(d.now), *(share_of_step(d, index) for index in steps), Split(100)))
    return tuple(dict.fromkeys(each for split in splits for each in evaluations(every, split)))


def awaited(facts: RoutingFacts, needed: tuple[Evaluation, ...]) -> str:
    """What these results wait for; "" once all of them are there. A failure is one, too."""
    if not facts.names.custom:
        return ""
    if facts.scripts.waits is not None:
        return facts.scripts.waits or "scripts are being read"
    missing = next((each for each in needed if each not in facts.scripts.outcomes), None)
    return f"script {missing.key} is being run" if missing is not None else ""
