"""The whole chain, judged: from the Rollout by its LeaderWorkerSets, groups and pods to Services and routes.

Pure. What the controller's own rules complain of is told in their words, at the link to which it belongs; the rest
is what no controller looks at, or what is the matter when none does.
"""

from __future__ import annotations

from rollout_lws.cli.doctor import of_groups, of_rollout, of_routes, of_services, of_workload
from rollout_lws.cli.doctor.case import Case
from rollout_lws.cli.doctor.facts import Facts, Owed
from rollout_lws.cli.doctor.links import Link, Name

_ORDER = {name: number for number, name in enumerate(Name)}


def chain(facts: Facts) -> tuple[Link, ...]:
    """All links in the order of ``Name``, those of the canary after those of the LWS that the Rollout names."""
    case = Case(facts)
    found: list[Link | None] = [
        of_rollout.rollout(case),
        of_rollout.controller(case),
        of_workload.workload(case),
        of_workload.hold(case),
        of_workload.history(case),
    ]
    for side in facts.sides:
        found += [of_workload.leader_set(case, side), *of_groups.links(case, side)]
    found += [*of_services.links(case), *of_routes.links(case), of_routes.autoscaler(case), of_rollout.release(case)]
    there = [each for each in found if each is not None]
    return tuple(sorted(there, key=lambda each: _ORDER[each.name]))


def owed(facts: Facts) -> frozenset[Owed]:
    """What a controller would have to write now; what it still has to a moment later, nobody does."""
    return Case(facts).owed
