"""``Target``: what the rules ask of the object that a Rollout releases, whatever its kind.

Each kind has one file that implements it; ``table`` lists them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from rollout_lws.objects.meta import OwnedMeta, Struct
from rollout_lws.objects.released import PodLabels
from rollout_lws.objects.resources import Resource
from rollout_lws.objects.workloads import StatefulSet
from rollout_lws.targets.version import Version, VersionFormat

#: Types of update strategies: groups get a new version by partition; or only those that something else deletes.
ROLLING_UPDATE, ON_DELETE = "RollingUpdate", "OnDelete"


class RollingUpdate(Struct, frozen=True):
    """Parameters of the workload controller's own rolling update, with the names that LeaderWorkerSet gives them.

    The first ``partition`` groups keep their version. ``max_unavailable`` and ``max_surge`` are groups or "N%"; a kind
    without surge groups has the default. ``type`` is that of the strategy; one of ``ON_DELETE`` has no parameters.
    """

    partition: int = 0
    max_unavailable: int | str = 1
    max_surge: int | str = 0
    type: str = ROLLING_UPDATE


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Why no Rollout can release an object, and what to do."""

    reason: str
    """Of the Rollout's conditions."""
    message: str
    """Follows the object's kind and name."""
    field: str
    """The object's field that is to blame."""


class Target(Protocol):
    """One object of a released kind, as stored in the API server. A group is one copy of the model: a leader pod and
    its workers, or a single pod.
    """

    resource: ClassVar[Resource]
    labels: ClassVar[PodLabels]
    format: ClassVar[VersionFormat]
    """Where its spec has its version."""
    template: ClassVar[str]
    """The member of the spec that has the pods' templates."""
    strategy_path: ClassVar[tuple[str, str, str]]
    """Path of the members partition, maxUnavailable and maxSurge, inside the strategy, which has a member type."""
    zero_unavailable: ClassVar[bool]
    """Whether a maxUnavailable that resolves to 0 groups stands for 1, instead of being refused."""
    surges: ClassVar[bool]
    """Whether its rolling updates have a maxSurge."""
    look_at_controller: ClassVar[str]
    """The command that shows whether the workload's controller runs."""
    too_old: ClassVar[str]
    """What is wrong, and what to do, if the status of the kind has no observedGeneration in a cluster; "" for a kind
    that has always had it.
    """

    @property
    def metadata(self) -> OwnedMeta: ...
    @property
    def replicas(self) -> int:
        """Groups that the user wants."""
        ...

    @property
    def strategy(self) -> RollingUpdate: ...
    @property
    def strategy_members(self) -> frozenset[str]:
        """Members of the strategy that the API server stores when they are written, by their names."""
        ...

    @property
    def first_ordinal(self) -> int:
        """The index of its first group; the others follow."""
        ...

    @property
    def min_ready_seconds(self) -> int:
        """Seconds that its controller waits after a group has become ready."""
        ...

    @property
    def selector(self) -> Mapping[str, str]:
        """Labels of its template by which its controller finds its pods; {} if it finds them by labels of its own."""
        ...

    def claims(self, version: Version) -> Mapping[str, Any]:
        """The object with the ``volumeClaimTemplates`` and ``persistentVolumeClaimRetentionPolicy`` of its groups of
        this version.
        """
        ...

    @property
    def version(self) -> Version:
        """The version that the spec asks for."""
        ...

    @property
    def supposed_version(self) -> Version:
        """The same for an object that is not written yet, and may never be: it is not cached."""
        ...

    @property
    def leaders_first(self) -> bool:
        """Whether a group's workers are created only once its leader is ready."""
        ...

    @property
    def ordered(self) -> bool:
        """Whether its controller makes a group only when all before it are ready, and deletes none while one is not."""
        ...

    @property
    def can_be_held(self) -> bool:
        """Whether a partition keeps its groups at their version. Otherwise another template renews them at once, and
        their indices are no numbers: only one of a pair can be released, by requests alone.
        """
        ...

    @property
    def obstacle(self) -> Obstacle | None:
        """Why no Rollout can release the object as it is; None if one can. That it cannot be held is none in a pair."""
        ...

    @property
    def discovery_service(self) -> str:
        """Name of the Service by which its pods find each other: it selects the pods of all versions."""
        ...

    @property
    def leader_set(self) -> StatefulSet | None:
        """The object itself as the StatefulSet that makes its leaders; None if its controller makes one for that."""
        ...

    @property
    def observed_generation(self) -> int:
        """The generation that the workload's controller has acted on; 0 before the first."""
        ...

    def unheld(self, version: Version) -> Mapping[str, Any]:
        """Members of the version that the controller applies even to groups that a partition holds, by name, as they
        are in a version's ``meaning``; releases of the controller that were repaired apply none.
        """
        ...

    def trimmed(self, metadata: OwnedMeta) -> Target:
        """The same object with this metadata, without what no rule reads, and independent of the JSON that it was
        decoded from.
        """
        ...

    def with_annotations(self, annotations: Mapping[str, str]) -> Target:
        """The same object with these annotations instead of its own."""
        ...

    def with_replicas(self, replicas: int) -> Target:
        """The same object with this number of groups."""
        ...

    def copy(
        self,
        metadata: Mapping[str, Any],
        replicas: int,
        leader_metadata: Mapping[str, Mapping[str, str]],
        apart: Mapping[str, str],
    ) -> dict[str, Any]:
        """Manifest of another object of this kind at the same version, with this ``metadata`` and ``replicas`` groups.

        Its own rolling updates take one group at a time. ``leader_metadata`` {labels, annotations} goes into the
        template of the pods that take requests, and into no other. ``apart`` are labels for the pods of a kind whose
        pods could not be told from those of this object without them.
        """
        ...


def called(workload: Target) -> str:
    """Kind and name, for messages."""
    return f"{workload.resource.kind} {workload.metadata.name}"


def takers(kind: Target | type[Target]) -> str:
    """What the pods of a kind that take requests are called, for messages."""
    return "pods" if kind.labels.leader is None else "leaders"
