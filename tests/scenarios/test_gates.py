"""Stories of releases whose steps have gates: what figures say decides, and what is missing never does."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from copy import deepcopy
from typing import Any

import pytest

from rollout_lws.api import Rollout
from rollout_lws.measuring.scraping import Scraper, Unread
from rollout_lws.notifications.transition import Transition, notification
from rollout_lws.objects.resources import LWS_NAME, PODS
from rollout_lws.rollout.decision import Endpoint
from rollout_lws.rollout.reasons import EventReason, Reason
from rollout_lws.sandbox.model_servers import PREFIX
from tests.scenarios.measured import SLOW, WELL, MeasuredWorld
from tests.scenarios.names import NAMESPACE, ROLLOUTS
from tests.scenarios.stories import CANARY, assert_clean
from tests.scenarios.told import tells

pytestmark = pytest.mark.looptime

FIRST_TOKEN = {"name": "first-token", "metric": {"signal": "TimeToFirstToken", "max": "1s"}}
#: What is told of the slow version when it fails, and of one that no request reaches.
SLOWER = (
    "p95 of the time to first token 2.09s, at most 1s: 42 % of 300 requests took longer, between 32 % and 48 %,"
    " and 5 % may"
)
TOO_FEW = "the new version completed 0 requests, and 100 are the least"
WAYS_ON = (
    "to measure it again: kubectl rollout-lws retry llama; to pass it by hand: kubectl rollout-lws skip llama"
    " first-token"
)


@pytest.fixture
async def world() -> AsyncIterator[MeasuredWorld]:
    made = MeasuredWorld()
    yield made
    made.close()


async def released(
    world: MeasuredWorld, version: Mapping[str, str], *gates: dict[str, Any], pause: Any = None, **strategy: Any
) -> None:
    """A first step of one group with gates, and a last one; the release has begun."""
    world.create_workload()
    world.patch_lws({"leaderWorkerTemplate": {"workerTemplate": world.serve(WELL)}})
    first = {"replicas": 1, "gates": deepcopy(list(gates)), "pause": {"duration": 0} if pause is None else pause}
    world.create_rollout(first, {"replicas": "100%", "pause": {"duration": 0}}, **strategy)
    await world.rest()
    world.start_controller()
    await world.until_state("Healthy")
    await world.rest()
    world.apply(version, "v2")


def gate(world: MeasuredWorld, name: str = "first-token") -> dict[str, Any]:
    return next((each for each in world.status.get("gates", ()) if each["name"] == name), {})


@tells(
    {Reason.ANALYZING: "step 1 is measured: gate first-token"},
    {
        EventReason.GATE_PASSED: "gate first-token: p95 of the time to first token 686ms, at most 1s:"
        " 0.83 % of 1,200 requests took longer, between 0.38 % and 1.4 %, and 5 % may"
    },
)
async def test_a_good_version_passes_and_is_promoted(world: MeasuredWorld) -> None:
    await released(world, WELL, FIRST_TOKEN)
    await world.until_state("Analyzing")
    await world.until_state("Healthy", 3600)
    await world.rest()
    assert_clean(world, "v2")
    assert [event.reason for event in world.events].count("GatePassed") == 1


async def test_a_receiver_of_notifications_gets_the_figures(world: MeasuredWorld) -> None:
    """The Event tells of a gate whose record the status has no more, since the release went back with it."""
    await released(world, SLOW, FIRST_TOKEN, onFailure="Abort")
    await world.until_state("Aborted", 3600)
    (failed,) = [event for event in world.events if event.reason == "GateFailed"]
    at = Rollout.model_validate(world.rollout)
    data = notification(Transition(failed, world.name, at, "1", None, world.now)).data
    (told,) = (each.to_json_dict() for each in data.gates)
    assert told.pop("seconds") > 0
    assert told.pop("message") == SLOWER
    assert told == {
        "name": "first-token",
        "kind": "metric",
        "result": "Failed",
        "value": "2.09s",
        "limit": "1s",
        "samples": 300,
        "share": "41.7%",
        "shareFrom": "31.7%",
        "shareTo": "47.8%",
        "shareLimit": "5%",
    }


async def test_a_slow_version_fails_and_goes_back_by_itself(world: MeasuredWorld) -> None:
    await released(world, SLOW, FIRST_TOKEN, onFailure="Abort")
    await world.until_state("Aborted", 3600)
    await world.rest()
    assert world.groups() == dict.fromkeys(range(4), "v1")
    assert world.groups(CANARY) == {}
    assert "p95" in world.status["aborted"]["message"]


@tells(
    {
        Reason.GATE_FAILED: f"gate first-token: {SLOWER}. The release waits, {WAYS_ON}; to go back: kubectl rollout-lws"
        " abort llama"
    },
    {EventReason.GATE_FAILED: f"gate first-token: {SLOWER}"},
)
async def test_a_slow_version_waits_for_a_user_by_default(world: MeasuredWorld) -> None:
    await released(world, SLOW, FIRST_TOKEN)
    await world.until_state("Stalled", 3600)
    assert gate(world)["result"] == "Failed"
    assert world.condition("Stalled")["reason"] == "GateFailed"
    assert world.groups(CANARY) == {0: "v2"}


async def test_nothing_is_written_while_nothing_is_decided(world: MeasuredWorld) -> None:
    await released(world, WELL, FIRST_TOKEN)
    await world.until_state("Analyzing")
    before, decisions = len(world.writes), world.decisions
    await world.sleep(240)
    assert len(world.writes) == before
    assert world.decisions > decisions + 10
    await world.until_state("Healthy", 3600)


async def test_a_step_has_at_most_two_status_writes_for_its_gates(world: MeasuredWorld) -> None:
    gates = [{**FIRST_TOKEN, "name": f"gate-{number}"} for number in range(5)]
    await released(world, WELL, *gates, pause={})
    await world.until_state("Analyzing")
    before = len(world.writes)
    await world.until_state("AwaitingApproval", 3600)
    assert len(world.writes) - before <= 2
    assert {each["result"] for each in world.status["gates"]} == {"Passed"}


@tells(
    {Reason.GATE_INCONCLUSIVE: f"gate first-token: {TOO_FEW}; {WAYS_ON}; to go back: kubectl rollout-lws abort llama"},
    {EventReason.GATE_INCONCLUSIVE: f"gate first-token: {TOO_FEW}"},
)
async def test_servers_without_requests_are_no_verdict(world: MeasuredWorld) -> None:
    await released(world, {**WELL, "requests-per-second": "0"}, FIRST_TOKEN, onFailure="Abort")
    await world.until_state("Stalled", 3600)
    assert gate(world)["result"] == "Inconclusive"
    assert gate(world)["message"] == TOO_FEW
    assert world.groups(CANARY) == {0: "v2"}


async def test_pods_that_do_not_answer_are_no_verdict(world: MeasuredWorld) -> None:
    await released(world, {**WELL, "engine": "none"}, FIRST_TOKEN, onFailure="Abort")
    await world.until(lambda: "cannot be read" in world.status.get("message", ""))
    assert "pods cannot be read, llama-canary-0 first: /metrics answered 503" in world.status["message"]
    await world.until_state("Stalled", 3600)
    assert gate(world)["result"] == "Error"
    assert world.groups(CANARY) == {0: "v2"}


class _FailsInTurn:
    """Some pods fail in each round, the others in the next one; or all of them do. Each time in another way."""

    def __init__(self, scraper: Scraper) -> None:
        self.scraper, self.all = scraper, False
        self.asked: Counter[str] = Counter()

    async def metrics(self, namespace: str, endpoint: Endpoint) -> str:
        self.asked[endpoint.pod] += 1
        if self.all or (self.asked[endpoint.pod] + int(endpoint.pod[-1])) % 2:
            raise Unread(f"connection {self.asked.total()} was cut")
        return await self.scraper.metrics(namespace, endpoint)

    async def close(self) -> None:
        await self.scraper.close()


class _Bug:
    """A scraper that raises what it should not, until it is ``mended``."""

    def __init__(self, scraper: Scraper) -> None:
        self._scraper = scraper
        self.mended = False

    async def metrics(self, namespace: str, endpoint: Endpoint) -> str:
        if not self.mended:
            raise ZeroDivisionError("a bug")
        return await self._scraper.metrics(namespace, endpoint)

    async def close(self) -> None:
        await self._scraper.close()


async def test_a_gate_that_a_bug_keeps_from_its_figures_comes_to_its_deadline(world: MeasuredWorld) -> None:
    bugs: list[_Bug] = []

    def broken(scraper: Scraper) -> Scraper:
        bugs.append(_Bug(scraper))
        return bugs[-1]

    world.between = broken
    await released(world, WELL, {**FIRST_TOKEN, "deadlineSeconds": 400}, onFailure="Abort")
    await world.until(lambda: "which is a bug" in world.status.get("message", ""), "the bug is told")
    began, written = world.now, len(world.writes)
    await world.until_state("Stalled", 600)
    assert 360 <= (world.now - began).total_seconds() <= 400
    assert len(world.writes) - written <= 3
    told = gate(world)
    assert told["result"] == "Error"
    assert "its log says more (round of measurements failed)" in told["message"]
    bugs[-1].mended = True
    world.request("Retry")
    await world.until_state("Healthy", 3600)
    await world.rest()
    assert_clean(world, "v2")


async def test_pods_that_fail_in_another_way_each_round_are_told_once(world: MeasuredWorld) -> None:
    compared = {"name": "compared", "metric": {"signal": "TimeToFirstToken", "maxToStable": "150%"}, "window": 1800}
    turns: list[_FailsInTurn] = []

    def between(scraper: Scraper) -> Scraper:
        turns.append(_FailsInTurn(scraper))
        return turns[0]

    world.between = between
    await released(world, WELL, compared)
    await world.until_state("Analyzing")
    before = len(world.writes)
    await world.sleep(300)
    assert len(world.writes) == before
    turns[0].all = True
    await world.sleep(300)
    assert len(world.writes) == before + 1
    assert re.search(r"pods cannot be read, llama-\d first: each time for another reason", world.status["message"])
    turns[0].all = False
    await world.sleep(300)
    assert len(world.writes) == before + 2
    assert "cannot be read" not in world.status["message"]


async def test_a_gate_that_is_skipped_lets_the_step_go_on_and_says_who_did(world: MeasuredWorld) -> None:
    await released(world, SLOW, FIRST_TOKEN, pause={})
    await world.until_state("Stalled", 3600)
    world.request("SkipGate", gate="first-token", by="ann", reason="the load test was wrong")
    await world.until_state("AwaitingApproval")
    told = gate(world)
    assert (told["result"], told["by"], told["message"]) == ("Skipped", "ann", "the load test was wrong")
    world.approve()
    await world.until_state("Healthy", 3600)


@pytest.mark.parametrize(
    ("name", "why"), [("other", "step 1 has no gate 'other': name one of first-token"), (None, "has no gate None")]
)
async def test_a_gate_that_there_is_not_cannot_be_skipped(world: MeasuredWorld, name: str | None, why: str) -> None:
    await released(world, WELL, FIRST_TOKEN)
    await world.until_state("Analyzing")
    world.request("SkipGate", gate=name)
    await world.until(lambda: world.status.get("lastAction", {}).get("outcome") == "Refused")
    assert why in world.status["lastAction"]["message"]


async def test_a_failed_gate_is_measured_again_on_request(world: MeasuredWorld) -> None:
    await released(world, SLOW, FIRST_TOKEN)
    await world.until_state("Stalled", 3600)
    for pod in world.server.list(PODS, NAMESPACE, label_selector=f"{LWS_NAME}={CANARY}"):
        fast = {"metadata": {"annotations": {f"{PREFIX}first-token-seconds": "0.3"}}}
        world.patch(PODS, pod["metadata"]["name"], fast)
    world.request("Retry")
    await world.until_state("Analyzing")
    assert "result" not in gate(world)
    await world.until_state("Healthy", 3600)


async def test_a_gate_that_is_edited_is_measured_anew(world: MeasuredWorld) -> None:
    await released(world, SLOW, FIRST_TOKEN)
    await world.until_state("Stalled", 3600)
    steps = deepcopy(world.rollout["spec"]["strategy"]["canary"]["steps"])
    steps[0]["gates"][0]["metric"]["max"] = "10s"
    world.patch_rollout({"strategy": {"canary": {"steps": steps}}})
    await world.until_state("Analyzing")
    await world.until_state("Healthy", 3600)


async def test_an_approval_ends_the_pause_and_not_the_gates(world: MeasuredWorld) -> None:
    await released(world, WELL, FIRST_TOKEN, pause={})
    await world.until_state("Analyzing")
    world.approve()
    await world.sleep(60)
    assert world.state == "Analyzing"
    await world.until_state("Healthy", 3600)
    assert [event.reason for event in world.events].count("GatePassed") == 1


@tells({}, {EventReason.GATE_SKIPPED: "the step ends without gate first-token"})
async def test_a_full_promotion_passes_by_gates_and_says_so(world: MeasuredWorld) -> None:
    await released(world, SLOW, FIRST_TOKEN)
    await world.until_state("Analyzing")
    world.request("PromoteFull", by="ann")
    await world.until_state("Healthy", 3600)


async def test_a_jump_over_several_steps_says_which_gates_it_passes_by(world: MeasuredWorld) -> None:
    await released(world, SLOW, FIRST_TOKEN)
    await world.until_state("Analyzing")
    steps = [*deepcopy(world.rollout["spec"]["strategy"]["canary"]["steps"])]
    world.patch_rollout({"strategy": {"canary": {"steps": [steps[0], {"replicas": 2}, steps[1]]}}})
    await world.sleep(5)
    world.request("Jump", toStep=3)
    await world.until_state("Healthy", 3600)
    told = [event.note for event in world.events if event.reason == "GateSkipped"]
    assert told == ["the step ends without gate first-token"]


async def test_paused_it_is_measured_on_and_aborts_nothing(world: MeasuredWorld) -> None:
    await released(world, SLOW, FIRST_TOKEN, onFailure="Abort")
    await world.until_state("Analyzing")
    world.request("Pause")
    await world.until_state("Paused")
    await world.sleep(1200)
    assert world.groups(CANARY) == {0: "v2"}
    world.request("Resume")
    await world.until_state("Aborted", 60)


async def test_deadlines_stand_still_while_it_is_paused(world: MeasuredWorld) -> None:
    await released(world, {**WELL, "requests-per-second": "0"}, FIRST_TOKEN)
    await world.until_state("Analyzing")
    await world.sleep(300)
    world.request("Pause")
    await world.until_state("Paused")
    await world.sleep(3600)
    writes = len(world.writes)
    await world.sleep(3600)
    assert len(world.writes) == writes
    world.request("Resume")
    await world.until_state("Analyzing", 60)
    await world.sleep(200)
    assert world.state == "Analyzing"
    await world.until_state("Stalled", 200)
    assert gate(world)["result"] == "Inconclusive"


async def test_a_gate_that_was_edited_while_paused_can_be_skipped(world: MeasuredWorld) -> None:
    await released(world, SLOW, FIRST_TOKEN)
    await world.until_state("Analyzing")
    world.request("Pause")
    await world.until_state("Paused")
    steps = deepcopy(world.rollout["spec"]["strategy"]["canary"]["steps"])
    steps[0]["gates"][0]["window"] = 600
    world.patch_rollout({"strategy": {"canary": {"steps": steps}}})
    world.request("SkipGate", gate="first-token", by="anna")
    await world.sleep(60)
    assert gate(world)["result"] == "Skipped"
    world.request("Resume")
    await world.until_state("Healthy", 3600)


async def test_a_controller_that_was_restarted_begins_the_window_again(world: MeasuredWorld) -> None:
    await released(world, WELL, FIRST_TOKEN)
    await world.until_state("Analyzing")
    await world.sleep(200)
    world.stop_controller()
    await world.sleep(1000)
    world.start_controller()
    began = world.now
    await world.until_state("Healthy", 3600)
    passed = next(event for event in world.events if event.reason == "GatePassed")
    assert passed.note.startswith("gate first-token: p95")
    assert (world.now - began).total_seconds() > 300


@pytest.mark.one_in(2, of="style")
@pytest.mark.parametrize(
    "style",
    [
        {"canary": {"capacity": "InPlace"}},
        {"canary": {"capacity": "Surge"}},
        {"blueGreen": {}},
    ],
    ids=["in-place", "surge", "blue-green"],
)
@pytest.mark.parametrize(("version", "ends"), [(WELL, "Healthy"), (SLOW, "Aborted")], ids=["well", "slow"])
async def test_in_all_styles(world: MeasuredWorld, style: dict[str, Any], version: Any, ends: str) -> None:
    compared = {"name": "compared", "metric": {"signal": "TimeToFirstToken", "maxToStable": "150%"}}
    await released(world, version, FIRST_TOKEN, compared, onFailure="Abort", **style)
    await world.until_state("Analyzing")
    await world.until_state(ends, 7200)
    await world.rest()
    assert set(world.groups().values()) == {"v2" if ends == "Healthy" else "v1"}


async def test_an_engine_of_other_names(world: MeasuredWorld) -> None:
    stalled = {"name": "stalled", "metric": {"signal": "Stalled", "max": "2m"}}
    queue = {"name": "queue", "metric": {"signal": "QueueLength", "max": "8"}}
    await released(world, {**WELL, "engine": "SGLang"}, FIRST_TOKEN, stalled, queue)
    await world.until_state("Healthy", 3600)


async def test_a_queue_that_is_too_long(world: MeasuredWorld) -> None:
    queue = {"name": "queue", "metric": {"signal": "QueueLength", "max": "8"}}
    await released(world, {**WELL, "waiting": "20"}, queue)
    await world.until_state("Stalled", 3600)
    assert gate(world, "queue")["message"] == "waiting requests 20, at most 8: the mean of 21"


@pytest.mark.parametrize(
    "metric", [{"signal": "QueueLength", "max": "8"}, {"signal": "RunningRequests", "maxToStable": "120%"}]
)
async def test_a_version_that_no_request_has_reached_has_no_short_queue(
    world: MeasuredWorld, metric: dict[str, Any]
) -> None:
    idle = {**WELL, "requests-per-second": "0", "running": "0"}
    await released(world, idle, {"name": "queue", "metric": metric}, onFailure="Abort")
    await world.until_state("Stalled", 3600)
    told = gate(world, "queue")
    assert (told["result"], told["message"]) == (
        "Inconclusive",
        "no request has reached the new version while it was measured",
    )


async def test_a_plan_that_is_shortened_while_it_is_paused_is_measured_no_more(world: MeasuredWorld) -> None:
    await released(world, WELL, FIRST_TOKEN, pause={})
    await world.until_state("Analyzing")
    world.request("Jump", toStep=2)
    await world.until(lambda: world.status["currentStepIndex"] == 2)
    assert "gates" not in world.status
    world.request("Pause")
    await world.until_state("Paused")
    world.patch_rollout({"strategy": {"canary": {"steps": [{"replicas": "100%"}]}}})
    await world.sleep(60)
    world.request("Resume")
    await world.until_state("Healthy", 3600)


async def test_records_without_a_beginning_are_begun_anew(world: MeasuredWorld) -> None:
    """Another writer took their times away."""
    await released(world, WELL, FIRST_TOKEN)
    await world.until_state("Analyzing")
    world.patch(ROLLOUTS, world.name, {"status": {"gates": [{"name": "first-token"}, {"name": "other"}]}}, "status")
    await world.until(lambda: "since" in gate(world))
    assert [each["name"] for each in world.status["gates"]] == ["first-token"]
    await world.until_state("Healthy", 3600)


async def test_an_approval_is_waited_for_once_the_gates_have_passed(world: MeasuredWorld) -> None:
    await released(world, WELL, FIRST_TOKEN, pause={"approvalTimeoutSeconds": 120}, onFailure="Abort")
    await world.until_state("AwaitingApproval")
    await world.sleep(100)
    assert world.state == "AwaitingApproval"
    await world.until_state("Aborted", 60)
