"""The informers' caches as one namespace's ``World``: each question of ``observe`` is one index lookup."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rollout_lws.api.resources import Keys
from rollout_lws.controller.informers import BY_OWNER, MARKED, OF_LWS, Informers, place
from rollout_lws.controller.on_demand_watches import OnDemandWatches
from rollout_lws.measuring.rounds import Measuring
from rollout_lws.objects.resources import Resource
from rollout_lws.objects.workloads import ControllerRevision, EndpointSlice, Pod, StatefulSet
from rollout_lws.observe.cache_types import StoredObject, StoredRollout
from rollout_lws.rollout.decision import Answered, Question
from rollout_lws.rollout.observation import Capabilities
from rollout_lws.scripting.custom_networks import CustomNetworks
from rollout_lws.targets.target import Target
from rollout_lws.traffic.custom.scripts import Scripts


@dataclass(frozen=True, slots=True)
class CachedWorld:
    """The state of ``namespace`` in the informers' caches."""

    keys: Keys
    namespace: str
    informers: Informers
    watched_pods: OnDemandWatches[Pod]
    watched_slices: OnDemandWatches[EndpointSlice]
    watched_job_pods: OnDemandWatches[Pod]
    watched_kinds: Mapping[Resource, OnDemandWatches[StoredObject]]
    measuring: Measuring
    networks: CustomNetworks
    capabilities: Capabilities

    def rollout(self, name: str) -> StoredRollout | None:
        return self.informers.rollouts.get(self.namespace, name)

    def rollouts_of(self, workload: str) -> Iterable[StoredRollout]:
        return self.informers.rollouts.by_index(OF_LWS, self._place(workload))

    def batch_release(self, name: str) -> StoredObject | None:
        return self.informers.batch_releases.get(self.namespace, name)

    def workload(self, kind: Resource, name: str) -> Target | None:
        return self.informers.workloads[kind].get(self.namespace, name)

    def leaders(self, workload: str) -> Iterable[Pod]:
        return self.informers.leaders.of(self._place(workload))

    def pods(self, workload: str) -> Iterable[Pod]:
        return self.watched_pods.known(self.namespace, workload)

    def stateful_sets(self, workload: str) -> Iterable[StatefulSet]:
        return self.informers.stateful_sets.of(self._place(workload))

    def made_stateful_set(self, name: str) -> StatefulSet | None:
        return self.informers.stateful_sets.get(self.namespace, name)

    def revisions(self, workload: str) -> Iterable[ControllerRevision]:
        return self.informers.revisions.of(self._place(workload))

    def services(self, workload: str) -> Iterable[StoredObject]:
        return self.informers.services.by_index(OF_LWS, self._place(workload))

    def history(self, owner_uid: str) -> Iterable[ControllerRevision]:
        return self.informers.history.by_index(BY_OWNER, owner_uid)

    def every_leader(self) -> Iterable[Pod]:
        return self.informers.leaders.all(self.namespace)

    def every_service(self) -> Iterable[StoredObject]:
        return self.informers.services.all(self.namespace)

    def annotated_services(self, uid: str) -> Iterable[StoredObject]:
        services = self.informers.services
        found = (*services.by_index(MARKED, self.namespace), *services.by_index(BY_OWNER, uid))
        return {each.metadata.name: each for each in found}.values()

    def every(self, resource: Resource) -> Iterable[StoredObject]:
        watched = self.watched_kinds.get(resource)
        return watched.known(self.namespace, "") if watched is not None else ()

    def every_rollout(self) -> Iterable[StoredRollout]:
        return self.informers.rollouts.all(self.namespace)

    def endpoint_slices(self, service: str) -> Iterable[EndpointSlice]:
        return self.watched_slices.known(self.namespace, service)

    def unserved(self, resource: Resource) -> bool:
        watched = self.watched_kinds.get(resource)
        return watched is not None and watched.unserved(self.namespace, "")

    def unknown(self, resource: Resource) -> str | None:
        watched = self.watched_kinds.get(resource)
        return watched.unknown(self.namespace, "") if watched is not None else ""

    def unknown_endpoints(self, service: str) -> str | None:
        return self.watched_slices.unknown(self.namespace, service)

    def answers(self, rollout: str) -> Mapping[Question, Answered]:
        return self.measuring.answers(self.namespace, rollout)

    def custom_kind(self, api_version: str, kind: str) -> Resource | None:
        return self.networks.custom_kind(api_version, kind)

    def unknown_custom_kind(self, api_version: str, kind: str) -> str | None:
        return self.networks.unknown_custom_kind(api_version, kind)

    def scripts(self, rollout: str) -> Scripts:
        return self.networks.scripts((self.namespace, rollout))

    def job_pods(self, job: str) -> Iterable[Pod]:
        return self.watched_job_pods.known(self.namespace, job)

    def unknown_job_pods(self, job: str) -> str | None:
        return self.watched_job_pods.unknown(self.namespace, job)

    def unknown_pods(self, workload: str) -> str | None:
        return self.watched_pods.unknown(self.namespace, workload)

    def _place(self, name: str) -> str:
        return place(self.namespace, name)
