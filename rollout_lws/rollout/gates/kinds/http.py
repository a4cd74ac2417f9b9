"""Gates that ask a question by HTTP: the leaders of the new version, each of them, or a Service."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import msgspec

from rollout_lws.analysis.calls import Call, Calls, Said
from rollout_lws.api import GateRecord, GateResult, HttpGate, Phase, StepGate
from rollout_lws.rollout.decision import Endpoint, Measurement, Wanted
from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.gates.kinds import figures
from rollout_lws.rollout.gates.kinds.kind import Ended, Judged, Kind, Running, unanswered
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
        return d, unanswered(d, gate, calls)
    if calls.failed is not None:
        return d, Ended(GateResult.FAILED, f"{_name(d, gate, calls.failed)} {calls.answers[calls.failed].sentence}")
    targets = [each.uid for each in _targets(d, gate)]
    left = [uid for uid in targets if not calls.settled(uid)]
    if targets and not left:
        return d, Ended(GateResult.PASSED, _passed(d, gate, calls, targets))
    # From the first answers, since a controller that was restarted begins anew with them.
    deadline = datetime.fromtimestamp(calls.began, UTC) + timedelta(seconds=gate.deadline)
    if deadline > d.now:
        lasting = {uid: calls.undecided[uid].lasting for uid in left if uid in calls.undecided}
        open_one = _open_one(lasting)
        # An answer's own words may change with each round, and the status would with them.
        return d, Running(deadline, f"{_name(d, gate, open_one)} {lasting[open_one].why}" if open_one else "")
    last = {uid: calls.answers[uid] for uid in left if uid in calls.answers}
    open_one = _open_one(last)
    if open_one is None:
        return d, Ended(GateResult.ERROR, _NO_GROUP if not targets else f"{_name(d, gate, left[0])} was not asked")
    result = GateResult.ERROR if last[open_one].verdict is None else GateResult.INCONCLUSIVE
    return d, Ended(result, f"{_name(d, gate, open_one)} {last[open_one].sentence}")


def _open_one(said: Mapping[str, Said]) -> str | None:
    """The target that is told of while it has not passed: one with an error before one without a verdict."""
    return min(said, key=lambda uid: said[uid].verdict is not None, default=None)


def _passed(d: Draft, gate: StepGate, calls: Calls, targets: list[str]) -> str:
    if len(targets) == 1:
        return f"{_name(d, gate, targets[0])} {calls.answers[targets[0]].sentence}"
    return f"the leaders of {len(targets)} groups have passed"


def _name(d: Draft, gate: StepGate, uid: str) -> str:
    service = _http(gate).service
    return f"Service {service}" if service is not None else f"pod {figures.pods(d).get(uid, uid)}"


def _http(gate: StepGate) -> HttpGate:
    return cast(HttpGate, gate.http)


def _targets(d: Draft, gate: StepGate) -> tuple[Endpoint, ...]:
    """All that have to pass now: the ready groups' leaders, or the Service."""
    http = _http(gate)
    if http.service is not None:
        return (Endpoint(http.service, http.service, "", 0, http.path),)
    return requests_to_new(d, str(http.port) if http.port is not None else None, http.path)


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
