"""Kubernetes quantities ("500m", "2Gi"): their exact value and canonical form."""

from __future__ import annotations

import re
from decimal import ROUND_UP, Context, Decimal
from functools import lru_cache

_BINARY = tuple(
    (suffix, Decimal(1024) ** power) for power, suffix in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"), 1)
)
_DECIMAL = tuple(
    (suffix, Decimal(1000) ** power)
    for power, suffix in enumerate(("n", "u", "m", "", "k", "M", "G", "T", "P", "E"), -3)
)
#: Kubernetes preserves this notation of powers of ten.
_EXPONENT = re.compile(r"[eE][+-]?[0-9]")
_PARTS = re.compile(r"[+-]?0*([0-9]*)(?:\.([0-9]*))?(.*)", re.DOTALL)
_SCALES = {suffix: scale for suffix, scale in (*_BINARY, *_DECIMAL) if suffix}
#: The largest amount that Kubernetes parses with a binary suffix; larger ones are capped to it.
_MOST_BINARY = Decimal(2**63 - 1)
#: Kubernetes rounds up to a multiple of this.
_NANO = Decimal("1e-9")
#: Digits of the calculations: enough for any realistic quantity.
_EXACT = Context(prec=100, Emax=99, Emin=-99)


@lru_cache(maxsize=512)
def exact(text: str) -> Decimal:
    """The value of a quantity; ValueError when the text is not one, or is unrealistically large."""
    suffix = next((known for known in _SCALES if text.endswith(known)), "")
    try:
        number = _EXACT.multiply(_EXACT.create_decimal(text.removesuffix(suffix)), _SCALES.get(suffix, Decimal(1)))
    except ArithmeticError:
        raise ValueError(f'"{text}" is not a quantity') from None
    if not number.is_finite():
        raise ValueError(f'"{text}" is not a quantity')
    return number


# A template has a dozen quantities, and a cluster few different ones.
@lru_cache(maxsize=512)
def canonical(text: str) -> str:
    """``text`` as Kubernetes writes it back: 1000m as 1, 1.5Gi as 1536Mi, 0.1Gi, which is no whole number of bytes, as
    107374182400m; ValueError when it is no quantity.

    One value may have several canonical forms: 1Gi and 1073741824, 1k and 1e3 stay as they are, and so do 1E3 and 1e3.
    """
    text = text.strip()
    value = _in_nanos(exact(text))
    if _left_alone(text):
        return text
    if not value:
        return "0"
    if _EXPONENT.search(text):
        return _in_powers_of_ten(value)
    if text.endswith("i"):
        value = max(-_MOST_BINARY, min(value, _MOST_BINARY))
    binary = text.endswith("i") and abs(value) >= 1024 and _divides(Decimal(1), value)
    scales = (("", Decimal(1)), *_BINARY) if binary else _DECIMAL
    suffix, scale = next(((name, size) for name, size in reversed(scales) if _divides(size, value)), scales[0])
    return f"{int(_EXACT.divide(value, scale))}{suffix}"


def _left_alone(text: str) -> bool:
    """Whether Kubernetes' fast path for short numbers takes ``text`` as canonical unchanged: a sign, leading zeros and
    the case of an E then stay.
    """
    parts = _PARTS.fullmatch(text)
    assert parts is not None
    whole, fraction, suffix = parts[1] or "0", parts[2] or "", parts[3]
    if suffix.endswith("i"):
        thousands = next((power for power, (known, _) in enumerate(_BINARY, 1) if known == suffix), 0)
        return not fraction and int(whole) % 8 != 0 and len(whole) + 3 * thousands <= 14
    digits = whole + fraction
    exponent = int(suffix[1:]) if _EXPONENT.match(suffix) else _SCALES.get(suffix, Decimal(1)).adjusted()
    exponent -= len(fraction)
    return len(digits) <= 18 and exponent >= -9 and exponent % 3 == 0 and digits[0] != "0" and digits[-3:] != "000"


def _in_nanos(value: Decimal) -> Decimal:
    return value if _divides(_NANO, value) else value.quantize(_NANO, ROUND_UP, _EXACT)


def _divides(size: Decimal, value: Decimal) -> bool:
    return not _EXACT.remainder(value, size)


def _in_powers_of_ten(value: Decimal) -> str:
    sign, digits, exponent = _EXACT.normalize(value).as_tuple()
    assert isinstance(exponent, int)
    number = int("".join(map(str, digits))) * 10 ** (exponent % 3)
    power = exponent - exponent % 3
    return f"{'-' if sign else ''}{number}{f'e{power}' if power else ''}"
