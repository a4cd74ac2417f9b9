"""One release as the CLI sees it: a Rollout with its LWSs, groups and pods, read with a few selective requests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated, Any, TypeVar

import msgspec

from rollout_lws.cli.access.transport import Object, Transport
from rollout_lws.cli.rollouts import fetch_rollout, items, releasing
from rollout_lws.cli.sides import (
    have_turned,
    kept_version,
    named,
    roles_of,
    scales_roles,
    sides_of,
    standing_in,
    swaps,
)
from rollout_lws.cli.versions import Stored, stored
from rollout_lws.errors import ApiError
from rollout_lws.objects.meta import Meta, Struct
from rollout_lws.objects.resources import CONTROLLER_REVISIONS, PODS, STATEFUL_SETS, Resource
from rollout_lws.objects.scaling import whole_number
from rollout_lws.objects.workloads import Pod, StatefulSet
from rollout_lws.targets.leader_worker_set import LeaderWorkerSet
from rollout_lws.targets.table import TARGETS, released_type, stored_version
from rollout_lws.targets.target import Target
from rollout_lws.targets.version import Version, version_together
from rollout_lws.workload.canary import name_of_canary
from rollout_lws.workload.facts import Facts

#: Label of a canary LWS, after the API group and a slash; its value is the stable LWS's name.
CANARY_MARK = "canary-leaderworkerset"
#: Label of an LWS that a release has made and that serves since, after the API group and a slash; its value is the name
#: of the user's LWS that it stands for.
_STANDS_FOR_MARK = "stands-for"
#: Annotation on the active side of a pair, after the API group and a slash: its number of groups before a release took
#: some of them.
_NUMBER_MARK = "replicas"
#: Annotation on the pods of a group that is about to go, after the API group and a slash.
_DRAINING_MARK = "draining"

_Kind = TypeVar("_Kind")


class _Draining(Struct, frozen=True):
    since: Annotated[datetime, msgspec.Meta(tz=True)] | None = None


# Made before there are threads: watches convert in theirs, and msgspec crashes a process in which a thread uses a type
# while another one is the first to do so.
_draining = msgspec.json.Decoder(_Draining)
_KINDS: tuple[type[Any], ...] = (*TARGETS, Pod, StatefulSet)
_DECODERS = {kind: msgspec.json.Decoder(kind) for kind in _KINDS}


@dataclass(frozen=True, slots=True)
class Release:
    """A Rollout with its stable and canary LWS, of a pair its active and inactive side; None when absent. While an LWS
    that a release has made stands in for the user's, that is the stable one, and the user's the other one. ``before``
    is the version that the release replaces, None when it is not stored. ``companions`` are further LWSs of a pair:
    that of the active side, and that of the other one.
    """

    rollout: Object
    stable: Facts | None
    canary: Facts | None
    before: Version | None = None
    companions: tuple[tuple[Facts | None, Facts | None], ...] = ()

    @property
    def of_active(self) -> tuple[Facts, ...]:
        """The stable LWS, and the companions that serve with it, as far as they exist."""
        return tuple(each for each in (self.stable, *(one for one, _ in self.companions)) if each is not None)

    @property
    def of_inactive(self) -> tuple[Facts, ...]:
        """The canary LWS, and the companions on its side."""
        return tuple(each for each in (self.canary, *(other for _, other in self.companions)) if each is not None)

    @property
    def edited(self) -> Facts | None:
        """The LWS whose template asks for the version: of a pair the inactive side, otherwise the user's."""
        return self.stable if roles_of(self.rollout) is None else self.canary

    @property
    def full_size(self) -> int:
        """Groups that the new version has when all requests are its own; 0 when its LWS does not exist."""
        if not scales_roles(self.rollout):
            return self.edited.workload.replicas if self.edited is not None else 0
        return max(self.own_size, int(self.rollout["spec"].get("replicas") or 0))

    @property
    def own_size(self) -> int:
        """Groups of the stable LWS, with those that a release has taken of it meanwhile."""
        if self.stable is None:
            return 0
        workload = self.stable.workload
        noted = whole_number(self._mark(workload.metadata, _NUMBER_MARK)) if scales_roles(self.rollout) else None
        return max(noted or 0, workload.replicas)

    @property
    def stable_revision(self) -> str:
        """Revision of the version that serves, by the status; "" where it is not told."""
        return str(((self.rollout.get("status") or {}).get("stable") or {}).get("revision") or "")

    @property
    def is_replaced(self) -> bool:
        """Whether the canary LWS has served in place of the user's, and goes: requests are back there."""
        status, canary = self.rollout.get("status") or {}, self.canary
        ending = status.get("finalising") or {}
        ended = (ending.get("reason"), ending.get("task")) == ("Success", "CleanUp")
        ended = ended and (releasing(self.rollout) or bool(kept_version(self.rollout)))
        ended = ended and swaps(self.rollout) and roles_of(self.rollout) is None
        if not ended or canary is None or canary.leader_set is None:
            return False
        return canary.leader_set.revision != self.stable_revision

    def drains_since(self, leader: Pod) -> datetime | None:
        """Since when the group of this leader has got no more requests, because it is about to go; None for others."""
        try:
            return _draining.decode(self._mark(leader.metadata, _DRAINING_MARK) or "{}").since
        except msgspec.MsgspecError:
            return None

    def _mark(self, meta: Meta, name: str) -> str:
        """The annotation of this name that a controller has put on an object; "" without it."""
        return meta.annotations.get(f"{self.rollout['apiVersion'].partition('/')[0]}/{name}") or ""

    @property
    def is_parked(self) -> bool:
        """Whether no release is on, and the last one has scaled the inactive side to 0."""
        sides, inactive = roles_of(self.rollout), self.canary
        at_rest = not releasing(self.rollout) or have_turned(self.rollout)
        at_rest = at_rest and sides is not None and sides.known
        return at_rest and scales_roles(self.rollout) and inactive is not None and not inactive.workload.replicas


def fetch_release(transport: Transport, rollouts: Resource, name: str, *, pods: bool = False) -> Release:
    """The release of a Rollout as it is now; ``pods`` reads all pods, otherwise leaders only."""
    rollout = fetch_rollout(transport, rollouts, name)
    names, namespace, kind = workload_names(rollout), rollout["metadata"]["namespace"], target_of(rollout)
    try:
        before = fetch_before(transport, rollouts, rollout)
    except ApiError:
        # Show the release without the previous version rather than fail.
        before = None
    workloads = [transport.find(kind.resource.path(namespace, each)) for each in names]
    made = sets_of(kind, names)
    sets = items(transport, STATEFUL_SETS, labelSelector=made) if made is not None else []
    members = items(transport, PODS, labelSelector=pods_of(kind, names, leaders=not pods))
    return replace(assemble(rollout, filter(None, workloads), sets, members), before=before)


def workload_names(rollout: Object) -> tuple[str, ...]:
    """Names of a Rollout's LWS, and of its canary, which a release may make; of a pair the active side's name first,
    and those of companions last.
    """
    sides, name = sides_of(rollout), named(rollout)
    return (name, name_of_canary(name)) if sides is None else sides.every


def target_of(rollout: Object) -> type[Target]:
    """The struct of the kind that a Rollout releases."""
    return released_type((rollout.get("spec") or {}).get("workloadRef"))


def sets_of(kind: type[Target], names: Iterable[str]) -> str | None:
    """The label selector for the StatefulSets that workloads of these names have made; None if the kind makes none."""
    labels = kind.labels
    return f"{labels.stateful_sets} in ({','.join(names)})" if labels.stateful_sets is not None else None


def pods_of(kind: type[Target], names: Iterable[str], *, leaders: bool = False) -> str:
    """The label selector for the pods of these workloads; of a kind whose pods do not carry the name of theirs, for all
    pods of the kind.
    """
    labels = kind.labels
    if labels.workload is None:
        return labels.leaders
    selector = f"{labels.workload} in ({','.join(names)})"
    return f"{selector},{labels.leaders}" if leaders else selector


def fetch_before(transport: Transport, rollouts: Resource, rollout: Object) -> Version | None:
    """The stable version during a release; None otherwise, and when it is not stored or not readable."""
    stable = ((rollout.get("status") or {}).get("stable") or {}).get("templateHash")
    if not stable or not releasing(rollout):
        return None
    try:
        known = stored_versions(transport, rollouts, rollout)
    except ApiError as error:
        if error.code not in (403, 404):
            raise
        return None
    return next((stored_version(each.members) for each in known if each.template_hash == stable), None)


def stored_versions(transport: Transport, rollouts: Resource, rollout: Object) -> list[Stored]:
    """The versions that a Rollout has stored, newest release first."""
    selector = f"{rollouts.group}/history={rollout['metadata']['name']}"
    return stored(items(transport, CONTROLLER_REVISIONS, labelSelector=selector), rollouts.group)


def version_hash(workload: Object, kind: type[Target] = LeaderWorkerSet) -> str:
    """Our hash of the version in the spec of a workload of this kind."""
    return typed(workload, kind).version.template_hash


def side_hash(rollout: Object, workload: Object, others: Mapping[str, Object]) -> str:
    """Our hash of the version in a workload's spec; of a pair with companions that which it has together with those of
    its side, which are among ``others`` by name.
    """
    sides, name, kind = sides_of(rollout), workload["metadata"]["name"], target_of(rollout)
    beside = (others.get(each) for each in (sides.members(name)[1:] if sides is not None else ()))
    versions = [typed(each, kind).version if each is not None else None for each in beside]
    return version_together(typed(workload, kind).version, versions).template_hash


def fetch_companions(transport: Transport, rollout: Object) -> dict[str, Object]:
    """The companions of both sides that exist, by name."""
    sides, namespace = sides_of(rollout), rollout["metadata"]["namespace"]
    names = sides.every[2:] if sides is not None else ()
    resource = target_of(rollout).resource
    found = ((name, transport.find(resource.path(namespace, name))) for name in names)
    return {name: lws for name, lws in found if lws is not None}


def assemble(
    rollout: Object, workloads: Iterable[Object], stateful_sets: Iterable[Object], pods: Iterable[Object]
) -> Release:
    """The release of ``rollout`` from its namespace's lists; objects of other LWSs are ignored."""
    return gathered(
        rollout,
        [typed(each, target_of(rollout)) for each in workloads],
        [typed(each, StatefulSet) for each in stateful_sets],
        [typed(each, Pod) for each in pods],
    )


def gathered(rollout: Object, workloads: Iterable[Target], sets: Iterable[StatefulSet], pods: Iterable[Pod]) -> Release:
    """``assemble`` for objects that are already typed."""
    name, sides = workload_names(rollout)[0], sides_of(rollout)
    group = rollout["apiVersion"].partition("/")[0]
    listed, members, there = list(sets), list(pods), list(workloads)
    made = standing_in(rollout)
    if made:
        known = {lws.metadata.name: _facts(lws, listed, members) for lws in there if lws.metadata.name in (made, name)}
        return Release(rollout, known.get(made), known.get(name))
    if sides is not None:
        known = {lws.metadata.name: _facts(lws, listed, members) for lws in there if lws.metadata.name in sides.every}
        companions = tuple((known.get(one), known.get(other)) for one, other in sides.companions)
        return Release(rollout, known.get(sides.active), known.get(sides.inactive), companions=companions)
    stable = canary = None
    for lws in there:
        if lws.metadata.name == name:
            stable = _facts(lws, listed, members)
        # The status may be a moment behind the label.
        elif name in (lws.metadata.labels.get(f"{group}/{mark}") for mark in (CANARY_MARK, _STANDS_FOR_MARK)):
            canary = _facts(lws, listed, members)
    return Release(rollout, stable, canary)


def typed(obj: Object, kind: type[_Kind]) -> _Kind:
    """Convert through JSON, because the structs keep some fields as raw bytes."""
    found: _Kind = _DECODERS[kind].decode(msgspec.json.encode(obj))
    return found


def _facts(lws: Target, sets: list[StatefulSet], pods: list[Pod]) -> Facts:
    name = lws.metadata.name
    mine = tuple(each for each in sets if each.workload == name)
    members = tuple(pod for pod in pods if pod.workload == name)
    return Facts(
        lws,
        lws.leader_set or next((each for each in mine if each.metadata.name == name), None),
        tuple(pod for pod in members if pod.is_leader),
        tuple(each for each in mine if each.metadata.name != name),
        members if any(not pod.is_leader for pod in members) else (),
    )
