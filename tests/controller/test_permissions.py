"""The ClusterRole that is installed is what a controller needs, and whatever is missing of it is named."""

from __future__ import annotations

import asyncio
import logging

import pytest

from rollout_lws.objects.permissions import SOURCE
from tests.controller.duties import STORIES, Story, message, story
from tests.controller.guarded import Right, Running, granted, guarded
from tests.controller.test_controller import cluster

pytestmark = pytest.mark.looptime

#: Whose list the controller needs before it does anything.
ALWAYS = {
    "rollouts.rollouts.kruise.io",
    "batchreleases.rollouts.kruise.io",
    "leaderworkersets.leaderworkerset.x-k8s.io",
    "statefulsets.apps",
    "controllerrevisions.apps",
    "pods",
    "services",
    "customresourcedefinitions.apiextensions.k8s.io",
}
#: What a release does without: the words that it would have found there, and the marks and Events that it would leave.
COURTESIES = {
    "poddisruptionbudgets.policy",
    "workloads.kueue.x-k8s.io",
    "admissionchecks.kueue.x-k8s.io",
    "events.events.k8s.io",
}
READS = ("list", "watch")
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
#: More than that many would be a hot loop: back-off begins with milliseconds, and there are several watches of a kind.
TRIES = 60


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
    names = {str(each) for each in granted()}
    assert names >= SAMPLE
    return [
        pytest.param(each, id=str(each), marks=() if str(each) in SAMPLE else (pytest.mark.long,))
        for each in sorted(granted())
    ]


def told_by_readiness(right: Right) -> bool:
    return (right.verb in READS and right.kind in ALWAYS) or right.kind == "rollouts.rollouts.kruise.io/status"


def needless(right: Right) -> bool:
    return right.kind in COURTESIES or str(right) == "patch pods"


def told_by_log_alone(right: Right) -> bool:
    """Also where there is no word of what a release waits for, and where it is asked for once in a release."""
    return needless(right) or right.kind == "events" or str(right) == "get leaderworkersets.leaderworkerset.x-k8s.io"


def told_by_status(right: Right) -> bool:
    return not told_by_readiness(right) and not told_by_log_alone(right)


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
        assert running.controller.missing == ""


def check_told(right: Right, running: Running, said: str, caplog: pytest.LogCaptureFixture) -> None:
    words = f'cannot {right.verb} resource "{right.resource}" in API group "{right.group}"'
    logged = [vars(each)["fields"] for each in caplog.records if each.message == "permission missing"]
    assert {each["permission"].partition(" in ")[0] for each in logged} == {str(right)}
    assert all(words in each["error"] and SOURCE in each["advice"] for each in logged)
    gauge = f'rollout_lws_permissions_missing{{resource="{right.kind}",verb="{right.verb}"}} '
    assert gauge in running.metrics.text().decode()
    unready = running.controller.missing
    assert (words in unready and SOURCE in unready) == told_by_readiness(right), unready
    assert (words in said and SOURCE in said) == told_by_status(right), said
