"""How many groups the steps of a plan ask for, in plain numbers: also for whoever shows a release and must not load
the models for that.
"""

from __future__ import annotations

from collections.abc import Sequence

from rollout_lws.objects.scaling import scaled

#: What a step asks for that asks for every group.
ALL = "100%"


def is_bare_promotion(size: int | str, *, shares: bool, last: bool, promotes_at_full: bool) -> bool:
    """Whether a step is nothing but the promotion: extra groups would be thrown away at once.

    ``size`` is a count or "N%", ``shares`` whether the step has requests of its own (traffic or matches), ``last``
    whether it ends the plan, and is not all of it.
    """
    return last and promotes_at_full and size == ALL and not shares


def groups_after(sizes: Sequence[int | str], replicas: int, *, keeps_one: bool) -> int:
    """Groups of the new version after steps of these ``sizes``, of an LWS of ``replicas`` groups; at least 1.

    Percentages are rounded up; no step asks for more than ``replicas`` groups, nor for fewer than one before it. With
    ``keeps_one`` the last group belongs to the promotion (capacity InPlace).
    """
    asked = max(scaled(size, replicas) for size in sizes)
    return max(1, min(asked, replicas - 1 if keeps_one else replicas))
