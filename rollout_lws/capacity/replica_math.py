"""Replica arithmetic: groups that a plan's steps ask for, and batch sizes.

The command line uses it too, without loading the API's models.
"""

from __future__ import annotations

from collections.abc import Sequence

from rollout_lws.objects.scaling import scaled

#: The size of a step that asks for every group.
ALL = "100%"


def is_bare_promotion(size: int | str, *, shares: bool, last: bool, promotes_at_full: bool) -> bool:
    """True if a step is only the promotion: groups created for it would be deleted at once.

    ``size`` is a count or "N%", ``shares`` whether the step routes requests itself (traffic or matches), ``last``
    whether it is the last of several steps.
    """
    return last and promotes_at_full and size == ALL and not shares


def groups_after(sizes: Sequence[int | str], replicas: int, *, keeps_one: bool, bounded: bool = True) -> int:
    """Groups of the new version after steps of these ``sizes``, of an LWS of ``replicas`` groups; at least 1.

    Percentages are rounded up; no step asks for more than ``replicas`` groups, nor for fewer than a step before it.
    With ``keeps_one`` the last group is left to the promotion (capacity InPlace). Not ``bounded``, a count may be more
    than ``replicas``.
    """
    asked = max(scaled(size, replicas) for size in sizes)
    if not bounded:
        return max(1, asked)
    return max(1, min(asked, replicas - 1 if keeps_one else replicas))


def in_proportion(groups: int, replicas: int, own: int) -> int:
    """Groups of a companion that has ``own`` beside ``replicas`` of the workload that it goes with, for ``groups`` of
    those; rounded up.
    """
    return -(-groups * own // replicas) if replicas else 0


def accompanied(groups: int, replicas: int, own: int) -> int:
    """How many of the ``replicas`` groups of a workload ``groups`` of the companion's ``own`` go with; rounded down."""
    return groups * replicas // own if own else replicas


def largest_batch(allowed: int, serving: int, replicas: int) -> int:
    """Batch size of an LWS of ``replicas`` groups while ``serving`` groups of a canary serve: the user's
    maxUnavailable, ``allowed``, at most as many as serve, never the last one, at least 1.
    """
    return max(1, min(allowed, serving, replicas - 1))
