"""How releases end, as it is counted: once each, under the word that the documentation has for it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rollout_lws.rollout.reasons import Ending
from tests.metrics.tour import scrape, shell
from tests.scenarios.shell import ShellWorld
from tests.scenarios.stories import at_rest
from tests.scenarios.world import NAME, ROLLOUTS

pytestmark = pytest.mark.looptime

Act = Callable[[ShellWorld], None]


def approved(world: ShellWorld) -> None:
    world.approve()


def aborted(world: ShellWorld) -> None:
    world.request("Abort")


def restored(world: ShellWorld) -> None:
    world.set_image("v1")


def superseded(world: ShellWorld) -> None:
    world.set_image("v3")


def disabled(world: ShellWorld) -> None:
    world.patch_rollout({"disabled": True})


def deleted(world: ShellWorld) -> None:
    world.delete(ROLLOUTS, NAME)


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("act", "started", "ended"),
    [
        (approved, 1, {"Success": 1}),
        (aborted, 1, {"Aborted": 1}),
        (restored, 1, {"Rollback": 1}),
        (superseded, 2, {"Continuous": 1}),
        (disabled, 1, {"RolloutDisabled": 1}),
        # The status goes with the Rollout, so nobody is told.
        (deleted, 1, {}),
    ],
)
@pytest.mark.parametrize("capacity", ["ExtraWorkload", pytest.param("InPlace", marks=pytest.mark.long)])
async def test_each_release_ends_once(capacity: str, act: Act, started: int, ended: dict[str, int]) -> None:
    async with shell() as world:
        await at_rest(world, {"replicas": 1, "pause": {}}, {"replicas": "100%"}, canary={"capacity": capacity})
        world.set_image("v2")
        await world.until_state("AwaitingApproval")
        await world.sleep(100)
        act(world)
        told = await scrape(world)
        assert sum(told["rollout_lws_releases_started_total"].values()) == started
        found = {dict(labels)["outcome"]: n for labels, n in told["rollout_lws_releases_ended_total"].items()}
        # Each of them is there from the beginning, so that its first occurrence is an increase.
        assert set(found) == set(Ending)
        assert {outcome: n for outcome, n in found.items() if n} == ended
        seconds = [n for n in told["rollout_lws_release_seconds_sum"].values() if n]
        assert all(100 <= each <= 200 for each in seconds)
        assert len(seconds) == len(ended)
        # The first step was left by all of them, the promotion is none.
        if act is not deleted:
            assert sum(told["rollout_lws_step_seconds_count"].values()) == 1
            assert sum(told["rollout_lws_manual_wait_seconds_count"].values()) == 1
