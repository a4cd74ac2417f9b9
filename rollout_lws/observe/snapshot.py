"""A namespace at one moment, built from plain objects, with the same interface as the controller's caches.

The objects may come from a cluster, from files, or from both; nothing is watched.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar

import msgspec

from rollout_lws.api.resources import Keys, batch_releases, rollouts
from rollout_lws.objects.jobs import JOB_NAME
from rollout_lws.objects.meta import selects
from rollout_lws.objects.released import RELEASED, WITH_WORKERS
from rollout_lws.objects.resources import (
    CONTROLLER_REVISIONS,
    ENDPOINT_SLICES,
    PODS,
    SERVICES,
    STATEFUL_SETS,
    Resource,
)
from rollout_lws.objects.workloads import SERVICE_NAME, ControllerRevision, EndpointSlice, Pod, StatefulSet
from rollout_lws.observe.cache_types import WHOLE, Decoders, StoredObject, StoredRollout, stored_object, stored_rollout
from rollout_lws.observe.explanations import DECODERS, LABELS
from rollout_lws.rollout.decision import Answered, Question
from rollout_lws.rollout.observation import Capabilities
from rollout_lws.targets.target import Target
from rollout_lws.traffic.custom.kinds import NO_CUSTOM_KINDS, CustomKinds, by_name
from rollout_lws.traffic.custom.scripts import UNKNOWN_SCRIPTS, Scripts

Object = dict[str, Any]
_T = TypeVar("_T")

_slices = msgspec.json.Decoder(EndpointSlice)


@dataclass(frozen=True, eq=False)
class ListedWorld(ABC):
    """Answers the questions of ``World``, except ``capabilities``, from lists.

    ``absent`` are kinds that the cluster does not serve, ``refused`` kinds that may not be read, each with the server's
    message. Each object is decoded once.
    """

    decoders: ClassVar[Decoders] = WHOLE

    keys: Keys
    absent: Collection[Resource] = field(default_factory=frozenset, kw_only=True)
    refused: Mapping[Resource, str] = field(default_factory=dict, kw_only=True)
    _decoded: dict[tuple[Any, ...], Any] = field(default_factory=dict, init=False, repr=False)

    @abstractmethod
    def find(self, resource: Resource, name: str) -> Object | None:
        """The object of this name, None when there is none."""

    @abstractmethod
    def select(self, resource: Resource, labels: str) -> Iterable[Object]:
        """The objects that match a label selector of ``key=value``, ``key`` and ``!key``, joined by commas; "" selects
        all.
        """

    def rollout(self, name: str) -> StoredRollout | None:
        return self._get(rollouts(self.keys.group), name, stored_rollout)

    def rollouts_of(self, workload: str) -> Iterable[StoredRollout]:
        return [each for each in self.every_rollout() if workload in each.workloads]

    def every_rollout(self) -> Iterable[StoredRollout]:
        return self._list(rollouts(self.keys.group), "", stored_rollout)

    def batch_release(self, name: str) -> StoredObject | None:
        return self._get(batch_releases(self.keys.group), name, stored_object)

    def workload(self, kind: Resource, name: str) -> Target | None:
        found = self._get(kind, name, self.decoders.workloads[kind])
        return found if found is None or selects(RELEASED[kind].workloads, found.metadata.labels) else None

    def leaders(self, workload: str) -> Iterable[Pod]:
        return [pod for pod in self.every_leader() if pod.workload == workload]

    def every_leader(self) -> Iterable[Pod]:
        selectors = (f"{each.mark},{each.leaders}" for each in RELEASED.values())
        return [pod for each in selectors for pod in self._list(PODS, each, self.decoders.leader)]

    def pods(self, workload: str) -> Iterable[Pod]:
        return self._list(PODS, f"{WITH_WORKERS.workload}={workload}", self.decoders.pod)

    def stateful_sets(self, workload: str) -> Iterable[StatefulSet]:
        selectors = (each.stateful_sets for each in RELEASED.values() if each.stateful_sets is not None)
        found = (made for each in selectors for made in self._list(STATEFUL_SETS, each, self.decoders.stateful_set))
        return [each for each in found if each.workload == workload]

    def made_stateful_set(self, name: str) -> StatefulSet | None:
        found = self._get(STATEFUL_SETS, name, self.decoders.stateful_set)
        return found if found is not None and found.workload else None

    def revisions(self, workload: str) -> Iterable[ControllerRevision]:
        selectors = (each.records for each in RELEASED.values())
        found = (made for each in selectors for made in self._list(CONTROLLER_REVISIONS, each, self.decoders.revision))
        return [each for each in found if each.workload == workload]

    def history(self, owner_uid: str) -> Iterable[ControllerRevision]:
        found = self._list(CONTROLLER_REVISIONS, self.keys.history, self.decoders.history)
        return [each for each in found if each.metadata.controlled_by(owner_uid)]

    def services(self, workload: str) -> Iterable[StoredObject]:
        selectors = (f"{each.workload}={workload}" for each in RELEASED.values() if each.workload is not None)
        return [found for each in selectors for found in self._list(SERVICES, each, stored_object)]

    def every_service(self) -> Iterable[StoredObject]:
        return self._list(SERVICES, "", stored_object)

    def annotated_services(self, uid: str) -> Iterable[StoredObject]:  # noqa: ARG002 - all of them are at hand
        return self.every_service()

    def endpoint_slices(self, service: str) -> Iterable[EndpointSlice]:
        return self._list(ENDPOINT_SLICES, f"{SERVICE_NAME}={service}", _slices.decode)

    def every(self, resource: Resource) -> Iterable[StoredObject]:
        return self._list(resource, LABELS.get(resource, ""), DECODERS.get(resource, stored_object))

    def unserved(self, resource: Resource) -> bool:
        self.every(resource)
        return resource in self.absent

    def unknown(self, resource: Resource) -> str | None:
        self.every(resource)
        return self.refused.get(resource)

    def unknown_endpoints(self, service: str) -> str | None:
        self.endpoint_slices(service)
        return self.refused.get(ENDPOINT_SLICES)

    def answers(self, rollout: str) -> Mapping[Question, Answered]:  # noqa: ARG002 - nothing measures here
        return {}

    def custom_kind(self, api_version: str, kind: str) -> Resource | None:
        """As its name says, where no cluster was asked: every kind may be served."""
        return by_name(api_version, kind)

    def unknown_custom_kind(self, api_version: str, kind: str) -> str | None:  # noqa: ARG002 - see above
        return None

    def scripts(self, rollout: str) -> Scripts:  # noqa: ARG002 - no scripts are run here
        return UNKNOWN_SCRIPTS

    def job_pods(self, job: str) -> Iterable[Pod]:
        return self._list(PODS, f"{JOB_NAME}={job}", self.decoders.pod)

    def unknown_job_pods(self, job: str) -> str | None:
        self.job_pods(job)
        return self.refused.get(PODS)

    def unknown_pods(self, workload: str) -> str | None:
        self.pods(workload)
        return self.refused.get(PODS)

    def _get(self, resource: Resource, name: str, decode: Callable[[bytes], _T]) -> _T | None:
        found = self.find(resource, name)
        return None if found is None else _typed(found, decode)

    def _list(self, resource: Resource, labels: str, decode: Callable[[bytes], _T]) -> Sequence[_T]:
        asked = resource, labels, decode
        if asked not in self._decoded:
            self._decoded[asked] = [_typed(each, decode) for each in self.select(resource, labels)]
        found: Sequence[_T] = self._decoded[asked]
        return found


@dataclass(frozen=True, eq=False)
class Snapshot(ListedWorld):
    """``objects`` are those of one namespace, by kind. ``workload_schema`` is the openAPIV3Schema of LeaderWorkerSets
    in that cluster, {} if it could not be read. ``custom`` are the kinds that the cluster was asked for, and
    ``known_scripts`` what is known of the scripts of its controller.
    """

    objects: Mapping[Resource, Sequence[Object]]
    capabilities: Capabilities = field(default_factory=Capabilities)
    workload_schema: Mapping[str, Any] = field(default_factory=dict)
    custom: CustomKinds = NO_CUSTOM_KINDS
    known_scripts: Scripts = UNKNOWN_SCRIPTS

    def custom_kind(self, api_version: str, kind: str) -> Resource | None:
        asked = api_version, kind
        return self.custom.served[asked] if asked in self.custom.served else super().custom_kind(api_version, kind)

    def unknown_custom_kind(self, api_version: str, kind: str) -> str | None:
        return self.custom.unknown.get((api_version, kind))

    def scripts(self, rollout: str) -> Scripts:  # noqa: ARG002 - they are the same for all
        return self.known_scripts

    def plain(self, resource: Resource) -> Sequence[Object]:
        """All objects of a kind, as plain JSON."""
        return self.objects.get(resource, ())

    def find(self, resource: Resource, name: str | None) -> Object | None:
        return next((each for each in self.plain(resource) if each["metadata"]["name"] == name), None)

    def select(self, resource: Resource, labels: str) -> Iterable[Object]:
        every = self.plain(resource)
        return (each for each in every if selects(labels, each["metadata"].get("labels") or {}))


def _typed(found: Object, decode: Callable[[bytes], _T]) -> _T:
    """Through JSON, because the structs keep some members as raw bytes."""
    return decode(msgspec.json.encode(found))
