"""What stands in the cluster, in the words that stories ask in."""

from __future__ import annotations

from typing import Any

from rollout_lws.api.resources import batch_releases
from rollout_lws.errors import ApiError
from rollout_lws.objects import resources as kinds
from rollout_lws.objects.resources import ENDPOINT_SLICES, LEADER_WORKER_SETS, LWS_NAME, LWS_WORKER_INDEX, Resource
from rollout_lws.objects.workloads import SERVICE_NAME
from rollout_lws.sandbox.apiserver import ApiServer
from tests.scenarios.containers import TAGGED, Containers
from tests.scenarios.names import NAME, NAMESPACE, ROLLOUTS


class Sight:
    """Reads ``server``; the Rollout that is meant is called ``name``, and ``containers`` are what runs in pods."""

    server: ApiServer
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
        found = self.get(LEADER_WORKER_SETS, NAME)
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
        size = (self.get(LEADER_WORKER_SETS, name) or self.lws)["spec"]["leaderWorkerTemplate"].get("size", 1)
        found: dict[int, list[tuple[str, bool]]] = {}
        for pod in self.server.list(kinds.PODS, NAMESPACE, label_selector=f"{LWS_NAME}={name}"):
            conditions = {each["type"]: each["status"] for each in pod.get("status", {}).get("conditions", ())}
            ready = conditions.get("Ready") == "True" and "deletionTimestamp" not in pod["metadata"]
            version = self.containers.version(pod)
            found.setdefault(int(pod["metadata"]["labels"][kinds.LWS_GROUP_INDEX]), []).append((version, ready))
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
        selector = f"{LWS_NAME}={name},{LWS_WORKER_INDEX}=0"
        pods = self.server.list(kinds.PODS, NAMESPACE, label_selector=selector)
        return {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in pods}

    def get_canary_replicas(self) -> int | None:
        canary = self.get(LEADER_WORKER_SETS, f"{NAME}-canary")
        return canary["spec"]["replicas"] if canary else None

    def names(self) -> dict[str, list[str]]:
        """Everything that exists, by resource, pods of groups and events apart."""
        listed = {}
        for resource in (LEADER_WORKER_SETS, kinds.STATEFUL_SETS, batch_releases(), kinds.SERVICES):
            listed[resource.plural] = sorted(obj["metadata"]["name"] for obj in self.server.list(resource, NAMESPACE))
        return listed
