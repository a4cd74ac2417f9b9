"""Drops invalid fields that no rule depends on, so that the remaining rules can still run.

For example, a mistyped duration does not hide a mismatched Service. Fields that determine groups, or that name and
select objects, are never dropped: the rules would then judge a different plan.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

from rollout_lws.api import rollouts
from rollout_lws.cli.lint.paths import Path
from rollout_lws.objects.resources import LEADER_WORKER_SETS, SERVICES

#: Optional fields by kind whose absence cannot make a rule report something untrue: a step without traffic needs less.
_DISPENSABLE = {
    rollouts().kind: {
        "approvalTimeoutSeconds",
        "capacityDeadlineSeconds",
        "drainSeconds",
        "duration",
        "failureThreshold",
        "gracePeriodSeconds",
        "matches",
        "minReadySeconds",
        "onFailure",
        "pause",
        "paused",
        "progressDeadlineSeconds",
        "requestHeaderModifier",
        "traffic",
    },
    LEADER_WORKER_SETS.kind: {
        "args",
        "command",
        "env",
        "failureThreshold",
        "initialDelaySeconds",
        "livenessProbe",
        "nodeSelector",
        "periodSeconds",
        "ports",
        "resources",
        "startupProbe",
        "successThreshold",
        "timeoutSeconds",
        "tolerations",
        "volumeMounts",
        "volumes",
    },
    SERVICES.kind: {"ports"},
}


def pruned(kind: str, body: dict[str, Any], wrong: Iterable[Path]) -> dict[str, Any] | None:
    """``body`` without the invalid fields at these paths; None when one of them cannot be dropped."""
    made = copy.deepcopy(body)
    for path in wrong:
        cut = next((at for at, part in enumerate(path) if part in _dispensable(kind, path)), None)
        if cut is None:
            return None
        inner: Any = made
        for part in path[:cut]:
            inner = inner[part]
        inner.pop(path[cut], None)
    return made


def _dispensable(kind: str, path: Path) -> set[str]:
    if path[0] == "metadata":
        # Only the canary copy uses a Service's labels, while an LWS's metadata tells what else manages it.
        return {"labels"} if kind == SERVICES.kind else set()
    return _DISPENSABLE.get(kind, set())
