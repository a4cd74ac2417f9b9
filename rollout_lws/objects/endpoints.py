"""EndpointSlice (discovery.k8s.io/v1): the pods to which a Service sends requests."""

from __future__ import annotations

from rollout_lws.objects.meta import Meta, Struct
from rollout_lws.objects.resources import PODS

#: Label of a slice: the name of its Service.
SERVICE_NAME = "kubernetes.io/service-name"


class TargetReference(Struct, frozen=True):
    kind: str = ""
    name: str = ""


class EndpointConditions(Struct, frozen=True):
    """An absent ``ready`` means true."""

    ready: bool | None = None


class Endpoint(Struct, frozen=True):
    conditions: EndpointConditions = EndpointConditions()
    target_ref: TargetReference | None = None


class EndpointSlice(Struct, frozen=True):
    metadata: Meta
    endpoints: tuple[Endpoint, ...] | None = None

    @property
    def any_ready(self) -> bool:
        """Whether it lists any ready endpoint, be it a pod or an address added by hand."""
        return any(each.conditions.ready is not False for each in self.endpoints or ())

    @property
    def ready_pods(self) -> frozenset[str]:
        """Names of the pods that it lists as ready."""
        return frozenset(
            each.target_ref.name
            for each in self.endpoints or ()
            if each.target_ref is not None and each.target_ref.kind == PODS.kind and each.conditions.ready is not False
        )
