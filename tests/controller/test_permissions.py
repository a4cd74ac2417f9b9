"""The ClusterRole that is installed is what a controller needs, and whatever is missing of it is named."""

from __future__ import annotations

import asyncio
import logging

import pytest

from tests.controller.duties import STORIES, Story, message, story
from tests.controller.guarded import Right, Running, granted, guarded
from tests.controller.surfaces import names, needless, told_by_log_alone, told_by_readiness, told_by_status
from tests.controller.test_controller import cluster

pytestmark = pytest.mark.looptime

#: Asked for in every run, one of each sort; the whole table is long.
SAMPLE = {
    "list statefulsets.apps",
    "watch pods",
    "patch rollouts.rollouts.kruise.io/status",
    "create leaderworkersets.leaderworkerset.x-k8s.io",
    "get statefulsets.apps",
    "delete services",
    "watch endpointslices.discovery.k8s.io",
    "list workloads.kueue.x-k8s.io",
    "create events.events.k8s.io",
}
#: Virtual seconds for which a permission stays away; tries are half a minute apart then.
AWAY = 120
#: Virtual seconds after which everything has been tried again.
A_WHILE = 60
#: More than that many would be a hot loop: back-off begins with milliseconds, there are several watches of a kind, and
#: labels are tried with each look at a release.
TRIES = 100


@pytest.mark.one_in(3)
@pytest.mark.parametrize("told", STORIES, ids=lambda each: each.__name__)
async def test_a_controller_lives_with_its_role(told: Story) -> None:
    rights = granted()
    async with cluster() as server, guarded(server, rights) as running:
        await told(server)
    assert not running.transport.missed
    needed = {right for right in rights if story(right) is told}
    assert needed <= running.transport.used, "a right that no story needs, or a story that has lost its need"


def sampled() -> list[object]:
    """Every right of the role, all but the sample marked as long."""
    assert {str(each) for each in granted()} >= SAMPLE
    return [
        pytest.param(each, id=str(each), marks=() if str(each) in SAMPLE else (pytest.mark.long,))
        for each in sorted(granted())
    ]


@pytest.mark.one_in(5)
@pytest.mark.parametrize("right", sampled())
async def test_what_is_missing_is_named_and_waited_for(right: Right, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    rights = granted() - {right}
    async with cluster() as server, guarded(server, rights) as running:
        telling = asyncio.create_task(story(right)(server))
        async with asyncio.timeout(600):
            await running.transport.first_missed.wait()
        await asyncio.sleep(AWAY)
        check_told(right, running, message(server), caplog)
        assert running.transport.missed[right] < TRIES
        if needless(right):
            await telling
        rights.add(right)
        await telling
        await asyncio.sleep(A_WHILE)
        assert running.transport.missed.keys() == {right}
        assert right in running.transport.used or told_by_log_alone(right)
        assert running.unready == ""


def check_told(right: Right, running: Running, said: str, caplog: pytest.LogCaptureFixture) -> None:
    logged = [vars(each)["fields"] for each in caplog.records if each.message == "permission missing"]
    assert {each["permission"].partition(" in ")[0] for each in logged} == {str(right)}
    assert all(names(f"{each['error']} {each['advice']}", right) for each in logged)
    gauge = f'rollout_lws_permissions_missing{{resource="{right.kind}",verb="{right.verb}"}} '
    assert gauge in running.metrics.text().decode()
    assert names(running.unready, right) == told_by_readiness(right), running.unready
    assert names(said, right) == told_by_status(right), said
