"""What a user of a story does: makes an LWS and a Rollout, edits them, approves, asks, deletes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rollout_lws.objects.resources import CUSTOM_RESOURCE_DEFINITIONS, SERVICES, Resource
from rollout_lws.sandbox.apiserver import ApiServer
from tests.scenarios.containers import TAGGED, Containers
from tests.scenarios.kinds import LWS, LeaderWorkerSets
from tests.scenarios.names import NAME, NAMESPACE, ROLLOUTS


class User:
    """Writes straight to ``server``, in the words of manifests."""

    server: ApiServer
    #: What is released.
    kind: LeaderWorkerSets = LWS
    containers: Containers = TAGGED
    #: The parentRef to a Gateway that is lent to stories; without it each makes one of its own.
    gateway: Mapping[str, str] | None = None
    #: Where a Gateway is lent there are routes of others, and two for the same requests are no routes.
    hosts: Sequence[str] = ()

    def create_workload(
        self, *, replicas: int = 4, size: int = 2, tag: str = "v1", name: str = NAME, **spec: Any
    ) -> None:
        template = {
            "metadata": {"labels": {"app": "llama"}},
            "spec": {"containers": self.containers.of(tag)},
        }
        body: dict[str, Any] = {
            "apiVersion": self.kind.resource.api_version,
            "kind": self.kind.resource.kind,
            "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": {**self.kind.spec(template, replicas, size, name=name), **spec},
        }
        self.server.create(self.kind.resource, body)
        service = self.kind.governing(name)
        if service is not None and not any(
            each["metadata"]["name"] == name for each in self.server.list(SERVICES, NAMESPACE)
        ):
            self.server.create(SERVICES, service)

    def create_rollout(self, *steps: dict[str, Any], name: str = NAME, workload: str = NAME, **strategy: Any) -> None:
        style = "blueGreen" if "blueGreen" in strategy else "canary"
        plan = {"steps": list(steps), **strategy.pop(style, {})}
        body = {
            "apiVersion": ROLLOUTS.api_version,
            "kind": ROLLOUTS.kind,
            "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": {
                "workloadRef": {
                    "apiVersion": self.kind.resource.api_version,
                    "kind": self.kind.resource.kind,
                    "name": workload,
                },
                "strategy": {style: plan, **strategy},
            },
        }
        self.server.create(ROLLOUTS, body)

    def patch(self, resource: Resource, name: str, body: dict[str, Any], subresource: str = "") -> None:
        self.server.patch(resource, NAMESPACE, name, body, "application/merge-patch+json", subresource=subresource)

    def patch_lws(self, spec: dict[str, Any], name: str = NAME) -> None:
        self.patch(self.kind.resource, name, {"spec": spec})

    def set_image(self, tag: str) -> None:
        self.patch_lws(self.kind.versioned({"spec": {"containers": self.containers.of(tag)}}))

    def patch_rollout(self, spec: dict[str, Any]) -> None:
        self.patch(ROLLOUTS, NAME, {"spec": spec})

    def approve(self) -> None:
        """As kubectl and Kruise's tools do, in the sub-status that there is."""
        status = self.server.get(ROLLOUTS, NAMESPACE, NAME).get("status", {})
        sub = "blueGreenStatus" if "blueGreenStatus" in status else "canaryStatus"
        self.patch(ROLLOUTS, NAME, {"status": {sub: {"currentStepState": "StepReady"}}}, "status")

    def request(self, kind: str, **fields: Any) -> None:
        action = {"type": kind, "id": f"{kind}-{self.server.clock()}", **fields}
        self.patch(ROLLOUTS, NAME, {"status": {"requestedAction": action}}, "status")

    def define(self, resource: Resource) -> None:
        """Install a kind of which nothing is known."""
        schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        version = {"name": resource.version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
        kind = resource.kind
        names = {"kind": kind, "listKind": f"{kind}List", "plural": resource.plural, "singular": kind.lower()}
        spec = {"group": resource.group, "scope": "Namespaced", "names": names, "versions": [version]}
        self.server.create(CUSTOM_RESOURCE_DEFINITIONS, {"metadata": {"name": str(resource)}, "spec": spec})

    def delete(self, resource: Resource, name: str, propagation: str = "Background") -> None:
        self.server.delete(resource, NAMESPACE, name, propagation=propagation)
