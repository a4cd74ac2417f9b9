"""Groups that gave up the requests at the end of a swap and stay for scaleDownDelaySeconds: the version before gets the
requests back at once if it is applied again.

What says so is the status. One that was wiped keeps nothing: the groups go as they do without a delay, which is when
something else serves.
"""

from __future__ import annotations

from datetime import datetime

from rollout_lws.api import KeptGroups, StableRecord
from rollout_lws.api.base import with_fields
from rollout_lws.rollout.draft import Draft, newest_groups
from rollout_lws.rollout.reasons import Ending
from rollout_lws.rollout.roles.writes import patch
from rollout_lws.rollout.state import CleaningUp
from rollout_lws.workload.groups import groups
from rollout_lws.workload.revisions import observed


def to_keep(d: Draft, before: StableRecord | None) -> KeptGroups | None:
    """The groups of the version ``before``, if the plan has them stay when the roles have changed."""
    return KeptGroups(template_hash=before.template_hash) if before is not None and _seconds(d) else None


def may_stay(d: Draft, ending: Ending) -> bool:
    """True if the release is over but for these groups, which begin to be kept."""
    kept = d.status.kept
    return ending is Ending.SUCCESS and kept is not None and kept.since is None and can_stay(d)


def begin(d: Draft) -> Draft:
    """Has the groups stay from now on."""
    kept = d.status.kept
    return d.set(kept=with_fields(kept, since=d.now)) if kept is not None else d


def are_kept(d: Draft) -> bool:
    """True if the release is over, and its groups of the version before are still there."""
    return isinstance(d.state, CleaningUp) and d.state.keeps


def until(d: Draft) -> datetime | None:
    """The moment when they go; None once it has passed."""
    kept = d.status.kept
    return d.yet_to_come(kept.since, _seconds(d)) if kept is not None and kept.since is not None else None


def told(d: Draft) -> str:
    """Until when they stay, and what for; that they answer, if nothing else does."""
    moment, other = until(d), d.o.canary
    if moment is None or other is None:
        return ""
    ready = sum(group.ready(d.now) for group in groups(other))
    if ready and not _serves(d):
        return f"no group of {d.name} is ready: {ready} of {other.name}, of the version before, answer until one is"
    when = "at once" if ready >= d.replicas else f"when {d.replicas} groups are ready, of which {ready} are"
    return (
        f"the groups of {other.name} stay until {moment:%H:%M:%S} UTC: by {d.command('undo')} the version before gets"
        f" the requests back {when}"
    )


def no_more_than_asked(d: Draft) -> Draft:
    """Takes groups beyond the Rollout's number. Missing ones load if the version is wanted again."""
    other = d.o.canary
    if other is None or other.workload.replicas <= d.replicas or not _serves(d):
        return d
    why = f"{d.replicas} groups stay instead of {other.workload.replicas}"
    return d.write((patch(other, {"spec": {"replicas": d.replicas}}, why),))


def _serves(d: Draft) -> bool:
    return any(group.ready(d.now) for group in groups(d.stable))


def can_stay(d: Draft) -> bool:
    """True if nothing but the time ends their stay: they are there, the plan keeps them, and the version that is to be
    released, if there is one, is theirs.
    """
    other, kept = d.o.canary, d.status.kept
    if other is None or kept is None or d.o.batch_release is None or not _seconds(d):
        return False
    going = other.workload.metadata.terminating or d.stable.workload.metadata.terminating
    if going or not (d.replicas and other.workload.replicas):
        return False
    if not d.pending:
        return True
    # LWS may have come to call it by another revision.
    unknown = observed(d.edited) and not newest_groups(other)
    return are_of(d, d.version.template_hash) and not unknown


def are_of(d: Draft, template_hash: str) -> bool:
    """True if they run this version."""
    kept = d.status.kept
    return kept is not None and template_hash == kept.template_hash


def _seconds(d: Draft) -> int:
    spec = d.o.rollout.spec
    style = spec.strategy.style
    return style.keeps_seconds if style is not None and style.traffic_routings and spec.swaps else 0
