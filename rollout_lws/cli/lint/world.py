"""The files' objects as the world that the controller looks at: one namespace of a cluster in which all is at rest.

What only a cluster makes is made up as it would be: a leader of each LeaderWorkerSet with its labels, Gateways that
accept every route, and the HorizontalPodAutoscaler that KEDA makes of a ScaledObject.
"""
# ruff: noqa: ARG002 - the controller's questions are about more than files have

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

import msgspec

from rollout_lws.api.resources import batch_releases, keys, rollouts
from rollout_lws.cli.lint.manifests import SCALED_OBJECTS, Manifest
from rollout_lws.controller.observe import observe
from rollout_lws.controller.stored import StoredObject, StoredRollout, stored_object, stored_rollout
from rollout_lws.objects.meta import Meta
from rollout_lws.objects.resources import (
    HORIZONTAL_POD_AUTOSCALERS,
    LEADER_WORKER_SETS,
    LWS_GROUP_INDEX,
    LWS_NAME,
    LWS_REVISION,
    LWS_WORKER_INDEX,
    SERVICES,
    Resource,
)
from rollout_lws.objects.workloads import ControllerRevision, LeaderWorkerSet, Pod, StatefulSet
from rollout_lws.rollout.observation import Capabilities, Observation
from rollout_lws.traffic.registry import spec_of
from rollout_lws.workload.template import version_of

Object = dict[str, Any]

#: Any moment: nothing that is judged of objects at rest hangs on it.
NOW = datetime(2026, 1, 1, tzinfo=UTC)
_OWN_KINDS = (rollouts().kind, batch_releases().kind)
#: Of metadata, what a server writes and dumps of live objects have, besides the uid, which owner references name.
_SERVERS = (
    *("creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generateName", "generation"),
    *("managedFields", "resourceVersion", "selfLink"),
)


@dataclass(frozen=True, slots=True)
class Shaped:
    """A manifest whose shape is right, and the object that a server would make of it."""

    manifest: Manifest
    body: Object


class FileWorld:
    """One namespace with the Rollouts of one API group; ``observe.World`` to the controller's own functions."""

    def __init__(self, objects: Iterable[Shaped], group: str) -> None:
        self.capabilities = Capabilities()
        self.group = group
        self._stored: dict[str, list[StoredObject]] = {}
        self.objects: dict[tuple[str, str], Shaped] = {}
        """By kind and name, as a release sees them: a ScaledObject stands under the autoscaler that it makes."""
        for each in objects:
            if each.manifest.resource.kind not in _OWN_KINDS or each.manifest.resource.group == group:
                seen = _as_seen(each)
                self.objects[seen.body["kind"], seen.body["metadata"]["name"]] = seen

    def observed(self, rollout: str) -> Observation:
        """What the controller would see of a Rollout that is here."""
        found = observe(self, keys(self.group), rollout, NOW)
        if found is None:
            raise LookupError(f"there is no Rollout {rollout}")
        return found

    def find(self, kind: str, name: str) -> Shaped | None:
        return self.objects.get((kind, name))

    def of_kind(self, kind: str) -> Iterator[Shaped]:
        return iter(self._by_kind.get(kind, ()))

    def is_released(self, workload: str) -> bool:
        """Whether a Rollout among the files is about this LeaderWorkerSet."""
        return bool(self.rollouts_of(workload))

    @cached_property
    def leaders_by_workload(self) -> dict[str, Pod]:
        """One leader of each LeaderWorkerSet."""
        return {lws.metadata.name: _leader(lws) for lws in self._workloads.values()}

    @cached_property
    def workers_by_workload(self) -> dict[str, dict[str, str]]:
        """The labels of the first worker of each LeaderWorkerSet that has any."""
        return {
            lws.metadata.name: template_labels(lws, "workerTemplate") | _own_labels(lws, 1)
            for lws in self._workloads.values()
            if version_of(lws.spec).size > 1
        }

    @cached_property
    def _by_kind(self) -> dict[str, list[Shaped]]:
        found: dict[str, list[Shaped]] = {}
        for (kind, _), each in self.objects.items():
            found.setdefault(kind, []).append(each)
        return found

    # What the controller asks

    def rollout(self, name: str) -> StoredRollout | None:
        return self._rollouts.get(name)

    def rollouts_of(self, workload: str) -> Iterable[StoredRollout]:
        return [each for each in self._rollouts.values() if each.workload == workload]

    def every_rollout(self) -> Iterable[StoredRollout]:
        return self._rollouts.values()

    def workload(self, name: str) -> LeaderWorkerSet | None:
        return self._workloads.get(name)

    def leaders(self, workload: str) -> Iterable[Pod]:
        return [pod for name, pod in self.leaders_by_workload.items() if name == workload]

    def every_leader(self) -> Iterable[Pod]:
        return self.leaders_by_workload.values()

    def every_service(self) -> Iterable[StoredObject]:
        return self.every(SERVICES)

    def noted_services(self, uid: str) -> Iterable[StoredObject]:
        return self.every_service()

    def every(self, resource: Resource) -> Iterable[StoredObject]:
        if resource.kind not in self._stored:
            bodies = (msgspec.json.encode(each.body) for each in self.of_kind(resource.kind))
            self._stored[resource.kind] = [stored_object(body) for body in bodies]
        return self._stored[resource.kind]

    def endpoints(self, service: str) -> frozenset[str]:
        return frozenset()

    def has_endpoint(self, service: str) -> bool:
        return False

    def unserved(self, resource: Resource) -> bool:
        return False

    def unknown(self, resource: Resource) -> str | None:
        return None

    def unknown_endpoints(self, service: str) -> str | None:
        return None

    def unknown_pods(self, workload: str) -> str | None:
        return None

    # At rest there is none of these

    def batch_release(self, name: str) -> StoredObject | None:
        return None

    def canaries_of(self, workload: str) -> Iterable[LeaderWorkerSet]:
        return ()

    def pods(self, workload: str) -> Iterable[Pod]:
        return ()

    def stateful_sets(self, workload: str) -> Iterable[StatefulSet]:
        return ()

    def revisions(self, workload: str) -> Iterable[ControllerRevision]:
        return ()

    def services(self, workload: str) -> Iterable[StoredObject]:
        return ()

    def history(self, owner_uid: str) -> Iterable[ControllerRevision]:
        return ()

    @cached_property
    def _rollouts(self) -> dict[str, StoredRollout]:
        found = self.of_kind(rollouts().kind)
        return {each.manifest.name: stored_rollout(msgspec.json.encode(each.body)) for each in found}

    @cached_property
    def _workloads(self) -> dict[str, LeaderWorkerSet]:
        return {each.manifest.name: workload(each) for each in self.of_kind(LEADER_WORKER_SETS.kind)}


def workload(shaped: Shaped) -> LeaderWorkerSet:
    """A LeaderWorkerSet as the controller reads it."""
    return msgspec.json.decode(msgspec.json.encode(shaped.body), type=LeaderWorkerSet)


def template_labels(lws: LeaderWorkerSet, *roles: str) -> dict[str, str]:
    """The labels of the first of these templates (``leaderTemplate``, ``workerTemplate``) that there is."""
    groups = msgspec.json.decode(lws.spec.leader_worker_template)
    template: Object = next((groups[role] for role in roles if groups.get(role)), {})
    return dict((template.get("metadata") or {}).get("labels") or {})


def _own_labels(lws: LeaderWorkerSet, index: int) -> dict[str, str]:
    """What LeaderWorkerSet and its webhook put on a pod of the first group."""
    return {
        LWS_NAME: lws.metadata.name,
        LWS_GROUP_INDEX: "0",
        LWS_WORKER_INDEX: str(index),
        LWS_REVISION: "",
    }


def _leader(lws: LeaderWorkerSet) -> Pod:
    name = lws.metadata.name
    labels = template_labels(lws, "leaderTemplate", "workerTemplate") | _own_labels(lws, 0)
    return Pod(metadata=Meta(name=f"{name}-0", namespace=lws.metadata.namespace, uid=f"Pod/{name}-0", labels=labels))


def _as_seen(each: Shaped) -> Shaped:
    body, manifest = each.body, each.manifest
    known = {name: value for name, value in body["metadata"].items() if name not in _SERVERS and value is not None}
    metadata = {**known, "uid": known.get("uid") or f"{manifest.order:09}/{manifest.what}", "generation": 1}
    body = {**body, "metadata": metadata}
    spec = spec_of(manifest.resource.kind)
    if spec is not None:
        body = spec.in_use({**body, "status": {}})
    elif manifest.resource == SCALED_OBJECTS:
        body = _made_by_keda(body)
    return Shaped(manifest, body)


def _made_by_keda(scaled: Object) -> Object:
    spec, metadata = scaled["spec"], scaled["metadata"]
    owner = {"apiVersion": scaled["apiVersion"], "kind": scaled["kind"], "name": metadata["name"], "controller": True}
    return {
        "apiVersion": HORIZONTAL_POD_AUTOSCALERS.api_version,
        "kind": HORIZONTAL_POD_AUTOSCALERS.kind,
        "metadata": {**metadata, "name": f"keda-hpa-{metadata['name']}", "ownerReferences": [owner]},
        "spec": {
            "scaleTargetRef": spec["scaleTargetRef"],
            "minReplicas": spec.get("minReplicaCount") or 1,
            "maxReplicas": spec.get("maxReplicaCount") or 100,
        },
    }
