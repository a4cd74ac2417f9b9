"""The gates that the current step's plan names, and what is known of each."""

from __future__ import annotations

from rollout_lws.api import GateRecord, GateStage, PlannedGate, StepGate
from rollout_lws.api.base import tallied, with_fields
from rollout_lws.rollout.decision import Asked, GateEnd, Question
from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.step_plan import gate_hash


def planned(d: Draft, stage: GateStage | None = None) -> tuple[StepGate, ...]:
    """The gates of the current step, those of one stage or all; () of a step that the plan no longer has."""
    index = d.sub.current_step_index
    gates = d.strategy.steps[index - 1].gates if 1 <= index <= len(d.strategy.steps) else ()
    return tuple(gate for gate in gates if stage is None or gate.when is stage)


def records(d: Draft, stage: GateStage) -> tuple[GateRecord, ...]:
    """Those of the step's gates of a stage, in their order; of a gate that is new or was edited, a new one."""
    known = known_records(d)
    asked = ((gate.name, gate_hash(gate, d.o.rollout.spec.strategy.source)) for gate in planned(d, stage))
    return tuple(known.get(each) or GateRecord(name=each[0], hash=each[1], since=d.now) for each in asked)


def known_records(d: Draft) -> dict[tuple[str, str], GateRecord]:
    """Those that the status has, by name and hash of what the gate asks."""
    return {(each.name, each.hash): each for each in reversed(d.status.gates) if each.since is not None}


def with_records(d: Draft, stage: GateStage, of_stage: tuple[GateRecord, ...]) -> Draft:
    """The draft with these of a stage; those of gates of the other stage stay, those of no gate go."""
    known = known_records(d)
    given = {each.name: each for each in of_stage}
    kept = []
    for gate in planned(d):
        if gate.when is stage:
            kept.append(given[gate.name])
        elif (found := known.get((gate.name, gate_hash(gate, d.o.rollout.spec.strategy.source)))) is not None:
            kept.append(found)
    return d.set(gates=tuple(kept))


def begun(d: Draft) -> tuple[tuple[StepGate, GateRecord], ...]:
    """Gates of the current step that have a record in the status, which is of what they ask now."""
    known = known_records(d)
    asked = ((gate, gate_hash(gate, d.o.rollout.spec.strategy.source)) for gate in planned(d))
    return tuple((gate, known[gate.name, text]) for gate, text in asked if (gate.name, text) in known)


def halt(d: Draft) -> Draft:
    """While the release is paused: deadlines of gates that have no result stand still."""
    step = d.status.step
    waits = any(each.result is None and each.since is not None for each in d.status.gates)
    return d.set_step(halted_at=d.now) if waits and (step is None or step.halted_at is None) else d


def go_on(d: Draft) -> Draft:
    """Once the release is not paused any more: the deadlines leave out the time in which it was."""
    since = d.status.step.halted_at if d.status.step is not None else None
    if since is None:
        return d

    def later(each: GateRecord) -> GateRecord:
        if each.result is not None or each.since is None:
            return each
        halted = (d.now - max(since, each.since)).total_seconds()
        return with_fields(each, halted=tallied((each.halted or 0) + round(halted)))

    return d.set_step(halted_at=None).set(gates=tuple(later(each) for each in d.status.gates))


def current(d: Draft, name: str) -> GateRecord | None:
    """The record of a gate of the step that was begun, a new one if it was edited since; None of any other."""
    if name not in {each.name for each in d.status.gates}:
        return None
    asked = {gate.name: gate for gate in planned(d)}.get(name)
    return next((each for each in records(d, asked.when) if each.name == name), None) if asked is not None else None


def end_of(d: Draft, record: GateRecord) -> GateEnd:
    """How a gate of the current step, or of the release, ended that has a result since now."""
    assert record.result is not None
    style = d.o.rollout.spec.strategy.style
    every: tuple[PlannedGate, ...] = (*planned(d), *(style.gates if style is not None else ()))
    kinds = next((gate.kinds for gate in every if gate.name == record.name), {})
    seconds = (d.now - (record.since or d.now)).total_seconds()
    return GateEnd(next(iter(kinds), ""), record.result, record, max(0.0, seconds))


def question(d: Draft, gate: PlannedGate, record: GateRecord, asks: Asked) -> Question:
    """What identifies the answers to a gate since it was begun."""
    return Question(gate.name, record.since or d.now, asks)
