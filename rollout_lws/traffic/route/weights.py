"""Weight arithmetic: integer weights that split some backends of a rule and leave the others their share of requests.

Gateway API weights are integers from 0 to 1,000,000 and only their ratio counts, so percentages of a user's own weights
are written on a finer scale where whole numbers would not be exact.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

#: Largest weight that the Gateway API allows.
MOST = 1_000_000


def shared(weights: Sequence[int], percents: Mapping[int, int]) -> list[tuple[int, int]]:
    """(kept, given) for each weight: backend i gives away ``percents[i]`` percent of its weight, the others keep all.

    Ratios are exact while some scale of at most 100 makes them so within the limits; beyond, each is off by less than
    one in a million of the largest. A weight of 0 stays 0; a backend gives away everything only at 100 percent.
    """
    if all(weights[index] * percent % 100 == 0 for index, percent in percents.items()):
        scaled = list(weights)
    elif max(weights) * 100 <= MOST:
        scaled = [weight * 100 for weight in weights]
    else:
        scaled = [round(weight * MOST / max(weights)) for weight in weights]
    return [_parted(weight, percents.get(index, 0)) for index, weight in enumerate(scaled)]


def moved(weights: Sequence[int], old: int, new: int, percent: int) -> list[int]:
    """The weights once backends ``old`` and ``new`` share the sum of theirs (1 if that is 0) so that ``new`` has
    ``percent`` percent of it; the other backends keep their share of requests, with the precision of ``shared``.

    The scale only grows where whole numbers of the present one would not be exact, and not again afterwards, so that
    any number of moves leaves it bounded. With 0 < ``percent`` < 100 both have a weight.
    """
    whole = list(weights)
    whole[old], whole[new] = weights[old] + weights[new] or 1, 0
    pairs = shared(_within_limits(whole), {old: percent})
    kept, given = pairs[old]
    if 0 < percent < 100:
        # The smallest part beside the largest weight is 1, which cannot be split.
        kept, given = max(kept, 1), max(given, 1)
    after = [weight for weight, _ in pairs]
    after[old], after[new] = kept, given
    return after


def _within_limits(weights: Sequence[int]) -> list[int]:
    """The same ratios, or nearly, in weights that the API allows: a sum of two may exceed its limit."""
    if max(weights) <= MOST:
        return list(weights)
    common = math.gcd(*weights)
    largest = max(weights) // common
    if largest <= MOST:
        return [weight // common for weight in weights]
    return [max(round(weight // common * MOST / largest), min(weight, 1)) for weight in weights]


def _parted(weight: int, percent: int) -> tuple[int, int]:
    given = round(weight * percent / 100)
    if 0 < percent < 100 and weight > 0:
        given = min(max(given, 1), weight - 1)
    return weight - given, given
