"""Gates tried on what serves, in virtual time: verdicts in the words of gates, and nothing written or sent unasked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from datetime import datetime
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from rollout_lws.api import GateResult
from rollout_lws.cli.analyze import trying
from rollout_lws.cli.analyze.model import Tried, Ways, planned
from rollout_lws.cli.analyze.output import document, text
from rollout_lws.cli.analyze.trying import Trying
from rollout_lws.errors import ApiError
from rollout_lws.measuring.scraping import ProxyScraper
from rollout_lws.objects.resources import CRON_JOBS, JOBS
from rollout_lws.observe.observer import observe
from rollout_lws.prometheus.scrapes import Prometheus, Series
from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.metrics_endpoints import metrics_of_stable
from rollout_lws.sandbox.faults import Effect
from tests.scenarios.evals import cron_job
from tests.scenarios.measured import SLOW, WELL, MeasuredWorld, ServerClock
from tests.scenarios.names import NAMESPACE
from tests.scenarios.pickers import NEW, OLD, Pickers
from tests.scenarios.routed import BY_POOLS, create_provider, create_route, routing
from tests.scenarios.stories import at_rest
from tests.scenarios.test_http_gates import BOARD, BROKEN, NO, WARM, WARM_UP, create_board
from tests.scenarios.test_traffic_second_pool import start_picker

pytestmark = pytest.mark.looptime

FIRST_TOKEN = {"name": "first-token", "metric": {"signal": "TimeToFirstToken", "max": "1s"}}
TOO_TIGHT = {"name": "too-tight", "metric": {"signal": "TimeToFirstToken", "max": "250ms"}}
NO_SLOWER = {"name": "no-slower", "metric": {"signal": "TimeToFirstToken", "maxToStable": "150%"}}
EVALS = {"name": "evals", "job": {"fromCronJob": "evals"}}
OURS = {
    "name": "ours",
    "query": {"promQL": "sum(my_errors{{{new}}}) / sum(my_requests{{{new}}})", "max": "1%"},
    "window": 600,
}
#: A server that sees a hundred times as many requests.
BUSY = {**WELL, "requests-per-second": "40"}


@pytest.fixture
async def world() -> AsyncIterator[MeasuredWorld]:
    made = MeasuredWorld()
    yield made
    made.close()


async def serving(
    world: MeasuredWorld,
    *gates: dict[str, Any],
    like: Mapping[str, str] = BUSY,
    answers: Mapping[str, str] | None = None,
    **strategy: Any,
) -> None:
    """Four groups that serve, nothing is released; the first step of the plan has the gates."""
    create_route(world)
    world.create_workload()
    world.patch_lws({"leaderWorkerTemplate": {"workerTemplate": world.serve(like, answers=answers)}})
    first = {"replicas": 1, "traffic": "20%", "gates": list(gates)}
    given = {"canary": {"trafficRoutings": routing()}, **strategy}
    world.create_rollout(first, {"replicas": "100%"}, **given)
    await world.rest()
    world.start_controller()
    await world.until_state("Healthy")
    await world.rest()


async def tried(world: MeasuredWorld, **ways: Any) -> dict[str, Tried]:
    """What comes of each gate, by name; the cluster is as it was before."""
    seen = observe(world.view, "llama", world.now)
    assert seen is not None
    d = Draft.of(seen)
    before = world.server.store.version
    told: list[tuple[float, float]] = []

    def progress(done: float, window: float) -> None:
        told.append((round(done), window))

    found = await Trying(d, Ways(**ways), world.client, ServerClock(world.server), progress).all(planned(d.strategy))
    assert told == sorted(told)
    assert not told or told[-1][0] == told[-1][1]
    assert world.server.store.version == before
    return {each.planned.gate.name: each for each in found}


async def test_limits_are_judged_by_what_serves_in_the_words_of_gates(world: MeasuredWorld) -> None:
    await serving(world, FIRST_TOKEN, TOO_TIGHT, NO_SLOWER)
    began = world.now
    found = await tried(world)
    assert (world.now - began).total_seconds() == pytest.approx(60, abs=0.1)
    assert [each.result for each in found.values()] == [GateResult.PASSED, GateResult.FAILED, GateResult.PASSED]
    assert found["first-token"].message == (
        "p95 of the time to first token 683ms, at most 1s: 0.83 % of 9,600 requests took longer, between 0.63 % and"
        " 1 %, and 5 % may"
    )
    assert found["too-tight"].message.startswith("p95 of the time to first token 682ms, at most 250ms: 64 % of ")
    assert "(150% of stable's 683ms)" in found["no-slower"].message


async def test_gates_of_the_release_are_judged_once(world: MeasuredWorld) -> None:
    watched = {"gates": [{**TOO_TIGHT, "window": 600}], "trafficRoutings": routing()}
    await serving(world, FIRST_TOKEN, canary=watched)
    found = (await tried(world))["too-tight"]
    assert (found.planned.step, found.result) == (None, GateResult.FAILED)
    assert " release " in text([found])[1]


async def test_a_window_that_saw_too_few_requests_says_how_long_it_takes(world: MeasuredWorld) -> None:
    await serving(
        world, {"name": "errors", "metric": {"signal": "ErrorRate", "max": "2%"}}, like={**WELL, "failed": "1.5%"}
    )
    few = (await tried(world, window=30))["errors"]
    assert few.result is GateResult.INCONCLUSIVE
    assert few.message.endswith("a verdict takes about 1,112, which come in 1m10s: give a longer --window")
    assert text([few])[1].split()[:7] == ["errors", "1", "Inconclusive", "1.67%", "2%", "480", "1,112"]
    assert (await tried(world, window=600))["errors"].result is GateResult.PASSED


async def test_what_may_not_be_asked_is_an_error_that_says_which_right_is_missing(world: MeasuredWorld) -> None:
    await serving(world, FIRST_TOKEN)
    said = 'pods "llama-0" is forbidden: User "jane" cannot get resource "pods/proxy"'
    world.faults.add(Effect(refusal=ApiError(403, "Forbidden", said)), "get", "pods/proxy", count=None)
    found = (await tried(world))["first-token"]
    assert found.result is GateResult.ERROR
    assert "pod" in found.message
    assert "you may not get pods/proxy in namespace" in found.message


async def test_requests_are_sent_only_when_that_is_asked_for(world: MeasuredWorld) -> None:
    await serving(world, WARM_UP, BOARD, answers=WARM)
    create_board(world, NO)
    await world.rest()
    unasked = await tried(world)
    assert [each.result for each in unasked.values()] == [None, None]
    assert {each.message for each in unasked.values()} == {"not asked: --http asks it"}
    asked = await tried(world, http=True)
    assert (asked["warm-up"].result, asked["warm-up"].message) == (
        GateResult.PASSED,
        "the leaders of 4 groups have passed",
    )
    assert (asked["board"].result, asked["board"].message) == (
        GateResult.FAILED,
        "Service approvals answered Failed: frozen until Monday",
    )


async def test_a_group_that_answers_badly_is_named(world: MeasuredWorld) -> None:
    await serving(world, WARM_UP, answers=BROKEN)
    found = (await tried(world, http=True))["warm-up"]
    assert (found.result, found.message) == (GateResult.FAILED, "pod llama-0 answered 500")


async def test_a_job_is_never_run(world: MeasuredWorld) -> None:
    await serving(world, EVALS)
    missing = (await tried(world))["evals"]
    assert missing.result is GateResult.ERROR
    assert missing.message == "CronJob evals does not exist: create it, or name another one"
    world.server.create(CRON_JOBS, cron_job())
    there = (await tried(world))["evals"]
    assert (there.result, there.message) == (None, "not run: CronJob evals is there")
    assert world.server.list(JOBS, NAMESPACE) == []


async def test_while_a_release_is_on_the_stable_version_is_judged(world: MeasuredWorld) -> None:
    world.create_workload()
    world.patch_lws({"leaderWorkerTemplate": {"workerTemplate": world.serve(BUSY)}})
    world.create_rollout(
        {"replicas": 1, "pause": {}}, {"replicas": 2, "gates": [FIRST_TOKEN, NO_SLOWER]}, {"replicas": "100%"}
    )
    await world.rest()
    world.start_controller()
    await world.until_state("Healthy")
    world.apply({**SLOW, "requests-per-second": "40"}, "v2")
    await world.until_state("AwaitingApproval", 3600)
    await world.rest()
    found = await tried(world)
    assert {each.result for each in found.values()} == {GateResult.PASSED}
    assert {each.planned.step for each in found.values()} == {2}
    assert found["first-token"].shown["samples"] == 4 * 40 * 60


class Scraped:
    """A Prometheus that has scraped the leaders, and knows one number of everything else."""

    def __init__(self) -> None:
        self.points: dict[tuple[tuple[str, str], ...], list[tuple[float, float]]] = {}
        self.asked: list[tuple[Prometheus, str]] = []
        self.given: tuple[Any, ...] = ()

    async def scrape(self, world: MeasuredWorld, seconds: float) -> None:
        """Every 15 seconds, for so long."""
        seen = observe(world.view, "llama", world.now)
        assert seen is not None
        scraper = ProxyScraper(world.client)
        for _ in range(int(seconds / 15)):
            for pod in metrics_of_stable(Draft.of(seen)):
                for family in text_string_to_metric_families(await scraper.metrics(NAMESPACE, pod)):
                    for each in family.samples:
                        labels = {**each.labels, "__name__": each.name, "pod": pod.pod, "job": "j", "instance": pod.pod}
                        points = self.points.setdefault(tuple(sorted(labels.items())), [])
                        points.append((world.now.timestamp(), each.value))
            await world.sleep(15)

    def __call__(self, *given: Any) -> Scraped:
        self.given = given
        return self

    async def samples(self, _namespace: str, prometheus: Prometheus, query: str, at: datetime) -> list[Series]:
        self.asked.append((prometheus, query))
        begin, end = at.timestamp() - int(query.rpartition("[")[2].removesuffix("s]")), at.timestamp()
        within = {key: tuple(each for each in of if begin < each[0] <= end) for key, of in self.points.items()}
        return [Series(dict(key), points) for key, points in within.items() if points]

    async def number(self, _namespace: str, prometheus: Prometheus, query: str, _at: datetime) -> float:
        self.asked.append((prometheus, query))
        return 0.02

    async def close(self) -> None:
        await asyncio.sleep(0)


FROM_PROMETHEUS = {
    "from": "Prometheus",
    "prometheus": {
        "address": "http://prometheus.monitoring:9090",
        "secretKeyRef": {"name": "prometheus", "key": "token"},
        "matchers": {"cluster": "eu-1"},
    },
}


async def test_prometheus_judges_the_whole_window_of_the_past_at_once(
    world: MeasuredWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    prometheus = Scraped()
    monkeypatch.setattr(trying, "PrometheusClient", prometheus)
    await serving(world, FIRST_TOKEN, TOO_TIGHT, OURS, analysis=FROM_PROMETHEUS)
    await prometheus.scrape(world, 600)
    began = world.now
    found = await tried(world, prometheus="http://localhost:9090", token="t0ken")
    assert world.now == began
    assert [found[name].result for name in ("first-token", "too-tight")] == [GateResult.PASSED, GateResult.FAILED]
    assert found["first-token"].shown["samples"] == 45_600
    assert (found["ours"].result, found["ours"].message) == (
        GateResult.FAILED,
        "the query's value is 0.02, at most 0.01",
    )
    assert prometheus.given[-2:] == ("http://localhost:9090", "t0ken")
    servers = {(each.address, each.secret, each.matchers) for each, _ in prometheus.asked}
    assert servers == {("http://localhost:9090", "", (("cluster", "eu-1"),))}
    assert 'pod=~"llama-0|llama-1|llama-2|llama-3"' in prometheus.asked[-1][1]


async def test_the_stable_versions_picker_has_its_figures(
    world: MeasuredWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    pickers = Pickers(world, slow={OLD: 20.0})
    monkeypatch.setattr(trying, "PrometheusClient", lambda *_: pickers)
    create_provider(world, BY_POOLS)
    for name in (OLD, NEW):
        start_picker(world, name)
    picked = {"name": "picked", "metric": {"of": "EndpointPicker", "signal": "TimeToFirstToken", "max": "2s"}}
    step = {"replicas": 1, "traffic": "20%", "gates": [picked]}
    words = {"canary": {"trafficRoutings": routing(BY_POOLS)}, "analysis": {"from": "Prometheus"}}
    await at_rest(world, step, {"replicas": "100%"}, **words)
    await world.sleep(600)
    found = (await tried(world, prometheus="http://localhost:9090"))["picked"]
    assert found.result is GateResult.FAILED, found.message
    assert pickers.asked == {OLD}


async def test_an_api_server_that_does_not_answer_is_no_verdict(world: MeasuredWorld) -> None:
    await serving(world, FIRST_TOKEN, WARM_UP, EVALS, answers=WARM)
    world.faults.stopped = True
    found = await tried(world, http=True)
    assert {each.result for each in found.values()} == {GateResult.ERROR}
    assert "/metrics through the API server: no answer in 5 s" in found["first-token"].message


async def test_prometheus_is_asked_at_an_address_of_the_command_line_only(world: MeasuredWorld) -> None:
    await serving(world, FIRST_TOKEN, OURS, analysis=FROM_PROMETHEUS)
    found = await tried(world)
    assert {each.result for each in found.values()} == {GateResult.ERROR}
    assert all("give --prometheus URL" in each.message for each in found.values())


async def test_the_document_has_the_fields_of_records(world: MeasuredWorld) -> None:
    await serving(world, NO_SLOWER)
    (gate,) = document("default", "llama", "r1", [*(await tried(world)).values()])["gates"]
    assert {name: gate[name] for name in ("name", "step", "kind", "result", "value", "stableValue", "limit")} == {
        "name": "no-slower",
        "step": 1,
        "kind": "metric",
        "result": "Passed",
        "value": "683ms",
        "stableValue": "683ms",
        "limit": "1.02s",
    }
    assert gate["samples"] == gate["stableSamples"] == 9600
    assert gate["needed"] < gate["samples"]
