"""InferencePools of the two versions: pinned by their selectors as Services are, accepted by gateways as routes are.

An endpoint picker serves one pool only, so the new version's pool is the user's own as well; neither is made here.
Field facts: inference.networking.k8s.io/v1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from rollout_lws.api.resources import Keys
from rollout_lws.objects.resources import INFERENCE_POOLS
from rollout_lws.traffic import marks, selectors
from rollout_lws.traffic.route import status
from rollout_lws.traffic.route.status import Parent
from rollout_lws.traffic.selectors import Changes, Pin, Selecting
from rollout_lws.traffic.split import Object

#: What every gateway reports; ResolvedRefs is about the endpoint picker and need not be there.
CONDITIONS = ("Accepted",)


SELECTING = Selecting(INFERENCE_POOLS, ("spec", "selector", "matchLabels"))
unpinned, drifted, selects = SELECTING.unpinned, SELECTING.drifted, SELECTING.selects


def pin(live: Object, by: str, keys: Keys, changes: Changes) -> Object:
    """The pool with these keys of its selector set (None: removed), the user's own and the parents that accept it
    remembered under our mark.
    """
    return SELECTING.pin(live, by, keys, changes, accepting_parents(live))


def parents(live: Object, by: str, keys: Keys) -> tuple[Parent, ...]:
    """The parents that accepted the pool before this Rollout's first write; () without its mark."""
    mark = marks.read_as(Pin, live, by, keys)
    return mark.parents if mark else ()


def accepting_parents(live: Object) -> tuple[Parent, ...]:
    """The parents that accept the pool, or accepted a generation of it that has just been replaced."""
    return status.accepting(live, CONDITIONS)


def unaccepted(pool: Object, parents: Iterable[Parent]) -> str:
    """Why the live generation is not in use yet: the first parent that has not accepted it, with its condition and
    message; "" when all have. A parent that is gone from status refers to the pool no more.
    """
    there = status.reporting(pool)
    said = (status.complaint(pool, each, CONDITIONS) for each in parents if each in there)
    return next((f"InferencePool {pool['metadata']['name']}: {why}" for why in said if why), "")


def pool_problem(
    pool: Object,
    by: str,
    keys: Keys,
    *,
    workload: str,
    canary: str,
    leaders: Mapping[str, Sequence[Mapping[str, str]]],
) -> str:
    """Why no release of the LeaderWorkerSet ``workload`` can use this pool, as a sentence that says what to do; "" when
    it can. ``canary`` is the name of its canary; ``leaders`` are label sets of leader pods by their LeaderWorkerSet.
    """
    return selectors.selector_problem(
        SELECTING.selector(unpinned(pool, by, keys)),
        what=f"InferencePool {pool['metadata']['name']}",
        workload=workload,
        canary=canary,
        leaders=leaders,
        borrowers=marks.others(pool, by, keys),
    )
