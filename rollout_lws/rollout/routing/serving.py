"""The traffic weight that each version can carry, by its readiness and by how often it has stopped serving.

A version serves if it has ready groups that routers can reach and, behind a pool, if its endpoint picker answers. While
no group of either version is ready as a whole, ready leaders decide: they are what routers send requests to.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from rollout_lws.api import AnsweredBy, Phase, TrafficRecord
from rollout_lws.api.base import with_fields
from rollout_lws.objects.resources import INFERENCE_POOLS
from rollout_lws.rollout import companions
from rollout_lws.rollout.backoff import Wait, doubled
from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.routing.versions import VersionEndpoints, new_endpoints, stable_endpoints
from rollout_lws.rollout.routing.weights import DEFAULT_GRACE_SECONDS, groups_for_all, settings, short_of_all, weight_of
from rollout_lws.rollout.state import CleaningUp, InSteps
from rollout_lws.traffic import pools, services
from rollout_lws.traffic.facts import RoutingFacts
from rollout_lws.traffic.pools import unanswered
from rollout_lws.traffic.routers.of_rollout import routers
from rollout_lws.traffic.split import ALL_STABLE, Split, listed
from rollout_lws.workload.groups import groups
from rollout_lws.workload.hold import standing_surge
from rollout_lws.workload.revisions import target_revision

#: First and longest backoff, in seconds, before a version that stopped serving gets its weight back; it doubles.
SHORTEST_BAN_SECONDS, LONGEST_BAN_SECONDS = 10, 300


def stable_serves(d: Draft, facts: RoutingFacts) -> bool:
    return behind_stable(d, facts, stable_endpoints(d))


def behind_stable(d: Draft, facts: RoutingFacts, endpoints: VersionEndpoints) -> bool:
    """True if a version answers requests that are sent to the stable Service or pool."""
    pool = facts.names.stable_pool
    return endpoints.serves(d.now, _reached(endpoints, facts, facts.names.service, pool)) and not unanswered(
        facts, pool
    )


def keeps_shares(d: Draft, facts: RoutingFacts) -> str:
    """Why the new version of a pair keeps the share that it has, "" if it need not: it serves whole, and the stable one
    lacks companions.
    """
    absent = companions.absent_from_active(d) if d.o.companions else ()
    if not absent or not new_serves(d, facts) or not any(each.state.reaches_canary for each in routers(facts)):
        return ""
    return f"no group of {' and '.join(absent)} is ready, so that {d.edited.name} keeps its share until one is"


def new_serves(d: Draft, facts: RoutingFacts) -> bool:
    """True if the new version answers requests that are sent to its Service or pool, and its companions serve.
    Those of the stable version are not asked for: it keeps the requests that it has as long as it answers any.
    """
    if not companions.serve(d):
        return False
    endpoints = new_endpoints(d)
    pool = facts.names.canary_pool
    return endpoints.serves(d.now, _reached(endpoints, facts, facts.canary_service_name, pool)) and not unanswered(
        facts, pool
    )


def _reached(endpoints: VersionEndpoints, facts: RoutingFacts, service: str, pool: str | None) -> frozenset[str]:
    """Names of the pods that routers can send requests to: a pool's picker reads the pods themselves."""
    if not pool:
        return facts.endpoints.get(service, frozenset())
    live = facts.find(INFERENCE_POOLS, pool)
    if live is None:
        return frozenset()
    return frozenset(
        pod.metadata.name
        for pod in endpoints.pods
        if pod.is_leader
        and pod.ready_since
        and not pod.metadata.terminating
        and pools.selects(live, pod.metadata.labels)
    )


def answered_by(d: Draft, facts: RoutingFacts) -> AnsweredBy | None:
    """Whose ready leaders requests can reach while no group of either version is whole: a node with some pods of each
    is lost. None while one is whole, and if there are no groups at all.
    """
    sides = (stable_endpoints(d), new_endpoints(d))
    every = [group for side in sides for group in side.groups]
    if facts.waits or not every or any(group.ready(d.now) for group in every):
        return None
    backends = (
        (facts.names.service, facts.names.stable_pool),
        (facts.canary_service_name, facts.names.canary_pool),
    )
    answers = tuple(
        any(_reached(side, facts, *backend) for side in sides) and not unanswered(facts, backend[1])
        for backend in backends
    )
    match answers:
        case (True, True):
            return AnsweredBy.BOTH
        case (True, False):
            return AnsweredBy.STABLE
        case (False, True):
            return AnsweredBy.NEW
        case _:
            return AnsweredBy.NEITHER


def tell_who_answers(d: Draft) -> Draft:
    """Tells in status and verdict that users are affected, and who answers, while no group is whole in a release."""
    facts, record = d.o.routing, d.status.traffic
    if facts is None or record is None or d.status.phase != Phase.PROGRESSING:
        return d
    found = answered_by(d, facts)
    d = d.set(traffic=with_fields(record, answered_by=found.value if found is not None else None))
    return d.adding(_hit(facts, found)) if found is not None else d


def _hit(facts: RoutingFacts, answers: AnsweredBy) -> str:
    hit = "users are affected: no group of either version is ready as a whole"
    match answers:
        case AnsweredBy.STABLE:
            return f"{hit}, and only ready leaders behind {_stable_side(facts)} answer requests"
        case AnsweredBy.NEW:
            return f"{hit}, and only ready leaders behind {_new_side(facts)} answer requests"
        case AnsweredBy.BOTH:
            return f"{hit}, and only ready leaders answer requests"
        case AnsweredBy.NEITHER:
            return f"{hit}, and neither {_stable_side(facts)} nor {_new_side(facts)} has a ready endpoint"


@dataclass(frozen=True, slots=True)
class Safe:
    """The part of a wanted split that both versions can carry; ``why`` it is less, "" if it is not.

    ``until`` is when that ends by time alone; None if it never does.
    """

    split: Split
    why: str = ""
    until: datetime | None = None


def _not_yet(d: Draft) -> Wait | None:
    """Why a canary without weight gets none yet; None if it may get one.

    Routers learn of its first endpoint and of its weight separately, so they get their grace period in between. A
    canary that stopped serving before has to serve for longer. Routers still know groups that are terminating.
    """
    asked, flaps, endpoints = settings(d), d.status.flaps or 0, new_endpoints(d)
    if asked is None or not endpoints.exists:
        return None
    kept = _kept(d)
    going = [group.index for group in endpoints.groups if group.ordinal >= kept]
    if going:
        return Wait(f"the new version gets its share when group {', '.join(going)} of {endpoints.name} is gone")
    for facts in companions.inactive_workloads(d) if d.paired else ():
        older = [group.index for group in groups(facts) if group.revision != target_revision(facts)]
        if older:
            return Wait(
                f"the new version gets its share when group {', '.join(older)} of {facts.name}, which runs another"
                " version, is renewed"
            )
    seconds = float(asked.grace_period_seconds)
    if flaps:
        seconds = max(seconds, _ban(d))
    since = _served_since(d, endpoints)
    if since is not None and d.paired:
        since = max((since, *companions.serve_since(d)))
        # Routers may still know the group in whose place the newest one came.
        born = (
            group.leader.metadata.creation_timestamp
            for facts in companions.inactive_workloads(d)
            for group in groups(facts)
        )
        since = max(since, *filter(None, born))
    until = d.yet_to_come(since, seconds) if since is not None else None
    if until is None:
        return None
    again = " again, as it stopped serving before" if flaps else ""
    return Wait(f"the new version gets its share{again} at {until:%H:%M:%S} UTC", until)


def _ban(d: Draft) -> float:
    """Seconds for which a version has to serve again before it gets its lost weight back."""
    return doubled(max(d.minimum, SHORTEST_BAN_SECONDS), max(d.status.flaps or 0, 1) - 1, LONGEST_BAN_SECONDS)


def _served_since(d: Draft, endpoints: VersionEndpoints) -> datetime | None:
    """Since when a version serves, None without a ready group. Nothing reports since when an endpoint picker answers,
    so that counts from when the weight was removed because it did not.
    """
    lost = d.status.traffic.unanswered if d.status.traffic else None
    ready = min(endpoints.ready_since, default=None)
    return max(ready, lost) if ready is not None and lost is not None else ready


def _kept(d: Draft) -> int:
    """The first ordinal of the new version's LWS that is being removed."""
    canary = d.o.canary.workload.replicas if d.o.canary is not None else 0
    return d.capacity.of_new(d.replicas + standing_surge(d.stable.workload, d.keys), canary)


def answers_for_stable(d: Draft, facts: RoutingFacts) -> tuple[bool, datetime | None]:
    """True if the canary also answers clients of the stable Service, past every router: from when no stable group is
    ready until one has been for a while, provided that the canary has carried requests before. With the moment when
    that ends by time alone, None if it never does.
    """
    record = d.status.traffic or TrafficRecord()
    new = new_endpoints(d)
    # After a change of roles the old version's groups stand for a while.
    stands = d.capacity.swaps and isinstance(d.state, CleaningUp) and any(each.ready(d.now) for each in new.groups)
    if not (d.new_ready or stands) or record.since is None:
        return False, None
    ready = stable_endpoints(d).ready_since
    if not ready or record.stable_drained_at is not None:
        # After a promotion nothing has failed, so there is no backoff.
        return not ready, None
    live = facts.service
    if live is None or not new.selects.items() <= services.SELECTING.selector(live).items():
        return False, None
    until = d.yet_to_come(min(ready), max(d.minimum, SHORTEST_BAN_SECONDS))
    return until is not None, until


def _not_back_yet(d: Draft, facts: RoutingFacts, record: TrafficRecord) -> Wait | None:
    """Why stable, after it stopped serving or was updated as a whole, does not get its weight back yet; None if it
    does.
    """
    asked = settings(d)
    # A picker may be back before routers report that they accepted the change.
    taken = weight_of(record.applied) == 100 or (
        record.unanswered is not None and _as_written(ALL_STABLE, facts).weight == 100
    )
    since = _served_since(d, stable_endpoints(d)) if taken and weight_of(record.desired) < 100 else None
    seconds = _ban(d) if record.unanswered is not None else max(d.minimum, SHORTEST_BAN_SECONDS)
    why = ", as it stopped serving before"
    if record.stable_drained_at is not None:
        # Nothing has failed: routers only need to learn of its new groups.
        seconds, why = asked.grace_period_seconds if asked else DEFAULT_GRACE_SECONDS, ""
    until = d.yet_to_come(since, seconds) if since is not None else None
    return Wait(f"the stable version gets its share back at {until:%H:%M:%S} UTC{why}", until) if until else None


def safe(d: Draft, facts: RoutingFacts, split: Split) -> Safe:
    """The split to write for ``split``, and why it differs. If only one version serves, it gets all requests; if
    neither does, the new one gets no more than before nor than its step gives it, unless only one has ready leaders. A
    version that has stopped serving gets its weight back after a backoff, and the new one gets 100 % only with as many
    ready groups as all requests need.
    """
    record = d.status.traffic or TrafficRecord()
    answers = answered_by(d, facts)
    if answers is AnsweredBy.STABLE and split.reaches_new:
        return Safe(ALL_STABLE, _waits_for_endpoint(facts))
    if answers is AnsweredBy.NEW and split.weight < 100 and record.since is not None:
        return Safe(replace(split, weight=100), _goes_to_new(f"{_stable_side(facts)} has no ready endpoint"))
    new, stable = new_serves(d, facts), stable_serves(d, facts)
    kept = keeps_shares(d, facts) if stable else ""
    if kept and split.weight < (written := _as_written(split, facts)).weight:
        return Safe(written, kept)
    if split.reaches_new and not new:
        if not stable:
            lack = "whole group" if answers is AnsweredBy.BOTH else "ready endpoint"
            return Safe(
                _no_more_to_new(split, facts), f"neither version has a {lack}: the new version's share does not grow"
            )
        refuses = unanswered(facts, facts.names.canary_pool)
        return Safe(ALL_STABLE, refuses or _waits_for_endpoint(facts))
    if split.reaches_new and stable and not any(each.state.reaches_canary for each in routers(facts)):
        waits = _not_yet(d)
        if waits is not None:
            return Safe(listed(d.now), waits.message, waits.until)
    has_share = record.since is not None or split.weight > 0
    if split.weight < 100 and new and not stable and d.o.stable is not None and has_share:
        refuses = unanswered(facts, facts.names.stable_pool)
        least = groups_for_all(d)
        if refuses and stable_endpoints(d).ready_since and d.new_ready < least:
            # A picker is mostly back soon, and by then a few groups under all requests would have failed, too.
            stays = f"shares stay as they are, for 100% needs {least} ready groups of the new version"
            return Safe(_as_written(split, facts), f"{refuses}: {stays}")
        why = (
            _goes_to_new(refuses or f"{_stable_side(facts)} has no ready endpoint")
            if record.stable_drained_at is None or refuses
            else f"all requests stay at the canary until {_stable_side(facts)} leads to renewed groups"
        )
        return Safe(replace(split, weight=100), why)
    if split.weight < 100 and new and stable:
        waits = _not_back_yet(d, facts, record)
        if waits is not None:
            return Safe(replace(split, weight=100), waits.message, waits.until)
    if split.weight == 100 and stable:
        needed = groups_for_all(d)
        if d.new_ready < needed:
            # The workload may have grown since the plan was checked.
            short = short_of_all(d, record.step) if record.step and isinstance(d.state, InSteps) else ""
            if short:
                return Safe(_standing(split, record), short)
            lacks = companions.lacking(d, needed)
            why = f"100% needs {needed} ready groups of the new version" + (f", and has {lacks}" if lacks else "")
            return Safe(_standing(split, record), why)
    return Safe(split)


def _waits_for_endpoint(facts: RoutingFacts) -> str:
    return f"{_new_side(facts)} has no ready endpoint: its share waits"


def _goes_to_new(why: str) -> str:
    return f"{why}: all requests go to the new version"


def _stable_side(facts: RoutingFacts) -> str:
    pool = facts.names.stable_pool
    return f"InferencePool {pool}" if pool else f"Service {facts.names.service}"


def _new_side(facts: RoutingFacts) -> str:
    pool = facts.names.canary_pool
    return f"InferencePool {pool}" if pool else f"Service {facts.canary_service_name}"


def _standing(split: Split, record: TrafficRecord) -> Split:
    """``split`` with the last accepted weight."""
    return replace(split, weight=weight_of(record.applied))


def _no_more_to_new(split: Split, facts: RoutingFacts) -> Split:
    """What routes say, or less: of the groups of a lost node, stable's may be known first, so that the canary got
    everything for a moment.
    """
    written = _as_written(split, facts)
    return replace(written, weight=min(written.weight, split.weight))


def _as_written(split: Split, facts: RoutingFacts) -> Split:
    """``split`` with the weight in the routes, accepted or not; ALL_STABLE if no route gives the canary weight."""
    standing = [state.weight for each in routers(facts) if (state := each.state).reaches_canary]
    return replace(split, weight=min(standing)) if standing else ALL_STABLE
