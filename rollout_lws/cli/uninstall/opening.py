"""What opening a workload's hold does: the write, and the version that starts by it. Pure; uses the controller's own
functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rollout_lws.api.resources import Keys, keys
from rollout_lws.cli.versions import containers
from rollout_lws.objects.scaling import whole_number
from rollout_lws.targets.target import ON_DELETE, Target
from rollout_lws.workload.hold import (
    HOLD,
    foreign_members,
    give_back,
    resolved_surge,
    resolved_unavailable,
    users_strategy,
)

Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Roll:
    """A version that the workload's own rolling update starts when the hold opens.

    ``version`` is our hash of it. Its controller updates ``groups``, ``unavailable`` at a time, with ``surge`` extra
    groups; ``on_delete``: only those whose pods something else deletes. ``aborted`` is the reason why its release was
    aborted, "" when it was not. ``companion`` is the workload's name where it is a companion of a pair's active side.
    """

    version: str
    images: tuple[str, ...]
    groups: int
    unavailable: int
    surge: int = 0
    aborted: str = ""
    companion: str = ""
    on_delete: bool = False


def restoring_patch(workload: Target, group: Keys) -> Object | None:
    """Merge patch that removes our annotations and labels from a workload and restores the user's strategy, and the
    number of groups of one of which a release has taken some; None when it has none.
    """
    body: Object = give_back(workload, group) or {}
    lacking, meta = lacking_groups(workload, group), workload.metadata
    if lacking:
        body.setdefault("spec", {})["replicas"] = workload.replicas + lacking
    kept = (group.original, group.held, group.aborted, group.release_hold, group.replicas)
    marks = [mark for mark in kept if mark in meta.annotations]
    # What stands in for another one has been left so on purpose.
    role = [group.side] if group.side in meta.labels and group.stands_for not in meta.labels else []
    if not marks and not role:
        return None
    told = {"annotations": dict.fromkeys(marks), "labels": dict.fromkeys(role)}
    return {**body, "metadata": {kind: keys for kind, keys in told.items() if keys}}


def lacking_groups(workload: Target, group: Keys) -> int:
    """Groups that a release of a pair has taken from its active side."""
    noted = whole_number(workload.metadata.annotations.get(group.replicas) or "")
    return max(0, (noted or 0) - workload.replicas)


def pending_roll(
    workload: Target, group: str, *, runs: str = "", wanted: str = "", running: Sequence[str] = ()
) -> Roll | None:
    """What rolls when the hold of ``workload`` opens. ``runs`` is our hash of the version that its groups run, "" when
    unknown. Its controller compares its own revisions, the ``wanted`` one and those that groups are ``running``, which
    may differ where our hash does not, for instance after an upgrade of LeaderWorkerSet.
    """
    own, marks = keys(group), workload.metadata.annotations
    if own.original not in marks or marks.get(own.release_hold) == "true":
        return None
    if workload.strategy.partition < HOLD and "partition" in foreign_members(workload, own):
        # A user has already opened it.
        return None
    version, strategy, replicas = workload.version, users_strategy(workload, own), workload.replicas
    behind = (runs and version.template_hash != runs) or any(each != wanted for each in running)
    groups = max(0, replicas - strategy.partition)
    if not behind or not groups:
        return None
    images = dict.fromkeys(str(each["image"]) for _, each in containers(version.members) if each.get("image"))
    unavailable = max(resolved_unavailable(strategy, replicas), int(workload.zero_unavailable))
    return Roll(
        version.template_hash,
        tuple(images),
        groups,
        unavailable,
        resolved_surge(strategy, replicas),
        on_delete=strategy.type == ON_DELETE,
    )
