"""Kubernetes quantities ("500m", "2Gi") as exact integers of a thousandth, so that sums never drift."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from functools import lru_cache

from rollout_lws.errors import UsageError

_SUFFIXES = {
    **{suffix: Decimal(1024) ** power for power, suffix in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"), 1)},
    **{suffix: Decimal(1000) ** power for power, suffix in enumerate(("k", "M", "G", "T", "P", "E"), 1)},
    "m": Decimal("0.001"),
    "u": Decimal("0.000001"),
    "n": Decimal("0.000000001"),
}


@lru_cache(maxsize=512)
def thousandths(text: str) -> int:
    """The quantity times 1000, rounded up; UsageError when it is none."""
    suffix = next((known for known in _SUFFIXES if text.endswith(known)), "")
    try:
        number = Decimal(text.removesuffix(suffix)) * _SUFFIXES.get(suffix, Decimal(1)) * 1000
    except InvalidOperation:
        raise UsageError(f'"{text}" is not a quantity: write for example 500m, 2 or 16Gi') from None
    return int(number.to_integral_value(rounding="ROUND_CEILING"))


def amounts(resources: Mapping[str, object] | None) -> dict[str, int]:
    return {name: thousandths(str(value)) for name, value in (resources or {}).items()}
