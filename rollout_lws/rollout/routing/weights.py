"""The wanted traffic weight: that of the step, or during a promotion by how many groups of each version stay up."""

from __future__ import annotations

from dataclasses import replace

from rollout_lws.api import TrafficRecord, TrafficRouting, TrafficWeight
from rollout_lws.capacity.batches import batch
from rollout_lws.capacity.weights import (
    MOST,
    sharing_step,
    weight_in_place,
    weight_in_promotion,
    weight_of_groups,
    weight_of_step,
)
from rollout_lws.objects.scaling import scaled
from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.groups.scaling import leaving, partition_update
from rollout_lws.rollout.groups.shifting import goes_back, margin, next_numbers, ready_groups
from rollout_lws.rollout.routing.versions import stable_endpoints
from rollout_lws.rollout.state import CleaningUp, Detaching, Idle, InSteps, Promoting, RollingBack
from rollout_lws.traffic.split import ALL_STABLE, Split
from rollout_lws.workload.draining import draining
from rollout_lws.workload.groups import groups
from rollout_lws.workload.hold import resolved_unavailable, users_strategy

#: Grace period and drain time if the Rollout no longer has any.
DEFAULT_GRACE_SECONDS, DEFAULT_DRAIN_SECONDS = (
    TrafficRouting.model_fields[name].default for name in ("grace_period_seconds", "drain_seconds")
)


def settings(d: Draft) -> TrafficRouting | None:
    """The Rollout's traffic settings; None if it routes no traffic."""
    style = d.o.rollout.spec.strategy.style
    return style.traffic_routings[0] if style and style.traffic_routings else None


def share_of_step(d: Draft, index: int) -> Split:
    """The split of step ``index`` (1-based); a step without traffic and matches removes the canary's weight."""
    index = max(1, min(index, len(d.strategy.steps)))
    step = sharing_step(d.strategy, index)
    beside = d.stable.workload.replicas if d.paired and not d.capacity.shifts else None
    weight = weight_of_step(d.strategy, index, d.replicas, beside, bounded=d.capacity.makes_groups)
    return Split(weight, step.matches, step.request_header_modifier)


def takes_over(d: Draft) -> bool:
    """True if the canary has enough ready groups to carry all requests while stable groups are updated. A canary that
    already carries them keeps them unless it becomes the smaller version, and has not enough for all.
    """
    record, enough = d.status.traffic, groups_for_all(d) if d.capacity.swaps else d.replicas
    if record is not None and record.stable_drained_at is not None:
        ready = sum(group.ready(d.now) for group in groups(d.stable) if 0 <= group.ordinal < d.replicas)
        return 0 < d.canary_ready >= min(ready, enough)
    return 0 < enough <= d.canary_ready


def green_grows(d: Draft) -> bool:
    """True while a blue-green promotion waits for R ready canary groups; until then no stable group goes."""
    regular = [group for group in groups(d.stable) if 0 <= group.ordinal < d.replicas]
    if not d.capacity.full_set or d.canary_ready >= d.replicas:
        return False
    return not any(group.revision == d.sub.new_revision for group in regular)


def _share_in_promotion(d: Draft, split: Split) -> Split:
    """Stable groups go down in windows, so the canary carries at least its part of all groups that stay up."""
    if takes_over(d):
        return replace(split, weight=100)
    if not stable_endpoints(d).selects:
        # The canary's groups have their part of the requests by the stable version's Service.
        return replace(split, weight=0)
    new = d.canary_ready
    allowed = resolved_unavailable(users_strategy(d.stable.workload, d.keys), d.replicas)
    batch_size = d.capacity.batch_size(allowed, new, d.replicas)
    return replace(split, weight=weight_in_promotion(split.weight, new, d.replicas, batch_size))


def wanted_split(d: Draft) -> Split:
    record = d.status.traffic
    gives = d.o.stable is not None and (d.capacity.shifts or goes_back(d))
    if record is None or not record.step:
        return ALL_STABLE
    if settings(d) is None:
        # The few groups that are left could not carry all, whatever the plan names by now.
        return Split(weight_of(record.desired)) if gives and not does_without(d) else ALL_STABLE
    split = share_of_step(d, record.step)
    if gives:
        return _share_in_shift(d, split)
    if d.capacity.swaps:
        return replace(split, weight=100, matches=()) if isinstance(d.state, Promoting) else split
    if d.capacity.takes_places:
        return _share_in_place(d, split)
    match d.state:
        case Idle() | InSteps() | Detaching() | CleaningUp() | RollingBack(promotion=False):
            return split
        case Promoting() if green_grows(d):
            return split
        case Promoting() | RollingBack():
            return split if d.capacity.one_workload else _share_in_promotion(d, split)


def _share_in_place(d: Draft, split: Split) -> Split:
    """The step's weight once its groups are ready; until then the new version's part of the ready groups, at most the
    step's weight. A rollback first removes the part of the next groups.
    """
    back = isinstance(d.state, RollingBack) and not d.state.promotion
    wanted = 0 if back else d.wanted(max(1, d.sub.current_step_index))
    going = [group for group in leaving(d, wanted) if group.ready(d.now, d.minimum)]
    if back:
        split = replace(split, weight=weight_of((d.status.traffic or TrafficRecord()).desired))
    elif not going and len(stable_endpoints(d).groups) <= d.replicas - wanted and _is_enough(d, wanted):
        return split
    own = partition_update(d)
    new = d.new_ready - min(len(going), own.allowed)
    if new < 1:
        # The last groups keep their part until they may go: without them too few others may carry all requests.
        new = d.new_ready - min(len(going), max(0, own.may_go_back(d.stable_revision)))
    ready = sum(group.ready(d.now) for group in stable_endpoints(d).groups)
    if new < 1 or not d.replicas:
        # No new group, no weight.
        return ALL_STABLE
    return replace(split, weight=weight_in_place(split.weight, new, ready, d.replicas))


def _is_enough(d: Draft, wanted: int) -> bool:
    """True if so many groups of the new version are ready, less those that may fail. Where groups come one after the
    other, these may still have to come, and the step's weight may need them: it is not wanted before all were asked
    for.
    """
    return batch(d.new_groups, wanted, d.strategy.failure_threshold, d.now, d.minimum).enough


def _share_in_shift(d: Draft, split: Split) -> Split:
    """The step's weight once its groups are ready, and all requests in the hand-over once there are enough; until then
    the new version's part of the groups that stay, before those that go lose their requests.
    """
    if isinstance(d.state, CleaningUp):
        return split
    numbers = next_numbers(d)
    stable, new = ready_groups(d, numbers)
    match d.state:
        case RollingBack():
            split = replace(split, weight=weight_of((d.status.traffic or TrafficRecord()).desired))
        case Promoting():
            split = replace(split, weight=100, matches=())
            if d.canary_ready >= groups_for_all(d):
                return split
        case InSteps() | Idle() | Detaching():
            wanted = d.wanted(max(1, d.sub.current_step_index))
            enough = numbers.new >= wanted and _is_enough(d, wanted)
            if stable < d.replicas - (wanted if d.capacity.shifts else 0):
                # The stable version has fewer groups than the step leaves it, and the new one has theirs.
                split = replace(split, weight=max(split.weight, 100 * new // max(1, new + stable)))
            elif enough and new:
                return replace(split, weight=weight_of_groups(split.weight, new, stable, d.replicas))
    return replace(split, weight=weight_in_place(split.weight, new, stable, d.replicas)) if new else ALL_STABLE


def groups_for_all(d: Draft) -> int:
    """Ready groups that the new version needs to get all requests: R, less the tolerated ones; in a shift as many as
    there is room for beside the last group of the stable one.
    """
    style = d.o.rollout.spec.strategy.style
    threshold = style.failure_threshold if style is not None else None
    least = d.replicas - (scaled(threshold, d.replicas) if threshold else 0)
    return min(least, max(1, d.replicas + margin(d).extra - 1)) if d.capacity.shifts else least


def short_of_all(d: Draft, index: int) -> str:
    """Why step ``index`` (1-based) never gets all requests, for which it asks; "" if it may, or asks for less."""
    # Any writer of the status may put any number there.
    index = max(1, min(index, len(d.strategy.steps)))
    groups = d.wanted(index)
    asks = d.strategy.steps[index - 1].traffic and share_of_step(d, index).weight == 100
    if not asks or groups >= groups_for_all(d):
        return ""
    return (
        f"step {index} sends all requests to {groups} of {d.replicas} groups, which cannot carry them: raise its"
        " replicas to 100%, or lower its traffic"
    )


def does_without(d: Draft) -> bool:
    """True if the ready stable groups can carry all requests, without those that were taken out of their Service."""
    every = stable_endpoints(d).groups
    ready = sum(group.ready(d.now) and draining(group.leader, d.keys) is None for group in every)
    return ready * MOST >= d.replicas


def recorded(split: Split) -> TrafficWeight:
    """The split as a status record."""
    return TrafficWeight(weight=split.weight, matches=len(split.matches) or None)


def told(split: Split) -> str:
    return recorded(split).text


def weight_of(known: TrafficWeight | None) -> int:
    """Percentage of requests for the new version; 0 if none was recorded."""
    return known.weight if known is not None else 0


def carries(d: Draft) -> bool:
    """True if requests go to the new version, as far as routers were told."""
    record = d.status.traffic
    nothing = (None, recorded(ALL_STABLE))
    return record is not None and not (record.desired in nothing and record.applied in nothing)
