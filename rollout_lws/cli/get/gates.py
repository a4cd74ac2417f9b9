"""Gates of the current step and of the release as lines of the header: results, and which are yet to begin. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from rollout_lws.cli.durations import short
from rollout_lws.cli.rollouts import gates, planned_gates, watched_gates
from rollout_lws.cli.view import age

Object = dict[str, Any]


def lines(rollout: Object, now: datetime) -> Iterator[str]:
    """Each gate: its result and why, what is measured since when, or when it begins."""
    planned, watched = ({str(each.get("name")): each for each in of(rollout)} for of in (planned_gates, watched_gates))
    every, known = planned | watched, gates(rollout)
    for record in known:
        ended = record.get("result") or record.get("finishedAt")
        yield _ended(record) if ended else _measured(record, every.get(record["name"], {}), now)
    begun = {each["name"] for each in known}
    for name, gate in planned.items():
        if name in begun:
            continue
        before = gate.get("when") == "BeforeTraffic"
        yield f"{name} begins when the step's {'groups are ready' if before else 'traffic is routed'}"
    yield from (f"{name} is watched from the first requests on" for name in watched if name not in begun)


def without_verdict(rollout: Object) -> list[Object]:
    """Records of gates for which a release waits for a user: failed, or come to nothing."""
    return [each for each in gates(rollout) if each.get("result") in ("Failed", "Inconclusive", "Error")]


def _ended(record: Object) -> str:
    by = f" by {record['by']}" if record.get("by") else ""
    why = f": {record['message']}" if record.get("message") else ""
    return f"{record['name']} {record.get('result') or 'has ended'}{by}{why}"


def _measured(record: Object, gate: Object, now: datetime) -> str:
    since, what = age(record.get("since"), now), f"Job {record['job']}" if record.get("job") else asks(gate)
    window = f", at least {short(gate['window'])} long" if gate.get("window") else ""
    told = f"{record['name']} is measured" + (f" for {since}" if since else "")
    return told + (f": {what}{window}" if what else "")


def asks(gate: Object) -> str:
    """What a gate asks, "" if that is not known."""
    if metric := gate.get("metric"):
        quantile = f" p{metric['quantile']}" if metric.get("quantile") else ""
        return f"{metric.get('signal')}{quantile} {_limit(metric)}"
    if query := gate.get("query"):
        return f"its query {_limit(query)}"
    if http := gate.get("http"):
        whom = f"Service {http['service']}" if http.get("service") else "each new group"
        return f"{http.get('path') or '/'} of {whom}"
    job = gate.get("job") or {}
    return f"a Job of CronJob {job['fromCronJob']}" if job.get("fromCronJob") else ""


def _limit(asked: Object) -> str:
    if asked.get("maxToStable"):
        return f"at most {asked['maxToStable']} of stable's"
    return f"at least {asked['min']}" if asked.get("min") else f"at most {asked.get('max')}"
