"""The kinds that a Rollout can release."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rollout_lws.targets import leader_worker_set, stateful_set
from rollout_lws.targets.leader_worker_set import LeaderWorkerSet
from rollout_lws.targets.stateful_set import StatefulSetTarget
from rollout_lws.targets.target import Target
from rollout_lws.targets.version import Version, VersionFormat, version_of_members

#: The struct of each kind.
TARGETS: tuple[type[Target], ...] = (LeaderWorkerSet, StatefulSetTarget)
_BY_KIND = {(each.resource.api_version, each.resource.kind): each for each in TARGETS}
_FORMATS: tuple[VersionFormat, ...] = (leader_worker_set.FORMAT, stateful_set.FORMAT)


def target_type(api_version: str, kind: str) -> type[Target] | None:
    """The struct of this kind; None for one that cannot be released."""
    return _BY_KIND.get((api_version, kind))


def released_type(ref: Mapping[str, Any] | None) -> type[Target]:
    """The struct of the kind that a Rollout's reference names, as plain JSON; of one that cannot be released, or that
    is not known, the first one's: nothing is found of it.
    """
    named = ref or {}
    return target_type(str(named.get("apiVersion", "")), str(named.get("kind", ""))) or TARGETS[0]


def format_of_members(members: Mapping[str, Any]) -> VersionFormat:
    """Where the version is in members of a spec, or in a whole spec; the first kind's for those of no kind."""
    return next((each for each in _FORMATS if each.members[0] in members), _FORMATS[0])


def stored_version(members: Mapping[str, Any]) -> Version | None:
    """The version of members of a spec that were stored, by a workload controller or by this one; None when they are
    not those of any kind.
    """
    found = next((each for each in _FORMATS if each.members[0] in members), None)
    return None if found is None else version_of_members(members, found)
