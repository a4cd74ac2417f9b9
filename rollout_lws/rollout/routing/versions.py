"""The two versions of a release as routers and capacity see them: which groups are whose, and what tells them apart.

With a second LeaderWorkerSet each version has one of its own. Where one LeaderWorkerSet holds both (capacity InPlace
and Surge) the revision that LWS labels every pod with is all there is to tell them apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from rollout_lws.objects.resources import LWS_NAME, LWS_REVISION
from rollout_lws.objects.workloads import Pod
from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.state import CleaningUp, Promoting, RollingBack
from rollout_lws.workload.canary import canary_name
from rollout_lws.workload.facts import Facts
from rollout_lws.workload.groups import Group, groups
from rollout_lws.workload.hold import standing_surge


@dataclass(frozen=True, slots=True)
class Side:
    """One version: ``selects`` are the labels that only its pods have, ``pods`` those of its pods that are known."""

    name: str
    """What people call it."""
    selects: Mapping[str, str]
    groups: tuple[Group, ...] = ()
    pods: tuple[Pod, ...] = ()

    @property
    def exists(self) -> bool:
        return bool(self.groups)

    @property
    def ready_since(self) -> list[datetime]:
        """Since when each of its ready groups is ready."""
        return [group.ready_since for group in self.groups if group.ready_since is not None]

    def serves(self, now: datetime, reached: frozenset[str]) -> bool:
        """Whether it has a ready group and a pod among those that routers reach."""
        return any(group.ready(now) for group in self.groups) and any(pod.metadata.name in reached for pod in self.pods)


def new_side(d: Draft) -> Side:
    """The version that is being released; without groups before any is made, and once it is stable."""
    if d.capacity.one_workload:
        return _by_revision(d, d.sub.new_revision, d.new_groups)
    facts = d.o.canary
    if facts is not None:
        return _by_workload(facts.lws.metadata.name, facts)
    return _by_workload(canary_name(d.stable.lws) if d.o.stable is not None else "", None)


def stable_side(d: Draft) -> Side:
    """The version that serves until the promotion; where one LWS is renewed by it, whatever that LWS has."""
    stable = d.status.stable
    if d.capacity.one_workload and stable is not None and not _is_merged(d):
        members = groups(d.o.stable) if d.o.stable is not None else ()
        return _by_revision(d, stable.revision, tuple(each for each in members if each.revision == stable.revision))
    return both_sides(d)


def both_sides(d: Draft) -> Side:
    """All that the stable LWS has."""
    return _by_workload(d.o.rollout.spec.workload_ref.name, d.o.stable)


def shares_nothing(d: Draft) -> bool:
    """Whether no share of its own is asked for the new version any more, or none ever was."""
    record = d.status.traffic
    return record is None or not record.step


def new_stays(d: Draft) -> bool:
    """Whether groups of the new version stay in the one LWS at the end of a release that did not promote it: a Rollout
    that leaves could not finish, and from the clean-up on nothing takes them back.
    """
    if not d.capacity.one_workload or d.o.stable is None or not isinstance(d.state, CleaningUp):
        return False
    kept = d.replicas + standing_surge(d.o.stable.lws, d.keys)
    return any(each.ordinal < kept and not each.terminating for each in d.new_groups)


def _is_merged(d: Draft) -> bool:
    """Whether the versions of one LWS get the requests as their groups come and go, behind one Service."""
    comes_and_goes = isinstance(d.state, Promoting) or (isinstance(d.state, RollingBack) and d.state.promotion)
    return (comes_and_goes or new_stays(d)) and shares_nothing(d)


def _by_workload(name: str, facts: Facts | None) -> Side:
    if facts is None:
        return Side(name, {LWS_NAME: name})
    return Side(name, {LWS_NAME: name}, groups(facts), (*facts.leaders, *facts.pods))


def _by_revision(d: Draft, revision: str, members: tuple[Group, ...]) -> Side:
    name, facts = d.o.rollout.spec.workload_ref.name, d.o.stable
    known = (*facts.leaders, *facts.pods) if facts is not None else ()
    pods = tuple(pod for pod in known if pod.revision == revision)
    return Side(f"{name} at revision {revision}", {LWS_NAME: name, LWS_REVISION: revision}, members, pods)
