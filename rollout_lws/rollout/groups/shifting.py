"""How many groups each of two workloads may have next, while a release takes them from one as the other gets some.

The numbers follow from what is there, the step and the size of the release, so that a status which was wiped or forged
takes no group away.
"""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from rollout_lws.api import Phase
from rollout_lws.capacity.shifted_pair import Margin, Shift, Side, shift
from rollout_lws.objects.scaling import scaled
from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.groups.evictions import evicted_before
from rollout_lws.rollout.state import CleaningUp, Detaching, Idle, InSteps, Promoting, RollingBack
from rollout_lws.workload.draining import draining
from rollout_lws.workload.facts import Facts
from rollout_lws.workload.groups import Group, groups
from rollout_lws.workload.trouble import LOADING, troubles


def goes_back(d: Draft) -> bool:
    """True if the active side has to get groups back before it can have all requests."""
    if not d.scales_sides or d.o.stable is None:
        return False
    # If the plan shifts no more, the mark stays until the groups are there again and have the requests.
    return d.capacity.shifts or d.keys.replicas in d.o.stable.workload.metadata.annotations


def margin(d: Draft) -> Margin:
    """By how much the groups of both sides may differ from R. Of a plan without ``shift`` the old ones all stay, and
    so they do of a workload that is being deleted: its controller scales it no more.
    """
    style = d.o.rollout.spec.strategy.style
    asked = style.shifting if style is not None else None
    if asked is None or (not d.paired and any(map(_is_going, d.o.workloads))):
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
    stays = d.o.stable is not None and _is_going(d.o.stable)
    return _shift(d, replicas if stays else max(1, replicas - wanted), wanted)


def _is_going(facts: Facts) -> bool:
    return facts.workload.metadata.terminating


def unknown_pods(d: Draft) -> str | None:
    """Why it is not known which pods the sides have; "" before they are listed, None once they are."""
    return next((d.o.unknown_pods[name] for name in (d.name, d.other_name) if name in d.o.unknown_pods), None)


def _shift(d: Draft, stable_to: int, new_to: int) -> Shift:
    stable, new = _side(d, d.o.stable), _side(d, d.o.canary)
    if unknown_pods(d) is not None:
        return Shift(stable.asked, new.asked)
    allowed, tolerated = margin(d), _tolerated(d, new_to) if new_to else 0
    # Groups of the old version that will hardly become ready did not serve before the release, either.
    broken = _broken(d, d.o.stable, d.stable_revision)
    unavailable = min(max(allowed.unavailable, broken) + tolerated, max(0, d.replicas - 1))
    allowed = replace(allowed, unavailable=unavailable)
    return shift(allowed, d.replicas, stable, new, stable_to=stable_to, new_to=new_to)


def _tolerated(d: Draft, wanted: int) -> int:
    """Groups of the new version that may fail, as far as some will hardly become ready."""
    threshold = d.strategy.failure_threshold
    return min(scaled(threshold, wanted), _broken(d, d.o.canary, d.new_revision)) if threshold is not None else 0


def _broken(d: Draft, facts: Facts | None, revision: str) -> int:
    """Groups of this revision that will hardly become ready by waiting."""
    found = troubles(facts, revision, d.now, d.minimum, evicted_before(d)) if facts is not None else ()
    return sum(each.severity > LOADING for each in found)


def _side(d: Draft, facts: Facts | None) -> Side:
    if facts is None:
        # What is left of one that a release has made has its accelerators until it is gone.
        left = {int(pod.group_index) for pod in d.o.pods_left if pod.group_index.isdigit()}
        return Side(0, tuple((ordinal, False) for ordinal in sorted(left)))
    # The new version's groups count for R from when they have been ready for minReadySeconds. While a release goes back
    # those that have requests count, although another version may have been applied to their workload.
    back = isinstance(d.state, RollingBack)
    released = {each.uid for each in (groups(facts) if back else d.canary_groups)}
    minimum = d.minimum if facts is d.o.canary else 0.0
    every = {
        group.ordinal: (facts is d.o.stable or group.uid in released) and group.ready(d.now, minimum)
        for group in groups(facts)
    }
    # Workers terminate after their leader is gone.
    for pod in facts.pods:
        if not pod.is_leader and pod.group_index.isdigit():
            every.setdefault(int(pod.group_index), False)
    asked = facts.workload.replicas
    # A group that a release takes has lost its label first.
    lowered = (each for each in groups(facts) if each.ordinal >= asked and draining(each.leader, d.keys) is None)
    lowered_from = max((group.ordinal + 1 for group in lowered), default=0)
    return Side(asked, tuple(sorted(every.items())), lowered_from)


def ready_groups(d: Draft, numbers: Shift) -> tuple[int, int]:
    """Ready groups of the stable and of the new version that stay with these numbers."""
    return _side(d, d.o.stable).ready(numbers.stable), _side(d, d.o.canary).ready(numbers.new)


def room_for_stable(d: Draft) -> int:
    """How many groups the stable side may get beside those of the other one that still go. In a release none before its
    pods are listed, which may be all that is left of it.
    """
    if d.status.phase == Phase.PROGRESSING and d.other_name in d.o.unknown_pods:
        return 0
    both = _side(d, d.o.stable).standing + _side(d, d.o.canary).standing
    return max(0, d.replicas + margin(d).extra - both)


def remaining(facts: Facts) -> tuple[int, ...]:
    """Ordinals of the groups that terminate since their side was scaled down."""
    pods = (*facts.leaders, *facts.pods)
    found = {int(pod.group_index) for pod in pods if pod.group_index.isdigit()}
    return tuple(sorted(ordinal for ordinal in found if ordinal >= facts.workload.replicas))


def going(facts: Facts, number: int) -> tuple[Group, ...]:
    """The groups that go if the side is scaled down to ``number``, from the highest."""
    asked = facts.workload.replicas
    return tuple(group for group in reversed(groups(facts)) if number <= group.ordinal < asked)
