"""Pass when every gate that the step's plan names for their stage has passed, or was skipped.

Gates of the step are asked from when its traffic is routed, those before traffic from when its groups are ready. Fails
when one of them finds the new version bad. What is missing is no verdict: a gate without one when its deadline is over
waits for a user.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

from rollout_lws.api import GateRecord, GateResult, GateStage, StepState, SummaryState
from rollout_lws.api.base import with_fields
from rollout_lws.rollout.draft import Advance, Draft
from rollout_lws.rollout.gates.base import PASSED, Answer, CurrentStep, Failed, Gate, Waiting
from rollout_lws.rollout.gates.kinds.kind import Ended, Running
from rollout_lws.rollout.gates.kinds.table import kind_of
from rollout_lws.rollout.gates.records import end_of, planned, records, with_records
from rollout_lws.rollout.gates.telling import named, sentence, tell, way_on
from rollout_lws.rollout.reasons import EventReason, Reason
from rollout_lws.rollout.routing import route

_OPEN = (GateResult.INCONCLUSIVE, GateResult.ERROR)
_LEFT = (GateResult.PASSED, GateResult.SKIPPED)


def _judged(stage: GateStage) -> Callable[[Draft, CurrentStep], tuple[Draft, Answer]]:
    def judge(d: Draft, step: CurrentStep) -> tuple[Draft, Answer]:
        if not planned(d, stage):
            return with_records(d, stage, ()), PASSED
        before = records(d, stage)
        if isinstance(d.intent, Advance):
            return _passed_by(d, stage, before), PASSED
        d, running, after = _looked(d, stage, before)
        d = with_records(d, stage, after)
        d = reduce(tell, (now for then, now in zip(before, after, strict=True) if then.result != now.result), d)
        d, answer = _answer(d, after, running)
        if stage is GateStage.BEFORE_TRAFFIC and answer != PASSED and step.routed is None:
            d, _ = route.keep(d)
        return d, answer

    return judge


def passed_by(d: Draft) -> Draft:
    """A user jumps on without the step's gates that have not passed."""
    for stage in GateStage:
        if planned(d, stage):
            d = _passed_by(d, stage, records(d, stage))
    return d


def _passed_by(d: Draft, stage: GateStage, before: tuple[GateRecord, ...]) -> Draft:
    """A user goes on without them, which is told once; the action is on record with its actor."""
    left = [each.name for each in before if each.result not in _LEFT]
    passed = {"result": GateResult.SKIPPED, "finished_at": d.now, "message": "the step was left without it"}
    after = tuple(with_fields(each, **passed) if each.name in left else each for each in before)
    d = with_records(d, stage, after)
    ends = [end_of(d, each) for each in after if each.name in left]
    return d.event(EventReason.GATE_SKIPPED, f"the step ends without {named(left)}", gates=ends) if left else d


def _looked(
    d: Draft, stage: GateStage, before: tuple[GateRecord, ...]
) -> tuple[Draft, dict[str, Running], tuple[GateRecord, ...]]:
    """Those that run on, by name, and all records with the results that are there now. If one has failed, nothing is
    begun for the others.
    """
    running: dict[str, Running] = {}
    given, after = d, []
    for gate, record in zip(planned(d, stage), before, strict=True):
        if record.result is not None:
            after.append(record)
            continue
        d, judged = kind_of(gate).judge(d, gate, record)
        match judged:
            case Running():
                running[gate.name] = judged
                after.append(with_fields(record, **judged.shown))
            case Ended():
                ended = {"result": judged.result, "finished_at": d.now, "message": judged.message, **judged.shown}
                after.append(with_fields(record, **ended))
    failed = any(each.result is GateResult.FAILED for each in after)
    return given if failed else d, running, tuple(after)


def _answer(d: Draft, after: tuple[GateRecord, ...], running: dict[str, Running]) -> tuple[Draft, Answer]:
    """A gate that failed counts more than one that is measured, and that more than one without a verdict."""
    failed = [each for each in after if each.result is GateResult.FAILED]
    if failed:
        return d, Failed(Reason.GATE_FAILED, sentence(failed[0]), way_on(d, failed[0]))
    if running:
        return d, _measuring(d, running)
    open_ones = [each for each in after if each.result in _OPEN]
    if open_ones:
        told = f"{sentence(open_ones[0])}; {way_on(d, open_ones[0])}; to go back: {d.command('abort')}"
        return d, Waiting(Reason.GATE_INCONCLUSIVE, SummaryState.STALLED, told)
    return d, PASSED


def _measuring(d: Draft, running: dict[str, Running]) -> Waiting:
    told = f"step {d.sub.current_step_index} is measured: {named([*running])}"
    troubles = (each.trouble for each in running.values() if each.trouble)
    told = "; ".join((told, *list(troubles)[:1]))
    until = min((each.until for each in running.values() if each.until is not None), default=None)
    return Waiting(Reason.ANALYZING, SummaryState.ANALYZING, told, until)


BEFORE_TRAFFIC = Gate(StepState.STEP_METRICS_ANALYSIS, _judged(GateStage.BEFORE_TRAFFIC))
ANALYSIS = Gate(StepState.STEP_METRICS_ANALYSIS, _judged(GateStage.DURING_STEP))
