"""What the command line says of whole releases that take groups of a pair's active side as the other one gets some."""

from __future__ import annotations

import re

import pytest

from rollout_lws.cli.doctor.links import State, first
from rollout_lws.cli.status.gate import Goal, Verdict, judge, pin
from tests.cli.doctor.looking import links, told
from tests.cli.pair.test_releases import picture
from tests.cli.pair.test_scaled import lws, metric, row
from tests.scenarios.paired import BLUE, GREEN, approve_to_the_end
from tests.scenarios.paired_scaled import replicas
from tests.scenarios.paired_shift import GROUPS, come_to, draining, shifting
from tests.scenarios.world import NAME, NAMESPACE, ROLLOUTS, World

pytestmark = [pytest.mark.looptime, pytest.mark.rare(3)]


def line(world: World, beginning: str) -> str:
    (found,) = [each for each in picture(world) if each.startswith(beginning)]
    return found


async def test_what_is_foretold_is_what_happens() -> None:
    async with shifting() as pair:
        world = pair.world
        await come_to(world, "step 1")
        await world.until(lambda: bool(draining(world)), "a group drains")
        await world.sleep(5)
        assert re.search(r"  draining for [5-7]\.\ds$", line(world, "  group 3"))
        await world.sleep(60)
        assert replicas(world) == {BLUE: 3, GREEN: 1}
        assert line(world, "After approval: +2 groups of llama-green as 2 of llama go, traffic auto, about")
        (abort,) = [each for each in picture(world) if "rollout-lws abort" in each]
        assert abort.endswith(
            "# all requests go back to llama, which loads 1 group again, and llama-green is scaled to 0"
        )
        assert metric(world, "groups") == {"stable": 3, "new": 1}
        await come_to(world, "step 2")
        await world.sleep(60)
        assert replicas(world) == {BLUE: 1, GREEN: 3}
        assert line(world, "After approval: +1 group of llama-green, then all requests go to llama-green")
        await approve_to_the_end(world)
        assert line(world, "Users") == "Users    all requests go to llama-green"
        assert picture(world)[-1].endswith("# releases the version of llama, and loads its 4 groups")


async def test_the_end_of_a_release_without_room_for_an_extra_group() -> None:
    """The roles have changed, and the last group takes the place of the last old one."""
    async with shifting({"maxExtraGroups": 0, "maxUnavailableGroups": 1}) as pair:
        world = pair.world
        await come_to(world, "step 2")
        await world.sleep(60)
        assert line(world, "After approval").endswith("llama is scaled to 0; then llama-green gets its last group")
        world.approve()
        await world.until(lambda: world.status["active"] == GREEN, "the roles have changed", 600)
        await world.rest()
        assert world.status["phase"] == "Progressing" and replicas(world) == {BLUE: 0, GREEN: 3}
        assert line(world, "Users") == "Users    all requests go to llama-green"
        assert row(world, GREEN)[3:5] == ["3/3", "100%"]
        assert row(world, BLUE)[4] == "0%" and row(world, BLUE)[-1] == "parked"
        found = await links(world)
        assert first(found, State.BROKEN) is None, told(found)
        await world.until_state("Healthy")


@pytest.mark.parametrize("goal", ["healthy", "aborted"])
async def test_a_gate_waits_until_the_groups_are_back(goal: str) -> None:
    async with shifting() as pair:
        world = pair.world
        await come_to(world, "step 2")
        await world.sleep(60)
        pinned = pin(_rollout(world), lws(world, GREEN), lws(world, BLUE))
        world.request("Abort")
        while world.state != "Aborted":
            verdict = judge(_rollout(world), Goal(goal), pinned)
            assert verdict is None, verdict
            await world.sleep(2)
        assert replicas(world) == {BLUE: GROUPS, GREEN: 0}
        end = judge(_rollout(world), Goal(goal), pinned)
        assert isinstance(end, Verdict) and end.code == (0 if goal == "aborted" else 3)


def _rollout(world: World) -> dict[str, object]:
    found: dict[str, object] = world.server.get(ROLLOUTS, NAMESPACE, NAME)
    return found


async def test_while_it_goes_back_both_sides_are_told_as_they_are() -> None:
    async with shifting() as pair:
        world = pair.world
        await come_to(world, "step 2")
        await world.sleep(60)
        world.request("Abort")
        await world.until(lambda: world.state == "RollingBack", "back")
        await world.rest()
        assert line(world, "Groups").startswith("Groups   llama 1/2 ready   llama-green 3/3 ready")
        assert not any(each.startswith("After approval") for each in picture(world))
        while world.state != "Aborted":
            found = await links(world)
            assert world.state == "Aborted" or first(found, State.BROKEN) is None, told(found)
