"""Random walks over seeds of choice, as many as wanted; those that break a promise are told, shortened, at once.

python -m tests.scenarios.walks others --walks 200 --seed 7
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from collections import Counter

from tests.scenarios.test_pair_walk import COMPANIONS_LANE, PAIR, SCALED, SHIFT
from tests.scenarios.test_random_walk import (
    CORE,
    GATED,
    OTHERS,
    ROUTED,
    SCALED_ROLLOUT,
    SHELL,
    STATEFUL,
    STATEFUL_OTHERS,
    Lane,
    wander,
)
from tests.scenarios.test_swap_walk import EXCHANGE_LANE, SWAP_LANE

LANES: dict[str, Lane] = {"core": CORE, "gated": GATED, "others": OTHERS, "routed": ROUTED}
LANES |= {"pair": PAIR, "pair-scaled": SCALED, "pair-shift": SHIFT, "scaled": SCALED_ROLLOUT, "shell": SHELL}
LANES |= {"stateful": STATEFUL, "stateful-others": STATEFUL_OTHERS}
LANES |= {"pair-companions": COMPANIONS_LANE, "swap": SWAP_LANE, "shift": EXCHANGE_LANE}
#: Walks that are drawn from one seed: hypothesis varies what it has drawn before, and a fresh start sees other things.
ROUND = 20


def main(arguments: list[str]) -> int:
    """The exit code: 1 when a promise was broken."""
    asked = argparse.ArgumentParser(prog="python -m tests.scenarios.walks")
    asked.add_argument("lane", choices=LANES)
    asked.add_argument("--walks", type=int, default=ROUND)
    asked.add_argument("--acts", type=int, default=16, help="at most, of each walk")
    asked.add_argument("--seed", type=int, default=1, help="of the first twenty walks; the next ones have the next")
    told = asked.parse_args(arguments)
    seen: Counter[str] = Counter()
    broken: list[int] = []
    for begun in range(0, told.walks, ROUND):
        number, began = told.seed + begun // ROUND, time.monotonic()
        try:
            seen += wander(LANES[told.lane], min(ROUND, told.walks - begun), told.acts, number)
        except BaseException as error:
            if not isinstance(error, Exception | BaseExceptionGroup):
                raise
            broken.append(number)
            traceback.print_exception(error)
        print(
            f"seed {number}: {'broken' if number in broken else 'kept'}, {time.monotonic() - began:.0f} s", flush=True
        )
    for what, count in sorted(seen.items()):
        print(f"{count:7} {what}")
    print(f"{told.walks} walks of {told.lane}; broken from seeds {broken or 'none'}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
