"""What gates of figures ask of a release, in words: requests, how many a second, and the edges of histograms."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rollout_lws.analysis.judge import USUAL_BAD
from rollout_lws.analysis.kinds import MEASURES, Engine, Measure
from rollout_lws.analysis.looks import MOST_REQUESTS
from rollout_lws.analysis.signals import beside
from rollout_lws.api import Analysis, MetricGate
from rollout_lws.cli.durations import short
from rollout_lws.forecast.cautions import limit_between_edges
from rollout_lws.forecast.gates import Demand


def name(demand: Demand) -> str:
    """Step and gate."""
    return f"step {demand.placed.step}, {demand.placed.gate.name}"


def sentence(demand: Demand, rate: float, engine: Engine | None) -> str:
    """What it needs, at so many requests a second of both versions (0: unknown)."""
    gate = demand.placed.gate
    if gate.metric is None:
        if demand.new is None:
            return f"judged when its window of {short(demand.window)} is over"
        return f"about {demand.new:,} samples in its window of {short(demand.window)}"
    if not demand.share and not demand.matched:
        return "no request reaches the new version in this step, so it comes to nothing"
    if MEASURES[gate.metric.signal] in (Measure.MEAN, Measure.STALL):
        return f"judged when its window of {short(demand.window)} is over"
    if demand.new is None and demand.matched:
        return "how many requests it takes hangs on how many match, and on how many stable has besides"
    if demand.new is None:
        return "the stable version gets no requests, so there is nothing to compare with"
    return f"{_requests(demand, gate.metric)}{_time(demand, rate)}{_unknown_edges(gate.metric, engine)}"


def _requests(demand: Demand, metric: MetricGate) -> str:
    assert demand.new is not None
    about = "more than" if demand.new >= MOST_REQUESTS else "about"
    told = f"{about} {demand.new:,} requests of the new version"
    if demand.stable:
        told += f" and {demand.stable:,} of the stable one"
        if MEASURES[metric.signal] is Measure.SHARE:
            told += f" (if {USUAL_BAD:.0%} of stable's are bad)"
    return told


def _time(demand: Demand, rate: float) -> str:
    window, own = f"its window of {short(demand.window)}", (demand.new or 0) / demand.window
    if demand.in_all is None:
        return f": {_number(own)} a second for it, for {window} to be enough"
    if rate:
        return f": {short(demand.seconds(rate))} at {rate:g} a second, {demand.share:.0%} of them for it"
    return (
        f": {_number(demand.in_all / demand.window)} a second of both versions, {demand.share:.0%} of them for it, for"
        f" {window} to be enough"
    )


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def _unknown_edges(metric: MetricGate, engine: Engine | None) -> str:
    exporter = metric.of if metric.of is not None else engine
    known = exporter is not None and beside(metric.signal, exporter, 0.0) is not None
    if known or metric.max is None or MEASURES[metric.signal] is not Measure.LATENCY:
        return ""
    return f"; judged at the edges of the server's histogram beside {metric.max}, which it tells itself"


def value(demand: Demand, rate: float) -> Mapping[str, Any]:
    """As JSON. Requests a second are those of both versions with which its window suffices, seconds what it takes at so
    many that are given.
    """
    known, requests = demand.in_all, demand.counts_requests
    return {
        "name": demand.placed.gate.name,
        "requests": demand.new if requests else None,
        "stableRequests": demand.stable or None,
        "samples": None if requests else demand.new,
        "windowSeconds": demand.window,
        "deadlineSeconds": demand.deadline,
        "requestsPerSecond": round(known / demand.window, 3) if known is not None else None,
        "seconds": round(demand.seconds(rate)) if rate and known is not None else None,
    }


def cautions(demands: Iterable[Demand], rate: float, analysis: Analysis) -> Iterator[str]:
    """Gates that come to nothing in their time, and limits between two edges of a histogram."""
    for each in demands:
        gate, seconds = each.placed.gate, each.seconds(rate)
        if seconds > each.deadline:
            yield (
                f"gate {gate.name} of step {each.placed.step} takes {short(seconds)} at {rate:g} requests a second, and"
                f" its time is over after {short(each.deadline)}, when the release waits for a user: raise its"
                " deadlineSeconds, or the step's traffic"
            )
        told = limit_between_edges(each.placed, analysis)
        if told is not None:
            yield told
