"""Where each engine exposes the signals, as data.

Read from the packages of vLLM 0.13 to 0.32, SGLang 0.5, TensorRT-LLM's and Dynamo 1.6's servers, and TGI 3, and from
the sources of llm-d's router and of the Gateway API inference extension.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from rollout_lws.analysis.kinds import Engine, Exporter, Router, Signal
from rollout_lws.analysis.readings import (
    Counts,
    Exposition,
    Histogram,
    Level,
    Nothing,
    Read,
    Sample,
    Trouble,
    Work,
    histogram_of,
    whole,
)


@dataclass(frozen=True, slots=True)
class Series:
    """Those of a family whose labels have one of the values named in ``where``; "" stands for an absent label."""

    name: str
    where: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def found(self, exposition: Exposition) -> list[Sample]:
        return [each for each in exposition.samples.get(self.name, ()) if self._fits(each)]

    def _fits(self, sample: Sample) -> bool:
        return all(sample.labels.get(label, "") in values for label, values in self.where.items())


@dataclass(frozen=True, slots=True)
class Buckets:
    """A histogram of seconds; of its series those whose labels have one of the values named in ``where``, as Series."""

    name: str
    where: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def families(self) -> tuple[str, ...]:
        return (self.name,)

    def read(self, exposition: Exposition) -> Read | None:
        typed = exposition.types.get(self.name, "histogram")
        if typed not in ("histogram", "unknown"):
            return Trouble(f"{self.name} is a {typed}, not a histogram")
        found = Series(f"{self.name}_bucket", self.where).found(exposition)
        return histogram_of(found) if found else None


@dataclass(frozen=True, slots=True)
class Ratio:
    """Counters: the sum of ``bad`` among that of ``all_of``, in which the bad ones are."""

    bad: tuple[Series, ...]
    all_of: tuple[Series, ...]

    @property
    def families(self) -> tuple[str, ...]:
        return tuple(each.name for each in (*self.bad, *self.all_of))

    def read(self, exposition: Exposition) -> Read | None:
        everything = [sample for series in self.all_of for sample in series.found(exposition)]
        if not everything:
            return None
        bad = _sum(sample for series in self.bad for sample in series.found(exposition))
        total = _sum(everything)
        return Trouble("a counter is not a number") if bad is None or total is None else Counts(bad, total)


@dataclass(frozen=True, slots=True)
class Gauge:
    """Gauges, added over the parts of a server or, where they are shares, averaged."""

    series: Series
    averaged: bool = False

    @property
    def families(self) -> tuple[str, ...]:
        return (self.series.name,)

    def read(self, exposition: Exposition) -> Read | None:
        found = self.series.found(exposition)
        if not found:
            return None
        total = _sum(found)
        if total is None:
            return Trouble(f"{self.series.name} is not a number")
        return Level(total / len(found) if self.averaged else total)


@dataclass(frozen=True, slots=True)
class Progress:
    """A gauge of running requests and a counter of tokens."""

    running: Series
    tokens: str

    @property
    def families(self) -> tuple[str, ...]:
        return (self.running.name, self.tokens)

    def read(self, exposition: Exposition) -> Read | None:
        found, tokens = self.running.found(exposition), exposition.samples.get(self.tokens, ())
        if not found or not tokens:
            return None
        running, made = _sum(found), _sum(tokens)
        return Trouble("a counter is not a number") if running is None or made is None else Work(running, made)


Source: TypeAlias = Buckets | Ratio | Gauge | Progress


def _sum(samples: Iterable[Sample]) -> float | None:
    """None for what is no number, or less than nothing."""
    total = sum(each.value for each in samples)
    return whole(float(total)) if 0 <= total < float("inf") else None


def _of(name: str, **where: str | tuple[str, ...]) -> Series:
    return Series(name, {label: (value,) if isinstance(value, str) else value for label, value in where.items()})


_VLLM_ENDED = _of("vllm:request_success_total")
_VLLM_RUNNING, _SGLANG_RUNNING = _of("vllm:num_requests_running"), _of("sglang:num_running_reqs", tp_rank=("0", ""))
_DYNAMO_ENDED = _of("dynamo_frontend_requests_total")
_DYNAMO_TO_BLAME = ("internal", "unavailable", "response_timeout", "overload")


#: Why an endpoint picker leads a request to no server; the last is that of the inference extension up to 1.4.
_UNPICKED = ("Internal", "ServiceUnavailable", "ResourceExhausted", "InferencePoolResourceExhausted")


def _unpicked(requests: str, errors: str) -> Ratio:
    """Of requests to a pool those for which no server was picked; the others are counted as requests. What servers
    answer is none of it: ModelServerError, where a picker sees the status at all, is any but 200, of bad requests too.
    """
    failed = _of(errors, error_code=_UNPICKED)
    return Ratio((failed,), (_of(requests), failed))


#: Where a signal is found, the first that is exposed; a signal that an exporter lacks has nothing.
SOURCES: Mapping[Exporter, Mapping[Signal, tuple[Source, ...]]] = {
    Engine.VLLM: {
        Signal.TIME_TO_FIRST_TOKEN: (Buckets("vllm:time_to_first_token_seconds"),),
        # The second name is that of 0.12 and before.
        Signal.INTER_TOKEN_LATENCY: (
            Buckets("vllm:inter_token_latency_seconds"),
            Buckets("vllm:time_per_output_token_seconds"),
        ),
        Signal.TIME_PER_OUTPUT_TOKEN: (Buckets("vllm:request_time_per_output_token_seconds"),),
        Signal.REQUEST_LATENCY: (Buckets("vllm:e2e_request_latency_seconds"),),
        Signal.QUEUE_TIME: (Buckets("vllm:request_queue_time_seconds"),),
        Signal.ERROR_RATE: (Ratio((_of("vllm:request_success_total", finished_reason="error"),), (_VLLM_ENDED,)),),
        Signal.DEGENERATE: (Ratio((_of("vllm:request_success_total", finished_reason="repetition"),), (_VLLM_ENDED,)),),
        Signal.PREFIX_CACHE_HITS: (
            Ratio((_of("vllm:prefix_cache_hits_total"),), (_of("vllm:prefix_cache_queries_total"),)),
        ),
        Signal.PREEMPTIONS: (Ratio((_of("vllm:num_preemptions_total"),), (_VLLM_ENDED,)),),
        Signal.RUNNING_REQUESTS: (Gauge(_VLLM_RUNNING),),
        Signal.QUEUE_LENGTH: (Gauge(_of("vllm:num_requests_waiting")),),
        Signal.KV_CACHE_USAGE: (Gauge(_of("vllm:kv_cache_usage_perc"), averaged=True),),
        Signal.STALLED: (Progress(_VLLM_RUNNING, "vllm:generation_tokens_total"),),
    },
    Engine.SGLANG: {
        Signal.TIME_TO_FIRST_TOKEN: (Buckets("sglang:time_to_first_token_seconds"),),
        Signal.INTER_TOKEN_LATENCY: (Buckets("sglang:inter_token_latency_seconds"),),
        Signal.TIME_PER_OUTPUT_TOKEN: (Buckets("sglang:request_time_per_output_token_seconds"),),
        Signal.REQUEST_LATENCY: (Buckets("sglang:e2e_request_latency_seconds"),),
        Signal.QUEUE_TIME: (Buckets("sglang:queue_time_seconds"),),
        Signal.ERROR_RATE: (Ratio((_of("sglang:num_aborted_requests_total"),), (_of("sglang:num_requests_total"),)),),
        Signal.PREEMPTIONS: (Gauge(_of("sglang:num_retracted_reqs", tp_rank=("0", ""))),),
        Signal.RUNNING_REQUESTS: (Gauge(_SGLANG_RUNNING),),
        Signal.QUEUE_LENGTH: (Gauge(_of("sglang:num_queue_reqs", tp_rank=("0", ""))),),
        Signal.KV_CACHE_USAGE: (Gauge(_of("sglang:token_usage"), averaged=True),),
        Signal.STALLED: (Progress(_SGLANG_RUNNING, "sglang:generation_tokens_total"),),
    },
    Engine.TENSORRT_LLM: {
        Signal.TIME_TO_FIRST_TOKEN: (Buckets("trtllm_time_to_first_token_seconds"),),
        Signal.TIME_PER_OUTPUT_TOKEN: (Buckets("trtllm_time_per_output_token_seconds"),),
        Signal.REQUEST_LATENCY: (Buckets("trtllm_e2e_request_latency_seconds"),),
        Signal.QUEUE_TIME: (Buckets("trtllm_request_queue_time_seconds"),),
        Signal.ERROR_RATE: (
            Ratio(
                (_of("trtllm_request_error_total"),),
                (_of("trtllm_request_error_total"), _of("trtllm_request_success_total")),
            ),
        ),
        Signal.RUNNING_REQUESTS: (Gauge(_of("trtllm_num_requests_running")),),
        Signal.QUEUE_LENGTH: (Gauge(_of("trtllm_num_requests_waiting")),),
        Signal.KV_CACHE_USAGE: (Gauge(_of("trtllm_kv_cache_utilization"), averaged=True),),
    },
    Engine.DYNAMO: {
        Signal.TIME_TO_FIRST_TOKEN: (Buckets("dynamo_frontend_time_to_first_token_seconds"),),
        Signal.INTER_TOKEN_LATENCY: (Buckets("dynamo_frontend_inter_token_latency_seconds"),),
        Signal.REQUEST_LATENCY: (Buckets("dynamo_frontend_request_duration_seconds"),),
        Signal.ERROR_RATE: (
            Ratio(
                (_of("dynamo_frontend_requests_total", status="error", error_type=_DYNAMO_TO_BLAME),), (_DYNAMO_ENDED,)
            ),
        ),
        Signal.RUNNING_REQUESTS: (Gauge(_of("dynamo_frontend_inflight_requests")),),
        Signal.QUEUE_LENGTH: (Gauge(_of("dynamo_frontend_queued_requests")),),
    },
    Engine.TGI: {
        Signal.TIME_PER_OUTPUT_TOKEN: (Buckets("tgi_request_mean_time_per_token_duration"),),
        Signal.REQUEST_LATENCY: (Buckets("tgi_request_duration"),),
        Signal.QUEUE_TIME: (Buckets("tgi_request_queue_duration"),),
        Signal.ERROR_RATE: (Ratio((_of("tgi_request_failure"),), (_of("tgi_request_count"),)),),
        Signal.QUEUE_LENGTH: (Gauge(_of("tgi_queue_size")),),
    },
    # The second names are those of the inference extension, which llm-d's router exposes as well.
    Router.ENDPOINT_PICKER: {
        # Without a stream the first byte is that of the whole answer; what the inference extension calls so does not
        # say which it is.
        Signal.TIME_TO_FIRST_TOKEN: (Buckets("llm_d_epp_request_ttft_seconds", {"streaming": ("true",)}),),
        Signal.INTER_TOKEN_LATENCY: (Buckets("llm_d_epp_request_streaming_itl_seconds"),),
        Signal.TIME_PER_OUTPUT_TOKEN: (Buckets("llm_d_epp_request_streaming_tpot_seconds"),),
        Signal.REQUEST_LATENCY: (
            Buckets("llm_d_epp_request_duration_seconds"),
            Buckets("inference_objective_request_duration_seconds"),
        ),
        Signal.ERROR_RATE: (
            _unpicked("llm_d_epp_request_total", "llm_d_epp_request_error_total"),
            _unpicked("inference_objective_request_total", "inference_objective_request_error_total"),
        ),
    },
}

_TOKENS = (
    *(0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75),
    *(1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0),
)
_REQUEST_TIMES = (
    *(0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0),
    *(120.0, 240.0, 480.0, 960.0, 1920.0, 7680.0),
)
#: Edges of histograms in seconds as servers come, where they are the same in all their versions. Who configures others
#: is judged by those.
EDGES: Mapping[Exporter, Mapping[Signal, tuple[float, ...]]] = {
    Engine.VLLM: {
        Signal.TIME_TO_FIRST_TOKEN: (
            *(0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5),
            *(10.0, 20.0, 40.0, 80.0, 160.0, 640.0, 2560.0),
        ),
        Signal.INTER_TOKEN_LATENCY: _TOKENS,
        Signal.REQUEST_LATENCY: _REQUEST_TIMES,
        Signal.QUEUE_TIME: _REQUEST_TIMES,
    },
}

#: Families of which a server of the kind exposes one from its start, before any request.
_MARKS: Mapping[Exporter, tuple[str, ...]] = {
    Engine.VLLM: ("vllm:num_requests_running",),
    Engine.SGLANG: ("sglang:num_running_reqs",),
    Engine.TENSORRT_LLM: ("trtllm_num_requests_running",),
    Engine.DYNAMO: ("dynamo_frontend_inflight_requests",),
    Engine.TGI: ("tgi_queue_size",),
    Router.ENDPOINT_PICKER: ("llm_d_epp_ready_endpoints", "inference_pool_ready_pods"),
}


#: Running and completed requests, which tell whether any have reached a server, of those that expose gauges.
_REQUESTS: Mapping[Exporter, tuple[Series | None, Series]] = {
    Engine.VLLM: (_VLLM_RUNNING, _VLLM_ENDED),
    Engine.SGLANG: (_SGLANG_RUNNING, _of("sglang:num_requests_total")),
    Engine.TENSORRT_LLM: (_of("trtllm_num_requests_running"), _of("trtllm_request_success_total")),
    Engine.DYNAMO: (_of("dynamo_frontend_inflight_requests"), _DYNAMO_ENDED),
    Engine.TGI: (None, _of("tgi_request_count")),
}


def engines(signal: Signal) -> tuple[Engine, ...]:
    """Those that expose the signal."""
    return tuple(each for each, of in SOURCES.items() if isinstance(each, Engine) and signal in of)


def beside(signal: Signal, exporter: Exporter, limit: float) -> tuple[float | None, float | None] | None:
    """The usual edges beside a limit in seconds, as ``Histogram.around`` has them; None where they are not known."""
    edges = EDGES.get(exporter, {}).get(signal)
    return Histogram(edges, ()).around(limit) if edges is not None else None


def families(signal: Signal, exporter: Exporter | None = None) -> frozenset[str]:
    """Names of what has to be read for a signal, of one exporter or of any engine."""
    asked: tuple[Exporter, ...] = engines(signal) if exporter is None else (exporter,)
    sources = [source for each in asked for source in SOURCES[each].get(signal, ())]
    names = {name for each in sources for name in each.families}
    gauges = any(isinstance(each, Gauge) for each in sources)
    requests = {series.name for each in asked for series in _REQUESTS[each] if series is not None} if gauges else set()
    return frozenset(names | requests | {mark for each in asked for mark in _MARKS[each]})


def read(signal: Signal, exposition: Exposition, exporter: Exporter | None = None) -> Read:
    """What a pod's answer says of a signal; without ``exporter``, in the names of the engine that it has."""
    asked: tuple[Exporter, ...] = engines(signal) if exporter is None else (exporter,)
    for each in asked:
        for source in SOURCES[each].get(signal, ()):
            found = source.read(exposition)
            if found is not None:
                return _with_requests(found, exposition, each) if isinstance(found, Level) else found
    if any(mark in exposition.samples for each in asked for mark in _MARKS[each]):
        return Nothing()
    names = sorted({name for each in asked for source in SOURCES[each].get(signal, ()) for name in source.families})
    return Trouble(f"none of {', '.join(names)} is exposed")


def _with_requests(level: Level, exposition: Exposition, exporter: Exporter) -> Level:
    """What cannot be read of them is none: it never makes a version pass."""
    running, completed = (
        _sum(series.found(exposition)) or 0.0 if series is not None else 0.0 for series in _REQUESTS[exporter]
    )
    return replace(level, running=running, completed=completed)
