"""Which share of requests each version shall have now, and which it can carry: a matter of readiness alone.

What is wanted comes from the step, or in a promotion from how many groups of either version stay up; what is safe from
whether a side has ready groups that routers can reach.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from rollout_lws.api import Capacity, TrafficRecord, TrafficRouting
from rollout_lws.objects import scaling
from rollout_lws.objects.resources import INFERENCE_POOLS
from rollout_lws.release.batches import batch, portion_beside, wanted_groups
from rollout_lws.release.weights import MOST, sharing_step, weight_in_place, weight_in_promotion, weight_of_step
from rollout_lws.rollout.capacity import leaving, renewal
from rollout_lws.rollout.doubling import doubled
from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.reasons import Task
from rollout_lws.rollout.sides import Side, new_side, stable_side
from rollout_lws.traffic import pools, services
from rollout_lws.traffic.facts import RoutingFacts
from rollout_lws.traffic.pickers import unanswered
from rollout_lws.traffic.routers import routers
from rollout_lws.traffic.split import ALL_STABLE, Split
from rollout_lws.workload.groups import groups
from rollout_lws.workload.hold import resolved_unavailable, standing_surge, users_strategy

#: A side that stopped serving gets its share back after so many seconds, twice as many each time, at most the second.
SHORTEST_BAN_SECONDS, LONGEST_BAN_SECONDS = 10, 300
#: What routers and running requests get where the Rollout says nothing any more.
DEFAULT_GRACE_SECONDS, DEFAULT_DRAIN_SECONDS = (
    TrafficRouting.model_fields[name].default for name in ("grace_period_seconds", "drain_seconds")
)


def settings(d: Draft) -> TrafficRouting | None:
    """The Rollout's own words on traffic, None when it leaves traffic alone."""
    style = d.o.rollout.spec.strategy.style
    return style.traffic_routings[0] if style and style.traffic_routings else None


def share_of_step(d: Draft, index: int) -> Split:
    """What step ``index`` (1-based) says; one with neither traffic nor matches takes the new version's share away."""
    index = max(1, min(index, len(d.strategy.steps)))
    step = sharing_step(d.strategy, index)
    return Split(weight_of_step(d.strategy, index, d.replicas), step.matches, step.request_header_modifier)


def takes_over(d: Draft) -> bool:
    """Whether the canary has ready groups enough to carry all requests while stable groups are renewed; one that has
    them already keeps them for as long as it is not the smaller side.
    """
    record = d.status.traffic
    if record is not None and record.emptied is not None:
        ready = sum(group.ready(d.now) for group in groups(d.stable) if 0 <= group.ordinal < d.replicas)
        return d.canary_ready > 0 and ready <= d.canary_ready
    return 0 < d.replicas <= d.canary_ready


def green_grows(d: Draft) -> bool:
    """Whether a blue-green promotion still waits for as many ready groups as the LWS has; until then nothing of stable
    goes.
    """
    regular = [group for group in groups(d.stable) if 0 <= group.ordinal < d.replicas]
    if d.o.rollout.spec.strategy.blue_green is None or d.canary_ready >= d.replicas:
        return False
    return not any(group.revision == d.sub.new_revision for group in regular)


def _share_in_promotion(d: Draft, split: Split) -> Split:
    """Stable groups go down in windows, so the canary carries at least what it is of all that stay up."""
    if takes_over(d):
        return replace(split, weight=100)
    new = d.canary_ready
    allowed = resolved_unavailable(users_strategy(d.stable.lws, d.keys), d.replicas)
    portion = portion_beside(allowed, new, d.replicas)
    return replace(split, weight=weight_in_promotion(split.weight, new, d.replicas, portion))


def wanted_share(d: Draft) -> Split:
    record = d.status.traffic
    if record is None or not record.step or settings(d) is None:
        return ALL_STABLE
    split, ending = share_of_step(d, record.step), d.status.finalising
    if d.capacity is Capacity.IN_PLACE:
        return _share_in_place(d, split)
    if d.one_workload or ending is None or ending.task not in (Task.PROMOTE, Task.GO_BACK):
        return split
    if ending.task == Task.PROMOTE and green_grows(d):
        return split
    return _share_in_promotion(d, split)


def _share_in_place(d: Draft, split: Split) -> Split:
    """What the step says once its groups are ready; until then the new version's part of the ready groups, at most what
    the step says. Before groups go back it gives up the part of those that are next.
    """
    ending = d.status.finalising
    back = ending is not None and ending.task == Task.TAKE_BACK
    wanted = 0 if back else wanted_groups(d.strategy, max(1, d.sub.current_step_index), d.replicas)
    going = [group for group in leaving(d, wanted) if group.ready(d.now, d.minimum)]
    if back:
        split = replace(split, weight=weight_of((d.status.traffic or TrafficRecord()).desired))
    elif not going and batch(d.new_groups, wanted, d.strategy.failure_threshold, d.now, d.minimum).enough:
        return split
    new = d.new_ready - min(len(going), renewal(d).allowed)
    ready = sum(group.ready(d.now) for group in stable_side(d).groups)
    if new < 1 or not d.replicas:
        # Of none there is no part.
        return ALL_STABLE
    return replace(split, weight=weight_in_place(split.weight, new, ready, d.replicas))


def does_without(d: Draft) -> bool:
    """Whether the ready groups of stable can carry all requests."""
    ready = sum(group.ready(d.now) for group in stable_side(d).groups)
    return ready * MOST >= d.replicas


def told(split: Split) -> str:
    count = len(split.matches)
    matched = f" and {count} match{'es' if count > 1 else ''}" if count else ""
    return f"{split.weight}%{matched}"


# Which side serves


def stable_serves(d: Draft, facts: RoutingFacts) -> bool:
    return behind_stable(d, facts, stable_side(d))


def behind_stable(d: Draft, facts: RoutingFacts, side: Side) -> bool:
    """Whether a side answers those who are sent to the stable version."""
    pool = facts.names.stable_pool
    return side.serves(d.now, _reached(side, facts, facts.names.service, pool)) and not unanswered(facts, pool)


def new_serves(d: Draft, facts: RoutingFacts) -> bool:
    side = new_side(d)
    pool = facts.names.canary_pool
    return side.serves(d.now, _reached(side, facts, facts.canary_service_name, pool)) and not unanswered(facts, pool)


def _reached(side: Side, facts: RoutingFacts, service: str, pool: str | None) -> frozenset[str]:
    """Names of the pods that routers can send requests to: a pool's picker goes by the pods themselves."""
    if not pool:
        return facts.endpoints.get(service, frozenset())
    live = facts.find(INFERENCE_POOLS, pool)
    if live is None:
        return frozenset()
    return frozenset(
        pod.metadata.name
        for pod in side.pods
        if pod.is_leader
        and pod.ready_since
        and not pod.metadata.terminating
        and pools.selects(live, pod.metadata.labels)
    )


def _not_yet(d: Draft) -> str:
    """Why a new side that has no share stays without it, "" when it may have one.

    Routers hear of its first endpoint and of its share by different ways, so they get their grace in between; one that
    stopped serving before has to show for longer that it serves. Groups on their way out are still known to routers.
    """
    asked, flaps, side = settings(d), d.status.flaps or 0, new_side(d)
    if asked is None or not side.exists:
        return ""
    kept = _kept(d)
    going = [group.index for group in side.groups if group.ordinal >= kept]
    if going:
        return f"the new version gets its share when group {', '.join(going)} of {side.name} is gone"
    seconds = float(asked.grace_period_seconds)
    if flaps:
        seconds = max(seconds, doubled(max(d.minimum, SHORTEST_BAN_SECONDS), flaps - 1, LONGEST_BAN_SECONDS))
    ready = side.ready_since
    if not ready or d.wake_in(min(ready), seconds):
        return ""
    again = " again, as it stopped serving before" if flaps else ""
    return f"the new version gets its share{again} at {min(ready) + timedelta(seconds=seconds):%H:%M:%S} UTC"


def _kept(d: Draft) -> int:
    """The ordinal from which on groups of the new version's LWS are on their way out."""
    if d.one_workload:
        return d.replicas + standing_surge(d.stable.lws, d.keys)
    return d.o.canary.lws.spec.replicas if d.o.canary is not None else 0


def answers_for_stable(d: Draft, facts: RoutingFacts) -> bool:
    """Whether the new version answers those as well who use the stable version's Service, past every router: from when
    no group of stable is ready until one has been for a while, provided that the new one has carried requests before.
    """
    record = d.status.traffic or TrafficRecord()
    new = new_side(d)
    if not d.new_ready or record.since is None:
        return False
    ready = stable_side(d).ready_since
    if not ready or record.emptied is not None:
        # After a promotion nothing has failed, so nothing has to prove itself.
        return not ready
    live = facts.service
    answers = live is not None and new.selects.items() <= services.SELECTING.selector(live).items()
    return answers and not d.wake_in(min(ready), max(d.minimum, SHORTEST_BAN_SECONDS))


def _not_back_yet(d: Draft, record: TrafficRecord) -> str:
    """Why a stable side that stopped serving, or was renewed as a whole, stays without its share for now, "" when it
    may have it.
    """
    without, asked = weight_of(record.applied) == 100 and weight_of(record.desired) < 100, settings(d)
    ready = stable_side(d).ready_since if without else []
    seconds, why = max(d.minimum, SHORTEST_BAN_SECONDS), ", as it stopped serving before"
    if record.emptied is not None:
        # Nothing has failed: routers have to hear of its new groups, no more.
        seconds, why = asked.grace_period_seconds if asked else DEFAULT_GRACE_SECONDS, ""
    if not ready or d.wake_in(min(ready), seconds):
        return ""
    back = min(ready) + timedelta(seconds=seconds)
    return f"the stable version gets its share back at {back:%H:%M:%S} UTC{why}"


def groups_for_all(d: Draft) -> int:
    """Ready groups of the new version without which it never gets all requests: R, less the tolerated ones."""
    threshold = d.strategy.failure_threshold
    return d.replicas - (scaling.scaled(threshold, d.replicas) if threshold else 0)


def safe(d: Draft, facts: RoutingFacts, split: Split) -> tuple[Split, str]:
    """``split`` as far as both sides can carry it, and why it is not more."""
    record = d.status.traffic or TrafficRecord()
    new, stable = new_serves(d, facts), stable_serves(d, facts)
    if split.reaches_new and not new:
        if not stable:
            return _as_written(split, facts), "neither version has a ready endpoint: shares stay as they are"
        refuses = unanswered(facts, facts.names.canary_pool)
        return ALL_STABLE, refuses or f"{_new_side(facts)} has no ready endpoint: its share waits"
    if split.reaches_new and stable and not any(each.reaches_new for each in routers(facts)):
        waits = _not_yet(d)
        if waits:
            return ALL_STABLE, waits
    if split.weight < 100 and new and not stable and d.o.stable is not None and record.since is not None:
        refuses = unanswered(facts, facts.names.stable_pool)
        why = (
            f"{refuses or f'{_stable_side(facts)} has no ready endpoint'}: all requests go to the new version"
            if record.emptied is None or refuses
            else f"all requests stay at the canary until {_stable_side(facts)} leads to renewed groups"
        )
        return replace(split, weight=100), why
    if split.weight < 100 and new and stable:
        waits = _not_back_yet(d, record)
        if waits:
            return replace(split, weight=100), waits
    if split.weight == 100 and stable:
        needed = groups_for_all(d)
        if d.new_ready < needed:
            return _standing(split, record), f"100% needs {needed} ready groups of the new version"
    return split, ""


def _stable_side(facts: RoutingFacts) -> str:
    pool = facts.names.stable_pool
    return f"InferencePool {pool}" if pool else f"Service {facts.names.service}"


def _new_side(facts: RoutingFacts) -> str:
    pool = facts.names.canary_pool
    return f"InferencePool {pool}" if pool else f"Service {facts.canary_service_name}"


def _standing(split: Split, record: TrafficRecord) -> Split:
    """``split`` with the weight that was accepted last."""
    return replace(split, weight=weight_of(record.applied))


def _as_written(split: Split, facts: RoutingFacts) -> Split:
    """``split`` with the weight that routes have, whether that is accepted yet or not; nothing where none gives the new
    version a share.
    """
    standing = [each.weight for each in routers(facts) if each.reaches_new]
    return replace(split, weight=min(standing)) if standing else ALL_STABLE


def weight_of(told: str | None) -> int:
    """The percentage that ``told`` says, 0 where it says none."""
    return scaling.whole_number((told or "").partition("%")[0]) or 0


def carries(d: Draft) -> bool:
    """Whether requests go to the new version now, as far as routers have been told."""
    record = d.status.traffic
    nothing = (None, told(ALL_STABLE))
    return record is not None and not (record.desired in nothing and record.applied in nothing)
