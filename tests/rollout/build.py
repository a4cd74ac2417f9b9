"""A Rollout's picture of the world made of plain values, and drafts of decisions about it."""

from __future__ import annotations

from typing import Any

from rollout_lws.api import Phase, Rollout, StableRecord, StepRecord, StepState
from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.observation import Observation
from rollout_lws.workload.facts import Facts
from rollout_lws.workload.hold import HOLD
from tests.workload.build import BEFORE, KEYS, NAME, NAMESPACE, NEW, NOW, OLD, UID, facts, leader_set, lws, pod

STEPS = ({"replicas": 1, "pause": {"duration": 60}}, {"replicas": "50%"}, {"replicas": "100%"})
#: Our hash of the template that ``lws()`` has.
HASH = lws().version.template_hash
OTHER_HASH = "another000"


def rollout(
    *, steps: tuple[dict[str, Any], ...] = STEPS, status: dict[str, Any] | None = None, **given: Any
) -> Rollout:
    """Rollout ``llama``; ``given`` are members of its strategy, ``metadata`` and ``spec`` apart."""
    metadata = {"name": NAME, "namespace": NAMESPACE, "uid": "uid-rollout", "generation": 1, "resourceVersion": "9"}
    ref = {"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "name": NAME}
    extra, more = given.pop("metadata", {}), given.pop("spec", {})
    return Rollout.model_validate(
        {
            "metadata": {**metadata, "finalizers": [KEYS.rollout_finalizer], **extra},
            "spec": {"workloadRef": ref, "strategy": {"canary": {"steps": steps}, **given}, **more},
            "status": status,
        }
    )


def in_step(index: int = 1, *, paused: bool = True, **members: Any) -> dict[str, Any]:
    """The status of a release at step ``index``, of another version than stable."""
    return {
        "phase": Phase.PROGRESSING,
        "stable": StableRecord(template_hash=OTHER_HASH, revision=OLD, workload_uid=UID),
        "step": StepRecord(started_at=BEFORE, paused_at=BEFORE if paused else None),
        "observed_template_hash": HASH,
        "canary_status": {
            "currentStepIndex": index,
            "nextStepIndex": index + 1,
            "currentStepState": StepState.STEP_PAUSED if paused else StepState.STEP_UPGRADE,
            "canaryRevision": NEW,
            "stableRevision": OLD,
        },
        **members,
    }


def at_rest(**members: Any) -> dict[str, Any]:
    """The status of a Rollout whose LWS runs what its template asks for."""
    stable = StableRecord(template_hash=HASH, revision=OLD, workload_uid=UID)
    return {"phase": Phase.HEALTHY, "stable": stable, "observed_template_hash": HASH, **members}


def held(replicas: int = 4, *, partition: int = HOLD, **metadata: Any) -> Facts:
    """The stable LWS under the hold, with all of its groups ready."""
    mark = '{"by":"uid-rollout","original":{"partition":0},"written":{"partition":1000000}}'
    annotations = {KEYS.original: mark, **metadata.pop("annotations", {})}
    workload = lws(replicas, partition=partition, annotations=annotations, **metadata)
    return facts(workload, *(pod(index) for index in range(replicas)), leader_set=leader_set(partition=partition))


def canary(*leaders: Any, replicas: int = 2, **parts: Any) -> Facts:
    """The canary LWS with these leaders."""
    workload = lws(replicas, name=f"{NAME}-canary", labels={KEYS.canary_leader_worker_set: NAME})
    return facts(workload, *leaders, leader_set=leader_set(NEW), **parts)


def draft(given: Rollout, *, stable: Facts | None = None, **observed: Any) -> Draft:
    return Draft.of(Observation(NOW, KEYS, given, stable=held() if stable is None else stable, **observed))
