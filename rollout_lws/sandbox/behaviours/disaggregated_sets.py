"""The DisaggregatedSet controller of LeaderWorkerSet 0.10: a LeaderWorkerSet for each role, slice and revision.

The name of each has the revision in it, which is a hash of the templates of all roles: another template in one of them
makes new LeaderWorkerSets for all. Their groups come one by one as those of the revision before go, each time when all
that were asked for are ready, and a revision whose LeaderWorkerSets are all at 0 is deleted. Another number of groups,
rolloutStrategy or label changes no revision.

The real controller's steps keep the roles' proportions, by each role's maxSurge and maxUnavailable; these go by one
group of each role, as with its defaults. The hash is another one, since the real one is of Go's JSON. Of the status
there are the numbers of groups, which 0.10.0 does not write.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from rollout_lws.objects.resources import DISAGGREGATED_SETS, LEADER_WORKER_SETS, SERVICES
from rollout_lws.objects.writes import Create, Delete, Patch, Write
from rollout_lws.sandbox.behaviours.base import (
    NOTHING,
    Change,
    Key,
    Object,
    Outcome,
    View,
    controlled_by,
    controller_of,
    key_of,
    labels_of,
    terminating,
)

PREFIX = f"{DISAGGREGATED_SETS.group}/"
#: Labels of the LeaderWorkerSets, of their pods and of their Services.
NAME, ROLE, SLICE, REVISION = (PREFIX + each for each in ("name", "role", "slice", "revision"))
_REVISION_LENGTH = 8

_encoder = msgspec.json.Encoder(order="deterministic")


@dataclass(frozen=True, slots=True)
class _Slice:
    """One copy of all roles: the LeaderWorkerSets of it by revision and role, of which ``revision`` is to serve."""

    number: int
    revision: str
    sets: Mapping[str, Mapping[str, Object]]

    @property
    def new(self) -> Mapping[str, Object]:
        return self.sets.get(self.revision, {})

    @property
    def old(self) -> Mapping[str, Mapping[str, Object]]:
        return {revision: sets for revision, sets in self.sets.items() if revision != self.revision}

    def old_groups(self, role: str) -> int:
        """Groups that are asked for of a role in all earlier revisions."""
        return sum(_replicas(sets[role]) for sets in self.old.values() if role in sets)


class DisaggregatedSets:
    """Reconciles DisaggregatedSets; triggered by them and their LeaderWorkerSets."""

    name = "disaggregatedset"

    def wakes(self, change: Change, view: View) -> Iterable[Key]:  # noqa: ARG002 (the change is enough)
        if change.resource == DISAGGREGATED_SETS:
            return () if change.deleted else (key_of(change.object),)
        owner = controller_of(change.object) if change.resource in (LEADER_WORKER_SETS, SERVICES) else None
        if owner and owner["kind"] == DISAGGREGATED_SETS.kind:
            return ((change.object["metadata"]["namespace"], owner["name"]),)
        return ()

    def decide(self, key: Key, view: View, now: float) -> Outcome:  # noqa: ARG002 (it waits for changes alone)
        live = view.get(DISAGGREGATED_SETS, *key)
        if live is None or terminating(live):
            return NOTHING
        uid = live["metadata"]["uid"]
        made = [each for each in view.owned(uid, LEADER_WORKER_SETS) if controlled_by(each, uid)]
        services = [each for each in view.owned(uid, SERVICES) if controlled_by(each, uid)]
        return Outcome(tuple(_writes(live, made, services)))


def revision_of(roles: Iterable[Mapping[str, Any]]) -> str:
    """Eight hexadecimal digits that tell the templates of all roles; their numbers of groups are none of them."""
    templates = [{"name": each["name"], "template": each["spec"]["leaderWorkerTemplate"]} for each in roles]
    return hashlib.sha256(_encoder.encode(templates)).hexdigest()[:_REVISION_LENGTH]


def _writes(live: Object, made: Sequence[Object], services: Sequence[Object]) -> Iterator[Write]:
    revision = revision_of(live["spec"]["roles"])
    slices = range(int(live["spec"].get("slices", 1)))
    for each in made:
        if int(labels_of(each)[SLICE]) not in slices:
            yield _delete(LEADER_WORKER_SETS, each, "its slice is not asked for any more")
    for number in slices:
        sets: dict[str, dict[str, Object]] = {}
        for each in made:
            if labels_of(each)[SLICE] == str(number) and not terminating(each):
                sets.setdefault(labels_of(each)[REVISION], {})[labels_of(each)[ROLE]] = each
        seen = _Slice(number, revision, sets)
        yield from _roll(live, seen)
        yield from _services(live, seen, services)
    status = _status(live, made, revision)
    if status != live.get("status"):
        yield Patch(DISAGGREGATED_SETS, *key_of(live), {"status": status}, "groups changed", subresource="status")


def _roll(live: Object, seen: _Slice) -> Iterator[Write]:
    roles = live["spec"]["roles"]
    drained = [sets for sets in seen.old.values() if not any(map(_replicas, sets.values()))]
    for sets in drained:
        for each in sets.values():
            yield _delete(LEADER_WORKER_SETS, each, "no group of its revision is left")
    rolls = any(seen.old_groups(role["name"]) for role in roles)
    missing = [role for role in roles if role["name"] not in seen.new]
    for role in missing:
        yield Create(
            LEADER_WORKER_SETS,
            _leader_worker_set(live, seen, role, 0 if rolls else _target(role)),
            "a role has no LeaderWorkerSet of this revision",
        )
    if missing:
        return
    if not rolls:
        for role in roles:
            yield from _scaled(seen.new[role["name"]], _target(role))
        return
    if all(_is_ready(seen.new[role["name"]]) for role in roles):
        yield from _step(seen, roles)


def _step(seen: _Slice, roles: Iterable[Mapping[str, Any]]) -> Iterator[Write]:
    """One more group of each role that has room for it; where none has, one less of the earlier revisions, which all
    go when the new one is whole.
    """
    whole = all(_replicas(seen.new[role["name"]]) >= _target(role) for role in roles)
    grows = [
        role
        for role in roles
        if _replicas(seen.new[role["name"]]) < _target(role)
        and _replicas(seen.new[role["name"]]) + seen.old_groups(role["name"]) <= _target(role)
    ]
    for role in grows:
        live = seen.new[role["name"]]
        yield from _scaled(live, _replicas(live) + 1)
    if grows:
        return
    for sets in seen.old.values():
        for live in sets.values():
            left = 0 if whole else max(1, _replicas(live) - 1)
            yield from _scaled(live, min(left, _replicas(live)))


def _services(live: Object, seen: _Slice, services: Sequence[Object]) -> Iterator[Write]:
    """A headless Service for each role of a revision in which every role has a ready group."""
    names = {each["metadata"]["name"] for each in services}
    serving = {revision for revision, sets in seen.sets.items() if sets and all(map(_ready, sets.values()))}
    if seen.revision not in serving:
        return
    for each in seen.new.values():
        name = f"{each['metadata']['name']}-prv"
        if name not in names:
            selector = {key: labels_of(each)[key] for key in (NAME, ROLE, SLICE, REVISION)}
            metadata = {
                "name": name,
                "namespace": each["metadata"]["namespace"],
                "labels": selector,
                "ownerReferences": [_owner(live)],
            }
            spec = {"clusterIP": "None", "selector": selector}
            yield Create(SERVICES, {"metadata": metadata, "spec": spec}, "a role's pods of this revision")
    for each in services:
        if labels_of(each)[SLICE] == str(seen.number) and labels_of(each)[REVISION] not in serving:
            yield _delete(SERVICES, each, "its revision does not serve any more")


def _leader_worker_set(live: Object, seen: _Slice, role: Mapping[str, Any], replicas: int) -> dict[str, Any]:
    namespace, name = key_of(live)
    own = role.get("metadata") or {}
    labels = {
        "app": f"{name}-{seen.number}-{role['name']}",
        NAME: name,
        ROLE: role["name"],
        SLICE: str(seen.number),
        REVISION: seen.revision,
    }
    template = dict(role["spec"]["leaderWorkerTemplate"])
    for member in ("leaderTemplate", "workerTemplate"):
        pods = template.get(member)
        if pods is not None:
            metadata = pods.get("metadata") or {}
            template[member] = {
                **pods,
                "metadata": {**metadata, "labels": {**(metadata.get("labels") or {}), **labels}},
            }
    return {
        "apiVersion": LEADER_WORKER_SETS.api_version,
        "kind": LEADER_WORKER_SETS.kind,
        "metadata": {
            "name": f"{name}-{seen.number}-{seen.revision}-{role['name']}",
            "namespace": namespace,
            "labels": {**(own.get("labels") or {}), **labels},
            "annotations": {**(own.get("annotations") or {})},
            "ownerReferences": [_owner(live)],
        },
        "spec": {**role["spec"], "replicas": replicas, "leaderWorkerTemplate": template},
    }


def _owner(live: Object) -> dict[str, Any]:
    return {
        "apiVersion": DISAGGREGATED_SETS.api_version,
        "kind": DISAGGREGATED_SETS.kind,
        "name": live["metadata"]["name"],
        "uid": live["metadata"]["uid"],
        "controller": True,
    }


def _status(live: Object, made: Sequence[Object], revision: str) -> dict[str, Any]:
    def total(role: str, member: str, *, of_revision: bool = False) -> int:
        return sum(
            int((each.get("status") or {}).get(member, 0))
            for each in made
            if labels_of(each)[ROLE] == role and (not of_revision or labels_of(each)[REVISION] == revision)
        )

    names = [role["name"] for role in live["spec"]["roles"]]
    return {
        "observedGeneration": live["metadata"]["generation"],
        "roleStatuses": [
            {
                "name": name,
                "replicas": total(name, "replicas"),
                "readyReplicas": total(name, "readyReplicas"),
                "updatedReplicas": total(name, "updatedReplicas", of_revision=True),
            }
            for name in names
        ],
    }


def _target(role: Mapping[str, Any]) -> int:
    return int(role["spec"].get("replicas", 1))


def _replicas(lws: Object) -> int:
    return int(lws["spec"].get("replicas", 1))


def _ready(lws: Object) -> int:
    return int((lws.get("status") or {}).get("readyReplicas", 0))


def _is_ready(lws: Object) -> bool:
    return _ready(lws) == _replicas(lws)


def _scaled(lws: Object, replicas: int) -> Iterator[Write]:
    if _replicas(lws) != replicas:
        yield Patch(LEADER_WORKER_SETS, *key_of(lws), {"spec": {"replicas": replicas}}, "the roles roll together")


def _delete(resource: Any, obj: Object, reason: str) -> Delete:
    return Delete(resource, *key_of(obj), obj["metadata"]["uid"], reason)
