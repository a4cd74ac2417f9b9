"""Kubernetes quantities ("500m", "2Gi") as exact integers in thousandths, so that sums have no rounding errors."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from rollout_lws.errors import UsageError
from rollout_lws.objects.quantities import exact


@lru_cache(maxsize=512)
def thousandths(text: str) -> int:
    """The quantity times 1000, rounded up; UsageError when it is invalid."""
    try:
        number = exact(text) * 1000
    except ValueError as error:
        raise UsageError(f"{error}: write for example 500m, 2 or 16Gi") from None
    return int(number.to_integral_value(rounding="ROUND_CEILING"))


def amounts(resources: Mapping[str, object] | None) -> dict[str, int]:
    return {name: thousandths(str(value)) for name, value in (resources or {}).items()}
