"""Kubernetes quantities ("500m", "2Gi"): their exact value, and the one way in which Kubernetes itself writes it."""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation
from functools import lru_cache

_BINARY = tuple(
    (suffix, Decimal(1024) ** power) for power, suffix in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"), 1)
)
_DECIMAL = tuple(
    (suffix, Decimal(1000) ** power)
    for power, suffix in enumerate(("n", "u", "m", "", "k", "M", "G", "T", "P", "E"), -3)
)
#: Kubernetes keeps powers of ten that are written so.
_EXPONENT = re.compile(r"[eE][+-]?[0-9]")
_SCALES = {suffix: scale for suffix, scale in (*_BINARY, *_DECIMAL) if suffix}


@lru_cache(maxsize=512)
def exact(text: str) -> Decimal:
    """The value of a quantity; ValueError when the text is none."""
    suffix = next((known for known in _SCALES if text.endswith(known)), "")
    try:
        number = Decimal(text.removesuffix(suffix)) * _SCALES.get(suffix, Decimal(1))
    except InvalidOperation:
        raise ValueError(f'"{text}" is not a quantity') from None
    if not number.is_finite():
        raise ValueError(f'"{text}" is not a quantity')
    return number


@lru_cache(maxsize=512)
def canonical(text: str) -> str:
    """``text`` as Kubernetes writes it back: 1000m as 1, 1.5Gi as 1536Mi; ValueError when it is no quantity."""
    value = exact(text)
    if _EXPONENT.search(text):
        return text
    binary = text.endswith("i") and abs(value) >= 1024
    scales = (("", Decimal(1)), *_BINARY) if binary else _DECIMAL
    suffix, scale = next(((name, size) for name, size in reversed(scales) if value % size == 0), scales[0])
    return f"{int((value / scale).to_integral_value(rounding='ROUND_UP'))}{suffix}" if value else "0"
