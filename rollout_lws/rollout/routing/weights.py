"""Which share of requests each version shall have now: what the step says, or in a promotion how many groups of either
version stay up.
"""

from __future__ import annotations

from dataclasses import replace

from rollout_lws.api import TrafficRecord, TrafficRouting, TrafficWeight
from rollout_lws.capacity.batches import batch, wanted_groups
from rollout_lws.capacity.weights import MOST, sharing_step, weight_in_place, weight_in_promotion, weight_of_step
from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.groups.scaling import leaving, partition_update
from rollout_lws.rollout.routing.versions import stable_side
from rollout_lws.rollout.state import CleaningUp, Detaching, Idle, InSteps, Promoting, RollingBack
from rollout_lws.traffic.split import ALL_STABLE, Split
from rollout_lws.workload.groups import groups
from rollout_lws.workload.hold import resolved_unavailable, users_strategy

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
    if record is not None and record.stable_drained_at is not None:
        ready = sum(group.ready(d.now) for group in groups(d.stable) if 0 <= group.ordinal < d.replicas)
        return d.canary_ready > 0 and ready <= d.canary_ready
    return 0 < d.replicas <= d.canary_ready


def green_grows(d: Draft) -> bool:
    """Whether a blue-green promotion still waits for as many ready groups as the LWS has; until then nothing of stable
    goes.
    """
    regular = [group for group in groups(d.stable) if 0 <= group.ordinal < d.replicas]
    if not d.capacity.full_set or d.canary_ready >= d.replicas:
        return False
    return not any(group.revision == d.sub.new_revision for group in regular)


def _share_in_promotion(d: Draft, split: Split) -> Split:
    """Stable groups go down in windows, so the canary carries at least what it is of all that stay up."""
    if takes_over(d):
        return replace(split, weight=100)
    new = d.canary_ready
    allowed = resolved_unavailable(users_strategy(d.stable.lws, d.keys), d.replicas)
    portion = d.capacity.portion(allowed, new, d.replicas)
    return replace(split, weight=weight_in_promotion(split.weight, new, d.replicas, portion))


def wanted_share(d: Draft) -> Split:
    record = d.status.traffic
    if record is None or not record.step or settings(d) is None:
        return ALL_STABLE
    split = share_of_step(d, record.step)
    if d.capacity.updates_regular:
        return _share_in_place(d, split)
    match d.state:
        case Idle() | InSteps() | Detaching() | CleaningUp() | RollingBack(promotion=False):
            return split
        case Promoting() if green_grows(d):
            return split
        case Promoting() | RollingBack():
            return split if d.capacity.one_workload else _share_in_promotion(d, split)


def _share_in_place(d: Draft, split: Split) -> Split:
    """What the step says once its groups are ready; until then the new version's part of the ready groups, at most what
    the step says. Before groups go back it gives up the part of those that are next.
    """
    back = isinstance(d.state, RollingBack) and not d.state.promotion
    wanted = 0 if back else wanted_groups(d.strategy, max(1, d.sub.current_step_index), d.replicas)
    going = [group for group in leaving(d, wanted) if group.ready(d.now, d.minimum)]
    if back:
        split = replace(split, weight=weight_of((d.status.traffic or TrafficRecord()).desired))
    elif not going and batch(d.new_groups, wanted, d.strategy.failure_threshold, d.now, d.minimum).enough:
        return split
    new = d.new_ready - min(len(going), partition_update(d).allowed)
    ready = sum(group.ready(d.now) for group in stable_side(d).groups)
    if new < 1 or not d.replicas:
        # Of none there is no part.
        return ALL_STABLE
    return replace(split, weight=weight_in_place(split.weight, new, ready, d.replicas))


def does_without(d: Draft) -> bool:
    """Whether the ready groups of stable can carry all requests."""
    ready = sum(group.ready(d.now) for group in stable_side(d).groups)
    return ready * MOST >= d.replicas


def recorded(split: Split) -> TrafficWeight:
    """The split as the status has it."""
    return TrafficWeight(weight=split.weight, matches=len(split.matches) or None)


def told(split: Split) -> str:
    return recorded(split).text


def weight_of(known: TrafficWeight | None) -> int:
    """Percent of requests for the new version; 0 before any was given."""
    return known.weight if known is not None else 0


def carries(d: Draft) -> bool:
    """Whether requests go to the new version now, as far as routers have been told."""
    record = d.status.traffic
    nothing = (None, recorded(ALL_STABLE))
    return record is not None and not (record.desired in nothing and record.applied in nothing)
