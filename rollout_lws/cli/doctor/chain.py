"""Judges the whole chain: from the Rollout through its workloads, groups and pods to Services and routes.

Pure. A complaint of the controller's own rules appears with its message at its link; the other checks cover what no
controller looks at, and what is wrong when no controller runs.
"""

from __future__ import annotations

from dataclasses import replace

from rollout_lws.cli.doctor.case import Case
from rollout_lws.cli.doctor.checks import gates, groups, ordered, pods, rollout, routes, services, taken_out, workload
from rollout_lws.cli.doctor.checks.group_troubles import UNMADE, UNPLACED, UNREADY, found_in
from rollout_lws.cli.doctor.facts import Before, Facts
from rollout_lws.cli.doctor.links import Link, Name, State, first
from rollout_lws.objects.resources import PODS, STATEFUL_SETS
from rollout_lws.workload.facts import Facts as Workload

#: Links that break because something is missing.
_BY_ABSENCE = (Name.GROUPS, Name.SERVICE, Name.ENDPOINTS)
_ORDER = {name: number for number, name in enumerate(Name)}


def chain(facts: Facts) -> tuple[Link, ...]:
    """All links in the order of ``Name``, the canary's after those of the stable workload."""
    case = Case(facts)
    found: list[Link | None] = [
        rollout.rollout(case),
        rollout.controller(case),
        *workload.links(case),
        *workload.holds(case),
        workload.history(case),
    ]
    for side in facts.members:
        found += [workload.leader_set(case, side), *_of_groups(case, side)]
    found += [*taken_out.links(case), *services.links(case), *routes.links(case), routes.autoscaler(case)]
    found += [*gates.links(case), rollout.release(case)]
    # Last, so that it hides nothing that is currently awaited.
    found.append(workload.own_surge(case))
    there = [_held(case, replace(each, affected=case.affected(each))) for each in found if each is not None]
    return tuple(sorted(there, key=lambda each: _ORDER[each.name]))


def _of_groups(case: Case, side: Workload) -> tuple[Link, ...]:
    about = case.named(side.name)
    unread = case.unread(Name.GROUPS, about, PODS, STATEFUL_SETS)
    if unread is not None:
        return (unread,)
    found = found_in(case, side)
    of_containers = [each for each in found if each.trouble.reason not in UNMADE | UNPLACED | UNREADY]
    made = groups.made(case, side, about, [each for each in found if each.trouble.reason in UNMADE])
    if case.runs_elsewhere(side):
        return (made, pods.containers(case, side, about, of_containers))
    links = (
        made,
        pods.scheduling(case, side, about, [each for each in found if each.trouble.reason in UNPLACED]),
        pods.containers(case, side, about, of_containers),
        pods.readiness(case, side, about, [each for each in found if each.trouble.reason in UNREADY]),
    )
    return ordered.told_of(case, side, links)


def _held(case: Case, link: Link) -> Link:
    """Something that is missing in one look only is in transition, so the link waits."""
    before = case.facts.before
    if before is None or link.state is not State.BROKEN or link.name not in _BY_ABSENCE:
        return link
    return link if (link.name, link.about) in before.amiss else replace(link, state=State.WAITING)


def seen(facts: Facts) -> Before:
    """What the second look compares with: a write that is still pending then shows that no controller acts."""
    links = chain(facts)
    amiss = frozenset((each.name, each.about) for each in links if each.state is not State.OK)
    return Before(Case(facts).pending_writes, amiss, first(links, State.BROKEN) is not None)
