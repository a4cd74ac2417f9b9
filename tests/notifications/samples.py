"""Transitions for tables: any Event, on a Rollout in the middle of a release."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from rollout_lws.api import GateRecord, GateResult, Rollout, SummaryState
from rollout_lws.notifications.transition import Transition
from rollout_lws.rollout.decision import GateEnd, ReleaseEvent, Verdict
from rollout_lws.rollout.reasons import EventReason, Reason

AT = datetime(2026, 11, 29, 12, 0, 0, 250_000, tzinfo=UTC)
STATUS: dict[str, Any] = {
    "phase": "Progressing",
    "observedTemplateHash": "new-hash",
    "observedRolloutID": "r-7",
    "stable": {"templateHash": "old-hash", "revision": "old-revision"},
    "canaryStatus": {
        "currentStepIndex": 2,
        "currentStepState": "StepMetricsAnalysis",
        "canaryRevision": "new-revision",
    },
    "traffic": {"desired": {"weight": 20}, "applied": {"weight": 5}},
    "groups": {"stable": {"ready": 4, "total": 4}, "new": {"ready": 0, "total": 1}},
    "summary": {"state": "Stalled"},
    "gates": [{"name": "latency", "result": "Failed"}, {"name": "evals", "result": "Passed"}, {"name": "other"}],
    "releaseGates": [{"name": "errors", "result": "Inconclusive"}],
}
GATE = GateRecord(
    name="latency",
    result=GateResult.FAILED,
    value="2.09s",
    stable_value="700ms",
    limit="1s",
    samples=300,
    stable_samples=1200,
    share="42%",
    share_from="32%",
    share_to="48%",
    share_limit="5%",
    message="p95 of the time to first token 2.09s, at most 1s",
)
FAILED = Verdict("Stalled", Reason.GATE_FAILED, SummaryState.STALLED, "the release waits")


def rollout(status: dict[str, Any] | None = None, namespace: str = "prod", **spec: Any) -> Rollout:
    return Rollout.model_validate(
        {
            "metadata": {"name": "llama", "namespace": namespace, "uid": "uid-1", "resourceVersion": "12"},
            "spec": {
                "workloadRef": {
                    "apiVersion": "leaderworkerset.x-k8s.io/v1",
                    "kind": "LeaderWorkerSet",
                    "name": "llama",
                },
                "strategy": {"canary": {"steps": [{"replicas": 1}, {"replicas": 2}, {"replicas": "100%"}]}},
                **spec,
            },
            "status": STATUS if status is None else status,
        }
    )


def transition(
    reason: EventReason = EventReason.GATE_FAILED,
    note: str = "gate latency: too slow",
    *,
    gates: tuple[GateEnd, ...] = (GateEnd("metric", GateResult.FAILED, GATE, 61.5),),
    about: str = "Rollout",
    **changes: Any,
) -> Transition:
    event = ReleaseEvent(reason.value, note, "Warning", about, gates)
    given: dict[str, Any] = {"rollout": rollout(), "resource_version": "11", "verdict": FAILED, "at": AT}
    return Transition(event, "llama", **{**given, **changes})
