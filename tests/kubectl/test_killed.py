"""The controller is killed at any moment of releases and started again: no promise is broken, and the end is the same.

A kill comes after a seeded number of changes in the cluster, which watches tell; while the controller is away another
version may be applied, and the one that waits may be approved.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.kubectl.operator import ROLLOUT, Operator, workload
from tests.kubectl.programs import ROLLOUT_LWS, Program, Programs
from tests.kubectl.witness import HOLD, Picture, Witness

pytestmark = pytest.mark.kubectl

#: Every step asks, so that no time goes by in pauses.
PLAN = ROLLOUT.replace("{duration: 1}", "{}")


class Killed:
    """A sandbox, a controller in a process of its own, and who kills it."""

    def __init__(self, operator: Operator, replicas: int, unavailable: int, seed: int) -> None:
        self.operator = operator
        self.replicas = replicas
        self.unavailable = unavailable
        self.dice = random.Random(seed)
        self.witness = Witness()
        self.version = "v1"
        self._number = 1
        self._approved: set[str] = set()
        self._controller: Program | None = None

    async def start_controller(self) -> None:
        flags = ("--metrics-bind-address", "0", "--health-probe-bind-address", "0")
        command = (ROLLOUT_LWS, "controller", "--kubeconfig", str(self.operator.kubeconfig), *flags)
        self._controller = await self.operator.programs.start(*command)

    async def kill(self) -> None:
        assert self._controller is not None
        await self._controller.kill()
        print(f"killed in state {self.witness.now.state} {self.witness.now.task}, partition {self.partition}")

    @property
    def partition(self) -> int:
        return self.witness.now.partition

    async def begin(self) -> None:
        await self.operator.start_sandbox()
        await self.witness.look_on(self.operator)
        await self.start_controller()
        await self.apply("v1")
        await self.witness.until(lambda seen: seen.images() == {"v1"} and seen.ready("llama") == self.replicas)
        await self.operator.apply(PLAN)
        await self.witness.until(lambda seen: seen.at_rest("v1"))

    async def apply(self, version: str) -> None:
        self.version = version
        await self.operator.apply(workload(version, self.replicas, self.unavailable))

    async def next_version(self) -> None:
        self._number += 1
        await self.apply(f"v{self._number}")

    async def go_on(self, changes: int | None) -> bool:
        """Approve what waits, until so many changes have come or the newest version is at rest; False when it is."""
        until = None if changes is None else len(self.witness.changes) + changes

        def reached(seen: Picture) -> bool:
            enough = until is not None and len(self.witness.changes) >= until
            return enough or seen.at_rest(self.version) or self._waits(seen)

        while True:
            await self.witness.until(reached)
            if self._waits(self.witness.now):
                self._approved.add(self._step(self.witness.now))
                await self.operator.approve()
            else:
                return not self.witness.now.at_rest(self.version)

    def _waits(self, seen: Picture) -> bool:
        return seen.state == "AwaitingApproval" and self._step(seen) not in self._approved

    def _step(self, seen: Picture) -> str:
        return str((seen.status.get("step") or {}).get("startedAt"))

    async def release(self, kills: int, *, superseded: bool) -> None:
        """One new version, or two where the second is applied while the controller is away."""
        await self.next_version()
        for number in range(kills):
            if not await self.go_on(self.dice.randrange(1, 45)):
                break
            await self.kill()
            if superseded and number == kills // 2:
                await self.next_version()
            await self.start_controller()
        await self.go_on(None)

    async def assert_clean(self) -> None:
        """Nothing is left of any release, the LWS is held at the newest version, and the controller ends when asked."""
        renewed = self.witness.judge(self.replicas, self.unavailable)
        assert renewed >= self.replicas, "no release has renewed anything"
        everything = await self.operator.everything()
        ours = ("LeaderWorkerSet", "BatchRelease", "Rollout")
        names = {name for name in everything if name.partition("/")[0] in ours}
        assert names == {"LeaderWorkerSet/llama", "Rollout/llama"}
        assert not [name for name in everything if "canary" in name]
        assert self.partition == HOLD
        assert self._controller is not None
        assert await self._controller.stop() == 0


#: Groups, and how many of them the user lets be away at once.
SHAPES = {"four groups one by one": (4, 1), "four groups in pairs": (4, 2), "a single group": (1, 1)}


@pytest.mark.long
@pytest.mark.parametrize("shape", list(SHAPES.values()), ids=SHAPES)
@pytest.mark.parametrize("seed", range(100, 104))
async def test_a_controller_killed_again_and_again_breaks_no_promise(
    programs: Programs, tmp_path: Path, shape: tuple[int, int], seed: int
) -> None:
    killed = Killed(Operator(programs, tmp_path), *shape, seed)
    await killed.begin()
    for number in range(3):
        await killed.release(5, superseded=number % 2 == 1)
    await killed.assert_clean()
