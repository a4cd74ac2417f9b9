"""Controllers that have made a workload, and what a Rollout can do with it: told by the owner reference alone.

A DisaggregatedSet makes a LeaderWorkerSet for each of its roles, with a hash of all their templates in its name
(``<set>-<slice>-<revision>-<role>``). Another template makes new ones beside them, and the old ones are scaled down and
deleted. (kubernetes-sigs/lws, pkg/controllers/disaggregatedset; LWS 0.9 has no slice in the name.)
"""

from __future__ import annotations

from rollout_lws.objects.meta import OwnerReference
from rollout_lws.objects.resources import DISAGGREGATED_SETS, LEADER_WORKER_SETS
from rollout_lws.targets.target import Target, called

#: Says how two DisaggregatedSets are released.
PAGE = "docs/disaggregated-sets.md"
_TWO_SETS = (
    "run two DisaggregatedSets, and a Rollout of a pair (capacity: Pair, touch: RouteOnly) whose workloadRef and"
    " counterpartRef name a LeaderWorkerSet of each"
)


def disaggregated_set(workload: Target) -> OwnerReference | None:
    """The DisaggregatedSet that has made the workload; None for one of another controller, or of none."""
    owner = workload.metadata.controller
    if owner is None or owner.kind != DISAGGREGATED_SETS.kind:
        return None
    return owner if owner.api_version.partition("/")[0] == DISAGGREGATED_SETS.group else None


def instead_of(api_version: str, kind: str) -> str:
    """What to name in a Rollout instead of a DisaggregatedSet; "" for another kind."""
    if (api_version.partition("/")[0], kind) != (DISAGGREGATED_SETS.group, DISAGGREGATED_SETS.kind):
        return ""
    return (
        "name a LeaderWorkerSet of each of two DisaggregatedSets, as a pair with capacity: Pair and touch: RouteOnly;"
        f" {PAGE} says how"
    )


def made_for_groups(name: str, lws: str) -> str:
    """What to name instead of a StatefulSet in which a LeaderWorkerSet keeps its groups."""
    kind = LEADER_WORKER_SETS
    return (
        f"StatefulSet {name} was made by {kind.kind} {lws} for its groups, and is no workload of its own: name the"
        f" {kind.kind} instead (apiVersion: {kind.api_version}, kind: {kind.kind}, name: {lws})"
    )


def cannot_be_written(workload: Target, *, paired: bool) -> str:
    """Why no release may write the workload, and what to do; "" for one that nothing controls. ``paired``: it is a side
    of a pair.
    """
    owner = workload.metadata.controller
    if owner is None:
        return ""
    way_out = f"set touch: RouteOnly, with which no {workload.resource.kind} is written" if paired else ""
    if disaggregated_set(workload) is not None:
        way_out = way_out or _TWO_SETS
        return (
            f"{called(workload)} is made by DisaggregatedSet {owner.name}, which rolls all its roles together and would"
            f" undo a release: {way_out}; {PAGE} says how"
        )
    way_out = way_out or f"release the {owner.kind} by its own means"
    return (
        f"{called(workload)} is controlled by {owner.kind} {owner.name}, which would undo a release: {way_out}, or"
        " remove the owner reference"
    )


def renamed_with_each_version(workload: Target) -> str:
    """That the next version of the workload has another name, and what to do then; "" for one that keeps its name."""
    owner = disaggregated_set(workload)
    if owner is None:
        return ""
    return (
        f"DisaggregatedSet {owner.name} gives its LeaderWorkerSets another name for each version: disable the Rollout"
        f" before a version is applied, and name those of that version then; {PAGE} says how"
    )
