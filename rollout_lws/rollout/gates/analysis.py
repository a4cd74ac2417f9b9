"""Passes when every gate that the step's plan names has passed, or was skipped.

A gate is measured from when the step's traffic is routed. Fails when one of them finds the new version bad. What is
missing is no verdict: a gate without one when its deadline is over waits for a user.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import reduce

from rollout_lws.analysis.criterion import Verdict
from rollout_lws.analysis.trial import Trial
from rollout_lws.api import GateRecord, GateResult, StepGate, StepState, SummaryState
from rollout_lws.api.base import with_fields
from rollout_lws.api.gate_rules import criterion
from rollout_lws.rollout.decision import Question
from rollout_lws.rollout.draft import Advance, Draft
from rollout_lws.rollout.gates import figures
from rollout_lws.rollout.gates.base import PASSED, Answer, CurrentStep, Failed, Gate, Waiting
from rollout_lws.rollout.reasons import EventReason, Reason
from rollout_lws.rollout.step_plan import gate_hash


def planned(d: Draft) -> tuple[StepGate, ...]:
    """The gates of the current step; () of one that the plan no longer has."""
    index = d.sub.current_step_index
    return d.strategy.steps[index - 1].gates if 1 <= index <= len(d.strategy.steps) else ()


def records(d: Draft) -> tuple[GateRecord, ...]:
    """Those of the step's gates, in their order; of a gate that is new or was edited, a new one."""
    known = {(each.name, each.hash): each for each in reversed(d.status.gates) if each.since is not None}
    asked = ((gate.name, gate_hash(gate, d.o.rollout.spec.strategy.source)) for gate in planned(d))
    return tuple(known.get(each) or GateRecord(name=each[0], hash=each[1], since=d.now) for each in asked)


def question(d: Draft, gate: StepGate, record: GateRecord) -> Question:
    """What identifies the measurement of a gate."""
    return Question(gate.name, record.since or d.now, criterion(gate, d.o.rollout.spec.strategy.source))


def _judge(d: Draft, step: CurrentStep) -> tuple[Draft, Answer]:
    if not step.plan.gates:
        return d.set(gates=()), PASSED
    before = records(d)
    if isinstance(d.intent, Advance):
        return _passed_by(d, before), PASSED
    d = d.set(gates=tuple(_ended(d, gate, each) for gate, each in zip(step.plan.gates, before, strict=True)))
    d = reduce(_told, (now for then, now in zip(before, d.status.gates, strict=True) if then.result != now.result), d)
    return _answer(d, step)


def _passed_by(d: Draft, before: tuple[GateRecord, ...]) -> Draft:
    """A user goes on without them; the action is on record with its actor."""
    left = [each.name for each in before if each.result not in (GateResult.PASSED, GateResult.SKIPPED)]
    d = d.set(gates=before)
    return d.event(EventReason.GATE_SKIPPED, f"the step ends without {_named(left)}") if left else d


def _ended(d: Draft, gate: StepGate, record: GateRecord) -> GateRecord:
    """The record with its result, if there is one now."""
    if record.result is not None:
        return record
    asked = question(d, gate, record)
    trial = d.o.trials.get(asked)
    if trial is None:
        # The first round is on its way.
        return record
    if _deadline(gate, trial) <= d.now:
        trial = trial.ended()
    match trial.verdict:
        case None:
            return record
        case Verdict.PASSED:
            result = GateResult.PASSED
        case Verdict.FAILED:
            result = GateResult.FAILED
        case Verdict.INCONCLUSIVE:
            result = GateResult.ERROR if trial.unread or trial.new.silent() else GateResult.INCONCLUSIVE
    told = figures.why(asked.criterion, trial, figures.pods(d))
    shown = figures.values(asked.criterion, trial.figures)
    return with_fields(record, result=result, finished_at=d.now, message=told, **shown)


def _deadline(gate: StepGate, trial: Trial) -> datetime:
    """From the first figures, since a controller that was restarted begins anew with them."""
    return datetime.fromtimestamp(trial.began, UTC) + timedelta(seconds=gate.deadline)


def _told(d: Draft, record: GateRecord) -> Draft:
    match record.result:
        case GateResult.PASSED:
            return d.event(EventReason.GATE_PASSED, f"gate {record.name}: {record.message}")
        case GateResult.FAILED:
            return d.event(EventReason.GATE_FAILED, f"gate {record.name}: {record.message}", warning=True)
        case GateResult.INCONCLUSIVE | GateResult.ERROR:
            return d.event(EventReason.GATE_INCONCLUSIVE, f"gate {record.name}: {record.message}", warning=True)
        case GateResult.SKIPPED | None:
            return d


def _answer(d: Draft, step: CurrentStep) -> tuple[Draft, Answer]:
    """A gate that failed counts more than one that is measured, and that more than one without a verdict."""
    failed = [each for each in d.status.gates if each.result is GateResult.FAILED]
    if failed:
        return d, Failed(Reason.GATE_FAILED, _sentence(failed[0]), _way_on(d, failed[0]))
    running = [(gate, each) for gate, each in zip(step.plan.gates, d.status.gates, strict=True) if each.result is None]
    if running:
        return d, _measuring(d, running)
    open_ones = [each for each in d.status.gates if each.result in (GateResult.INCONCLUSIVE, GateResult.ERROR)]
    if open_ones:
        told = f"{_sentence(open_ones[0])}; {_way_on(d, open_ones[0])}; to go back: {d.command('abort')}"
        return d, Waiting(Reason.GATE_INCONCLUSIVE, SummaryState.STALLED, told)
    return d, PASSED


def _measuring(d: Draft, running: list[tuple[StepGate, GateRecord]]) -> Waiting:
    asked = ((gate, d.o.trials.get(question(d, gate, each))) for gate, each in running)
    trials = [(gate, trial) for gate, trial in asked if trial is not None]
    told = f"step {d.sub.current_step_index} is measured: {_named([each.name for _, each in running])}"
    lost = figures.lost((trial for _, trial in trials), figures.pods(d))
    if lost:
        told += f"; {lost}"
    return Waiting(
        Reason.ANALYZING, SummaryState.ANALYZING, told, min((_deadline(*each) for each in trials), default=None)
    )


def _sentence(record: GateRecord) -> str:
    return f"gate {record.name}: {record.message}"


def _way_on(d: Draft, record: GateRecord) -> str:
    return f"to measure it again: {d.command('retry')}; to pass it by hand: {d.command('skip', record.name)}"


def _named(names: list[str]) -> str:
    return f"gate{'s' if len(names) > 1 else ''} {', '.join(names)}"


ANALYSIS = Gate(StepState.STEP_METRICS_ANALYSIS, _judge)
