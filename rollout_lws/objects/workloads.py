"""StatefulSet, Pod, ControllerRevision, EndpointSlice and Event, with the members that a release needs.

Templates stay JSON bytes (``msgspec.Raw``): they are decoded only when needed, and the caches stay small. Field facts:
apps/v1, core/v1, discovery.k8s.io/v1.
"""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec

from rollout_lws.objects.meta import Condition, Meta, Struct
from rollout_lws.objects.released import (
    RECOVER,
    RELEASED,
    RESTARTS_EXHAUSTED,
    PodLabels,
    labels_among,
    workload_among,
)
from rollout_lws.objects.resources import PODS, STATEFUL_SETS

#: Label of an EndpointSlice: the name of its Service.
SERVICE_NAME = "kubernetes.io/service-name"
#: Reason of Events of a StatefulSet that cannot create its pods.
FAILED_CREATE = "FailedCreate"


class StatefulSetRollingUpdate(Struct, frozen=True):
    partition: int = 0


class StatefulSetUpdateStrategy(Struct, frozen=True):
    rolling_update: StatefulSetRollingUpdate = StatefulSetRollingUpdate()


class StatefulSetSpec(Struct, frozen=True):
    replicas: int = 1
    update_strategy: StatefulSetUpdateStrategy = StatefulSetUpdateStrategy()


class StatefulSetStatus(Struct, frozen=True):
    observed_generation: int = 0
    replicas: int = 0
    ready_replicas: int = 0
    available_replicas: int = 0
    updated_replicas: int = 0
    current_revision: str = ""
    update_revision: str = ""


class StatefulSet(Struct, frozen=True):
    metadata: Meta
    spec: StatefulSetSpec = StatefulSetSpec()
    status: StatefulSetStatus = StatefulSetStatus()

    @property
    def workload(self) -> str:
        """The name of the released workload that has made it; "" if none has."""
        return workload_among(self.metadata.labels)

    @property
    def revision(self) -> str:
        """The revision of the released workload with which this StatefulSet was last applied; its own newest one if it
        is released itself.
        """
        return _revision(self.metadata) if self.workload else self.status.update_revision


class ContainerStateWaiting(Struct, frozen=True):
    reason: str = ""
    message: str = ""


class ContainerStateTerminated(Struct, frozen=True):
    reason: str = ""
    message: str = ""
    exit_code: int = 0


class ContainerState(Struct, frozen=True):
    waiting: ContainerStateWaiting | None = None
    terminated: ContainerStateTerminated | None = None


class ContainerStatus(Struct, frozen=True):
    name: str = ""
    ready: bool = False
    restart_count: int = 0
    state: ContainerState = ContainerState()
    last_state: ContainerState = ContainerState()


class PodStatus(Struct, frozen=True):
    phase: str = ""
    reason: str = ""
    message: str = ""
    pod_ip: str = msgspec.field(default="", name="podIP")
    conditions: tuple[Condition, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()


class SchedulingGate(Struct, frozen=True):
    name: str = ""


class PodSpec(Struct, frozen=True):
    node_name: str = ""
    scheduling_gates: tuple[SchedulingGate, ...] = ()


class Pod(Struct, frozen=True):
    metadata: Meta
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def workload(self) -> str:
        return workload_among(self.metadata.labels)

    @property
    def group_index(self) -> str:
        """Opaque: an ordinal unless the LWS uses Hash identity; empty before LWS's webhook has processed the pod."""
        names = labels_among(self.metadata.labels)
        return self.metadata.labels.get(names.index, "") if names is not None else ""

    @property
    def is_leader(self) -> bool:
        names = labels_among(self.metadata.labels)
        return names is not None and names.marks_leader(self.metadata.labels)

    @property
    def revision(self) -> str:
        return _revision(self.metadata)

    @property
    def is_kept(self) -> bool:
        """Whether it leads a group that has used up its restarts, and whose pods stay as they ended until a user asks
        for the group to be made again.
        """
        marks = self.metadata.annotations
        return marks.get(RESTARTS_EXHAUSTED) == "true" and marks.get(RECOVER) != "true"

    @property
    def holds_its_node(self) -> bool:
        """Whether its requests occupy a node: it is not gated, not unschedulable, and has not ended."""
        return not (self.spec.scheduling_gates or self.unschedulable is not None or self.has_ended)

    @property
    def unschedulable(self) -> Condition | None:
        """The scheduler's condition of a pod that fits on no node; None without one.

        SchedulingGated is not from the scheduler: the API server sets it when it admits a pod with gates, and it stays
        after the last gate is removed until the pod has a node or the scheduler has found none.
        """
        said = (each for each in self.status.conditions if each.type == "PodScheduled" and each.status == "False")
        return next((each for each in said if each.reason != "SchedulingGated"), None)

    @property
    def is_ready(self) -> bool:
        """Whether its Ready condition is True, even while it terminates."""
        return any(each.type == "Ready" and each.status == "True" for each in self.status.conditions)

    @property
    def has_ended(self) -> bool:
        """Whether all its containers have ended for good."""
        return self.status.phase in ("Succeeded", "Failed")

    @property
    def ready_since(self) -> datetime | None:
        """When the pod became Running and Ready; None while it is not, or terminates."""
        if self.metadata.terminating or self.status.phase != "Running":
            return None
        for condition in self.status.conditions:
            if condition.type == "Ready" and condition.status == "True":
                return condition.last_transition_time or self.metadata.creation_timestamp
        return None


class ControllerRevision(Struct, frozen=True):
    """A stored version. ``data`` stays bytes: {"spec": {"leaderWorkerTemplate": …, "networkConfig": …}} of a
    LeaderWorkerSet, {"spec": {"template": …}} of a StatefulSet, or that compressed.
    """

    metadata: Meta
    revision: int = 0
    data: msgspec.Raw = msgspec.Raw(b"{}")

    @property
    def revision_hash(self) -> str:
        """The revision that the workload's controller gave the version; "" on records of another controller."""
        names = self.released
        if names is None:
            return ""
        return self.metadata.labels.get(names.record, "") if names.record else self.metadata.name

    @property
    def workload(self) -> str:
        """The name of the workload whose version it has; "" on records of another controller."""
        names, owner = self.released, self.metadata.controller
        if names is None:
            return ""
        if names.record:
            return names.workload_of(self.metadata.labels)
        return owner.name if owner is not None else ""

    @property
    def released(self) -> PodLabels | None:
        """The labels of the kind whose workload it belongs to; None on records of another controller."""
        names, owner = labels_among(self.metadata.labels), self.metadata.controller
        if names is None and owner is not None and owner.kind == STATEFUL_SETS.kind:
            return RELEASED[STATEFUL_SETS]
        return names


def _revision(metadata: Meta) -> str:
    names = labels_among(metadata.labels)
    return metadata.labels.get(names.revision, "") if names is not None else ""


class InvolvedObject(Struct, frozen=True):
    kind: str = ""
    name: str = ""
    uid: str = ""


class Series(Struct, frozen=True):
    last_observed_time: datetime | None = None


class CoreEvent(Struct, frozen=True):
    """Event (v1) of a StatefulSet that cannot create a pod: only these Events say why."""

    metadata: Meta
    reason: str = ""
    message: str = ""
    involved_object: InvolvedObject = InvolvedObject()
    last_timestamp: datetime | None = None
    event_time: datetime | None = None
    series: Series | None = None

    @property
    def moment(self) -> datetime:
        """The last occurrence, whichever client recorded it."""
        series = self.series.last_observed_time if self.series else None
        moments = (series, self.last_timestamp, self.event_time, self.metadata.creation_timestamp)
        return max((each for each in moments if each is not None), default=datetime.min.replace(tzinfo=UTC))


class TargetReference(Struct, frozen=True):
    kind: str = ""
    name: str = ""


class EndpointConditions(Struct, frozen=True):
    """An absent ``ready`` means true."""

    ready: bool | None = None


class Endpoint(Struct, frozen=True):
    """One pod, whose addresses of a slice's family are fungible."""

    addresses: tuple[str, ...] | None = None
    conditions: EndpointConditions = EndpointConditions()
    target_ref: TargetReference | None = None


class EndpointSlice(Struct, frozen=True):
    """The pods to which a Service sends requests."""

    metadata: Meta
    endpoints: tuple[Endpoint, ...] | None = None

    @property
    def any_ready(self) -> bool:
        """Whether it lists any ready endpoint, be it a pod or an address added by hand."""
        return any(each.conditions.ready is not False for each in self.endpoints or ())

    @property
    def ready_addresses(self) -> dict[str, str]:
        """The first address of each pod that it lists as ready, by the pod's name; "" without any."""
        return {
            each.target_ref.name: next(iter(each.addresses or ()), "")
            for each in self.endpoints or ()
            if each.target_ref is not None and each.target_ref.kind == PODS.kind and each.conditions.ready is not False
        }
