"""What the page shows of one release, as a JSON value: steps, groups, gates, accelerators, and what one may do. Pure.

Times are RFC 3339, by the API server's clock or the kubelets'; how long something takes is the page's to say, which has
that clock. Texts are text, whatever a container has put into them.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from rollout_lws.analysis.kinds import MEASURES, Measure
from rollout_lws.cli.dashboard.loads import loads
from rollout_lws.cli.dashboard.offers import offers
from rollout_lws.cli.dashboard.steps import current, ending, step_view
from rollout_lws.cli.dashboard.timeline import timeline
from rollout_lws.cli.get import gates as gate_words
from rollout_lws.cli.get.ahead import after_approval, command_lines
from rollout_lws.cli.get.bands import Band, bands, trouble_of
from rollout_lws.cli.get.caller import Caller
from rollout_lws.cli.get.header import (
    accelerators_held,
    changes,
    extra_accelerators,
    peak_of,
    users,
    version_before,
)
from rollout_lws.cli.get.plan import PlannedStep, accompanying, planned_steps
from rollout_lws.cli.releases import Release
from rollout_lws.cli.rollouts import gates, message, planned_gates, releasing, summary, watched_gates
from rollout_lws.cli.sides import called, goes_back, named, released_kind, scales_sides, sides_of, tells_share
from rollout_lws.workload.groups import Group
from rollout_lws.workload.pod_words import ON_THE_WAY

Object = dict[str, Any]


def view(shown: Release, now: datetime, caller: Caller) -> Object:
    """The whole page of one release, the same as long as nothing changes; ``now`` is the cluster's time."""
    rollout = shown.rollout
    meta, status, said = rollout["metadata"], rollout.get("status") or {}, summary(rollout)
    steps, entries = planned_steps(rollout, shown.full_size), timeline(rollout)
    traffic, counted = (status.get("traffic") or {}) if tells_share(rollout) else {}, status.get("groups") or {}
    changed = list(changes(shown))
    wrote, at_fault = next((each for each in changed if each.by), None), _at_fault(rollout)
    return {
        "namespace": meta["namespace"],
        "name": meta["name"],
        "uid": meta["uid"],
        "kind": released_kind(rollout).kind,
        "workload": _workloads(rollout),
        "release": str(status.get("observedRolloutID") or ""),
        "state": said["state"],
        "since": said["since"],
        "releasing": releasing(rollout),
        "paused": bool(status.get("paused")),
        "message": message(rollout),
        "change": "; ".join(map(str, changed)),
        "changedBy": wrote.by if wrote is not None else "",
        "changedAt": _time(wrote.at if wrote is not None else None),
        "users": users(shown),
        "causes": [_cause(each) for each in status.get("notReadyGroups") or ()],
        "at": int(status.get("currentStepIndex") or 0),
        "stepState": str(status.get("currentStepState") or ""),
        "current": current(rollout),
        "ending": ending(rollout),
        "steps": [step_view(rollout, each, entries) for each in steps],
        "after": after_approval(shown, steps),
        "versions": [_version(band, now, at_fault) for band in bands(shown)],
        "gates": list(_gates(rollout)),
        "asked": _weight(traffic.get("desired")),
        "accepted": _weight(traffic.get("applied")),
        "ready": {version: (counted.get(version) or {}).get("ready") for version in ("new", "stable")},
        "timeline": entries,
        "loads": loads(shown, steps),
        "accelerators": _accelerators(shown, steps),
        "offers": offers(shown, steps),
        "commands": command_lines(shown, caller),
    }


def _workloads(rollout: Object) -> str:
    """The workload, or both sides of a pair, as commands name them."""
    first, sides = named(rollout), sides_of(rollout)
    if sides is None:
        return called(rollout, first)
    other = sides.inactive if sides.active == first else sides.active
    return f"{sides.called(first)} and {sides.called(other)}"


def _cause(told: Object) -> Object:
    return {key: str(told.get(key) or "") for key in ("workload", "group", "pod", "container", "reason", "message")}


def _accelerators(shown: Release, steps: tuple[PlannedStep, ...]) -> Object:
    """Held now, beyond the workload's own, at the peak, and once the release is over; None for what is not known."""
    told, most = summary(shown.rollout)["accelerators"], peak_of(shown, steps)
    held = accelerators_held(shown)
    return {
        "now": None if not told.isdigit() else int(told) if held is None else held,
        "extra": extra_accelerators(shown),
        "peak": most.accelerators if most is not None else None,
        "peakStep": most.step if most is not None else None,
        "after": _after(shown),
    }


def _after(shown: Release) -> int | None:
    """Accelerators at rest of the groups of the new version, or on a way back of the old one; None while no release is
    on, and of a pair whose owner scales it, where both sides stay.
    """
    rollout, edited = shown.rollout, shown.edited
    by_owner = sides_of(rollout) is not None and not scales_sides(rollout)
    if edited is None or by_owner or not releasing(rollout):
        return None
    full = shown.full_size
    if goes_back(rollout) and shown.stable is not None:
        ones = (one for one, _ in shown.companions if one is not None)
        beside_old = sum(one.workload.replicas * one.workload.version.accelerators for one in ones)
        return full * version_before(shown, shown.stable).accelerators + beside_old
    beside = zip((other for _, other in shown.companions), accompanying(rollout, full, full), strict=False)
    of_companions = (facts.workload.version.accelerators * count for facts, count in beside if facts is not None)
    return full * edited.workload.version.accelerators + sum(of_companions)


def _at_fault(rollout: Object) -> frozenset[tuple[str, str]]:
    """Groups that are not ready for another reason than that they start up, by workload and index."""
    told = (rollout.get("status") or {}).get("notReadyGroups") or ()
    found = (each for each in told if each.get("container") or each.get("reason") not in ON_THE_WAY)
    return frozenset((str(each.get("workload")), str(each.get("group"))) for each in found)


def _version(band: Band, now: datetime, at_fault: frozenset[tuple[str, str]]) -> Object:
    return {
        "workload": band.facts.name,
        "role": band.role,
        "revision": band.revision,
        "new": band.is_new,
        "weight": band.weight,
        "asked": band.asked,
        "info": band.info,
        "groups": [_group(group, band, now, at_fault) for group in band.groups],
    }


def _group(group: Group, band: Band, now: datetime, at_fault: frozenset[tuple[str, str]]) -> Object:
    """One cell. ``state`` is a word of a closed list: ready, loading, failed, draining, terminating."""
    trouble = trouble_of(group.leader)
    why = band.reasons.get((band.facts.name, group.index), "") or trouble
    has_failed = bool(trouble) or (band.facts.name, group.index) in at_fault
    leader, drained = group.leader.metadata, band.drains.get(group.uid)
    if group.exhausted:
        state, since = "failed", leader.deletion_timestamp
    elif group.terminating:
        state, since = "terminating", leader.deletion_timestamp
    elif drained is not None:
        state, since = "draining", drained
    elif group.ready(now):
        state, since = "ready", group.ready_since
    else:
        state, since = "failed" if has_failed else "loading", leader.creation_timestamp
    return {
        "index": group.index,
        "state": state,
        "why": why,
        "since": _time(since),
        "created": _time(leader.creation_timestamp),
        "leader": leader.name,
        "node": group.leader.spec.node_name,
        "pods": group.size,
    }


def _gates(rollout: Object) -> Iterator[Object]:
    """Each gate of the step and of the release: what it asks, and what the status knows of it."""
    known = {str(each["name"]): each for each in gates(rollout)}
    for of, planned in (("step", planned_gates(rollout)), ("release", watched_gates(rollout))):
        for gate in planned:
            name = str(gate.get("name"))
            kept = known.get(name, {})
            yield {
                "name": name,
                "of": of,
                "asks": gate_words.asks(gate),
                "least": _at_least(gate),
                "isShare": _is_share(gate),
                "window": gate.get("window"),
                **{key: kept.get(key) for key in _OF_GATE},
            }


def _at_least(gate: Object) -> bool:
    return bool((gate.get("metric") or gate.get("query") or {}).get("min"))


def _is_share(gate: Object) -> bool:
    """Whether the gate's figure is itself the share of requests that its interval is about."""
    return (gate.get("metric") or {}).get("signal") in _SHARES and not _at_least(gate)


_SHARES = frozenset(str(signal) for signal, measure in MEASURES.items() if measure is Measure.SHARE)
_OF_GATE = (
    "result",
    "since",
    "finishedAt",
    "value",
    "stableValue",
    "limit",
    "samples",
    "stableSamples",
    "share",
    "shareFrom",
    "shareTo",
    "shareLimit",
    "message",
    "by",
    "job",
)


def _weight(known: Object | None) -> int | None:
    return None if known is None else int(known.get("weight") or 0)


def _time(at: datetime | None) -> str:
    return at.isoformat() if at is not None else ""
