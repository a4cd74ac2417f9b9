"""What stands in the cluster, in the words that stories ask in."""

from __future__ import annotations

from typing import Any

from rollout_lws.api.resources import batch_releases
from rollout_lws.errors import ApiError
from rollout_lws.objects import resources as kinds
from rollout_lws.objects.resources import ENDPOINT_SLICES, Resource
from rollout_lws.objects.workloads import SERVICE_NAME
from rollout_lws.sandbox.apiserver import ApiServer
from tests.scenarios.containers import TAGGED, Containers
from tests.scenarios.kinds import LWS, LeaderWorkerSets
from tests.scenarios.names import NAME, NAMESPACE, ROLLOUTS


class Sight:
    """Reads ``server``; the Rollout that is meant is called ``name``, and ``containers`` are what runs in pods."""

    server: ApiServer
    kind: LeaderWorkerSets = LWS
    containers: Containers = TAGGED
    name: str

    @property
    def true_conditions(self) -> dict[str, dict[str, Any]]:
        """Conditions of status True, by type."""
        return {each["type"]: each for each in self.status.get("conditions", ()) if each["status"] == "True"}

    def status_of(self, name: str) -> dict[str, Any]:
        found = self.get(ROLLOUTS, name) or {}
        return dict(found.get("status") or {})

    def get(self, resource: Resource, name: str) -> dict[str, Any] | None:
        try:
            return self.server.get(resource, NAMESPACE, name)
        except ApiError:
            return None

    @property
    def lws(self) -> dict[str, Any]:
        found = self.get(self.kind.resource, NAME)
        assert found is not None
        return found

    @property
    def rollout(self) -> dict[str, Any]:
        found = self.get(ROLLOUTS, self.name)
        assert found is not None
        return found

    @property
    def status(self) -> dict[str, Any]:
        return dict(self.rollout.get("status") or {})

    @property
    def state(self) -> str:
        return str((self.status.get("summary") or {}).get("state", ""))

    def condition(self, kind: str) -> dict[str, Any]:
        return next((each for each in self.status.get("conditions", ()) if each["type"] == kind), {})

    def groups(self, name: str = NAME) -> dict[int, str]:
        """Version by ordinal, with "!" when a pod of the group is not ready."""
        size = self.kind.size(self.get(self.kind.resource, name) or self.lws)
        found: dict[int, list[tuple[str, bool]]] = {}
        for pod in self.kind.pods(self.server.store, name):
            conditions = {each["type"]: each["status"] for each in pod.get("status", {}).get("conditions", ())}
            ready = conditions.get("Ready") == "True" and "deletionTimestamp" not in pod["metadata"]
            version = self.containers.version(pod)
            found.setdefault(self.kind.index(pod), []).append((version, ready))
        return {
            index: members[0][0]
            + (
                ""
                if len(members) == size and all(ready and version == members[0][0] for version, ready in members)
                else "!"
            )
            for index, members in sorted(found.items())
        }

    def ready_endpoints(self, service: str) -> tuple[str, ...]:
        """Pods that a Service sends requests to."""
        slices = self.server.list(ENDPOINT_SLICES, NAMESPACE, label_selector=f"{SERVICE_NAME}={service}")
        return tuple(
            endpoint["targetRef"]["name"]
            for each in slices
            for endpoint in each["endpoints"] or ()
            if endpoint["conditions"].get("ready")
        )

    def leader_uids(self, name: str = NAME) -> dict[str, str]:
        pods = self.kind.pods(self.server.store, name)
        return {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in pods if self.kind.leads(pod)}

    def get_canary_replicas(self) -> int | None:
        canary = self.get(self.kind.resource, f"{NAME}-canary")
        return canary["spec"]["replicas"] if canary else None

    @property
    def workloads(self) -> list[str]:
        """Names of the objects of the kind that is released."""
        return self.names()[self.kind.resource.plural]

    def all_at(self, version: str) -> dict[int, str]:
        """The groups, when each of them is ready at this version."""
        first = self.kind.first(self.lws)
        return dict.fromkeys(range(first, first + self.lws["spec"]["replicas"]), version)

    def names(self) -> dict[str, list[str]]:
        """Everything that exists, by resource, pods of groups and events apart."""
        listed = {}
        for resource in (kinds.LEADER_WORKER_SETS, kinds.STATEFUL_SETS, batch_releases(), kinds.SERVICES):
            listed[resource.plural] = sorted(obj["metadata"]["name"] for obj in self.server.list(resource, NAMESPACE))
        return listed
