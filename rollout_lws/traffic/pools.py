"""InferencePools of the two versions: pinned by selector like Services, accepted by gateways like routes.

An endpoint picker serves only one pool, so the user provides the new version's pool too; the release creates neither.
No route refers to the new version's pool before the first weight, so no gateway has accepted it by then. With
failureMode FailClose, the API's default, a pool whose picker does not answer refuses every request, however many of its
pods are ready. Field facts: inference.networking.k8s.io/v1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from rollout_lws.api.resources import Keys
from rollout_lws.objects.resources import INFERENCE_POOLS, SERVICES
from rollout_lws.targets.target import Target
from rollout_lws.traffic import marks, selectors
from rollout_lws.traffic.facts import RoutingFacts
from rollout_lws.traffic.route import status
from rollout_lws.traffic.route.status import Parent
from rollout_lws.traffic.routers.of_rollout import routers
from rollout_lws.traffic.selectors import Changes, Pin, Selecting
from rollout_lws.traffic.split import Object

#: Every gateway reports this one; ResolvedRefs is about the endpoint picker and is optional.
CONDITIONS = ("Accepted",)


SELECTING = Selecting(INFERENCE_POOLS, ("spec", "selector", "matchLabels"))
unpinned, drifted, selects = SELECTING.unpinned, SELECTING.drifted, SELECTING.selects


def pin(live: Object, by: str, keys: Keys, changes: Changes) -> Object:
    """The pool with these selector keys set (None: removed); the annotation stores the user's values and the parents
    that accept the pool.
    """
    return SELECTING.pin(live, by, keys, changes, accepting_parents(live))


def parents(live: Object, by: str, keys: Keys) -> tuple[Parent, ...]:
    """The parents that accepted the pool before this Rollout's first write; () without its annotation entry."""
    mark = marks.read_as(Pin, live, by, keys)
    return mark.parents if mark else ()


def accepting_parents(live: Object) -> tuple[Parent, ...]:
    """The parents that accept the pool, or accepted a generation of it that has just been replaced."""
    return status.accepting(live, CONDITIONS)


def unaccepted(pool: Object, parents: Iterable[Parent]) -> str:
    """Why the live generation is not in use yet: the first parent that has not accepted it, with its condition and
    message; "" when all have. A parent that is no longer in status does not refer to the pool any more.
    """
    there = status.reporting(pool)
    said = (status.complaint(pool, each, CONDITIONS) for each in parents if each in there)
    return next((f"InferencePool {pool['metadata']['name']}: {why}" for why in said if why), "")


def pool_problem(
    pool: Object,
    by: str,
    keys: Keys,
    *,
    workload: Target,
    leaders: Mapping[str, Sequence[Mapping[str, str]]],
    pinned: bool = True,
) -> str:
    """Why no release of ``workload`` can use this pool, as a sentence that says what to do; "" when it can. ``leaders``
    are label sets of leader pods by the name of their workload.
    """
    return selectors.selector_problem(
        SELECTING.selector(unpinned(pool, by, keys)),
        what=f"InferencePool {pool['metadata']['name']}",
        workload=workload,
        leaders=leaders,
        borrowers=marks.others(pool, by, keys),
        pinned=pinned,
    )


def canary_denied(facts: RoutingFacts) -> str:
    """The first Gateway's message that it cannot use the pool as it stands; "" when no Gateway reports that."""
    live = _canary_pool(facts)
    said = status.denied(live) if live is not None else ""
    return f"InferencePool {facts.names.canary_pool}: {said}" if said else ""


def canary_unaccepted(facts: RoutingFacts) -> str:
    """Why not all gateways that use the stable version's pool use the new one's; "" when they do, and while no request
    is sent to it.
    """
    live, first = _canary_pool(facts), facts.find(INFERENCE_POOLS, facts.names.stable_pool)
    if live is None or first is None or not any(each.state.reaches_canary for each in routers(facts)):
        return ""
    known = status.reporting(first)
    using = (each for each in parents(first, facts.by, facts.keys) if each in known)
    said = next(filter(None, (status.complaint(live, each, CONDITIONS) for each in using)), "")
    return canary_denied(facts) or (f"InferencePool {facts.names.canary_pool}: {said}" if said else "")


def _canary_pool(facts: RoutingFacts) -> Object | None:
    return facts.find(INFERENCE_POOLS, facts.names.canary_pool)


def picker_service(pool: Object | None) -> str:
    """The Service of its endpoint picker; "" when there is none."""
    asked = _picker(pool)
    is_service = (asked.get("group") or "", asked.get("kind") or SERVICES.kind) == (SERVICES.group, SERVICES.kind)
    return str(asked.get("name") or "") if is_service else ""


def _picker(pool: Object | None) -> Object:
    found: Object = ((pool or {}).get("spec") or {}).get("endpointPickerRef") or {}
    return found


def fails_closed(pool: Object | None) -> bool:
    """Whether requests to the pool fail while its picker does not answer."""
    return (_picker(pool).get("failureMode") or "FailClose") == "FailClose"


def unanswered(facts: RoutingFacts, pool: str | None) -> str:
    """Why requests to the pool of this name would fail because its picker is unavailable, as a sentence that says what
    to do; "" when they would not, and when there is no such pool.
    """
    found = facts.find(INFERENCE_POOLS, pool)
    name = picker_service(found)
    if not name or not fails_closed(found) or name in facts.answering:
        return ""
    what, service = f"InferencePool {pool} fails all requests (failureMode FailClose)", facts.find(SERVICES, name)
    of_picker = f"the Service {name} of its endpoint picker"
    if service is None:
        return f"{what}: {of_picker} does not exist; create it, or correct endpointPickerRef"
    if (service.get("spec") or {}).get("type") == "ExternalName":
        return f"{what}: {of_picker} is of type ExternalName, which has no endpoint; make one that selects the picker"
    return f"{what}: {of_picker} has no ready endpoint; start the picker"
