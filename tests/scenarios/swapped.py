"""What stories of swaps share: a Rollout whose releases leave the requests with the groups that they make."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from tests.scenarios.metered import Metered, metered
from tests.scenarios.routed import routed_at_rest
from tests.scenarios.stories import CANARY
from tests.scenarios.world import KEYS, NAME, NAMESPACE, ROLLOUTS, World

STEPS: tuple[dict[str, Any], ...] = (
    {"replicas": "50%", "traffic": "0%", "pause": {}},
    {"replicas": "100%", "traffic": "50%", "pause": {}},
)
SWAP: dict[str, Any] = {"promotion": "Swap"}
#: States in which a person does something, or a release is over.
_ASKED = ("Healthy", "AwaitingApproval")


@asynccontextmanager
async def swapped(
    *steps: dict[str, Any], replicas: int = 4, words: Mapping[str, Any] = SWAP, **more: Any
) -> AsyncIterator[Metered]:
    """An LWS at rest, whose releases swap; requests are measured."""
    async with metered(*(steps or STEPS), replicas=replicas, style="blueGreen", words=words, **more) as m:
        await m.world.until(lambda: m.world.rollout["spec"].get("replicas") == replicas, "its number of groups")
        await m.world.rest()
        yield m


@asynccontextmanager
async def kept(seconds: int, *steps: dict[str, Any], replicas: int = 4) -> AsyncIterator[Metered]:
    """The same, and the groups that gave up the requests stay for so many seconds after a release."""
    words = {**SWAP, "scaleDownDelaySeconds": seconds}
    async with swapped(*steps, replicas=replicas, words=words) as m:
        yield m


async def plain_swap(world: World, *steps: dict[str, Any], replicas: int = 4, words: Mapping[str, Any] = SWAP) -> None:
    """The same, without a meter."""
    await routed_at_rest(world, *(steps or STEPS), replicas=replicas, style="blueGreen", words=words)
    await world.until(lambda: world.rollout["spec"].get("replicas") == replicas, "its number of groups")
    await world.rest()


def leave_as_is(world: World) -> None:
    """A person lets the Rollout leave while the workload that a release has made serves."""
    world.patch(ROLLOUTS, NAME, {"metadata": {"annotations": {KEYS.leave_as_is: "true"}}})


async def left_as_is(world: World) -> dict[str, Any]:
    """The Rollout is deleted and leaves the workload that a release has made as it is; gives it as it was."""
    left = world.rollout
    leave_as_is(world)
    world.delete(ROLLOUTS, NAME)
    await world.until(lambda: world.get(ROLLOUTS, NAME) is None, "it has left", 600)
    return left


def make_anew(world: World, left: dict[str, Any]) -> None:
    """The Rollout that has left is made again, from its manifest."""
    meta = {"name": NAME, "namespace": NAMESPACE}
    world.server.create(ROLLOUTS, {**{key: each for key, each in left.items() if key != "status"}, "metadata": meta})


def replicas(world: World) -> dict[str, int]:
    return {name: lws["spec"]["replicas"] for name, lws in _both(world).items()}


def roles(world: World) -> dict[str, str | None]:
    return {
        name: (lws["metadata"].get("labels") or {}).get("rollouts.kruise.io/side") for name, lws in _both(world).items()
    }


def _both(world: World) -> dict[str, dict[str, Any]]:
    found = {name: world.get(world.kind.resource, name) for name in (NAME, CANARY)}
    return {name: lws for name, lws in found.items() if lws is not None}


async def to_the_end(world: World, within: float = 1800) -> None:
    """Approves what asks for it until the release is over."""
    while True:
        await world.until(lambda: world.state in _ASKED, "the next approval or the end", within)
        if world.state == "Healthy":
            break
        at = world.status["currentStepIndex"]
        world.approve()
        await world.until(
            lambda at=at: world.state != "AwaitingApproval" or world.status["currentStepIndex"] != at, "approved"
        )
    await world.rest()


async def released(world: World, tag: str) -> None:
    """Releases a version, to its end."""
    world.set_image(tag)
    await world.until(lambda: world.state != "Healthy", "the release")
    await to_the_end(world)


async def moved(m: Metered, *, away: bool) -> str:
    """Has the workload serve that the user owns, or ``away`` the one that a release has made; gives its name."""
    if away:
        await released(m.world, "v2")
    return CANARY if away else NAME


async def come_to(m: Metered, moment: str, tag: str) -> None:
    """Applies a version, and approves it until it asks for an approval in a step, or hands over; "clean-up": until the
    roles have changed.
    """
    world = m.world
    world.set_image(tag)
    await m.step(1)
    if moment == "step 1":
        return
    world.approve()
    await m.step(2)
    if moment == "step 2":
        return
    world.approve()
    await world.until(lambda: world.state == "Promoting", "the hand-over")
    if moment == "clean-up":
        before = stands_in(world)
        await world.until(lambda: stands_in(world) != before, "the change of roles")


def stands_in(world: World) -> bool:
    """True if the workload that a release has made serves in place of the user's."""
    made = world.get(world.kind.resource, CANARY)
    return made is not None and KEYS.stands_for in (made["metadata"].get("labels") or {})
