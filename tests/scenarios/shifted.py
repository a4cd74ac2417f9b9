"""What stories of capacity Shift share: a Rollout whose releases exchange groups one by one, and the second workload
stays.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from tests.scenarios.metered import Metered, metered
from tests.scenarios.paired_shift import GROUPS, STEPS, draining, unlabelled
from tests.scenarios.routed import SERVICE
from tests.scenarios.stories import CANARY
from tests.scenarios.swapped import come_to as come_to_step
from tests.scenarios.swapped import replicas, roles
from tests.scenarios.world import KEYS, NAME, NAMESPACE, World

MOMENTS = ("draining", "step 1", "step 2", "hand-over", "clean-up")


@asynccontextmanager
async def shifted(shift: dict[str, Any] | None = None, *steps: dict[str, Any], **more: Any) -> AsyncIterator[Metered]:
    """An LWS at rest, whose releases shift; requests are measured."""
    words = {"capacity": "Shift"} | ({"shift": shift} if shift else {})
    replicas = more.pop("replicas", GROUPS)
    async with metered(*(steps or STEPS), replicas=replicas, style="canary", words=words, **more) as m:
        await m.world.until(lambda: m.world.rollout["spec"].get("replicas") == replicas, "its number of groups")
        await m.world.rest()
        # Groups of the workload that serves go, and come back.
        m.world.checks.remove(next(each for each in m.world.checks if "untouched" in each.__qualname__))
        yield m


async def come_to(m: Metered, moment: str, tag: str) -> None:
    """Applies a version, and approves it until the release is at the moment; "draining": the first group is about to
    go.
    """
    world = m.world
    if moment != "draining":
        await come_to_step(m, moment, tag)
        return
    world.set_image(tag)
    await world.until(lambda: bool(draining(world)), "a group is taken out", 1200)


def assert_serves(world: World, name: str, tag: str, count: int = GROUPS) -> None:
    """One workload has all groups, of this version, and nothing of a release is left."""
    assert replicas(world) == ({NAME: 0, CANARY: count} if name == CANARY else {NAME: count})
    assert world.groups(name) == dict.fromkeys(range(count), tag)
    assert roles(world).get(NAME) == ("parked" if name == CANARY else None)
    every = (each["metadata"] for each in world.server.list(world.kind.resource, NAMESPACE))
    assert not [meta["name"] for meta in every if KEYS.replicas in (meta.get("annotations") or {})]
    assert not draining(world) and not unlabelled(world)
    assert world.names()["batchreleases"] == [] and f"{SERVICE}-canary" not in world.names()["services"]
