"""What a plan says of gates of figures: requests, how many a second, time, and edges."""

from __future__ import annotations

from typing import Any

import pytest

from rollout_lws.cli.demo import manifests
from rollout_lws.settings import SCRAPE_EVERY
from tests.cli.plan.snapshots import plan_of
from tests.cli.plan.test_command import offline, rollout, run, text
from tests.scenarios.measured import WELL, MeasuredWorld
from tests.scenarios.test_gates import FIRST_TOKEN, released

pytestmark = pytest.mark.rare(3)

Object = dict[str, Any]
#: 434 requests.
FIRST = {"name": "first-token", "metric": {"signal": "TimeToFirstToken", "max": "2s"}}


def gated(*gates: Object, step: int = 0, engine: str = "", routed: bool = True, **more: Any) -> Object:
    """The demo's Rollout, of whose steps the first has 10 % of requests and the second 40 %, with these gates."""
    made = rollout(routed=routed)
    made["spec"]["strategy"]["canary"]["steps"][step] |= {"gates": list(gates), **more}
    made["spec"]["strategy"] |= {"analysis": {"engine": engine}} if engine else {}
    return made


def told(made: Object, *options: str) -> list[str]:
    """The sentences about gates in the text."""
    given = text(manifests.workload(), made, *manifests.traffic())
    result = run("-f", "-", "--offline", "--load-time", "10m", *options, stdin=given)
    _, _, rest = result.stdout.partition("\nGates need\n")
    return [line.removeprefix("  - ") for line in rest.partition("\n\n")[0].splitlines()]


_EDGES = "; judged at the edges of the server's histogram beside 2s, which it tells itself"


@pytest.mark.parametrize(
    ("gate", "said"),
    [
        pytest.param(
            FIRST,
            "about 434 requests of the new version: 14 a second of both versions, 10% of them for it, for its window of"
            f" 5m to be enough{_EDGES}",
            id="a limit",
        ),
        pytest.param(
            {"name": "slow", "metric": {"signal": "InterTokenLatency", "maxToStable": "120%"}, "window": 1800},
            "about 1,210 requests of the new version and 10,890 of the stable one: 6.7 a second of both versions, 10%"
            " of them for it, for its window of 30m to be enough",
            id="compared with stable",
        ),
        pytest.param(
            {"name": "errors", "metric": {"signal": "ErrorRate", "maxToStable": "200%"}},
            "about 1,607 requests of the new version and 14,463 of the stable one (if 1% of stable's are bad): 54 a"
            " second of both versions, 10% of them for it, for its window of 5m to be enough",
            id="failures compared with stable",
        ),
        pytest.param(
            {"name": "queue", "metric": {"signal": "QueueLength", "max": "8"}},
            "judged when its window of 5m is over",
            id="a gauge",
        ),
        pytest.param(
            {"name": "ours", "query": {"promQL": "bad", "samples": "all", "max": "1%"}},
            "about 2,243 samples in its window of 5m",
            id="a query of a share",
        ),
        pytest.param(
            {"name": "ours", "query": {"promQL": "bad", "max": "1%"}},
            "judged when its window of 5m is over",
            id="a query",
        ),
    ],
)
def test_each_gate_says_what_it_needs(gate: Object, said: str) -> None:
    assert told(gated(gate)) == [f"step 1, {gate['name']}: {said}"]


def test_a_rate_tells_how_long_a_gate_takes() -> None:
    (said,) = told(gated(FIRST, engine="vLLM"), "--rate", "10")
    assert (
        said == "step 1, first-token: about 434 requests of the new version: 7m14s at 10 a second, 10% of them for it"
    )


def test_a_window_is_the_least_time_whatever_the_rate() -> None:
    (said,) = told(gated(FIRST, engine="vLLM"), "--rate", "1000")
    assert said.endswith(": 5m at 1000 a second, 10% of them for it")


@pytest.mark.parametrize("traffic", [None, "10%"])
def test_how_many_requests_match_is_not_known(traffic: str | None) -> None:
    compared = {"name": "slow", "metric": {"signal": "TimeToFirstToken", "maxToStable": "120%"}}
    made = gated(FIRST, compared, engine="vLLM", matches=[{"headers": [{"name": "x-user", "value": "canary"}]}])
    step = made["spec"]["strategy"]["canary"]["steps"][0]
    if traffic is None:
        del step["traffic"]
    first, slow = told(made, "--rate", "10")
    assert first.endswith(": 1.4 a second for it, for its window of 5m to be enough")
    assert ("hangs on how many match" in slow) is (traffic is None)


def test_a_step_without_requests_brings_a_gate_to_nothing() -> None:
    made = gated(FIRST, traffic="0%")
    assert told(made) == [
        "step 1, first-token: no request reaches the new version in this step, so it comes to nothing"
    ]


def test_a_step_takes_as_long_as_its_longest_gate_and_no_longer_than_that_is_waited_for() -> None:
    def seconds(made: Object, **options: str) -> float:
        (first, *_) = offline(manifests.workload(), made, *manifests.traffic(), load_time="10m", **options)["steps"]
        taken: float = first["seconds"]
        return taken

    plain = seconds(rollout(routed=True))
    # Its pause of 2 s runs at the same time.
    assert seconds(gated(FIRST)) == plain - 2 + 300
    assert seconds(gated(FIRST), rate="10") == plain - 2 + 434
    assert seconds(gated(FIRST), rate="0.01") == plain - 2 + 600
    assert seconds(gated(FIRST, pause={"duration": 900})) == plain - 2 + 900


def test_programs_get_the_numbers() -> None:
    made = gated(FIRST, {"name": "ours", "query": {"promQL": "bad", "samples": "all", "max": "1%"}})
    (first, second, *_) = offline(manifests.workload(), made, *manifests.traffic(), rate="10")["steps"]
    both = {"stableRequests": None, "windowSeconds": 300, "deadlineSeconds": 600}
    metric, query = first["gates"]
    assert metric == {
        "name": "first-token",
        "requests": 434,
        "samples": None,
        "requestsPerSecond": 14.467,
        "seconds": 434,
        **both,
    }
    assert query == {
        "name": "ours",
        "requests": None,
        "samples": 2243,
        "requestsPerSecond": None,
        "seconds": None,
        **both,
    }
    assert second["gates"] == []


@pytest.mark.parametrize(
    ("limit", "engine", "said"),
    [
        (
            "2s",
            "vLLM",
            "gate first-token of step 1: 2s is between two edges of vLLM's histogram, 1 s and 2.5 s: only requests that"
            " took longer than 2.5 s fail the version, and it passes by those of at most 1 s; use an edge as its limit",
        ),
        ("2500ms", "vLLM", ""),
        ("90m", "vLLM", "90m is above the last edge of vLLM's histogram, 2560 s: no version fails"),
        ("0.1ms", "vLLM", "0.1ms is below the first edge of vLLM's histogram, 0.001 s: no version passes"),
        # What its edges are is not known before it is asked.
        ("2s", "SGLang", ""),
        ("2s", "", ""),
    ],
)
def test_a_limit_between_two_edges_is_told_where_edges_are_known(limit: str, engine: str, said: str) -> None:
    gate = {"name": "first-token", "metric": {"signal": "TimeToFirstToken", "max": limit}}
    cautions = offline(manifests.workload(), gated(gate, engine=engine), *manifests.traffic())["cautions"]
    found = [each for each in cautions if "histogram" in each]
    assert len(found) == bool(said)
    assert all(said in each for each in found)


def test_a_gate_that_its_deadline_ends_first_is_told() -> None:
    cautions = offline(manifests.workload(), gated(FIRST), *manifests.traffic(), rate="2")["cautions"]
    assert [each for each in cautions if "first-token" in each] == [
        "gate first-token of step 1 takes 36m10s at 2 requests a second, and its time is over after 10m, when the"
        " release waits for a user: raise its deadlineSeconds, or the step's traffic"
    ]


@pytest.mark.looptime
@pytest.mark.parametrize("pause", [0, 120, 500])
async def test_a_release_takes_as_long_as_its_gates_and_pauses_together(pause: int) -> None:
    world = MeasuredWorld()
    try:
        await released(world, WELL, FIRST_TOKEN, pause={"duration": pause})
        plan, began = plan_of(world), world.now
        assert plan.forecast is not None
        assert plan.parts[0].row.seconds - plan.loads.typical == max(pause, 300)
        await world.until(lambda: world.state != "Healthy")
        await world.until_state("Healthy", 3600)
        taken = (world.now - began).total_seconds()
        # Figures are asked for every 15 seconds; groups that end take some.
        assert plan.forecast.seconds <= taken <= plan.forecast.seconds + SCRAPE_EVERY + 10
    finally:
        world.close()
