"""The header above the tree: state, change, effect on users' requests, and accelerators of a release. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise
from typing import Any

from rollout_lws.cli.changes import changed
from rollout_lws.cli.durations import short
from rollout_lws.cli.get import gates
from rollout_lws.cli.get.author import author
from rollout_lws.cli.get.plan import Peak, PlannedStep, peak
from rollout_lws.cli.releases import Release
from rollout_lws.cli.rollouts import message, releasing, summary
from rollout_lws.cli.sides import (
    Sides,
    goes_back,
    has_promoted,
    have_turned,
    named,
    names_served,
    released_kind,
    roles_of,
    scales_sides,
    serves_alone,
    sides_of,
    tells_share,
)
from rollout_lws.cli.view import age, instant, plain
from rollout_lws.objects.scaling import weight_text
from rollout_lws.targets.version import Version
from rollout_lws.workload.accelerators import held
from rollout_lws.workload.facts import Facts
from rollout_lws.workload.groups import groups

Object = dict[str, Any]
_LABEL = 9
#: Groups that are not ready to print, one line each.
_CAUSES = 3


def field(label: str, text: str) -> str:
    """A line of the header; continuation lines have an empty label."""
    return f"{label:<{_LABEL}}{plain(text)}"


def header(shown: Release, steps: tuple[PlannedStep, ...], now: datetime) -> list[str]:
    lines = [_title(shown), field("Status", _state(shown, now))]
    fields = [
        ("Message", message(shown.rollout)),
        *(("Cause", cause) for cause in _causes(shown.rollout)),
        *(("Gate", gate) for gate in gates.lines(shown.rollout, now)),
        ("Change", _change(shown, now)),
        ("Users", users(shown)),
        ("Groups", _groups(shown, now)),
        ("GPU", _accelerators(shown, steps)),
        ("Steps", _steps(shown.rollout, steps)),
    ]
    return lines + [field(label, text) for label, text in fields if text]


def _title(shown: Release) -> str:
    meta, status = shown.rollout["metadata"], shown.rollout.get("status") or {}
    sides = roles_of(shown.rollout)
    title = f"{meta['name']}  {_workloads(shown.rollout, sides)}  ns {meta['namespace']}"
    if status.get("observedRolloutID") and names_served(shown.rollout):
        title += f"   release {status['observedRolloutID']}"
    if shown.edited is not None and sides_of(shown.rollout) is None:
        title += f"  workload generation {shown.edited.workload.metadata.generation}"
    return title


def _workloads(rollout: Object, sides: Sides | None) -> str:
    kind = released_kind(rollout).kind
    if sides is None:
        return f"{kind}/{named(rollout)}"
    roles = [(name, sides.role(name)) for name in (sides.active, sides.inactive)]
    return " and ".join(f"{kind}/{name}" + (f" ({role})" if role else "") for name, role in roles)


def _state(shown: Release, now: datetime) -> str:
    said = summary(shown.rollout)
    words = [said["state"] or "Unknown"]
    if said["step"]:
        words.append(f"step {said['step']}")
    since = age(said["since"], now)
    if since:
        words.append(f"for {since}")
    extra = extra_accelerators(shown)
    if extra and releasing(shown.rollout):
        words.append(f"(holding {extra} GPU)")
    return " ".join(words)


def extra_accelerators(shown: Release) -> int:
    """Accelerators that the release holds beyond the LWS's own replicas; unscheduled pods hold none. Of a pair those of
    the inactive side, unless its owner scales it, and less those that the active side has given up for them.
    """
    of_owner = sides_of(shown.rollout) is not None and not scales_sides(shown.rollout)
    if shown.stable is None or of_owner:
        return 0
    standing = shown.stable.workload.replicas
    beyond = [(shown.stable, group) for group in groups(shown.stable) if group.ordinal >= standing]
    beside = [(facts, group) for facts in shown.of_inactive for group in groups(facts)]
    taken = sum(sum(held(facts, group, facts.workload.version).values()) for facts, group in (*beyond, *beside))
    given_up = (shown.own_size - standing) * shown.stable.workload.version.accelerators
    return max(0, taken - given_up)


def version_before(shown: Release, stable: Facts) -> Version:
    """The version that serves: where one workload is released, its template has the new one already."""
    if roles_of(shown.rollout) is None and shown.before is not None:
        return shown.before
    return stable.workload.version


def accelerators_held(shown: Release) -> int | None:
    """Accelerators that all groups hold; None at rest and in a clean-up, where the status knows of groups whose LWS is
    gone.
    """
    task = ((shown.rollout.get("status") or {}).get("finalising") or {}).get("task")
    if shown.stable is None or not releasing(shown.rollout) or task == "CleanUp":
        return None
    old, known = version_before(shown, shown.stable), shown.stable_revision
    total = 0
    for facts in (*shown.of_active, *shown.of_inactive):
        for group in groups(facts):
            is_old = facts is shown.stable and known in ("", group.revision)
            total += sum(held(facts, group, old if is_old else facts.workload.version).values())
    return total


def _causes(rollout: Object) -> Iterator[str]:
    for trouble in ((rollout.get("status") or {}).get("notReadyGroups") or ())[:_CAUSES]:
        group = trouble.get("group")
        where = f"{trouble.get('workload')} group {group}" if group else str(trouble.get("workload"))
        yield f"{where}: {trouble.get('reason')} {trouble.get('message') or ''}".rstrip()


@dataclass(frozen=True, slots=True)
class Change:
    """What differs in one workload, whose name is "" for the one whose version is released; and who wrote that when."""

    what: str
    workload: str = ""
    by: str = ""
    at: datetime | None = None

    def __str__(self) -> str:
        return f"{self.workload}: {self.what}" if self.workload else self.what


def changes(shown: Release) -> Iterator[Change]:
    """What the release changes; nothing when none is in progress, or when the previous version is not stored."""
    if shown.before is None or shown.edited is None:
        return
    yield from _difference(shown.edited, shown.before)
    # Of companions what is held is what serves.
    for one, other in shown.companions:
        if one is not None and other is not None:
            yield from _difference(other, one.workload.version, other.name)


def _difference(edited: Facts, replaced: Version, name: str = "") -> Iterator[Change]:
    """How the version in an LWS's template differs from the one that it replaces."""
    before, after = replaced.meaning, edited.workload.version.meaning
    told = changed(before, after)
    if told:
        yield Change(told, name, *author(edited.workload, before, after))


def _change(shown: Release, now: datetime) -> str:
    return "; ".join(_with_author(each, now) for each in changes(shown))


def _with_author(change: Change, now: datetime) -> str:
    if not change.by:
        return str(change)
    return f"{change}   by {change.by}" + (f", {age(change.at, now)} ago" if change.at else "")


#: By status.traffic.answeredBy: whom requests can reach while no group of either version is ready as a whole.
_ANSWERS = {
    "Stable": "only ready leaders of the stable version answer",
    "New": "only ready leaders of the new version answer",
    "Both": "only ready leaders answer",
    "Neither": "no version has a ready endpoint",
}


def users(shown: Release) -> str:
    rollout = shown.rollout
    status = rollout.get("status") or {}
    told = status.get("traffic") or {}
    sides = roles_of(rollout)
    if sides is not None and (not releasing(rollout) or have_turned(rollout)):
        return f"all requests go to {sides.active}" if serves_alone(rollout, parked=shown.is_parked) else ""
    if shown.is_replaced:
        return f"all requests go to {named(rollout)}"
    if not releasing(rollout) or not told:
        return ""
    asked, accepted = _weight(told.get("desired")), _weight(told.get("applied"))
    words = f"new {asked} asked, {accepted} accepted" if tells_share(rollout) else _of_renewed(rollout, accepted)
    answer = _ANSWERS.get(str(told.get("answeredBy")))
    if answer is not None:
        return f"AFFECTED: no group is whole, {answer}; {words}"
    if summary(rollout)["state"] == "Stalled" and asked == accepted == "0%":
        return f"NOT AFFECTED: {words}; stable {summary(rollout)['stable']} ready"
    return words + (f": {told['message']}" if asked != accepted and told.get("message") else "")


def _of_renewed(rollout: Object, beside: str) -> str:
    """Which workload requests go to while a promotion renews the workload's own groups, and in the clean-up after it;
    ``beside`` is the accepted weight of the canary's Service.
    """
    if has_promoted(rollout):
        return "all requests go to the new version"
    if beside == "0%":
        return f"all requests go to {named(rollout)}, whose groups are renewed"
    return (
        f"{beside} go to new groups beside {named(rollout)}, the others to {named(rollout)}, whose groups are renewed"
    )


def _weight(known: Object | None) -> str:
    found = known or {}
    return weight_text(int(found.get("weight") or 0), int(found.get("matches") or 0))


def _groups(shown: Release, now: datetime) -> str:
    if roles_of(shown.rollout) is not None:
        return "   ".join(_of_sides(shown, now))
    said = summary(shown.rollout)
    return "   ".join(f"{side} {said[side]} ready" for side in ("new", "stable") if said[side])


def _of_sides(shown: Release, now: datetime) -> Iterator[str]:
    for facts in shown.of_active:
        yield _of_side(facts, now)
    for facts in shown.of_inactive:
        yield f"{facts.name} parked" if shown.is_parked and not facts.workload.replicas else _of_side(facts, now)
    asked = shown.rollout["spec"].get("replicas")
    if asked is not None:
        yield f"spec.replicas {asked}"


def _of_side(facts: Facts, now: datetime) -> str:
    asked = facts.workload.replicas
    ready = sum(group.ready(now) for group in groups(facts) if group.ordinal < asked)
    return f"{facts.name} {ready}/{asked} ready"


def _accelerators(shown: Release, steps: tuple[PlannedStep, ...]) -> str:
    now = summary(shown.rollout)["accelerators"]
    if not now or shown.stable is None or not releasing(shown.rollout):
        return now
    most = peak_of(shown, steps)
    if most is None:
        return f"{now} now"
    return f"{now} now   {most.accelerators} at peak ({f'step {most.step}' if most.step else 'at the end'})"


def peak_of(shown: Release, steps: tuple[PlannedStep, ...]) -> Peak | None:
    """The peak of a release that is on, with companions of a pair; None where it takes no more than what serves, or
    none at all, on a way back, and when it is over.
    """
    is_on = releasing(shown.rollout) and not (have_turned(shown.rollout) or goes_back(shown.rollout))
    if shown.stable is None or not is_on:
        return None
    standing, new = shown.stable.workload.replicas, (shown.edited or shown.stable).workload.version
    each = version_before(shown, shown.stable).accelerators, new.accelerators
    most = peak(shown.rollout, steps, shown.full_size, standing=standing, each=each)
    beside = sum(_accelerators_of_both(one, other) for one, other in shown.companions)
    if most is None or not (any(each) or beside):
        return None
    # At the peak both sides stand whole, and so do companions.
    return replace(most, accelerators=most.accelerators + beside)


def _accelerators_of_both(active: Facts | None, inactive: Facts | None) -> int:
    """Accelerators of a companion's groups on both sides, when the new one has as many groups as the old one."""
    count = active.workload.replicas if active is not None else 0
    both = (each for each in (active, inactive) if each is not None)
    return count * sum(each.workload.version.accelerators for each in both)


def _steps(rollout: Object, steps: tuple[PlannedStep, ...]) -> str:
    """Each step with its size; ">" marks the current one and "v" the completed ones, with how long they took."""
    current = int((rollout.get("status") or {}).get("currentStepIndex") or 0) if releasing(rollout) else 0
    took = _took(rollout)
    told = []
    for step in steps:
        mark = "v" if step.index < current else ">" if step.index == current else " "
        known = step.index < current and step.index in took
        told.append(f"{mark} {step}" + (f" took {short(took[step.index])}" if known else ""))
    return "  ".join(told)


def _took(rollout: Object) -> dict[int, float]:
    """Seconds that the release has been in each step, by the timeline of the status."""
    took: dict[int, float] = {}
    for entry, following in pairwise((rollout.get("status") or {}).get("timeline") or ()):
        step, began, ended = entry.get("step"), instant(entry["at"]), instant(following["at"])
        if step and began is not None and ended is not None:
            took[step] = took.get(step, 0.0) + (ended - began).total_seconds()
    return took
