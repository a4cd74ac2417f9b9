"""What a release will take, told before anything is written: groups, accelerators, model loads, shares and time.

Pure arithmetic on the plan, by the same functions that decide in the release itself. R is the number of the LWS's own
groups. It assumes that R stays and that every group loads at the first try; waits for approvals, and the seconds that
LWS, routers and ending pods take, are not in it.
"""

from __future__ import annotations

from rollout_lws.api import StyleStrategy
from rollout_lws.capacity.table import strategy_of_plan
from rollout_lws.release.batches import wanted_groups
from rollout_lws.release.course import Course
from rollout_lws.release.phases import Given, Preview


def preview(plan: StyleStrategy, given: Given) -> Preview:
    """ValueError for a number of groups that cannot be released in steps, with what to do."""
    if given.replicas < 1:
        raise ValueError(
            "the LeaderWorkerSet has 0 groups, and a version takes effect there by itself: nothing is done in steps"
        )
    if given.replicas < strategy_of_plan(plan).least_replicas:
        raise ValueError(
            "capacity InPlace needs at least 2 groups, one to serve while the other is renewed: scale up, or use Surge"
            " or ExtraWorkload"
        )
    return Course(plan, given).run()


def step_of_much_extra(plan: StyleStrategy, replicas: int) -> int:
    """The first step (1-based) that takes more than half as many groups again as there are; 0 when there is none.

    Blue-green is chosen for just that and is not warned of, and one group is the least that a step can take.
    """
    strategy, steps = strategy_of_plan(plan), range(1, len(plan.steps) + 1)
    if strategy.full_set:
        return 0
    extra = ((index, strategy.extra(wanted_groups(plan, index, replicas))) for index in steps)
    return next((index for index, groups in extra if 2 * groups > max(replicas, 2)), 0)


def much_extra(plan: StyleStrategy, replicas: int) -> str:
    """A warning of that step; "" when there is none."""
    index = step_of_much_extra(plan, replicas)
    if not index:
        return ""
    return (
        f"step {index} takes {wanted_groups(plan, index, replicas)} groups beside the LeaderWorkerSet's {replicas},"
        " more than half as many again: lower its replicas, or use capacity InPlace, which takes none"
    )
