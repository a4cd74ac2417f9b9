"""What model servers in pods expose: metrics in the names of vLLM and SGLang, of requests that need not be sent.

Annotations of a pod say how its server behaves; without ``engine`` it serves nothing. Counters grow with time, at the
rates that the annotations name now, so that a change of one is a change of behaviour from then on::

    sandbox.rollouts.kruise.io/model-server-engine: vLLM  # or SGLang
    sandbox.rollouts.kruise.io/model-server-requests-per-second: "2"
    sandbox.rollouts.kruise.io/model-server-first-token-seconds: "0.3"  # median; times are lognormal
    sandbox.rollouts.kruise.io/model-server-token-seconds: "0.03"
    sandbox.rollouts.kruise.io/model-server-failed: 1%
    sandbox.rollouts.kruise.io/model-server-running: "3"
    sandbox.rollouts.kruise.io/model-server-waiting: "0"

Where a meter knows how many requests each pod is given, these are counted, and no rate is: see ``ModelServers.count``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from statistics import NormalDist
from typing import TypeAlias

from rollout_lws.objects.resources import PODS
from rollout_lws.sandbox.apiserver import ApiServer
from rollout_lws.sandbox.behaviours.base import Object, annotations_of, running_and_ready
from rollout_lws.sandbox.store import Event

PREFIX = "sandbox.rollouts.kruise.io/model-server-"
PATH = "/metrics"
#: vLLM's edges, in seconds.
_FIRST_EDGES = (0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0)
_TOKEN_EDGES = (0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0)
#: Standard deviation of the logarithm of times.
_SPREAD = 0.5
#: Tokens of an answer.
_TOKENS = 50
_NORMAL = NormalDist()

#: How many requests the pod with a uid has been given so far.
Given: TypeAlias = Callable[[str], float]


class _Engine(StrEnum):
    VLLM = "vLLM"
    SGLANG = "SGLang"


@dataclass(frozen=True, slots=True)
class _Behaviour:
    """Rates and medians in seconds; ``failed`` is a share."""

    engine: _Engine
    rate: float
    first: float
    token: float
    failed: float
    running: float
    waiting: float

    @classmethod
    def of(cls, pod: Object) -> _Behaviour | None:
        """None for a pod that has no model server, or one that is described in another way."""
        named = annotations_of(pod).items()
        told = {name.removeprefix(PREFIX): text for name, text in named if name.startswith(PREFIX)}
        try:
            return cls(
                engine=_Engine(told["engine"]),
                rate=float(told.get("requests-per-second", "1")),
                first=float(told.get("first-token-seconds", "0.3")),
                token=float(told.get("token-seconds", "0.03")),
                failed=float(told.get("failed", "0%").removesuffix("%")) / 100,
                running=float(told.get("running", "1")),
                waiting=float(told.get("waiting", "0")),
            )
        except (KeyError, ValueError):
            return None


@dataclass(frozen=True, slots=True)
class _Counted:
    """Until epoch second ``at``: requests, of which ``failed``, and how many took at most so long, by edge.

    ``given`` is how many the pod had been given by then, None where the annotation's rate says how many there are.
    """

    at: float
    given: float | None
    requests: float = 0.0
    failed: float = 0.0
    first: tuple[float, ...] = field(default=(0.0,) * len(_FIRST_EDGES))
    token: tuple[float, ...] = field(default=(0.0,) * len(_TOKEN_EDGES))

    def until(self, now: float, given: float | None, behaviour: _Behaviour) -> _Counted:
        if given is None:
            more = max(0.0, now - self.at) * behaviour.rate
        else:
            more = max(0.0, given - (self.given or 0.0))
        return replace(
            self,
            at=now,
            given=given,
            requests=self.requests + more,
            failed=self.failed + more * behaviour.failed,
            first=_within(self.first, _FIRST_EDGES, behaviour.first, more),
            token=_within(self.token, _TOKEN_EDGES, behaviour.token, more * _TOKENS),
        )


def _within(before: tuple[float, ...], edges: tuple[float, ...], median: float, more: float) -> tuple[float, ...]:
    shares = (_NORMAL.cdf(math.log(edge / median) / _SPREAD) for edge in edges)
    return tuple(count + more * share for count, share in zip(before, shares, strict=True))


class ModelServers:
    """Those of all pods of a cluster."""

    def __init__(self, server: ApiServer) -> None:
        self._server = server
        self._counted: dict[str, _Counted] = {}
        self._given: Given | None = None
        server.store.subscribe(self._follow)

    def count(self, given: Given) -> None:
        """From now on servers count the requests that ``given`` tells of, instead of those of the annotation."""
        self._given = given

    def metrics(self, namespace: str, name: str) -> str | None:
        """What a pod answers at PATH; None when no server in it answers."""
        pod = self._server.store.get(PODS, namespace, name)
        behaviour = _Behaviour.of(pod) if pod is not None and running_and_ready(pod) else None
        if pod is None or behaviour is None:
            return None
        now, uid = self._server.clock(), pod["metadata"]["uid"]
        given = self._given_to(uid)
        counted = self._counted.get(uid, _Counted(now, given)).until(now, given, behaviour)
        self._counted[uid] = counted
        return "".join(f"{line}\n" for line in _EXPOSED[behaviour.engine](counted, behaviour))

    def _follow(self, event: Event) -> None:
        """Requests come from when a pod is ready; those before a change of its annotations are of the kind before."""
        if event.resource != PODS:
            return
        uid, now = event.object["metadata"]["uid"], self._server.clock()
        if event.type == "DELETED":
            self._counted.pop(uid, None)
            return
        before = _Behaviour.of(event.previous) if event.previous is not None else None
        if running_and_ready(event.object) and _Behaviour.of(event.object) is not None:
            given = self._given_to(uid)
            counted = self._counted.get(uid, _Counted(now, given))
            self._counted[uid] = (
                counted.until(now, given, before) if before is not None else replace(counted, at=now, given=given)
            )

    def _given_to(self, uid: str) -> float | None:
        return self._given(uid) if self._given is not None else None


def _vllm(counted: _Counted, behaviour: _Behaviour) -> Iterator[str]:
    labels = {"engine": "0", "model_name": "model"}
    yield from _gauge("vllm:num_requests_running", behaviour.running, labels)
    yield from _gauge("vllm:num_requests_waiting", behaviour.waiting, labels)
    yield "# TYPE vllm:request_success_total counter"
    for reason, count in {
        "stop": counted.requests - counted.failed,
        "length": 0.0,
        "abort": 0.0,
        "error": counted.failed,
        "repetition": 0.0,
    }.items():
        yield _sample("vllm:request_success_total", {**labels, "finished_reason": reason}, count)
    yield from _counter("vllm:generation_tokens_total", counted.requests * _TOKENS, labels)
    yield from _histogram("vllm:time_to_first_token_seconds", _FIRST_EDGES, counted.first, counted.requests, labels)
    yield from _histogram(
        "vllm:inter_token_latency_seconds", _TOKEN_EDGES, counted.token, counted.requests * _TOKENS, labels
    )


def _sglang(counted: _Counted, behaviour: _Behaviour) -> Iterator[str]:
    labels = {"engine_type": "unified", "model_name": "model", "tp_rank": "0"}
    yield from _gauge("sglang:num_running_reqs", behaviour.running, labels)
    yield from _gauge("sglang:num_queue_reqs", behaviour.waiting, labels)
    yield from _counter("sglang:num_requests_total", counted.requests, labels)
    yield from _counter("sglang:num_aborted_requests_total", counted.failed, labels)
    yield from _counter("sglang:generation_tokens_total", counted.requests * _TOKENS, labels)
    # Its histograms appear with the first request.
    if counted.requests >= 1:
        yield from _histogram(
            "sglang:time_to_first_token_seconds", _FIRST_EDGES, counted.first, counted.requests, labels
        )
        yield from _histogram(
            "sglang:inter_token_latency_seconds", _TOKEN_EDGES, counted.token, counted.requests * _TOKENS, labels
        )


_EXPOSED: Mapping[_Engine, Callable[[_Counted, _Behaviour], Iterator[str]]] = {
    _Engine.VLLM: _vllm,
    _Engine.SGLANG: _sglang,
}


def _gauge(name: str, value: float, labels: Mapping[str, str]) -> Iterator[str]:
    yield f"# TYPE {name} gauge"
    yield _sample(name, labels, value)


def _counter(name: str, value: float, labels: Mapping[str, str]) -> Iterator[str]:
    yield f"# TYPE {name} counter"
    yield _sample(name, labels, value)


def _histogram(
    name: str, edges: tuple[float, ...], cumulative: tuple[float, ...], total: float, labels: Mapping[str, str]
) -> Iterator[str]:
    yield f"# TYPE {name} histogram"
    for edge, count in zip((*map(str, edges), "+Inf"), (*cumulative, total), strict=True):
        yield _sample(f"{name}_bucket", {**labels, "le": edge}, count)
    yield _sample(f"{name}_count", labels, total)


def _sample(name: str, labels: Mapping[str, str], value: float) -> str:
    """Requests are whole: what is under way has not been counted."""
    told = ",".join(f'{label}="{text}"' for label, text in sorted(labels.items()))
    return f"{name}{{{told}}} {float(math.floor(value + 1e-9))}"
