"""Reads what a controller would know of one Rollout, by a few selective requests, without a controller.

It answers the questions of ``observe``, so that the very rules of the controller judge what is read here. What may not
be read is noted, and taken for absent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

import msgspec

from rollout_lws.api.resources import Keys, batch_releases, rollouts
from rollout_lws.controller.capabilities import CRD_NAME, definition, of_objects
from rollout_lws.controller.diagnosis import DECODERS, FIELDS
from rollout_lws.controller.stored import StoredObject, StoredRollout, stored_object, stored_rollout
from rollout_lws.errors import ApiError
from rollout_lws.objects import resources as kinds
from rollout_lws.objects.endpoints import SERVICE_NAME, EndpointSlice
from rollout_lws.objects.kueue import JOB_UID
from rollout_lws.objects.resources import LEADER_WORKER_SETS, LWS_NAME, LWS_WORKER_INDEX, Resource
from rollout_lws.objects.workloads import ControllerRevision, LeaderWorkerSet, Pod, StatefulSet
from rollout_lws.rollout.observation import Capabilities

Object = Mapping[str, Any]

_DECODERS: Mapping[Resource, Callable[[bytes], Any]] = {
    LEADER_WORKER_SETS: msgspec.json.Decoder(LeaderWorkerSet).decode,
    kinds.PODS: msgspec.json.Decoder(Pod).decode,
    kinds.STATEFUL_SETS: msgspec.json.Decoder(StatefulSet).decode,
    kinds.CONTROLLER_REVISIONS: msgspec.json.Decoder(ControllerRevision).decode,
    kinds.ENDPOINT_SLICES: msgspec.json.Decoder(EndpointSlice).decode,
    **DECODERS,
}


class Source(Protocol):
    """Objects as JSON values. ApiError where the server refuses."""

    def get(self, resource: Resource, namespace: str, name: str) -> Object: ...
    def list(self, resource: Resource, namespace: str, labels: str = "", fields: str = "") -> Iterable[Object]:
        """Those with these labels and fields, which are selectors; no namespace means all of them."""
        ...

    def serves(self, resource: Resource) -> bool:
        """Whether the server knows the kind at all, for whoever may not read it."""
        ...


class Cluster:
    """One namespace of it, each thing asked for once. ``refused`` has the server's words by kind, for those that may
    not be read.
    """

    def __init__(self, source: Source, namespace: str, keys: Keys) -> None:
        self.refused: dict[Resource, str] = {}
        self._source, self._namespace, self._keys = source, namespace, keys
        self._rollouts, self._batches = rollouts(keys.group), batch_releases(keys.group)
        self._absent: set[Resource] = set()
        self._lists: dict[tuple[Resource, str], list[Any]] = {}
        self._objects: dict[tuple[Resource, str], Object | None] = {}

    # What ``observe`` asks

    @property
    def capabilities(self) -> Capabilities:
        """As the CRD says; where that may not be read, as the LWSs that were read show."""
        found = self.read(kinds.CUSTOM_RESOURCE_DEFINITIONS, CRD_NAME)
        known = definition(msgspec.json.encode(found)).capabilities if found else None
        read = (each for (resource, _), each in self._objects.items() if resource == LEADER_WORKER_SETS)
        return known or of_objects(each for each in read if each is not None)

    def rollout(self, name: str) -> StoredRollout | None:
        found = self.read(self._rollouts, name)
        return None if found is None else stored_rollout(msgspec.json.encode(found))

    def rollouts_of(self, workload: str) -> Iterable[StoredRollout]:
        return [each for each in self.every_rollout() if each.workload == workload]

    def batch_release(self, name: str) -> StoredObject | None:
        found = self.read(self._batches, name)
        return None if found is None else stored_object(msgspec.json.encode(found))

    def workload(self, name: str) -> LeaderWorkerSet | None:
        found = self.read(LEADER_WORKER_SETS, name)
        return None if found is None else self._decoded(LEADER_WORKER_SETS, found)

    def canaries_of(self, workload: str) -> Iterable[LeaderWorkerSet]:
        return self._list(LEADER_WORKER_SETS, f"{self._keys.canary_leader_worker_set}={workload}")

    def leaders(self, workload: str) -> Iterable[Pod]:
        return [pod for pod in self.pods(workload) if pod.is_leader]

    def pods(self, workload: str) -> Iterable[Pod]:
        return self._list(kinds.PODS, f"{LWS_NAME}={workload}")

    def stateful_sets(self, workload: str) -> Iterable[StatefulSet]:
        return self._list(kinds.STATEFUL_SETS, f"{LWS_NAME}={workload}")

    def revisions(self, workload: str) -> Iterable[ControllerRevision]:
        return self._list(kinds.CONTROLLER_REVISIONS, f"{LWS_NAME}={workload}")

    def services(self, workload: str) -> Iterable[StoredObject]:
        return self._list(kinds.SERVICES, f"{LWS_NAME}={workload}")

    def history(self, owner_uid: str) -> Iterable[ControllerRevision]:
        stored: list[ControllerRevision] = self._list(kinds.CONTROLLER_REVISIONS, self._keys.history)
        return [each for each in stored if each.metadata.controlled_by(owner_uid)]

    def every_leader(self) -> Iterable[Pod]:
        return self._list(kinds.PODS, f"{LWS_NAME},{LWS_WORKER_INDEX}=0")

    def every_service(self) -> Iterable[StoredObject]:
        return self._list(kinds.SERVICES)

    def noted_services(self, uid: str) -> Iterable[StoredObject]:  # noqa: ARG002 - all of them are at hand
        return self.every_service()

    def every_rollout(self) -> Iterable[StoredRollout]:
        return self._list(self._rollouts)

    def every(self, resource: Resource) -> Iterable[StoredObject]:
        # Kueue's own label: Workloads of other kinds have none of ours.
        return self._list(resource, JOB_UID if resource in _OF_KUEUE else "")

    def endpoints(self, service: str) -> frozenset[str]:
        found = self._list(kinds.ENDPOINT_SLICES, f"{SERVICE_NAME}={service}")
        return frozenset().union(*(each.ready_pods for each in found))

    def has_endpoint(self, service: str) -> bool:
        return any(each.any_ready for each in self._list(kinds.ENDPOINT_SLICES, f"{SERVICE_NAME}={service}"))

    def unserved(self, resource: Resource) -> bool:
        self.every(resource)
        return resource in self._absent

    def unknown(self, resource: Resource) -> str | None:
        self.every(resource)
        return self.refused.get(resource)

    def unknown_endpoints(self, service: str) -> str | None:
        self.endpoints(service)
        return self.refused.get(kinds.ENDPOINT_SLICES)

    def unknown_pods(self, workload: str) -> str | None:
        self.pods(workload)
        return self.refused.get(kinds.PODS)

    # How it is read

    def read(self, resource: Resource, name: str) -> Object | None:
        """One object as it is, None when it does not exist, or may not be read."""
        place = resource, name
        if place not in self._objects:
            namespace = self._namespace if resource.namespaced else ""
            try:
                self._objects[place] = self._source.get(resource, namespace, name)
            except ApiError as error:
                self._note(resource, error)
                self._objects[place] = None
        return self._objects[place]

    def _list(self, resource: Resource, labels: str = "") -> list[Any]:
        place = resource, labels
        if place not in self._lists:
            namespace = self._namespace if resource.namespaced else ""
            try:
                found = list(self._source.list(resource, namespace, labels, FIELDS.get(resource, "")))
            except ApiError as error:
                if error.code == 404 or not self._note(resource, error):
                    self._absent.add(resource)
                found = []
            self._lists[place] = [self._decoded(resource, each) for each in found]
        return self._lists[place]

    def _note(self, resource: Resource, error: ApiError) -> bool:
        """Whoever may not read the one may be able to read the other; anything else is a failure. False for a kind
        that is not there: a server refuses before it looks whether it serves what is asked for.
        """
        if error.code == 403 and self._source.serves(resource):
            self.refused[resource] = error.message
            return True
        if error.code not in (403, 404):
            raise error
        return False

    def _decoded(self, resource: Resource, found: Object) -> Any:
        decode = stored_rollout if resource == self._rollouts else _DECODERS.get(resource, stored_object)
        return decode(msgspec.json.encode(found))


_OF_KUEUE = frozenset({kinds.KUEUE_WORKLOADS, kinds.KUEUE_WORKLOADS_BEFORE})
