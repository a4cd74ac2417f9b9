"""How a release looks in a terminal: header, steps, tree of versions and groups. Pure: values in, lines out."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from rollout_lws.cli.durations import short
from rollout_lws.cli.releases import Release, message, style, summary
from rollout_lws.workload.facts import Facts
from rollout_lws.workload.groups import Group, groups

Object = dict[str, Any]
_LABEL = 9


@dataclass(frozen=True, slots=True)
class Run:
    """Neighbouring groups of one LWS that are in the same state, shown as one line."""

    groups: tuple[Group, ...]
    ready: int

    @property
    def name(self) -> str:
        first, last = self.groups[0].index, self.groups[-1].index
        return f"group {first}" if first == last else f"groups {first}-{last}"


def table(rows: Iterable[tuple[str, ...]]) -> list[str]:
    """Rows as columns, three spaces apart, without trailing blanks; empty columns stay."""
    listed = [tuple(row) for row in rows]
    widths = [max(len(cell) for cell in column) for column in zip(*listed, strict=True)]
    return ["   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in listed]


def document(value: Any, output: str) -> str:
    """A value as ``output`` (json or yaml) writes it, with its last line end."""
    if output == "json":
        return json.dumps(value, indent=4) + "\n"
    import yaml

    return str(yaml.safe_dump(value, sort_keys=False))


def age(created: str | datetime | None, now: datetime) -> str:
    if not created:
        return ""
    moment = datetime.fromisoformat(created) if isinstance(created, str) else created
    return short((now - moment).total_seconds())


def overview(rollouts: Iterable[Object], now: datetime, *, namespaces: bool) -> list[str]:
    """One line a Rollout; ``namespaces`` adds the column."""
    rows = [("NAMESPACE", "NAME", "STATUS", "STEP", "TRAFFIC", "NEW", "STABLE", "AGE")]
    for each in rollouts:
        said, meta = summary(each), each["metadata"]
        state = said["state"] or "Unknown"
        words = (state, said["step"], said["traffic"], said["new"], said["stable"])
        rows.append((meta["namespace"], meta["name"], *words, age(meta.get("creationTimestamp"), now)))
    return table(row if namespaces else row[1:] for row in rows)


def release(shown: Release, now: datetime) -> list[str]:
    """The whole picture of one release, ending with the commands that make sense now."""
    lines = _header(shown, now)
    steps = _steps(shown.rollout)
    if steps:
        lines.append(_field("Steps", steps))
    tree = _tree(shown, now)
    if len(tree) > 1:
        lines += ["", *table(tree)]
    following = _next(shown.rollout)
    return lines + (["", *following] if following else [])


def _header(shown: Release, now: datetime) -> list[str]:
    rollout, said = shown.rollout, summary(shown.rollout)
    meta, status = rollout["metadata"], rollout.get("status") or {}
    title = f"{meta['name']}  LeaderWorkerSet/{rollout['spec']['workloadRef']['name']}  ns {meta['namespace']}"
    if status.get("observedRolloutID"):
        title += f"   release {status['observedRolloutID']}"
    if shown.stable is not None:
        title += f"  LWS generation {shown.stable.lws.metadata.generation}"
    state = said["state"] or "Unknown"
    state += f" step {said['step']}" if said["step"] else ""
    state += f" for {_since(said['since'], now)}" if said["since"] else ""
    lines = [title, _field("Status", state)]
    if message(rollout):
        lines.append(_field("Message", message(rollout)))
    if said["traffic"]:
        lines.append(_field("Users", f"new {said['traffic']}"))
    counts = [f"{side} {said[side]} ready" for side in ("new", "stable") if said[side]]
    if counts:
        lines.append(_field("Groups", "   ".join(counts)))
    if said["accelerators"]:
        lines.append(_field("GPU", said["accelerators"]))
    for trouble in (status.get("notReadyGroups") or ())[:3]:
        where = f"{trouble.get('workload')} group {trouble.get('group')}"
        lines.append(_field("Cause", f"{where}: {trouble.get('reason')} {trouble.get('message') or ''}".rstrip()))
    return lines


def _since(text: str, now: datetime) -> str:
    try:
        return age(text, now)
    except ValueError:
        return text


def _field(label: str, text: str) -> str:
    return f"{label:<{_LABEL}}{text}"


def _steps(rollout: Object) -> str:
    """Each step with its size; the current one marked with ">", those behind it with "v"."""
    plan = style(rollout)
    status = rollout.get("status") or {}
    current = int(status.get("currentStepIndex") or 0)
    on = status.get("phase") == "Progressing"
    parts = []
    for index, step in enumerate(plan.get("steps") or (), 1):
        mark = ("v" if index < current else ">" if index == current else " ") if on else " "
        size = step.get("replicas", "")
        unit = "" if isinstance(size, str) else " group" if size == 1 else " groups"
        parts.append(f"{mark} {index}  {size}{unit} {step.get('traffic') or ''}".rstrip())
    return "  ".join(parts)


def _tree(shown: Release, now: datetime) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [("NAME", "ROLE", "REV", "READY", "AGE", "INFO")]
    for role, facts in (("stable", shown.stable), ("canary", shown.canary)):
        if facts is not None:
            rows += _side(role, facts, now, _stable_revision(shown))
    return rows


def _stable_revision(shown: Release) -> str:
    """What groups of the LWS itself carry until they are renewed; "" where that is not known."""
    known = (shown.rollout.get("status") or {}).get("stable") or {}
    return str(known.get("revision") or "")


def _side(role: str, facts: Facts, now: datetime, stable: str) -> list[tuple[str, ...]]:
    lws, found = facts.lws, groups(facts)
    ready = sum(group.ready(now) for group in found if group.ordinal < lws.spec.replicas)
    revision = facts.leader_set.revision if facts.leader_set is not None else ""
    info = "terminating" if lws.metadata.terminating else ""
    rows: list[tuple[str, ...]] = [
        (
            lws.metadata.name,
            role,
            revision,
            f"{ready}/{lws.spec.replicas}",
            age(lws.metadata.creation_timestamp, now),
            info,
        )
    ]
    for run in runs(found, now):
        leader = run.groups[0].leader
        rows.append(
            (
                f"  {run.name}",
                "new" if role == "stable" and stable not in ("", run.groups[0].revision) else "",
                run.groups[0].revision,
                f"{run.ready}/{len(run.groups)}",
                age(leader.metadata.creation_timestamp, now),
                _info(run, now),
            )
        )
    return rows


def runs(found: Iterable[Group], now: datetime) -> list[Run]:
    """Groups in their order, neighbours of the same revision, readiness and fate together."""
    result: list[Run] = []
    previous: object = None
    for group in found:
        state = (group.revision, group.ready(now), group.terminating)
        if state == previous:
            result[-1] = Run((*result[-1].groups, group), result[-1].ready + group.ready(now))
        else:
            result.append(Run((group,), int(group.ready(now))))
        previous = state
    return result


def _info(run: Run, now: datetime) -> str:
    group = run.groups[0]
    created = group.leader.metadata.creation_timestamp
    if group.terminating:
        return "terminating"
    if created is None:
        return ""
    if group.ready_since is None:
        return f"loading for {short((now - created).total_seconds())}"
    return f"loaded in {short((group.ready_since - created).total_seconds())}"


def _next(rollout: Object) -> list[str]:
    name, state = rollout["metadata"]["name"], summary(rollout)["state"]
    status = rollout.get("status") or {}
    if state == "AwaitingApproval":
        step = status.get("currentStepIndex")
        return [
            _field("Next", f"rollout-lws promote {name}   # approves step {step} of this release only"),
            _field("", f"rollout-lws abort {name}     # {_effect_of_abort(status)}"),
        ]
    task = (status.get("finalising") or {}).get("task")
    if status.get("phase") == "Progressing" and task in (None, "Promote") and state != "HoldReleased":
        return [_field("Next", f"rollout-lws abort {name}     # {_effect_of_abort(status)}")]
    return []


def _effect_of_abort(status: Object) -> str:
    renews = (status.get("finalising") or {}).get("task") or status.get("capacity") == "InPlace"
    return "groups that are renewed go back to the old version" if renews else "stable untouched"
