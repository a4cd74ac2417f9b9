"""A real Prometheus that scrapes model servers: the verdicts are those of the servers' own metrics, on the same run."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from rollout_lws.analysis.criterion import Criterion, Verdict
from rollout_lws.analysis.idling import Idle, Idling
from rollout_lws.analysis.kinds import Signal
from rollout_lws.analysis.signals import SOURCES, families
from rollout_lws.analysis.trial import Trial
from rollout_lws.kube.client import Client
from rollout_lws.measuring.pods import PodFigures
from rollout_lws.measuring.prometheus_client import PrometheusClient
from rollout_lws.measuring.prometheus_sources import PrometheusFigures, PrometheusQueries
from rollout_lws.measuring.prometheus_work import PrometheusWork
from rollout_lws.measuring.rounds import Measuring
from rollout_lws.origins import Allowed
from rollout_lws.prometheus.poll import Poll, Query
from rollout_lws.prometheus.scrapes import Prometheus, ScrapedPod, samples_query
from rollout_lws.rollout.decision import Endpoint, Measurement, Question, Stored
from tests.controller.test_verdict_table import Server, bad, well
from tests.e2e.daemons import daemon
from tests.kube.fakes import FakeTransport
from tests.kubectl.programs import held_port
from tests.nodes.prometheus import needs_prometheus, program

pytestmark = [needs_prometheus, pytest.mark.long, pytest.mark.asyncio, pytest.mark.timeout(180)]

#: Seconds of a round, and of a window.
EVERY, WINDOW = 1.0, 12.0
NAMESPACE, KEY = "team", ("team", "llama")


class _Clock:
    def now(self) -> datetime:
        return datetime.now(UTC)

    def loop_time(self, moment: datetime) -> float:
        return asyncio.get_running_loop().time() + (moment - self.now()).total_seconds()


@dataclass
class Pod:
    """A model server on loopback that gets better or worse requests as ``like`` says, a round's each second."""

    name: str
    like: Any
    port: int = 0

    def server(self) -> Server:
        made: Server = self.like(asyncio.get_running_loop().time())
        return made

    async def metrics(self, _: web.Request) -> web.Response:
        return web.Response(body=self.server().text().encode(), headers={"content-type": "text/plain; version=0.0.4"})


class Scraper:
    """Reads pods as the controller's own does, but on loopback, which that one refuses."""

    def __init__(self, pods: dict[str, Pod]) -> None:
        self._pods = pods
        self._session = aiohttp.ClientSession()

    async def metrics(self, _: str, endpoint: Endpoint) -> str:
        async with self._session.get(f"http://127.0.0.1:{self._pods[endpoint.pod].port}/metrics") as response:
            return await response.text()

    async def close(self) -> None:
        await self._session.close()


@asynccontextmanager
async def scraped(directory: Path, *pods: Pod) -> AsyncIterator[str]:
    """A Prometheus that scrapes them each second; its URL."""
    async with AsyncExitStack() as stack:
        for pod in pods:
            application = web.Application()
            application.router.add_get("/metrics", pod.metrics)
            runner = web.AppRunner(application)
            await runner.setup()
            stack.push_async_callback(runner.cleanup)
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            pod.port = runner.addresses[0][1]
        targets = [
            {"targets": [f"127.0.0.1:{pod.port}"], "labels": {"namespace": NAMESPACE, "pod": pod.name}} for pod in pods
        ]
        config = directory / "prometheus.json"
        jobs = [{"job_name": "llama", "scrape_interval": "1s", "static_configs": targets}]
        config.write_text(json.dumps({"scrape_configs": jobs}))
        found, port = program(), held_port()
        assert found is not None
        arguments = (
            f"--config.file={config}",
            f"--storage.tsdb.path={directory / 'data'}",
            f"--web.listen-address=127.0.0.1:{port}",
        )
        await stack.enter_async_context(daemon(found, *arguments, logs=directory))
        url = f"http://127.0.0.1:{port}"
        await _scrapes(url, len(pods))
        yield url


async def _scrapes(url: str, count: int) -> None:
    async with aiohttp.ClientSession() as session, asyncio.timeout(60):
        while True:
            try:
                async with session.get(f"{url}/api/v1/query", params={"query": "sum(up)"}) as response:
                    found = (await response.json())["data"]["result"]
            except aiohttp.ClientConnectionError:
                found = []
            if found and float(found[0]["value"][1]) == count:
                return
            await asyncio.sleep(0.1)


@asynccontextmanager
async def asking(url: str) -> AsyncIterator[PrometheusClient]:
    allowed = [Allowed.parse(url, "--prometheus")]
    client = PrometheusClient(Client(FakeTransport()), _Clock(), allowed, url)
    try:
        yield client
    finally:
        await client.close()


async def test_the_verdicts_are_those_of_the_servers_own_metrics(tmp_path: Path) -> None:
    good, slow, stable = Pod("good", well), Pod("slow", bad), Pod("stable", well)
    pods = {pod.name: pod for pod in (good, slow, stable)}
    criteria = {
        "first": Criterion(Signal.TIME_TO_FIRST_TOKEN, limit=1.0, window=WINDOW),
        "errors": Criterion(Signal.ERROR_RATE, limit=0.02, window=WINDOW),
        "compared": Criterion(Signal.TIME_TO_FIRST_TOKEN, to_stable=1.5, window=WINDOW),
        "queue": Criterion(Signal.QUEUE_LENGTH, limit=8.0, window=WINDOW),
        "stalled": Criterion(Signal.STALLED, limit=30.0, window=WINDOW),
    }
    async with scraped(tmp_path, *pods.values()) as url, asking(url) as client, asyncio.TaskGroup() as tasks:
        since = datetime.now(UTC)
        sources = [PodFigures(Scraper(pods), EVERY), PrometheusFigures(client, _Clock(), EVERY)]

        def start(work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
            return tasks.create_task(work, name=name)

        def endpoint(pod: Pod) -> Endpoint:
            return Endpoint(f"uid-{pod.name}", pod.name, "", pod.port, "/metrics", since)

        measuring = Measuring(sources, _Clock(), start, lambda _: None)
        wanted = tuple(
            Measurement(Question(f"{pod.name} {name}", since, asks), (endpoint(pod),), (endpoint(stable),))
            for pod in (good, slow)
            for name, criterion in criteria.items()
            for asks in (criterion, Stored(criterion, Prometheus()))
        )
        await measuring.want(KEY, wanted)
        async with asyncio.timeout(60):
            while True:
                await asyncio.sleep(EVERY)
                answers = measuring.answers(*KEY)
                if len(answers) == len(wanted) and all(_trial(each).verdict is not None for each in answers.values()):
                    break
        verdicts: dict[str, list[Verdict | None]] = {}
        for question, answer in answers.items():
            verdicts.setdefault(question.gate, []).append(_trial(answer).verdict)
        await measuring.close()
    passed, failed = [Verdict.PASSED] * 2, [Verdict.FAILED] * 2
    assert verdicts == {
        **{f"good {name}": passed for name in criteria},
        **{f"slow {name}": failed for name in criteria},
        "slow stalled": passed,
    }


def _trial(answer: Any) -> Trial:
    assert isinstance(answer, Trial)
    return answer


async def test_a_busy_pod_is_waited_for_and_an_idle_one_goes(tmp_path: Path) -> None:
    runs = {"busy": 3, "free": 0}
    pods = [Pod(name, lambda now, name=name: well(now, running=runs[name], waiting=0)) for name in runs]
    async with scraped(tmp_path, *pods) as url, asking(url) as client, asyncio.TaskGroup() as tasks:

        def start(work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
            return tasks.create_task(work, name=name)

        measuring = Measuring([PrometheusWork(client, _Clock())], _Clock(), start, lambda _: None)
        since = datetime.now(UTC)
        asked = Question("", since, Stored(Idle(), Prometheus()))
        leaving = tuple(Endpoint(f"uid-{pod.name}", pod.name, "", 0, "/metrics") for pod in pods)
        await measuring.want(KEY, (Measurement(asked, leaving),))

        async def idle(name: str) -> dict[str, bool]:
            """Which pods are idle, once this one is."""
            async with asyncio.timeout(30):
                while True:
                    await asyncio.sleep(0.1)
                    answer = measuring.answers(*KEY).get(asked)
                    if isinstance(answer, Idling) and answer.pods[f"uid-{name}"].is_idle:
                        assert not any(each.trouble for each in answer.pods.values())
                        return {uid: heard.is_idle for uid, heard in answer.pods.items()}

        assert await idle("free") == {"uid-busy": False, "uid-free": True}
        assert datetime.now(UTC) - since >= timedelta(seconds=5)
        runs["busy"], ended = 0, datetime.now(UTC)
        assert await idle("busy") == {"uid-busy": True, "uid-free": True}
        assert datetime.now(UTC) - ended >= timedelta(seconds=5)
        await measuring.close()


async def test_every_query_of_ours_is_answered(tmp_path: Path) -> None:
    """Of each signal and engine, and a user's, for what is there and what is not."""
    pod = Pod("good", well)
    async with scraped(tmp_path, pod) as url, asking(url) as client:
        for signal in Signal:
            for engine in (None, *(each for each, of in SOURCES.items() if signal in of)):
                names = families(signal, engine)
                text = samples_query(Prometheus(), NAMESPACE, names, [ScrapedPod("u", "good", 0.0)], 30)
                found = await client.samples(NAMESPACE, Prometheus(), text, datetime.now(UTC))
                assert {series.labels["pod"] for series in found} <= {"good"}
        source = PrometheusQueries(client, _Clock(), EVERY, confine=True)
        for query, trouble in {
            "sum(increase(vllm:request_success_total{{{new}}}[{{window}}]))": "",
            'sum(vllm:num_requests_running{pod=~"{{pods.new}}", namespace="{{namespace}}"}) or vector(0)': "",
            "absent(vllm:num_requests_running{{{new}}})": "no result",
            "vllm:request_success_total{{{new}}}": "has 2 results",
            "0 / sum(vllm:num_requests_running{{{stable}}} * 0)": "the stable version has no ready group",
        }.items():
            told = await _told(source, query, trouble)
            assert bool(told) == bool(trouble) and trouble in told, query


async def _told(source: PrometheusQueries, query: str, trouble: str) -> str:
    """What the query is in trouble for; of one that should not be, once two scrapes are there."""
    now = datetime.now(UTC)
    asked = Measurement(
        Question("g", now - timedelta(seconds=60), Query(Prometheus(), query, limit=1.0)),
        (Endpoint("u", "good", "", 1, "/metrics", now),),
    )
    async with asyncio.timeout(30):
        while True:
            folds = await source.round(NAMESPACE, (asked,), {})
            answer = folds[asked.question](None, now.timestamp())
            assert isinstance(answer, Poll)
            if trouble or not answer.trouble:
                return answer.trouble
            await asyncio.sleep(0.2)
