"""Every way in which a version that is remembered is marked, numbered anew, and gone back to."""

from __future__ import annotations

from tests.scenarios.matrix import Moment, Release
from tests.scenarios.matrix_acts import Act
from tests.scenarios.world import NAME


async def every_way(it: Release) -> None:
    """From the first step of v2 by abort, retry, rollback and undo to the Rollout's deletion in mid-release."""
    world = it.world
    it.do(lambda: it.ask("Abort"))
    await it.ends_at("v1", "Aborted", approve=False)
    it.do(lambda: it.ask("Retry"))
    await it.ends_at("v2")
    it.do(lambda: it.apply("v3"))
    await it.until(lambda: it.waits_in(1), "the third version waits")
    it.do(lambda: it.apply("v2"))
    await it.ends_at("v2", approve=False)
    with it.judge.user():
        await world.undo()
    await it.ends_at("v1")
    it.leaders = world.leader_uids()
    it.do(lambda: it.apply("v2"))
    await it.until(lambda: it.waits_in(1), "the same version waits again")
    it.do(lambda: it.delete_rollout("Background"))
    await it.until(lambda: world.get(world.ROLLOUT, NAME) is None, "gone")
    await world.rest()
    it.assert_left("v1", waits=True)


AGAIN = Act("every way again", every_way, Moment.FIRST)
