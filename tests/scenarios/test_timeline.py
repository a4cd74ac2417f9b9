"""The past of a release in its status: what its timeline says when it is over, however it went, and at what cost."""

from __future__ import annotations

import re
from unittest import mock

import pytest

from rollout_lws.rollout.status import timeline
from tests.scenarios.paired import GREEN, apply, approve_to_the_end
from tests.scenarios.paired_shift import shifting
from tests.scenarios.routed import routed_at_rest
from tests.scenarios.stories import at_rest, waiting_for_approval
from tests.scenarios.world import NAME, NAMESPACE, ROLLOUTS, World

pytestmark = pytest.mark.looptime

#: A timed pause, an approval, and everything.
STEPS = (
    {"replicas": 1, "traffic": "20%", "pause": {"duration": 300}},
    {"replicas": 2, "traffic": "40%", "pause": {}},
    {"replicas": "100%", "traffic": "100%"},
)
_TIME = re.compile(r"\d\d:\d\d:\d\d")
#: Seconds in which a person looks at figures.
LOOKS = 3600


def told(world: World) -> list[tuple[int | None, str, int | None, int | None]]:
    """Step, state and weights of each entry."""
    found = world.status_of(NAME).get("timeline") or ()
    return [(each.get("step"), each["state"], each.get("desired"), each.get("applied")) for each in found]


def lasted(world: World, step: int, state: str) -> float:
    """Seconds from the first entry of a step in that state to what followed."""
    entries = world.status["timeline"]
    place = next(at for at, each in enumerate(entries) if (each.get("step"), each["state"]) == (step, state))
    return _seconds(entries[place + 1]["at"]) - _seconds(entries[place]["at"])


def _seconds(moment: str) -> float:
    hours, minutes, seconds = moment[11:19].split(":")
    return 3600 * int(hours) + 60 * int(minutes) + int(seconds)


async def promoted(world: World) -> None:
    await waiting_for_approval(world)
    await world.sleep(LOOKS)
    world.approve()
    await world.until_state("Healthy", 3000)
    await world.rest()


async def test_a_release_has_told_what_it_waited_for_how_long_and_with_which_weights(world: World) -> None:
    await routed_at_rest(world, *STEPS)
    assert told(world) == [], "it has never released"
    await promoted(world)
    assert told(world) == [
        (1, "StepUpgrade", 0, None),
        (1, "StepTrafficRouting", 20, None),
        (1, "StepPaused", 20, 20),
        (2, "StepUpgrade", 20, 20),
        (2, "StepPaused", 40, 40),
        (3, "StepUpgrade", 40, 40),
        (None, "Promote", 100, 100),
        (None, "CleanUp", 0, 100),
        (None, "CleanUp", 0, 0),
        (None, "Completed", None, None),
    ]
    assert lasted(world, 1, "StepPaused") == pytest.approx(300, abs=1)
    assert lasted(world, 2, "StepPaused") == pytest.approx(LOOKS, abs=1)
    entries = world.status["timeline"]
    assert [each.get("new") for each in entries] == [0, 1, 1, 1, 2, 2, 5, 5, 5, None]
    assert {each["stable"] for each in entries} == {5}


async def test_the_past_stays_until_another_release_begins(world: World) -> None:
    await at_rest(world)
    await promoted(world)
    past = world.status["timeline"]
    await world.sleep(24 * 3600)
    assert world.status["timeline"] == past
    world.set_image("v3")
    await world.until_state("Pausing")
    assert told(world) == [(1, "StepUpgrade", None, None), (1, "StepPaused", None, None)]


async def test_an_abort_is_told_as_a_way_back(world: World) -> None:
    await routed_at_rest(world, *STEPS)
    await waiting_for_approval(world)
    world.request("Abort")
    await world.until_state("Aborted", 3000)
    await world.rest()
    ways = told(world)
    assert (2, "StepPaused", 40, 40) in ways
    assert (None, "Promote") not in {each[:2] for each in ways}
    assert ways[-3:] == [
        (None, "CleanUp", 0, 40),
        (None, "CleanUp", 0, 0),
        (None, "Completed", None, None),
    ]


async def test_a_newer_version_begins_a_past_of_its_own(world: World) -> None:
    await routed_at_rest(world, *STEPS)
    await waiting_for_approval(world)
    began = world.status["timeline"][0]["at"]
    world.set_image("v3")
    await world.until_state("Pausing")
    assert told(world)[0][:2] == (1, "StepUpgrade")
    assert world.status["timeline"][0]["at"] > began


async def test_a_pair_tells_how_the_weight_moved_between_its_sides() -> None:
    async with shifting({}) as pair:
        world = pair.world
        apply(world, GREEN, "v2")
        await world.until_state("AwaitingApproval", 1200)
        await world.sleep(LOOKS)
        await approve_to_the_end(world)
        await world.sleep(120)
        ways = told(world)
        assert ways[0] == (1, "StepUpgrade", 0, None) and (1, "StepPaused", 25, 25) in ways
        assert ways[-2:] == [(None, "CleanUp", 100, 100), (None, "Completed", None, None)]
        accepted = [each[3] for each in ways if each[3] is not None]
        assert accepted == sorted(accepted), "it only rose"
        assert lasted(world, 1, "StepPaused") == pytest.approx(LOOKS, abs=1)
        new = [each.get("new", 0) for each in world.status["timeline"]]
        assert max(new) == 4 and new[0] == 0


async def written(*, tells: bool) -> list[tuple[str, str]]:
    """What is written in a release and in the hour after it, with and without a timeline."""
    world = World()
    told_anything = mock.patch.object(timeline, "continued", timeline.continued if tells else lambda *_: ())
    try:
        with told_anything:
            world.judges_words = tells
            await routed_at_rest(world, *STEPS)
            await promoted(world)
            await world.sleep(3600)
        assert bool(told(world)) is tells
        return [(type(each).__name__, _TIME.sub("", each.reason)) for each in world.writes]
    finally:
        world.close()


async def test_a_timeline_costs_no_write() -> None:
    with_it, without = await written(tells=True), await written(tells=False)
    assert with_it == without


async def test_a_release_whose_timeline_was_lost_goes_on_with_the_next_write(world: World) -> None:
    """As after an upgrade in mid-release: what is missing is no reason to write."""
    await routed_at_rest(world, *STEPS)
    await waiting_for_approval(world)
    await world.rest()
    world.judges_words = False
    world.server.patch(ROLLOUTS, NAMESPACE, NAME, {"status": {"timeline": None}}, subresource="status")
    before = len(world.writes)
    await world.sleep(LOOKS)
    assert len(world.writes) == before and told(world) == []
    world.approve()
    await world.until_state("Healthy", 3000)
    assert told(world)[0] == (3, "StepUpgrade", 40, 40)
    assert told(world)[-1] == (None, "Completed", None, None)
