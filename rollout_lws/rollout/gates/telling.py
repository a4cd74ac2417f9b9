"""What is said of gates: Events of their results, and how a release goes on or waits."""

from __future__ import annotations

from rollout_lws.api import GateRecord, GateResult
from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.gates.base import Failed
from rollout_lws.rollout.gates.records import end_of
from rollout_lws.rollout.reasons import EventReason


def tell(d: Draft, record: GateRecord) -> Draft:
    """With the Event of a gate that has just ended."""
    match record.result:
        case GateResult.PASSED:
            return d.event(EventReason.GATE_PASSED, sentence(record), gates=[end_of(d, record)])
        case GateResult.FAILED:
            return d.event(EventReason.GATE_FAILED, sentence(record), warning=True, gates=[end_of(d, record)])
        case GateResult.INCONCLUSIVE | GateResult.ERROR:
            return d.event(EventReason.GATE_INCONCLUSIVE, sentence(record), warning=True, gates=[end_of(d, record)])
        case GateResult.SKIPPED | None:
            return d


def sentence(record: GateRecord) -> str:
    """Which gate, and why it ended as it did."""
    return f"gate {record.name}: {record.message}"


def way_on(d: Draft, record: GateRecord) -> str:
    """How the release goes on although the gate has not passed."""
    return f"to measure it again: {d.command('retry')}; to pass it by hand: {d.command('skip', record.name)}"


def waits(d: Draft, failure: Failed, what: str) -> Draft:
    """Verdict Stalled: ``what`` waits for a user, who is told how it goes on, and how it goes back."""
    why, back = failure.message.rstrip("."), d.command("abort")
    return d.stalled(failure.reason, f"{why}. The {what} waits, {failure.way_on}; to go back: {back}")


def named(names: list[str]) -> str:
    """Gates by their names."""
    return f"gate{'s' if len(names) > 1 else ''} {', '.join(names)}"
