"""One LeaderWorkerSet at one moment, made of plain values: what ``observe`` would hand to the pure rules."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from rollout_lws.api.resources import keys
from rollout_lws.objects.meta import Condition, Meta, OwnedMeta, OwnerReference
from rollout_lws.objects.released import RESTARTS_EXHAUSTED
from rollout_lws.objects.resources import LWS_GROUP_INDEX, LWS_NAME, LWS_REVISION, LWS_WORKER_INDEX
from rollout_lws.objects.workloads import (
    ContainerStatus,
    ControllerRevision,
    Pod,
    PodStatus,
    StatefulSet,
    StatefulSetRollingUpdate,
    StatefulSetSpec,
    StatefulSetStatus,
    StatefulSetUpdateStrategy,
)
from rollout_lws.targets.leader_worker_set import (
    LeaderWorkerSet,
    LeaderWorkerSetSpec,
    LeaderWorkerSetStatus,
    RolloutStrategy,
)
from rollout_lws.targets.target import RollingUpdate
from rollout_lws.workload.facts import Facts
from rollout_lws.workload.groups import SIZE_ANNOTATION

KEYS = keys()
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
NAME, NAMESPACE, UID = "llama", "prod", "uid-llama"
#: Ready since a minute.
BEFORE = NOW - timedelta(seconds=60)
#: LWS's revisions of the stable and of the new version.
OLD, NEW = "old-rev", "new-rev"

WORKER = {"spec": {"containers": [{"name": "server", "image": "model:1"}]}}


def raw(value: Any) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(value))


def lws(
    replicas: int = 4,
    *,
    partition: int = 0,
    unavailable: int | str = 1,
    surge: int | str = 0,
    template: Mapping[str, Any] | None = None,
    network: Any = None,
    annotations: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
    name: str = NAME,
    generation: int = 3,
    observed: int | None = 3,
    **metadata: Any,
) -> LeaderWorkerSet:
    marks = {"labels": dict(labels or {}), "annotations": dict(annotations or {}), "generation": generation}
    given = {"name": name, "namespace": NAMESPACE, "uid": f"uid-{name}", "resource_version": "7", **marks, **metadata}
    return LeaderWorkerSet(
        metadata=OwnedMeta(**given),
        spec=LeaderWorkerSetSpec(
            replicas=replicas,
            leader_worker_template=raw({"size": 2, "workerTemplate": WORKER} if template is None else template),
            network_config=raw(network),
            rollout_strategy=RolloutStrategy(
                rolling_update_configuration=RollingUpdate(
                    partition=partition, max_unavailable=unavailable, max_surge=surge
                )
            ),
        ),
        status=LeaderWorkerSetStatus(observed_generation=observed),
    )


def patched(workload: LeaderWorkerSet, body: Mapping[str, Any] | None) -> LeaderWorkerSet:
    """The LWS after a merge patch of its strategy and annotations."""
    body = body or {}
    annotations = dict(workload.metadata.annotations)
    for key, value in ((body.get("metadata") or {}).get("annotations") or {}).items():
        annotations.pop(key, None)
        if value is not None:
            annotations[key] = value
    changes = ((body.get("spec") or {}).get("rolloutStrategy") or {}).get("rollingUpdateConfiguration") or {}
    before = workload.strategy
    strategy = RollingUpdate(
        partition=changes.get("partition", before.partition),
        max_unavailable=changes.get("maxUnavailable", before.max_unavailable),
        max_surge=changes.get("maxSurge", before.max_surge),
    )
    return msgspec.structs.replace(
        workload,
        metadata=msgspec.structs.replace(workload.metadata, annotations=annotations),
        spec=msgspec.structs.replace(
            workload.spec, rollout_strategy=RolloutStrategy(rolling_update_configuration=strategy)
        ),
    )


def pod(
    index: int | str,
    worker: int = 0,
    *,
    revision: str = OLD,
    since: datetime | None = BEFORE,
    size: int | str = 2,
    terminating: bool = False,
    phase: str = "",
    uid: str = "",
    conditions: tuple[Condition, ...] = (),
    containers: tuple[ContainerStatus, ...] = (),
    init_containers: tuple[ContainerStatus, ...] = (),
    workload: str = NAME,
    labels: Mapping[str, str] | None = None,
    exhausted: bool = False,
    **status: Any,
) -> Pod:
    """A pod of group ``index``; ``since`` is when it became ready, None while it is not."""
    name = f"{workload}-{index}" + (f"-{worker}" if worker else "")
    marks = {
        LWS_NAME: workload,
        LWS_GROUP_INDEX: str(index),
        LWS_WORKER_INDEX: str(worker),
        LWS_REVISION: revision,
        **(labels or {}),
    }
    ready = Condition(type="Ready", status="True" if since else "False", last_transition_time=since or BEFORE)
    return Pod(
        metadata=Meta(
            name=name,
            namespace=NAMESPACE,
            uid=uid or f"uid-{name}-{revision}",
            labels=marks,
            annotations=({} if worker else {SIZE_ANNOTATION: str(size)})
            | ({RESTARTS_EXHAUSTED: "true"} if exhausted else {}),
            deletion_timestamp=NOW if terminating else None,
        ),
        status=PodStatus(
            phase=phase or ("Running" if since else "Pending"),
            conditions=(ready, *conditions),
            container_statuses=containers,
            init_container_statuses=init_containers,
            **status,
        ),
    )


def worker_set(leader: Pod, *, available: int = 1, replicas: int = 1, **changes: Any) -> StatefulSet:
    """The worker StatefulSet of a leader; complete unless ``changes`` say otherwise."""
    given = {"labels": {LWS_NAME: NAME, LWS_REVISION: changes.pop("revision", leader.revision)}, "generation": 2}
    given |= {"deletion_timestamp": NOW} if changes.pop("terminating", False) else {}
    status = {"observed_generation": 2, "current_revision": "a", "update_revision": "a", **changes}
    return StatefulSet(
        metadata=Meta(
            name=leader.metadata.name,
            namespace=NAMESPACE,
            owner_references=(OwnerReference(kind="Pod", uid=leader.metadata.uid, controller=True),),
            **given,
        ),
        spec=StatefulSetSpec(replicas=replicas),
        status=StatefulSetStatus(available_replicas=available, **status),
    )


def leader_set(
    revision: str = OLD,
    *,
    partition: int = 0,
    current: str = "set-old",
    update: str = "set-old",
    generation: int = 5,
    observed: int = 5,
) -> StatefulSet:
    """The leader StatefulSet. ``revision`` is LWS's, ``current`` and ``update`` are the StatefulSet's own."""
    return StatefulSet(
        metadata=Meta(
            name=NAME,
            namespace=NAMESPACE,
            uid="uid-set",
            labels={LWS_NAME: NAME, LWS_REVISION: revision},
            generation=generation,
        ),
        spec=StatefulSetSpec(
            update_strategy=StatefulSetUpdateStrategy(rolling_update=StatefulSetRollingUpdate(partition=partition))
        ),
        status=StatefulSetStatus(observed_generation=observed, current_revision=current, update_revision=update),
    )


def revision_record(
    name: str, revision: str, number: int = 1, data: Any = None, *, terminating: bool = False, **marks: str
) -> ControllerRevision:
    return ControllerRevision(
        metadata=Meta(
            name=name,
            namespace=NAMESPACE,
            uid=f"uid-{name}",
            labels={LWS_NAME: NAME, LWS_REVISION: revision},
            annotations=marks,
            deletion_timestamp=NOW if terminating else None,
        ),
        revision=number,
        data=raw(data if data is not None else {}),
    )


#: The leader StatefulSet's own records: what "set-old" and "set-new" stand for.
SET_REVISIONS = (revision_record("set-old", OLD), revision_record("set-new", NEW))


def facts(workload: LeaderWorkerSet, *leaders: Pod, **parts: Any) -> Facts:
    """The LWS with its groups; each leader of a group with workers gets a complete worker StatefulSet."""
    sets = tuple(worker_set(each) for each in leaders if each.metadata.annotations.get(SIZE_ANNOTATION) == "2")
    given: dict[str, Any] = {"worker_sets": sets, "leader_set": leader_set(), "set_revisions": SET_REVISIONS, **parts}
    return Facts(workload, leaders=tuple(leaders), **given)


#: Records that somebody has made up, of which none is ours.
MADE_UP = [
    '{"by":"uid-rollout","original":{"partition":"x"},"written":{"partition":0}}',
    '{"by":"uid-rollout","original":{"partition":null},"written":{"partition":0}}',
    '{"by":"uid-rollout","original":{"partition":-1},"written":{"partition":0}}',
    '{"by":"uid-rollout","original":{"partition":true},"written":{"partition":0}}',
    '{"by":"uid-rollout","original":{"partition":"25%"},"written":{"partition":0}}',
    '{"by":"uid-rollout","original":{"partition":99999999999999999999999},"written":{"partition":0}}',
    '{"by":"uid-rollout","original":{"maxSurge":"many"},"written":{"maxSurge":0}}',
    '{"by":"uid-rollout","original":{"maxSurge":1.5},"written":{"maxSurge":0}}',
    '{"by":"uid-rollout","original":{"maxSurge":{}},"written":{"maxSurge":0}}',
    '{"by":"uid-rollout","original":{"type":1},"written":{"type":0}}',
    '{"by":"uid-rollout","original":{},"written":{"partition":0}}',
    '{"by":"uid-rollout","original":null,"written":{}}',
    '{"by":null,"original":{},"written":{}}',
    "null",
    "[]",
]
