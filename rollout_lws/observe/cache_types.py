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
from typing import Any

import msgspec
from msgspec.structs import force_setattr, replace

from rollout_lws.api import Phase
from rollout_lws.objects.meta import ManagedField, Meta, Struct
from rollout_lws.objects.released import RECOVER, RELEASED, RESTARTS_EXHAUSTED, workload_among
from rollout_lws.objects.resources import Resource
from rollout_lws.objects.workloads import ControllerRevision, Pod, StatefulSet
from rollout_lws.targets.table import TARGETS, target_type
from rollout_lws.targets.target import Target
from rollout_lws.workload.applied import LAST_APPLIED, stated_replicas
from rollout_lws.workload.groups import SIZE_ANNOTATION
from rollout_lws.workload.revisions import compressed

#: kubectl's copy of the whole manifest, which no rule reads.
_NOTHING = msgspec.Raw(b"")
#: Labels that select StatefulSets and revisions and tell them apart.
_OWN_LABELS = frozenset(name for each in RELEASED.values() for name in (each.mark, each.revision, each.record))
#: Suffix of the original-state annotation, in any API group.
_MARK = "/original"
#: Suffix of the annotation on pods of groups that are about to go.
_DRAINING = "/draining"
#: Annotations of leaders that rules read besides.
_OF_LEADERS = frozenset({SIZE_ANNOTATION, RESTARTS_EXHAUSTED, RECOVER})
#: Members of a strategy and of its rolling update that rules read, as managedFields name them.
_STRATEGY = frozenset({".", "f:type"})
_ROLLING_UPDATE = frozenset({".", "f:partition", "f:maxSurge", "f:maxUnavailable"})
#: Conditions of a pod that are irrelevant while they are True.
_USUAL = frozenset({"PodScheduled", "PodReadyToStartContainers", "Initialized", "ContainersReady"})

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
        force_setattr(owner, "api_version", word(owner.api_version))
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

    @property
    def workload(self) -> str:
        """The name of the workload that it belongs to, by its label; "" without one."""
        return workload_among(self.metadata.labels)


@dataclass(frozen=True, slots=True)
class StoredRollout:
    """A Rollout's JSON with what decides which changes wake its key: ``workload`` is the name of the object that it
    releases, ``counterpart`` that of the other one of a pair ("": none), ``companions`` those of both sides,
    ``kind`` that object's kind, None for one that no Rollout can release. ``routes`` says whether changes of Services
    matter, since it names one or is in a release.
    """

    metadata: Meta
    workload: str
    kind: Resource | None
    body: bytes
    routes: bool = False
    counterpart: str = ""
    companions: tuple[str, ...] = ()

    @property
    def workloads(self) -> tuple[str, ...]:
        """Names of the objects that it releases."""
        return (self.workload, self.counterpart, *self.companions) if self.counterpart else (self.workload,)


class _WorkloadRef(Struct, frozen=True):
    api_version: str = ""
    kind: str = ""
    name: str = ""


class _Companion(Struct, frozen=True):
    name: str = ""
    counterpart: str = ""


class _Style(Struct, frozen=True):
    traffic_routings: tuple[msgspec.Raw, ...] | None = ()


class _Strategy(Struct, frozen=True):
    canary: _Style | None = None
    blue_green: _Style | None = None


class _RolloutSpec(Struct, frozen=True):
    workload_ref: _WorkloadRef = _WorkloadRef()
    counterpart_ref: _WorkloadRef | None = None
    companions: tuple[_Companion, ...] | None = ()
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
_owned = msgspec.json.Decoder(dict[str, msgspec.Raw] | None)


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
    other = head.spec.counterpart_ref
    counterpart = other.name if other is not None else ""
    companions = tuple(name for each in head.spec.companions or () for name in (each.name, each.counterpart))
    return StoredRollout(
        head.metadata, ref.name, kind, _without_writers(body), routes or releases, counterpart, companions
    )


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


def _trimming(kind: type[Target]) -> Callable[[bytes], Target]:
    """The decoder of a released kind that keeps only those managedFields that concern the template, the strategy and
    the replicas, and of kubectl's copy of the manifest only the replicas.
    """
    whole = msgspec.json.Decoder(kind)

    def trimmed(body: bytes) -> Target:
        workload = whole.decode(body)
        stated = stated_replicas(workload.metadata.annotations)
        intern(workload.metadata)
        if stated is not None:
            copied = f'{{"spec":{{"replicas":{stated}}}}}'
            force_setattr(workload.metadata, "annotations", {**workload.metadata.annotations, LAST_APPLIED: copied})
        written = tuple(_trimmed_field(kind, field) for field in workload.metadata.managed_fields)
        return workload.trimmed(replace(workload.metadata, managed_fields=written))

    return trimmed


def trimmed_leader(body: bytes) -> Pod:
    """With all labels, since selectors may use any of them."""
    pod = _pods.decode(body)
    kept = [key for key in pod.metadata.annotations if key in _OF_LEADERS or key.endswith(_DRAINING)]
    intern(pod.metadata, annotations=kept)
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
    """Revisions of released workloads and of their StatefulSets; the data of the latter, which never holds a version,
    is dropped, the other is compressed.
    """
    found = _revisions.decode(body)
    intern(found.metadata, labels=_OWN_LABELS, annotations=())
    owner, names = found.metadata.controller, found.released
    if owner is None or any(kind.kind == owner.kind and each is names for kind, each in RELEASED.items()):
        return compressed(found)
    return replace(found, data=_NOTHING)


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
    workloads={each.resource: msgspec.json.Decoder(each).decode for each in TARGETS},
    leader=_pods.decode,
    pod=_pods.decode,
    stateful_set=_sets.decode,
    revision=_revisions.decode,
    history=_revisions.decode,
)
TRIMMED = Decoders(
    workloads={each.resource: _trimming(each) for each in TARGETS},
    leader=trimmed_leader,
    pod=_pods.decode,
    stateful_set=trimmed_set,
    revision=trimmed_revision,
    history=trimmed_history,
)


def _trimmed_field(kind: type[Target], field: ManagedField) -> ManagedField:
    owned = _owned.decode(field.fields) or {}
    spec, annotations = _inside(owned, "f:spec"), _inside(_inside(owned, "f:metadata"), "f:annotations")
    kept: dict[str, Any] = {}
    marks: dict[str, Any] = {key: {} for key in annotations if key.endswith(_MARK)}
    if marks:
        kept["f:metadata"] = {"f:annotations": marks}
    template = f"f:{kind.template}"
    written: dict[str, Any] = {each: {} for each in (template, "f:replicas") if each in spec}
    written |= _trimmed_strategy(spec, kind.strategy_path[1:])
    if written:
        kept["f:spec"] = written
    return replace(field, manager=word(field.manager), fields=_raw(msgspec.json.encode(kept)))


def _trimmed_strategy(spec: Mapping[str, msgspec.Raw], path: tuple[str, str]) -> dict[str, Any]:
    """The members of a strategy and of its rolling update that rules read, inside the maps of ``path``; {} without any.
    An empty map means ownership as a whole, so trimming must not empty one.
    """
    strategy, rolling_update = (f"f:{member}" for member in path)
    owned = _inside(spec, strategy)
    kept: dict[str, Any] = {member: {} for member in owned if member in _STRATEGY}
    members = _inside(owned, rolling_update)
    parameters: dict[str, Any] = {member: {} for member in members if member in _ROLLING_UPDATE}
    if rolling_update in owned and (parameters or not members):
        kept[rolling_update] = parameters
    return {strategy: kept} if strategy in spec and (kept or not owned) else {}


def _inside(owned: Mapping[str, msgspec.Raw], member: str) -> Mapping[str, msgspec.Raw]:
    return (_owned.decode(owned[member]) if member in owned else None) or {}


@lru_cache(maxsize=16)
def _raw(owned: bytes) -> msgspec.Raw:
    """There are half a dozen different values."""
    return msgspec.Raw(owned)
