"""Signals, what exposes them, and how they are judged: the words of a criterion."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, StrEnum, unique
from typing import TypeAlias, assert_never


@unique
class Signal(StrEnum):
    """What is asked of a model server."""

    TIME_TO_FIRST_TOKEN = "TimeToFirstToken"
    INTER_TOKEN_LATENCY = "InterTokenLatency"
    TIME_PER_OUTPUT_TOKEN = "TimePerOutputToken"
    REQUEST_LATENCY = "RequestLatency"
    QUEUE_TIME = "QueueTime"
    ERROR_RATE = "ErrorRate"
    DEGENERATE = "Degenerate"
    PREFIX_CACHE_HITS = "PrefixCacheHits"
    PREEMPTIONS = "Preemptions"
    RUNNING_REQUESTS = "RunningRequests"
    QUEUE_LENGTH = "QueueLength"
    KV_CACHE_USAGE = "KVCacheUsage"
    STALLED = "Stalled"


@unique
class Engine(StrEnum):
    """A model server whose names are known."""

    VLLM = "vLLM"
    SGLANG = "SGLang"
    TENSORRT_LLM = "TensorRTLLM"
    DYNAMO = "Dynamo"
    TGI = "TGI"


@unique
class Router(StrEnum):
    """A server that leads requests to model servers, of which each version has its own."""

    ENDPOINT_PICKER = "EndpointPicker"


#: Who exposes a signal.
Exporter: TypeAlias = Engine | Router


@unique
class Measure(Enum):
    """How a signal is judged."""

    LATENCY = "seconds that a request takes: a quantile, by the share of requests above a limit"
    SHARE = "a share of requests"
    MEAN = "the mean over the window"
    STALL = "seconds in which requests run and nothing comes of them"


_MEASURES = {
    Measure.LATENCY: (
        Signal.TIME_TO_FIRST_TOKEN,
        Signal.INTER_TOKEN_LATENCY,
        Signal.TIME_PER_OUTPUT_TOKEN,
        Signal.REQUEST_LATENCY,
        Signal.QUEUE_TIME,
    ),
    Measure.SHARE: (Signal.ERROR_RATE, Signal.DEGENERATE, Signal.PREFIX_CACHE_HITS),
    Measure.MEAN: (Signal.PREEMPTIONS, Signal.RUNNING_REQUESTS, Signal.QUEUE_LENGTH, Signal.KV_CACHE_USAGE),
    Measure.STALL: (Signal.STALLED,),
}
MEASURES: Mapping[Signal, Measure] = {signal: measure for measure, of in _MEASURES.items() for signal in of}


def words(signal: Signal) -> str:
    """The signal in a sentence."""
    match signal:
        case Signal.TIME_TO_FIRST_TOKEN:
            return "time to first token"
        case Signal.INTER_TOKEN_LATENCY:
            return "time between tokens"
        case Signal.TIME_PER_OUTPUT_TOKEN:
            return "time per output token"
        case Signal.REQUEST_LATENCY:
            return "time of a request"
        case Signal.QUEUE_TIME:
            return "time in the queue"
        case Signal.ERROR_RATE:
            return "failed requests"
        case Signal.DEGENERATE:
            return "requests that ended in repetition"
        case Signal.PREFIX_CACHE_HITS:
            return "hits of the prefix cache"
        case Signal.PREEMPTIONS:
            return "preemptions"
        case Signal.RUNNING_REQUESTS:
            return "running requests"
        case Signal.QUEUE_LENGTH:
            return "waiting requests"
        case Signal.KV_CACHE_USAGE:
            return "use of the KV cache"
        case Signal.STALLED:
            return "requests without tokens"
        case unknown:
            assert_never(unknown)
