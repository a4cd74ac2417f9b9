"""The kinds that a Rollout can release."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rollout_lws.targets import leader_worker_set
from rollout_lws.targets.leader_worker_set import LeaderWorkerSet
from rollout_lws.targets.target import Target
from rollout_lws.targets.version import Version, VersionFormat, version_of_members

#: The struct of each kind.
TARGETS: tuple[type[Target], ...] = (LeaderWorkerSet,)
_BY_KIND = {(each.resource.api_version, each.resource.kind): each for each in TARGETS}
_FORMATS: tuple[VersionFormat, ...] = (leader_worker_set.FORMAT,)


def target_type(api_version: str, kind: str) -> type[Target] | None:
    """The struct of this kind; None for one that cannot be released."""
    return _BY_KIND.get((api_version, kind))


def stored_version(members: Mapping[str, Any]) -> Version | None:
    """The version of members of a spec that were stored, by a workload controller or by this one; None when they are
    not those of any kind.
    """
    found = next((each for each in _FORMATS if each.members[0] in members), None)
    return None if found is None else version_of_members(members, found)
