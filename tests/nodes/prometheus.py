"""A real Prometheus, which scrapes pods of a run and evaluates the project's alerts.

Debian's is built without the discovery of pods, so what a PodMonitor asks for is written to files here as the
Prometheus operator would have it: the labels of a target, and how its path is scraped.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import re
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import aiohttp
import pytest
import yaml

from tests.e2e.daemons import daemon

Object = dict[str, Any]
T = TypeVar("T")

_PORT = 9090
_PATIENCE = 40.0
#: Seconds between two questions whether something has come about, at first and at most.
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 0.5


def program() -> Path | None:
    """The server: the environment variable PROMETHEUS, on the PATH, or in the directory of the tool, PROMTOOL."""
    tool = os.environ.get("PROMTOOL")
    beside = shutil.which("prometheus", path=str(Path(tool).parent)) if tool else None
    found = os.environ.get("PROMETHEUS") or shutil.which("prometheus") or beside
    return Path(found) if found else None


needs_prometheus = pytest.mark.skipif(
    program() is None,
    reason="needs prometheus: apt-get download prometheus && dpkg -x prometheus_*.deb DIRECTORY, then"
    " PROMETHEUS=DIRECTORY/usr/bin/prometheus",
)


@dataclass(frozen=True, slots=True)
class Monitor:
    """What a PodMonitor with one endpoint says; the port of a pod is found by its name."""

    job: str
    namespace: str
    selector: Mapping[str, str]
    pod_labels: tuple[str, ...]
    port: str
    path: str
    honor_labels: bool

    @classmethod
    def of(cls, monitor: Object) -> Monitor:
        meta, spec = monitor["metadata"], monitor["spec"]
        (endpoint,) = spec["podMetricsEndpoints"]
        return cls(
            job=f"{meta['namespace']}/{meta['name']}",
            namespace=meta["namespace"],
            selector=spec["selector"]["matchLabels"],
            pod_labels=tuple(spec.get("podTargetLabels", ())),
            port=endpoint["port"],
            path=endpoint.get("path", "/metrics"),
            honor_labels=endpoint.get("honorLabels", False),
        )

    def targets(self, pods: Iterable[Object]) -> list[Object]:
        """Those of its pods that have an address and have not ended, as a file of targets has them."""
        return [found for pod in pods if self._selects(pod) for found in self._of(pod)]

    def _selects(self, pod: Object) -> bool:
        labels = pod["metadata"].get("labels") or {}
        ended = pod["status"].get("phase") in ("Succeeded", "Failed")
        return pod["metadata"]["namespace"] == self.namespace and self.selector.items() <= labels.items() and not ended

    def _of(self, pod: Object) -> Iterable[Object]:
        meta, address = pod["metadata"], pod["status"].get("podIP")
        for container in pod["spec"]["containers"]:
            for port in container.get("ports", ()):
                if address and port.get("name") == self.port:
                    labels = {
                        "job": self.job,
                        "namespace": meta["namespace"],
                        "pod": meta["name"],
                        "container": container["name"],
                        "endpoint": self.port,
                        **{_as_label(each): meta["labels"][each] for each in self.pod_labels if each in meta["labels"]},
                    }
                    yield {"targets": [f"{address}:{port['containerPort']}"], "labels": labels}


def _as_label(name: str) -> str:
    return re.sub(r"\W", "_", name)


@dataclass(frozen=True, slots=True)
class Series:
    labels: Mapping[str, str]
    values: tuple[float, ...]

    @property
    def last(self) -> float:
        return self.values[-1]


def has_data(answer: Iterable[Series]) -> bool:
    """Whether a board shows anything of it: a quantile of nothing is a series too, of NaN."""
    return any(not math.isnan(value) for series in answer for value in series.values)


class Prometheus:
    """A running one; ``prometheus`` makes one. AssertionError for a question that it cannot answer, or warns of."""

    def __init__(self, session: aiohttp.ClientSession, directory: Path, monitors: Iterable[Monitor]) -> None:
        self._session = session
        self._directory = directory
        self._monitors = {each.job: each for each in monitors}

    def configure(self, rules: Path) -> Path:
        """Its configuration, with a job for each monitor, whose targets are none so far."""
        for each in self._monitors.values():
            self.write(each, ())
        jobs = [
            {
                "job_name": each.job,
                "honor_labels": each.honor_labels,
                "metrics_path": each.path,
                "file_sd_configs": [{"files": [str(self._file(each))], "refresh_interval": "1s"}],
            }
            for each in self._monitors.values()
        ]
        # Alerts are evaluated each second too: how long they wait is their own.
        often = {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"}
        path = self._directory / "prometheus.yaml"
        path.write_text(yaml.safe_dump({"global": often, "rule_files": [str(rules)], "scrape_configs": jobs}))
        return path

    def write(self, monitor: Monitor, pods: Iterable[Object]) -> set[str]:
        """From now on these pods are scraped for ``monitor``, as far as it selects them; gives their names.

        It takes up to ten seconds: Prometheus hears of a file at once, but looks every five whether there is news.
        """
        targets = monitor.targets(pods)
        file = self._file(monitor)
        unfinished = file.with_suffix(".new")
        unfinished.write_text(json.dumps(targets))
        unfinished.rename(file)
        return {each["labels"]["pod"] for each in targets}

    def _file(self, monitor: Monitor) -> Path:
        return self._directory / f"{monitor.job.replace('/', '-')}.json"

    async def query(self, expr: str) -> list[Series]:
        """What ``expr`` gives now."""
        data = await self._get("query", query=expr)
        return [Series(each["metric"], (float(each["value"][1]),)) for each in data["result"]]

    async def query_range(self, expr: str, start: float, end: float) -> list[Series]:
        """What it gives for each second of a time."""
        data = await self._get("query_range", query=expr, start=str(start), end=str(end), step="1")
        return [Series(each["metric"], tuple(float(value) for _, value in each["values"])) for each in data["result"]]

    async def label_values(self, metric: str, label: str) -> list[str]:
        found: list[str] = await self._get(f"label/{label}/values", **{"match[]": metric})
        return found

    async def targets(self) -> list[Object]:
        found: list[Object] = (await self._get("targets", state="active"))["activeTargets"]
        return found

    async def rules(self) -> dict[str, Object]:
        """Those that alert, by name."""
        groups = (await self._get("rules", type="alert"))["groups"]
        return {rule["name"]: rule for group in groups for rule in group["rules"]}

    async def scrapes(self, monitor: Monitor, pods: set[str]) -> None:
        """Until these are the targets of ``monitor``, and all are up."""

        async def seen() -> bool:
            return await self._health(monitor) == dict.fromkeys(pods, "up")

        try:
            await self.until(seen)
        except TimeoutError:
            raise AssertionError(f"{monitor.job}: {await self._health(monitor)}, not {sorted(pods)} up") from None

    async def _health(self, monitor: Monitor) -> dict[str, str]:
        targets = [each for each in await self.targets() if each["labels"]["job"] == monitor.job]
        return {each["labels"]["pod"]: each["lastError"] or each["health"] for each in targets}

    async def until(self, asked: Callable[[], Awaitable[T]], seconds: float = _PATIENCE) -> T:
        """The first answer that is not empty. TimeoutError after ``seconds``.

        Prometheus has no watch, nor has a scrape an end that could be waited for, so it is asked again and again.
        """
        pause = _FIRST_PAUSE
        async with asyncio.timeout(seconds):
            while not (answer := await asked()):
                await asyncio.sleep(pause)
                pause = min(pause * 1.5, _LONGEST_PAUSE)
        return answer

    async def _get(self, what: str, **parameters: str) -> Any:
        async with self._session.get(f"/api/v1/{what}", params=parameters) as response:
            answer = await response.json()
        assert answer["status"] == "success", (parameters, answer)
        assert not answer.get("warnings"), (parameters, answer["warnings"])
        return answer["data"]

    async def _is_ready(self) -> bool:
        try:
            async with self._session.get("/-/ready") as response:
                return response.ok
        except aiohttp.ClientConnectionError:
            return False


@asynccontextmanager
async def prometheus(
    directory: Path, logs: Path, rules: Path, monitors: Iterable[Monitor]
) -> AsyncIterator[Prometheus]:
    """One from here to the end of the block, whose files are in ``directory``."""
    server = program()
    assert server is not None
    async with aiohttp.ClientSession(f"http://127.0.0.1:{_PORT}") as session:
        made = Prometheus(session, directory, monitors)
        flags = {
            "config.file": made.configure(rules),
            "storage.tsdb.path": directory / "data",
            "web.listen-address": f"127.0.0.1:{_PORT}",
            "log.level": "warn",
        }
        async with daemon(server, *(f"--{name}={value}" for name, value in flags.items()), logs=logs):
            await made.until(made._is_ready)
            yield made
