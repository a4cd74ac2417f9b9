"""A day of one release after the other, by a whole controller: nothing of it grows."""

from __future__ import annotations

import gc
from dataclasses import dataclass

import pytest

from rollout_lws.objects.resources import EVENTS, LEADER_WORKER_SETS
from rollout_lws.sandbox.apiserver import ApiServer
from tests.scenarios.shell import ShellWorld
from tests.scenarios.stories import at_rest
from tests.scenarios.world import NAME, NAMESPACE

pytestmark = [pytest.mark.looptime, pytest.mark.long, pytest.mark.timeout(900)]

HOUR = 3600.0
#: A release begins so often, in seconds.
EVERY = 1200.0
STEPS = (
    {"replicas": 1, "pause": {"duration": 60}},
    {"replicas": "50%", "pause": {"duration": 60}},
    {"replicas": "100%"},
)
#: The sandbox keeps every Event, and is not what this is about.
_OTHERS = ("rollout_lws.sandbox",)


@dataclass(frozen=True, slots=True)
class Size:
    """What there is of a controller and of what it keeps on a cluster."""

    #: Of a scrape: names with their labels.
    series: frozenset[bytes]
    #: Objects by kind, Events apart: they go by themselves after an hour on a real server.
    objects: dict[str, int]
    #: Annotations and labels of the LWS.
    marks: set[str]
    #: Python objects of our own types, the sandbox's apart.
    instances: int


def size(world: ShellWorld) -> Size:
    gc.collect()
    modules = (str(type(each).__module__) for each in gc.get_objects())
    meta = world.server.get(LEADER_WORKER_SETS, NAMESPACE, NAME)["metadata"]
    return Size(
        series=frozenset(line.rpartition(b" ")[0] for line in world.metrics.text().splitlines()),
        objects=_objects(world.server),
        marks={*meta.get("annotations", {}), *meta.get("labels", {})},
        instances=sum(each.startswith("rollout_lws.") and not each.startswith(_OTHERS) for each in modules),
    )


def _objects(server: ApiServer) -> dict[str, int]:
    counts = {str(served.resource): len(server.list(served.resource)) for served in server.served}
    return {kind: count for kind, count in counts.items() if count and not kind.startswith(EVENTS.plural)}


async def releases(world: ShellWorld, first: int, seconds: float) -> int:
    """One after the other for so long; the number of the next one."""
    number, end = first, world.now.timestamp() + seconds
    while world.now.timestamp() < end:
        begun, tag = world.now.timestamp(), f"v{number}"
        world.set_image(tag)
        await world.until(lambda tag=tag: world.state == "Healthy" and set(world.groups().values()) == {tag})  # type: ignore[misc]
        await world.rest()
        await world.sleep(max(0.0, begun + EVERY - world.now.timestamp()))
        number += 1
    return number


async def test_a_day_of_releases_leaves_no_more_than_its_first_hours() -> None:
    world = ShellWorld()
    try:
        await at_rest(world, *STEPS)
        # As many as are remembered, so that the history is full.
        number = await releases(world, 2, 4 * HOUR)
        before = size(world)
        number = await releases(world, number, 20 * HOUR)
        after = size(world)
    finally:
        await world.gone()
        world.close()
    assert number > 70
    assert after.objects == before.objects
    assert after.marks == before.marks
    # An answer that is rare (a conflict) may be counted for the first time late in the day, in a series or two of each
    # metric that counts it; a label that named a release, a revision or a pod would make one for each release.
    assert len(after.series - before.series) < number // 4, sorted(after.series - before.series)
    # The last 4,096 notes are remembered, to count what is said again.
    assert after.instances - before.instances < 4096
