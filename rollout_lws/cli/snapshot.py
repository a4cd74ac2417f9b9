"""One look at a namespace, as the controller's caches would know it: what ``observe`` asks for, out of plain objects.

The objects may come from a cluster, from files, or from both; nothing is watched and nothing is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec

from rollout_lws.api.resources import Keys, batch_releases, rollouts
from rollout_lws.controller.stored import StoredObject, StoredRollout, stored_object, stored_rollout
from rollout_lws.objects.resources import (
    CONTROLLER_REVISIONS,
    LEADER_WORKER_SETS,
    LWS_NAME,
    LWS_WORKER_INDEX,
    PODS,
    SERVICES,
    STATEFUL_SETS,
    Resource,
)
from rollout_lws.objects.workloads import ControllerRevision, LeaderWorkerSet, Pod, StatefulSet
from rollout_lws.rollout.observation import Capabilities

Object = dict[str, Any]
_Kind = TypeVar("_Kind")


@dataclass(frozen=True, slots=True)
class Snapshot:
    """``objects`` are those of one namespace, by kind. ``absent`` are kinds that the cluster does not serve,
    ``unlisted`` kinds that could not be listed, each with the reason. ``workload_schema`` is the openAPIV3Schema of
    LeaderWorkerSets in that cluster, {} where it could not be read.
    """

    keys: Keys
    objects: Mapping[Resource, Sequence[Object]]
    capabilities: Capabilities = field(default_factory=Capabilities)
    absent: frozenset[Resource] = frozenset()
    unlisted: Mapping[Resource, str] = field(default_factory=dict)
    workload_schema: Mapping[str, Any] = field(default_factory=dict)

    def plain(self, resource: Resource) -> Sequence[Object]:
        """All objects of a kind, as they are."""
        return self.objects.get(resource, ())

    def find(self, resource: Resource, name: str | None) -> Object | None:
        """The object of this name, None when there is none."""
        return next((each for each in self.plain(resource) if each["metadata"]["name"] == name), None)

    def rollout(self, name: str) -> StoredRollout | None:
        found = self.find(rollouts(self.keys.group), name)
        return _typed(found, stored_rollout) if found is not None else None

    def every_rollout(self) -> Iterable[StoredRollout]:
        return [_typed(each, stored_rollout) for each in self.plain(rollouts(self.keys.group))]

    def rollouts_of(self, workload: str) -> Iterable[StoredRollout]:
        return [each for each in self.every_rollout() if each.workload == workload]

    def batch_release(self, name: str) -> StoredObject | None:
        found = self.find(batch_releases(self.keys.group), name)
        return _typed(found, stored_object) if found is not None else None

    def workload(self, name: str) -> LeaderWorkerSet | None:
        found = self.find(LEADER_WORKER_SETS, name)
        return _typed(found, _WORKLOADS.decode) if found is not None else None

    def canaries_of(self, workload: str) -> Iterable[LeaderWorkerSet]:
        key = self.keys.canary_leader_worker_set
        found = (each for each in self.plain(LEADER_WORKER_SETS) if _labels(each).get(key) == workload)
        return [_typed(each, _WORKLOADS.decode) for each in found]

    def leaders(self, workload: str) -> Iterable[Pod]:
        return [each for each in self.every_leader() if each.workload == workload]

    def every_leader(self) -> Iterable[Pod]:
        found = (each for each in self.plain(PODS) if _labels(each).get(LWS_WORKER_INDEX) == "0")
        return [_typed(each, _PODS.decode) for each in found]

    def pods(self, workload: str) -> Iterable[Pod]:
        return [_typed(each, _PODS.decode) for each in self._of_lws(PODS, workload)]

    def stateful_sets(self, workload: str) -> Iterable[StatefulSet]:
        return [_typed(each, _SETS.decode) for each in self._of_lws(STATEFUL_SETS, workload)]

    def revisions(self, workload: str) -> Iterable[ControllerRevision]:
        return [_typed(each, _REVISIONS.decode) for each in self._of_lws(CONTROLLER_REVISIONS, workload)]

    def services(self, workload: str) -> Iterable[StoredObject]:
        return [_typed(each, stored_object) for each in self._of_lws(SERVICES, workload)]

    def history(self, owner_uid: str) -> Iterable[ControllerRevision]:
        kept = (each for each in self.plain(CONTROLLER_REVISIONS) if self.keys.history in _labels(each))
        found = (_typed(each, _REVISIONS.decode) for each in kept)
        return [each for each in found if each.metadata.controlled_by(owner_uid)]

    def every_service(self) -> Iterable[StoredObject]:
        return self.every(SERVICES)

    def noted_services(self, uid: str) -> Iterable[StoredObject]:  # noqa: ARG002 - all of them are at hand
        return self.every_service()

    def every(self, resource: Resource) -> Iterable[StoredObject]:
        return [_typed(each, stored_object) for each in self.plain(resource)]

    def endpoints(self, service: str) -> frozenset[str]:  # noqa: ARG002 - who reaches whom now decides nothing here
        return frozenset()

    def has_endpoint(self, service: str) -> bool:  # noqa: ARG002 - see endpoints
        return False

    def unserved(self, resource: Resource) -> bool:
        return resource in self.absent

    def unknown(self, resource: Resource) -> str | None:
        return self.unlisted.get(resource)

    def unknown_endpoints(self, service: str) -> str | None:  # noqa: ARG002 - see endpoints
        return None

    def unknown_pods(self, workload: str) -> str | None:  # noqa: ARG002 - see endpoints
        return None

    def _of_lws(self, resource: Resource, workload: str) -> Iterable[Object]:
        return (each for each in self.plain(resource) if _labels(each).get(LWS_NAME) == workload)


_WORKLOADS = msgspec.json.Decoder(LeaderWorkerSet)
_PODS = msgspec.json.Decoder(Pod)
_SETS = msgspec.json.Decoder(StatefulSet)
_REVISIONS = msgspec.json.Decoder(ControllerRevision)


def _labels(obj: Object) -> Mapping[str, str]:
    found: Mapping[str, str] = obj["metadata"].get("labels") or {}
    return found


def _typed(obj: Object, decode: Callable[[bytes], _Kind]) -> _Kind:
    """By way of JSON, because the structs keep some members as the bytes they were."""
    return decode(msgspec.json.encode(obj))
