"""Releases on real nodes, while users ask: how many of their requests are lost, and which version answers them.

By default two are told, `make e2e-nodes ALL=1` tells all of them.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from tests.kubectl.programs import Programs
from tests.nodes import losses
from tests.nodes.asked import asking
from tests.nodes.cluster import Cluster
from tests.nodes.losses import Row, Said
from tests.nodes.release import DYING, NAME, Release, groups_of
from tests.nodes.stories import OF_A_SHARE, OFF, REQUESTS, STREAMS, Story, told

pytestmark = [pytest.mark.nodes, pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(600)]


@pytest.mark.parametrize("story", told(), ids=str)
async def test_users_of_a_release(
    nodes: Cluster, programs: Programs, story: Story, tmp_path: Path, rows: list[Row]
) -> None:
    release = Release(nodes.admin, nodes.plane.admin, str(story), programs)
    await release.serve(story.style, partial(groups_of, story.pods))
    announced = story.announced(plan := await release.plan())
    assert any(each.startswith("leaders have no preStop") for each in plan["cautions"]) is (story.pods is DYING)
    async with asking(nodes, release, tmp_path) as asked:
        asked.phase("preparing")
        await release.update("v2")
        for number in story.steps:
            await release.at_step(number)
            asked.phase(_step(number))
            await asked.by_route.answered(OF_A_SHARE + 500 if number in dict(story.shares) else 1_000)
            asked.phase(f"after {_step(number)}")
            if number < len(story.steps):
                await release.command("promote", NAME)
        if story.end == "finish":
            await release.command("promote", NAME)
            await release.reach("Healthy")
        else:
            await release.command("abort", NAME, "--reason", "a story")
            await release.reach("Aborted")
        asked.phase("over")
        for each in (asked.by_route, asked.by_service):
            await each.answered(max(1_000, REQUESTS + 500 - each.short), max(10, STREAMS + 5 - each.streams))
    by_name = {count.name: count for count in asked.counts(asked.by_route)}
    shares = [Said(share / 100, by_name[_step(number)].share("v2")) for number, share in story.shares]
    found = asked.rows(story.row, story.pods.name, shares, announced)
    print(losses.table(found), asked.lasted(), asked.lost(), sep="\n")
    for row in found:
        assert row.tally.short >= REQUESTS, row
        assert row.tally.streams >= STREAMS, row
        assert row.tally.lost <= row.most, asked.lost()
        assert row.tally.lost_streams <= row.most_streams, asked.lost()
    for share in shares:
        assert share.seen.of >= OF_A_SHARE * 0.9, share
        assert abs(share.seen.fraction - share.said) * 100 <= OFF, share
    rows += found


def _step(number: int) -> str:
    return f"step {number}"
