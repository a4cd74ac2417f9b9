"""Judges what two ledgers have counted by a criterion: one look, which knows of no other."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import replace
from math import ceil, inf, log
from typing import assert_never

from rollout_lws.analysis import compared, looks
from rollout_lws.analysis.criterion import Criterion, Figures, Look
from rollout_lws.analysis.kinds import Measure
from rollout_lws.analysis.ledger import Key, Ledger
from rollout_lws.analysis.readings import Counts, Histogram, Level, Reading, Work
from rollout_lws.analysis.shares import Share, both_unlucky, normal, normal_share, share

#: Rounds of which a gauge has to have values before its mean is judged.
FEWEST_READINGS = 3
#: Limits of shares that are judged: nearer to nothing and to all no number of requests would do.
_LEAST, _MOST = 1e-5, 0.99

#: What bounds of both versions cost beyond what each would: see ``both_unlucky``.
_BOTH = 1.3

#: Before anything is measured a stable version has so many bad requests, and times whose 95th percentile is four times
#: their median, as in a chat. What it has is measured with the gate.
USUAL_BAD = 0.01
_USUAL_SPREAD = log(4) / normal(0.95)

_Count = Callable[[Reading], tuple[float, float]]


def look(criterion: Criterion, new: Ledger, stable: Ledger) -> Look:
    """What the figures say now."""
    match criterion.measure:
        case Measure.LATENCY:
            return _latencies(criterion, new, stable) if criterion.compared else _latency(criterion, new)
        case Measure.SHARE:
            return _share(criterion, new, stable)
        case Measure.MEAN:
            return _mean(criterion, new, stable)
        case Measure.STALL:
            return _stall(criterion, new)
        case unknown:
            assert_never(unknown)


def planned(criterion: Criterion, share_of_new: float) -> tuple[int, int] | None:
    """Independent requests of the new version and of the stable one (0 if it is not compared) that a verdict takes, as
    probably as ``looks`` says, where the new version gets ``share_of_new`` (0 to 1) of them; before anything is
    measured. None where time decides, or where stable has no requests to compare with.
    """
    ratio = criterion.to_stable or 1.0
    match criterion.measure:
        case Measure.LATENCY:
            allowed = 1 - criterion.quantile
            of_stable = 1 - normal_share(normal(criterion.quantile) + log(ratio) / _USUAL_SPREAD)
        case Measure.SHARE:
            limit = criterion.limit or 0.0
            absolute = 1 - limit if criterion.at_least else limit
            allowed, of_stable = (ratio * USUAL_BAD, USUAL_BAD) if criterion.compared else (absolute, 0.0)
        case Measure.MEAN | Measure.STALL:
            return None
        case unknown:
            assert_never(unknown)
    if not criterion.compared:
        return _needed(criterion, allowed), 0
    if not 0 < share_of_new < 1:
        return None
    new = _of_both(_needed(criterion, allowed, of_stable), share_of_new / (1 - share_of_new))
    return new, max(criterion.min_samples, ceil(new * (1 - share_of_new) / share_of_new))


def _of_both(needed: int, to_stable: float) -> int:
    """Requests of the new version where it has so many times those of stable: each that stable lacks has to be made up
    for.
    """
    return ceil(_BOTH * needed * (1 + to_stable))


def _latency(criterion: Criterion, new: Ledger) -> Look:
    """Between two edges only requests that surely were slower fail a version, and only those that surely were not pass
    it.
    """
    limit, allowed = criterion.limit or 0.0, 1 - criterion.quantile
    surely, maybe = share(_slices(new, _above(limit, 0.0))), share(_slices(new, _above(limit, 1.0)))
    known = new.histogram()
    value = compared.quantile(known, criterion.quantile) if known is not None else None
    needed = _needed(criterion, allowed)
    return _verdict(criterion, surely, maybe, allowed, Figures(needed=needed, value=value, limit=limit))


def _latencies(criterion: Criterion, new: Ledger, stable: Ledger) -> Look:
    ratio, allowed = criterion.to_stable or 1.0, 1 - criterion.quantile
    ours, theirs = new.histogram(), stable.histogram()
    middle = compared.quantile(theirs, criterion.quantile) if theirs is not None else None
    if ours is None or theirs is None or middle is None:
        return Look(False, False, Figures(samples=new.samples, stable_samples=stable.samples, allowed=allowed))

    def slower(version: Ledger, known: Histogram, limit: float | None, *, beyond: float = 1.0) -> Share:
        at = limit if limit is not None else inf
        return share(_slices(version, _above(at, compared.share_above(known, at, beyond=beyond))))

    limit = ratio * middle
    of_stable = slower(stable, theirs, middle)
    narrower = both_unlucky(slower(new, ours, limit), of_stable)

    def bounds(error: float) -> tuple[float | None, float | None]:
        return compared.quantiles(theirs, criterion.quantile, of_stable, error, narrower)

    lower, _ = bounds(looks.to_pass(criterion.confidence))
    _, upper = bounds(looks.to_fail(criterion.confidence))
    surely = slower(new, ours, upper and ratio * upper, beyond=0.0)
    maybe = slower(new, ours, lower and ratio * lower)
    figures = Figures(
        stable_samples=stable.samples,
        needed=_needed(criterion, allowed, slower(stable, theirs, limit).value),
        value=compared.quantile(ours, criterion.quantile),
        stable_value=middle,
        limit=limit,
    )
    return _compared(criterion, surely, maybe, (allowed, allowed), figures, of_stable, narrower)


def _share(criterion: Criterion, new: Ledger, stable: Ledger) -> Look:
    ours, theirs = (share(_slices(each, _bad(criterion))) for each in (new, stable))
    value = (1 - ours.value if criterion.at_least else ours.value) if ours.total else None
    if not criterion.compared:
        limit = criterion.limit or 0.0
        allowed = 1 - limit if criterion.at_least else limit
        return _verdict(
            criterion, ours, ours, allowed, Figures(needed=_needed(criterion, allowed), value=value, limit=limit)
        )
    ratio, narrower = criterion.to_stable or 1.0, both_unlucky(ours, theirs)
    least, _ = theirs.interval(looks.to_pass(criterion.confidence), narrower)
    _, most = theirs.interval(looks.to_fail(criterion.confidence), narrower)
    figures = Figures(
        stable_samples=theirs.total,
        needed=_needed(criterion, ratio * theirs.value, theirs.value),
        value=value,
        stable_value=theirs.value if theirs.total else None,
        limit=ratio * theirs.value if theirs.total else None,
    )
    return _compared(criterion, ours, ours, (ratio * most, ratio * least), figures, theirs, narrower)


def _verdict(criterion: Criterion, surely: Share, maybe: Share, allowed: float, figures: Figures) -> Look:
    """By bounds of the shares of requests that surely, and maybe, are bad."""
    return _bounded(criterion, surely, maybe, (allowed, allowed), figures, 1.0)


def _compared(
    criterion: Criterion,
    surely: Share,
    maybe: Share,
    allowed: tuple[float, float],
    figures: Figures,
    stable: Share,
    narrower: float,
) -> Look:
    seen = _bounded(criterion, surely, maybe, allowed, figures, narrower)
    if stable.total < criterion.min_samples or not stable.effective or figures.needed is None:
        return replace(seen, failed=False, passed=False)
    needed = _of_both(figures.needed, seen.effective / stable.effective)
    return replace(seen, figures=replace(seen.figures, needed=needed))


def _bounded(
    criterion: Criterion,
    surely: Share,
    maybe: Share,
    allowed: tuple[float, float],
    figures: Figures,
    narrower: float,
) -> Look:
    """``allowed`` is the share above which the version fails, and the one below which it passes."""
    low, _ = surely.interval(looks.to_fail(criterion.confidence), narrower)
    _, high = maybe.interval(looks.to_pass(criterion.confidence), narrower)
    to_fail, to_pass = allowed
    enough = surely.total >= criterion.min_samples
    known = surely.total > 0
    return Look(
        failed=enough and low > to_fail,
        passed=enough and high < to_pass,
        figures=replace(
            figures,
            samples=surely.total,
            bad=(surely.value + maybe.value) / 2 if known else None,
            low=low if known else None,
            high=high if known else None,
            allowed=(to_fail + to_pass) / 2,
        ),
        effective=min(surely.effective, maybe.effective),
    )


def _needed(criterion: Criterion, allowed: float, good: float | None = None) -> int:
    limit = min(max(allowed, _LEAST), _MOST)
    fitting = None if good is None else min(max(good, limit / 2), limit)
    return max(criterion.min_samples, looks.planned(limit, criterion.confidence, fitting))


def _mean(criterion: Criterion, new: Ledger, stable: Ledger) -> Look:
    """Passes or fails by the mean alone: values of a gauge are no independent draws of anything."""
    (ours, count), (theirs, of_stable) = (_average(each) for each in (new, stable))
    limit = criterion.limit
    if criterion.to_stable is not None:
        limit = criterion.to_stable * theirs if theirs is not None else None
    figures = Figures(
        samples=count,
        stable_samples=of_stable if criterion.compared else None,
        value=ours,
        stable_value=theirs if criterion.compared else None,
        limit=limit,
    )
    fewest = _fewest(criterion, new)
    known = count >= fewest and (not criterion.compared or of_stable >= fewest)
    if ours is None or limit is None or not known or (criterion.compared and not limit):
        # Of nothing each multiple is nothing, so that a single request would be too many.
        return Look(failed=False, passed=False, figures=figures)
    within = ours >= limit if criterion.at_least else ours <= limit
    # Idle servers have short queues and free caches: that a version is well can be said of one that has requests only,
    # and that it has too little as well.
    reached = new.reached() and (not criterion.compared or stable.reached())
    return Look(failed=not within and (reached or not criterion.at_least), passed=within and reached, figures=figures)


def _fewest(criterion: Criterion, new: Ledger) -> float:
    """Readings, or requests, below which a mean says nothing."""
    return criterion.min_samples if any(isinstance(each.more, Counts) for each in new.slices) else FEWEST_READINGS


def _average(ledger: Ledger) -> tuple[float | None, float]:
    """The mean and how many readings, or requests, it is of."""
    total, count = 0.0, 0.0
    for each in ledger.slices:
        match each.more:
            case Level():
                total, count = total + each.more.value, count + each.more.readings
            case Counts():
                total, count = total + each.more.bad, count + each.more.total
            case Histogram() | Work():
                continue
            case unknown:
                assert_never(unknown)
    return (total / count if count else None), count


def _stall(criterion: Criterion, new: Ledger) -> Look:
    """Fails at once: the pod that has stood still longest counts."""
    limit = criterion.limit or 0.0
    longest = max((each.still for each in new.pods.values()), default=None)
    seen = [each for each in new.slices if isinstance(each.more, Work)]
    figures = Figures(samples=len(seen), value=longest if seen else None, limit=limit)
    if longest is None or not seen:
        return Look(failed=False, passed=False, figures=figures)
    # A version that no request has reached has not shown that it works.
    return Look(failed=longest > limit, passed=longest <= limit and new.reached(), figures=figures)


def _slices(ledger: Ledger, count: _Count) -> Iterable[list[tuple[float, float]]]:
    """Bad and all requests of each pod's slices."""
    by_pod: dict[Key, list[tuple[float, float]]] = defaultdict(list)
    for each in ledger.slices:
        by_pod[each.pod] += [count(each.more)]
    return by_pod.values()


def _above(limit: float, inside: float) -> _Count:
    def counted(more: Reading) -> tuple[float, float]:
        return (more.above(limit, inside), more.total) if isinstance(more, Histogram) else (0.0, 0.0)

    return counted


def _bad(criterion: Criterion) -> _Count:
    def counted(more: Reading) -> tuple[float, float]:
        if not isinstance(more, Counts):
            return 0.0, 0.0
        return (more.total - more.bad if criterion.at_least else more.bad), more.total

    return counted
