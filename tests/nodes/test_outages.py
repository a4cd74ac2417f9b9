"""What happens around a release on real nodes: a node is lost, parts lag behind, end and start again, an image is
nowhere. By default none is told, `make e2e-nodes ALL=1` tells all.
"""

from __future__ import annotations

import asyncio
import json
import signal
import time
from functools import partial
from pathlib import Path

import pytest

from rollout_lws.cli.install.options import DEFAULT_NAMESPACE
from rollout_lws.objects.resources import NODES, PODS
from rollout_lws.objects.writes import Delete
from tests.bench.processes import Child
from tests.e2e.waiting import condition, until
from tests.kubectl.programs import Programs
from tests.nodes import losses, users
from tests.nodes.asked import Asked, asking
from tests.nodes.cluster import Cluster
from tests.nodes.release import (
    CANARY,
    DRAINING,
    GRACE_SECONDS,
    NAME,
    NOWHERE,
    Object,
    Pods,
    Release,
    Style,
    groups_of,
    pod_template,
)
from tests.nodes.stories import OFF, ROUTE

pytestmark = [
    pytest.mark.nodes(everything=True),
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.timeout(900),
]

_NODE = "kubernetes.io/hostname"
_LEADER = {"app": NAME, "leaderworkerset.sigs.k8s.io/worker-index": "0"}
#: A share that is given and taken away again, and how often.
TOGGLED = Style("toggled", steps=({"replicas": 1, "traffic": "50%", "pause": {}}, {"replicas": "100%"}), drain=1)
TIMES = 20


def loses_nothing(asked: Asked, *phases: str) -> None:
    """By either way, in the phases of these names, or in all."""
    assert not asked.lost(*phases), asked.lost(*phases)
    for row in asked.rows("", DRAINING.name):
        assert row.tally.short > 1_000, row
        assert row.tally.streams > 5, row


def _around(node: str, pods: Pods, tag: str) -> Object:
    """Groups that all have their worker on ``node``. Leaders of the first version are on all nodes, others on this one:
    without it no group is whole, the new version has no leader, and the old one has one or two.
    """
    there = {"nodeSelector": {_NODE: node}}
    spread = {
        "maxSkew": 1,
        "topologyKey": _NODE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": _LEADER},
    }
    leader = {"topologySpreadConstraints": [spread]} if tag == "v1" else there
    return {
        "size": 2,
        "leaderTemplate": pod_template(pods, tag, **leader),
        "workerTemplate": pod_template(pods, tag, **there),
    }


async def test_a_node_is_lost_with_leaders_of_both_versions(nodes: Cluster, programs: Programs, tmp_path: Path) -> None:
    """From when Kubernetes knows of it requests go where ready leaders are, although no group is whole any more, and
    the status tells that; when the node is back, so is the release, by itself.
    """
    lost = nodes.nodes[-1]
    release = Release(nodes.admin, nodes.plane.admin, "node-lost", programs)
    await release.serve(CANARY, partial(_around, lost.name, DRAINING))
    async with asking(nodes, release, tmp_path) as asked:
        await release.update("v2")
        await release.at_step(1)
        await lost.lose_power()
        asked.phase("nobody knows")
        await until(nodes.admin, NODES, "", lost.name, lambda obj: condition(obj, "Ready") == "Unknown", 120)
        await until(nodes.admin, PODS, release.namespace, f"{NAME}-canary-0", _is_unready, 30)
        found = await release.reach(also=lambda seen: seen["status"]["traffic"].get("answeredBy") == "Stable")
        # What routers had led to the lost node before they heard of that is the past.
        asked.phase("routers hear")
        await asked.by_route.answered(500)
        asked.phase("without the node")
        await asked.by_route.answered(3_000)
        asked.phase("it comes back")
        await lost.start()
        await until(nodes.admin, NODES, "", lost.name, lambda obj: condition(obj, "Ready") == "True", 180)
        await release.at_step(1)
        await release.command("promote", NAME)
        await release.at_step(2)
        await asked.by_route.answered(500)
    assert "users are affected" in found["status"]["message"]
    loses_nothing(asked, "without the node")


def _is_unready(pod: Object | None) -> bool:
    return condition(pod, "Ready") == "False"


async def test_a_backend_is_added_and_taken_away_again_and_again(
    nodes: Cluster, programs: Programs, tmp_path: Path
) -> None:
    """By the controller's own writes, while two dozen users ask as fast as they can."""
    release = Release(nodes.admin, nodes.plane.admin, "toggled", programs)
    await release.serve(TOGGLED, partial(groups_of, DRAINING))
    busy = users.asking(
        ROUTE, nodes.gateway.url, {"Host": release.host}, tmp_path / "users.jsonl", short=24, streams=0, pause=0.0
    )
    async with busy as asked:
        began = time.time()
        for number in range(TIMES):
            await release.update(f"t{number}")
            await release.at_step(1)
            await asked.answered(300)
            await release.command("abort", NAME, "--reason", "the next one")
            await release.reach("Aborted")
    (count,) = [each for each in losses.by_phase(asked.noted(), [(began, ROUTE)]) if each.began is not None]
    assert len(count.versions[losses.FRESH]) == TIMES + 1, "each version has answered"
    assert count.tally.lost == 0, "\n".join(losses.failures([count]))
    print(f"{count.tally.short} requests while a backend came and went {TIMES} times")


async def test_routers_lag_behind(nodes: Cluster, programs: Programs, tmp_path: Path) -> None:
    """By less than ``gracePeriodSeconds``: what follows routes and Services stands still for most of the time."""
    release = Release(nodes.admin, nodes.plane.admin, "lag", programs)
    await release.serve(CANARY, partial(groups_of, DRAINING))
    async with asking(nodes, release, tmp_path) as asked:
        slow = [asyncio.create_task(_stand_still(each)) for each in (nodes.gateway.contour, nodes.proxy)]
        try:
            await release.update("v2")
            for step in (1, 2):
                await release.at_step(step)
                await release.command("promote", NAME)
            await release.reach("Healthy")
        finally:
            for each in slow:
                each.cancel()
            await asyncio.wait(slow)
        await asked.by_route.answered(500)
    loses_nothing(asked)


async def _stand_still(process: Child) -> None:
    """For three quarters of the grace of routers, and again after a tenth of a second, until it is cancelled."""
    try:
        while True:
            process.process.send_signal(signal.SIGSTOP)
            await asyncio.sleep(GRACE_SECONDS * 0.75)
            process.process.send_signal(signal.SIGCONT)
            await asyncio.sleep(0.1)
    finally:
        process.process.send_signal(signal.SIGCONT)


async def test_controllers_are_killed_in_mid_promotion(nodes: Cluster, programs: Programs, tmp_path: Path) -> None:
    release = Release(nodes.admin, nodes.plane.admin, "killed", programs)
    await release.serve(CANARY, partial(groups_of, DRAINING))
    async with asking(nodes, release, tmp_path) as asked:
        await release.update("v2")
        for step in (1, 2):
            await release.at_step(step)
            await release.command("promote", NAME)
        await release.reach("Promoting")
        killed = [each["metadata"] for each in json.loads(await nodes.admin.list(PODS, DEFAULT_NAMESPACE))["items"]]
        assert len(killed) == 2
        for each in killed:
            await nodes.admin.send(
                Delete(PODS, DEFAULT_NAMESPACE, each["name"], each["uid"], "a story", grace_seconds=0)
            )
        await release.reach("Healthy")
        await asked.by_route.answered(500)
    loses_nothing(asked)


async def test_the_gateway_starts_again(nodes: Cluster, programs: Programs, tmp_path: Path) -> None:
    """As soon as it answers, shares are as they were."""
    release = Release(nodes.admin, nodes.plane.admin, "gateway", programs)
    await release.serve(CANARY, partial(groups_of, DRAINING))
    async with asking(nodes, release, tmp_path) as asked:
        await release.update("v2")
        await release.at_step(1)
        await release.command("promote", NAME)
        await release.at_step(2)
        asked.phase("it starts")
        await nodes.gateway.restart()
        # Users who were refused while it started ask on.
        await asked.by_route.answered(200, 1)
        asked.phase("it answers")
        await asked.by_route.answered(5_000)
    loses_nothing(asked, "it answers")
    (after,) = [each for each in asked.counts(asked.by_route) if each.name == "it answers"]
    assert abs(after.share("v2").fraction * 100 - CANARY.shares[1]) <= OFF


async def test_an_image_is_nowhere(nodes: Cluster, programs: Programs, tmp_path: Path) -> None:
    """The kubelet's own words are told, users lose nothing, and an abort ends it."""
    release = Release(nodes.admin, nodes.plane.admin, "nowhere", programs)
    await release.serve(CANARY, partial(groups_of, DRAINING))
    async with asking(nodes, release, tmp_path) as asked:
        await release.update(NOWHERE)
        found = await release.reach(also=lambda seen: "ImagePullBackOff" in str(seen.get("status")))
        assert f"pod {NAME}-canary-0" in str(found["status"]["message"]), found["status"]
        await asked.by_route.answered(1_500)
        await release.command("abort", NAME, "--reason", "a story")
        await release.reach("Aborted")
        await asked.by_route.answered(500)
    loses_nothing(asked)
