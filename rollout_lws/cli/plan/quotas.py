"""Warnings when ResourceQuotas leave too few accelerators: groups beyond the quota wait."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from rollout_lws.cli.plan.model import Plan
from rollout_lws.objects.quantities import exact

_REQUESTS = "requests."


def short_of(plan: Plan, quotas: Iterable[dict[str, Any]]) -> Iterator[str]:
    """One sentence for each quota that leaves less than the release needs in addition to existing pods; none without
    steps.
    """
    if not plan.parts:
        return
    for quota in quotas:
        hard = (quota.get("status") or {}).get("hard") or (quota.get("spec") or {}).get("hard") or {}
        used = (quota.get("status") or {}).get("used") or {}
        for name, most in plan.peak.items():
            key = _REQUESTS + name
            if key not in hard:
                continue
            left = exact(str(hard[key])) - exact(str(used.get(key, "0")))
            wanted = most - plan.requested.get(name, 0)
            if wanted > left:
                at = next(
                    part.row.step
                    for part in plan.parts
                    if part.accelerators.get(name, 0) - plan.requested.get(name, 0) > left
                )
                where = f"step {at}" if at else "the promotion"
                what = "the release" if plan.owned is None else f"the groups of {plan.owned.inactive}"
                takes, it = ("takes", "it") if plan.owned is None else ("take", "the release")
                yield (
                    f"ResourceQuota {quota['metadata']['name']} leaves {left.normalize():f} {name}, and {what}"
                    f" {takes} up to {wanted} more: {it} waits in {where} for quota, and goes on by itself when there"
                    " is some"
                )
