"""LeaderWorkerSet as a target. Field facts: LeaderWorkerSet v0.9 to v0.10, and for what came later the proposals 820,
898, 956 and 1064 in its repository.

Templates stay JSON bytes (``msgspec.Raw``): they are decoded only when needed, and the caches stay small.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import msgspec

from rollout_lws.objects.meta import Condition, OwnedMeta, Struct
from rollout_lws.objects.released import RELEASED, PodLabels
from rollout_lws.objects.resources import LEADER_WORKER_SETS, Resource
from rollout_lws.targets import version
from rollout_lws.targets.target import Obstacle, RollingUpdate
from rollout_lws.targets.version import Version, VersionFormat

FORMAT = VersionFormat(
    members=("leaderWorkerTemplate", "networkConfig"),
    holder="leaderWorkerTemplate",
    roles=(("leader", "leaderTemplate"), ("worker", "workerTemplate")),
    unversioned=("maxGroupRestarts",),
)


_HASH_IDENTITY = Obstacle(
    "HashIdentity",
    "has groupIdentity Hash, which cannot be held back by a partition: release it as one of a pair without shift and"
    " companions, or make it anew with groupIdentity Ordinal, which cannot be changed later",
    "spec.groupIdentity",
)


class RolloutStrategy(Struct, frozen=True):
    type: str = "RollingUpdate"
    rolling_update_configuration: RollingUpdate = RollingUpdate()


class LeaderWorkerSetSpec(Struct, frozen=True):
    replicas: int = 1
    leader_worker_template: msgspec.Raw = msgspec.Raw(b"{}")
    network_config: msgspec.Raw = msgspec.Raw(b"null")
    rollout_strategy: RolloutStrategy = RolloutStrategy()
    startup_policy: str = "LeaderCreated"
    group_identity: str = "Ordinal"
    pod_termination_policy: str | None = None
    scheduling: msgspec.Raw = msgspec.Raw(b"null")


class LeaderWorkerSetStatus(Struct, frozen=True):
    replicas: int = 0
    ready_replicas: int = 0
    updated_replicas: int = 0
    observed_generation: int | None = None
    conditions: tuple[Condition, ...] = ()


class LeaderWorkerSet(Struct, frozen=True):
    """Implements ``Target``."""

    resource: ClassVar[Resource] = LEADER_WORKER_SETS
    labels: ClassVar[PodLabels] = RELEASED[LEADER_WORKER_SETS]
    format: ClassVar[VersionFormat] = FORMAT
    template: ClassVar[str] = FORMAT.holder
    strategy_path: ClassVar[tuple[str, str, str]] = ("spec", "rolloutStrategy", "rollingUpdateConfiguration")
    zero_unavailable: ClassVar[bool] = False
    surges: ClassVar[bool] = True
    look_at_controller: ClassVar[str] = "kubectl get pods -n lws-system"
    too_old: ClassVar[str] = (
        "LeaderWorkerSet's status has no observedGeneration in this cluster: upgrade LeaderWorkerSet to 0.9 or newer"
    )

    metadata: OwnedMeta
    spec: LeaderWorkerSetSpec = LeaderWorkerSetSpec()
    status: LeaderWorkerSetStatus = LeaderWorkerSetStatus()

    @property
    def replicas(self) -> int:
        return self.spec.replicas

    @property
    def strategy(self) -> RollingUpdate:
        return self.spec.rollout_strategy.rolling_update_configuration

    @property
    def strategy_members(self) -> frozenset[str]:
        return frozenset({"partition", "maxUnavailable", "maxSurge"})

    @property
    def first_ordinal(self) -> int:
        return 0

    @property
    def min_ready_seconds(self) -> int:
        return 0

    @property
    def selector(self) -> Mapping[str, str]:
        return {}

    def claims(self, version: Version) -> Mapping[str, Any]:
        return version.claims

    @property
    def version(self) -> Version:
        return version.version(self._members, FORMAT)

    @property
    def supposed_version(self) -> Version:
        return version.supposed_version(self._members, FORMAT)

    @property
    def _members(self) -> tuple[bytes, ...]:
        return bytes(self.spec.leader_worker_template), bytes(self.spec.network_config)

    @property
    def leaders_first(self) -> bool:
        return self.spec.startup_policy == "LeaderReady"

    @property
    def ordered(self) -> bool:
        return False

    @property
    def can_be_held(self) -> bool:
        return self.spec.group_identity != "Hash"

    @property
    def obstacle(self) -> Obstacle | None:
        return None if self.can_be_held else _HASH_IDENTITY

    @property
    def discovery_service(self) -> str:
        return self.metadata.name

    @property
    def leader_set(self) -> None:
        return None

    @property
    def observed_generation(self) -> int:
        return self.status.observed_generation or 0

    def unheld(self, version: Version) -> Mapping[str, Any]:
        """LWS up to 0.10 applies these to restarted groups of the held version."""
        members = version.meaning
        template = members["leaderWorkerTemplate"]
        return {
            "size": template.get("size") or 1,
            "networkConfig": (members.get("networkConfig") or {}).get("subdomainPolicy") or "Shared",
            "subGroupPolicy": template.get("subGroupPolicy"),
        }

    def trimmed(self, metadata: OwnedMeta) -> LeaderWorkerSet:
        # A Raw member would keep the object's whole JSON alive.
        spec = msgspec.structs.replace(
            self.spec,
            leader_worker_template=self.spec.leader_worker_template.copy(),
            network_config=self.spec.network_config.copy(),
            scheduling=self.spec.scheduling.copy(),
        )
        status = msgspec.structs.replace(self.status, conditions=())
        return msgspec.structs.replace(self, metadata=metadata, spec=spec, status=status)

    def with_annotations(self, annotations: Mapping[str, str]) -> LeaderWorkerSet:
        metadata = msgspec.structs.replace(self.metadata, annotations=dict(annotations))
        return msgspec.structs.replace(self, metadata=metadata)

    def with_replicas(self, replicas: int) -> LeaderWorkerSet:
        return msgspec.structs.replace(self, spec=msgspec.structs.replace(self.spec, replicas=replicas))

    def copy(
        self,
        metadata: Mapping[str, Any],
        replicas: int,
        leader_metadata: Mapping[str, Mapping[str, str]],
        apart: Mapping[str, str],  # noqa: ARG002 - its pods carry its name
    ) -> dict[str, Any]:
        """If the LWS has no leader template, the worker template is copied as LWS itself would use it for leaders."""
        members = self.version.members
        template = members["leaderWorkerTemplate"]
        if any(leader_metadata.values()):
            leader = dict(self.version.leader_template)
            merged = dict(leader.get("metadata") or {})
            for kind, values in leader_metadata.items():
                merged[kind] = {**(merged.get(kind) or {}), **values}
            template = {**template, "leaderTemplate": {**leader, "metadata": merged}}
        spec: dict[str, Any] = {
            "replicas": replicas,
            "leaderWorkerTemplate": template,
            "startupPolicy": self.spec.startup_policy,
            "rolloutStrategy": {
                "type": "RollingUpdate",
                "rollingUpdateConfiguration": {"partition": 0, "maxUnavailable": 1, "maxSurge": 0},
            },
        }
        if "networkConfig" in members:
            spec["networkConfig"] = members["networkConfig"]
        if self.spec.pod_termination_policy is not None:
            spec["podTerminationPolicy"] = self.spec.pod_termination_policy
        scheduling = msgspec.json.decode(self.spec.scheduling)
        if scheduling is not None:
            spec["scheduling"] = scheduling
        return {
            "apiVersion": self.resource.api_version,
            "kind": self.resource.kind,
            "metadata": dict(metadata),
            "spec": spec,
        }
