"""Shares without weights on real nodes: of a header's requests, and of a Service that leads to groups of both versions.

By default none is told, `make e2e-nodes ALL=1` tells both.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from tests.kubectl.programs import Programs
from tests.nodes import losses, users
from tests.nodes.asked import asking
from tests.nodes.cluster import Cluster
from tests.nodes.losses import FRESH, Row, Said
from tests.nodes.release import DRAINING, MATCHES, NAME, TAG, UNROUTED, Release, groups_of
from tests.nodes.stories import OF_A_SHARE, OFF, REQUESTS, STREAMS, TAGGED

pytestmark = [
    pytest.mark.nodes(everything=True),
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.timeout(600),
]


def _checked(rows: list[Row]) -> list[Row]:
    """The rows, in which nothing is lost and shares are those that were said."""
    print(losses.table(rows))
    for row in rows:
        assert row.tally.short >= REQUESTS, row
        assert row.tally.streams >= STREAMS, row
        assert row.tally.lost == row.tally.lost_streams == 0, row
        for share in row.shares:
            assert share.seen.of >= OF_A_SHARE * 0.9, row
            assert abs(share.seen.fraction - share.said) * 100 <= OFF, row
    return rows


async def test_requests_with_a_header_go_to_the_new_version_and_no_others(
    nodes: Cluster, programs: Programs, tmp_path: Path, rows: list[Row]
) -> None:
    release = Release(nodes.admin, nodes.plane.admin, "matches", programs)
    await release.serve(MATCHES, partial(groups_of, DRAINING))
    headers = {"Host": release.host, **TAG}
    with_header = users.asking(TAGGED, nodes.gateway.url, headers, tmp_path / "tagged.jsonl")
    async with asking(nodes, release, tmp_path) as asked, with_header as tagged:
        asked.phase("preparing")
        await release.update("v2")
        await release.at_step(1)
        asked.phase("step 1")
        for each in (asked.by_route, tagged):
            await each.answered(max(OF_A_SHARE + 500, REQUESTS - each.short), max(10, STREAMS + 5 - each.streams))
        asked.phase("after step 1")
        await release.command("promote", NAME)
        await release.reach("Healthy")
        asked.phase("over")
        await asked.answered(1_000, 10)
    shares = {
        way.way: Said(said, count.share("v2"))
        for way, said in ((asked.by_route, 0.0), (tagged, 1.0))
        for count in asked.counts(way)
        if count.name == "step 1"
    }
    by_route, by_service = asked.rows(MATCHES.name + ", finish", DRAINING.name, (shares[asked.by_route.way],))
    with_tag = Row(by_route.release, by_route.pods, TAGGED, losses.total(asked.counts(tagged)), (shares[TAGGED],))
    rows += _checked([by_route, with_tag, by_service])


async def test_a_service_shares_requests_among_groups_of_both_versions(
    nodes: Cluster, programs: Programs, tmp_path: Path, rows: list[Row]
) -> None:
    """Of a Rollout without trafficRoutings. A connection that is kept stays at its pod: only new ones show a share."""
    release = Release(nodes.admin, nodes.plane.admin, "unrouted", programs)
    await release.serve(UNROUTED, partial(groups_of, DRAINING))
    async with asking(nodes, release, tmp_path) as asked:
        asked.phase("preparing")
        await release.update("v2")
        await release.at_step(1)
        asked.phase("step 1")
        await asked.answered(2 * OF_A_SHARE + 1_000)
        asked.phase("after step 1")
        await release.command("promote", NAME)
        await release.reach("Healthy")
        asked.phase("over")
        for each in (asked.by_route, asked.by_service):
            await each.answered(max(1_000, REQUESTS + 500 - each.short), max(10, STREAMS + 5 - each.streams))
    found = [
        Row(UNROUTED.name + ", finish", DRAINING.name, way.way, losses.total(asked.counts(way)), (Said(1 / 3, share),))
        for way in (asked.by_route, asked.by_service)
        for share in [count.share("v2", (FRESH,)) for count in asked.counts(way) if count.name == "step 1"]
    ]
    rows += _checked(found)
