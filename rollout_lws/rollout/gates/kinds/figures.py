"""Figures of a gate in words and with units."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, assert_never

from rollout_lws.analysis.criterion import Criterion, Figures, Verdict
from rollout_lws.analysis.kinds import Engine, Measure, Router, Signal, words
from rollout_lws.analysis.ledger import Key, Server
from rollout_lws.analysis.trial import Trial
from rollout_lws.api.base import tallied
from rollout_lws.rollout.draft import Draft

#: Pods that are named in a sentence.
_NAMED = 3


def pods(d: Draft) -> dict[str, str]:
    """Names of the release's leader pods, by uid."""
    sides = (facts for facts in (d.o.stable, d.o.canary) if facts is not None)
    return {pod.metadata.uid: pod.metadata.name for facts in sides for pod in facts.leaders}


def values(criterion: Criterion, figures: Figures) -> dict[str, Any]:
    """The fields of a gate's record."""
    return {
        "value": _text(criterion, figures.value),
        "stable_value": _text(criterion, figures.stable_value),
        "limit": _text(criterion, figures.limit),
        "samples": tallied(round(figures.samples)),
        "stable_samples": tallied(round(figures.stable_samples)) if figures.stable_samples is not None else None,
        "share": _share(figures.bad),
        "share_from": _share(figures.low),
        "share_to": _share(figures.high),
        "share_limit": _share(figures.allowed),
    }


def why(criterion: Criterion, trial: Trial, names: Mapping[str, str]) -> str:
    """Why a trial ended as it did."""
    figures = trial.figures
    if trial.verdict is Verdict.INCONCLUSIVE:
        missing = _missing(criterion, trial, names)
        if missing:
            return missing
    bound = "at least" if criterion.at_least else "at most"
    return f"{_value(criterion, figures)}, {bound} {_limit(criterion, figures)}{_basis(criterion, trial)}"


def lost(trials: Iterable[Trial], names: Mapping[str, str]) -> str:
    """That pods cannot be read, the first of them and why; "" if all can. It says the same from round to round, since
    each other sentence would be a write of the status.
    """
    found = [
        (each.since, _called(key, names), each.lasting) for key, each in (trial.lost for trial in trials if trial.lost)
    ]
    if not found:
        return ""
    _, pod, why = min(found)
    return f"pods cannot be read, {pod} first: {why or 'each time for another reason'}"


def _called(key: Key, names: Mapping[str, str]) -> str:
    """The name of a pod, and the address of a server that is one of its several."""
    if isinstance(key, Server):
        return f"{names.get(key.pod, key.pod)} ({key.address})"
    return names.get(key, key)


def _missing(criterion: Criterion, trial: Trial, names: Mapping[str, str]) -> str:
    """What has to come before anything can be said; "" if nothing is missing."""
    if trial.unread:
        shown = [f"{_called(key, names)}: {what}" for key, what in sorted(trial.unread.items(), key=str)]
        more = f" (and {len(shown) - _NAMED} more)" if len(shown) > _NAMED else ""
        return f"pods cannot be read: {'; '.join(shown[:_NAMED])}{more}"
    if not trial.new.pods:
        return f"the new version has {_untold(criterion)}"
    if criterion.compared and not trial.stable.pods:
        return f"the stable version has {_untold(criterion)}"
    if trial.new.silent():
        return f"no pod of the new version exposes {words(criterion.signal)} yet: no request has reached it"
    if criterion.measure in (Measure.MEAN, Measure.STALL):
        sides = (("new", trial.new), ("stable", trial.stable)) if criterion.compared else (("new", trial.new),)
        idle = [side for side, counted in sides if not counted.reached()]
        return f"no request has reached the {idle[0]} version while it was measured" if idle else ""
    samples, stable = trial.figures.samples, trial.figures.stable_samples
    fewest = samples if stable is None else min(samples, stable)
    if fewest < criterion.min_samples:
        side = "the new version" if samples == fewest else "the stable version"
        return f"{side} completed {fewest:,.0f} requests, and {criterion.min_samples:,} are the least"
    return ""


def _untold(criterion: Criterion) -> str:
    """That nothing could tell the figures of a version."""
    match criterion.exporter:
        case Router.ENDPOINT_PICKER:
            return "no endpoint picker of its own that is ready"
        case Engine() | None:
            return "no ready group to measure"
        case unknown:
            assert_never(unknown)


def _value(criterion: Criterion, figures: Figures) -> str:
    what = words(criterion.signal)
    if criterion.measure is Measure.LATENCY:
        what = f"p{100 * criterion.quantile:g} of the {what}"
    return f"{what} {_text(criterion, figures.value) or 'unknown'}"


def _limit(criterion: Criterion, figures: Figures) -> str:
    text = _text(criterion, figures.limit) or "unknown"
    if criterion.to_stable is None:
        return text
    stable = _text(criterion, figures.stable_value) or "unknown"
    return f"{text} ({100 * criterion.to_stable:g}% of stable's {stable})"


def _basis(criterion: Criterion, trial: Trial) -> str:
    figures = trial.figures
    between = f"between {_percent(figures.low)} and {_percent(figures.high)}"
    match criterion.measure:
        case Measure.LATENCY:
            if figures.bad is None or figures.allowed is None:
                return f": {figures.samples:,.0f} requests"
            longer = f"{_percent(figures.bad)} of {figures.samples:,.0f} requests took longer, {between}"
            return f": {longer}, and {_percent(figures.allowed)} may"
        case Measure.SHARE:
            kind = " without" if criterion.at_least else ""
            return f": {between}{kind}, of {figures.samples:,.0f} requests"
        case Measure.MEAN:
            return f": the mean of {figures.samples:,.0f}"
        case Measure.STALL:
            return ""
        case unknown:
            assert_never(unknown)


def _percent(share: float | None) -> str:
    return f"{100 * (share or 0.0):.2g} %"


def _text(criterion: Criterion, value: float | None) -> str | None:
    """A value with its unit, three digits of it."""
    if value is None:
        return None
    match criterion.measure:
        case Measure.LATENCY | Measure.STALL:
            return f"{digits(value)}s" if value >= 1 else f"{digits(1000 * value)}ms"
        case Measure.SHARE:
            return _share(value)
        case Measure.MEAN:
            return _share(value) if criterion.signal is Signal.KV_CACHE_USAGE else digits(value)
        case unknown:
            assert_never(unknown)


def _share(value: float | None) -> str | None:
    """A share in percent, three digits of it."""
    return None if value is None else f"{digits(100 * value)}%"


def digits(value: float) -> str:
    """A number, three digits of it."""
    return f"{float(f'{value:.3g}'):g}"
