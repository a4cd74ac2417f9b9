"""Types and decoders of cached objects: only what decisions need, nothing twice, our own kinds as bytes until used.

A Rollout of four groups has about twenty objects around it, and most Rollouts are at rest for months. So labels and
annotations that no rule reads are dropped, strings that many objects share are one object, versions are compressed, and
a pydantic model, ten times as large as its JSON, is built only for a decision. Trimmed objects have the same types as
those that the command line decodes fully (``WHOLE``), and lead to the same decisions.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache

import msgspec
from msgspec.structs import force_setattr, replace

from rollout_lws.api import Phase
from rollout_lws.objects.meta import ManagedField, Meta, Struct
from rollout_lws.objects.resources import LEADER_WORKER_SETS, LWS_NAME, LWS_REVISION, STATEFUL_SETS, Resource
from rollout_lws.objects.workloads import ControllerRevision, Pod, StatefulSet
from rollout_lws.targets.leader_worker_set import LeaderWorkerSet
from rollout_lws.targets.table import target_type
from rollout_lws.targets.target import Target
from rollout_lws.workload.groups import SIZE_ANNOTATION
from rollout_lws.workload.revisions import compressed

#: kubectl's copy of the whole manifest, which no rule reads.
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_NOTHING = msgspec.Raw(b"")
#: Labels that select StatefulSets and LWS's revisions and tell them apart.
_OWN_LABELS = frozenset({LWS_NAME, LWS_REVISION})
#: Suffix of the original-state annotation, in any API group.
_MARK = "/original"
#: Members of a rolling update that rules read, as managedFields name them.
_ROLLING_UPDATE = frozenset({".", "f:partition", "f:maxSurge", "f:maxUnavailable"})
#: Conditions of a pod that are irrelevant while they are True.
_USUAL = frozenset({"PodScheduled", "PodReadyToStartContainers", "Initialized", "ContainersReady"})

_workloads = msgspec.json.Decoder(LeaderWorkerSet)
_pods = msgspec.json.Decoder(Pod)
_sets = msgspec.json.Decoder(StatefulSet)
_revisions = msgspec.json.Decoder(ControllerRevision)

_NONE: dict[str, str] = {}


@lru_cache(maxsize=16_384)
def word(text: str) -> str:
    """The same string object for equal strings. Python's own ``intern`` would keep the name of every pod ever seen:
    3.12 never frees interned strings.
    """
    return text


def intern(meta: Meta, labels: Collection[str] | None = None, annotations: Collection[str] | None = None) -> None:
    """Keep ``labels`` and ``annotations``, all by default, in the metadata of a new object that is not in use yet.
    kubectl's copy of the manifest is dropped in any case.
    """
    force_setattr(meta, "namespace", word(meta.namespace))
    force_setattr(meta, "labels", _shared(meta.labels, labels))
    meta.annotations.pop(LAST_APPLIED, None)
    force_setattr(meta, "annotations", _shared(meta.annotations, annotations))
    for owner in meta.owner_references:
        force_setattr(owner, "kind", word(owner.kind))
        force_setattr(owner, "name", word(owner.name))


def _shared(marks: Mapping[str, str], kept: Collection[str] | None) -> dict[str, str]:
    """Empty maps are one shared dictionary, which must not be changed."""
    if kept is not None:
        return {word(key): word(marks[key]) for key in kept if key in marks} or _NONE
    return dict(zip(map(word, marks), map(word, marks.values()), strict=True)) or _NONE


@dataclass(frozen=True, slots=True)
class StoredObject:
    """An object of which rules first read only the metadata."""

    metadata: Meta
    body: bytes


@dataclass(frozen=True, slots=True)
class StoredRollout:
    """A Rollout's JSON with what decides which changes wake its key: ``workload`` is the name of the object that it
    releases, ``kind`` that object's kind, None for one that no Rollout can release. ``routes`` says whether changes of
    Services matter, since it names one or is in a release.
    """

    metadata: Meta
    workload: str
    kind: Resource | None
    body: bytes
    routes: bool = False


class _WorkloadRef(Struct, frozen=True):
    api_version: str = ""
    kind: str = ""
    name: str = ""


class _Style(Struct, frozen=True):
    traffic_routings: tuple[msgspec.Raw, ...] | None = ()


class _Strategy(Struct, frozen=True):
    canary: _Style | None = None
    blue_green: _Style | None = None


class _RolloutSpec(Struct, frozen=True):
    workload_ref: _WorkloadRef = _WorkloadRef()
    strategy: _Strategy = _Strategy()


class _RolloutStatus(Struct, frozen=True):
    phase: str | None = None


class _Rollout(Struct, frozen=True):
    metadata: Meta
    spec: _RolloutSpec = _RolloutSpec()
    status: _RolloutStatus | None = None


class _Object(Struct, frozen=True):
    metadata: Meta


_rollouts = msgspec.json.Decoder(_Rollout)
_objects = msgspec.json.Decoder(_Object)
_members = msgspec.json.Decoder(dict[str, msgspec.Raw])


def stored_rollout(body: bytes) -> StoredRollout:
    """Without managedFields and kubectl's annotation, which are as long as all the rest."""
    head = _rollouts.decode(body)
    styles = head.spec.strategy.canary, head.spec.strategy.blue_green
    routes = any(style is not None and style.traffic_routings for style in styles)
    releases = head.status is not None and head.status.phase == Phase.PROGRESSING
    intern(head.metadata, annotations=())
    ref = head.spec.workload_ref
    target = target_type(ref.api_version, ref.kind)
    kind = target.resource if target is not None else None
    return StoredRollout(head.metadata, ref.name, kind, _without_writers(body), routes or releases)


def stored_object(body: bytes) -> StoredObject:
    """With the unchanged body: for foreign objects that a release writes, rules read the other field managers."""
    head = _objects.decode(body)
    intern(head.metadata)
    return StoredObject(head.metadata, bytes(body))


def _without_writers(body: bytes) -> bytes:
    whole = _members.decode(body)
    metadata = _members.decode(whole["metadata"])
    metadata.pop("managedFields", None)
    if "annotations" in metadata:
        annotations = _members.decode(metadata["annotations"])
        annotations.pop(LAST_APPLIED, None)
        metadata["annotations"] = msgspec.Raw(msgspec.json.encode(annotations))
    whole["metadata"] = msgspec.Raw(msgspec.json.encode(metadata))
    # The encoder's buffer has spare capacity, up to twice its content.
    return bytes(memoryview(msgspec.json.encode(whole)))


def trimmed_workload(body: bytes) -> Target:
    """Without its conditions, and with only those managedFields that concern the template and the strategy."""
    lws = _workloads.decode(body)
    intern(lws.metadata)
    force_setattr(lws.metadata, "managed_fields", tuple(map(_trimmed_field, lws.metadata.managed_fields)))
    # A Raw member would keep the object's whole JSON alive.
    spec = replace(
        lws.spec,
        leader_worker_template=lws.spec.leader_worker_template.copy(),
        network_config=lws.spec.network_config.copy(),
    )
    return replace(lws, spec=spec, status=replace(lws.status, conditions=()))


def trimmed_leader(body: bytes) -> Pod:
    """With all labels, since selectors may use any of them."""
    pod = _pods.decode(body)
    intern(pod.metadata, annotations=(SIZE_ANNOTATION,))
    status = pod.status
    told = [each for each in status.conditions if each.status != "True" or each.type not in _USUAL]
    for each in told:
        force_setattr(each, "type", word(each.type))
        force_setattr(each, "status", word(each.status))
    force_setattr(status, "conditions", tuple(told))
    force_setattr(status, "phase", word(status.phase))
    for container in status.container_statuses:
        force_setattr(container, "name", word(container.name))
    return pod


def trimmed_set(body: bytes) -> StatefulSet:
    found = _sets.decode(body)
    intern(found.metadata, labels=_OWN_LABELS, annotations=())
    return found


def trimmed_revision(body: bytes) -> ControllerRevision:
    """Revisions of LWS and of StatefulSets; the data is kept, compressed, unless the owner is a StatefulSet, whose data
    never holds a version.
    """
    found = _revisions.decode(body)
    intern(found.metadata, labels=_OWN_LABELS, annotations=())
    owner = found.metadata.controller
    if owner is not None and owner.kind == STATEFUL_SETS.kind:
        return replace(found, data=_NOTHING)
    return compressed(found)


def trimmed_history(body: bytes) -> ControllerRevision:
    """A version in a Rollout's history; its labels and annotations are ours."""
    found = _revisions.decode(body)
    intern(found.metadata)
    return compressed(found)


@dataclass(frozen=True, slots=True)
class Decoders:
    """The decoder of each kind: full, or trimmed as in the caches. ``workloads`` has those of all targets."""

    workloads: Mapping[Resource, Callable[[bytes], Target]]
    leader: Callable[[bytes], Pod]
    pod: Callable[[bytes], Pod]
    stateful_set: Callable[[bytes], StatefulSet]
    revision: Callable[[bytes], ControllerRevision]
    history: Callable[[bytes], ControllerRevision]


WHOLE = Decoders(
    workloads={LEADER_WORKER_SETS: _workloads.decode},
    leader=_pods.decode,
    pod=_pods.decode,
    stateful_set=_sets.decode,
    revision=_revisions.decode,
    history=_revisions.decode,
)
TRIMMED = Decoders(
    workloads={LEADER_WORKER_SETS: trimmed_workload},
    leader=trimmed_leader,
    pod=_pods.decode,
    stateful_set=trimmed_set,
    revision=trimmed_revision,
    history=trimmed_history,
)


class _Owned(Struct, frozen=True):
    """A member that a field manager owns, whatever its content."""


class _OwnedStrategy(Struct, frozen=True):
    rolling_update: dict[str, _Owned] | None = msgspec.field(name="f:rollingUpdateConfiguration", default=None)


class _OwnedSpec(Struct, frozen=True):
    template: _Owned | None = msgspec.field(name="f:leaderWorkerTemplate", default=None)
    strategy: _OwnedStrategy | None = msgspec.field(name="f:rolloutStrategy", default=None)


class _OwnedMeta(Struct, frozen=True):
    annotations: dict[str, _Owned] = msgspec.field(name="f:annotations", default={})


class _OwnedFields(Struct, frozen=True):
    metadata: _OwnedMeta | None = msgspec.field(name="f:metadata", default=None)
    spec: _OwnedSpec | None = msgspec.field(name="f:spec", default=None)


_owned = msgspec.json.Decoder(_OwnedFields)


def _trimmed_field(field: ManagedField) -> ManagedField:
    owned = _owned.decode(field.fields)
    marks = {key: _Owned() for key in (owned.metadata.annotations if owned.metadata else ()) if key.endswith(_MARK)}
    strategy = _trimmed_strategy(owned.spec.strategy) if owned.spec and owned.spec.strategy else None
    spec = _OwnedSpec(template=owned.spec.template, strategy=strategy) if owned.spec else None
    owned = _OwnedFields(
        metadata=_OwnedMeta(annotations=marks) if marks else None,
        spec=spec if spec and (spec.template or spec.strategy) else None,
    )
    return replace(field, manager=word(field.manager), fields=_raw(msgspec.json.encode(owned)))


def _trimmed_strategy(strategy: _OwnedStrategy) -> _OwnedStrategy | None:
    """An empty map means ownership as a whole, so trimming must not empty one."""
    owned = strategy.rolling_update
    if not owned:
        return None if owned is None else strategy
    kept = {member: mark for member, mark in owned.items() if member in _ROLLING_UPDATE}
    return _OwnedStrategy(rolling_update=kept) if kept else None


@lru_cache(maxsize=16)
def _raw(owned: bytes) -> msgspec.Raw:
    """There are half a dozen different values."""
    return msgspec.Raw(owned)
