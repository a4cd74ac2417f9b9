"""A world whose model servers tell figures, which the decision loop measures as the controller does, over requests."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from rollout_lws.kube.client import Client
from rollout_lws.measuring.calling import HttpCalls, ProxyCaller
from rollout_lws.measuring.pods import PodFigures, PodWork
from rollout_lws.measuring.prometheus_client import PrometheusClient
from rollout_lws.measuring.prometheus_sources import PrometheusFigures
from rollout_lws.measuring.prometheus_work import PrometheusWork
from rollout_lws.measuring.rounds import Measuring
from rollout_lws.measuring.scraping import ProxyScraper, Scraper
from rollout_lws.rollout.decision import Answered, Question, Wanted
from rollout_lws.sandbox.apiserver import ApiServer
from rollout_lws.sandbox.behaviours.cluster import Options
from rollout_lws.sandbox.faults import Faults
from rollout_lws.sandbox.model_servers import PREFIX
from rollout_lws.sandbox.pod_answers import PREFIX as ANSWERS
from rollout_lws.sandbox.transport import DirectTransport
from rollout_lws.settings import SCRAPE_EVERY
from tests.scenarios.names import NAMESPACE
from tests.scenarios.store_world import StoreWorld
from tests.scenarios.world import World

#: A server that is well: two requests a second, nearly all of which get their first token within a second.
WELL: Mapping[str, str] = {"engine": "vLLM", "requests-per-second": "4", "first-token-seconds": "0.3"}
#: And a version that is three times as slow.
SLOW: Mapping[str, str] = {**WELL, "first-token-seconds": "0.9"}


class ServerClock:
    def __init__(self, server: ApiServer) -> None:
        self._server = server

    def now(self) -> datetime:
        return datetime.fromtimestamp(self._server.clock(), UTC)

    def loop_time(self, moment: datetime) -> float:
        return asyncio.get_running_loop().time() + (moment - self.now()).total_seconds()


class _MeasuredStore(StoreWorld):
    measuring: Measuring | None = None

    def answers(self, rollout: str) -> Mapping[Question, Answered]:
        return self.measuring.answers(NAMESPACE, rollout) if self.measuring is not None else {}


class MeasuredWorld(World):
    """``faults`` are between the controller and the pods; ``between`` may put something before its scraper. There is no
    Prometheus but the ``prometheus`` that a story gives.
    """

    view: _MeasuredStore

    def __init__(self, options: Options | None = None) -> None:
        super().__init__(options)
        self.view = _MeasuredStore(self.server)
        self.faults = Faults()
        self._transport = DirectTransport(self.server, self.faults)
        self.between: Callable[[Scraper], Scraper] = lambda scraper: scraper
        self.prometheus: PrometheusClient | None = None
        self._measures: set[asyncio.Task[None]] = set()

    @property
    def client(self) -> Client:
        """One whose requests meet the faults."""
        return Client(self._transport)

    def start_controller(self, budget: int | None = None) -> None:
        if self.view.measuring is None:
            client, clock = self.client, ServerClock(self.server)
            scraper = self.between(ProxyScraper(client))
            prometheus = self.prometheus or PrometheusClient(client, clock, (), "")
            sources = [
                PodFigures(scraper, SCRAPE_EVERY),
                PodWork(scraper),
                PrometheusFigures(prometheus, clock, SCRAPE_EVERY),
                PrometheusWork(prometheus, clock),
                HttpCalls(client, ProxyCaller(client), SCRAPE_EVERY),
            ]
            self.view.measuring = Measuring(sources, clock, self._start, lambda _: self._wake())
        super().start_controller(budget)

    def stop_controller(self) -> None:
        """What a controller has counted goes with it."""
        super().stop_controller()
        self.view.measuring = None
        for task in self._measures:
            task.cancel()
        self._measures.clear()

    def measure(self, wanted: Wanted) -> None:
        if self.view.measuring is not None:
            self._start(self.view.measuring.want((NAMESPACE, self.name), wanted.measurements), "want")

    def _start(self, work: Any, name: str) -> asyncio.Task[None]:
        task: asyncio.Task[None] = asyncio.get_running_loop().create_task(work, name=name)
        self._measures.add(task)
        return task

    def serve(
        self, behaviour: Mapping[str, str], tag: str = "v1", answers: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        """The template of a version whose servers behave so, and answer so."""
        (server,) = self.containers.of(tag)
        annotations = {PREFIX + name: text for name, text in behaviour.items()}
        annotations |= {ANSWERS + name: text for name, text in (answers or {}).items()}
        return {
            "metadata": {"labels": {"app": "llama"}, "annotations": annotations},
            "spec": {"containers": [{**server, "ports": [{"name": "http", "containerPort": 8000}]}]},
        }

    def apply(self, behaviour: Mapping[str, str], tag: str, answers: Mapping[str, str] | None = None) -> None:
        """A new version whose servers behave so, and answer so."""
        self.patch_lws({"leaderWorkerTemplate": {"workerTemplate": self.serve(behaviour, tag, answers)}})
