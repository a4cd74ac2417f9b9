"""Builds the ``Observation`` of one Rollout from the caches: collects everything that concerns it, decides nothing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import TypeVar, cast

import msgspec
from pydantic import ValidationError

from rollout_lws.api import BatchRelease, Phase, Rollout, rollouts
from rollout_lws.api.base import Model
from rollout_lws.api.resources import Keys
from rollout_lws.errors import Unreadable
from rollout_lws.objects.released import RELEASED
from rollout_lws.objects.resources import HORIZONTAL_POD_AUTOSCALERS
from rollout_lws.objects.workloads import ControllerRevision, CoreEvent, Pod, StatefulSet
from rollout_lws.observe.cache_types import StoredObject, StoredRollout, stored_rollout
from rollout_lws.observe.explanations import queues, refusals
from rollout_lws.observe.gate_jobs import gate_jobs
from rollout_lws.observe.pair import pair_of
from rollout_lws.observe.routing import marked, mentioning, plain_all, routing
from rollout_lws.observe.world import World
from rollout_lws.rollout.autoscaling import hpa_bounds
from rollout_lws.rollout.observation import Autoscalers, Observation, Queues, RefusedWrite
from rollout_lws.rollout.routing.sides import ACTIVE
from rollout_lws.targets.target import Target
from rollout_lws.traffic import marks
from rollout_lws.workload.canary import canary_name, name_of_canary, stable_of
from rollout_lws.workload.facts import Facts, NamedObject


def observe(world: World, name: str, now: datetime, refused: RefusedWrite | None = None) -> Observation | None:
    """The observation of Rollout ``name``; None when there is no such Rollout. Tuples are ordered by name.

    Unreadable when the Rollout or its BatchRelease cannot be decoded.
    """
    stored = world.rollout(name)
    return None if stored is None else _picture(world, stored, _read(Rollout, stored), now, refused)


@dataclass(frozen=True, slots=True)
class Posted:
    """A Rollout from a request, which may differ from the cached one or be missing there."""

    stored: StoredRollout
    rollout: Rollout


def posted(body: bytes) -> Posted:
    """A Rollout from its JSON; Unreadable as above. Not cached, since the request's sender may send anything."""
    try:
        stored = stored_rollout(body)
        rollout = Rollout.model_validate_json(body)
    except msgspec.DecodeError as error:
        raise Unreadable(f"{Rollout.__name__} cannot be read: {error}") from error
    except ValidationError as error:
        raise _unreadable(Rollout, stored, error) from error
    return Posted(stored, rollout)


def supposed(world: World, posted: Posted, now: datetime) -> Observation:
    """The observation with the Rollout as posted."""
    return _picture(world, posted.stored, posted.rollout, now, None)


def _picture(
    world: World, stored: StoredRollout, rollout: Rollout, now: datetime, refused: RefusedWrite | None
) -> Observation:
    name = stored.metadata.name
    workload = stored.workload
    kind = stored.kind
    known = _Known(refusals(world), queues(world))
    paired = pair_of(world, rollout, kind, lambda lws: _facts(world, lws, known), now)
    stable = world.workload(kind, workload) if kind is not None else None
    place = canary_name(stable) if stable is not None and paired is None else None
    made = world.workload(kind, name_of_canary(workload)) if kind is not None and paired is None else None
    canary = made if made is not None and stable_of(made.metadata.labels, world.keys) == workload else None
    swapped = made is not None and _stands_in(made, workload, world.keys)
    if paired is not None:
        stable, canary = paired.stable, paired.canary
    if swapped:
        stable, canary, place = made, stable, name_of_canary(workload)
    batch = world.batch_release(name)
    if batch is not None and not _is_of(batch, rollout):
        batch = None
    annotated = marked(world, rollout, stable)
    shared = routing(world, rollout, annotated, stable, canary, paired=paired.names if paired is not None else None)
    releases = rollout.status is not None and rollout.status.phase == Phase.PROGRESSING
    has_no_weight = shared is None and (releases or rollout.spec.swaps)
    other = workload if swapped else place
    left = () if other is None or canary is not None else _pods_left(world, other)
    return Observation(
        now=now,
        keys=world.keys,
        rollout=rollout,
        capabilities=world.capabilities,
        rivals=tuple(
            each.metadata
            for each in _by_name({each.metadata.uid: each for each in _rivals(world, rollout)}.values())
            if each.kind == kind and each.metadata.uid != stored.metadata.uid
        ),
        stable=None if stable is None else _facts(world, stable, known),
        canary=None if canary is None else _facts(world, canary, known),
        active=paired.active if paired is not None else "",
        swapped=swapped,
        companions=paired.companions if paired is not None else (),
        made_by=_made_by(world, stored),
        remains=() if stable is None or canary is not None or paired or swapped else _remains(world, stable, left),
        pods_left=left,
        unknown_pods={
            name: unknown
            for name in (stored.workloads if paired is not None else (workload, place))
            if name is not None and (unknown := world.unknown_pods(name)) is not None
        },
        batch_release=None if batch is None else _read(BatchRelease, batch),
        history=tuple(_by_name(world.history(stored.metadata.uid))),
        refused=refused,
        marked=annotated,
        routing=shared,
        autoscalers=_autoscalers(world, stored),
        queues=known.queues,
        services=plain_all(world.every_service()) if has_no_weight else {},
        answers=world.answers(name),
        gate_jobs=gate_jobs(world, rollout, known.refusals),
    )


def _made_by(world: World, stored: StoredRollout) -> dict[str, str]:
    """Of StatefulSets that the Rollout names: the workload of another kind that has made each for its groups."""
    if stored.kind is None or RELEASED[stored.kind].stateful_sets is not None:
        return {}
    found = ((name, world.made_stateful_set(name)) for name in stored.workloads if name)
    return {name: made.workload for name, made in found if made is not None}


def _rivals(world: World, rollout: Rollout) -> Iterable[StoredRollout]:
    """Rollouts that name a workload which this one names."""
    return (each for name in rollout.spec.workloads for each in world.rollouts_of(name))


def _stands_in(lws: Target, workload: str, keys: Keys) -> bool:
    """Whether an LWS with the name of the workload's canary serves in its place: by either of the labels that say so,
    and by nothing that a canary has.
    """
    meta = lws.metadata
    if keys.canary_leader_worker_set in meta.labels or meta.controller is not None:
        return False
    ours = meta.labels.get(keys.side) == ACTIVE and keys.canary_finalizer in meta.finalizers
    return ours or meta.labels.get(keys.stands_for) == workload


def _autoscalers(world: World, stored: StoredRollout) -> Autoscalers:
    uid, name = stored.metadata.uid, stored.metadata.name
    workloads = [*(each for each in stored.workloads if each), name_of_canary(stored.workload)]
    near = mentioning(world.every(HORIZONTAL_POD_AUTOSCALERS), *(f'"{each}"' for each in workloads), f'"{name}"', uid)
    objects = tuple(
        live
        for live in near
        if hpa_bounds.scaled_workload(live) in workloads or marks.read(live, uid, world.keys) is not None
    )
    of_rollout = tuple(live for live in near if hpa_bounds.scaled_rollout(live, world.keys.group) == name)
    waits = world.unknown(HORIZONTAL_POD_AUTOSCALERS)
    living = frozenset(each.metadata.uid for each in world.every_rollout()) if objects else frozenset()
    return Autoscalers(objects, of_rollout, living, waits is None, waits or "")


def _read(model: type[_Own], stored: StoredRollout | StoredObject) -> _Own:
    try:
        return cast(_Own, _validated(model, stored.body))
    except ValidationError as error:
        raise _unreadable(model, stored, error) from error


def _unreadable(model: type[Model], stored: StoredRollout | StoredObject, error: ValidationError) -> Unreadable:
    first = error.errors(include_url=False)[0]
    place = ".".join(str(part) for part in first["loc"])
    return Unreadable(
        f"{model.__name__} {stored.metadata.name} cannot be read: {place}: {first['msg']}; correct it, and install"
        " the CRDs of this version: rollout-lws crds"
    )


# A release often observes the same unchanged object several times, and decoding takes as long as deciding.
@lru_cache(maxsize=64)
def _validated(model: type[Model], body: bytes) -> Model:
    return model.model_validate_json(body)


def _is_of(batch: StoredObject, rollout: Rollout) -> bool:
    """Whether a Rollout of this name created it: an earlier one's is ours to clean up, a foreign one is not."""
    owner = batch.metadata.controller
    return owner is not None and (owner.kind, owner.name) == (rollouts().kind, rollout.metadata.name)


@dataclass(frozen=True, slots=True)
class _Known:
    """Objects of the whole namespace that explain why groups are missing."""

    refusals: tuple[CoreEvent, ...]
    queues: Queues


def _facts(world: World, lws: Target, known: _Known) -> Facts:
    name, uid = lws.metadata.name, lws.metadata.uid
    leaders = _by_name(world.leaders(name))
    sets = [lws.leader_set] if lws.leader_set is not None else _by_name(world.stateful_sets(name))
    leader_set = lws.leader_set or next(
        (each for each in sets if each.metadata.name == name and each.metadata.controlled_by(uid)), None
    )
    owners = {pod.metadata.uid for pod in leaders}
    revisions = _by_name(world.revisions(name))
    set_uid = leader_set.metadata.uid if leader_set is not None else None
    set_uids = {each.metadata.uid for each in sets}
    return Facts(
        workload=lws,
        leader_set=leader_set,
        leaders=tuple(leaders),
        worker_sets=tuple(
            each for each in sets if (owner := each.metadata.controller) is not None and owner.uid in owners
        ),
        pods=tuple(_by_name(world.pods(name))),
        revisions=tuple(each for each in revisions if each.metadata.controlled_by(uid)),
        set_revisions=tuple(each for each in revisions if set_uid is not None and each.metadata.controlled_by(set_uid)),
        refusals=tuple(each for each in known.refusals if each.involved_object.uid in set_uids),
        queued=tuple(
            each
            for each in known.queues.workloads
            if any(owner.uid in (uid, *owners) for owner in each.metadata.owner_references)
        ),
        listing=known.queues.listing,
    )


def _pods_left(world: World, place: str) -> tuple[Pod, ...]:
    """Pods of an LWS called ``place``; each once, from either watch."""
    pods = {pod.metadata.uid: pod for source in (world.leaders, world.pods) for pod in source(place)}
    return tuple(_by_name(pods.values()))


def _remains(world: World, stable: Target, pods: tuple[Pod, ...]) -> tuple[NamedObject, ...]:
    """Objects that occupy names of the canary of ``stable``, including its ``pods``."""
    place = canary_name(stable)
    squatter = world.workload(stable.resource, place)
    found: list[NamedObject] = []
    if squatter is not None:
        found.append(_named(stable.resource.kind, squatter))
    found += [_named("StatefulSet", each) for each in _by_name(world.stateful_sets(place))]
    found += [_named("Service", each) for each in _by_name(world.services(place))]
    found += [_named("Pod", each) for each in pods]
    found += [_named("ControllerRevision", each) for each in _by_name(world.revisions(place))]
    return tuple(found)


def _named(kind: str, each: Target | StatefulSet | Pod | ControllerRevision | StoredObject) -> NamedObject:
    return NamedObject(kind, each.metadata.name, each.metadata.terminating)


_Own = TypeVar("_Own", Rollout, BatchRelease)
_Kind = TypeVar("_Kind", Target, StatefulSet, Pod, ControllerRevision, StoredObject, StoredRollout)


def _by_name(objects: Iterable[_Kind]) -> list[_Kind]:
    return sorted(objects, key=lambda each: each.metadata.name)
