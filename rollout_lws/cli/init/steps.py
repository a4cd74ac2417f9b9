"""Proposes steps for a number of groups: small at first, never more than half as many extra groups unless a full second
set is what the capacity is for, and traffic weights that the groups can carry.
"""

from __future__ import annotations

from dataclasses import dataclass

from rollout_lws.capacity.base import CapacityStrategy

#: Pause in seconds of a step without approval.
PAUSE_SECONDS = 600
#: Traffic weight of the first step in percent, if one group can carry it.
FIRST_WEIGHT = 10


@dataclass(frozen=True, slots=True)
class Proposed:
    """One step and its reason. ``pause`` is in seconds, None for an approval, 0 for no pause."""

    replicas: int | str
    traffic: str | None
    pause: int | None
    why: str


#: Groups of a pair that its owner scales: all of them are loaded, so waiting for all of them costs nothing.
_STANDING = (
    Proposed("100%", "10%", None, "a tenth of the requests, when all groups of the inactive side are ready"),
    Proposed("100%", "50%", PAUSE_SECONDS, f"half of them for {PAUSE_SECONDS // 60} minutes; then all"),
)
#: The last of gradual steps: of a pair, whose groups stay, and of other capacities.
_HALF_OF_REQUESTS = Proposed(
    "100%", "50%", PAUSE_SECONDS, f"all groups, and half of the requests for {PAUSE_SECONDS // 60} minutes; then all"
)
_PROMOTION = Proposed("100%", None, 0, "as the last step: renew the old groups")


def steps(strategy: CapacityStrategy, replicas: int, *, routed: bool) -> tuple[Proposed, ...]:
    """Steps for a workload of ``replicas`` groups; no traffic weights unless ``routed``."""
    if not strategy.makes_groups:
        return _STANDING
    gradual = strategy.paired or not strategy.full_set
    made = _gradual(strategy, max(1, replicas), routed) if gradual else _full_set(strategy, routed)
    if routed:
        return made
    return tuple(Proposed(each.replicas, None, each.pause, each.why) for each in made)


def _full_set(strategy: CapacityStrategy, routed: bool) -> tuple[Proposed, ...]:
    ready = "all green groups, without requests: try them, then approve" if routed else "all green groups: then approve"
    made = [Proposed("100%", "0%", None, ready)]
    if routed:
        then = ", and goes then" if strategy.swaps else ""
        made.append(Proposed("100%", "100%", None, f"all requests at green; blue stands by until you approve{then}"))
    return tuple(made)


def _gradual(strategy: CapacityStrategy, replicas: int, routed: bool) -> tuple[Proposed, ...]:
    half = replicas // 2
    # Where old groups go, those that stay could not carry the rest of the requests; the only one stays.
    few = strategy.takes_places and replicas > 1
    first = f"{FIRST_WEIGHT}%" if FIRST_WEIGHT * replicas <= 100 and not few else "auto"
    share = ", in proportion to groups" if first == "auto" and routed else ""
    made = [Proposed(1, first, None, f"one group{share}, until it is approved")]
    if half > 1:
        quarter = replicas // 4
        if quarter > 1:
            why = f"{quarter} of {replicas} groups for {PAUSE_SECONDS // 60} minutes"
            made.append(Proposed(_said(25, quarter, replicas), "auto", PAUSE_SECONDS, why))
        why = f"{half} of {replicas} groups for {PAUSE_SECONDS // 60} minutes"
        made.append(Proposed(_said(50, half, replicas), "auto", PAUSE_SECONDS, why))
    if strategy.shifts:
        # The rest of the groups change sides in the hand-over, with requests in proportion.
        return tuple(made)
    made.append(_HALF_OF_REQUESTS if strategy.paired else _PROMOTION)
    return tuple(made)


def _said(percent: int, count: int, replicas: int) -> int | str:
    """A percentage if it yields the same count, since it scales with the workload."""
    return f"{percent}%" if replicas * percent == 100 * count else count
