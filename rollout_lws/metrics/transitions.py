"""Counts what happened to a release, from two successive statuses and the current time.

Each status write is conditional on the previous status, so each transition is counted once, whichever replica wrote it
and however often controllers restart. If the write's answer is lost, it is not counted: too few rather than twice.
"""

from __future__ import annotations

from datetime import datetime

from prometheus_client import Histogram

from rollout_lws.api import ConditionType, Phase
from rollout_lws.metrics.glance import Status, glance
from rollout_lws.metrics.registry import Metrics
from rollout_lws.rollout.reasons import Ending


def tell(metrics: Metrics, before: bytes, after: bytes, now: datetime) -> None:
    """Count what happened between two versions of one Rollout's JSON."""
    was, is_now = glance(before), glance(after)
    if was is not None and is_now is not None:
        count(metrics, was.status, is_now.status, now)


def count(metrics: Metrics, before: Status, after: Status, now: datetime) -> None:
    """Count what happened between two statuses of one Rollout, the later of which was written at ``now``: a release
    that began or ended, a step that did, a user for whom a release waited, a state for a reason.

    How long is not observed where the beginning is unknown. A step that was left in the pass that entered it is not
    counted.
    """
    # A release that supersedes another may begin in the pass that ends that one.
    another = after.releasing and before.releasing and _in_steps(after) and not _in_steps(before)
    if before.releasing and (another or not after.releasing):
        outcome = before.finalising.reason if before.finalising else _verdict(after)
        metrics.ended.labels(outcome).inc()
        _observe(metrics.release.labels(outcome), before.since(ConditionType.PROGRESSING), now)
    if after.releasing and (another or not before.releasing):
        metrics.started.inc()
    if before.releasing and before.step is not None and _in_steps(before) and not _same_step(before, after):
        _observe(metrics.step, before.step.started_at, now)
    if (before.state, before.reason) != (after.state, after.reason):
        if before.waits_for_a_person and before.state != after.state and before.summary is not None:
            _observe(metrics.person.labels(before.state), before.summary.since, now)
        metrics.transitions.labels(after.state, after.reason).inc()


def _in_steps(status: Status) -> bool:
    return status.finalising is None


def _same_step(before: Status, after: Status) -> bool:
    same = before.step is not None and after.step is not None and before.step.started_at == after.step.started_at
    return same and after.releasing and _in_steps(after)


def _verdict(status: Status) -> str:
    """The outcome of a release that ended in the pass that began to end it."""
    if status.phase == Phase.ABORTED:
        return Ending.ABORTED
    ended = (each.reason for each in status.conditions if each.type == ConditionType.SUCCEEDED)
    return next(ended, "") or "Unknown"


def _observe(histogram: Histogram, since: datetime | None, now: datetime) -> None:
    if since is not None:
        histogram.observe(max(0.0, (now - since).total_seconds()))
