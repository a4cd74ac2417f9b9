"""Killed after any single write and started again, a release with gates comes to the same end, in all styles."""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any, cast

import pytest

from rollout_lws.sandbox.behaviours.cluster import Options
from rollout_lws.sandbox.behaviours.faults import Timing
from tests.scenarios.crashes import kill_after_every_write
from tests.scenarios.invariants import always_serving
from tests.scenarios.measured import SLOW, WELL, MeasuredWorld
from tests.scenarios.stories import assert_clean
from tests.scenarios.world import World

#: Into how many tests the writes of one style are dealt.
PARTS = 4
STYLES: Mapping[str, dict[str, Any]] = {
    "canary": {"canary": {}},
    "in-place": {"canary": {"capacity": "InPlace"}},
    "surge": {"canary": {"capacity": "Surge"}},
    "blue-green": {"blueGreen": {}},
}
#: Few requests decide, so that a controller that begins its windows again is soon done.
_METRIC = {"signal": "TimeToFirstToken", "max": "1s"}
_OF_STEP = {"name": "first-token", "metric": _METRIC, "window": 120}
_WATCHED = {"name": "all-through", "metric": _METRIC, "window": 120}
_BUSY = {"requests-per-second": "20"}

Tell = Callable[[World, None], Awaitable[None]]


def _measured() -> World:
    return MeasuredWorld(Options(timing=Timing(ready_after=20)))


async def at_rest(world: World, style: dict[str, Any]) -> None:
    made = cast(MeasuredWorld, world)
    made.create_workload()
    made.patch_lws({"leaderWorkerTemplate": {"workerTemplate": made.serve({**WELL, **_BUSY})}})
    ((name, words),) = style.items()
    steps = [
        {"replicas": 1, "gates": [_OF_STEP], "pause": {"duration": 0}},
        {"replicas": "100%", "pause": {"duration": 0}},
    ]
    made.create_rollout(*steps, onFailure="Abort", **{name: {**words, "gates": [_WATCHED]}})
    await made.rest()
    made.start_controller()
    await made.until_state("Healthy")
    await made.until(lambda: made.groups() == dict.fromkeys(range(4), "v1"))
    await made.rest()
    made.checks += [always_serving]


async def passes(world: World, _: None) -> None:
    cast(MeasuredWorld, world).apply({**WELL, **_BUSY}, "v2")
    await world.until(lambda: world.state == "Healthy" and set(world.groups().values()) == {"v2"}, seconds=3600)
    await world.rest()
    assert_clean(world, "v2")


async def fails(world: World, _: None) -> None:
    cast(MeasuredWorld, world).apply({**SLOW, **_BUSY}, "v2")
    await world.until_state("Aborted", 3600)
    await world.rest()
    assert_clean(world, "v1")
    results = [each.get("result") for name in ("gates", "releaseGates") for each in world.status.get(name, ())]
    assert "Failed" in results


def dealt() -> Iterator[Any]:
    """Both stories in each style at all moments; the default run tells a part of each style's shorter one."""
    for style, story, part in itertools.product(STYLES, (passes, fails), range(PARTS)):
        told = (story, part) == (fails, 0)
        yield pytest.param(
            style, story, part, marks=[] if told else [pytest.mark.long], id=f"{style}-{story.__name__}-{part}"
        )


@pytest.mark.parametrize(("style", "story", "part"), [*dealt()])
def test_a_controller_killed_after_any_write_reaches_the_same_end(style: str, story: Tell, part: int) -> None:
    kill_after_every_write(lambda world: at_rest(world, STYLES[style]), story, part, PARTS, _measured)
