"""What a gate can be refused for, and the criterion that it stands for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import assert_never

from rollout_lws.analysis.calls import is_reserved
from rollout_lws.analysis.criterion import Criterion
from rollout_lws.analysis.kinds import MEASURES, Measure, Signal
from rollout_lws.analysis.signals import SOURCES, engines
from rollout_lws.api.gate_spec import Analysis, HttpGate, JobGate, MetricGate, PlannedGate, QueryGate, StepGate
from rollout_lws.api.problem import Problem
from rollout_lws.api.words import FigureSource, GateStage
from rollout_lws.prometheus import promql
from rollout_lws.prometheus.poll import Query
from rollout_lws.prometheus.scrapes import Prometheus

_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0}
_LABEL = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
#: Bytes of a body.
MOST_BODY = 16_384
#: RFC 9110, 5.6.2: a token.
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+\-.^_`|~]{1,256}")
#: Gauges whose values are shares from 0 to 1.
_SHARES = frozenset({Signal.KV_CACHE_USAGE})


def criterion(metric: MetricGate, gate: PlannedGate, analysis: Analysis) -> Criterion:
    """What the metric of a gate without problems asks."""
    return Criterion(
        signal=metric.signal,
        limit=_number(metric.max or metric.min),
        to_stable=_number(metric.max_to_stable),
        quantile=(metric.quantile if metric.quantile is not None else 95) / 100,
        at_least=metric.min is not None,
        window=float(gate.seconds),
        confidence=_number(metric.confidence) or 0.95,
        min_samples=metric.min_samples if metric.min_samples is not None else 100,
        exporter=metric.of if metric.of is not None else analysis.engine,
        watched=gate.watched,
    )


def query(asked: QueryGate, gate: PlannedGate, analysis: Analysis) -> Query:
    """What the query of a gate without problems asks."""
    return Query(
        prometheus=prometheus(analysis),
        value=asked.prom_ql,
        limit=_number(asked.max or asked.min) or 0.0,
        at_least=asked.min is not None,
        samples=asked.samples or "",
        window=float(gate.seconds),
        confidence=_number(asked.confidence) or 0.95,
        min_samples=asked.min_samples if asked.min_samples is not None else 100,
        watched=gate.watched,
    )


def prometheus(analysis: Analysis) -> Prometheus:
    """The server that is asked, as the core knows it."""
    source, secret = analysis.prometheus, analysis.prometheus.secret_key_ref
    return Prometheus(
        address=(source.address or "").rstrip("/"),
        secret=secret.name if secret is not None else "",
        key=secret.key if secret is not None else "",
        matchers=tuple(sorted(source.matchers.items())),
        pod_label=source.pod_label,
    )


def source_problems(analysis: Analysis, at: str) -> Iterator[Problem]:
    """Everything wrong with where figures come from."""
    for label in analysis.prometheus.matchers:
        if not _LABEL.fullmatch(label):
            yield Problem(f"{at}.prometheus.matchers", f"{label!r} is no name of a label")


def gate_problems(
    gates: tuple[PlannedGate, ...], analysis: Analysis, at: str, besides: frozenset[str] = frozenset()
) -> Iterator[Problem]:
    """Everything wrong with the gates of a step or of the release, whose path is ``at``. ``besides`` are names that are
    gates of the release.
    """
    names = [gate.name for gate in gates]
    for index, gate in enumerate(gates):
        path = f"{at}.gates[{index}]"
        if gate.name in names[:index]:
            yield Problem(f"{path}.name", f"two gates are called {gate.name}: rename one of them")
        elif gate.name in besides:
            yield Problem(f"{path}.name", f"a gate of the release is called {gate.name} as well: rename one of them")
        if len(gate.kinds) > 1:
            yield Problem(
                path, f"it asks for {' and '.join(gate.kinds)}: give it one, and each other a gate of its own"
            )
        yield from _kind(gate, analysis, path)


def before_traffic_problems(gates: tuple[StepGate, ...], at: str, *, routed: bool, in_place: bool) -> Iterator[Problem]:
    """Gates of any kind that hold back requests, where nothing can: ``routed`` says whether the strategy names what
    routes them, ``in_place`` whether new groups take the places of old ones, which get requests before.
    """
    for index, gate in enumerate(gates):
        path = f"{at}.gates[{index}].when"
        if gate.when is not GateStage.BEFORE_TRAFFIC or isinstance(gate.asked, MetricGate | QueryGate):
            # Those that ask for figures need traffic in any case, which is said of each.
            continue
        if not routed:
            yield Problem(
                path, "nothing is named that could hold requests back: give the strategy trafficRoutings, or remove it"
            )
        elif in_place:
            yield Problem(
                path,
                "groups that are updated in place get their share before they are ready: remove it, or use capacity"
                " ExtraWorkload or Surge",
            )


def pool_problems(gates: tuple[PlannedGate, ...], at: str, *, pools: bool) -> Iterator[Problem]:
    """Gates that ask what leads to a version's groups; ``pools`` says whether the strategy names an inference pool of
    each version, whose picker that is.
    """
    for index, gate in enumerate(gates):
        if gate.metric is not None and gate.metric.of is not None and not pools:
            yield Problem(
                f"{at}.gates[{index}].metric.of",
                "the versions have no endpoint picker each: name two pools in trafficRoutings[0].gateway.inferencePool,"
                " or remove it",
            )


def _kind(gate: PlannedGate, analysis: Analysis, at: str) -> Iterator[Problem]:
    match gate.asked:
        case MetricGate() as metric:
            yield from _of_step(gate, at)
            yield from _metric(metric, analysis, f"{at}.metric")
        case QueryGate() as asked:
            yield from _of_step(gate, at)
            yield from _query(asked, f"{at}.query")
        case HttpGate() as http:
            if gate.window is not None:
                yield Problem(f"{at}.window", "an answer has no window: use deadlineSeconds, or remove it")
            yield from _http(http, f"{at}.http")
        case JobGate():
            if gate.window is not None:
                yield Problem(f"{at}.window", "a Job has no window: remove it; deadlineSeconds bounds how long it runs")
        case None:
            kinds = "a metric, a query, http or a job" if isinstance(gate, StepGate) else "a metric or a query"
            yield Problem(at, f"it asks for nothing: give it {kinds}")
        case unknown:
            assert_never(unknown)


def _of_step(gate: PlannedGate, at: str) -> Iterator[Problem]:
    """What gates of steps that ask for figures can be refused for besides."""
    if not isinstance(gate, StepGate):
        return
    if gate.when is GateStage.BEFORE_TRAFFIC:
        yield Problem(f"{at}.when", "figures of a version come with its traffic: leave it out")
    if gate.deadline_seconds is not None and gate.deadline_seconds < gate.seconds:
        yield Problem(
            f"{at}.deadlineSeconds",
            f"{gate.deadline_seconds} s are over before the window of {gate.seconds} s is: give at least as many",
        )


def _query(asked: QueryGate, at: str) -> Iterator[Problem]:
    if (asked.max is None) == (asked.min is None):
        yield Problem(at, "exactly one of max, min must be set")
    for name, text in {"promQL": asked.prom_ql, "samples": asked.samples}.items():
        why = promql.problem(text) if text is not None else ""
        if why:
            yield Problem(f"{at}.{name}", why)
    limit = _number(asked.max or asked.min)
    if asked.samples is not None and limit is not None and not 0 < limit < 1:
        name = "max" if asked.max is not None else "min"
        yield Problem(f"{at}.{name}", "a share is between 0 and 1: give more than 0% and less than 100%")
    for member, given in {"confidence": asked.confidence, "minSamples": asked.min_samples}.items():
        if given is not None and asked.samples is None:
            yield Problem(f"{at}.{member}", "it counts for shares only: give samples, or remove it")


def _http(http: HttpGate, at: str) -> Iterator[Problem]:
    if (http.each is None) == (http.service is None):
        given = "none is" if http.each is None else "both are"
        yield Problem(at, f"exactly one of each and service must be set, and {given}")
    for name in http.headers:
        if not _HEADER.fullmatch(name):
            yield Problem(f"{at}.headers", f"{name[:64]!r} is no name of a header: remove it")
        elif is_reserved(name):
            yield Problem(f"{at}.headers", f"{name[:64]} is set by the controller, or says who a client is: remove it")
    if http.verb == "GET" and http.body is not None:
        yield Problem(f"{at}.body", "a GET has no body: use method POST, or remove it")
    if http.metadata and (http.verb == "GET" or http.body is not None):
        yield Problem(f"{at}.metadata", "it is part of the body that a POST has by default: remove it, or the body")
    if http.body is not None and len(http.body.encode()) > MOST_BODY:
        yield Problem(f"{at}.body", f"{len(http.body.encode())} bytes are too many: give at most {MOST_BODY}")


def _metric(metric: MetricGate, analysis: Analysis, at: str) -> Iterator[Problem]:
    limits = {"max": metric.max, "min": metric.min, "maxToStable": metric.max_to_stable}
    given = [name for name, value in limits.items() if value is not None]
    if len(given) != 1:
        yield Problem(at, f"exactly one of {', '.join(limits)} must be set, and {len(given)} are")
        return
    measure = MEASURES[metric.signal]
    if metric.quantile is not None and measure is not Measure.LATENCY:
        yield Problem(f"{at}.quantile", f"{metric.signal} has no quantile: remove it")
    if metric.min is not None and metric.signal is not Signal.PREFIX_CACHE_HITS:
        yield Problem(f"{at}.min", f"{metric.signal} is better when lower: use max")
    if metric.signal is Signal.PREFIX_CACHE_HITS and metric.min is None:
        yield Problem(at, "more hits are better: use min")
    if metric.max_to_stable is not None and measure is Measure.STALL:
        yield Problem(f"{at}.maxToStable", "a version that stands still is not compared: use max, in seconds")
    asked = metric.of if metric.of is not None else analysis.engine
    if asked is not None and metric.signal not in SOURCES[asked]:
        yield Problem(
            f"{at}.signal",
            f"{asked} does not expose it; {', '.join(engines(metric.signal))}"
            f" {'does' if len(engines(metric.signal)) == 1 else 'do'}",
        )
    if metric.of is not None and analysis.from_ is not FigureSource.PROMETHEUS:
        yield Problem(f"{at}.of", "no picker is asked itself: set analysis.from to Prometheus, or remove it")
    if metric.of is not None and metric.signal is Signal.ERROR_RATE and metric.max_to_stable is not None:
        yield Problem(
            f"{at}.maxToStable",
            "a picker that is well leads every request to a server, and nothing is a multiple of none: use max",
        )
    text = metric.max or metric.min
    name = "max" if metric.max is not None else "min"
    if text is not None:
        yield from _unit(metric.signal, measure, text, f"{at}.{name}")


def _unit(signal: Signal, measure: Measure, text: str, at: str) -> Iterator[Problem]:
    seconds, percent = text.endswith(tuple(_SECONDS)), text.endswith("%")
    match measure:
        case Measure.LATENCY | Measure.STALL:
            if not seconds:
                yield Problem(at, f"{text} has no unit of time: write 2s or 500ms")
            elif _number(text) == 0:
                yield Problem(at, "nothing takes no time: give more than 0s")
        case Measure.SHARE:
            if not percent:
                yield Problem(at, f"{text} is no share of requests: write 2%")
            elif not 0 < (_number(text) or 0.0) < 1:
                yield Problem(at, f"{text} decides nothing: give more than 0% and less than 100%")
        case Measure.MEAN:
            if seconds or percent != (signal in _SHARES):
                example = "90%" if signal in _SHARES else "8"
                yield Problem(at, f"{text} has another unit than {signal}: write {example}")
        case unknown:
            assert_never(unknown)


def _number(text: str | None) -> float | None:
    """A limit in seconds, as a share, or as the number that it is."""
    if text is None:
        return None
    if text.endswith("%"):
        return float(text[:-1]) / 100
    for unit in ("ms", "s", "m"):
        if text.endswith(unit):
            return float(text.removesuffix(unit)) * _SECONDS[unit]
    return float(text)
