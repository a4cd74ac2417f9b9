"""The two versions of a release, for routing and capacity: their groups, and the labels that tell their pods apart.

With a canary LWS each version has its own LWS. If one LWS runs both (capacity InPlace and Surge), only the revision
label that LWS gives every pod tells them apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from rollout_lws.objects.workloads import Pod
from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.state import CleaningUp, Promoting, RollingBack
from rollout_lws.traffic.selectors import of_workload
from rollout_lws.workload.facts import Facts
from rollout_lws.workload.groups import Group, groups
from rollout_lws.workload.hold import standing_surge
from rollout_lws.workload.revisions import target_revision


@dataclass(frozen=True, slots=True)
class VersionEndpoints:
    """One version: ``selects`` are the labels that only its pods have, ``pods`` its known pods."""

    name: str
    """Its name in messages."""
    selects: Mapping[str, str]
    groups: tuple[Group, ...] = ()
    pods: tuple[Pod, ...] = ()

    @property
    def exists(self) -> bool:
        return bool(self.groups)

    @property
    def ready_since(self) -> list[datetime]:
        """Since when each ready group is ready."""
        return [group.ready_since for group in self.groups if group.ready_since is not None]

    def serves(self, now: datetime, reached: frozenset[str]) -> bool:
        """True if it has a ready group and a pod that routers reach."""
        return any(group.ready(now) for group in self.groups) and any(pod.metadata.name in reached for pod in self.pods)


def new_endpoints(d: Draft) -> VersionEndpoints:
    """The version being released; without groups before the first is created, and once it is stable."""
    if d.capacity.one_workload:
        return _by_revision(d, d.sub.new_revision, d.new_groups)
    facts = d.o.canary
    if facts is not None:
        return _by_workload(d, facts.name, facts)
    return _by_workload(d, d.other_name, None)


def stable_endpoints(d: Draft) -> VersionEndpoints:
    """The version that serves until the promotion; all groups of an LWS that a promotion updates in place."""
    stable = d.status.stable
    if d.capacity.one_workload and stable is not None and not _is_merged(d):
        members = groups(d.o.stable) if d.o.stable is not None else ()
        return _by_revision(d, stable.revision, tuple(each for each in members if each.revision == stable.revision))
    return all_endpoints(d)


def all_endpoints(d: Draft) -> VersionEndpoints:
    """All groups of the stable LWS."""
    return _by_workload(d, d.name, d.o.stable)


def has_no_weight(d: Draft) -> bool:
    """True if the new version has no traffic weight of its own, any more or yet."""
    record = d.status.traffic
    return record is None or not record.step


def new_stays(d: Draft) -> bool:
    """True if groups of the new version stay in the one LWS although the release was not promoted: a detached Rollout
    could not finish, and from clean-up on nothing rolls them back.
    """
    if not d.capacity.one_workload or d.o.stable is None or not isinstance(d.state, CleaningUp):
        return False
    kept = d.replicas + standing_surge(d.o.stable.workload, d.keys)
    return any(each.ordinal < kept and not each.terminating for each in d.new_groups)


def _is_merged(d: Draft) -> bool:
    """True if both versions of one LWS serve behind one Service, by their ready groups."""
    comes_and_goes = isinstance(d.state, Promoting) or (isinstance(d.state, RollingBack) and d.state.promotion)
    return (comes_and_goes or new_stays(d)) and has_no_weight(d)


def _by_workload(d: Draft, name: str, facts: Facts | None) -> VersionEndpoints:
    selects = _labels_of(d, name, facts)
    if facts is None:
        return VersionEndpoints(name, selects)
    return VersionEndpoints(name, selects, groups(facts), (*facts.leaders, *facts.pods))


def _labels_of(d: Draft, name: str, facts: Facts | None) -> dict[str, str]:
    """The labels that select the groups of a workload. Where its pods do not carry its name, and it was not made by a
    release, their revision does.

    {} while a promotion has such groups of two revisions: then all that the user's own selector selects get requests,
    groups of the canary among them.
    """
    if facts is None or d.labels.workload is not None or d.keys.made in facts.workload.selector:
        return of_workload(d.labels, name, d.keys)
    if d.capacity.one_workload:
        return {}
    revisions = {each.revision for each in groups(facts) if not each.terminating}
    renewing = isinstance(d.state, Promoting) or (isinstance(d.state, RollingBack) and d.state.promotion)
    if renewing and len(revisions) > 1:
        return {}
    if facts is d.o.stable and d.stable_revision in revisions:
        return {d.labels.revision: d.stable_revision}
    return {d.labels.revision: min(revisions, default=target_revision(facts))}


def _by_revision(d: Draft, revision: str, members: tuple[Group, ...]) -> VersionEndpoints:
    name, facts = d.name, d.o.stable
    known = (*facts.leaders, *facts.pods) if facts is not None else ()
    pods = tuple(pod for pod in known if pod.revision == revision)
    of_name = {} if d.labels.workload is None else of_workload(d.labels, name, d.keys)
    return VersionEndpoints(f"{name} at revision {revision}", {**of_name, d.labels.revision: revision}, members, pods)
