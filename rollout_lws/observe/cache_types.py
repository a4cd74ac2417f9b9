"""What the caches keep of each object: what decides, and nothing twice; our own kinds as bytes until they are decided.

A Rollout of four groups has some twenty objects around it, and a fleet of Rollouts lies at rest for months. So labels
and annotations that no rule reads are dropped, words that many objects share are one object, versions are compressed,
and a pydantic model, which takes ten times the room of its JSON, is made only for a decision. Trimmed objects are of
the same types as those that the command line decodes as a whole (``WHOLE``), and decide alike.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache

import msgspec
from msgspec.structs import force_setattr, replace

from rollout_lws.api import Phase
from rollout_lws.objects.meta import ManagedField, Meta, Struct
from rollout_lws.objects.resources import LWS_NAME, LWS_REVISION, STATEFUL_SETS
from rollout_lws.objects.workloads import ControllerRevision, LeaderWorkerSet, Pod, StatefulSet
from rollout_lws.workload.groups import SIZE_ANNOTATION
from rollout_lws.workload.revisions import compressed

#: kubectl's copy of the whole manifest, which no rule reads.
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_NOTHING = msgspec.Raw(b"")
#: Labels by which StatefulSets and LWS's revisions are found and told apart.
_OWN_LABELS = frozenset({LWS_NAME, LWS_REVISION})
#: How the annotation ends that says what we have borrowed, in any API group.
_MARK = "/original"
#: Members of a rolling update that are asked about, as managedFields name them.
_ROLLING_UPDATE = frozenset({".", "f:partition", "f:maxSurge", "f:maxUnavailable"})
#: Conditions of a pod that say nothing while they are True.
_USUAL = frozenset({"PodScheduled", "PodReadyToStartContainers", "Initialized", "ContainersReady"})

_workloads = msgspec.json.Decoder(LeaderWorkerSet)
_pods = msgspec.json.Decoder(Pod)
_sets = msgspec.json.Decoder(StatefulSet)
_revisions = msgspec.json.Decoder(ControllerRevision)

_NONE: dict[str, str] = {}


@lru_cache(maxsize=16_384)
def word(text: str) -> str:
    """The same string for equal ones. Python's own ``intern`` would keep the name of every pod that ever was: in 3.12
    it never lets go.
    """
    return text


def share(meta: Meta, labels: Collection[str] | None = None, annotations: Collection[str] | None = None) -> None:
    """Keep ``labels`` and ``annotations``, all by default, in the metadata of an object that was just made and nobody
    has seen yet. kubectl's copy of the manifest goes anyhow.
    """
    force_setattr(meta, "namespace", word(meta.namespace))
    force_setattr(meta, "labels", _shared(meta.labels, labels))
    meta.annotations.pop(LAST_APPLIED, None)
    force_setattr(meta, "annotations", _shared(meta.annotations, annotations))
    for owner in meta.owner_references:
        force_setattr(owner, "kind", word(owner.kind))
        force_setattr(owner, "name", word(owner.name))


def _shared(marks: Mapping[str, str], kept: Collection[str] | None) -> dict[str, str]:
    """Of no marks there is one dictionary, which nobody changes."""
    if kept is not None:
        return {word(key): word(marks[key]) for key in kept if key in marks} or _NONE
    return dict(zip(map(word, marks), map(word, marks.values()), strict=True)) or _NONE


@dataclass(frozen=True, slots=True)
class StoredObject:
    """An object of which only the metadata is looked at before it is needed as a whole."""

    metadata: Meta
    body: bytes


@dataclass(frozen=True, slots=True)
class StoredRollout:
    """A Rollout's JSON with what wakes its key: ``workload`` is the name of the LWS that it refers to, ``routes`` says
    whether Services concern it, since it names one or is in a release.
    """

    metadata: Meta
    workload: str
    body: bytes
    routes: bool = False


class _WorkloadRef(Struct, frozen=True):
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
    """Without what the API server and kubectl note about its writers: that is as long as all the rest."""
    head = _rollouts.decode(body)
    styles = head.spec.strategy.canary, head.spec.strategy.blue_green
    routes = any(style is not None and style.traffic_routings for style in styles)
    releases = head.status is not None and head.status.phase == Phase.PROGRESSING
    share(head.metadata, annotations=())
    return StoredRollout(head.metadata, head.spec.workload_ref.name, _without_writers(body), routes or releases)


def stored_object(body: bytes) -> StoredObject:
    """Its body as it is: of foreign objects that are written to it is asked who else writes to them."""
    head = _objects.decode(body)
    share(head.metadata)
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
    # What an encoder gives has room for more, up to twice of what is in it.
    return bytes(memoryview(msgspec.json.encode(whole)))


def trimmed_workload(body: bytes) -> LeaderWorkerSet:
    """Without its conditions, and of managedFields with what is asked about the template and the strategy."""
    lws = _workloads.decode(body)
    share(lws.metadata)
    force_setattr(lws.metadata, "managed_fields", tuple(map(_trimmed_field, lws.metadata.managed_fields)))
    # A Raw member would keep the object's whole JSON alive.
    spec = replace(
        lws.spec,
        leader_worker_template=lws.spec.leader_worker_template.copy(),
        network_config=lws.spec.network_config.copy(),
    )
    return replace(lws, spec=spec, status=replace(lws.status, conditions=()))


def trimmed_leader(body: bytes) -> Pod:
    """With all labels, for selectors may ask for any of them."""
    pod = _pods.decode(body)
    share(pod.metadata, annotations=(SIZE_ANNOTATION,))
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
    share(found.metadata, labels=_OWN_LABELS, annotations=())
    return found


def trimmed_revision(body: bytes) -> ControllerRevision:
    """LWS's and StatefulSets'; data is kept, compressed, where it can hold a version: that of a StatefulSet never
    does.
    """
    found = _revisions.decode(body)
    share(found.metadata, labels=_OWN_LABELS, annotations=())
    owner = found.metadata.controller
    if owner is not None and owner.kind == STATEFUL_SETS.kind:
        return replace(found, data=_NOTHING)
    return compressed(found)


def trimmed_history(body: bytes) -> ControllerRevision:
    """A version that a Rollout remembers; its marks are ours."""
    found = _revisions.decode(body)
    share(found.metadata)
    return compressed(found)


@dataclass(frozen=True, slots=True)
class Decoders:
    """How each kind is read from its JSON: as a whole, or trimmed as in the caches."""

    workload: Callable[[bytes], LeaderWorkerSet]
    leader: Callable[[bytes], Pod]
    pod: Callable[[bytes], Pod]
    stateful_set: Callable[[bytes], StatefulSet]
    revision: Callable[[bytes], ControllerRevision]
    history: Callable[[bytes], ControllerRevision]


WHOLE = Decoders(
    workload=_workloads.decode,
    leader=_pods.decode,
    pod=_pods.decode,
    stateful_set=_sets.decode,
    revision=_revisions.decode,
    history=_revisions.decode,
)
TRIMMED = Decoders(
    workload=trimmed_workload,
    leader=trimmed_leader,
    pod=_pods.decode,
    stateful_set=trimmed_set,
    revision=trimmed_revision,
    history=trimmed_history,
)


class _Owned(Struct, frozen=True):
    """A member that a manager owns, whatever is in it."""


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
    """What is empty is owned as a whole; nothing is to become so by being trimmed."""
    owned = strategy.rolling_update
    if not owned:
        return None if owned is None else strategy
    kept = {member: mark for member, mark in owned.items() if member in _ROLLING_UPDATE}
    return _OwnedStrategy(rolling_update=kept) if kept else None


@lru_cache(maxsize=16)
def _raw(owned: bytes) -> msgspec.Raw:
    """There are half a dozen of them."""
    return msgspec.Raw(owned)
