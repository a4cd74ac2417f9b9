"""The files' objects as the controller's rules see them: one namespace of a cluster with no release in progress.

Objects that only a cluster creates are assumed: a pod that takes requests of each workload with its labels, Gateways
that accept every route, and KEDA's HorizontalPodAutoscaler for a ScaledObject.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property

from rollout_lws.api import Promotion
from rollout_lws.api.resources import keys, rollouts
from rollout_lws.cli.lint.manifests import KNOWN_KINDS, SCALED_OBJECTS, Manifest
from rollout_lws.objects.resources import HORIZONTAL_POD_AUTOSCALERS, PODS, Resource
from rollout_lws.observe import assume
from rollout_lws.observe.cache_types import StoredRollout
from rollout_lws.observe.observer import observe
from rollout_lws.observe.snapshot import Object, Snapshot
from rollout_lws.rollout.observation import Observation
from rollout_lws.targets.table import TARGETS
from rollout_lws.targets.target import Target
from rollout_lws.traffic.custom.kinds import CustomKinds
from rollout_lws.traffic.custom.scripts import UNKNOWN_SCRIPTS, Scripts
from rollout_lws.traffic.registry import spec_of

#: Any time will do: no rule depends on it outside a release.
NOW = datetime(2026, 1, 1, tzinfo=UTC)
_TYPES = {each.resource: each for each in TARGETS}
#: Metadata that an API server sets and dumps contain, except the uid, which owner references use.
_SERVERS = (
    *("creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generateName", "generation"),
    *("managedFields", "resourceVersion", "selfLink"),
)


@dataclass(frozen=True, slots=True)
class Shaped:
    """A manifest that passed its schema, and the defaulted object."""

    manifest: Manifest
    body: Object

    @property
    def kind(self) -> type[Target]:
        """The struct of a workload's kind; only for objects that can be released."""
        return _TYPES[self.manifest.resource]


class FileSnapshot:
    """One namespace, with the Rollouts of one API group. ``scripts`` are those of a ConfigMap among the files."""

    def __init__(self, objects: Iterable[Shaped], group: str, scripts: Scripts = UNKNOWN_SCRIPTS) -> None:
        self.group = group
        self.objects: dict[tuple[str, str], Shaped] = {}
        """By kind and name, as a release sees them: a ScaledObject is stored as the autoscaler that KEDA creates."""
        for each in objects:
            if each.manifest.resource.kind != rollouts().kind or each.manifest.resource.group == group:
                seen = _as_seen(each)
                self.objects[_kind(seen), seen.body["metadata"]["name"]] = seen
        found: dict[Resource, list[Object]] = {}
        for each in self.objects.values():
            resource = each.manifest.resource
            resource = HORIZONTAL_POD_AUTOSCALERS if resource == SCALED_OBJECTS else resource
            found.setdefault(resource, []).append(each.body)
        found[PODS] = [assume.leader(each.kind, each.body) for each in self.workloads]
        kinds = {(each.body["apiVersion"], each.body["kind"]): each.manifest.resource for each in self.objects.values()}
        self.snapshot = Snapshot(keys(group), found, custom=CustomKinds(kinds), known_scripts=scripts)

    def observed(self, rollout: str) -> Observation:
        """The controller's observation of a Rollout in the files."""
        found = observe(self.snapshot, rollout, NOW)
        if found is None:
            raise LookupError(f"there is no Rollout {rollout}")
        return found

    def find(self, kind: str, name: str) -> Shaped | None:
        return self.objects.get((kind, name))

    def of_kind(self, kind: str) -> Iterator[Shaped]:
        return iter(self._by_kind.get(kind, ()))

    @property
    def workloads(self) -> Iterator[Shaped]:
        """The objects that can be released."""
        return (each for kind in TARGETS for each in self.of_kind(kind.resource.kind))

    def rollouts_of(self, kind: Resource, workload: str) -> Sequence[StoredRollout]:
        """The Rollouts in the files that name this workload."""
        # Of one whose kind cannot be released, it is told that it is meant for another.
        return [each for each in self.snapshot.rollouts_of(workload) if each.kind in (None, kind)]

    def is_held(self, workload: Shaped) -> bool:
        """Whether a Rollout in the files holds this workload: with touch RouteOnly it writes none."""
        resource, name = workload.manifest.resource, workload.manifest.name
        releasing = self.rollouts_of(resource, name)
        return any(not each.counterpart for each in releasing) or self.scaling(resource, name) is not None

    def scaling(self, kind: Resource, workload: str) -> Shaped | None:
        """The Rollout in the files that scales this workload, as a side of its pair or in turn with another."""
        names = (each.metadata.name for each in self.rollouts_of(kind, workload))
        found = (self.find(rollouts().kind, name) for name in names)
        return next((each for each in found if each is not None and scales_two(each.body["spec"])), None)

    def other_side(self, workload: Shaped) -> str:
        """Name of the workload in the same place on the other side of a pair that a Rollout in the files names; ""
        without one.
        """
        name = workload.manifest.name
        pairs = (each.workloads for each in self.rollouts_of(workload.manifest.resource, name) if each.counterpart)
        places = (two for names in pairs for two in zip(names[::2], names[1::2], strict=False))
        return next((two[two[0] == name] for two in places if name in two), "")

    def pods_of(self, kind: Resource, workload: str) -> list[dict[str, str]]:
        """The labels of the first pod of the workload that takes requests, and of the first worker, if it has any; []
        of one that the files do not have.
        """
        known = (labels.get((kind, workload)) for labels in (self.leader_labels, self.worker_labels))
        return [each for each in known if each is not None]

    @cached_property
    def leader_labels(self) -> dict[tuple[Resource, str], dict[str, str]]:
        """The labels of the first pod of each workload that takes requests, by its kind and name."""
        return {
            (each.manifest.resource, each.manifest.name): assume.pod_labels(each.kind, each.body)
            for each in self.workloads
        }

    @cached_property
    def worker_labels(self) -> dict[tuple[Resource, str], dict[str, str]]:
        """The labels of the first worker of each workload that has any, by its kind and name."""
        return {
            (each.manifest.resource, each.manifest.name): assume.pod_labels(each.kind, each.body, worker=1)
            for each in self.workloads
            if workload(each).version.size > 1
        }

    @cached_property
    def _by_kind(self) -> dict[str, list[Shaped]]:
        found: dict[str, list[Shaped]] = {}
        for (kind, _), each in self.objects.items():
            found.setdefault(kind, []).append(each)
        return found


def scales_two(spec: Object) -> bool:
    """Whether the releases of a Rollout scale two workloads, of which one has no groups at rest."""
    if spec.get("counterpartRef"):
        return spec.get("touch") is None
    return bool((spec["strategy"].get("blueGreen") or {}).get("promotion") == Promotion.SWAP.value)


def workload(shaped: Shaped) -> Target:
    """A workload in the controller's type."""
    return assume.typed(shaped.kind, shaped.body)


def _kind(each: Shaped) -> str:
    """The kind, of one that only a script knows with its group, as another group may have the same."""
    kind, custom = str(each.body["kind"]), each.manifest.custom
    return f"{kind}.{each.manifest.resource.group}" if custom and kind in KNOWN_KINDS else kind


def _as_seen(each: Shaped) -> Shaped:
    body, manifest = each.body, each.manifest
    known = {name: value for name, value in body["metadata"].items() if name not in _SERVERS and value is not None}
    fresh = {"generation": 1, "resourceVersion": "0"}
    metadata = {**known, "uid": known.get("uid") or f"{manifest.order:09}/{manifest.what}", **fresh}
    body = {**body, "metadata": metadata}
    spec = spec_of(manifest.resource.kind)
    if spec is not None:
        body = spec.in_use(body)
    elif manifest.resource == SCALED_OBJECTS:
        body = assume.autoscaler(body)
    return Shaped(manifest, body)
