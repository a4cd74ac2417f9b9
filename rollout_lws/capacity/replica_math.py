"""Numbers of groups: what the steps of a plan ask for, and how many groups go down at once.

The command line counts with these too, without loading the API's models.
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


def portion_beside(allowed: int, serving: int, replicas: int) -> int:
    """Groups of an LWS of ``replicas`` that are renewed at once while ``serving`` groups of a second LWS stand beside
    them: the user's maxUnavailable, ``allowed``, at most as many as serve, never the last one, at least 1.
    """
    return max(1, min(allowed, serving, replicas - 1))
