"""Groups that stay for a while after a swap, in the picture, the gate, the metrics and doctor."""

from __future__ import annotations

import pytest

from rollout_lws.cli.doctor.links import State
from tests.cli.doctor.looking import links, told
from tests.cli.doctor.test_doctor_scaled import of_workload
from tests.cli.pair.test_releases import picture
from tests.cli.pair.test_scaled import lws, metric, row
from tests.cli.swap.test_releases import at_step, line, pinned_to, verdict
from tests.scenarios.stories import CANARY
from tests.scenarios.swapped import SWAP, plain_swap, released, to_the_end
from tests.scenarios.world import NAME, World

WAYS = pytest.mark.parametrize("goes_home", [False, True], ids=["from home", "back home"])
KEPT = 1800


async def begun(world: World, goes_home: bool) -> tuple[str, str]:
    """At rest; gives what serves now, and what serves after a release."""
    await plain_swap(world, words={**SWAP, "scaleDownDelaySeconds": KEPT})
    if goes_home:
        await released(world, "v2")
        return CANARY, NAME
    return NAME, CANARY


@pytest.mark.looptime
@WAYS
async def test_what_stays_is_told_before_and_after_the_release(world: World, goes_home: bool) -> None:
    old, serves = await begun(world, goes_home)
    world.set_image("v3")
    pinned = pinned_to(world)
    await at_step(world, 1)
    world.approve()
    await at_step(world, 2)
    goes = "llama-canary is removed 30m later" if goes_home else "llama is scaled to 0 30m later"
    assert line(world, "After approval").endswith(goes)
    await to_the_end(world)
    found = verdict(world, pinned)
    assert found is not None and (found.code, found.word) == (0, "healthy")
    assert line(world, "Users") == f"Users    all requests go to {serves}"
    assert f"the groups of {old} stay until" in "\n".join(picture(world))
    traffic = [] if goes_home else ["0%"]
    before = row(world, old)
    assert before[1] == ("old" if goes_home else "inactive") and before[2] != row(world, serves)[2], before
    assert before[3:-4] == ["4/4", *traffic] and before[-3:] == ["kept", "for", "undo"], before
    assert row(world, serves)[3] == "4/4"
    assert metric(world, "groups") == {"stable": 4} and not metric(world, "pending_since_timestamp_seconds")
    every = await links(world)
    assert {each.state for each in every} == {State.OK}, told(every)
    if not goes_home:
        # One that is about to be removed is none of those that a Rollout is about.
        assert "whose groups are kept until" in of_workload(every, old).found, of_workload(every, old).found
    assert lws(world, old)["spec"]["replicas"] == 4
