"""The controller's view of a world without watches: its caches, filled straight from the store."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

import msgspec

from rollout_lws.api.resources import batch_releases
from rollout_lws.controller.diagnosis import DECODERS, EXPLAINING, FIELDS
from rollout_lws.controller.stored import StoredObject, StoredRollout, stored_object, stored_rollout
from rollout_lws.controller.trimmed import (
    trimmed_history,
    trimmed_leader,
    trimmed_revision,
    trimmed_set,
    trimmed_workload,
)
from rollout_lws.errors import ApiError
from rollout_lws.objects import resources as kinds
from rollout_lws.objects.endpoints import SERVICE_NAME, EndpointSlice
from rollout_lws.objects.resources import LEADER_WORKER_SETS, LWS_NAME, LWS_WORKER_INDEX, Resource
from rollout_lws.objects.workloads import ControllerRevision, LeaderWorkerSet, Pod, StatefulSet
from rollout_lws.rollout.observation import Capabilities
from rollout_lws.sandbox.apiserver import ApiServer
from rollout_lws.sandbox.store import Event, Object
from tests.scenarios.names import KEYS, NAMESPACE, ROLLOUTS

Decode: TypeAlias = Callable[[bytes], Any]

_DECODERS: Mapping[Resource, Decode] = {
    ROLLOUTS: stored_rollout,
    batch_releases(): stored_object,
    LEADER_WORKER_SETS: trimmed_workload,
    kinds.PODS: msgspec.json.Decoder(Pod).decode,
    kinds.STATEFUL_SETS: trimmed_set,
    kinds.SERVICES: stored_object,
    kinds.HTTP_ROUTES: stored_object,
    kinds.INGRESSES: stored_object,
    kinds.HORIZONTAL_POD_AUTOSCALERS: stored_object,
    kinds.INFERENCE_POOLS: stored_object,
    kinds.POD_DISRUPTION_BUDGETS: stored_object,
    kinds.ENDPOINT_SLICES: msgspec.json.Decoder(EndpointSlice).decode,
    **DECODERS,
}


class StoreWorld:
    """What ``observe`` asks for. Each version of an object is decoded once, as by a watch, and trimmed as by the
    controller's: what a cache does not keep must change no story.
    """

    capabilities = Capabilities()

    def __init__(self, server: ApiServer) -> None:
        self.server = server
        self._decoded: dict[tuple[Resource, str, Decode], tuple[Object, Any]] = {}
        #: Answers of lists by the resource that they are stored as, until one of its objects changes.
        self._listed: dict[Resource, dict[Any, tuple[Any, ...]]] = {}
        self._heard_of = server.store.version
        server.store.subscribe(self._take)
        self._wanted: dict[Resource, float] = {}
        self._followed: frozenset[str] = frozenset()

    def _take(self, event: Event) -> None:
        self._heard_of = event.version
        if event.resource == kinds.CUSTOM_RESOURCE_DEFINITIONS:
            self._listed.clear()
        self._listed.pop(event.resource, None)

    def want(self, wanted: Iterable[Resource]) -> float | None:
        """What explains is known only while somebody wants it, and some of it only after a while: in so many seconds
        there will be something new to know, None for not at all.
        """
        asked = [resource for resource in EXPLAINING if resource in wanted]
        fresh = [EXPLAINING[resource] for resource in asked if resource not in self._wanted]
        now = self.server.clock()
        self._wanted = {each: self._wanted.get(each, now + EXPLAINING[each]) for each in asked}
        return min(fresh, default=None)

    def want_pods(self, workloads: Iterable[str]) -> bool:
        """All pods of these LWSs are known from now on, and of no others; True when some were not before."""
        before, self._followed = self._followed, frozenset(workloads)
        return not self._followed <= before

    @property
    def watched(self) -> list[Resource]:
        """Kinds that explain and are asked for now."""
        return [each for each in self._wanted if self._is_watched(each)]

    def _is_watched(self, resource: Resource) -> bool:
        return resource not in EXPLAINING or self._wanted.get(resource, float("inf")) <= self.server.clock()

    def _decode(self, resource: Resource, obj: Object, decode: Decode | None = None) -> Any:
        decode = decode or _DECODERS[resource]
        place = resource, obj["metadata"]["name"], decode
        known = self._decoded.get(place)
        # Nobody changes a stored object in place, so that another version is another dict.
        if known is None or known[0] is not obj:
            known = self._decoded[place] = obj, decode(msgspec.json.encode(obj))
        return known[1]

    def _get(self, resource: Resource, name: str) -> Any | None:
        try:
            return self._decode(resource, self.server.get(resource, NAMESPACE, name))
        except ApiError:
            return None

    def _list(
        self, resource: Resource, selector: str = "", decode: Decode | None = None, fields: str = ""
    ) -> tuple[Any, ...]:
        asked = resource, selector, decode, fields
        answers = self._listed.setdefault(self.server.lookup(resource).storage, {})
        if asked in answers and self._heard_of == self.server.store.version:
            return answers[asked]
        namespace = NAMESPACE if resource.namespaced else ""
        found = self.server.list(resource, namespace, label_selector=selector, field_selector=fields)
        answers[asked] = tuple(self._decode(resource, obj, decode) for obj in found)
        return answers[asked]

    def rollout(self, name: str) -> StoredRollout | None:
        return self._get(ROLLOUTS, name)

    def rollouts_of(self, workload: str) -> Iterable[StoredRollout]:
        return [each for each in self._list(ROLLOUTS) if each.workload == workload]

    def batch_release(self, name: str) -> StoredObject | None:
        return self._get(batch_releases(), name)

    def workload(self, name: str) -> LeaderWorkerSet | None:
        return self._get(LEADER_WORKER_SETS, name)

    def canaries_of(self, workload: str) -> Iterable[LeaderWorkerSet]:
        return self._list(LEADER_WORKER_SETS, f"{KEYS.canary_leader_worker_set}={workload}")

    def leaders(self, workload: str) -> Iterable[Pod]:
        return self._list(kinds.PODS, f"{LWS_NAME}={workload},{LWS_WORKER_INDEX}=0", trimmed_leader)

    def pods(self, workload: str) -> Iterable[Pod]:
        return self._list(kinds.PODS, f"{LWS_NAME}={workload}")

    def stateful_sets(self, workload: str) -> Iterable[StatefulSet]:
        return self._list(kinds.STATEFUL_SETS, f"{LWS_NAME}={workload}")

    def revisions(self, workload: str) -> Iterable[ControllerRevision]:
        return self._list(kinds.CONTROLLER_REVISIONS, f"{LWS_NAME}={workload}", trimmed_revision)

    def services(self, workload: str) -> Iterable[StoredObject]:
        return self._list(kinds.SERVICES, f"{LWS_NAME}={workload}")

    def history(self, owner_uid: str) -> Iterable[ControllerRevision]:
        found = self._list(kinds.CONTROLLER_REVISIONS, KEYS.history, trimmed_history)
        return [each for each in found if each.metadata.controlled_by(owner_uid)]

    def every_leader(self) -> Iterable[Pod]:
        return self._list(kinds.PODS, f"{LWS_WORKER_INDEX}=0", trimmed_leader)

    def every_service(self) -> Iterable[StoredObject]:
        return self._list(kinds.SERVICES)

    def noted_services(self, uid: str) -> Iterable[StoredObject]:
        return self.every_service()

    def every_rollout(self) -> Iterable[StoredRollout]:
        return self._list(ROLLOUTS)

    def every(self, resource: Resource) -> Iterable[StoredObject]:
        if self.unserved(resource) or not self._is_watched(resource):
            return []
        return self._list(resource, fields=FIELDS.get(resource, ""))

    def unserved(self, resource: Resource) -> bool:
        if not self._is_watched(resource):
            return False
        try:
            self.server.lookup(resource)
        except ApiError as error:
            return error.code == 404
        return False

    def endpoints(self, service: str) -> frozenset[str]:
        found = self._list(kinds.ENDPOINT_SLICES, f"{SERVICE_NAME}={service}")
        return frozenset().union(*(each.ready_pods for each in found))

    def has_endpoint(self, service: str) -> bool:
        return any(each.any_ready for each in self._list(kinds.ENDPOINT_SLICES, f"{SERVICE_NAME}={service}"))

    def unknown(self, resource: Resource) -> str | None:
        return None if self._is_watched(resource) else ""

    def unknown_endpoints(self, service: str) -> str | None:
        return None

    def unknown_pods(self, workload: str) -> str | None:
        return None if workload in self._followed else ""
