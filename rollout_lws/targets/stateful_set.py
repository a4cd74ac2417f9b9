"""StatefulSet (apps/v1) as a target: each pod is a group. Field facts: apps/v1, and the controller of Kubernetes 1.36.

Its version is the pod template alone: the controller's revisions have nothing else, and the API server refuses other
templates of claims. The revision is the name of a ControllerRevision, which begins with the StatefulSet's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import msgspec

from rollout_lws.objects.meta import Meta, OwnedMeta, Struct
from rollout_lws.objects.released import RELEASED, PodLabels
from rollout_lws.objects.resources import STATEFUL_SETS, Resource
from rollout_lws.objects.workloads import (
    StatefulSet,
    StatefulSetRollingUpdate,
    StatefulSetSpec,
    StatefulSetStatus,
    StatefulSetUpdateStrategy,
)
from rollout_lws.targets import version
from rollout_lws.targets.target import ROLLING_UPDATE, Obstacle, RollingUpdate
from rollout_lws.targets.version import Version, VersionFormat

FORMAT = VersionFormat(members=("template",), roles=(("worker", "template"),), apart="/made-statefulset")
#: Members of the spec that a copy has from the original.
_COPIED = (
    "serviceName",
    "podManagementPolicy",
    "minReadySeconds",
    "revisionHistoryLimit",
    "ordinals",
    "volumeClaimTemplates",
    "persistentVolumeClaimRetentionPolicy",
)


class Selector(Struct, frozen=True):
    match_labels: dict[str, str] = {}  # noqa: RUF012 - msgspec copies it
    match_expressions: msgspec.Raw = msgspec.Raw(b"null")


class Parameters(Struct, frozen=True):
    """``max_unavailable`` is None where the API server does not store it: with its feature gate off."""

    partition: int = 0
    max_unavailable: int | str | None = None


class UpdateStrategy(Struct, frozen=True):
    type: str = ROLLING_UPDATE
    rolling_update: Parameters | None = None


class Ordinals(Struct, frozen=True):
    start: int = 0


class Spec(Struct, frozen=True):
    """What rules read; the rest of the members that a copy has from the original stays JSON."""

    replicas: int = 1
    selector: Selector = Selector()
    template: msgspec.Raw = msgspec.Raw(b"{}")
    update_strategy: UpdateStrategy = UpdateStrategy()
    ordinals: Ordinals | None = None
    min_ready_seconds: int = 0
    service_name: str = ""
    pod_management_policy: str = "OrderedReady"
    revision_history_limit: int | None = None
    volume_claim_templates: msgspec.Raw = msgspec.Raw(b"null")
    persistent_volume_claim_retention_policy: msgspec.Raw = msgspec.Raw(b"null")


class StatefulSetTarget(Struct, frozen=True):
    """Implements ``Target``."""

    resource: ClassVar[Resource] = STATEFUL_SETS
    labels: ClassVar[PodLabels] = RELEASED[STATEFUL_SETS]
    format: ClassVar[VersionFormat] = FORMAT
    template: ClassVar[str] = "template"
    strategy_path: ClassVar[tuple[str, str, str]] = ("spec", "updateStrategy", "rollingUpdate")
    zero_unavailable: ClassVar[bool] = True
    surges: ClassVar[bool] = False
    look_at_controller: ClassVar[str] = "kubectl get lease -n kube-system kube-controller-manager"
    too_old: ClassVar[str] = ""

    metadata: OwnedMeta
    spec: Spec = Spec()
    status: StatefulSetStatus = StatefulSetStatus()

    @property
    def replicas(self) -> int:
        return self.spec.replicas

    @property
    def strategy(self) -> RollingUpdate:
        asked = self._parameters
        unavailable = asked.max_unavailable if asked.max_unavailable is not None else 1
        return RollingUpdate(
            partition=asked.partition, max_unavailable=unavailable, type=self.spec.update_strategy.type
        )

    @property
    def _parameters(self) -> Parameters:
        return self.spec.update_strategy.rolling_update or Parameters()

    @property
    def strategy_members(self) -> frozenset[str]:
        stored = self._parameters.max_unavailable is not None
        return frozenset({"type", "partition"} | ({"maxUnavailable"} if stored else set()))

    @property
    def first_ordinal(self) -> int:
        return self.spec.ordinals.start if self.spec.ordinals is not None else 0

    @property
    def min_ready_seconds(self) -> int:
        return self.spec.min_ready_seconds

    @property
    def selector(self) -> Mapping[str, str]:
        return self.spec.selector.match_labels

    def claims(self, version: Version) -> Mapping[str, Any]:  # noqa: ARG002 - all versions have the same
        members = {
            "volumeClaimTemplates": self.spec.volume_claim_templates,
            "persistentVolumeClaimRetentionPolicy": self.spec.persistent_volume_claim_retention_policy,
        }
        return {name: msgspec.json.decode(value) for name, value in members.items()}

    @property
    def version(self) -> Version:
        return version.version(self._members, FORMAT)

    @property
    def supposed_version(self) -> Version:
        return version.supposed_version(self._members, FORMAT)

    @property
    def _members(self) -> tuple[bytes, ...]:
        return (bytes(self.spec.template),)

    @property
    def leaders_first(self) -> bool:
        return False

    @property
    def ordered(self) -> bool:
        return self.spec.pod_management_policy == "OrderedReady"

    @property
    def can_be_held(self) -> bool:
        return True

    @property
    def obstacle(self) -> Obstacle | None:
        return None

    @property
    def discovery_service(self) -> str:
        return self.spec.service_name

    @property
    def leader_set(self) -> StatefulSet:
        meta = self.metadata
        return StatefulSet(
            metadata=Meta(
                name=meta.name,
                namespace=meta.namespace,
                uid=meta.uid,
                resource_version=meta.resource_version,
                generation=meta.generation,
                deletion_timestamp=meta.deletion_timestamp,
            ),
            spec=StatefulSetSpec(
                replicas=self.spec.replicas,
                update_strategy=StatefulSetUpdateStrategy(
                    rolling_update=StatefulSetRollingUpdate(partition=self._parameters.partition)
                ),
            ),
            status=self.status,
        )

    @property
    def observed_generation(self) -> int:
        return self.status.observed_generation

    def unheld(self, version: Version) -> Mapping[str, Any]:  # noqa: ARG002 - each pod comes from its revision
        return {}

    def trimmed(self, metadata: OwnedMeta) -> StatefulSetTarget:
        # A Raw member would keep the object's whole JSON alive.
        selector = msgspec.structs.replace(
            self.spec.selector, match_expressions=self.spec.selector.match_expressions.copy()
        )
        spec = msgspec.structs.replace(
            self.spec,
            selector=selector,
            template=self.spec.template.copy(),
            volume_claim_templates=self.spec.volume_claim_templates.copy(),
            persistent_volume_claim_retention_policy=self.spec.persistent_volume_claim_retention_policy.copy(),
        )
        return msgspec.structs.replace(self, metadata=metadata, spec=spec)

    def with_annotations(self, annotations: Mapping[str, str]) -> StatefulSetTarget:
        metadata = msgspec.structs.replace(self.metadata, annotations=dict(annotations))
        return msgspec.structs.replace(self, metadata=metadata)

    def with_replicas(self, replicas: int) -> StatefulSetTarget:
        return msgspec.structs.replace(self, spec=msgspec.structs.replace(self.spec, replicas=replicas))

    def copy(
        self,
        metadata: Mapping[str, Any],
        replicas: int,
        leader_metadata: Mapping[str, Mapping[str, str]],
        apart: Mapping[str, str],
    ) -> dict[str, Any]:
        """The copy has its pods' DNS names by the same Service as the original."""
        spec: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(self.spec))
        template, selector = spec.get("template") or {}, spec.get("selector") or {}
        merged = dict(template.get("metadata") or {})
        for kind, values in (*leader_metadata.items(), ("labels", apart)):
            if values:
                merged[kind] = {**(merged.get(kind) or {}), **values}
        labels = {**(selector.get("matchLabels") or {}), **apart}
        return {
            "apiVersion": self.resource.api_version,
            "kind": self.resource.kind,
            "metadata": dict(metadata),
            "spec": {
                "replicas": replicas,
                "selector": {name: value for name, value in selector.items() if value} | {"matchLabels": labels},
                "template": {**template, "metadata": merged},
                **{name: spec[name] for name in _COPIED if spec.get(name) is not None},
                "updateStrategy": {"type": ROLLING_UPDATE, "rollingUpdate": {"partition": 0}},
            },
        }
