"""Rounds of measurements until windows are over, and what Prometheus knows of windows that are."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from rollout_lws.analysis.trial import Trial
from rollout_lws.clock import Clock
from rollout_lws.measuring.pods import PodFigures
from rollout_lws.measuring.prometheus_sources import PrometheusFigures
from rollout_lws.rollout.decision import Answered, Measurement, Question

#: Told how many seconds of how many have been measured.
Progress = Callable[[float, float], None]


async def measured(
    source: PodFigures, namespace: str, wanted: Sequence[Measurement], clock: Clock, progress: Progress
) -> dict[Question, Trial]:
    """The trial of each, measured in common rounds from now on and ended when its window is over."""
    loop = asyncio.get_running_loop()
    zero = clock.now().timestamp() - loop.time()
    trials: dict[Question, Trial] = {}
    left = tuple(wanted)
    while left:
        begun = loop.time()
        folds = await source.round(namespace, left, trials)
        now = zero + loop.time()
        for question, fold in folds.items():
            trials[question] = _trial(fold(trials.get(question), now))
        progress(max(_done(each) for each in trials.values()), max(each.criterion.window for each in trials.values()))
        left = tuple(each for each in left if not _has_ended(trials[each.question]))
        if left:
            rest = min(trial.criterion.window - _done(trial) for trial in (trials[each.question] for each in left))
            await asyncio.sleep(max(0.0, min(begun + source.every - loop.time(), rest)))
    return {question: trial.ended() for question, trial in trials.items()}


async def looked_back(source: PrometheusFigures, namespace: str, wanted: Measurement, clock: Clock) -> Trial:
    """The trial of what was scraped since the question's own time, ended."""
    trials: dict[Question, Answered] = {}
    last = wanted.question.since.timestamp()
    while True:
        folds = await source.round(namespace, (wanted,), trials)
        trial = _trial(folds[wanted.question](trials.get(wanted.question), clock.now().timestamp()))
        # A round reads a part of a long time; nothing more has come once that is all, or is not to be had.
        if trial.verdict is not None or trial.last == last:
            return trial.ended()
        trials[wanted.question], last = trial, trial.last


def _done(trial: Trial) -> float:
    return trial.last - trial.began


def _has_ended(trial: Trial) -> bool:
    return trial.over or trial.verdict is not None


def _trial(answer: Answered) -> Trial:
    assert isinstance(answer, Trial), "it is what figures are folded into"
    return answer
