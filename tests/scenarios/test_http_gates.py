"""Stories of releases whose steps ask by HTTP: warm-ups before any share, and words of a Service in between."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from copy import deepcopy
from typing import Any

import pytest

from rollout_lws.objects.resources import LWS_WORKER_INDEX, PODS, SERVICES
from rollout_lws.rollout.reasons import Reason
from rollout_lws.sandbox.pod_answers import PREFIX
from tests.scenarios.measured import WELL, MeasuredWorld
from tests.scenarios.names import NAMESPACE
from tests.scenarios.routed import create_route, make, routing, share
from tests.scenarios.stories import CANARY, assert_clean
from tests.scenarios.told import tells
from tests.scenarios.world import World

pytestmark = pytest.mark.looptime

WARM_UP = {
    "name": "warm-up",
    "when": "BeforeTraffic",
    "http": {"each": "Group", "path": "/v1/completions", "body": '{"prompt": "hi"}', "failOn": [500]},
    "deadlineSeconds": 120,
}
#: What groups of a version answer to it.
WARM, COLD, BROKEN = ({"warm-up": f"POST /v1/completions {code}"} for code in (200, 503, 500))
BOARD = {"name": "board", "http": {"service": "approvals", "port": "web", "path": "/gate"}, "deadlineSeconds": 120}
YES = 'POST /gate 200 {"result": "Passed", "message": "CHG-7"}'
NO = 'POST /gate 200 {"result": "Failed", "message": "frozen until Monday"}'
LATER = 'POST /gate 200 {"result": "Inconclusive", "message": "ann decides"}'


@pytest.fixture
async def world() -> AsyncIterator[MeasuredWorld]:
    made = MeasuredWorld()
    yield made
    made.close()


async def released(
    world: MeasuredWorld,
    answers: Mapping[str, str],
    *gates: dict[str, Any],
    groups: int = 2,
    style: Mapping[str, Any] | None = None,
    routed: bool = True,
    **strategy: Any,
) -> None:
    """A first step of some groups and a fifth of the requests, and a last one; the release has begun."""
    if routed:
        create_route(world)
    world.create_workload()
    world.patch_lws({"leaderWorkerTemplate": {"workerTemplate": world.serve(WELL)}})
    first: dict[str, Any] = {"replicas": groups, "gates": deepcopy(list(gates)), "pause": {"duration": 0}}
    last: dict[str, Any] = {"replicas": "100%", "pause": {"duration": 0}}
    plan = dict(style or {"canary": {}})
    ((kind, words),) = plan.items()
    if routed:
        first["traffic"] = "20%"
        words = {**words, "trafficRoutings": routing()}
    world.create_rollout(first, last, **{kind: words}, **strategy)
    await world.rest()
    world.start_controller()
    await world.until_state("Healthy")
    await world.rest()
    if any(each.get("when") == "BeforeTraffic" for each in gates):
        world.checks.append(no_share_before_it_passed)
    world.apply(WELL, "v2", answers)


def gate(world: World, name: str = "warm-up") -> dict[str, Any]:
    return next((each for each in world.status.get("gates", ()) if each["name"] == name), {})


def new_leaders(world: World) -> list[str]:
    """Those of a version whose pods answer to a warm-up at all, as the stable one's do not."""
    pods = world.server.list(PODS, NAMESPACE, label_selector=f"{LWS_WORKER_INDEX}=0")
    return [pod["metadata"]["name"] for pod in pods if f"{PREFIX}warm-up" in pod["metadata"].get("annotations", {})]


def answer(world: World, pod: str, **answers: str) -> None:
    world.patch(PODS, pod, {"metadata": {"annotations": {PREFIX + name: text for name, text in answers.items()}}})


def create_board(world: World, says: str) -> None:
    """A Service of one pod that says so to POST /gate."""
    make(world, SERVICES, "approvals", spec={"selector": {"app": "approvals"}, "ports": [{"name": "web", "port": 80}]})
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "approvals",
            "namespace": NAMESPACE,
            "labels": {"app": "approvals"},
            "annotations": {f"{PREFIX}gate": says},
        },
        "spec": {"containers": [{"name": "board", "image": "board:v1"}]},
    }
    world.server.create(PODS, pod)


def no_share_before_it_passed(world: World) -> None:
    """Of stories with a warm-up in their first step: requests come only once every new leader answers to it."""
    if world.status.get("currentStepIndex") != 1 or share(world) == 0:
        return
    pods = [world.get(PODS, name) or {} for name in new_leaders(world)]
    told = [(pod["metadata"].get("annotations") or {}).get(f"{PREFIX}warm-up", "") for pod in pods]
    assert told == [WARM["warm-up"]] * len(pods), "requests reached the new version before the gate passed"


STYLES: dict[str, dict[str, Any]] = {
    "canary": {"canary": {}},
    "surge": {"canary": {"capacity": "Surge"}},
    "blue-green": {"blueGreen": {}},
}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("style", STYLES.values(), ids=STYLES)
async def test_a_warm_up_comes_before_any_share(world: MeasuredWorld, style: dict[str, Any]) -> None:
    await released(world, WARM, WARM_UP, style=style)
    await world.until(lambda: gate(world).get("result") == "Passed")
    assert gate(world)["message"] == "the leaders of 2 groups have passed"
    await world.until_state("Healthy", 3600)
    await world.rest()
    assert set(world.groups().values()) == {"v2"}


@tells({Reason.ANALYZING: "step 1 is measured: gate warm-up; pod llama-canary-0 answered 503"})
async def test_a_version_that_is_cold_gets_no_requests_until_it_is_warm(world: MeasuredWorld) -> None:
    await released(world, COLD, WARM_UP)
    await world.until_state("Analyzing")
    await world.sleep(60)
    assert (world.state, share(world)) == ("Analyzing", 0)
    answer(world, "llama-canary-0", **{"warm-up": WARM["warm-up"]})
    await world.sleep(30)
    assert "pod llama-canary-1 answered 503" in world.status["message"]
    answer(world, "llama-canary-1", **{"warm-up": WARM["warm-up"]})
    await world.until_state("Healthy", 3600)
    await world.rest()
    assert_clean_with_route(world)


def assert_clean_with_route(world: World) -> None:
    assert world.groups() == dict.fromkeys(range(4), "v2")
    assert share(world) == 0


@pytest.mark.parametrize("style", STYLES.values(), ids=STYLES)
async def test_a_version_that_fails_its_warm_up_gets_no_request_at_all(
    world: MeasuredWorld, style: dict[str, Any]
) -> None:
    await released(world, BROKEN, WARM_UP, style=style, onFailure="Abort")
    await world.until_state("Aborted", 3600)
    await world.rest()
    assert set(world.groups().values()) == {"v1"}
    assert share(world) == 0
    assert "answered 500" in world.status["aborted"]["message"]


async def test_one_group_that_fails_is_named_and_the_release_waits_by_default(world: MeasuredWorld) -> None:
    await released(world, COLD, WARM_UP)
    await world.until_state("Analyzing")
    answer(world, "llama-canary-0", **{"warm-up": WARM["warm-up"]})
    answer(world, "llama-canary-1", **{"warm-up": 'POST /v1/completions 500 {"message": "no such\\nadapter"}'})
    await world.until_state("Stalled", 60)
    assert gate(world)["result"] == "Failed"
    assert gate(world)["message"] == "pod llama-canary-1 answered 500: no such adapter"
    assert share(world) == 0


async def test_a_version_without_an_answer_waits_for_a_user_when_its_time_is_over(world: MeasuredWorld) -> None:
    await released(world, COLD, WARM_UP, onFailure="Abort")
    await world.until_state("Stalled", 3600)
    assert gate(world)["result"] == "Error"
    assert gate(world)["message"] == "pod llama-canary-0 answered 503"
    assert world.groups(CANARY) == {0: "v2", 1: "v2"}
    assert share(world) == 0


async def test_a_warm_up_that_is_skipped_lets_requests_come(world: MeasuredWorld) -> None:
    await released(world, COLD, WARM_UP)
    await world.until_state("Stalled", 3600)
    world.checks.remove(no_share_before_it_passed)
    world.request("SkipGate", gate="warm-up", by="ann")
    await world.until_state("Healthy", 3600)


async def test_a_warm_up_is_asked_again_on_request(world: MeasuredWorld) -> None:
    await released(world, BROKEN, WARM_UP)
    await world.until_state("Stalled", 3600)
    for pod in new_leaders(world):
        answer(world, pod, **{"warm-up": WARM["warm-up"]})
    await world.sleep(60)
    assert world.state == "Stalled"
    world.request("Retry")
    await world.until_state("Healthy", 3600)


async def test_a_group_that_has_passed_is_not_asked_again_and_a_new_one_is(world: MeasuredWorld) -> None:
    await released(world, COLD, WARM_UP)
    await world.until_state("Analyzing")
    answer(world, "llama-canary-0", **{"warm-up": WARM["warm-up"]})
    await world.sleep(30)
    world.checks.remove(no_share_before_it_passed)
    answer(world, "llama-canary-0", **{"warm-up": COLD["warm-up"]})
    answer(world, "llama-canary-1", **{"warm-up": WARM["warm-up"]})
    await world.until(lambda: gate(world).get("result") == "Passed")


async def test_a_pod_that_comes_in_place_of_one_that_passed_has_to_pass_too(world: MeasuredWorld) -> None:
    await released(world, COLD, {**WARM_UP, "deadlineSeconds": 600}, groups=1)
    await world.until_state("Analyzing")
    world.request("Pause")
    await world.until_state("Paused")
    answer(world, "llama-canary-0", **{"warm-up": WARM["warm-up"]})
    await world.sleep(60)
    world.server.delete(PODS, NAMESPACE, "llama-canary-0")
    await world.sleep(60)
    world.request("Resume")
    await world.until_state("Analyzing")
    await world.sleep(20)
    assert "pod llama-canary-0 answered 503" in world.status["message"]


async def test_a_controller_that_was_restarted_asks_again(world: MeasuredWorld) -> None:
    await released(world, COLD, WARM_UP)
    await world.until_state("Analyzing")
    await world.sleep(60)
    world.stop_controller()
    await world.sleep(600)
    world.start_controller()
    await world.sleep(60)
    assert world.state == "Analyzing", "its time begins with the first answers"
    for pod in new_leaders(world):
        answer(world, pod, **{"warm-up": WARM["warm-up"]})
    await world.until_state("Healthy", 3600)


async def test_paused_it_is_asked_on_and_nothing_is_decided(world: MeasuredWorld) -> None:
    await released(world, COLD, WARM_UP, onFailure="Abort")
    await world.until_state("Analyzing")
    world.request("Pause")
    await world.until_state("Paused")
    for pod in new_leaders(world):
        answer(world, pod, **{"warm-up": BROKEN["warm-up"]})
    await world.sleep(600)
    assert world.groups(CANARY) == {0: "v2", 1: "v2"}
    world.request("Resume")
    await world.until_state("Aborted", 60)


async def test_nothing_is_written_while_answers_are_the_same(world: MeasuredWorld) -> None:
    await released(world, COLD, WARM_UP)
    await world.until_state("Analyzing")
    await world.until(lambda: "answered 503" in world.status["message"])
    before = len(world.writes)
    await world.sleep(60)
    assert len(world.writes) == before


async def test_nothing_is_written_while_pods_fail_each_time_for_another_reason(world: MeasuredWorld) -> None:
    await released(world, COLD, {**WARM_UP, "deadlineSeconds": 600})
    await world.until_state("Analyzing")
    await world.until(lambda: "answered 503" in world.status["message"])
    told, before = world.status["message"], len(world.writes)
    codes = (503, 404, 429, 502)
    for number in range(16):
        for at, pod in enumerate(new_leaders(world)):
            answer(world, pod, **{"warm-up": f"POST /v1/completions {codes[(number + at) % 4]}"})
        await world.sleep(15)
    assert (world.status["message"], len(world.writes)) == (told, before)
    for pod in new_leaders(world):
        answer(world, pod, **{"warm-up": "POST /v1/completions 418"})
    await world.until(lambda: "answered 418" in world.status["message"], "what lasts is told", 120)


@pytest.mark.one_in(2, of="style")
@pytest.mark.parametrize(
    "style",
    [*STYLES.values(), {"canary": {"capacity": "InPlace"}}],
    ids=[*STYLES, "in-place"],
)
@pytest.mark.parametrize(("says", "ends"), [(YES, "Healthy"), (NO, "Aborted")], ids=["yes", "no"])
async def test_a_service_decides_in_all_styles(
    world: MeasuredWorld, style: dict[str, Any], says: str, ends: str
) -> None:
    create_board(world, says)
    await released(world, {}, BOARD, style=style, routed=False, onFailure="Abort")
    await world.until_state(ends, 7200)
    await world.rest()
    assert set(world.groups().values()) == {"v2" if ends == "Healthy" else "v1"}


async def test_a_service_that_fails_a_version_says_why(world: MeasuredWorld) -> None:
    create_board(world, NO)
    await released(world, {}, BOARD, routed=False)
    await world.until_state("Stalled", 3600)
    assert gate(world, "board")["message"] == "Service approvals answered Failed: frozen until Monday"


async def test_a_service_that_has_not_decided_is_asked_until_its_time_is_over(world: MeasuredWorld) -> None:
    create_board(world, LATER)
    await released(world, {}, BOARD, routed=False, onFailure="Abort")
    told = "step 1 is measured: gate board; Service approvals answered Inconclusive"
    await world.until(lambda: world.status.get("message") == told)
    await world.until_state("Stalled", 3600)
    told = gate(world, "board")
    assert (told["result"], told["message"]) == (
        "Inconclusive",
        "Service approvals answered Inconclusive: ann decides",
    )
    answer(world, "approvals", gate=YES)
    world.request("Retry")
    await world.until_state("Healthy", 3600)
    await world.rest()
    assert_clean_besides(world)


def assert_clean_besides(world: World) -> None:
    world.server.delete(SERVICES, NAMESPACE, "approvals")
    assert_clean(world, "v2")


async def test_a_service_that_is_not_there_is_no_verdict(world: MeasuredWorld) -> None:
    await released(world, {}, BOARD, routed=False, onFailure="Abort")
    await world.until_state("Stalled", 3600)
    told = gate(world, "board")
    assert (told["result"], told["message"]) == (
        "Error",
        "Service approvals does not exist in the Rollout's namespace",
    )


async def test_a_service_of_a_name_in_dns_is_not_asked(world: MeasuredWorld) -> None:
    make(world, SERVICES, "approvals", spec={"type": "ExternalName", "externalName": "metadata.internal"})
    await released(world, {}, BOARD, routed=False)
    await world.until_state("Stalled", 3600)
    assert "is of type ExternalName, which leads elsewhere" in gate(world, "board")["message"]


async def test_an_api_server_that_cannot_reach_a_pod_is_no_verdict(world: MeasuredWorld) -> None:
    create_board(world, YES)
    world.faults.refuse(503, "create", "pods/proxy", count=None)
    await released(world, {}, BOARD, routed=False)
    await world.until(lambda: "is not reached by the API server" in world.status.get("message", ""))
    world.faults.restore()
    await world.until_state("Healthy", 3600)
