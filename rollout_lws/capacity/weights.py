"""Which share of requests belongs to so many groups: plain numbers, for whoever routes a release and whoever previews
or refuses one.

A weight is the new version's share in whole percent.
"""

from __future__ import annotations

from rollout_lws.api import Step, StyleStrategy
from rollout_lws.capacity.batches import makes_no_groups, wanted_groups
from rollout_lws.capacity.table import strategy_of_plan
from rollout_lws.objects import scaling

#: A group may get so many times the requests that it has while all groups of the LWS carry them alike.
MOST = 2


def sharing_step(plan: StyleStrategy, index: int) -> Step:
    """The step whose share holds in step ``index`` (1-based): in one that is only the promotion, what serves meanwhile
    is what the step before has made.
    """
    return plan.steps[index - 2 if makes_no_groups(plan, index) else index - 1]


def weight_of_step(plan: StyleStrategy, index: int, replicas: int) -> int:
    """What step ``index`` (1-based) of an LWS of ``replicas`` groups gives the new version once its groups are ready.

    0 when it says neither traffic nor matches; "auto" is in proportion to groups, at least 1. In place the last group
    stays old until the promotion, so "100%" leaves it what is its due.
    """
    step, strategy = sharing_step(plan, index), strategy_of_plan(plan)
    if not step.traffic:
        return 0
    new = wanted_groups(plan, index, replicas)
    whole = strategy.updates_regular and step.traffic == "100%" and new == replicas - 1
    if step.traffic != "auto" and not whole:
        return scaling.scaled(step.traffic, 100)
    return max(1, min(round(100 * new / strategy.sharing(new, replicas)), 99 if strategy.updates_regular else 100))


def weight_in_place(weight: int, new: int, stable: int, replicas: int) -> int:
    """The new version's weight while groups of an LWS of ``replicas`` are renewed or go back, with ``new`` and
    ``stable`` ready ones: their due, at most the ``weight`` that is meant, but no group of stable gets more than MOST
    times what it has at rest.
    """
    if new < 1:
        return 0
    return max(min(100 * new // (new + stable), weight), 100 - MOST * 100 * stable // replicas)


def weight_in_promotion(weight: int, new: int, replicas: int, portion: int) -> int:
    """The second LWS's weight while ``portion`` of the ``replicas`` groups of stable are down at once: at least what
    its ``new`` groups are of all that stay up, rounded up, and not less than the ``weight`` that it had.
    """
    staying = new + replicas - portion
    return max(weight, -(-100 * new // staying) if staying else 0)
