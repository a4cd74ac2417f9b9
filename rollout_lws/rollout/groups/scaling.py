"""Scales the new version to the groups that a step or promotion asks for, by the Rollout's capacity."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from rollout_lws.api import batch_releases
from rollout_lws.api.base import tallied
from rollout_lws.capacity.base import Scaling
from rollout_lws.capacity.batch_release import owner_reference
from rollout_lws.capacity.partition_update import PartitionUpdate
from rollout_lws.capacity.result import CapacityResult
from rollout_lws.rollout.companions import wanted_of
from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.groups.crash_loops import words_of
from rollout_lws.rollout.groups.evictions import record_updated
from rollout_lws.rollout.groups.multikueue import waits_for_workloads
from rollout_lws.rollout.state import Promoting, RollingBack
from rollout_lws.workload.facts import Facts
from rollout_lws.workload.groups import Group, groups
from rollout_lws.workload.hold import hold
from rollout_lws.workload.revisions import is_empty

#: Partition windows per group in one step or promotion: the first, and three more if it came back old.
WINDOWS_A_GROUP = 4


def partition_update(d: Draft, *, emptied: bool = False, of: Facts | None = None) -> PartitionUpdate:
    """The regular groups of the stable LWS, or ``of`` another one; ``emptied``: no request reaches those that are about
    to go.
    """
    beside = sum(group.ready(d.now, d.minimum) for group in d.capacity.beside(d.new_groups, d.replicas))
    return PartitionUpdate(of or d.stable, d.keys, d.uid, d.now, beside, d.capacity, d.minimum, emptied)


def scale_new(d: Draft, wanted: int, *, emptied: bool = False, waits: str = "") -> CapacityResult:
    """Scales the new version to ``wanted`` groups; done when they are requested or exist. ``emptied``: no request
    reaches those that are about to go. ``waits``: why no further group may be updated in place, "" if one may.
    """
    record = d.o.batch_release
    if record is None and not (d.beside_users and isinstance(d.state, Promoting | RollingBack)):
        # This pass creates the BatchRelease first.
        return CapacityResult()
    # Kueue's earlier evictions must be known first, or they would count against the new version.
    unlisted = waits_for_workloads(d) if d.capacity.steps_open_windows else None
    waits = unlisted.message if unlisted is not None else waits
    resource = batch_releases(d.keys.group)
    stable, canary, patch = d.status.stable, d.o.canary, d.strategy.metadata_patch
    asked = Scaling(
        wanted=wanted,
        own=partition_update(d, emptied=emptied),
        new=d.new_groups,
        stable_revision=stable.revision if stable is not None else None,
        new_revision=d.sub.new_revision,
        may_open=not (waits or worn(d)),
        waits=waits,
        canary=canary,
        remains=d.o.remains,
        owner=owner_reference(record, resource.kind, resource.api_version) if record is not None else {},
        metadata_patch=patch.to_json_dict() if patch else None,
        **_place(d, canary),
    )
    result = d.capacity.scale(asked)
    for each in d.o.companions:
        further = replace(asked, wanted=wanted_of(d, each, wanted), canary=each.canary, **_place(d, each.canary))
        result = result.with_further(d.capacity.scale(further))
    moments = (result.wake_at, unlisted.until if unlisted is not None else None)
    return replace(result, wake_at=min(filter(None, moments), default=None))


def _place(d: Draft, canary: Facts | None) -> dict[str, Any]:
    """What ``Scaling`` has to know of the LWS in which groups of the new version come."""
    empty = canary is not None and is_empty(canary)
    held = hold(canary.workload, d.keys, d.uid, counted=True) if canary is not None and d.beside_users else None
    return {"empty": empty, "hold": held}


def leaving(d: Draft, wanted: int) -> tuple[Group, ...]:
    """Groups of the new version that go if there are to be ``wanted``."""
    return d.capacity.leaving(d.new_groups, wanted, d.replicas, d.o.canary)


def close_window(d: Draft) -> Draft:
    """Finishes a window of a step that does not continue: no window stays open longer than its batch takes to exist."""
    if d.capacity.steps_open_windows and partition_update(d).is_open:
        return d.take(partition_update(d).in_window(d.sub.new_revision))
    return d


def record_window(d: Draft, result: CapacityResult) -> Draft:
    """Records the windows that are opened, by group."""
    d = d.but(opened=result.opened)
    if result.opened:
        d = record_updated(d, result.opened)
        opened = dict((d.status.step.partition_attempts if d.status.step else None) or {})
        for ordinal in result.opened:
            opened[str(ordinal)] = tallied(opened.get(str(ordinal), 0) + 1)
        d = d.set_step(partition_attempts=opened)
    return d


def worn(d: Draft) -> tuple[str, ...]:
    """Indices of the groups that used all their windows and are still at the old version."""
    if partition_update(d).is_open:
        # The last window may still update it.
        return ()
    opened = (d.status.step.partition_attempts if d.status.step else None) or {}
    old = {group.index for group in groups(d.stable) if group.revision != d.sub.new_revision}
    return tuple(sorted(index for index, count in opened.items() if count >= WINDOWS_A_GROUP and index in old))


def worn_out(d: Draft) -> str:
    """The message about such groups; "" if there are none."""
    used_up, name = worn(d), d.stable.name
    if not used_up:
        return ""
    why = words_of(d, used_up[0], name) or "look at its pods"
    return f"group {', '.join(used_up)} of {name} came back at the old version {WINDOWS_A_GROUP} times: {why}"
