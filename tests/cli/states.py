"""Statuses that a controller writes, for Rollout `llama` of the demo's manifests."""

from __future__ import annotations

from typing import Any

from rollout_lws.cli.demo import manifests
from rollout_lws.cli.status.gate import pin

HASH = pin({"metadata": {}}, manifests.workload()).template_hash
HEALTHY: dict[str, Any] = {
    "phase": "Healthy",
    "observedTemplateHash": HASH,
    "stable": {"templateHash": HASH},
    "summary": {"state": "Healthy", "stable": "4/4"},
}
AWAITING: dict[str, Any] = {
    "phase": "Progressing",
    "observedTemplateHash": HASH,
    "currentStepIndex": 2,
    "currentStepState": "StepPaused",
    "summary": {"state": "AwaitingApproval", "step": "2/3", "new": "2/2", "stable": "4/4"},
}
LOADING = AWAITING | {"currentStepState": "StepUpgrade", "summary": {"state": "Loading", "step": "2/3"}}
