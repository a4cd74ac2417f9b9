"""Gates that ask a question by HTTP: the leaders of the new version, each of them, or a Service."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any, cast

import msgspec

from rollout_lws.analysis.calls import Call, Calls, Said
from rollout_lws.api import GateRecord, GateResult, HttpGate, Phase, StepGate
from rollout_lws.rollout.decision import Endpoint, Measurement, Wanted
from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.gates.kinds import figures
from rollout_lws.rollout.gates.kinds.kind import Ended, Judged, Kind, Running, deadline_of, not_answered
from rollout_lws.rollout.gates.records import question
from rollout_lws.rollout.metrics_endpoints import requests_to_new

_NO_GROUP = "the new version has no ready group to ask"


def _wanted(d: Draft, gate: StepGate, record: GateRecord) -> Wanted:
    asked = question(d, gate, record, call_of(d, gate))
    known = d.o.answers.get(asked)
    left = (each for each in _targets(d, gate) if not isinstance(known, Calls) or not known.settled(each.uid))
    return Wanted(measurements=(Measurement(asked, tuple(left)),))


def _judge(d: Draft, gate: StepGate, record: GateRecord) -> tuple[Draft, Judged]:
    calls = d.o.answers.get(question(d, gate, record, call_of(d, gate)))
    if not isinstance(calls, Calls):
        return d, not_answered(d, gate, record, calls)
    targets, names = _targets(d, gate), figures.pods(d)
    found = answered(gate, calls, targets, names)
    if found is not None:
        return d, found
    # From the first answers, since a controller that was restarted begins anew with them.
    deadline = deadline_of(datetime.fromtimestamp(calls.began, UTC), gate.deadline, record)
    if deadline > d.now:
        left = (each.uid for each in targets if not calls.settled(each.uid))
        lasting = {uid: calls.undecided[uid].lasting for uid in left if uid in calls.undecided}
        open_one = _open_one(lasting)
        # An answer's own words may change with each round, and the status would with them.
        trouble = f"{_name(gate, open_one, names)} {lasting[open_one].why}" if open_one is not None else ""
        return d, Running(deadline, trouble)
    return d, unanswered(gate, calls, targets, names)


def answered(gate: StepGate, calls: Calls, targets: Sequence[Endpoint], names: Mapping[str, str]) -> Ended | None:
    """What the answers come to: one has failed, or all ``targets`` have passed; None while neither is so. ``names`` are
    those of pods, by uid.
    """
    if calls.failed is not None:
        return Ended(GateResult.FAILED, f"{_name(gate, calls.failed, names)} {calls.answers[calls.failed].sentence}")
    if not targets or not all(calls.settled(each.uid) for each in targets):
        return None
    if len(targets) > 1:
        return Ended(GateResult.PASSED, f"the leaders of {len(targets)} groups have passed")
    uid = targets[0].uid
    return Ended(GateResult.PASSED, f"{_name(gate, uid, names)} {calls.answers[uid].sentence}")


def unanswered(gate: StepGate, calls: Calls, targets: Sequence[Endpoint], names: Mapping[str, str]) -> Ended:
    """What it comes to when nothing more is asked, and neither has one failed nor have all passed."""
    left = [each.uid for each in targets if not calls.settled(each.uid)]
    last = {uid: calls.answers[uid] for uid in left if uid in calls.answers}
    open_one = _open_one(last)
    if open_one is None:
        return Ended(GateResult.ERROR, f"{_name(gate, left[0], names)} was not asked" if left else _NO_GROUP)
    result = GateResult.ERROR if last[open_one].verdict is None else GateResult.INCONCLUSIVE
    return Ended(result, f"{_name(gate, open_one, names)} {last[open_one].sentence}")


def _open_one(said: Mapping[str, Said]) -> str | None:
    """The target that is told of while it has not passed: one with an error before one without a verdict."""
    return min(said, key=lambda uid: said[uid].verdict is not None, default=None)


def _name(gate: StepGate, uid: str, names: Mapping[str, str]) -> str:
    service = _http(gate).service
    return f"Service {service}" if service is not None else f"pod {names.get(uid, uid)}"


def _http(gate: StepGate) -> HttpGate:
    return cast(HttpGate, gate.http)


def _targets(d: Draft, gate: StepGate) -> tuple[Endpoint, ...]:
    return targets_of(gate, partial(requests_to_new, d))


def targets_of(gate: StepGate, leaders: Callable[[str | None, str], tuple[Endpoint, ...]]) -> tuple[Endpoint, ...]:
    """All that have to pass now: the Service, or ready groups' ``leaders`` at a port and a path."""
    http = _http(gate)
    if http.service is not None:
        return (Endpoint(http.service, http.service, "", 0, http.path),)
    return leaders(str(http.port) if http.port is not None else None, http.path)


def call_of(d: Draft, gate: StepGate) -> Call:
    """The request of a gate of the current step."""
    http = _http(gate)
    posts = http.verb == "POST"
    headers = {name.lower(): text for name, text in http.headers.items()}
    if posts:
        headers.setdefault("content-type", "application/json")
    return Call(
        method=http.verb,
        path=http.path,
        service=http.service or "",
        port=str(http.port) if http.port is not None and http.service is not None else "",
        headers=tuple(sorted(headers.items())),
        body=(http.body if http.body is not None else _payload(d, gate)) if posts else None,
        seconds=float(http.timeout_seconds),
        fail_on=frozenset(http.fail_on),
    )


def _payload(d: Draft, gate: StepGate) -> str:
    """The body that a POST has by default: name, namespace, phase and metadata as Flagger sends them to its webhooks
    (its docs/gitbook/usage/webhooks.md), and what else tells the release. Nothing in it changes between two rounds.
    """
    meta, routings = d.o.rollout.metadata, d.strategy.traffic_routings
    document: dict[str, Any] = {
        "name": meta.name,
        "namespace": meta.namespace,
        "phase": Phase.PROGRESSING.value,
        "metadata": dict(sorted(_http(gate).metadata.items())),
        "gate": gate.name,
        "when": gate.when.value,
        "releaseId": d.release_id,
        "step": d.sub.current_step_index,
        "steps": len(d.strategy.steps),
        "newRevision": d.new_revision,
        "stableRevision": d.stable_revision,
        "service": routings[0].service if routings else "",
    }
    return msgspec.json.encode(document).decode()


HTTP = Kind(_judge, _wanted)
