"""Rollouts that only look as if a controller had them, for lists."""

from __future__ import annotations

from typing import Any

from rollout_lws.cli.demo.manifests import rollout as manifest
from rollout_lws.cli.demo.manifests import workload
from rollout_lws.objects.resources import NAMESPACES
from tests.browser.stage import ROLLOUTS, Stage

Object = dict[str, Any]
#: States with the phase that goes with each, and the message.
STATES = (
    ("Healthy", "Healthy", ""),
    ("Loading", "Progressing", "group 1 loads its weights"),
    ("Analyzing", "Progressing", "first-token is measured"),
    ("AwaitingApproval", "Progressing", "step 2 waits for an approval"),
    ("Stalled", "Progressing", "group 3 does not become ready: CrashLoopBackOff"),
    ("Aborted", "Aborted", "gate first-token failed"),
)
TEAMS = 10


def made(number: int) -> Object:
    """The Rollout of this number; names, namespaces and states repeat."""
    state, phase, message = STATES[number % len(STATES)]
    meta = {"name": f"model-{number:03}", "namespace": f"team-{number % TEAMS:02}"}
    under_way = phase == "Progressing"
    status = {
        "phase": phase,
        "message": message,
        "observedRolloutID": f"r{number}",
        "currentStepIndex": 2 if under_way else 3,
        "summary": {
            "state": state,
            "step": "2/3" if under_way else "",
            "traffic": "40%" if under_way else "",
            "new": "2/2" if under_way else "",
            "stable": "4/4",
            "accelerators": 48,
            "since": "2026-03-01T08:00:00Z",
        },
        "groups": {"new": {"total": 2, "ready": 2}, "stable": {"total": 4, "ready": 4}} if under_way else {},
    }
    body = manifest(ROLLOUTS.api_version, {**workload()["metadata"], **meta}, routed=True)
    return {**body, "metadata": meta, "status": status}


def team(stage: Stage, count: int = 12) -> None:
    for number in range(TEAMS):
        stage.server.create(NAMESPACES, {"metadata": {"name": f"team-{number:02}"}})
    for number in range(count):
        stage.create(ROLLOUTS, made(number))
