"""Stories of groups that leave when nothing runs on them any more, as their engines say, and not after a fixed time."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from rollout_lws.objects.resources import PODS
from rollout_lws.rollout.reasons import Reason
from rollout_lws.sandbox.behaviours.faults import CUT_OFF
from rollout_lws.sandbox.behaviours.faults import PREFIX as POD
from rollout_lws.sandbox.faults import Rule
from rollout_lws.sandbox.model_servers import PREFIX
from tests.scenarios.measured import WELL, MeasuredWorld
from tests.scenarios.names import NAME
from tests.scenarios.routed import routed_at_rest
from tests.scenarios.stories import CANARY
from tests.scenarios.told import tells

pytestmark = pytest.mark.looptime

#: Servers on which nothing runs unless a story says so.
FREE: Mapping[str, str] = {**WELL, "running": "0"}
GRACE, DRAIN, MOST = 3, 30, 1800
UNTIL_IDLE: Mapping[str, Any] = {"until": "Idle", "maxSeconds": MOST}
#: Seconds that all but the drain take: what the Gateway, LWS and pods need.
SLACK = 5.0
TWENTY_MINUTES = 1200.0


class Drains(MeasuredWorld):
    """Whose servers are all ``FREE`` at first."""

    def create_workload(self, **given: Any) -> None:  # type: ignore[override]
        super().create_workload(**given)
        self.patch_lws({"leaderWorkerTemplate": {"workerTemplate": self.serve(FREE)}})

    def work(self, requests: int, *pods: str, waiting: int = 0) -> None:
        """Have so many requests run on these pods from now on."""
        for pod in pods:
            told = {f"{PREFIX}running": str(requests), f"{PREFIX}waiting": str(waiting)}
            self.patch(PODS, pod, {"metadata": {"annotations": told}})

    def lose_node_of(self, pod: str) -> None:
        """A pod of a node that is lost is ready no more, and answers nothing."""
        self.patch(PODS, pod, {"metadata": {"annotations": {f"{POD}{CUT_OFF}": "true"}}})

    def out_of_reach(self) -> Rule:
        """No scrape is answered from now on."""
        return self.faults.refuse(503, "get", "pods/proxy", count=None)

    def uid(self, pod: str) -> str:
        live = self.get(PODS, pod)
        return live["metadata"]["uid"] if live is not None and "deletionTimestamp" not in live["metadata"] else ""


@pytest.fixture
async def world() -> AsyncIterator[Drains]:
    made = Drains()
    yield made
    made.close()


@dataclass(frozen=True)
class Way:
    """One way in which groups leave: in a release in this ``style`` and with these ``steps``, whose last one that is
    entered is ``step``, after a user's ``act``. ``pods`` are the leaders that leave, all others stay as they are.
    """

    name: str
    style: str
    words: Mapping[str, Any]
    steps: tuple[dict[str, Any], ...]
    act: Callable[[Drains], None]
    pods: tuple[str, ...]
    step: int = 1

    def __str__(self) -> str:
        return self.name


def _step(replicas: Any, traffic: str) -> dict[str, Any]:
    return {"replicas": replicas, "traffic": traffic, "pause": {}}


def abort(world: Drains) -> None:
    world.request("Abort")


def go_back_a_step(world: Drains) -> None:
    world.request("Jump", toStep=1)


def approve(world: Drains) -> None:
    world.approve()


ONE, TWO, ALL = _step(1, "20%"), _step(2, "50%"), _step("100%", "100%")
WAYS = (
    Way("a canary is aborted", "canary", {}, (ONE, TWO), abort, (f"{CANARY}-0",)),
    Way("a step goes back", "canary", {}, (ONE, TWO, ALL), go_back_a_step, (f"{CANARY}-1",), 2),
    Way("a canary takes over", "canary", {}, (ALL, ALL), approve, (f"{NAME}-0", f"{NAME}-2")),
    Way("green takes over", "blueGreen", {}, (ALL, ALL), approve, (f"{NAME}-1",), 2),
    Way("a surge is aborted", "canary", {"capacity": "Surge"}, (ONE, TWO), abort, (f"{NAME}-3",)),
    Way("in place is aborted", "canary", {"capacity": "InPlace"}, (ONE, TWO), abort, (f"{NAME}-2",)),
)
EVERY_WAY = pytest.mark.parametrize("way", WAYS, ids=str)
A_CANARY = WAYS[0]


async def released(world: Drains, way: Way, drain: Mapping[str, Any] = UNTIL_IDLE, **routing: Any) -> None:
    """The version waits for an approval in the step from which the story goes on."""
    steps = [dict(each) for each in way.steps]
    words = dict(way.words)
    waits = {"drain": dict(drain), "drainSeconds": DRAIN, **routing}
    await routed_at_rest(world, *steps, replicas=3, style=way.style, words=words, **waits)
    world.apply(FREE, "v2")
    for index in range(1, way.step + 1):
        await world.until(
            lambda index=index: (  # type: ignore[misc]
                world.state == "AwaitingApproval" and world.status["currentStepIndex"] == index
            ),
            f"step {index}",
        )
        if index < way.step:
            world.approve()
    await world.rest()


async def gone(world: Drains, way: Way, seconds: float) -> float:
    """Wait until the first of the groups that leave is gone; gives how long that took."""
    began, uids = world.now, {pod: world.uid(pod) for pod in way.pods}
    assert all(uids.values())
    await world.until(lambda: any(world.uid(pod) != uid for pod, uid in uids.items()), "groups that leave", seconds)
    return (world.now - began).total_seconds()


@pytest.mark.one_in(2)
@EVERY_WAY
async def test_idle_groups_go_after_ten_seconds(world: Drains, way: Way) -> None:
    await released(world, way)
    way.act(world)
    assert GRACE + 5 <= await gone(world, way, 60) <= 10 + SLACK


@pytest.mark.one_in(3)
@EVERY_WAY
async def test_a_stream_of_twenty_minutes_is_waited_for(world: Drains, way: Way) -> None:
    await released(world, way)
    world.work(1, way.pods[-1])
    way.act(world)
    before = {pod: world.uid(pod) for pod in way.pods}
    await world.until(lambda: "waits until group" in world.status["message"], "the drain is told")
    told, written = world.status["message"], len(world.writes)
    assert f"(pod {way.pods[-1]})" in told
    await world.sleep(TWENTY_MINUTES)
    assert {pod: world.uid(pod) for pod in way.pods} == before
    assert world.status["message"] == told
    assert len(world.writes) == written, "nothing is written while it is waited for"
    world.work(0, way.pods[-1])
    assert 5 <= await gone(world, way, 60) <= 10 + SLACK


@pytest.mark.one_in(2)
@EVERY_WAY
async def test_groups_go_after_the_most_seconds_whatever_runs(world: Drains, way: Way) -> None:
    await released(world, way, {"until": "Idle", "maxSeconds": 300})
    world.work(7, *way.pods)
    way.act(world)
    assert GRACE + 300 <= await gone(world, way, 400) <= GRACE + 300 + SLACK


@pytest.mark.one_in(2)
@EVERY_WAY
async def test_a_ready_pod_that_cannot_be_scraped_gets_the_fixed_time(world: Drains, way: Way) -> None:
    await released(world, way)
    world.out_of_reach()
    way.act(world)
    assert GRACE + DRAIN <= await gone(world, way, 60) <= GRACE + DRAIN + SLACK


@pytest.mark.one_in(3)
@EVERY_WAY
async def test_a_controller_that_was_restarted_asks_again_before_anything_goes(world: Drains, way: Way) -> None:
    await released(world, way)
    world.work(1, *way.pods)
    way.act(world)
    await world.sleep(600)
    world.stop_controller()
    await world.sleep(60)
    before = {pod: world.uid(pod) for pod in way.pods}
    world.start_controller()
    await world.sleep(60)
    assert {pod: world.uid(pod) for pod in way.pods} == before
    world.work(0, *way.pods)
    world.stop_controller()
    world.start_controller()
    assert 5 <= await gone(world, way, 60) <= 5 + SLACK


@tells(
    {
        Reason.DRAINING: "requests that run on group 0 (pod llama-canary-0) of the new version get until 00:10:24 UTC,"
        " as what runs there is not known: /metrics answered 503: the server is currently unable to handle the request"
    }
)
async def test_the_status_says_why_it_is_the_fixed_time(world: Drains) -> None:
    await released(world, A_CANARY, drainSeconds=600)
    world.out_of_reach()
    await world.sleep(10)
    A_CANARY.act(world)
    await gone(world, A_CANARY, 700)


async def test_without_a_declared_port_it_is_the_fixed_time(world: Drains) -> None:
    await released(world, A_CANARY, drainSeconds=600)
    world.request("Abort")
    await world.until_state("Aborted")
    world.set_image("v3")
    await world.until_state("AwaitingApproval")
    world.request("Abort")
    told = "its template declares no such container port: name one in spec.strategy.analysis.pods.port"
    await world.until(lambda: told in world.status["message"], "the port is missed")
    assert 500 <= await gone(world, A_CANARY, 700) <= 600


async def test_with_figures_from_prometheus_the_pods_own_word_does_not_count(world: Drains) -> None:
    """Though they are idle, and would say so."""
    await released(world, A_CANARY, drainSeconds=600)
    world.patch_rollout({"strategy": {"analysis": {"from": "Prometheus"}}})
    A_CANARY.act(world)
    told = "as what runs there is not known: no Prometheus is named: set spec.strategy.analysis.prometheus.address"
    await world.until(lambda: told in world.status["message"], "Prometheus is missed")
    assert 500 <= await gone(world, A_CANARY, 700) <= 600


async def test_a_queue_is_waited_for(world: Drains) -> None:
    await released(world, A_CANARY)
    world.work(0, *A_CANARY.pods, waiting=1)
    A_CANARY.act(world)
    await world.sleep(600)
    assert world.groups(CANARY) == {0: "v2"}


async def test_what_pods_say_before_routers_have_heard_does_not_count(world: Drains) -> None:
    await released(world, A_CANARY, gracePeriodSeconds=60)
    A_CANARY.act(world)
    assert 65 <= await gone(world, A_CANARY, 120) <= 70 + SLACK


async def test_a_pod_that_has_ended_goes_at_once(world: Drains) -> None:
    await released(world, A_CANARY)
    world.work(1, *A_CANARY.pods)
    A_CANARY.act(world)
    await world.sleep(60)
    world.patch(PODS, A_CANARY.pods[0], {"status": {"phase": "Failed"}}, "status")
    assert await gone(world, A_CANARY, 60) <= SLACK


async def test_a_pod_that_neither_answers_nor_is_ready_is_not_waited_for(world: Drains) -> None:
    two = Way("two", "canary", {}, (TWO,), abort, (f"{CANARY}-0", f"{CANARY}-1"))
    await released(world, two)
    world.work(1, f"{CANARY}-1")
    two.act(world)
    await world.sleep(60)
    world.lose_node_of(f"{CANARY}-1")
    assert await gone(world, two, 60) <= 10 + SLACK


async def test_a_pod_that_is_busy_and_then_out_of_reach_gets_the_fixed_time_from_then_on(world: Drains) -> None:
    await released(world, A_CANARY)
    world.work(1, *A_CANARY.pods)
    A_CANARY.act(world)
    await world.sleep(600)
    world.out_of_reach()
    assert DRAIN - 5 <= await gone(world, A_CANARY, 60) <= DRAIN + SLACK


async def test_a_scrape_that_fails_now_and_then_cuts_no_stream_and_is_not_told(world: Drains) -> None:
    await released(world, A_CANARY, {"until": "Idle"})
    world.work(1, *A_CANARY.pods)
    A_CANARY.act(world)
    await world.until(lambda: "waits until group" in world.status["message"], "the drain is told")
    written = len(world.writes)
    for _ in range(40):
        await world.sleep(27)
        world.faults.refuse(503, "get", "pods/proxy", count=1)
    assert world.groups(CANARY) == {0: "v2"}
    assert len(world.writes) == written


async def test_requests_that_come_back_begin_the_wait_again(world: Drains) -> None:
    await released(world, A_CANARY)
    world.work(1, *A_CANARY.pods)
    A_CANARY.act(world)
    await world.sleep(62)
    world.work(0, *A_CANARY.pods)
    await world.sleep(4)
    world.work(1, *A_CANARY.pods)
    await world.sleep(600)
    assert world.groups(CANARY) == {0: "v2"}


async def test_a_user_who_forces_an_abort_waits_for_no_engine(world: Drains) -> None:
    await released(world, A_CANARY)
    world.work(1, *A_CANARY.pods)
    A_CANARY.act(world)
    await world.sleep(60)
    world.request("Abort", force=True)
    assert await gone(world, A_CANARY, 60) <= GRACE + DRAIN + SLACK


async def test_groups_that_stay_are_not_asked(world: Drains) -> None:
    back = WAYS[1]
    await released(world, back)
    world.work(1, f"{CANARY}-0", f"{NAME}-0")
    back.act(world)
    assert await gone(world, back, 60) <= 10 + SLACK


async def test_nothing_is_asked_by_default(world: Drains) -> None:
    await released(world, A_CANARY, {})
    world.work(1, *A_CANARY.pods)
    asked = world.out_of_reach()
    A_CANARY.act(world)
    assert GRACE + DRAIN <= await gone(world, A_CANARY, 60) <= GRACE + DRAIN + SLACK
    assert asked.seen == 0


async def test_workers_that_answer_requests_are_waited_for(world: Drains) -> None:
    await released(world, A_CANARY, target="AllPods")
    world.work(1, f"{CANARY}-0-1")
    A_CANARY.act(world)
    await world.until(lambda: f"group 0 (pod {CANARY}-0-1)" in world.status["message"], "the worker is told")
    await world.sleep(600)
    world.work(0, f"{CANARY}-0-1")
    assert 5 <= await gone(world, A_CANARY, 60) <= 10 + SLACK
