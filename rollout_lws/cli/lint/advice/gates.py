"""Gates that cannot decide, decide too late, or whose verdict leaves the bad version its requests."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from rollout_lws.analysis.kinds import MEASURES, Measure, Signal
from rollout_lws.api import GateStage, MetricGate, StyleStrategy
from rollout_lws.api.gate_rules import criterion
from rollout_lws.api.validation import problems
from rollout_lws.capacity.weights import sharing_step
from rollout_lws.cli.lint.advice.releases import Release, releases
from rollout_lws.cli.lint.file_snapshot import FileSnapshot
from rollout_lws.cli.lint.findings import Finding
from rollout_lws.cli.lint.paths import Path
from rollout_lws.forecast.cautions import limit_between_edges
from rollout_lws.forecast.forecast import forecast
from rollout_lws.forecast.gates import Placed, gates_of
from rollout_lws.forecast.model import Given

#: Completed requests a second that no group is taken to have: servers of language models have a tenth of it.
_MOST = 100
#: Signals whose samples are tokens, of which a request has any number.
_OF_TOKENS = frozenset({Signal.INTER_TOKEN_LATENCY, Signal.PREFIX_CACHE_HITS})


def advice(files: FileSnapshot) -> Iterator[Finding]:
    for release in releases(files):
        if any(problems(release.rollout.spec)):
            # What gates of a plan that is refused would do is not known.
            continue
        yield from _kept(release)
        for placed in gates_of(release.plan):
            unreached = _gets_none(release, placed.step)
            told = limit_between_edges(placed, release.rollout.spec.strategy.source)
            if told is not None:
                yield release.manifest.found("LWS406", (*_path(release, placed), "metric", "max"), told)
            if placed.gate.when is GateStage.BEFORE_TRAFFIC:
                yield from _late(release, placed)
            elif placed.gate.metric is not None and unreached:
                yield release.manifest.found(
                    "LWS326",
                    (*_path(release, placed), "metric"),
                    f"no request reaches the new version in step {placed.step}, so gate {placed.gate.name} comes to"
                    " nothing and the release waits for a user: give the step traffic, or move the gate to one that"
                    " has some",
                )
            elif placed.gate.metric is not None:
                yield from _too_few(release, placed, placed.gate.metric)


def _path(release: Release, placed: Placed) -> Path:
    return (*release.style, "steps", placed.step - 1, "gates", placed.index)


def _kept(release: Release) -> Iterator[Finding]:
    watched = ((gate.name, (*release.style, "gates", index)) for index, gate in enumerate(release.plan.gates))
    of_steps = (
        (each.gate.name, _path(release, each))
        for each in gates_of(release.plan)
        if each.gate.when is GateStage.DURING_STEP
    )
    first = next(chain(watched, of_steps), None)
    if first is not None and release.rollout.spec.strategy.on_failure is None:
        name, path = first
        yield release.manifest.found(
            "LWS325",
            path,
            f"when gate {name} fails the version, the release waits for a user, and the version keeps"
            " its requests: set spec.strategy.onFailure to Abort, with which it goes back by itself, or to Pause if"
            " that is meant",
        )


def _gets_none(release: Release, step: int) -> bool:
    """Whether no route leads to the new version in a step; without trafficRoutings, that is told of the Service."""
    shares = sharing_step(release.plan, step)
    return release.routing is not None and not shares.matches and shares.traffic in (None, "0%")


def _late(release: Release, placed: Placed) -> Iterator[Finding]:
    if release.routing is None or placed.step < 2 or _gets_none(release, placed.step - 1):
        return
    yield release.manifest.found(
        "LWS405",
        (*_path(release, placed), "when"),
        f"the new version has requests in step {placed.step - 1} already, and groups that step {placed.step} adds get"
        f" some of them once they are ready: gate {placed.gate.name} holds back only that their share is raised."
        " What has to be done before the first request belongs into step 1, or into the readinessProbe",
    )


def _too_few(release: Release, placed: Placed, metric: MetricGate) -> Iterator[Finding]:
    gate, replicas = placed.gate, release.replicas
    given = Given(replicas, scales_sides=release.rollout.spec.scales_sides)
    share = _share(release.plan, placed.step, given)
    counted = MEASURES[metric.signal] in (Measure.LATENCY, Measure.SHARE) and metric.signal not in _OF_TOKENS
    if not share or not counted or sharing_step(release.plan, placed.step).matches:
        return
    asked = criterion(metric, gate, release.rollout.spec.strategy.source)
    least = min(share, 1 - share) if asked.compared else share
    if not least:
        return
    rate = asked.min_samples / least / gate.deadline
    if rate > _MOST * replicas:
        member = "minSamples" if metric.min_samples is not None else "signal"
        yield release.manifest.found(
            "LWS327",
            (*_path(release, placed), "metric", member),
            f"gate {gate.name} judges nothing below {asked.min_samples:,} requests, and with {least:.0%} of them in"
            f" {gate.deadline} s that is {rate:,.0f} a second for {replicas} groups: lower minSamples, or raise the"
            " step's traffic or deadlineSeconds",
        )


def _share(plan: StyleStrategy, step: int, given: Given) -> float:
    """The new version's share of requests in a step; 0 where it is not known."""
    if not given.replicas:
        return 0.0
    try:
        return forecast(plan, given).rows[step - 1].share
    except ValueError:
        # Too few groups for the capacity, which is refused.
        return 0.0
