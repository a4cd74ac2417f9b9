"""How many groups each side of a pair may have next, while a release takes them from one side as the other gets some.

The numbers follow from what is there alone, so that a status which was wiped or forged takes no group away.
"""

from __future__ import annotations

from typing import assert_never

from rollout_lws.capacity.shifted_pair import Margin, Shift, Side, shift
from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.state import CleaningUp, Detaching, Idle, InSteps, Promoting, RollingBack
from rollout_lws.workload.facts import Facts
from rollout_lws.workload.groups import Group, groups


def goes_back(d: Draft) -> bool:
    """True if the active side has to get groups back before it can have all requests."""
    if not d.scales_sides or d.o.stable is None:
        return False
    return d.capacity.shifts or d.o.stable.workload.replicas < d.own_size


def margin(d: Draft) -> Margin:
    """By how much the groups of both sides may differ from R; of a plan without ``shift`` the old ones all stay."""
    asked = d.strategy.shifting
    if asked is None:
        return Margin(d.replicas, 0)
    return Margin.of(asked.max_extra_groups, asked.max_unavailable_groups, d.replicas)


def next_numbers(d: Draft) -> Shift:
    """The numbers of groups that both sides may have next in the release's state."""
    replicas = d.replicas
    match d.state:
        case InSteps() | Idle() | Detaching():
            wanted = d.wanted(max(1, min(d.sub.current_step_index, len(d.strategy.steps))))
        case Promoting() | CleaningUp():
            wanted = replicas
        case RollingBack():
            return _shift(d, replicas, 0)
        case unknown:
            assert_never(unknown)
    return _shift(d, max(1, replicas - wanted), wanted)


def unknown_pods(d: Draft) -> str | None:
    """Why it is not known which pods the sides have; "" before they are listed, None once they are."""
    return next((d.o.unknown_pods[name] for name in (d.name, d.other_name) if name in d.o.unknown_pods), None)


def _shift(d: Draft, stable_to: int, new_to: int) -> Shift:
    stable, new = _side(d, d.o.stable), _side(d, d.o.canary)
    if unknown_pods(d) is not None:
        return Shift(stable.asked, new.asked)
    return shift(margin(d), d.replicas, stable, new, stable_to=stable_to, new_to=new_to)


def _side(d: Draft, facts: Facts | None) -> Side:
    if facts is None:
        return Side(0)
    # The new version's groups count for R from when they have been ready for minReadySeconds.
    released = {each.uid for each in d.canary_groups}
    minimum = d.minimum if facts is d.o.canary else 0.0
    every = {
        group.ordinal: (facts is d.o.stable or group.uid in released) and group.ready(d.now, minimum)
        for group in groups(facts)
    }
    # Workers terminate after their leader is gone.
    for pod in facts.pods:
        if not pod.is_leader and pod.group_index.isdigit():
            every.setdefault(int(pod.group_index), False)
    return Side(facts.workload.replicas, tuple(sorted(every.items())))


def ready_groups(d: Draft, numbers: Shift) -> tuple[int, int]:
    """Ready groups of the stable and of the new version that stay with these numbers."""
    return _side(d, d.o.stable).ready(numbers.stable), _side(d, d.o.canary).ready(numbers.new)


def remaining(facts: Facts) -> tuple[int, ...]:
    """Ordinals of the groups that terminate since their side was scaled down."""
    pods = (*facts.leaders, *facts.pods)
    found = {int(pod.group_index) for pod in pods if pod.group_index.isdigit()}
    return tuple(sorted(ordinal for ordinal in found if ordinal >= facts.workload.replicas))


def going(facts: Facts, number: int) -> tuple[Group, ...]:
    """The groups that go if the side is scaled down to ``number``, from the highest."""
    asked = facts.workload.replicas
    return tuple(group for group in reversed(groups(facts)) if number <= group.ordinal < asked)
