"""The controller on a machine whose clocks are wrong, started as a process of its own.

Usage: python -m tests.controller.skewed AHEAD SPEED ARGUMENT... The date is AHEAD seconds ahead of the true one; the
clock that the Lease is counted by, which starts years ago, runs SPEED times as fast as time passes.
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from functools import partial

from rollout_lws.cli.main import main
from rollout_lws.clock import WallClock
from rollout_lws.controller import process
from rollout_lws.kube.elector import Elector
from rollout_lws.kube.fence import Fence, elapsed


def skew(ahead: float, speed: float) -> None:
    """Make it so for whatever this process connects from now on."""

    class Skewed(WallClock):
        def now(self) -> datetime:
            return datetime.now(UTC) + timedelta(seconds=ahead)

    def counted() -> float:
        return 1e8 * ahead + speed * elapsed()

    process.WallClock = Skewed  # type: ignore[misc]
    process.Fence = partial(Fence, counted)  # type: ignore[assignment, misc]
    process.Elector = partial(Elector, clock=counted, date=Skewed().now)  # type: ignore[assignment, misc]


if __name__ == "__main__":
    skew(float(sys.argv[1]), float(sys.argv[2]))
    sys.argv = ["rollout-lws", *sys.argv[3:]]
    main()
