"""Gates of the whole release: watched from the first share of requests to the end of the promotion.

None has to pass. One that fails stops the release where it is, or takes it back, as ``onFailure`` says. One that
compares with the stable version ends when that takes no requests any more.
"""

from __future__ import annotations

from functools import reduce

from rollout_lws.api import GateRecord, GateResult, MetricGate, PlannedGate
from rollout_lws.api.base import with_fields
from rollout_lws.rollout.decision import Wanted
from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.gates.base import Failed
from rollout_lws.rollout.gates.kinds.kind import Ended, Running
from rollout_lws.rollout.gates.kinds.table import kind_of
from rollout_lws.rollout.gates.records import end_of
from rollout_lws.rollout.gates.telling import named, sentence, tell, way_on
from rollout_lws.rollout.metrics_endpoints import metrics_of_stable
from rollout_lws.rollout.reasons import EventReason, Reason
from rollout_lws.rollout.routing.weights import carries, settings, weight_of
from rollout_lws.rollout.state import InSteps, Promoting
from rollout_lws.rollout.step_plan import gate_hash

#: The weight with which all requests go to the new version.
_ALL = 100
_COMPARED_NO_MORE = "the stable version takes no requests any more, so that there is nothing to compare with"


def _planned(d: Draft) -> tuple[PlannedGate, ...]:
    """Those of the plan; () once a promotion's plan was edited away."""
    style = d.o.rollout.spec.strategy.style
    return style.gates if style is not None else ()


def follow(d: Draft) -> Draft:
    """Begins them with the first requests, or the promotion, and records the results that are there now; nothing is
    acted on.
    """
    asked = _planned(d)
    if not asked:
        return d.set(release_gates=())
    if not d.status.release_gates and not _gets_requests(d):
        return d
    before = tuple(_record(d, gate) for gate in asked)
    after = tuple(_judged(d, gate, record) for gate, record in zip(asked, before, strict=True))
    d = d.set(release_gates=after)
    return reduce(tell, (now for then, now in zip(before, after, strict=True) if then.result != now.result), d)


def wanted(d: Draft) -> Wanted:
    """What those need that are watched now."""
    if not isinstance(d.state, InSteps | Promoting) or d.o.stable is None:
        return Wanted()
    records = ((gate, _known(d, gate)) for gate in _planned(d))
    watched = ((gate, record) for gate, record in records if record is not None and record.finished_at is None)
    return reduce(Wanted.plus, (kind_of(gate).wanted(d, gate, record) for gate, record in watched), Wanted())


def failed(d: Draft) -> Failed | None:
    """That one of them has failed, and was not passed by hand."""
    found = next((each for each in d.status.release_gates if each.result is GateResult.FAILED), None)
    return Failed(Reason.GATE_FAILED, sentence(found), way_on(d, found)) if found is not None else None


def again(d: Draft) -> Draft:
    """Has those that have failed watched again, from now on."""

    def anew(each: GateRecord) -> GateRecord:
        failed = each.result is GateResult.FAILED
        return GateRecord(name=each.name, hash=each.hash, since=d.now) if failed else each

    return d.set(release_gates=tuple(anew(each) for each in d.status.release_gates))


def current(d: Draft, name: str) -> GateRecord | None:
    """The record of a gate that was begun; None of any other."""
    if not isinstance(d.state, InSteps | Promoting):
        return None
    known = ((gate.name, _known(d, gate)) for gate in _planned(d))
    return next((record for called, record in known if called == name), None)


def _gets_requests(d: Draft) -> bool:
    """Whether requests may reach the new version: a share of it is routed, its groups are behind the user's own
    Service, or groups of the stable LWS are of it.
    """
    return isinstance(d.state, Promoting) or (d.new_ready > 0 and (settings(d) is None or carries(d)))


def _known(d: Draft, gate: PlannedGate) -> GateRecord | None:
    """The record of what the gate asks now."""
    asked = gate_hash(gate, d.o.rollout.spec.strategy.source)
    return next((each for each in d.status.release_gates if (each.name, each.hash) == (gate.name, asked)), None)


def _record(d: Draft, gate: PlannedGate) -> GateRecord:
    known = _known(d, gate)
    if known is not None and known.since is not None and not _compares_again(d, gate, known):
        return known
    return GateRecord(name=gate.name, hash=gate_hash(gate, d.o.rollout.spec.strategy.source), since=d.now)


def _judged(d: Draft, gate: PlannedGate, record: GateRecord) -> GateRecord:
    if record.finished_at is not None:
        return record
    if gate.metric is not None and gate.metric.max_to_stable is not None and _stable_is_left(d, gate.metric):
        return with_fields(record, finished_at=d.now, message=_COMPARED_NO_MORE)
    _, judged = kind_of(gate).judge(d, gate, record)
    match judged:
        case Running():
            return with_fields(record, message=judged.trouble or None, **judged.shown)
        case Ended():
            ended = {"result": judged.result, "finished_at": d.now, "message": judged.message}
            return with_fields(record, **ended, **judged.shown)


def _compares_again(d: Draft, gate: PlannedGate, record: GateRecord) -> bool:
    """Whether it had nothing to compare with, and has now."""
    ended = record.finished_at is not None and record.result is None
    return ended and gate.metric is not None and not _stable_is_left(d, gate.metric)


def _stable_is_left(d: Draft, metric: MetricGate) -> bool:
    """Whether the stable version takes no requests any more, or nothing tells them from those of the new one: in a
    promotion the pool of the stable version has groups of both.
    """
    if metric.of is not None and isinstance(d.state, Promoting):
        return True
    record = d.status.traffic
    if record is not None and settings(d) is not None and weight_of(record.applied) == _ALL:
        return True
    return isinstance(d.state, Promoting) and not metrics_of_stable(d)


def passed_by(d: Draft) -> Draft:
    """A user goes on without those that have failed; the action is on record with its actor."""
    left = [each.name for each in d.status.release_gates if each.result is GateResult.FAILED]
    if not left:
        return d
    skipped = {"result": GateResult.SKIPPED, "finished_at": d.now, "message": "the release went on without it"}
    after = (with_fields(each, **skipped) if each.name in left else each for each in d.status.release_gates)
    d = d.set(release_gates=tuple(after))
    ends = [end_of(d, each) for each in d.status.release_gates if each.name in left]
    return d.event(EventReason.GATE_SKIPPED, f"the release goes on without {named(left)}", gates=ends)
