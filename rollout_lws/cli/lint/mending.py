"""A Rollout with errors that the controller's rules do not hang on: it is judged without the members that are wrong.

So a mistyped duration does not hide that the Service does not fit. What decides about groups, or names objects, is
never left out: the rules would then be asked of another plan.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

from rollout_lws.cli.lint.paths import Path

#: Optional members without which the rules say nothing that is not so: a step without traffic is asked less.
_DISPENSABLE = frozenset(
    {
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
    }
)


def mended(body: dict[str, Any], wrong: Iterable[Path]) -> dict[str, Any] | None:
    """``body`` without what is wrong at these paths; None where that cannot be left out."""
    made = copy.deepcopy(body)
    for path in wrong:
        cut = next((at for at, part in enumerate(path) if part in _DISPENSABLE), None)
        if cut is None:
            return None
        inner: Any = made
        for part in path[:cut]:
            inner = inner[part]
        inner.pop(path[cut], None)
    return made
