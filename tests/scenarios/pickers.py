"""A Prometheus that scrapes endpoint pickers, of stories that ask it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from rollout_lws.objects.resources import PODS
from rollout_lws.prometheus.scrapes import Prometheus, Series
from tests.scenarios.measured import MeasuredWorld
from tests.scenarios.names import NAMESPACE
from tests.scenarios.routed import CANARY_POOL, POOL

EVERY = 15
ERRORS, TOTAL = "llm_d_epp_request_error_total", "llm_d_epp_request_total"
FIRST = "llm_d_epp_request_ttft_seconds_bucket"
OLD, NEW = f"{POOL}-epp", f"{CANARY_POOL}-epp"


@dataclass
class Pickers:
    """A Prometheus that scrapes the pickers of a world. Servers were picked for four requests a second; so many in a
    hundred failed with each code, and so many were ``slow``, by picker. ``elsewhere`` are pods of the same names in
    another cluster, all of whose requests are slow.
    """

    world: MeasuredWorld
    codes: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    slow: Mapping[str, float] = field(default_factory=dict)
    elsewhere: bool = False
    asked: set[str] = field(default_factory=set)

    async def samples(self, _namespace: str, _prometheus: Prometheus, query: str, at: datetime) -> list[Series]:
        found = re.search(r'pod=~"([^"]*)"', query)
        assert found is not None
        self.asked |= {*found[1].split("|")}
        end = at.timestamp()
        first = (int(end) - _seconds(query)) // EVERY + 1
        times = [EVERY * number for number in range(first, int(end) // EVERY + 1)]
        return [each for pod in found[1].split("|") for each in self._of(pod, times) if each.points]

    def _of(self, pod: str, times: list[int]) -> list[Series]:
        live = self.world.get(PODS, pod)
        if live is None:
            return []
        begin = datetime.fromisoformat(live["metadata"]["creationTimestamp"]).timestamp()
        own = self._series(pod, begin, times, live["status"]["podIP"], self.slow.get(pod, 1.0) / 100)
        return own + (self._series(pod, begin, times, "10.200.0.9", 1.0) if self.elsewhere else [])

    def _series(self, pod: str, begin: float, times: list[int], address: str, slow: float) -> list[Series]:
        labels = {"pod": pod, "namespace": NAMESPACE, "instance": f"{address}:9090", "job": "pickers"}

        def series(name: str, share: float, /, **more: str) -> Series:
            points = tuple((time, 4 * share * (time - begin)) for time in times if time >= begin)
            return Series({**labels, "__name__": name, **more}, points)

        return [
            series("llm_d_epp_ready_endpoints", 0, name="pool"),
            series(TOTAL, 1, model_name="m"),
            *(
                series(ERRORS, percent / 100, model_name="m", error_code=code)
                for code, percent in self.codes.get(pod, {}).items()
            ),
            series(FIRST, 1 - slow, le="2", streaming="true"),
            series(FIRST, 1 - slow, le="8", streaming="true"),
            series(FIRST, 1, le="+Inf", streaming="true"),
        ]

    async def close(self) -> None:
        return


def _seconds(query: str) -> int:
    return int(query.rpartition("[")[2].removesuffix("s]"))
