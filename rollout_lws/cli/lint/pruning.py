"""Objects with errors that the controller's rules do not hang on: they are judged without the members that are wrong.

So a mistyped duration does not hide that the Service does not fit. What decides about groups, or names and selects
objects, is never left out: the rules would then be asked of another plan.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

from rollout_lws.api import rollouts
from rollout_lws.cli.lint.paths import Path
from rollout_lws.objects.resources import LEADER_WORKER_SETS, SERVICES

#: By kind, optional members without which the rules say nothing that is not so: a step without traffic is asked less.
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
    """``body`` without what is wrong at these paths; None where that cannot be left out."""
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
        # Of a Service only the copy has them; of an LWS they say who else takes care of it.
        return {"labels"} if kind == SERVICES.kind else set()
    return _DISPENSABLE.get(kind, set())
