"""The picture of a plan: the course of its release. Pure: a plan in, a course out."""

from __future__ import annotations

from collections.abc import Sequence

from rollout_lws.cli.durations import short
from rollout_lws.cli.plan.model import Plan, groups_of, unit
from rollout_lws.drawing.course import Course
from rollout_lws.drawing.foreseen import Asked, Beside, Held, course
from rollout_lws.errors import UsageError
from rollout_lws.forecast.model import Forecast


def only(plans: Sequence[Plan]) -> Plan:
    """The one plan that a picture is of; UsageError, with the way out, where there are several."""
    if len(plans) > 1:
        names = ", ".join(plan.rollout for plan in plans)
        raise UsageError(f"a picture is of one release, and these are {len(plans)} ({names}): give the NAME of one")
    return plans[0]


def course_of(plan: Plan) -> Course:
    """What the release of a plan looks like; UsageError, with the way out, where that is not known."""
    found, name = plan.forecast, f"rollout/{plan.rollout}"
    if found is None:
        raise UsageError(f"there is nothing to draw of {name}: without --svg the plan says why")
    if not plan.is_timed:
        raise UsageError(f"how long a group of {name} loads is not known here, and a picture is to scale: --load-time")
    beside = [Beside(each.active_groups, Held(each.old, each.new)) for each in plan.beside]
    held = Held({} if not plan.peak else plan.old, {} if not plan.peak else plan.new)
    return course(found, f"{plan.rollout}: {plan.how}", facts(plan, found), held, beside, _asked(plan))


def facts(plan: Plan, found: Forecast) -> str:
    """What the release takes, in one line."""
    told = [groups_of(plan.replicas)]
    told.append("the owner loads the new ones" if plan.owned is not None else _loads(found))
    count = len(found.approvals)
    asked = f" and {count} approval{'' if count == 1 else 's'}" if count else ""
    told.append(f"about {short(found.seconds)}{asked}")
    for name, most in plan.peak.items():
        now = plan.now.get(name, 0)
        told.append(f"{most} {unit(name)}" if now == most else f"{now} to {most} {unit(name)}")
    return "; ".join(told)


def _loads(found: Forecast) -> str:
    return f"{found.loads} model load{'' if found.loads == 1 else 's'}"


def _asked(plan: Plan) -> dict[int, Asked]:
    """What each step waits for."""
    return {
        part.row.step: Asked(
            float(part.pause or 0),
            tuple((each.placed.gate.name, min(each.seconds(plan.given.rate), each.deadline)) for each in part.gates),
        )
        for part in plan.parts
        if part.row.step is not None
    }
