"""The tables of "Which capacity?" are those that the forecast makes, and the rows of pairs are what releases take."""

from __future__ import annotations

import pytest

from rollout_lws.sandbox.behaviours.cluster import Options
from rollout_lws.sandbox.behaviours.faults import Timing
from tests.docs import capacity
from tests.scenarios.gauge import Gauge
from tests.scenarios.paired import BLUE, GREEN, SERVICES_OF, apply, create_sides, rollout
from tests.scenarios.world import ROLLOUTS, World


def test_the_tables_of_the_page_are_up_to_date() -> None:
    page = capacity.PAGE.read_text()
    assert capacity.written(page) == capacity.tables(), "run: python -m tests.docs.capacity"
    assert capacity.renewed(page) == page


def test_stale_tables_are_found_and_renewed() -> None:
    page = capacity.PAGE.read_text()
    stale = page.replace("| `InPlace` | 0 |", "| `InPlace` | 8 |")
    assert stale != page
    assert capacity.written(stale) != capacity.tables()
    assert capacity.renewed(stale) == page


@pytest.mark.looptime
@pytest.mark.parametrize("style", [capacity.PAIR, capacity.SHIFT])
async def test_a_release_of_a_pair_takes_what_its_row_says(style: str) -> None:
    replicas, load = capacity.EXAMPLE.replicas, capacity.EXAMPLE.load_seconds
    world = World(Options(timing=Timing(ready_after=load)))
    try:
        steps = [{**step, "pause": {"duration": 1}} for step in capacity.steps_of_example(style)]
        create_sides(world, replicas=replicas, beside=0)
        world.server.create(ROLLOUTS, rollout(*steps, spec={}, shift={} if style == capacity.SHIFT else None))
        world.start_controller()
        await world.until(lambda: len(world.ready_endpoints(SERVICES_OF[BLUE])) == replicas, "all ready", 2 * load)
        await world.rest()
        gauge = Gauge(world, replicas)
        apply(world, GREEN, "v2")
        await world.until(lambda: world.status["active"] == GREEN and world.state == "Healthy", "the end", 10 * load)
        taken = capacity.figures(gauge.extra, gauge.loads, gauge.seconds, gauge.ready, gauge.peak_load)
        gauge.stop()
        row = f"| {capacity.PAIRS[style]} | {' | '.join(taken)} |"
        assert row in capacity.PAGE.read_text()
        await world.rest()
        assert world.groups(BLUE) == {}
    finally:
        world.close()
