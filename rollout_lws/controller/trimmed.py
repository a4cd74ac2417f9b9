"""What the caches keep of LeaderWorkerSets, their pods, StatefulSets and revisions: what decides, and nothing twice.

A Rollout of four groups has some twenty such objects, and a fleet of them lies at rest for months. So marks that nobody
reads are dropped, words that many objects share are one object, and versions are compressed. What comes out is of the
same types as what the command line decodes as a whole, and decides alike.
"""

from __future__ import annotations

from functools import lru_cache

import msgspec
from msgspec.structs import force_setattr, replace

from rollout_lws.controller.shared import share, word
from rollout_lws.objects.meta import ManagedField, Struct
from rollout_lws.objects.resources import LWS_NAME, LWS_REVISION, STATEFUL_SETS
from rollout_lws.objects.workloads import ControllerRevision, LeaderWorkerSet, Pod, StatefulSet
from rollout_lws.workload.groups import SIZE_ANNOTATION
from rollout_lws.workload.revisions import compressed

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
